"""Stochastic-gradient Hamiltonian Monte Carlo, one step at a time."""

import itertools
import math

import pytest
import torch

from sgmc.kernels import HMC, SGHMC, NaiveSGHMC
from tests.kernels.conftest import (
    DIAGONAL,
    DOUBLE,
    FULL,
    NOISY,
    START,
    TARGET,
    Counting,
    Flat,
    assert_chains_do_not_interact,
    assert_same,
    forms,
    full,
    generator_of,
    logistic,
    normal,
    root,
    run,
)

FRICTION = torch.tensor([[2.0, -0.5], [-0.5, 3.0]], dtype=DOUBLE)  # does not commute with the mass
CASES = {
    "numbers": dict(friction=2.0, noise_estimate=0.2, mass=1.7),
    "diagonals": dict(friction=2 * DIAGONAL, noise_estimate=0.2 * DIAGONAL, mass=DIAGONAL),
    "full": dict(friction=FRICTION, noise_estimate=0.2 * FULL, mass=FULL),
    "full friction, diagonal mass": dict(friction=FRICTION, noise_estimate=0.2, mass=DIAGONAL),
    "diagonal friction, full mass": dict(friction=2 * DIAGONAL, noise_estimate=0.2 * FULL, mass=FULL),
    "half temperature": dict(friction=FRICTION, noise_estimate=0.2 * DIAGONAL, mass=FULL, temperature=0.5),
    "no temperature": dict(friction=FRICTION, mass=FULL, temperature=0.0),
    "no estimate": dict(friction=2.0),
}


@pytest.mark.parametrize("case", CASES)
def test_steps_are_the_algorithm_written_out(case):
    step_size, settings = 0.1, {"noise_estimate": 0.0, "mass": 1.0, "temperature": 1.0} | CASES[case]
    temperature, friction, estimate = settings["temperature"], full(settings["friction"]), full(settings["noise_estimate"])
    inverse, generator = torch.linalg.inv(full(settings["mass"])), generator_of(0)
    position, momentum = START, math.sqrt(temperature) * normal(generator) @ root(settings["mass"])
    for _ in range(6):
        position = position + step_size * momentum @ inverse
        gradient = NOISY.stochastic_gradient(position, generator)
        momentum = momentum - step_size * momentum @ inverse @ friction - step_size * gradient
        if temperature > 0:
            momentum = momentum + normal(generator) @ root(2 * (temperature * friction - estimate) * step_size)
    state = run(SGHMC(step_size, num_steps=2, **settings), NOISY, START, 3)
    assert_same(state, (position, momentum, 6), rtol=1e-10, atol=1e-10)


def test_one_matrix_in_three_forms_makes_the_same_steps():
    states = []
    for friction, estimate, mass in itertools.product(forms(2.0).values(), forms(0.3).values(), forms(0.7).values()):
        states.append(run(SGHMC(0.1, friction, estimate, mass), NOISY, START, 3))
    assert len(states) == 27
    for state in states[1:]:
        assert_same(state, states[0], rtol=1e-10, atol=1e-10)


def test_several_steps_between_draws_are_as_many_draws_of_one_step():
    assert_same(run(SGHMC(0.1, 2.0, num_steps=5), NOISY, START, 2), run(SGHMC(0.1, 2.0), NOISY, START, 10))


def test_zero_temperature_without_gradient_stays_at_rest():
    state = run(SGHMC(0.1, 2.0, temperature=0.0), Flat(), START, 3)
    assert torch.equal(state.position, START) and torch.equal(state.momentum, torch.zeros_like(START))


@pytest.mark.parametrize("momentum_decay", [0.1, 0.6])
def test_zero_temperature_is_stochastic_gradient_descent_with_momentum(momentum_decay):
    """PyTorch accumulates b ← μb + ∇U(θ) and then moves, θ ← θ − ηb.

    With v = −ηb and μ = 1 − α that is v ← (1 − α)v − η∇U(θ), θ ← θ + v, the very updates of SGHMC, of which it does the position's
    last and SGHMC first. From rest SGHMC's first move goes nowhere, so that its k + 1 steps end where k of PyTorch's do.
    """
    learning_rate, number = 0.01, 12
    parameter = START.clone().requires_grad_()
    optimiser = torch.optim.SGD([parameter], lr=learning_rate, momentum=1 - momentum_decay)
    for _ in range(number):
        parameter.grad = logistic().gradient(parameter.detach())
        optimiser.step()
    kernel = SGHMC.from_learning_rate(learning_rate, momentum_decay, temperature=0.0)
    state = run(kernel, logistic(), START, number)
    buffer = optimiser.state[parameter]["momentum_buffer"]
    torch.testing.assert_close(kernel.step_size * state.momentum, -learning_rate * buffer, rtol=1e-11, atol=1e-12)
    state = kernel.step(logistic(), state, generator_of(0))
    torch.testing.assert_close(state.position, parameter.detach(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("estimate", [0.0, 0.02, 0.02 * DIAGONAL, 0.02 * FULL], ids=["none", "number", "diagonal", "full"])
@pytest.mark.parametrize("momentum_decay", [0.1, 0.1 * DIAGONAL, 0.1 * FRICTION], ids=["number", "diagonal", "full"])
def test_learning_rate_form_written_out(momentum_decay, estimate):
    """Chen et al. (2014), eq. 15: v ← (1 − α)v − η∇Ũ(θ) + N(0, 2(α − β̂)η)."""
    learning_rate, generator = 0.04, generator_of(0)
    position, velocity = START, math.sqrt(learning_rate) * normal(generator)
    noise_root = root(2 * (full(momentum_decay) - full(estimate)) * learning_rate)
    for _ in range(5):
        position = position + velocity
        gradient = NOISY.stochastic_gradient(position, generator)
        velocity = velocity - velocity @ full(momentum_decay) - learning_rate * gradient + normal(generator) @ noise_root
    state = run(SGHMC.from_learning_rate(learning_rate, momentum_decay, estimate, num_steps=5), NOISY, START)
    assert_same(state, (position, velocity / math.sqrt(learning_rate), 5), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("estimate", [0.2, 0.2 * DIAGONAL, 0.2 * FULL], ids=["number", "diagonal", "full"])
def test_both_forms_make_the_same_steps(estimate):
    """η = ε²M⁻¹, α = εM⁻¹C and β̂ = εM⁻¹B̂ with M = 1."""
    step_size, friction, settings = 0.3, 2.0, dict(num_steps=2, resample_every=3, temperature=0.9)
    first = SGHMC(step_size, friction, estimate, **settings)
    second = SGHMC.from_learning_rate(step_size**2, step_size * friction, step_size * estimate, **settings)
    assert_same(run(first, NOISY, START, 5), run(second, NOISY, START, 5), rtol=1e-10, atol=1e-10)


def test_friction_at_the_noise_estimate_leaves_nothing_to_inject():
    kernel = SGHMC(0.1, 0.5 * FULL, 0.5 * FULL)
    state = kernel.init(TARGET, START, generator_of(0))
    momentum = state.momentum.clone()
    state = kernel.step(TARGET, state, generator_of(1))
    position = START + 0.1 * momentum
    torch.testing.assert_close(state.momentum, momentum - 0.1 * momentum @ (0.5 * FULL) - 0.1 * TARGET.gradient(position))


def test_a_batch_of_all_the_data_is_the_exact_gradient_bit_for_bit():
    kernel = SGHMC(0.1, 2.0, num_steps=2)
    assert_same(run(kernel, logistic(40), START, 5), run(kernel, logistic(), START, 5))


def test_every_step_and_every_chain_draws_its_own_minibatch():
    """Level 5: three times thirty gradients at one place, no two of them equal."""
    seen = []

    class Watched(type(logistic())):
        def stochastic_gradient(self, position, generator):
            seen.append(super().stochastic_gradient(torch.zeros_like(position), generator))
            return seen[-1]

    data = logistic().data
    run(SGHMC(0.1, 2.0, num_steps=3), Watched(*data, batch_size=5), START)
    assert len(torch.cat(seen).unique(dim=0)) == 3 * len(START)


def test_gradients_are_counted():
    potential = Counting(TARGET)
    assert run(SGHMC(0.1, 2.0, num_steps=3), potential, START, 4).num_gradients == potential.count == 12


@pytest.mark.parametrize(("resample_every", "fresh"), [(None, []), (1, [0, 1, 2, 3, 4, 5, 6]), (3, [0, 3, 6])])
def test_momentum_is_drawn_afresh_before_every_so_many_calls(resample_every, fresh):
    """Without forces, friction and noise nothing else changes it."""
    kernel = SGHMC(0.1, 0.0, mass=FULL, num_steps=2, resample_every=resample_every, temperature=0.25)
    generator, expected = generator_of(0), generator_of(0)
    state = kernel.init(Flat(), START, generator)
    momentum = 0.5 * normal(expected) @ root(FULL)
    for call in range(7):
        torch.testing.assert_close(state.momentum, momentum)
        state = kernel.step(Flat(), state, generator)
        if call in fresh:
            momentum = 0.5 * normal(expected) @ root(FULL)
        torch.testing.assert_close(state.momentum, momentum)
        normal(expected), normal(expected)  # those of the noise, here times zero


def test_chains_do_not_interact():
    assert_chains_do_not_interact(SGHMC(0.1, 2.0), logistic(7))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"friction": torch.ones(2), "noise_estimate": torch.zeros(3)},
            "coordinates do not agree: friction has 2, noise_estimate has 3",
        ),
        ({"temperature": torch.ones(2)}, "temperature must be a number of at least 0"),
        ({"step_size": 0}, "step_size must be a positive number, but it is 0"),
        ({"step_size": math.nan}, "step_size must be a positive number, but it is nan"),
        ({"step_size": math.inf}, "step_size must be a positive number, but it is inf"),
        ({"num_steps": 0}, "num_steps must be a whole number of at least 1, but it is 0"),
        ({"num_steps": 2.5}, "num_steps must be a whole number of at least 1, but it is 2.5"),
        ({"resample_every": 0}, "resample_every must be a whole number of at least 1, but it is 0"),
        ({"friction": -1.0}, "friction must be non-negative, but its smallest value or eigenvalue is -1"),
        (
            {"friction": torch.tensor([[3.0, 1.0], [0.0, 3.0]])},
            r"friction is a matrix that is not symmetric; pass \(friction \+ friction.T\)",
        ),
        ({"friction": torch.ones(2, 3)}, r"friction has shape \(2, 3\); give a number, a tensor \(dim,\) or a tensor \(dim, dim\)"),
        ({"friction": math.nan}, "friction has entries that are not finite: nan"),
        ({"noise_estimate": -0.1}, "noise_estimate must be non-negative, but its smallest value or eigenvalue is -0.1"),
        ({"mass": 0.0}, "mass must be positive, but its smallest value or eigenvalue is 0"),
        ({"mass": torch.tensor([1.0, 0.0])}, "mass must be positive, but its smallest value or eigenvalue is 0"),
        ({"temperature": -1.0}, "temperature must be a number of at least 0, but it is -1"),
        (
            {"noise_estimate": 2.5},
            r"friction must be at least the noise_estimate \(in every direction, and times the temperature 1.0\): "
            r".* is -0.5. Raise the friction, take a smaller step_size or a larger batch",
        ),
        ({"noise_estimate": torch.tensor([1.0, 2.25])}, "friction must be at least the noise_estimate .* is -0.25"),
        ({"noise_estimate": torch.tensor([[1.5, 1.0], [1.0, 1.5]])}, "friction must be at least the noise_estimate .* is -0.5"),
        ({"noise_estimate": 1.5, "temperature": 0.5}, "times the temperature 0.5.* is -0.5"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SGHMC(**({"step_size": 0.1, "friction": 2.0} | change))


@pytest.mark.parametrize(
    "kernel", [HMC(0.1, 2, mass=torch.ones(3)), NaiveSGHMC(0.1, 2, mass=torch.eye(3)), SGHMC(0.1, torch.ones(3))], ids=str
)
def test_numbers_of_coordinates_that_do_not_agree_are_named(kernel, generator):
    with pytest.raises(ValueError, match=r"do not agree: position has 2, (mass|friction) has 3"):
        kernel.init(TARGET, torch.zeros(1, 2), generator)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be a positive number, but it is 0.0"),
        ({"learning_rate": -0.01}, "learning_rate must be a positive number, but it is -0.01"),
        ({"momentum_decay": -0.1}, "momentum_decay must be non-negative, but its smallest value or eigenvalue is -0.1"),
        ({"noise_estimate": -0.1}, "noise_estimate must be non-negative"),
        ({"noise_estimate": 0.2}, "friction must be at least the noise_estimate"),
        ({"num_steps": 0}, "num_steps must be a whole number of at least 1, but it is 0"),
    ],
)
def test_bad_parameters_of_the_learning_rate_form_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SGHMC.from_learning_rate(**({"learning_rate": 0.01, "momentum_decay": 0.1} | change))
