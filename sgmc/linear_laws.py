"""Exact laws of the samplers on a Gaussian target.

With U(θ) = ½θᵀAθ and gradient noise N(0, V) every sampler without a correction step is a linear recursion z' = Fz + N(0, Q). Its
stationary covariance solves the discrete Lyapunov equation Σ = FΣFᵀ + Q, step size and all, so that code can be tested against a law
that is exact rather than against the target, from which the law differs by the bias that is to be measured.
"""

from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import solve_discrete_lyapunov
from torch import Tensor

from sgmc.matrices import Matrix, sum_of


class LinearChain(NamedTuple):
    """The Markov chain z' = Fz + N(0, Q).

    Example:
        >>> LinearChain(torch.tensor([[0.5]]), torch.tensor([[0.75]])).stationary_covariance()
        tensor([[1.]], dtype=torch.float64)
    """

    transition: Tensor  #: F, (dim, dim)
    noise_covariance: Tensor  #: Q, (dim, dim)

    def stationary_covariance(self) -> Tensor:
        """Solve Σ = FΣFᵀ + Q.

        Returns:
            Σ, ``(dim, dim)`` float64.

        Raises:
            ValueError: if the chain has no stationary law, because F does not shrink every direction.
        """
        transition = self.transition.double().numpy()
        radius = np.abs(np.linalg.eigvals(transition)).max()
        if radius >= 1:
            raise ValueError(f"the chain has no stationary law: F has an eigenvalue of size {radius:.6g}; take a smaller step_size")
        return torch.from_numpy(solve_discrete_lyapunov(transition, self.noise_covariance.double().numpy()))

    def then(self, second: "LinearChain") -> "LinearChain":
        """Compose two moves: z'' = F₂(F₁z + ξ₁) + ξ₂."""
        f1, q1 = (x.double() for x in self)
        f2, q2 = (x.double() for x in second)
        return LinearChain(f2 @ f1, f2 @ q1 @ f2.T + q2)

    def power(self, num_steps: int) -> "LinearChain":
        """Compose the move with itself ``num_steps`` times."""
        chain = self
        for _ in range(num_steps - 1):
            chain = chain.then(self)
        return chain

    def autocorrelation(self, direction: Tensor, num_lags: int) -> Tensor:
        """Compute the autocorrelations ρ₀, ρ₁, … of cᵀz in the stationary chain.

        Args:
            direction: c, ``(dim,)``.
            num_lags: number of lags, the zeroth included.

        Returns:
            ``(num_lags,)`` float64.
        """
        transition, covariance, lagged = self.transition.double(), self.stationary_covariance(), []
        column = covariance @ direction.double()
        for _ in range(num_lags):
            lagged.append(direction.double() @ column)
            column = transition @ column
        return torch.stack(lagged) / lagged[0]

    def autocorrelation_time(self, direction: Tensor) -> float:
        """Compute τ = 1 + 2Σρₖ of cᵀz in the stationary chain, by summing the geometric series of F.

        Args:
            direction: c, ``(dim,)``.
        """
        transition, covariance, c = self.transition.double(), self.stationary_covariance(), direction.double()
        identity = torch.eye(len(c), dtype=torch.float64)
        series = torch.linalg.solve(identity - transition, (identity + transition) @ covariance @ c)
        return float(c @ series / (c @ covariance @ c))


def langevin_chain(
    precision: Tensor, step_size: float, noise_variance: Matrix = 0.0, noise_estimate: Matrix = 0.0, temperature: float = 1.0
) -> LinearChain:
    """Write SGLD as a linear chain in θ: F = I − ηA, Q = η²V + 2η(T − B̂).

    Args:
        precision: A, ``(dim, dim)``.
        step_size: η.
        noise_variance: V, the covariance of the gradient noise, in any form of :mod:`sgmc.matrices`.
        noise_estimate: B̂, in any form.
        temperature: T, of the target exp(−U/T).

    Example:
        >>> langevin_chain(torch.eye(1), step_size=0.5).stationary_covariance()
        tensor([[1.3333]], dtype=torch.float64)
    """
    dim = len(precision)
    identity = torch.eye(dim, dtype=torch.float64)
    injected = temperature * identity - _full(noise_estimate, dim)
    return LinearChain(identity - step_size * precision.double(), step_size**2 * _full(noise_variance, dim) + 2 * step_size * injected)


def sghmc_chain(
    precision: Tensor,
    step_size: float,
    friction: Matrix,
    noise_variance: Matrix = 0.0,
    noise_estimate: Matrix = 0.0,
    mass: Matrix = 1.0,
    temperature: float = 1.0,
    explicit_euler: bool = False,
) -> LinearChain:
    """Write one step of SGHMC as a linear chain in (θ, r).

    Drift first: θ' = θ + εM⁻¹r; then r' = (I − εCM⁻¹)r − εAθ' + N(0, ε²V + 2ε(TC − B̂)). With ``explicit_euler`` the gradient is taken at
    the old position, −εAθ, as several libraries do.

    Args:
        precision: A, ``(dim, dim)``.
        step_size: ε.
        friction: C, in any form of :mod:`sgmc.matrices`.
        noise_variance: V, the covariance of the gradient noise, in any form.
        noise_estimate: B̂, in any form.
        mass: M, in any form.
        temperature: T, of the target exp(−U/T).
        explicit_euler: whether to take the gradient at the old position.

    Example:
        >>> chain = sghmc_chain(torch.eye(1), step_size=0.1, friction=3.0, noise_variance=4.0, noise_estimate=0.2)
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)
        1.0029
    """
    dim = len(precision)
    identity, zero = torch.eye(dim, dtype=torch.float64), torch.zeros(dim, dim, dtype=torch.float64)
    friction, velocity = _full(friction, dim), step_size * torch.linalg.inv(_full(mass, dim))
    drift = torch.cat([torch.cat([identity, velocity], 1), torch.cat([zero, identity], 1)])
    kick = torch.cat([torch.cat([identity, zero], 1), torch.cat([-step_size * precision.double(), identity - friction @ velocity], 1)])
    noise = torch.zeros(2 * dim, 2 * dim, dtype=torch.float64)
    injected = temperature * friction - _full(noise_estimate, dim)
    noise[dim:, dim:] = step_size**2 * _full(noise_variance, dim) + 2 * step_size * injected
    if explicit_euler:  # both updates read the old state, so their increments add
        return LinearChain(drift + kick - torch.eye(2 * dim, dtype=torch.float64), noise)
    return LinearChain(kick @ drift, noise)


def naive_sghmc_chain(precision: Tensor, step_size: float, num_steps: int, noise_variance: Matrix = 0.0, mass: Matrix = 1.0) -> LinearChain:
    """Write naive SGHMC, a noisy leapfrog trajectory from a fresh momentum r ~ N(0, M), as a linear chain in (θ, r).

    The stochastic gradient at the end of a step is used again at the start of the next one, as :func:`sgmc.integrators.leapfrog` does; the
    transition forgets the old momentum. With V = 0 it is HMC without its correction step.

    Args:
        precision: A, ``(dim, dim)``.
        step_size: ε.
        num_steps: L, the number of leapfrog steps.
        noise_variance: V, the covariance of the gradient noise, in any form of :mod:`sgmc.matrices`.
        mass: M, in any form.

    Example:
        >>> chain = naive_sghmc_chain(torch.eye(1), step_size=0.1, num_steps=50, noise_variance=4.0)
        >>> bool(chain.stationary_covariance()[0, 0] > 1.5)
        True
    """
    dim = len(precision)
    identity, zero = torch.eye(dim, dtype=torch.float64), torch.zeros(dim, dim, dtype=torch.float64)
    nothing = torch.zeros(2 * dim, 2 * dim, dtype=torch.float64)
    full_mass = _full(mass, dim)

    def in_momentum(covariance: Tensor) -> Tensor:
        noise = nothing.clone()
        noise[dim:, dim:] = covariance
        return noise

    def kick(length: float) -> LinearChain:
        rows = [torch.cat([identity, zero], 1), torch.cat([-length * precision.double(), identity], 1)]
        return LinearChain(torch.cat(rows), in_momentum(length**2 * _full(noise_variance, dim)))

    rows = [torch.cat([identity, step_size * torch.linalg.inv(full_mass)], 1), torch.cat([zero, identity], 1)]
    drift = LinearChain(torch.cat(rows), nothing)
    rows = [torch.cat([identity, zero], 1), torch.cat([zero, zero], 1)]
    chain = LinearChain(torch.cat(rows), in_momentum(full_mass)).then(kick(step_size / 2)).then(drift)
    for _ in range(num_steps - 1):
        chain = chain.then(kick(step_size)).then(drift)
    return chain.then(kick(step_size / 2))


def _full(matrix: Matrix, dim: int) -> Tensor:
    zero = torch.zeros(dim, dim, dtype=torch.float64)
    return sum_of(zero, matrix.double() if isinstance(matrix, Tensor) else float(matrix))
