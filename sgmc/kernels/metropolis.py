"""What the kernels share: momenta, the correction step, and the checks of their parameters."""

import math

import torch
from torch import Generator, Tensor

from sgmc.matrices import Matrix, add_product_, inverse


def normal_like(tensor: Tensor, generator: Generator) -> Tensor:
    """Draw standard normal noise with the shape, type and device of ``tensor``."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format).normal_(generator=generator)


def draw_momentum(position: Tensor, mass_root: Matrix, generator: Generator) -> Tensor:
    """Draw r ~ N(0, M) for every chain, given a root of M: ``(chains, dim)`` → ``(chains, dim)``."""
    return add_product_(torch.zeros_like(position), mass_root, normal_like(position, generator))


def kinetic_energy(momentum: Tensor, mass: Matrix) -> Tensor:
    """Compute ½rᵀM⁻¹r for every chain: ``(chains, dim)`` → ``(chains,)``."""
    velocity = add_product_(torch.zeros_like(momentum), inverse(mass), momentum)
    return 0.5 * (momentum * velocity).sum(-1)


def accept(energy: Tensor, proposed_energy: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Make the Metropolis decision min(1, exp(H − H')) for every chain (Metropolis et al., 1953).

    A proposal whose energy is not finite is rejected.

    Returns:
        Which chains accept, ``(chains,)`` bool, and the probability with which they do, ``(chains,)``.
    """
    proposed_energy = torch.where(proposed_energy.isfinite(), proposed_energy, math.inf)
    probability = torch.exp((energy - proposed_energy).clamp(max=0)).nan_to_num(nan=0.0)
    uniform = torch.rand(energy.shape, generator=generator, dtype=energy.dtype, device=energy.device)
    return uniform < probability, probability


def check_positive(name: str, value: float) -> None:
    """Raise a ValueError unless ``value`` is a positive finite number."""
    if not (isinstance(value, (int, float)) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a positive number, but it is {value!r}")


def check_non_negative(name: str, value: float) -> None:
    """Raise a ValueError unless ``value`` is a finite number of at least zero."""
    if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
        raise ValueError(f"{name} must be a number of at least 0, but it is {value!r}")


def check_dims(**matrices: Matrix) -> None:
    """Raise a ValueError unless matrices that are tensors, and positions ``(chains, dim)``, have one number of coordinates."""
    dims = {name: matrix.shape[-1] for name, matrix in matrices.items() if isinstance(matrix, Tensor)}
    if len(set(dims.values())) > 1:
        listed = ", ".join(f"{name} has {dim}" for name, dim in dims.items())
        raise ValueError(f"the numbers of coordinates do not agree: {listed}")


def check_count(name: str, value: int) -> None:
    """Raise a ValueError unless ``value`` is a whole number of at least one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, but it is {value!r}")
