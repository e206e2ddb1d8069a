"""Naive stochastic-gradient HMC, one step at a time."""

import math

import pytest
import torch

from sgmc.kernels import HMC, NaiveSGHMC
from tests.fakes import (
    DOUBLE,
    NOISY,
    TARGET,
    Box,
    Counting,
    generator_of,
    logistic,
)
from tests.kernels.steps import (
    MASSES,
    START,
    assert_same,
    full,
    normal,
    root,
    run,
    run_with_info,
    uniform,
)


def written_out(position, generator, step_size, num_steps, mass, first_step=0):
    """Follow a trajectory whose every point draws one stochastic gradient, and give the
    probability of accepting its end.
    """
    inverse = torch.linalg.inv(full(mass))

    def hamiltonian(position, momentum):
        return TARGET.energy(position) + 0.5 * torch.einsum(
            "ci,ij,cj->c", momentum, inverse, momentum
        )

    momentum = normal(generator) @ root(mass)
    before = hamiltonian(position, momentum)
    gradient = NOISY.stochastic_gradient(position, generator, first_step)
    for step in range(first_step + 1, first_step + num_steps + 1):
        momentum = momentum - step_size / 2 * gradient
        position = position + step_size * momentum @ inverse
        gradient = NOISY.stochastic_gradient(position, generator, step)
        momentum = momentum - step_size / 2 * gradient
    return (
        position,
        momentum,
        torch.exp(before - hamiltonian(position, momentum)).clamp(max=1),
    )


@pytest.mark.parametrize("mass", MASSES)
def test_steps_are_the_algorithm_written_out(mass):
    generator, position = generator_of(0), START
    for _ in range(3):
        position, momentum, _ = written_out(position, generator, 0.2, 4, MASSES[mass])
    no_energy, acceptance = (
        torch.full((30,), math.nan, dtype=DOUBLE),
        torch.ones(30, dtype=DOUBLE),
    )
    state, info = run_with_info(NaiveSGHMC(0.2, 4, mass=MASSES[mass]), NOISY, START, 3)
    assert_same(
        state,
        (position, momentum, no_energy, 15),
        rtol=1e-10,
        atol=1e-10,
        equal_nan=True,
    )
    assert_same(info, (acceptance, no_energy, 15), equal_nan=True)


@pytest.mark.parametrize("mass", MASSES)
def test_corrected_steps_are_the_algorithm_written_out(mass):
    generator, position, shares = generator_of(0), START, []
    for _ in range(3):
        end, momentum, acceptance = written_out(
            position, generator, 0.4, 4, MASSES[mass]
        )
        accepted = uniform(generator) < acceptance
        position = torch.where(accepted[:, None], end, position)
        shares.append(accepted.double().mean())
    assert 0 < min(shares) and max(shares) < 1
    state, info = run_with_info(
        NaiveSGHMC(0.4, 4, mass=MASSES[mass], metropolis=True), NOISY, START, 3
    )
    energy = TARGET.energy(position)
    assert_same(state, (position, momentum, energy, 15), rtol=1e-10, atol=1e-10)
    assert_same(info, (acceptance, energy, 15), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("metropolis", [False, True])
def test_with_exact_gradients_it_is_hmc_bit_for_bit(metropolis):
    """A batch of all the data is such a gradient."""
    settings = dict(step_size=0.3, num_steps=4, metropolis=metropolis)
    states = []
    for kernel, potential in (
        (HMC(**settings), logistic()),
        (NaiveSGHMC(**settings), logistic(40)),
    ):
        state, generator = (
            kernel.init(potential, START, generator_of(1)),
            generator_of(2),
        )
        states.append(kernel.step(potential, state, generator))
    (first, first_info), (second, second_info) = states
    assert torch.equal(first.position, second.position)
    if metropolis:
        assert torch.equal(
            first_info.acceptance, second_info.acceptance
        ) and torch.equal(first.energy, second.energy)


def test_the_momentum_of_one_step_is_forgotten_by_the_next():
    kernel = NaiveSGHMC(0.2, 3)
    state = kernel.init(NOISY, START, generator_of(0))
    assert torch.equal(state.momentum, torch.zeros_like(START))
    wild = state._replace(momentum=1e3 * START)
    assert torch.equal(
        *(kernel.step(NOISY, x, generator_of(1))[0].position for x in (state, wild))
    )


@pytest.mark.parametrize("outside", [math.inf, -math.inf, math.nan])
def test_an_end_without_finite_energy_is_rejected(outside):
    start = torch.zeros_like(START)
    state, info = run_with_info(
        NaiveSGHMC(100.0, 2, metropolis=True), Box(outside), start
    )
    assert (
        torch.equal(state.position, start)
        and (state.energy == 0.5).all()
        and (info.acceptance == 0).all()
    )


def test_gradients_are_counted_and_without_correction_no_energy_is_computed():
    class NoEnergy(Counting):
        def energy(self, position):
            raise AssertionError("the energy needs all the data")

    potential = NoEnergy(TARGET)
    assert (
        run(NaiveSGHMC(0.1, 6), potential, START, 3).num_gradients
        == potential.count
        == 21
    )


def test_acceptance_is_a_probability():
    _, info = run_with_info(NaiveSGHMC(0.4, 4, metropolis=True), NOISY, START, 3)
    assert ((info.acceptance >= 0) & (info.acceptance <= 1)).all()
