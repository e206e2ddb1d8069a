"""The correction step of Metropolis."""

import math

import torch
from torch import Generator, Tensor


def accept(energy: Tensor, proposed_energy: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Make the Metropolis decision min(1, exp(H − H')) for every chain (Metropolis et al., 1953).

    A proposal whose energy is not finite is rejected.

    Args:
        energy: H, ``(chains,)``.
        proposed_energy: H', ``(chains,)``.
        generator: the source of the decisions.

    Returns:
        Which chains accept, ``(chains,)`` bool, and the probability with which they do, ``(chains,)``.

    Example:
        >>> accept(torch.zeros(2), torch.tensor([-1.0, math.inf]), Generator())
        (tensor([ True, False]), tensor([1., 0.]))
    """
    proposed_energy = torch.where(proposed_energy.isfinite(), proposed_energy, math.inf)
    probability = torch.exp((energy - proposed_energy).clamp(max=0)).nan_to_num(nan=0.0)
    uniform = torch.rand(energy.shape, generator=generator, dtype=energy.dtype, device=energy.device)
    return uniform < probability, probability
