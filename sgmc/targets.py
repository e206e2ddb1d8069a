"""Targets with formulas: distributions whose moments are exact, and gradients with
added noise. Positions are ``(chains, dim)``, energies ``(chains,)``.
"""

import math

import torch
from torch import Generator, Tensor

from sgmc import checks
from sgmc.matrices import Matrix, addmv_, as_matrix
from sgmc.potentials import Kind, Potential
from sgmc.randomness import normal_block

_MOST = 2**14  # the coordinates of a standard normal distribution that is made here


class Gaussian(Potential):
    """The normal distribution N(μ, Σ): U(θ) = ½(θ − μ)ᵀΣ⁻¹(θ − μ).

    Args:
        covariance: Σ, a symmetric positive tensor ``(dim, dim)``; else a ValueError.
        mean: μ, a tensor ``(dim,)``; zero by default.

    Example:
        >>> Gaussian.standard(2).energy(torch.tensor([[1.0, 1.0]]))
        tensor([1.])
    """

    dim: int

    def __init__(self, covariance: Tensor, mean: Tensor | None = None):
        self.covariance = covariance
        self._matrix = as_matrix(covariance, "covariance", positive=True)
        if not self._matrix.full:
            raise ValueError(
                "covariance must be a tensor (dim, dim); for a diagonal one pass "
                "torch.diag(variances)"
            )
        self.dim = len(covariance)
        self.mean = torch.zeros_like(covariance[0]) if mean is None else mean
        checks.check_tensor("mean", self.mean, "dim")
        checks.check_dims(covariance=covariance, mean=self.mean[None])
        self.precision = self._matrix.inverse.tensor

    @classmethod
    def standard(cls, dim: int, dtype: torch.dtype = torch.float32) -> "Gaussian":
        """Make the standard normal distribution in ``dim`` dimensions."""
        checks.check_count("dim", dim)
        # The covariance is held and factorised.
        checks.check_positive("dim", dim, at_most=_MOST)
        checks.check_instance("dtype", dtype, torch.dtype, "torch.float64")
        return cls(torch.eye(dim, dtype=dtype))

    @classmethod
    def correlated(
        cls, correlation: float, dtype: torch.dtype = torch.float32
    ) -> "Gaussian":
        """Make the bivariate normal distribution with unit variances."""
        checks.check_number("correlation", correlation)
        return cls(torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=dtype))

    def energy(self, position: Tensor) -> Tensor:
        """Compute ½(θ − μ)ᵀΣ⁻¹(θ − μ)."""
        centred = position - self.mean
        return 0.5 * (centred @ self.precision.to(centred.dtype) * centred).sum(-1)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute Σ⁻¹(θ − μ)."""
        return (position - self.mean) @ self.precision

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) = ½(θ − μ)ᵀ∇U(θ) and ∇U(θ)."""
        gradient = self.gradient(position)
        return 0.5 * ((position - self.mean) * gradient).sum(-1), gradient

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, dim)``."""
        _check_draws(num_samples, generator)
        noise = normal_block(self.mean, num_samples, generator)
        return self.mean + self._matrix.root @ noise


class DoubleWell(Potential):
    """The double well of Chen et al. (2014), Figure 1, in each coordinate: U(θ) = −2θ²
    + θ⁴, with minima at ±1.

    Example:
        >>> DoubleWell().energy(torch.tensor([[0.0], [1.0]]))
        tensor([ 0., -1.])
    """

    def __init__(self, dim: int = 1):
        checks.check_count("dim", dim)
        self.dim: int = dim

    def energy(self, position: Tensor) -> Tensor:
        """Compute Σ(−2θ² + θ⁴)."""
        square = position * position
        return (square * (square - 2)).sum(-1)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute 4θ³ − 4θ."""
        return (position * position).sub_(1).mul_(position).mul_(4)


class GaussianMixture(Potential):
    """A mixture of Gaussians with equal weights and one variance: π(θ) ∝ Σₖ exp(−|θ −
    μₖ|²/2σ²).

    Without arguments, the 25 modes of Zhang et al. (2020): means on the grid {−4, −2,
    0, 2, 4}², variance 0.03.

    Args:
        means: μ, a tensor ``(modes, dim)``.
        variance: σ², one number for all modes and coordinates.

    Example:
        >>> GaussianMixture().means.shape
        torch.Size([25, 2])
    """

    def __init__(self, means: Tensor | None = None, variance: float = 0.03):
        checks.check_positive("variance", variance)
        if means is None:
            grid = torch.arange(-4.0, 5.0, 2.0)
            means = torch.cartesian_prod(grid, grid)
        checks.check_tensor("means", means, "modes", "dim")
        self.means, self.variance = means, variance
        self.dim: int = means.shape[-1]

    def energy(self, position: Tensor) -> Tensor:
        """Compute −log of the mixture's normalised density."""
        square_distance = (position[:, None] - self.means).pow(2).sum(-1)
        of_one = 0.5 * self.dim * math.log(2 * math.pi * self.variance)
        log_normaliser = math.log(len(self.means)) + of_one
        exponents = -square_distance / (2 * self.variance)
        return log_normaliser - torch.logsumexp(exponents, -1)

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, dim)``."""
        _check_draws(num_samples, generator)
        size, device = (num_samples,), self.means.device
        modes = torch.randint(len(self.means), size, generator=generator, device=device)
        noise = normal_block(self.means[0], num_samples, generator)
        return self.means[modes] + math.sqrt(self.variance) * noise


class NoisyGradient(Potential):
    """A potential whose gradient is seen through Gaussian noise: ∇Ũ(θ) = ∇U(θ) + N(0,
    V), Chen et al. (2014), eq. (6).

    Args:
        potential: the exact potential.
        noise_variance: V, a **variance** (never a standard deviation): a number, a
            tensor ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if the potential is noisy already, or the variance does not suit it.

    Example:
        >>> noisy = NoisyGradient(DoubleWell(), noise_variance=4.0)
        >>> noisy.stochastic_gradient(torch.zeros(3, 1), Generator()).shape
        torch.Size([3, 1])
    """

    def __init__(self, potential: Potential, noise_variance: float | Tensor):
        checks.check_instance("potential", potential, Potential, "DoubleWell()")
        noisy = getattr(potential, "batch_size", None) is not None
        if noisy or isinstance(potential, NoisyGradient):
            raise ValueError("potential is noisy already: give an exact one")
        self.potential, self.noise_variance = potential, noise_variance
        self.dim = potential.dim
        self.noise_root = as_matrix(noise_variance, "noise_variance").root
        if self.dim is not None:
            checks.check_dims(
                potential=torch.empty(self.dim), noise_variance=noise_variance
            )

    def energy(self, position: Tensor) -> Tensor:
        """Compute the exact energy."""
        return self.potential.energy(position)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute the exact gradient."""
        return self.potential.gradient(position)

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the exact energy and gradient."""
        return self.potential.energy_and_gradient(position)

    def draw_minibatches(
        self, position: Tensor, generator: Generator, step: int, num_steps: int = 1
    ) -> Tensor:
        """Draw ω ~ N(0, I) for every chain in so many steps: ``(num_steps, chains,
        dim)``.
        """
        return normal_block(position, num_steps, generator)

    def gradient_given(self, position: Tensor, minibatch: Tensor) -> Tensor:
        """Compute ∇U(θ) + V^½ω, both ``(chains, dim)``."""
        return addmv_(self.potential.gradient(position), self.noise_root, minibatch)

    def gradient_and_variance_given(
        self, position: Tensor, minibatch: Tensor, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Compute ∇U(θ) + V^½ω, and the exact V, in the shape of the kind."""
        full = Matrix(self.noise_variance).dense(position.shape[1]).to(position)
        variance = {
            "scalar": full.diagonal().mean(0, keepdim=True),
            "diagonal": full.diagonal(),
            "full": full,
        }[kind]
        return self.gradient_given(position, minibatch), variance.expand(
            len(position), *variance.shape
        )


def _check_draws(num_samples: int, generator: Generator) -> None:
    checks.check_count("num_samples", num_samples, at_least=0)
    example = "torch.Generator().manual_seed(0)"
    checks.check_instance("generator", generator, Generator, example)
