"""Momenta, and leapfrog for Hamilton's equations dθ/dt = M⁻¹r, dr/dt = −∇U(θ)."""

import math
from collections.abc import Callable

from torch import Generator, Tensor

from sgmc.checks import check_count
from sgmc.matrices import Matrix, MatrixLike, addmv_
from sgmc.randomness import normal_like

Gradient = Callable[[Tensor], Tensor]


def draw_momentum(
    position: Tensor, mass: Matrix, generator: Generator, temperature: float = 1.0
) -> Tensor:
    """Draw r ~ N(0, T·M) for every chain: ``(chains, dim)`` → ``(chains, dim)``.

    Example:
        >>> import torch
        >>> draw_momentum(torch.zeros(3, 2), Matrix(4.0), Generator()).shape
        torch.Size([3, 2])
    """
    momentum = mass.root @ normal_like(position, generator)
    return momentum if temperature == 1 else momentum.mul_(math.sqrt(temperature))


def kinetic_energy(momentum: Tensor, mass: Matrix) -> Tensor:
    """Compute ½rᵀM⁻¹r for every chain: ``(chains, dim)`` → ``(chains,)``.

    Example:
        >>> import torch
        >>> kinetic_energy(torch.tensor([[1.0, 3.0]]), Matrix(2.0))
        tensor([2.5000])
    """
    return 0.5 * (momentum * (mass.inverse @ momentum)).sum(-1)


def leapfrog(
    gradient: Gradient,
    position: Tensor,
    momentum: Tensor,
    step_size: float,
    num_steps: int = 1,
    mass: MatrixLike = 1.0,
) -> tuple[Tensor, Tensor]:
    """Integrate by leapfrog (Störmer–Verlet) steps, of order two: half kick, drift,
    half kick (Neal, 2011, eq. 5.18–5.20).

    The half kicks of neighbouring steps fall at one point and are one kick with one
    gradient, so ``num_steps`` steps take ``num_steps + 1`` gradients.

    Args:
        gradient: ∇U, or a draw of ∇Ũ: ``(chains, dim)`` → ``(chains, dim)``.
        position: θ, ``(chains, dim)``.
        momentum: r, ``(chains, dim)``.
        step_size: ε; negative runs time backwards.
        num_steps: number of steps.
        mass: M, a number, ``(dim,)`` or ``(dim, dim)``.

    Returns:
        The new position and momentum.

    Raises:
        ValueError: if the number of steps is not a positive whole number.

    Example:
        >>> import torch
        >>> leapfrog(lambda theta: theta, torch.zeros(1, 1), torch.ones(1, 1), 0.5)
        (tensor([[0.5000]]), tensor([[0.8750]]))
    """
    check_count("num_steps", num_steps, at_least=0)
    position, momentum = position.clone(), momentum.clone()
    if num_steps == 0:
        return position, momentum
    inverse_mass = Matrix.of(mass).inverse
    momentum.sub_(gradient(position), alpha=step_size / 2)
    for step in range(num_steps):
        addmv_(position, inverse_mass, momentum, alpha=step_size)
        last = step == num_steps - 1
        momentum.sub_(gradient(position), alpha=step_size / 2 if last else step_size)
    return position, momentum
