"""Potentials: gradients against automatic differentiation, densities against known values, noise with the variance asked for."""

import math

import pytest
import torch

from sgmc.potentials import Banana, DoubleWell, Funnel, Gaussian, GaussianMixture, NoisyGradient, Potential
from tests.conftest import assert_covariance

POTENTIALS = {
    "gaussian": Gaussian(torch.tensor([[2.0, 0.4], [0.4, 1.0]], dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)),
    "double well": DoubleWell(2),
    "banana": Banana(),
    "mixture": GaussianMixture(variance=0.5),
    "funnel": Funnel(2),
}


@pytest.mark.parametrize("name", POTENTIALS)
def test_gradient_is_that_of_the_energy(name, generator):
    potential = POTENTIALS[name]
    position = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(potential.gradient(position), Potential.gradient(potential, position))
    width, numeric = 1e-6, []
    for axis in torch.eye(2, dtype=torch.float64):
        numeric.append((potential.energy(position + width * axis) - potential.energy(position - width * axis)) / (2 * width))
    torch.testing.assert_close(potential.gradient(position), torch.stack(numeric, -1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", POTENTIALS)
def test_energy_and_gradient_together_are_those_apart(name, generator):
    position = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    for potential in (POTENTIALS[name], NoisyGradient(POTENTIALS[name], 1.0)):
        energy, gradient = potential.energy_and_gradient(position)
        torch.testing.assert_close(energy, potential.energy(position))
        torch.testing.assert_close(gradient, potential.gradient(position))


@pytest.mark.parametrize("name", POTENTIALS)
def test_chains_do_not_interact_and_dtype_is_kept(name, generator):
    potential = POTENTIALS[name]
    position = torch.randn(6, 2, generator=generator)
    if name == "gaussian":
        position = position.double()  # its covariance is
    together = potential.gradient(position)
    assert together.dtype == position.dtype and together.shape == (6, 2) and potential.energy(position).shape == (6,)
    apart = torch.cat([potential.gradient(position[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(together, apart)


def test_gaussian_energy_is_minus_its_log_density():
    potential = POTENTIALS["gaussian"]
    position = torch.tensor([[0.3, 0.2], [1.0, -1.0]], dtype=torch.float64)
    density = torch.distributions.MultivariateNormal(potential.mean, potential.covariance).log_prob(position)
    torch.testing.assert_close(potential.energy(position) - potential.energy(position)[1], -(density - density[1]))


def test_mixture_is_normalised():
    grid = torch.linspace(-8, 8, 801, dtype=torch.float64)
    energy = GaussianMixture().energy(torch.cartesian_prod(grid, grid))
    assert float(torch.exp(-energy).sum() * 0.02**2) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "variance", [4.0, torch.tensor([1.0, 9.0]), torch.tensor([[4.0, 1.0], [1.0, 2.0]])], ids=["scalar", "diagonal", "full"]
)
def test_noise_has_the_variance_asked_for(variance, generator):
    noisy = NoisyGradient(Gaussian.standard(2), variance)
    position = torch.zeros(20_000, 2)
    noise = noisy.stochastic_gradient(position, generator)[None]
    full = variance * torch.eye(2) if isinstance(variance, float) else torch.diag(variance) if variance.ndim == 1 else variance
    assert_covariance(noise, full.double())
    assert torch.equal(noisy.gradient(position), position) and torch.equal(noisy.energy(position), torch.zeros(20_000))


def test_the_noise_of_one_generator_is_the_same_again():
    noisy, position = NoisyGradient(DoubleWell(), 4.0), torch.ones(3, 1)
    first, second = (noisy.stochastic_gradient(position, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(torch.tensor([[1.0, 2.0], [2.0, 1.0]])), "covariance must be positive"),
        (lambda: Gaussian(torch.ones(2)), r"covariance must be a tensor \(dim, dim\)"),
        (lambda: Gaussian(torch.eye(2), torch.zeros(3)), r"mean has shape \(3,\)"),
        (lambda: Banana(variance=-1.0), "variance must be positive, but it is -1"),
        (lambda: GaussianMixture(variance=0.0), "variance must be positive"),
        (lambda: Funnel(1), "dim must be at least 2"),
        (lambda: NoisyGradient(DoubleWell(), -4.0), "noise_variance must be non-negative"),
        (lambda: NoisyGradient(DoubleWell(), math.nan), "noise_variance has entries that are not finite"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
