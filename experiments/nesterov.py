"""Stochastic gradient descent with Nesterov's momentum: a baseline of the papers, and
no sampler.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.checks import check_positive
from sgmc.kernels import Kernel
from sgmc.potentials import Potential


class NesterovState(NamedTuple):
    """A state of the descent."""

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: v, (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far


class NesterovInfo(NamedTuple):
    """What a step learned."""

    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True)
class Nesterov(Kernel):
    """Descent with Nesterov's momentum, as ``torch.optim.SGD(..., nesterov=True)`` has
    it.

    v ← (1 − α)v − η∇Ũ(θ), then θ ← θ + (1 − α)v − η∇Ũ(θ), with one gradient, at the
    position before the step. Where SGD with momentum, which is SGHMC at T = 0, moves by
    v, this moves by what v would be after one more step with the same gradient.

    Args:
        learning_rate: η.
        momentum_decay: α, at most 1.

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell
        >>> draws = sample(
        ...     Nesterov(0.02, 0.3),
        ...     DoubleWell(),
        ...     torch.full((2, 1), 0.5),
        ...     num_samples=100,
        ... )
        >>> draws.samples[-1].round(decimals=2)
        tensor([[1.],
                [1.]])
    """

    learning_rate: float
    momentum_decay: float

    def __post_init__(self):
        check_positive("learning_rate", self.learning_rate)
        if not 0 < self.momentum_decay <= 1:
            raise ValueError(
                "momentum_decay must be greater than 0 and at most 1, but it is "
                f"{self.momentum_decay}"
            )

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> NesterovState:
        """Start at rest at the given position ``(chains, dim)``."""
        return NesterovState(position.clone(), torch.zeros_like(position), 0)

    def step(
        self, potential: Potential, state: NesterovState, generator: Generator
    ) -> tuple[NesterovState, NesterovInfo]:
        """Take one step in every chain, in place."""
        position, momentum, num_gradients = state
        gradient = potential.stochastic_gradient(position, generator, num_gradients)
        momentum.mul_(1 - self.momentum_decay).sub_(gradient, alpha=self.learning_rate)
        position.add_(momentum, alpha=1 - self.momentum_decay).sub_(
            gradient, alpha=self.learning_rate
        )
        return NesterovState(position, momentum, num_gradients + 1), NesterovInfo(
            num_gradients + 1
        )
