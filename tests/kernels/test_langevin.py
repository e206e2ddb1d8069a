"""Stochastic-gradient Langevin dynamics, one step at a time."""

import math

import pytest
import torch

from sgmc.kernels import SGHMC, SGLD
from tests.fakes import (
    NOISY,
    TARGET,
    Flat,
    generator_of,
    logistic,
)
from tests.kernels.steps import (
    DIAGONAL,
    FULL,
    MASSES,
    START,
    assert_same,
    full,
    normal,
    root,
    run,
    run_with_info,
)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize(
    "noise_estimate",
    [0.0, 0.3, 0.2 * DIAGONAL, 0.2 * FULL],
    ids=["none", "number", "diagonal", "full"],
)
@pytest.mark.parametrize("mass", {"one": 1.0} | MASSES)
def test_steps_are_the_equation_written_out(mass, noise_estimate, temperature):
    mass = MASSES.get(mass, 1.0)
    generator, position, step_size, inverse = (
        generator_of(0),
        START,
        0.1,
        torch.linalg.inv(full(mass)),
    )
    for step in range(3):
        gradient = NOISY.stochastic_gradient(position, generator, step)
        noise_root = root(
            2
            * step_size
            * (temperature * inverse - inverse @ full(noise_estimate) @ inverse)
        )
        position = (
            position - step_size * gradient @ inverse + normal(generator) @ noise_root
        )
    state, info = run_with_info(
        SGLD(step_size, temperature, noise_estimate, mass), NOISY, START, 3
    )
    assert_same(state, (position, 3), rtol=1e-10, atol=1e-10)
    assert info == (step_size, 3)


def test_zero_temperature_without_gradient_stays():
    assert torch.equal(
        run(SGLD(0.1, temperature=0.0), Flat(), START, 3).position, START
    )


def test_zero_temperature_is_stochastic_gradient_descent():
    parameter = START.clone().requires_grad_()
    optimiser = torch.optim.SGD([parameter], lr=0.02)
    for _ in range(10):
        parameter.grad = logistic().gradient(parameter.detach())
        optimiser.step()
    torch.testing.assert_close(
        run(SGLD(0.02, temperature=0.0), logistic(), START, 10).position,
        parameter.detach(),
        rtol=1e-12,
        atol=1e-12,
    )


def test_a_noise_estimate_at_the_temperature_leaves_nothing_to_inject():
    state = run(SGLD(0.1, temperature=0.5, noise_estimate=0.5), TARGET, START)
    torch.testing.assert_close(state.position, START - 0.1 * TARGET.gradient(START))


def test_the_schedule_is_asked_for_the_number_of_steps_taken():
    asked = []

    def schedule(step):
        asked.append(step)
        return 0.1 / (1 + step)

    kernel, generator, position = SGLD(schedule), generator_of(0), START
    asked.clear()  # the constructor's look at the first one
    state = kernel.init(TARGET, START, generator)
    for step_size in (0.1, 0.05, 0.1 / 3):
        before = generator_of(0)
        before.set_state(generator.get_state())
        position = (
            position
            - step_size * TARGET.gradient(position)
            + math.sqrt(2 * step_size) * normal(before)
        )
        state, info = kernel.step(TARGET, state, generator)
        torch.testing.assert_close(state.position, position)
        assert info.step_size == step_size
    assert asked == [0, 1, 2]


@pytest.mark.parametrize("make", [SGLD, lambda *a, **k: SGHMC(*a, friction=1.0, **k)])
def test_a_density_is_meant_where_the_step_stays_and_there_is_noise(make):
    """Under a schedule, or without noise, samples have none."""
    assert make(0.1, temperature=0.5).target_temperature() == 0.5
    assert make(lambda step: 0.1, temperature=0.5).target_temperature() is None
    assert make(0.1, temperature=0.0).target_temperature() is None
    assert make(lambda step: 0.1, temperature=0.0).target_temperature() is None


def test_each_step_of_a_schedule_is_checked():
    """Zero is the end of one, and less a mistake, wherever it comes."""
    kernel = SGLD(lambda step: [0.2, 0.1, 0.0, -0.1, math.nan][step])
    assert [kernel.step_size_at(step) for step in range(3)] == [0.2, 0.1, 0.0]
    for step in (3, 4):
        with pytest.raises(ValueError, match=r"step_size.*at least 0"):
            kernel.step_size_at(step)
    assert SGLD(0.3).step_size_at(10**9) == 0.3
