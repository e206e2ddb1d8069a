"""What a kernel is."""

from typing import NamedTuple, Protocol, runtime_checkable

from torch import Generator, Tensor

from sgmc.potentials import Potential


@runtime_checkable
class Kernel(Protocol):
    """How a chain moves: a frozen dataclass of tuning parameters with three methods,
    which many chains follow at once.

    A *state* is what a chain is: a NamedTuple of tensors and numbers, with the
    ``position`` ``(chains, dim)`` among them. It is all that a run needs to go on, and
    all that a checkpoint saves of it. An *info* is what a step learned: a NamedTuple,
    whose fields become the statistics of the draws, each ``(chains,)`` or one number
    for all chains; a field that is None is left out.

    Example:
        >>> import torch
        >>> class Here(NamedTuple):
        ...     position: Tensor
        >>> class Step(NamedTuple):
        ...     length: Tensor
        >>> class GradientDescent(Kernel):
        ...     def init(self, potential, position, generator):
        ...         return Here(position.clone())
        ...
        ...     def step(self, potential, state, generator):
        ...         gradient = potential.gradient(state.position)
        ...         return Here(state.position - 0.1 * gradient), Step(
        ...             0.1 * gradient.norm(dim=-1)
        ...         )
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell
        >>> draws = sample(
        ...     GradientDescent(), DoubleWell(), torch.full((3, 1), 0.5), num_samples=50
        ... )
        >>> draws.samples[-1, 0].round(decimals=2), draws.statistics["length"].shape
        (tensor([1.]), torch.Size([50, 3]))
    """

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> NamedTuple:
        """Make the state in which chains start at the given position ``(chains, dim)``,
        which is not changed.
        """
        ...

    def step(
        self, potential: Potential, state: NamedTuple, generator: Generator
    ) -> tuple[NamedTuple, NamedTuple]:
        """Make the next state, and say what was learned; the tensors of the old state
        may be overwritten.
        """
        ...

    def retarget(self, potential: Potential, state: NamedTuple) -> NamedTuple:
        """Bring up to date what a state knows of its potential, such as U, when another
        one takes its place; nothing by default.
        """
        return state

    def target_temperature(self) -> float | None:
        """Give T of the density exp(−U/T) that the samples should have, 1 by default;
        None if they are not meant to have one, such as while step sizes fall.
        """
        return 1.0

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Say what is wrong with a run, a sentence each, given the statistics of its
        draws; nothing by default.
        """
        return []
