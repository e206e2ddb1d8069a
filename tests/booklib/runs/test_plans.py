"""Plans: the kernels that they make, how rates fall, Nesterov's momentum, and what is
refused.
"""

import math

import pytest
import torch

from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import (
    Annealed,
    Cooled,
    Falling,
    Hamiltonian,
    HeadStart,
    Langevin,
    Nesterov,
    Plan,
    Prior,
    Trees,
)
from sgmc.kernels import SGHMC, SGLD, SGNUTS
from sgmc.minibatches import Fresh, Held
from sgmc.posteriors import NetworkPosterior
from tests.booklib.runs.test_runs import data

MOMENTUM = Plan(Hamiltonian(1e-3, 0.1), rounds=8, burn_in=2)
NONE = Plan(Langevin(1e-3), rounds=8, burn_in=2)
TREES = Trees(1e-3, 0.1)


def test_kernels_are_those_of_the_plan():
    momentum = MOMENTUM.but(
        temperature=0.5, num_steps=3, resample_every=7, noise_refresh=2
    ).make_kernel()
    assert isinstance(momentum, SGHMC) and momentum.step_size**2 == pytest.approx(1e-3)
    assert momentum.friction * momentum.step_size == pytest.approx(0.1)
    assert momentum.temperature == 0.5 and momentum.num_steps == 3
    assert momentum.resample_every == 7
    estimate = momentum.noise_estimate
    assert (estimate.kind, estimate.refresh_every) == ("diagonal", 2)
    nesterov = Nesterov(1e-3, 0.1)
    assert MOMENTUM.but(kernel=nesterov).make_kernel() == nesterov
    none = NONE.but(temperature=0.0).make_kernel()
    assert isinstance(none, SGLD) and (none.step_size, none.temperature) == (1e-3, 0.0)
    kernel = Trees(1e-3, 0.1, "energy", "drift_kick")
    trees = NONE.but(kernel=kernel).make_kernel()
    assert isinstance(trees, SGNUTS) and trees.max_depth == 10
    assert (trees.weights, trees.integrator) == ("energy", "drift_kick")
    assert trees.step_size**2 == pytest.approx(1e-3)
    assert trees.friction * trees.step_size == pytest.approx(0.1)
    for first in (TREES, Hamiltonian(1e-3, 0.1, resample_every=10)):
        after, plain = HeadStart(first, 3).after(), MOMENTUM.make_kernel()
        assert repr(after) == repr(plain)
        assert repr(HeadStart(first, 3).make(1e-3)) == repr(first.make(1e-3))


def test_a_record_has_every_setting():
    """The words of the files, for each kind of object."""
    names = MOMENTUM.record().keys()
    first = Hamiltonian(1e-3, 0.1, resample_every=10)
    plans = {
        "nesterov": (NONE.but(kernel=Nesterov(1e-3, 0.1)), {"nesterov": True}),
        "trees": (
            NONE.but(kernel=Trees(1e-3, 0.1, "energy", held=True)),
            {"trees": "energy", "minibatches": "held"},
        ),
        "head start": (
            NONE.but(kernel=HeadStart(first, 3)),
            {"head_start": 3, "resample_every": 10, "trees": None},
        ),
        "annealed": (NONE.but(schedule=Annealed(8.0, 0.5)), {"annealing": (8.0, 0.5)}),
        "falling": (MOMENTUM.but(schedule=Falling()), {"falling": True}),
        "cooled": (MOMENTUM.but(schedule=Cooled(0.25)), {"cooled": 0.25}),
        "held": (
            MOMENTUM.but(num_steps=3, minibatches=Held(3, Fresh())),
            {"minibatches": "held", "num_steps": 3},
        ),
        "prior": (
            MOMENTUM.but(prior=Prior(2.0, True)),
            {"prior_precision": 2.0, "prior_by_fan_in": True},
        ),
    }
    for plan, expected in plans.values():
        record = plan.record()
        assert record.keys() == names
        assert {name: record[name] for name in expected} == expected
    assert plans["nesterov"][0].record()["temperature"] == 0


def test_a_falling_rate_is_half_a_wave_of_a_cosine():
    plan = MOMENTUM.but(temperature=0.0, schedule=Falling())
    rates = [plan.rate(done) / 1e-3 for done in range(8)]
    wave = [0.5 + 0.5 * math.cos(math.pi * done / 8) for done in range(8)]
    assert rates == pytest.approx(wave)
    assert rates[0] == 1 and 0 < rates[-1] < 0.04 and sum(rates) == pytest.approx(4.5)
    for done in (0, 5):
        kernel = plan.make_kernel(done)
        assert kernel.step_size**2 == pytest.approx(plan.rate(done))
        assert kernel.friction * kernel.step_size == pytest.approx(0.1)
    assert MOMENTUM.rate(5) == 1e-3


def test_a_cooled_rate_falls_over_the_burn_in_and_stays():
    plan = MOMENTUM.but(rounds=12, burn_in=4, schedule=Cooled(0.25))
    rates = [plan.rate(done) / 1e-3 for done in range(12)]
    wave = [0.5 + 0.5 * math.cos(math.pi * min(done, 4) / 4) for done in range(12)]
    assert rates == pytest.approx([0.25 + 0.75 * each for each in wave])
    assert rates[0] == 1 and rates[2] == pytest.approx(0.625)
    kernel = plan.make_kernel(9)
    assert kernel.step_size**2 == pytest.approx(2.5e-4)
    assert kernel.friction * kernel.step_size == pytest.approx(0.1)
    # the only round before which nothing is done
    assert plan.but(burn_in=0).rate(0) == 1e-3


def test_a_precision_that_is_drawn_starts_at_one():
    network = multilayer_perceptron([6, 4, 10])
    assert set(Prior().precisions(network).values()) == {1.0}
    assert set(Prior(3.0).precisions(network).values()) == {3.0}


@pytest.mark.parametrize("m", [1, 3, 5])
def test_finer_steps_keep_the_friction_and_the_length_of_a_sample(m):
    coarse, fine = MOMENTUM.make_kernel(), MOMENTUM.finer(m).make_kernel()
    assert fine.step_size * m == pytest.approx(coarse.step_size) and fine.num_steps == m
    assert fine.friction == pytest.approx(coarse.friction)


def test_a_variance_used_as_a_scale_is_a_temperature():
    kernel = MOMENTUM.variance_as_scale().make_kernel()
    # of v = εr
    injected = 2 * kernel.temperature * kernel.friction * kernel.step_size**3
    assert injected == pytest.approx((2 * 0.1 * 1e-3) ** 2)


def posterior():
    """A small network in double precision, which sees fresh minibatches."""
    train = data(40)
    network = multilayer_perceptron([6, 4, 10], "sigmoid").double()
    return NetworkPosterior(
        network, train.inputs.double(), train.targets, 0.5, 5, Fresh()
    )


def walk(kernel, potential, position, steps):
    generator = torch.Generator().manual_seed(0)
    state = kernel.init(potential, position, generator)
    for _ in range(steps):
        state, info = kernel.step(potential, state, generator)
    assert info.num_gradients == state.num_gradients == steps
    return state.position


def test_the_steps_of_nesterov_are_those_of_torch():
    potential, generator = posterior(), torch.Generator().manual_seed(0)
    start = potential.initial_position(1, torch.Generator().manual_seed(1)).double()
    position = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([position], lr=1e-3, momentum=0.9, nesterov=True)
    for step in range(20):
        position.grad = potential.stochastic_gradient(
            position.detach(), generator, step
        )
        optimiser.step()
    mine = walk(Nesterov(1e-3, 0.1), potential, start, 20)
    assert torch.allclose(mine, position.detach(), rtol=1e-10, atol=1e-12)
    assert (mine - start).norm() > 1e-3
