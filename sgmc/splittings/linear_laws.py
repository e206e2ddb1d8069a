"""Exact laws of the samplers without a correction step on a Gaussian target.

With U(θ) = ½θᵀAθ and gradient noise N(0, V) each is a linear recursion z' = Fz + N(0,
Q), whose stationary covariance solves the discrete Lyapunov equation Σ = FΣFᵀ + Q, the
bias of the step size included."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import solve_discrete_lyapunov
from torch import Tensor

from sgmc.checks import check_count, check_tensor
from sgmc.matrices import MatrixLike, as_matrix
from sgmc.splittings import flows
from sgmc.splittings.flows import Flow, _check_flows


class LinearChain(NamedTuple):
    """The Markov chain z' = Fz + N(0, Q).

    Example:
        >>> chain = LinearChain(torch.tensor([[0.5]]), torch.tensor([[0.75]]))
        >>> chain.stationary_covariance()
        tensor([[1.]], dtype=torch.float64)
    """

    transition: Tensor  #: F, (dim, dim)
    noise_covariance: Tensor  #: Q, (dim, dim)

    def stationary_covariance(self) -> Tensor:
        """Solve Σ = FΣFᵀ + Q, ``(dim, dim)`` float64.

        Raises:
            ValueError: if F does not shrink every direction.
        """
        for name, matrix in self._asdict().items():
            check_tensor(name, matrix, "dim", "dim")
        transition = self.transition.double().numpy()
        radius = np.abs(np.linalg.eigvals(transition)).max()
        if radius >= 1:
            raise ValueError(
                "the chain has no stationary law: F has an eigenvalue of size "
                f"{radius:.6g}; take a smaller step_size"
            )
        return torch.from_numpy(
            solve_discrete_lyapunov(transition, self.noise_covariance.double().numpy())
        )

    def then(self, second: "LinearChain") -> "LinearChain":
        """Compose two moves: z'' = F₂(F₁z + ξ₁) + ξ₂."""
        f1, q1 = (x.double() for x in self)
        f2, q2 = (x.double() for x in second)
        return LinearChain(f2 @ f1, f2 @ q1 @ f2.T + q2)

    def power(self, num_steps: int) -> "LinearChain":
        """Compose the move with itself ``num_steps`` times."""
        check_count("num_steps", num_steps)
        chain = self
        for _ in range(num_steps - 1):
            chain = chain.then(self)
        return chain

    def autocorrelation(self, direction: Tensor, num_lags: int) -> Tensor:
        """Compute the autocorrelations ρ₀, ρ₁, … of cᵀz in the stationary chain, c
        being ``(dim,)``: ``(num_lags,)`` float64.
        """
        check_count("num_lags", num_lags)
        c, lagged = self._direction(direction), []
        column = self.stationary_covariance() @ c
        for _ in range(num_lags):
            lagged.append(c @ column)
            column = self.transition.double() @ column
        return torch.stack(lagged) / lagged[0]

    def autocorrelation_time(self, direction: Tensor) -> float:
        """Compute τ = 1 + 2Σρₖ of cᵀz in the stationary chain, c being ``(dim,)``, by
        the geometric series of F.
        """
        transition, covariance = self.transition.double(), self.stationary_covariance()
        c = self._direction(direction)
        identity = torch.eye(len(c), dtype=torch.float64)
        series = torch.linalg.solve(
            identity - transition, (identity + transition) @ covariance @ c
        )
        return float(c @ series / (c @ covariance @ c))

    def _direction(self, direction: Tensor) -> Tensor:
        check_tensor("direction", direction, "dim", floating=False)
        if len(direction) != len(self.transition) or not direction.any():
            raise ValueError(
                f"direction must have {len(self.transition)} entries, not all of them "
                f"zero, but it is {direction}"
            )
        return direction.double()


def linear_chain(
    splitting: Sequence[Flow], precision: Tensor, noise_variance: MatrixLike = 0.0
) -> LinearChain:
    """Compose flows, in the order in which they move, into the chain that they make on
    U(θ) = ½θᵀAθ, in (θ, r), or in θ where there is no momentum. The precision A is
    symmetric, ``(dim, dim)``; V, the covariance of the gradient noise, is a number,
    ``(dim,)`` or ``(dim, dim)``.

    Example:
        >>> chain = linear_chain(flows.baoab(1.0, friction=1.0), torch.eye(1))
        >>> chain.stationary_covariance()[0, 0]  # exact in θ, at any step size
        tensor(1.0000, dtype=torch.float64)
    """
    _check_flows(splitting)
    check_tensor("precision", precision, "dim", "dim")
    square = precision.shape[0] == precision.shape[1]
    if not (square and torch.allclose(precision, precision.mT)):
        raise ValueError(
            f"precision must be a symmetric tensor (dim, dim), but it is {precision}"
        )
    noise = as_matrix(noise_variance, "noise_variance").dense(len(precision))
    first, *others = splitting
    chain = LinearChain(*first.linear(precision.double(), noise))
    for flow in others:
        law = flow.linear(precision.double(), noise)
        chain = chain.then(LinearChain(*law))
    return chain


def langevin_chain(
    precision: Tensor,
    step_size: float,
    noise_variance: MatrixLike = 0.0,
    *arguments,
    **settings,
) -> LinearChain:
    """Write SGLD as a linear chain in θ: F = I − ηM⁻¹A, Q = M⁻¹(η²V + 2η(TM − B̂))M⁻¹;
    B̂, T and M are those of :func:`sgmc.splittings.flows.sgld`.

    Example:
        >>> langevin_chain(torch.eye(1), step_size=0.5).stationary_covariance()
        tensor([[1.3333]], dtype=torch.float64)
    """
    splitting = flows.sgld(step_size, *arguments, **settings)
    return linear_chain(splitting, precision, noise_variance)


def sghmc_chain(
    precision: Tensor,
    step_size: float,
    friction: MatrixLike,
    noise_variance: MatrixLike = 0.0,
    *arguments,
    explicit_euler: bool = False,
    **settings,
) -> LinearChain:
    """Write one step of SGHMC as a linear chain in (θ, r).

    θ' = θ + εM⁻¹r, then r' = (I − εCM⁻¹)r − εAθ' + N(0, ε²V + 2ε(TC − B̂)). With
    ``explicit_euler`` the gradient is taken at the old position, as several libraries
    do. B̂, M and T are those of :func:`sgmc.splittings.flows.sghmc`.

    Example:
        >>> chain = sghmc_chain(torch.eye(1), 0.1, 3.0, 4.0, noise_estimate=0.2)
        >>> round(float(chain.stationary_covariance()[0, 0]), 4)
        1.0029
    """
    make = flows.explicit_euler_sghmc if explicit_euler else flows.sghmc
    splitting = make(step_size, friction, *arguments, **settings)
    return linear_chain(splitting, precision, noise_variance)


def naive_sghmc_chain(
    precision: Tensor,
    step_size: float,
    num_steps: int,
    noise_variance: MatrixLike = 0.0,
    mass: MatrixLike = 1.0,
) -> LinearChain:
    """Write naive SGHMC, a noisy leapfrog trajectory from a fresh momentum r ~ N(0, M),
    as a linear chain in (θ, r), which forgets the old momentum; with V = 0 it is HMC
    without its correction step.

    Example:
        >>> chain = naive_sghmc_chain(torch.eye(1), 0.1, 50, noise_variance=4.0)
        >>> bool(chain.stationary_covariance()[0, 0] > 1.5)
        True
    """
    splitting = flows.naive_sghmc(step_size, num_steps, mass)
    return linear_chain(splitting, precision, noise_variance)
