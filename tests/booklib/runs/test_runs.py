"""The runs of the experiments: what a kill and a resume change (nothing), what averages
in a stream, and what is refused.
"""

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs import run as run_module
from booklib.runs.held import HeldMinibatch
from booklib.runs.plans import (
    Annealed,
    Cooled,
    Hamiltonian,
    HeadStart,
    Langevin,
    Nesterov,
    Plan,
    Prior,
    Trees,
)
from booklib.runs.results import ExperimentError, score
from booklib.runs.run import KIND, Chain, DivergedError, Run, read_run
from sgmc.kernels import SGNUTS
from sgmc.minibatches import Fresh, Held, Passes
from sgmc.posteriors import NetworkPosterior
from tests.checks import z_bound
from tests.core.test_checkpoints import written

SIZE = {"rounds": 8, "burn_in": 2, "batch_size": 5, "keep_every": 2, "record_every": 3}
PLANS = {
    "SGHMC, precisions drawn": Plan(
        Hamiltonian(1e-3, 0.1), seed=3, method="SGHMC", **SIZE
    ),
    "SGD": Plan(Langevin(1e-3, 0.0), Prior(2.0), method="SGD", **SIZE),
    "Nesterov": Plan(
        Nesterov(1e-3, 0.1),
        Prior(2.0),
        average_every=(3, 1, 9),
        method="Nesterov",
        **SIZE,
    ),
}


def data(examples, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Data(
        torch.rand(examples, 6, generator=generator),
        torch.randint(10, (examples,), generator=generator),
    )


def make(plan, path=None, train=None, activation="sigmoid", examples=None, **more):
    return Run(
        plan,
        multilayer_perceptron([6, 4, 10], activation),
        train or data(40),
        examples or data(30, 1),
        "cpu",
        path,
        **more,
    )


def contents(run):
    """Everything that a run comes to, but its times."""
    result = run.result()
    del result["seconds"], result["processor_seconds"]
    result["curve"] = {
        name: values for name, values in result["curve"].items() if name != "seconds"
    }
    tensors = [value for value in run.chain.state if isinstance(value, torch.Tensor)]
    return (
        result,
        run.average,
        run.last,
        *run.reservoir,
        *tensors,
        run.chain.generator.get_state(),
    )


def assert_same(one, other):
    assert one[0] == other[0]
    assert all(torch.equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("name", PLANS)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(
    name, tmp_path, monkeypatch
):
    path, whole = tmp_path / "run.pt", make(PLANS[name])
    whole.go(progress=False)
    # killed twice, in the middle of rounds 2 and 4, each of eight steps
    for after in (12, 31):
        run = make(PLANS[name], path)
        run.checkpoint.every = 0.0
        step, left = (
            type(run.chain.kernel).step,
            [after - 8 * (read_run(path)["done"] if path.exists() else 0)],
        )

        def dying(self, *arguments, step=step, left=left):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return step(self, *arguments)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(type(run.chain.kernel), "step", dying)
            run.go(progress=False)
    assert read_run(path)["done"] == 3
    resumed = make(PLANS[name], path)
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    first = make(PLANS["SGD"], tmp_path / "run.pt").go(progress=False)
    assert first["made"].keys() == {"date", "versions", "machine", "matmul_precision"}
    monkeypatch.setattr(Run, "advance", None)
    # what a result says of its making is not about the resume
    monkeypatch.setattr(run_module, "circumstances", None)
    assert make(PLANS["SGD"], tmp_path / "run.pt").go(progress=False) == first


def storing_predictions(run, monkeypatch):
    """Store the positions after each round, and the logarithms predicted there."""
    stored, predict = [], run.chain.posterior.log_predict

    def storing(position, inputs):
        stored.append((position[0].clone(), predict(position, inputs)))
        return stored[-1][1]

    monkeypatch.setattr(run.chain.posterior, "log_predict", storing)
    return stored


def test_streaming_averages_are_those_of_the_stored_predictions(monkeypatch):
    run = make(PLANS["SGHMC, precisions drawn"])
    stored = storing_predictions(run, monkeypatch)
    result = run.go(progress=False)
    kept = torch.cat([logarithms for _, logarithms in stored[2:]]).double().exp()
    torch.testing.assert_close(run.average, kept.mean(0), rtol=1e-14, atol=0)
    assert result["networks_averaged"] == 6 and result["gradient_evaluations"] == 64
    assert len(run.reservoir) == 3 and all(
        torch.equal(run.reservoir[i], stored[3 + 2 * i][0]) for i in range(3)
    )
    assert result["curve"]["round"] == [3, 6, 8]
    for use, probabilities in {"last": kept[-1], "average": kept.mean(0)}.items():
        assert result["curve"][use][-1] == run.scores(probabilities) and result[
            use
        ] == score(probabilities, run.targets)
    assert result["last"] != result["average"]


def test_the_prior_changes_once_a_round_and_only_where_it_is_drawn():
    seen = []
    for name in ("SGHMC, precisions drawn", "SGD"):
        run = make(PLANS[name])
        run.go(progress=False)
        seen.append(run.curve["precisions"])
    assert len({tuple(values) for values in seen[0]}) == 3
    assert seen[1] == [[2.0] * 4] * 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"plan": {"learning_rate": 2e-3}},
            r"run\.pt.*learning_rate was 0\.001 and is 0\.002.*delete",
        ),
        # other labels
        ({"train": Data(data(40).inputs, 9 - data(40).targets)}, "checksum was"),
        ({"activation": "relu"}, "network was"),
    ],
)
def test_a_resume_with_other_settings_is_refused(changed, message, tmp_path):
    path = tmp_path / "run.pt"
    make(PLANS["SGD"], path).go(progress=False)
    before = path.read_bytes()
    plan = PLANS["SGD"].but(**changed.pop("plan", {}))
    with pytest.raises(ExperimentError, match=message):
        make(plan, path, **changed).go(progress=False)
    assert path.read_bytes() == before


def test_further_averages_are_of_every_so_many_networks():
    """After two rounds of burn-in: six networks in a row, and every third; of every
    ninth there is none.
    """
    seen, plan = (
        [],
        PLANS["SGD"].but(average_every=(3, 1, 9), schedule=Annealed(5.0, 0.5)),
    )
    run = make(plan, watch=lambda run: seen.append(run.last.clone()))
    by_number = run.go(progress=False)["by_number"]
    # of the last of the eight steps of a round
    weights = [(1 + (8 * done - 1) / 5) ** -0.5 for done in range(1, 9)]
    for row, rounds in zip(by_number, ([5, 8], [3, 4, 5, 6, 7, 8]), strict=True):
        total = sum(weights[done - 1] for done in rounds)
        average = sum(weights[done - 1] * seen[done - 1] for done in rounds) / total
        assert row == pytest.approx([len(rounds), *run.scores(average)], abs=2e-6)
    assert by_number[-1][1:] == run.scores(run.average) and "by_number" not in make(
        PLANS["SGD"]
    ).go(progress=False)


def test_a_run_that_is_older_than_a_setting_had_its_default(tmp_path):
    path = tmp_path / "run.pt"
    whole = make(PLANS["SGD"], path).go(progress=False)
    content = read_run(path)
    del (
        content["settings"]["nesterov"],
        content["settings"]["average_every"],
        content["thinned"],
    )
    written(path, KIND, content)
    assert make(PLANS["SGD"], path).go(progress=False) == whole
    with pytest.raises(
        ExperimentError,
        match=r"other settings \(average_every was None and is \(2,\)\)",
    ):
        make(PLANS["SGD"].but(average_every=(2,)), path).go(progress=False)


def test_a_learning_rate_that_diverges_is_named_at_once():
    rounds = []
    with pytest.raises(
        DivergedError,
        match=r"SGD.*round 1.*learning rate",
    ):
        make(PLANS["SGD"].but(learning_rate=1e30), watch=rounds.append).go(
            progress=False
        )
    assert not rounds


def test_a_surprised_network_has_the_log_score_of_its_logits(monkeypatch):
    """The probability of e⁻²⁰⁰ is 0 in float32, and the logarithm of that is no
    score.
    """
    run = make(PLANS["SGD"])
    surely = torch.full((1, 30, 10), -200.0)
    surely[0, range(30), (run.targets + 1) % 10] = 0.0
    monkeypatch.setattr(
        run.chain.posterior, "log_predict", lambda position, inputs: surely
    )
    run.advance()
    assert run.scores(run.last)[1] == 200.0


def test_a_round_by_hand():
    """Eight steps of SGHMC on the minibatches of a pass, then a draw of the precisions
    from the position after them.
    """
    plan, train = PLANS["SGHMC, precisions drawn"], data(40)
    run, generator = make(plan), torch.Generator().manual_seed(3)
    posterior, step_size, friction = run.chain.posterior, 1e-3**0.5, 0.1 / 1e-3**0.5
    position = posterior.initial_position(1, generator)
    momentum = torch.randn(position.shape, generator=generator)
    torch.testing.assert_close(run.chain.state.momentum, momentum, rtol=0, atol=0)
    for round in range(3):
        for step in range(8 * round, 8 * round + 8):
            [indices] = Passes().indices(40, 5, 1, 3, step)
            batch = NetworkPosterior(
                multilayer_perceptron([6, 4, 10], "sigmoid"),
                *(x[indices] for x in train),
            )
            position = position + step_size * momentum
            prior = torch.cat(
                [
                    float(posterior.prior_precision[name]) * w
                    for name, w in posterior.parameters_of(position).items()
                ],
                -1,
            )
            # that of the batch has the prior N(0, 1)
            gradient = 8 * (batch.gradient(position) - position) + prior
            noise = torch.randn(position.shape, generator=generator)
            momentum = (
                momentum
                - step_size * friction * momentum
                - step_size * gradient
                + (2 * friction * step_size) ** 0.5 * noise
            )
        posterior = posterior.given(posterior.draw_hyperparameters(position, generator))
        run.advance()
        torch.testing.assert_close(
            run.chain.state.position, position, rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(
            run.chain.state.momentum, momentum, rtol=1e-4, atol=1e-5
        )
        # from here on both are the same once more
        position, momentum = run.chain.state.position, run.chain.state.momentum
        drawn = [
            run.chain.posterior.prior_precision[name]
            for name in posterior.prior_precision
        ]
        torch.testing.assert_close(
            torch.cat(drawn),
            torch.cat(list(posterior.prior_precision.values())),
            rtol=1e-4,
            atol=1e-6,
        )


TREES = PLANS["SGD"].but(kernel=Trees(1e-3, 0.05), minibatches=Fresh(), start="prior")
FRESH_MOMENTA = TREES.but(
    kernel=HeadStart(Hamiltonian(1e-3, 0.05, resample_every=10), 3)
)


def hybrid(rounds):
    return TREES.but(kernel=HeadStart(TREES.kernel, rounds))


def chain_of(plan):
    return Chain(plan, multilayer_perceptron([6, 4, 10], "sigmoid"), data(40))


def seen_by(chain, rounds, monkeypatch):
    """Walk, and list the examples of every gradient."""
    seen, given = [], NetworkPosterior.gather
    monkeypatch.setattr(
        NetworkPosterior,
        "gather",
        lambda self, indices: seen.append(indices[0].clone()) or given(self, indices),
    )
    for _ in range(rounds):
        chain.round()
    return seen


@pytest.mark.parametrize("change", [{}, {"noise_refresh": 3}, {"num_steps": 2}])
def test_a_pass_shows_every_example_once_and_fresh_minibatches_do_not(
    change, monkeypatch
):
    plan, everything = (
        PLANS["SGHMC, precisions drawn"].but(**change),
        torch.arange(40),
    )
    for minibatches, expected in (Passes(), True), (Fresh(), False):
        with monkeypatch.context() as patch:
            seen = seen_by(chain_of(plan.but(minibatches=minibatches)), 4, patch)
        assert len(seen) == 4 * 8 * plan.kernel.num_steps
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
        chain_of(
            PLANS["SGHMC, precisions drawn"].but(
                num_steps=3, minibatches=Held(3, Fresh())
            )
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


def test_a_uniform_start_is_that_of_pyro():
    """Uniform on (−2, 2), biases too: mean 0 and mean square 4/3, by z-tests."""
    plan = PLANS["SGD"].but(start="uniform")
    starts = torch.cat(
        [chain_of(plan.but(seed=seed)).state.position for seed in range(200)]
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
    chain, position = chain_of(PLANS["SGD"]), None
    position = chain.state.position.clone()
    for step in range(16):
        [indices] = Passes().indices(40, 5, 1, 0, step)
        batch = NetworkPosterior(
            multilayer_perceptron([6, 4, 10], "sigmoid"),
            *(x[indices] for x in data(40)),
        )
        position = position - 1e-3 * (
            8 * (batch.gradient(position) - position) + 2 * position
        )
    chain.round()
    chain.round()
    torch.testing.assert_close(chain.state.position, position, rtol=1e-5, atol=1e-6)


def test_starts():
    plan = PLANS["SGD"].but(prior=Prior(4.0))
    small, wide = chain_of(plan), chain_of(plan.but(start="prior"))
    assert (
        small.posterior.parameters_of(small.state.position)["2.bias"].abs().max() == 0
    )
    positions = torch.cat(
        [
            chain_of(plan.but(start="prior", seed=seed)).state.position
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
    chain = chain_of(PLANS["SGHMC, precisions drawn"].but(schedule=Cooled(0.25)))
    rates = []
    for _ in range(4):
        chain.round()
        rates.append(chain.kernel.step_size**2 / chain.plan.kernel.learning_rate)
    assert chain.plan.burn_in == 2 and rates == pytest.approx([1, 0.625, 0.25, 0.25])


def test_the_prior_by_fan_in():
    chain = chain_of(PLANS["SGD"].but(prior=Prior(2.0, True)))
    assert chain.posterior.prior_precision == {
        "0.weight": 12.0,
        "0.bias": 2.0,
        "2.weight": 8.0,
        "2.bias": 2.0,
    }


def test_a_held_minibatch_serves_a_whole_tree_with_its_energies_and_every_tree_has_its_own(
    monkeypatch,
):
    chain = chain_of(
        TREES.but(kernel=Trees(1e-3, 0.05, "energy", "drift_kick", True), seed=3)
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
        chain.step()
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
    assert counts == [chain.num_gradients, chain.num_gradients + 5]


def counting(init, drawn):
    def counted(self, posterior, indices):
        drawn.append(indices)
        init(self, posterior, indices)

    return counted


def test_a_head_start_ends_with_the_tree_that_exceeds_it():
    chain, ends = chain_of(hybrid(3)), []
    for _ in range(100):
        chain.step()
        ends.append((chain.num_gradients, isinstance(chain.kernel, SGNUTS)))
    trees = [number for number, tree in ends if tree]
    assert trees[-1] >= 24 > [0, *trees][-2] and len(chain.trees) == len(trees)
    rest = [number for number, tree in ends if not tree]
    assert rest == [trees[-1] + 1 + i for i in range(len(rest))]


def test_fresh_momenta_end_with_the_head_start(monkeypatch):
    """With a momentum drawn by a fixed rule, its draws can be counted: at the start,
    every ten steps, and at the change.
    """
    drawn, chain = [], None
    step = type(chain_of(FRESH_MOMENTA).kernel).step
    draw = step.__globals__["draw_momentum"]
    monkeypatch.setitem(
        step.__globals__,
        "draw_momentum",
        lambda *given: drawn.append(chain and chain.num_gradients) or draw(*given),
    )
    chain = chain_of(FRESH_MOMENTA)
    for _ in range(100):
        chain.step()
    assert drawn == [None, 0, 10, 20, 24]


@pytest.mark.parametrize("plan", [FRESH_MOMENTA, hybrid(20)])
def test_no_minibatch_comes_again_after_the_head_start(plan, monkeypatch):
    chain, steps = chain_of(plan), []
    draw = NetworkPosterior.draw_minibatches

    def noting(self, position, generator, step, num_steps=1):
        steps.extend(range(step, step + num_steps))
        return draw(self, position, generator, step, num_steps)

    monkeypatch.setattr(NetworkPosterior, "draw_minibatches", noting)
    for _ in range(1_200):  # trees count from multiples of 1,024
        chain.step()
    assert chain.changed and len(set(steps)) == len(steps)
    assert plan is FRESH_MOMENTA or len(chain.trees) > 1
