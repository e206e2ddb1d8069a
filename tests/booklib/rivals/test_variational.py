"""Variational inference, against its exact law on Gaussian posteriors."""

import math

import pytest
import torch

from booklib.rivals import variational
from booklib.rivals.variational import bound_gradient
from sgmc.targets import Gaussian, NoisyGradient
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import z_bound

# mean 0 and covariance I, exactly
SIGNS = torch.cartesian_prod(*[torch.tensor([1.0, -1.0], dtype=torch.float64)] * 3)[
    :, None
]


def test_the_gradient_of_the_bound_is_the_exact_one_on_a_gaussian(regression):
    """∇ = A(μ − m) in μ and Aᵢᵢσᵢ − 1/σᵢ in σ: a quadratic sees no more of ε than two
    moments, which the signs have.
    """
    posterior = regression()
    mean, std = (
        torch.tensor([[0.3, -1.0, 2.0]]).double(),
        torch.tensor([[0.5, 0.1, 2.0]]).double(),
    )
    by_mean, by_std = bound_gradient(posterior, mean, std, SIGNS, None)
    torch.testing.assert_close(by_mean, (mean - posterior.mean) @ posterior.precision)
    torch.testing.assert_close(by_std, posterior.precision.diagonal() * std - 1 / std)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_the_draws_of_a_chain_share_its_minibatch(regression, generator, alpha):
    """Without spread all draws of a chain are one, and so must be their gradients;
    other chains have other minibatches.
    """
    posterior, mean = (
        regression(batch_size=5),
        torch.randn(3, 3, generator=generator).double(),
    )
    (noise,) = posterior.draw_minibatches(mean, generator, 0)
    by_mean, _ = bound_gradient(
        posterior,
        mean,
        torch.ones_like(mean),
        torch.zeros(4, 3, 3).double(),
        noise,
        alpha,
    )
    torch.testing.assert_close(by_mean, posterior.gradient_given(mean, noise))


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0, 2.0])
def test_the_gradient_is_what_differentiation_of_the_bound_gives(
    regression, generator, alpha
):
    """The bound as it is written, 1/(1 − α)·log mean((e^−Ũ/q)^(1 − α)), with the
    minibatches' energies.
    """
    posterior = regression(batch_size=5)
    mean, std = (
        torch.randn(2, 3, generator=generator).double().requires_grad_(),
        torch.rand(2, 3, generator=generator).double().requires_grad_(),
    )
    normals = torch.randn(4, 2, 3, generator=generator).double()
    (noise,) = posterior.draw_minibatches(mean, generator, 0)
    log_ratio = torch.stack(
        [
            std.log().sum(-1)
            + 0.5 * x.square().sum(-1)
            - posterior.energy_given(mean + std * x, noise)
            for x in normals
        ]
    )
    bound = (
        log_ratio.mean(0)
        if alpha == 1
        else (((1 - alpha) * log_ratio).logsumexp(0) - math.log(4)) / (1 - alpha)
    )
    expected = torch.autograd.grad(-bound.sum(), (mean, std))
    torch.testing.assert_close(
        bound_gradient(posterior, mean.detach(), std.detach(), normals, noise, alpha),
        expected,
    )


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [None, 10])
def test_fits_end_at_the_mean_with_the_inverse_diagonal_of_the_precision(
    regression, batch_size
):
    """σᵢ² = 1/Aᵢᵢ (Bishop, 2006, Section 10.1.2), with minibatches too; fits are
    independent, and so their spread is the error's.
    """
    posterior = regression(batch_size)
    draws = variational(
        posterior,
        torch.zeros(256, 3).double(),
        1,
        num_steps=1000,
        learning_rate=0.03,
        num_draws=8,
    )
    mean, std = draws.statistics["mean"][0], draws.statistics["std"][0]
    z = torch.cat(
        [
            z_of_mean(mean, posterior.mean),
            z_of_mean(std, posterior.precision.diagonal() ** -0.5),
        ]
    )
    assert z.abs().max() < z_bound(len(z)), z
    assert (std.std(0) / std.mean(0)).max() < 0.05  # so that the z-test means something
    # it is known to be too narrow
    assert (std.mean(0) < 0.97 * posterior.covariance.diagonal().sqrt()).all()


def test_draws_are_those_of_q_and_their_mean_log_ratio_is_the_bound(regression):
    """The best bound lies ½(Σ log Aᵢᵢ − log det A) below the log evidence."""
    posterior = regression()
    draws = variational(
        posterior,
        torch.zeros(100, 3).double(),
        200,
        num_steps=1000,
        learning_rate=0.03,
        num_draws=8,
    )
    normal = (draws.samples - draws.statistics["mean"]) / draws.statistics["std"]
    z = torch.cat(
        [
            z_of_mean(normal.flatten(0, 1), 0.0),
            z_of_mean(normal.flatten(0, 1).square(), 1.0),
        ]
    )
    assert z.abs().max() < z_bound(len(z)), z
    # no two draws are the same
    assert normal.flatten(0, 1).unique(dim=0).shape == (20_000, 3)
    log_density = (
        -0.5 * normal.square()
        - draws.statistics["std"].log()
        - 0.5 * math.log(2 * math.pi)
    ).sum(-1)
    torch.testing.assert_close(draws.statistics["log_density"], log_density)
    log_evidence = (
        -posterior.energy(posterior.mean[None])[0]
        + 1.5 * math.log(2 * math.pi)
        - 0.5 * posterior.precision.logdet()
    )
    best = log_evidence - 0.5 * (
        posterior.precision.diagonal().log().sum() - posterior.precision.logdet()
    )
    log_ratio = (
        -posterior.energy(draws.samples.flatten(0, 1))
        - draws.statistics["log_density"].flatten()
    )[:, None]
    assert z_of_mean(log_ratio, best).abs() < z_bound(1)
    assert log_evidence - best > 0.1


def best_of_renyi(precision, alpha):
    """Solve vᵢ = [(αV⁻¹ + (1 − α)A)⁻¹]ᵢᵢ, where Rényi's divergence of N(0, V), V
    diagonal, from N(0, A⁻¹) has slope zero.
    """
    variance = precision.diagonal() ** -1
    for _ in range(100):
        right = torch.linalg.inv(
            alpha * torch.diag(1 / variance) + (1 - alpha) * precision
        ).diagonal()
        # nearly Newton's step, for right moves with α times the variance
        variance = variance + (right - variance) / (1 - alpha)
    torch.testing.assert_close(variance, right)
    return variance


# at 0 the bound is the evidence whatever q is
@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.3])
def test_renyis_bound_is_best_where_theory_says(generator, alpha):
    """With many draws a step: the expected gradient is zero there, while the ordinary
    bound's is not.
    """
    target = Gaussian(torch.tensor([[1.0, 0.5], [0.5, 2.0]], dtype=torch.float64))
    mean = torch.zeros(200, 2).double()
    std = best_of_renyi(target.precision, alpha).sqrt().expand_as(mean)
    normals = torch.randn(4096, 200, 2, generator=generator, dtype=torch.float64)
    gradients = torch.cat(bound_gradient(target, mean, std, normals, None, alpha), -1)
    z = z_of_mean(gradients, 0.0)
    assert z.abs().max() < z_bound(4), z
    ordinary = z_of_mean(bound_gradient(target, mean, std, normals, None)[1], 0.0)
    # the smaller α, the wider q
    assert (ordinary * math.copysign(1, 1 - alpha) > 10).all()


def test_the_noise_of_a_gradient_moves_no_optimum():
    """The mean over fits is the target's own, where the gradient is seen through
    noise.
    """
    target = NoisyGradient(
        Gaussian(torch.tensor([[0.25, 0.0], [0.0, 4.0]]), torch.tensor([1.0, -1.0])),
        1.0,
    )
    draws = variational(
        target, torch.zeros(256, 2), 1, num_steps=1000, learning_rate=0.05, num_draws=4
    )
    z = torch.cat(
        [
            z_of_mean(draws.statistics["mean"][0], target.potential.mean),
            z_of_mean(draws.statistics["std"][0], torch.tensor([0.5, 2.0])),
        ]
    )
    assert z.abs().max() < z_bound(4), z
