"""Hamiltonian Monte Carlo, one step at a time."""

import math

import pytest
import torch

from sgmc.kernels import HMC
from tests.fakes import (
    TARGET,
    Box,
    Counting,
    Flat,
    generator_of,
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


def written_out(
    position,
    momentum,
    generator,
    step_size,
    num_steps,
    mass=1.0,
    refreshment=1.0,
    metropolis=True,
):
    """Move every chain as Neal (2011) writes it, with two half kicks in every leapfrog
    step.
    """
    inverse = torch.linalg.inv(full(mass))

    def hamiltonian(position, momentum):
        return TARGET.energy(position) + 0.5 * torch.einsum(
            "ci,ij,cj->c", momentum, inverse, momentum
        )

    start = math.sqrt(1 - refreshment**2) * momentum + refreshment * normal(
        generator
    ) @ root(mass)
    end, momentum = position, start
    for _ in range(num_steps):
        momentum = momentum - step_size / 2 * TARGET.gradient(end)
        end = end + step_size * momentum @ inverse
        momentum = momentum - step_size / 2 * TARGET.gradient(end)
    acceptance = torch.exp(
        hamiltonian(position, start) - hamiltonian(end, momentum)
    ).clamp(max=1)
    accepted = uniform(generator) < acceptance
    if not metropolis:
        accepted[:] = True
    position = torch.where(accepted[:, None], end, position)
    return (
        position,
        torch.where(accepted[:, None], momentum, -start),
        TARGET.energy(position),
        acceptance,
        accepted,
    )


@pytest.mark.parametrize("refreshment", [1.0, 0.6])
@pytest.mark.parametrize("mass", MASSES)
def test_steps_are_the_algorithm_written_out(mass, refreshment):
    settings = dict(
        step_size=0.9, num_steps=3, mass=MASSES[mass], refreshment=refreshment
    )
    generator, shares = generator_of(0), []
    position, momentum = START, normal(generator) @ root(settings["mass"])
    for _ in range(4):
        position, momentum, energy, acceptance, accepted = written_out(
            position, momentum, generator, **settings
        )
        shares.append(accepted.double().mean())
    assert 0 < min(shares) and max(shares) < 1  # both branches are seen
    state, info = run_with_info(HMC(**settings), TARGET, START, 4)
    assert_same(state, (position, momentum, energy, 4 * 4), rtol=1e-10, atol=1e-10)
    assert_same(info, (acceptance, energy, 4 * 4), rtol=1e-10, atol=1e-10)


def test_without_correction_every_end_is_taken():
    settings = dict(step_size=0.9, num_steps=3, metropolis=False)
    generator = generator_of(0)
    position, momentum, energy, acceptance, _ = written_out(
        START, normal(generator), generator, **settings
    )
    state, info = run_with_info(HMC(**settings), TARGET, START)
    assert_same(state, (position, momentum, energy, 4), rtol=1e-10, atol=1e-10)
    assert_same(info, (acceptance, energy, 4), rtol=1e-10, atol=1e-10)


def test_the_state_keeps_the_energy_of_its_position():
    state, info = run_with_info(HMC(0.9, 3), TARGET, START, 10)
    assert torch.equal(state.energy, TARGET.energy(state.position)) and torch.equal(
        info.energy, state.energy
    )
    assert ((info.acceptance >= 0) & (info.acceptance <= 1)).all()


@pytest.mark.parametrize("mass", MASSES)
def test_on_a_flat_potential_a_trajectory_is_a_straight_line_at_the_end_of_which_all_is_accepted(
    mass,
):
    state, info = run_with_info(HMC(0.3, 5, mass=MASSES[mass]), Flat(), START)
    torch.testing.assert_close(
        state.position,
        START + 1.5 * state.momentum @ torch.linalg.inv(full(MASSES[mass])),
    )
    assert (info.acceptance == 1).all()


@pytest.mark.parametrize("mass", MASSES)
def test_partial_refreshment_keeps_a_share_of_the_momentum(mass):
    generator = generator_of(0)
    before, fresh = (normal(generator) @ root(MASSES[mass]) for _ in range(2))
    state = run(HMC(0.1, 1, mass=MASSES[mass], refreshment=0.28), Flat(), START)
    torch.testing.assert_close(state.momentum, 0.96 * before + 0.28 * fresh)


@pytest.mark.parametrize("outside", [math.inf, -math.inf, math.nan])
def test_an_end_without_finite_energy_is_rejected_and_the_chain_turns_round(outside):
    kernel, start, generator = (
        HMC(100.0, 2, refreshment=0.5),
        torch.zeros_like(START),
        generator_of(0),
    )
    before, fresh = normal(generator), normal(generator)
    state, info = run_with_info(kernel, Box(outside), start)
    assert (
        torch.equal(state.position, start)
        and (state.energy == 0.5).all()
        and (info.acceptance == 0).all()
    )
    assert (info.energy == 0.5).all()
    torch.testing.assert_close(
        state.momentum, -(math.sqrt(0.75) * before + 0.5 * fresh)
    )


@pytest.mark.parametrize(
    ("num_steps", "jitter", "expected"),
    [(8, 0.5, (4, 12)), (10, 0.7, (3, 17)), (100, 0.29, (71, 129)), (3, 0.2, (3, 3))],
)
def test_jitter_draws_every_number_of_steps_in_its_range(num_steps, jitter, expected):
    """Every number of the range is missing from 2,000 draws with probability
    59·(58/59)^2000 < 1e-12 at most.
    """
    kernel, generator = HMC(1e-3, num_steps, jitter=jitter), generator_of(0)
    drawn = {kernel.draw_num_steps(generator) for _ in range(2_000)}
    assert drawn == set(range(expected[0], expected[1] + 1))


def test_a_jittered_trajectory_has_the_number_of_steps_drawn():
    counts, potential = [], Counting(Flat())
    kernel, generator = HMC(0.1, 4, jitter=0.5), generator_of(0)
    state = kernel.init(potential, START, generator)
    for _ in range(10):
        position = state.position
        state, _ = kernel.step(potential, state, generator)
        counts.append(
            round(float(((state.position - position) / (0.1 * state.momentum)).mean()))
        )
    assert (
        len(set(counts)) > 1
        and state.num_gradients == potential.count == sum(counts) + 10
    )


def test_the_start():
    state = HMC(0.1, 2, mass=MASSES["full"]).init(TARGET, START, generator_of(3))
    expected = (
        START,
        normal(generator_of(3)) @ root(MASSES["full"]),
        TARGET.energy(START),
        0,
    )
    assert_same(state, expected, rtol=1e-12, atol=1e-12)
    assert state.position is not START
