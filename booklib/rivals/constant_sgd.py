"""Stochastic gradient descent at a constant rate, chosen so that its iterates
approximate draws of the posterior.
"""

import torch
from torch import Tensor

from sgmc.checks import check_choice, check_count
from sgmc.kernels import SGLD
from sgmc.matrices import Matrix, as_matrix
from sgmc.potentials import Kind
from sgmc.splittings import LinearChain


def constant_sgd(
    noise_variance: float | Tensor | Matrix, kind: Kind = "scalar"
) -> SGLD:
    """Make the gradient descent θ ← θ − P∇Ũ(θ) whose iterates are nearest to the
    posterior (Mandt et al., 2017).

    Near a mode with Hessian A, and for small P, they are N(θ̂, Σ) with PAΣ + ΣAP = PVP.
    A scalar P = 2·dim/tr V has the least divergence KL(N(θ̂, Σ) ‖ N(θ̂, A⁻¹)) of all
    numbers; the diagonal P = 2/diag V has it of all diagonals where V is a multiple of
    A; the full one P = 2V⁻¹ makes Σ = A⁻¹, and at any size of the step with V + A in
    the place of V.

    Args:
        noise_variance: V at the mode, a number, ``(dim,)`` or ``(dim, dim)``, such as
            that of :func:`sgmc.noise.estimate_noise_variance`.
        kind: ``"scalar"``, ``"diagonal"`` or ``"full"``, the form of P. A V of a
            simpler form is taken as it is.

    Returns:
        SGLD at temperature zero with the step size 1 and the mass P⁻¹; start it at a
        mode, or give it a warm-up.

    Raises:
        ValueError: if the kind is unknown, or V is no covariance, or has no inverse
            where one is needed.

    Example:
        >>> constant_sgd(torch.tensor([[4.0, 1.0], [1.0, 2.0]]), "diagonal").mass
        tensor([2., 1.])
    """
    check_choice("kind", kind, ("scalar", "diagonal", "full"))
    noise = as_matrix(noise_variance, "noise_variance")
    if noise.full and kind != "full":
        noise = Matrix(noise.tensor.diagonal())
    if kind == "scalar":
        noise = Matrix(float(noise.tensor.mean()))
    resolution = 0.0
    if noise.full:
        eps = torch.finfo(noise.tensor.dtype).eps
        resolution = len(noise.tensor) * eps * max(noise.eigenvalues)
    if min(noise.eigenvalues) <= resolution:
        raise ValueError(
            f"noise_variance has no inverse of kind {kind!r}: without noise descent "
            "ends at the mode; estimate it from more or smaller minibatches, or use a "
            "simpler kind"
        )
    return SGLD(step_size=1.0, temperature=0.0, mass=0.5 * noise.value)


def average_covariance(chain: LinearChain, num_steps: int) -> Tensor:
    """Compute the covariance of the mean of K successive states of a stationary chain,
    ``(dim, dim)`` float64: (S + Sᵀ − KΣ)/K² with S = Σₖ(K − k)FᵏΣ.

    Example:
        >>> chain = LinearChain(torch.tensor([[0.5]]), torch.tensor([[0.75]]))
        >>> average_covariance(chain, 2)  # ½(1 + 0.5) of the variance
        tensor([[0.7500]], dtype=torch.float64)
    """
    check_count("num_steps", num_steps)
    covariance, transition = chain.stationary_covariance(), chain.transition.double()
    identity = torch.eye(len(transition), dtype=torch.float64)
    powers, total = torch.zeros_like(transition), torch.zeros_like(transition)
    for _ in range(num_steps):
        powers = identity + transition @ powers  # 1 + F + F² + …
        total += powers
    lagged = total @ covariance
    return (lagged + lagged.mT - num_steps * covariance) / num_steps**2
