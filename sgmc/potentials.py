"""What to sample: a potential energy U, so that the target density is proportional to exp(−U)."""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from sgmc.matrices import Matrix, add_product_, as_matrix, square_root, sum_of
from sgmc.noise import Kind, no_noise


def differentiate(energy: Callable[[Tensor], Tensor], position: Tensor) -> tuple[Tensor, Tensor]:
    """Compute energies ``(chains,)`` and their gradients ``(chains, dim)`` by automatic differentiation.

    Example:
        >>> differentiate(lambda position: position.pow(2).sum(-1), torch.tensor([[3.0]]))
        (tensor([9.]), tensor([[6.]]))
    """
    with torch.enable_grad():
        position = position.detach().requires_grad_()
        value = energy(position)
        # The chains do not interact, so one backward pass through the sum gives each chain its own gradient.
        return value.detach(), torch.autograd.grad(value.sum(), position)[0]


class Potential:
    """An energy U(θ) and its gradients; the target density is π(θ) ∝ exp(−U(θ)).

    A subclass writes ``energy``. It may write ``gradient`` where a formula is faster than automatic differentiation, and
    ``stochastic_gradient`` where the gradient is only seen through noise. All of them take positions ``(chains, dim)``.

    Example:
        >>> class Quartic(Potential):
        ...     dim = 1
        ...     def energy(self, position):
        ...         return position.pow(4).sum(-1)
        >>> Quartic().gradient(torch.tensor([[1.0], [2.0]]))
        tensor([[ 4.],
                [32.]])
    """

    dim: int | None = None  # None: not known before a position is given

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ) for every chain: ``(chains, dim)`` → ``(chains,)``."""
        raise NotImplementedError

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U(θ) for every chain, by automatic differentiation: ``(chains, dim)`` → ``(chains, dim)``."""
        return differentiate(self.energy, position)[1]

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ), ``(chains,)`` and ``(chains, dim)``, together: a subclass may write it where the two share work."""
        if type(self).gradient is Potential.gradient:
            return differentiate(self.energy, position)
        return self.energy(position), self.gradient(position)

    def stochastic_gradient(self, position: Tensor, generator: Generator) -> Tensor:
        """Draw an unbiased estimate ∇Ũ(θ) for every chain; without noise or minibatches it is the exact gradient."""
        return self.gradient(position)

    def gradient_and_noise_variance(self, position: Tensor, generator: Generator, kind: Kind) -> tuple[Tensor, Tensor]:
        """Draw ∇Ũ(θ) as ``stochastic_gradient`` does, and with it an estimate of its variance V(θ), for every chain.

        Args:
            position: ``(chains, dim)``.
            generator: the source of randomness.
            kind: ``"scalar"``, the mean variance of a coordinate; ``"diagonal"``, every coordinate's; ``"full"``, the covariance.

        Returns:
            The stochastic gradient ``(chains, dim)``, and V̂ as ``(chains, 1)``, ``(chains, dim)`` or ``(chains, dim, dim)``.

        Raises:
            NotImplementedError: if the potential draws noisy gradients but does not know their variance.
        """
        if type(self).stochastic_gradient is not Potential.stochastic_gradient:
            raise NotImplementedError(f"{type(self).__name__} does not know its gradient noise: write its gradient_and_noise_variance")
        return self.gradient(position), no_noise(position, kind)


class Gaussian(Potential):
    """The normal distribution N(μ, Σ): U(θ) = ½(θ − μ)ᵀΣ⁻¹(θ − μ).

    Args:
        covariance: Σ, a symmetric positive tensor ``(dim, dim)``.
        mean: μ, a tensor ``(dim,)``; zero by default.

    Raises:
        ValueError: if the covariance is not a symmetric positive matrix, or the mean's shape does not match.

    Example:
        >>> Gaussian.standard(2).energy(torch.tensor([[1.0, 1.0]]))
        tensor([1.])
    """

    def __init__(self, covariance: Tensor, mean: Tensor | None = None):
        self.covariance = as_matrix(torch.as_tensor(covariance), "covariance", positive=True)
        if not isinstance(self.covariance, Tensor) or self.covariance.ndim != 2:
            raise ValueError("covariance must be a tensor (dim, dim); for a diagonal one pass torch.diag(variances)")
        self.dim = len(self.covariance)
        self.mean = torch.zeros(self.dim, dtype=covariance.dtype, device=covariance.device) if mean is None else mean
        if self.mean.shape != (self.dim,):
            raise ValueError(f"mean has shape {tuple(self.mean.shape)}, but the covariance needs ({self.dim},)")
        self.precision = torch.linalg.inv(self.covariance)

    @classmethod
    def standard(cls, dim: int, dtype: torch.dtype = torch.float32) -> "Gaussian":
        """Make the standard normal distribution in ``dim`` dimensions."""
        return cls(torch.eye(dim, dtype=dtype))

    @classmethod
    def correlated(cls, correlation: float, dtype: torch.dtype = torch.float32) -> "Gaussian":
        """Make the bivariate normal distribution with unit variances and the given correlation."""
        return cls(torch.tensor([[1.0, correlation], [correlation, 1.0]], dtype=dtype))

    def energy(self, position: Tensor) -> Tensor:
        """Compute ½(θ − μ)ᵀΣ⁻¹(θ − μ): ``(chains, dim)`` → ``(chains,)``."""
        centred = position - self.mean
        return 0.5 * (centred @ self.precision.to(centred.dtype) * centred).sum(-1)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute Σ⁻¹(θ − μ): ``(chains, dim)`` → ``(chains, dim)``."""
        return (position - self.mean) @ self.precision

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) = ½(θ − μ)ᵀ∇U(θ) and ∇U(θ)."""
        gradient = self.gradient(position)
        return 0.5 * ((position - self.mean) * gradient).sum(-1), gradient

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, dim)``."""
        noise = torch.randn(num_samples, self.dim, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        return self.mean + noise @ square_root(self.covariance)


class DoubleWell(Potential):
    """The double well of Chen et al. (2014), Figure 1, in each coordinate: U(θ) = −2θ² + θ⁴, with minima at ±1.

    Example:
        >>> DoubleWell().energy(torch.tensor([[0.0], [1.0]]))
        tensor([ 0., -1.])
    """

    def __init__(self, dim: int = 1):
        self.dim = dim

    def energy(self, position: Tensor) -> Tensor:
        """Compute Σ(−2θ² + θ⁴): ``(chains, dim)`` → ``(chains,)``."""
        square = position * position
        return (square * (square - 2)).sum(-1)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute 4θ³ − 4θ: ``(chains, dim)`` → ``(chains, dim)``."""
        return (position * position).sub_(1).mul_(position).mul_(4)


class Banana(Potential):
    """A bent Gaussian (Haario, Saksman and Tamminen, 1999): θ₁ ~ N(0, σ²), θ₂ | θ₁ ~ N(b(θ₁² − σ²), 1).

    Args:
        variance: σ², the variance of the first coordinate.
        bend: b, the curvature of the ridge.

    Example:
        >>> Banana(variance=4.0, bend=0.5).energy(torch.tensor([[2.0, 0.0]]))
        tensor([0.5000])
    """

    dim = 2

    def __init__(self, variance: float = 4.0, bend: float = 0.5):
        if variance <= 0:
            raise ValueError(f"variance must be positive, but it is {variance}")
        self.variance, self.bend = variance, bend

    def energy(self, position: Tensor) -> Tensor:
        """Compute θ₁²/2σ² + ½(θ₂ − b(θ₁² − σ²))²: ``(chains, 2)`` → ``(chains,)``."""
        first, second = position.unbind(-1)
        return first**2 / (2 * self.variance) + 0.5 * (second - self.bend * (first**2 - self.variance)) ** 2

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, 2)``."""
        first, second = torch.randn(2, num_samples, generator=generator, device=generator.device)
        first = first * math.sqrt(self.variance)
        return torch.stack([first, second + self.bend * (first**2 - self.variance)], -1)


class GaussianMixture(Potential):
    """A mixture of Gaussians with equal weights and one variance: π(θ) ∝ Σₖ exp(−|θ − μₖ|²/2σ²).

    Without arguments, the 25 modes of Zhang et al. (2020): means on the grid {−4, −2, 0, 2, 4}², variance 0.03.

    Args:
        means: μ, a tensor ``(modes, dim)``.
        variance: σ², one number for all modes and coordinates.

    Example:
        >>> GaussianMixture().means.shape
        torch.Size([25, 2])
    """

    def __init__(self, means: Tensor | None = None, variance: float = 0.03):
        if variance <= 0:
            raise ValueError(f"variance must be positive, but it is {variance}")
        if means is None:
            grid = torch.arange(-4.0, 5.0, 2.0)
            means = torch.cartesian_prod(grid, grid)
        self.means, self.variance = means, variance
        self.dim = means.shape[-1]

    def energy(self, position: Tensor) -> Tensor:
        """Compute −log of the mixture's normalised density: ``(chains, dim)`` → ``(chains,)``."""
        square_distance = (position[:, None] - self.means).pow(2).sum(-1)
        log_normaliser = math.log(len(self.means)) + 0.5 * self.dim * math.log(2 * math.pi * self.variance)
        return log_normaliser - torch.logsumexp(-square_distance / (2 * self.variance), -1)

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, dim)``."""
        modes = torch.randint(len(self.means), (num_samples,), generator=generator, device=self.means.device)
        noise = torch.randn(num_samples, self.dim, generator=generator, dtype=self.means.dtype, device=self.means.device)
        return self.means[modes] + math.sqrt(self.variance) * noise


class Funnel(Potential):
    """The funnel of Neal (2003): θ₁ ~ N(0, 9) and θᵢ | θ₁ ~ N(0, exp θ₁) for the other coordinates.

    Args:
        dim: number of coordinates, at least 2.

    Example:
        >>> Funnel(3).energy(torch.zeros(1, 3))
        tensor([0.])
    """

    def __init__(self, dim: int = 10):
        if dim < 2:
            raise ValueError(f"dim must be at least 2, but it is {dim}")
        self.dim = dim

    def energy(self, position: Tensor) -> Tensor:
        """Compute θ₁²/18 + ½(dim − 1)θ₁ + ½e^{−θ₁}Σθᵢ²: ``(chains, dim)`` → ``(chains,)``."""
        neck, others = position[:, 0], position[:, 1:]
        return neck**2 / 18 + 0.5 * (self.dim - 1) * neck + 0.5 * torch.exp(-neck) * others.pow(2).sum(-1)

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, dim)``."""
        samples = torch.randn(num_samples, self.dim, generator=generator, device=generator.device)
        samples[:, 0] *= 3
        samples[:, 1:] *= torch.exp(0.5 * samples[:, :1])
        return samples


class NoisyGradient(Potential):
    """A potential whose gradient is seen through Gaussian noise: ∇Ũ(θ) = ∇U(θ) + N(0, V), Chen et al. (2014), eq. (6).

    Args:
        potential: the exact potential.
        noise_variance: V, a **variance** (never a standard deviation): a number, a tensor ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if the variance is negative or not symmetric.

    Example:
        >>> noisy = NoisyGradient(DoubleWell(), noise_variance=4.0)
        >>> noisy.stochastic_gradient(torch.zeros(3, 1), torch.Generator().manual_seed(0)).shape
        torch.Size([3, 1])
    """

    def __init__(self, potential: Potential, noise_variance: Matrix):
        self.potential, self.dim = potential, potential.dim
        self.noise_variance = as_matrix(noise_variance, "noise_variance")
        self._noise_root = square_root(self.noise_variance)

    def energy(self, position: Tensor) -> Tensor:
        """Compute the exact energy: ``(chains, dim)`` → ``(chains,)``."""
        return self.potential.energy(position)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute the exact gradient: ``(chains, dim)`` → ``(chains, dim)``."""
        return self.potential.gradient(position)

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the exact energy and gradient."""
        return self.potential.energy_and_gradient(position)

    def stochastic_gradient(self, position: Tensor, generator: Generator) -> Tensor:
        """Draw ∇U(θ) + N(0, V) for every chain: ``(chains, dim)`` → ``(chains, dim)``."""
        noise = torch.empty_like(position).normal_(generator=generator)
        return add_product_(self.potential.gradient(position), self._noise_root, noise)

    def gradient_and_noise_variance(self, position: Tensor, generator: Generator, kind: Kind) -> tuple[Tensor, Tensor]:
        """Draw ∇U(θ) + N(0, V) and return V, which is known, in the shape of the kind."""
        full = sum_of(torch.zeros(2 * position.shape[1:]).to(position), self.noise_variance)
        variance = {"scalar": full.diagonal().mean(0, keepdim=True), "diagonal": full.diagonal(), "full": full}[kind]
        return self.stochastic_gradient(position, generator), variance.expand(len(position), *variance.shape)
