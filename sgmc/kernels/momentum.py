"""Momenta: how they are drawn, and their energy."""

import math

from torch import Generator, Tensor

from sgmc.matrices import Matrix
from sgmc.randomness import normal_like


def draw_momentum(position: Tensor, mass: Matrix, generator: Generator, temperature: float = 1.0) -> Tensor:
    """Draw r ~ N(0, T·M) for every chain: ``(chains, dim)`` → ``(chains, dim)``.

    Example:
        >>> import torch
        >>> draw_momentum(torch.zeros(3, 2), Matrix(4.0), Generator().manual_seed(0)).shape
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
