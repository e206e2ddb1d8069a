"""Euler's two ways to integrate Hamilton's equations dθ/dt = M⁻¹r, dr/dt = −∇U(θ).

Arguments and results are those of :func:`sgmc.integrators.leapfrog`."""

from torch import Tensor

from sgmc.integrators import Gradient
from sgmc.matrices import Matrix, MatrixLike, addmv_


def explicit_euler(
    gradient: Gradient,
    position: Tensor,
    momentum: Tensor,
    step_size: float,
    num_steps: int = 1,
    mass: MatrixLike = 1.0,
) -> tuple[Tensor, Tensor]:
    """Integrate by explicit Euler steps, which gain energy: θ' = θ + εM⁻¹r, r' = r −
    ε∇U(θ) (Hairer et al., 2006, I.1).

    Example:
        >>> import torch
        >>> theta, r = torch.zeros(1, 1), torch.ones(1, 1)
        >>> explicit_euler(lambda theta: theta, theta, r, 0.5)
        (tensor([[0.5000]]), tensor([[1.]]))
    """
    inverse_mass = Matrix(mass).inverse
    for _ in range(num_steps):
        kicked = momentum - step_size * gradient(position)
        position = position + step_size * (inverse_mass @ momentum)
        momentum = kicked
    return position, momentum


def symplectic_euler(
    gradient: Gradient,
    position: Tensor,
    momentum: Tensor,
    step_size: float,
    num_steps: int = 1,
    mass: MatrixLike = 1.0,
) -> tuple[Tensor, Tensor]:
    """Integrate by symplectic Euler steps, of order one, with the gradient at the
    **new** position: θ' = θ + εM⁻¹r, r' = r − ε∇U(θ') (Hairer et al., 2006, I.1).

    Example:
        >>> import torch
        >>> theta, r = torch.zeros(1, 1), torch.ones(1, 1)
        >>> symplectic_euler(lambda theta: theta, theta, r, 0.5)
        (tensor([[0.5000]]), tensor([[0.7500]]))
    """
    position, momentum = position.clone(), momentum.clone()
    inverse_mass = Matrix(mass).inverse
    for _ in range(num_steps):
        addmv_(position, inverse_mass, momentum, alpha=step_size)
        momentum.sub_(gradient(position), alpha=step_size)
    return position, momentum
