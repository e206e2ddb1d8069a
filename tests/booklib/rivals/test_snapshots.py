"""Snapshot ensembles, against the closed form of a descent on a quadratic energy."""

import math

import pytest
import torch

from booklib.rivals import snapshots
from sgmc.targets import Gaussian
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import z_bound


@pytest.mark.parametrize("decay", [1.0, 0.3])
def test_on_a_quadratic_it_is_the_recursion_of_the_paper(decay):
    """θ ← θ − ηv and v ← (1 − α)v + aθ with η = ½η₀(cos(π(t mod L)/L) + 1), by hand;
    the momentum lives on between cycles.
    """
    place, speed, expected, length, curvature = 1.0, 0.0, [], 4, 2.0
    for step in range(3 * length):
        rate = 0.5 * 0.3 * (math.cos(math.pi * (step % length) / length) + 1)
        speed = (1 - decay) * speed + curvature * place
        place -= rate * speed
        if (step + 1) % length == 0:
            expected.append(place)
    target = Gaussian(torch.tensor([[1 / curvature]]).double())
    draws = snapshots(
        target,
        torch.ones(1, 1).double(),
        3,
        cycle_length=length,
        learning_rate=0.3,
        momentum_decay=decay,
    )
    torch.testing.assert_close(draws.samples[:, 0, 0], torch.tensor(expected).double())


def test_with_minibatches_snapshots_lie_about_the_mean_closer_than_the_posterior(
    regression,
):
    """Means are unbiased on a quadratic energy once the start is forgotten, and the
    spread is the noise that the last rates left.
    """
    posterior = regression(batch_size=10)
    draws = snapshots(
        posterior,
        torch.zeros(256, 3).double(),
        2,
        cycle_length=200,
        learning_rate=0.01,
        momentum_decay=1.0,
    )
    assert draws.samples.shape == (2, 256, 3) and draws.complete
    z = z_of_mean(draws.samples[1], posterior.mean)
    assert z.abs().max() < z_bound(3), z
    assert (draws.samples[1].var(0) < 0.1 * posterior.covariance.diagonal()).all()
