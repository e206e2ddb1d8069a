"""Plans: what they make, and what they refuse."""

import math
from dataclasses import replace

import pytest

from experiments.nesterov import Nesterov
from experiments.plan import Plan
from sgmc.kernels import SGHMC, SGLD, SGNUTS

MOMENTUM = Plan(1e-3, 0.1, rounds=8, burn_in=2)
NONE = Plan(1e-3, rounds=8, burn_in=2)


@pytest.mark.parametrize(
    ("plan", "change", "message"),
    [
        (
            MOMENTUM,
            {"minibatches": "pass"},
            "minibatches must be one of passes, fresh, held, but it is 'pass'",
        ),
        (
            MOMENTUM,
            {"start": "zero"},
            "start must be one of fan-in, prior, uniform, but it is 'zero'",
        ),
        (
            MOMENTUM,
            {"burn_in": 8},
            "burn_in must be at least 0 and less than rounds, 8, but it is 8",
        ),
        (
            MOMENTUM,
            {"burn_in": -1},
            "burn_in must be at least 0 and less than rounds, 8, but it is -1",
        ),
        (
            MOMENTUM,
            {"keep_every": 0},
            "keep_every and record_every must be at least 1, but they are 0 and 10",
        ),
        (MOMENTUM, {"num_steps": 0}, "num_steps must be a whole number of at least 1"),
        (MOMENTUM, {"falling": True}, "falling is for optimisers"),
        (
            MOMENTUM,
            {"cooled": 0.0},
            "cooled must be a share of the learning rate, above 0 and at most 1, but "
            "it is 0.0",
        ),
        (MOMENTUM, {"cooled": 0.5, "temperature": 0.0}, "cooled is for SGHMC"),
        (NONE, {"cooled": 0.5}, "cooled is for SGHMC"),
        (replace(MOMENTUM, trees="uniform"), {"cooled": 0.5}, "cooled is for SGHMC"),
        (
            MOMENTUM,
            {"annealing": (10.0, 0.5)},
            "annealing is for methods without momentum",
        ),
        (
            MOMENTUM,
            {"minibatches": "held"},
            "minibatches are held for a whole sample: give trees",
        ),
        (
            MOMENTUM,
            {"head_start": 3},
            "head_start is the number of rounds with trees or with fresh momenta",
        ),
        (NONE, {"noise_refresh": 1}, "noise_refresh is for methods with momentum"),
        (NONE, {"resample_every": 1}, "resample_every is for methods with momentum"),
        (NONE, {"trees": "uniform"}, "trees is for methods with momentum"),
        (NONE, {"nesterov": True}, "nesterov is for methods with momentum"),
        (
            MOMENTUM,
            {"nesterov": True},
            "nesterov is for optimisers: give the temperature 0, one step a sample",
        ),
        (
            MOMENTUM,
            {"nesterov": True, "temperature": 0.0, "num_steps": 2},
            "nesterov is for optimisers",
        ),
        (
            MOMENTUM,
            {"nesterov": True, "temperature": 0.0, "resample_every": 2},
            "nesterov is for optimisers",
        ),
        (
            MOMENTUM,
            {"average_every": (1, 0)},
            r"average_every must hold numbers of at least 1, but it is \(1, 0\)",
        ),
        (NONE, {"num_steps": 3}, "num_steps is for methods with momentum"),
        (
            replace(MOMENTUM, trees="uniform"),
            {"temperature": 0.0},
            "temperature is for methods without trees",
        ),
        (
            replace(MOMENTUM, trees="uniform"),
            {"noise_refresh": 1},
            "noise_refresh is for methods without trees",
        ),
    ],
)
def test_plans_that_make_no_sense_are_refused(plan, change, message):
    with pytest.raises(ValueError, match=message):
        replace(plan, **change)


def test_kernels_are_those_of_the_plan():
    momentum = replace(
        MOMENTUM, temperature=0.5, num_steps=3, resample_every=7, noise_refresh=2
    ).kernel()
    assert isinstance(momentum, SGHMC) and momentum.step_size**2 == pytest.approx(1e-3)
    assert momentum.friction * momentum.step_size == pytest.approx(0.1)
    assert (momentum.temperature, momentum.num_steps, momentum.resample_every) == (
        0.5,
        3,
        7,
    )
    assert (momentum.noise_estimate.kind, momentum.noise_estimate.refresh_every) == (
        "diagonal",
        2,
    )
    assert replace(MOMENTUM, temperature=0.0, nesterov=True).kernel() == Nesterov(
        1e-3, 0.1
    )
    none = replace(NONE, temperature=0.0).kernel()
    assert isinstance(none, SGLD) and (none.step_size, none.temperature) == (1e-3, 0.0)
    trees = replace(MOMENTUM, trees="energy", integrator="drift_kick").kernel()
    assert isinstance(trees, SGNUTS) and (
        trees.weights,
        trees.integrator,
        trees.max_depth,
    ) == ("energy", "drift_kick", 10)
    assert trees.step_size**2 == pytest.approx(
        1e-3
    ) and trees.friction * trees.step_size == pytest.approx(0.1)
    after = replace(MOMENTUM, trees="uniform", head_start=3).after_head_start()
    assert after == MOMENTUM


def test_a_falling_rate_is_half_a_wave_of_a_cosine():
    plan = replace(MOMENTUM, temperature=0.0, falling=True)
    rates = [plan.rate(done) / plan.learning_rate for done in range(8)]
    assert rates == pytest.approx(
        [0.5 + 0.5 * math.cos(math.pi * done / 8) for done in range(8)]
    )
    assert rates[0] == 1 and 0 < rates[-1] < 0.04 and sum(rates) == pytest.approx(4.5)
    for done in (0, 5):
        kernel = plan.kernel(done)
        assert kernel.step_size**2 == pytest.approx(
            plan.rate(done)
        ) and kernel.friction * kernel.step_size == pytest.approx(0.1)
    assert MOMENTUM.rate(5) == MOMENTUM.learning_rate


def test_a_cooled_rate_falls_over_the_burn_in_and_stays():
    plan = replace(MOMENTUM, rounds=12, burn_in=4, cooled=0.25)
    rates = [plan.rate(done) / plan.learning_rate for done in range(12)]
    assert rates == pytest.approx(
        [
            0.25 + 0.75 * (0.5 + 0.5 * math.cos(math.pi * min(done, 4) / 4))
            for done in range(12)
        ]
    )
    assert (
        rates[0] == 1
        and rates[2] == pytest.approx(0.625)
        and rates[4:] == pytest.approx([0.25] * 8)
    )
    kernel = plan.kernel(9)
    assert kernel.step_size**2 == pytest.approx(
        plan.learning_rate / 4
    ) and kernel.friction * kernel.step_size == pytest.approx(0.1)
    # the only round before which nothing is done
    assert replace(plan, burn_in=0).rate(0) == plan.learning_rate


@pytest.mark.parametrize(
    ("before", "after"), [("held", "fresh"), ("fresh", "fresh"), ("passes", "passes")]
)
def test_minibatches_are_held_for_trees_alone(before, after):
    assert (
        replace(MOMENTUM, trees="uniform", head_start=3, minibatches=before)
        .after_head_start()
        .minibatches
        == after
    )


def test_a_name_changes_nothing():
    for method in (
        "SGNUTS, our reading",
        "SGD",
        "all layers, optimised",
        "fresh momenta, then SGHMC",
        "small start",
    ):
        named = replace(MOMENTUM, method=method)
        assert (
            type(named.kernel()) is SGHMC
            and named.kernel().temperature == 1
            and replace(named, method="") == MOMENTUM
        )


@pytest.mark.parametrize("m", [1, 3, 5])
def test_finer_steps_keep_the_friction_and_the_length_of_a_sample(m):
    coarse, fine = MOMENTUM.kernel(), MOMENTUM.finer(m).kernel()
    assert fine.step_size * m == pytest.approx(coarse.step_size) and fine.num_steps == m
    assert fine.friction == pytest.approx(coarse.friction)
