"""Stochastic gradient descent with Nesterov's momentum."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Generator, Tensor

from sgmc.checks import check_positive
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential


class NesterovState(NamedTuple):
    """A state of the descent."""

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: v, (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far


class NesterovInfo(NamedTuple):
    """What a step learned."""

    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True, eq=False)
class Nesterov(Kernel[NesterovState]):
    """Stochastic gradient descent with Nesterov's momentum, as
    ``torch.optim.SGD(..., nesterov=True)`` takes it.

    v ← (1 − α)v − η∇Ũ(θ), then θ ← θ + (1 − α)v − η∇Ũ(θ), with one gradient, at the
    position before the step.

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell
        >>> start = torch.full((1, 1), 0.5)
        >>> draws = sample(Nesterov(0.02, 0.3), DoubleWell(), start, num_samples=100)
        >>> draws.samples[-1].round(decimals=2)
        tensor([[1.]])
    """

    learning_rate: float  #: η
    momentum_decay: float  #: α, at most 1

    def __post_init__(self):
        check_positive("learning_rate", self.learning_rate)
        check_positive("momentum_decay", self.momentum_decay, at_most=1)

    def target_temperature(self) -> float | None:
        """Give none: without noise it descends."""
        return None

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> NesterovState:
        """Start at rest at the given position ``(chains, dim)``."""
        return NesterovState(position.clone(), position.new_zeros(position.shape), 0)

    def step(
        self, potential: Potential, state: NesterovState, generator: Generator
    ) -> tuple[NesterovState, NesterovInfo]:
        """Take one step in every chain, in place."""
        position, momentum, number = state
        rate, kept = self.learning_rate, 1 - self.momentum_decay
        gradient = potential.stochastic_gradient(position, generator, number)
        momentum.mul_(kept).sub_(gradient, alpha=rate)
        position.add_(momentum, alpha=kept).sub_(gradient, alpha=rate)
        return NesterovState(position, momentum, number + 1), NesterovInfo(number + 1)
