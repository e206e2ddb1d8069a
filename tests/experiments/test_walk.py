"""The chain of a run: its steps by hand, which minibatches it sees, when it changes its
kernel.
"""

from dataclasses import replace

import pytest
import torch

from booklib.networks import multilayer_perceptron
from experiments.walk import Walk
from sgmc.kernels import SGNUTS
from sgmc.minibatches import Fresh, Passes
from sgmc.posteriors import HeldMinibatch, NetworkPosterior
from tests.checks import z_bound
from tests.experiments.test_run import PLANS, data

TREES = replace(
    PLANS["SGD"],
    momentum_decay=0.05,
    temperature=1.0,
    trees="uniform",
    minibatches="fresh",
    start="prior",
)
FRESH_MOMENTA = replace(TREES, trees=None, resample_every=10, head_start=3)


def make(plan):
    return Walk(plan, multilayer_perceptron([6, 4, 10], "sigmoid"), data(40))


def seen_by(walk, rounds, monkeypatch):
    """Walk, and list the examples of every gradient."""
    seen, given = [], NetworkPosterior.minibatch
    monkeypatch.setattr(
        NetworkPosterior,
        "minibatch",
        lambda self, indices: seen.append(indices[0].clone()) or given(self, indices),
    )
    for _ in range(rounds):
        walk.round()
    return seen


@pytest.mark.parametrize("change", [{}, {"noise_refresh": 3}, {"num_steps": 2}])
def test_a_pass_shows_every_example_once_and_fresh_minibatches_do_not(
    change, monkeypatch
):
    plan, everything = (
        replace(PLANS["SGHMC, precisions drawn"], **change),
        torch.arange(40),
    )
    for minibatches, expected in ("passes", True), ("fresh", False):
        with monkeypatch.context() as patch:
            seen = seen_by(make(replace(plan, minibatches=minibatches)), 4, patch)
        assert len(seen) == 4 * 8 * plan.num_steps
        passes = [
            torch.cat(seen[start : start + 8]).sort().values
            for start in range(0, len(seen), 8)
        ]
        assert {torch.equal(indices, everything) for indices in passes} == {expected}
        assert not torch.equal(seen[0], seen[8])


def test_a_held_minibatch_serves_the_steps_of_a_sample_and_every_sample_has_its_own(
    monkeypatch,
):
    seen = seen_by(
        make(
            replace(PLANS["SGHMC, precisions drawn"], num_steps=3, minibatches="held")
        ),
        2,
        monkeypatch,
    )
    samples = [seen[start : start + 3] for start in range(0, len(seen), 3)]
    assert len(samples) == 16 and all(
        torch.equal(one, other) for one, *others in samples for other in others
    )
    assert len({tuple(sample[0].tolist()) for sample in samples}) == 16
    assert torch.equal(samples[5][0], Fresh().indices(40, 5, 1, 3, step=5)[0])


def test_minibatches_belong_to_the_seed(monkeypatch):
    firsts = []
    for seed in (0, 0, 1):
        with monkeypatch.context() as patch:
            firsts.append(seen_by(make(replace(PLANS["SGD"], seed=seed)), 1, patch)[0])
    assert torch.equal(firsts[0], firsts[1]) and not torch.equal(firsts[0], firsts[2])


def test_a_uniform_start_is_that_of_pyro():
    """Uniform on (−2, 2), biases too: mean 0 and mean square 4/3, by z-tests."""
    plan = replace(PLANS["SGD"], start="uniform")
    starts = torch.cat(
        [make(replace(plan, seed=seed)).state.position for seed in range(200)]
    ).double()
    assert -2 <= starts.min() < -1.99 and 1.99 < starts.max() < 2
    for values, mean, variance in (
        (starts, 0.0, 4 / 3),
        (starts**2, 4 / 3, 16 / 5 - 16 / 9),
    ):
        # first weights, and first biases
        for coordinates in (values[:, :24], values[:, 24:28]):
            z = (coordinates.mean() - mean) / (variance / coordinates.numel()) ** 0.5
            assert abs(z) < z_bound(4)


def test_an_optimiser_only_follows_the_gradient():
    """SGD by hand: θ ← θ − η∇Ũ(θ), with the prior's precision 2 as weight decay, and
    nothing else.
    """
    walk, position = make(PLANS["SGD"]), None
    position = walk.state.position.clone()
    for step in range(16):
        [indices] = Passes().indices(40, 5, 1, 0, step)
        batch = NetworkPosterior(
            multilayer_perceptron([6, 4, 10], "sigmoid"),
            *(x[indices] for x in data(40)),
        )
        position = position - 1e-3 * (
            8 * (batch.gradient(position) - position) + 2 * position
        )
    walk.round()
    walk.round()
    torch.testing.assert_close(walk.state.position, position, rtol=1e-5, atol=1e-6)


def test_momentum_without_temperature_by_hand():
    walk = make(replace(PLANS["SGD"], momentum_decay=0.1))
    position, velocity = (
        walk.state.position.clone(),
        torch.zeros_like(walk.state.position),
    )
    for step in range(8):
        [indices] = Passes().indices(40, 5, 1, 0, step)
        batch = NetworkPosterior(
            multilayer_perceptron([6, 4, 10], "sigmoid"),
            *(x[indices] for x in data(40)),
        )
        position = position + velocity
        velocity = 0.9 * velocity - 1e-3 * (
            8 * (batch.gradient(position) - position) + 2 * position
        )
    walk.round()
    torch.testing.assert_close(walk.state.position, position, rtol=1e-5, atol=1e-6)


def test_the_noise_is_looked_at_when_the_plan_says(monkeypatch):
    looks = []
    look = NetworkPosterior.gradient_and_variance_given
    walk = make(replace(PLANS["SGHMC, precisions drawn"], noise_refresh=3))
    monkeypatch.setattr(
        NetworkPosterior,
        "gradient_and_variance_given",
        lambda self, *given: looks.append(1) or look(self, *given),
    )
    walk.round()
    walk.round()
    # at the steps 0, 3, ..., 15
    assert walk.kernel.noise_estimate.refresh_every == 3 and len(looks) == 6


def test_starts():
    plan = replace(PLANS["SGD"], prior_precision=4.0)
    small, wide = make(plan), make(replace(plan, start="prior"))
    assert (
        small.posterior.parameters_of(small.state.position)["2.bias"].abs().max() == 0
    )
    positions = torch.cat(
        [
            make(replace(plan, start="prior", seed=seed)).state.position
            for seed in range(200)
        ]
    )
    # 15,600 numbers N(0, 1/4): their mean square has a relative standard error of 1.1
    # %.
    assert (
        positions.numel() == 200 * wide.posterior.dim
        and positions.square().mean() == pytest.approx(0.25, rel=0.05)
    )


def test_a_cooled_walk_takes_its_rate_anew_every_round():
    walk = make(replace(PLANS["SGHMC, precisions drawn"], cooled=0.25))
    rates = []
    for _ in range(4):
        walk.round()
        rates.append(walk.kernel.step_size**2 / walk.plan.learning_rate)
    assert walk.plan.burn_in == 2 and rates == pytest.approx([1, 0.625, 0.25, 0.25])


def test_the_prior_by_fan_in():
    walk = make(replace(PLANS["SGD"], prior_by_fan_in=True))
    assert walk.posterior.prior_precision == {
        "0.weight": 12.0,
        "0.bias": 2.0,
        "2.weight": 8.0,
        "2.bias": 2.0,
    }


def test_a_held_minibatch_serves_a_whole_tree_with_its_energies_and_every_tree_has_its_own(
    monkeypatch,
):
    walk = make(
        replace(
            TREES, trees="energy", integrator="drift_kick", minibatches="held", seed=3
        )
    )
    drawn, used = [], []
    monkeypatch.setattr(
        HeldMinibatch, "__init__", counting(HeldMinibatch.__init__, drawn)
    )
    energy, gradient = HeldMinibatch.energy, HeldMinibatch.gradient
    monkeypatch.setattr(
        HeldMinibatch,
        "energy",
        lambda self, position: used.append((self, "energy")) or energy(self, position),
    )
    monkeypatch.setattr(
        HeldMinibatch,
        "gradient",
        lambda self, position: (
            used.append((self, "gradient")) or gradient(self, position)
        ),
    )
    # no tree looks at all the data
    monkeypatch.setattr(NetworkPosterior, "energy", None)
    monkeypatch.setattr(NetworkPosterior, "gradient_given", None)
    for _ in range(5):
        walk.step()
    assert (
        len(drawn) == 5 and len({tuple(indices[0].tolist()) for indices in drawn}) == 5
    )
    assert all(
        torch.equal(indices, Fresh().indices(40, 5, 1, 3, step=tree))
        for tree, indices in enumerate(drawn)
    )
    owners = [
        next(i for i, (potential, _) in enumerate(used) if potential is each)
        for each, _ in used
    ]
    assert owners == sorted(owners)  # one tree after the other
    counts = [
        sum(what == "gradient" for _, what in used),
        sum(what == "energy" for _, what in used),
    ]
    # an energy for each state, the first one's included
    assert counts == [walk.num_gradients, walk.num_gradients + 5]


def counting(init, drawn):
    def counted(self, posterior, indices):
        drawn.append(indices)
        init(self, posterior, indices)

    return counted


def test_a_head_start_ends_with_the_tree_that_exceeds_it():
    walk, ends = make(replace(TREES, head_start=3)), []
    for _ in range(100):
        walk.step()
        ends.append((walk.num_gradients, isinstance(walk.kernel, SGNUTS)))
    trees = [number for number, tree in ends if tree]
    assert trees[-1] >= 24 > [0, *trees][-2] and len(walk.trees) == len(trees)
    rest = [number for number, tree in ends if not tree]
    assert rest == [trees[-1] + 1 + i for i in range(len(rest))]


def test_fresh_momenta_end_with_the_head_start(monkeypatch):
    """With a momentum drawn by a fixed rule, its draws can be counted: at the start,
    every ten steps, and at the change.
    """
    drawn, walk = [], None
    step = type(make(FRESH_MOMENTA).kernel).step
    draw = step.__globals__["draw_momentum"]
    monkeypatch.setitem(
        step.__globals__,
        "draw_momentum",
        lambda *given: drawn.append(walk and walk.num_gradients) or draw(*given),
    )
    walk = make(FRESH_MOMENTA)
    for _ in range(100):
        walk.step()
    assert drawn == [None, 0, 10, 20, 24]


@pytest.mark.parametrize("plan", [FRESH_MOMENTA, replace(TREES, head_start=20)])
def test_no_minibatch_comes_again_after_the_head_start(plan, monkeypatch):
    walk, steps = make(plan), []
    draw = NetworkPosterior.draw_minibatches

    def noting(self, position, generator, step, num_steps=1):
        steps.extend(range(step, step + num_steps))
        return draw(self, position, generator, step, num_steps)

    monkeypatch.setattr(NetworkPosterior, "draw_minibatches", noting)
    for _ in range(1_200):  # trees count from multiples of 1,024
        walk.step()
    assert walk.changed and len(set(steps)) == len(steps)
    assert plan.trees is None or len(walk.trees) > 1


def test_a_walk_that_changed_its_kernel_goes_on_where_it_stopped():
    for steps in (2, 60):  # before and after the change
        whole, part = (
            make(replace(TREES, head_start=3)),
            make(replace(TREES, head_start=3)),
        )
        for _ in range(steps):
            whole.step()
            part.step()
        resumed = make(replace(TREES, head_start=3))
        resumed.restore(part.content())
        for _ in range(10):
            whole.step()
            resumed.step()
        assert torch.equal(whole.state.position, resumed.state.position)
        assert (whole.trees, whole.num_gradients, type(whole.kernel)) == (
            resumed.trees,
            resumed.num_gradients,
            type(resumed.kernel),
        )
