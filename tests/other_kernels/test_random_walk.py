"""Random-walk Metropolis, one step at a time."""

import math

import pytest
import torch

from sgmc.other_kernels import RandomWalkMetropolis
from tests.fakes import (
    TARGET,
    Box,
    Flat,
    generator_of,
)
from tests.kernels.steps import (
    START,
    assert_same,
    normal,
    run_with_info,
    uniform,
)


def test_a_step_is_the_algorithm_written_out():
    generator = generator_of(0)
    proposal = START + 1.5 * normal(generator)
    difference = TARGET.energy(START) - TARGET.energy(proposal)
    accepted = uniform(generator) < torch.exp(difference)
    assert 0 < accepted.sum() < len(accepted)
    position = torch.where(accepted[:, None], proposal, START)
    energy, acceptance = TARGET.energy(position), torch.exp(difference).clamp(max=1)
    state, info = run_with_info(RandomWalkMetropolis(1.5), TARGET, START)
    assert_same(state, (position, energy), rtol=1e-12, atol=1e-12)
    assert_same(info, (acceptance, energy), rtol=1e-12, atol=1e-12)


def test_the_state_keeps_the_energy_of_its_position():
    state, info = run_with_info(RandomWalkMetropolis(1.5), TARGET, START, 20)
    assert torch.equal(state.energy, TARGET.energy(state.position)) and torch.equal(
        info.energy, state.energy
    )
    assert ((info.acceptance >= 0) & (info.acceptance <= 1)).all()


def test_on_a_flat_potential_every_proposal_is_taken():
    state, info = run_with_info(RandomWalkMetropolis(0.3), Flat(), START)
    torch.testing.assert_close(state.position, START + 0.3 * normal(generator_of(0)))
    assert (info.acceptance == 1).all()


@pytest.mark.parametrize("outside", [math.inf, -math.inf, math.nan])
def test_a_proposal_without_finite_energy_is_rejected(outside):
    start = torch.zeros_like(START)
    state, info = run_with_info(RandomWalkMetropolis(100.0), Box(outside), start)
    assert (
        torch.equal(state.position, start)
        and (info.acceptance == 0).all()
        and (state.energy == 0.5).all()
    )
    assert (info.energy == 0.5).all()
