"""Snapshot ensembles, against the closed form of a descent on a quadratic energy."""

import math

import pytest
import torch

from booklib.rivals import snapshots
from sgmc.door.sampling import DivergenceError
from sgmc.targets import DoubleWell, Gaussian
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


def test_a_divergence_is_told():
    with pytest.raises(DivergenceError, match=r"\blearning_rate\b"):
        snapshots(
            DoubleWell(), torch.ones(1, 1) + 0.5, 2, cycle_length=40, learning_rate=1e3
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cycle_length": 0}, r"cycle_length.*\b0\b"),
        ({"num_samples": 0}, r"num_samples.*\b0\b"),
        ({"learning_rate": 0.0}, r"learning_rate.*\b0\b"),
        ({"momentum_decay": 0.0}, r"momentum_decay.*\b0\b"),
        (
            {"momentum_decay": 1.5},
            r"momentum_decay.*at most 1.*\b1\.5\b",
        ),
        ({"potential": "well"}, r"potential.*well"),
        ({"checkpoint": 3}, r"checkpoint.*\b3\b"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_bad_input_is_refused(change, message):
    arguments = {
        "potential": DoubleWell(),
        "position": torch.zeros(1, 1),
        "num_samples": 1,
        "cycle_length": 5,
        "learning_rate": 0.1,
    }
    with pytest.raises(ValueError, match=message):
        snapshots(**(arguments | change))
