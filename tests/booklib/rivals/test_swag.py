"""SWAG, given the iterates and, with stochastic gradient descent on a Gaussian, in
closed form.
"""

import torch

from booklib.rivals import swag
from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import SGLD
from sgmc.splittings import langevin_chain
from sgmc.targets import Gaussian, NoisyGradient
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import assert_covariance, z_bound


def test_the_law_given_the_iterates_is_the_formula(generator):
    """Two chains, each with its own mean and ½ diag S + DᵀD/2(K − 1), D being of the
    last K iterates.
    """
    iterates = torch.randn(12, 2, 3, generator=generator).double().cumsum(0)
    draws = swag(Draws(iterates), 20_000, rank=4)
    for chain in range(2):
        mean = iterates[:, chain].mean(0)
        deviations = iterates[-4:, chain] - mean
        variances = (iterates[:, chain] - mean).square().mean(0)
        expected = 0.5 * torch.diag(variances) + deviations.mT @ deviations / 6
        centred = draws.samples[:, chain] - mean
        assert_covariance(centred[None], expected)
        assert z_of_mean(centred, 0.0).abs().max() < z_bound(3)
        torch.testing.assert_close(draws.statistics["mean"][0, chain], mean)
        torch.testing.assert_close(
            draws.statistics["std"][-1, chain].square(), variances
        )
    both = (draws.samples - iterates.mean(0))[:, 0] * (
        draws.samples - iterates.mean(0)
    )[:, 1]
    assert z_of_mean(both, 0.0).abs().max() < z_bound(3)  # chains are independent


def test_on_a_gaussian_it_is_half_of_the_law_of_gradient_descent():
    """With K = T: C + ½ diag(Σ − C) + ½T/(T − 1)·(Σ − C), where Σ solves the iterates'
    Lyapunov equation and C is the covariance of θ̄.

    C is the mean over s and t of the covariance of iterates s and t, F^(s − t)Σ for s ≥
    t."""
    precision = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64)
    noise = torch.tensor([[9.0, 5.0], [5.0, 6.0]], dtype=torch.float64)
    step_size, thinning, length = 0.2, 5, 30
    chain = langevin_chain(precision, step_size, noise, temperature=0.0)
    covariance, transition = (
        chain.stationary_covariance(),
        torch.linalg.matrix_power(chain.transition, thinning),
    )
    of_mean = length * covariance
    power = transition
    for lag in range(1, length):
        of_mean = of_mean + (length - lag) * (
            power @ covariance + covariance @ power.mT
        )
        power = power @ transition
    of_mean = of_mean / length**2
    within = covariance - of_mean
    expected = (
        of_mean
        + 0.5 * torch.diag(within.diagonal())
        + 0.5 * length / (length - 1) * within
    )
    target = NoisyGradient(Gaussian(torch.linalg.inv(precision)), noise)
    settings = dict(num_samples=length, thinning=thinning, warm_up=100)
    iterates = sample(
        SGLD(step_size, temperature=0.0),
        target,
        torch.zeros(2000, 2).double(),
        **settings,
    )
    assert_covariance(swag(iterates, 20, rank=length).samples, expected)
    # far from the target itself
    assert (expected - target.potential.covariance).abs().max() > 0.2
