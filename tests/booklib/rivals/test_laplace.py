"""Laplace's approximation: exact on Gaussians, and the right Gaussian elsewhere."""

import math

import pytest
import torch

from booklib.rivals import ensemble, laplace
from sgmc.posteriors import LogisticRegression
from sgmc.potentials import Potential
from sgmc.targets import DoubleWell, Gaussian
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import assert_covariance, z_bound


def test_on_a_gaussian_posterior_it_is_the_posterior(regression):
    """The covariance by z-tests; and −U(θ) − log q(θ) is the log evidence at every
    draw, which no other law has.
    """
    posterior = regression()
    draws = laplace(posterior, posterior.mean.repeat(200, 1), 50)
    centred = draws.samples - posterior.mean
    assert_covariance(centred, posterior.covariance)
    assert z_of_mean(centred.flatten(0, 1), 0.0).abs().max() < z_bound(3)
    log_evidence = (
        -posterior.energy(posterior.mean[None])[0]
        + 1.5 * math.log(2 * math.pi)
        - 0.5 * posterior.precision.logdet()
    )
    log_ratio = (
        -posterior.energy(draws.samples.flatten(0, 1))
        - draws.statistics["log_density"].flatten()
    )
    torch.testing.assert_close(log_ratio, log_evidence.expand_as(log_ratio))


def test_every_chain_has_the_curvature_of_its_own_mode():
    """The second derivative of −2θ² + θ⁴ is 8 at the well on the left; on the right
    stands a parabola with 100.
    """

    class Wells(DoubleWell):
        def energy(self, position):
            return torch.where(
                position[:, 0] < 0,
                super().energy(position),
                50 * (position[:, 0] - 1) ** 2,
            )

        gradient = Potential.gradient  # by differentiation

    draws = laplace(Wells(), torch.tensor([[-1.0], [1.0]]), 10_000)
    centred = draws.samples[..., 0] - torch.tensor([-1.0, 1.0])
    z = torch.cat(
        [
            z_of_mean(centred, 0.0),
            z_of_mean(centred.square(), torch.tensor([1 / 8, 1 / 100])),
        ]
    )
    assert z.abs().max() < z_bound(4), z


def test_some_coordinates_are_drawn_given_the_others(regression):
    """On a Gaussian it is the conditional law: covariance (A restricted)⁻¹, and the
    others stay.
    """
    posterior, chosen = regression(), torch.tensor([2, 0])
    draws = laplace(posterior, posterior.mean.repeat(200, 1), 50, coordinates=chosen)
    assert (draws.samples[..., 1] == posterior.mean[1]).all()
    law = torch.distributions.MultivariateNormal(
        posterior.mean[chosen], precision_matrix=posterior.precision[chosen][:, chosen]
    )
    assert_covariance(draws.samples[..., chosen] - law.mean, law.covariance_matrix)
    torch.testing.assert_close(
        draws.statistics["log_density"], law.log_prob(draws.samples[..., chosen])
    )


def test_the_hessian_of_logistic_regression_is_the_formula(generator):
    """H = Σσᵢ(1 − σᵢ)xᵢxᵢᵀ + I/τ² (Bishop, 2006, eq. 4.143), seen through log q."""
    inputs = torch.randn(50, 2, generator=generator).double()
    posterior = LogisticRegression(
        inputs, (inputs[:, 0] > 0).double(), prior_variance=4.0
    )
    mode = ensemble(
        posterior, torch.eye(2).double(), num_steps=2000, learning_rate=0.05
    ).samples[0, :1]
    share = (inputs @ mode[0]).sigmoid()
    hessian = inputs.mT @ ((share * (1 - share))[:, None] * inputs) + torch.eye(2) / 4
    draws = laplace(posterior, mode, 5)
    centred = draws.samples[:, 0] - mode[0]
    expected = (
        -0.5 * (centred @ hessian * centred).sum(-1)
        + 0.5 * hessian.logdet()
        - math.log(2 * math.pi)
    )
    torch.testing.assert_close(draws.statistics["log_density"][:, 0], expected)


@pytest.mark.parametrize(
    ("potential", "position", "message"),
    [
        (DoubleWell(), torch.tensor([[1.0], [0.0]]), r"position.*\b1\b.*-4\b"),
        (
            Gaussian.standard(2),
            torch.tensor([[0.0, 0.0], [3.0, 0.0]]),
            r"position.*\b1\b.*2\.12",
        ),
        (DoubleWell(30_000), torch.ones(1, 30_000), r"30,000.*6\.7 GiB.*4 GiB"),
    ],
    ids=["no minimum", "a slope", "memory"],
)
def test_what_is_no_mode_or_too_large_is_refused(potential, position, message):
    with pytest.raises(ValueError, match=message):
        laplace(potential, position, 3)
