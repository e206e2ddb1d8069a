"""What the kernels share: the correction step, momenta, and the checks of
parameters.
"""

import math

import pytest
import torch

from sgmc.integrators import draw_momentum, kinetic_energy
from sgmc.kernels.metropolis import accept
from sgmc.matrices import Matrix
from sgmc.randomness import normal_like
from tests.checks import assert_covariance, z_bound
from tests.fakes import (
    DOUBLE,
    generator_of,
)
from tests.kernels.steps import (
    MASSES,
    START,
    full,
    normal,
    root,
)

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("energy", "proposed", "probability"),
    [
        (0.0, 1.0, math.exp(-1)),
        (1.0, 1.0, 1.0),
        (3.0, 1.0, 1.0),
        (0.0, 1e9, 0.0),
        (0.0, INF, 0.0),
        (0.0, -INF, 0.0),
        (0.0, NAN, 0.0),
        (INF, INF, 0.0),
        (NAN, 1.0, 0.0),
        (INF, 1.0, 1.0),
    ],
)
def test_probability_of_acceptance(energy, proposed, probability, generator):
    accepted, given = accept(
        torch.full((100,), energy, dtype=DOUBLE),
        torch.full((100,), proposed, dtype=DOUBLE),
        generator,
    )
    torch.testing.assert_close(given, torch.full((100,), probability, dtype=DOUBLE))
    if probability in (0.0, 1.0):
        assert (accepted == bool(probability)).all()


def test_proposals_are_accepted_with_their_probability(generator):
    """False alarms: 1 in 10,000."""
    difference = torch.tensor([-1.0, 0.1, 0.7, 2.0]).repeat_interleave(50_000)
    accepted, probability = accept(torch.zeros_like(difference), difference, generator)
    share, expected = (
        x.reshape(4, -1).double().mean(-1) for x in (accepted, probability)
    )
    assert share[0] == 1.0
    z = (share - expected)[1:] / (expected * (1 - expected) / 50_000).sqrt()[1:]
    assert z.abs().max() < z_bound(3)


@pytest.mark.parametrize("form", MASSES)
def test_momenta_and_their_energy(form, generator):
    mass = MASSES[form]
    momentum = draw_momentum(START, Matrix(mass), generator)
    torch.testing.assert_close(momentum, normal(generator_of(0)) @ root(mass))
    half_as_hot = draw_momentum(START, Matrix(mass), generator_of(0), temperature=0.5)
    torch.testing.assert_close(half_as_hot, math.sqrt(0.5) * momentum)
    energy = [0.5 * float(r @ torch.linalg.inv(full(mass)) @ r) for r in momentum]
    torch.testing.assert_close(
        kinetic_energy(momentum, Matrix(mass)), torch.tensor(energy, dtype=DOUBLE)
    )
    many = draw_momentum(torch.zeros(20_000, 2, dtype=DOUBLE), Matrix(mass), generator)
    assert_covariance(many[None], full(mass))


def test_noise_has_the_shape_and_type_of_its_model_in_memory_of_its_own():
    expanded = torch.zeros(1, 3, dtype=DOUBLE).expand(5, 3)
    noise = normal_like(expanded, generator_of(1))
    assert noise.is_contiguous() and noise.dtype == DOUBLE and len(noise.unique()) == 15
    assert torch.equal(noise, normal_like(expanded, generator_of(1)))


def test_noise_is_the_same_however_its_model_lies_in_memory():
    columns = torch.zeros(3, 5, dtype=DOUBLE).T
    assert not columns.is_contiguous()
    assert torch.equal(
        normal_like(columns, generator_of(1)),
        normal_like(torch.zeros(5, 3, dtype=DOUBLE), generator_of(1)),
    )
