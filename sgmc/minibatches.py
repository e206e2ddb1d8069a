"""Rules that choose the examples of a step, each a pure function of the seed, the step
and the chain.

The same seed gives the same minibatches, wherever a run is taken up: their numbers come
from a counter-based generator. For speed those of neighbouring steps are made together.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance
from sgmc.randomness import counter_based

# At most so many steps, and about so many indices, are drawn together.
_STEPS, _INDICES = 32, 2**14
_FRESH, _PASSES = 1, 2  # the purposes of the streams of random numbers


@runtime_checkable
class MinibatchRule(Protocol):
    """A rule by which minibatches are chosen.

    Example:
        >>> class Next:
        ...     replacement = False
        ...
        ...     def indices(self, num_examples, batch_size, chains, seed, step):
        ...         found = torch.arange(batch_size) + step * batch_size
        ...         return (found % num_examples).expand(chains, -1)
        >>> Next().indices(5, 2, 1, 0, step=2)
        tensor([[4, 0]])
    """

    @property
    def replacement(self) -> bool:
        """Whether a minibatch may hold an example twice."""
        ...

    def indices(
        self, num_examples: int, batch_size: int, chains: int, seed: int, step: int
    ) -> Tensor:
        """Choose the examples of a step for every chain: ``(chains, n)`` int64, on the
        CPU; the caller does not change them in place. Raise a ValueError if the
        minibatch does not fit.
        """
        ...


@dataclass(frozen=True)
class Fresh:
    """A uniformly random subset of the data, or with replacement a random sequence of
    examples, which every chain draws anew at every step.

    Args:
        replacement: whether an example may come twice.

    Example:
        >>> Fresh().indices(10, batch_size=3, chains=2, seed=0, step=5).shape
        torch.Size([2, 3])
    """

    replacement: bool = False

    def __post_init__(self):
        check_instance("replacement", self.replacement, bool, "True")

    def indices(
        self, num_examples: int, batch_size: int, chains: int, seed: int, step: int
    ) -> Tensor:
        """Choose the examples of a step for every chain: ``(chains, n)`` int64."""
        _check_size(num_examples, batch_size, self.replacement)
        block, place = divmod(step, _steps_together(chains, batch_size))
        return _fresh_block(self, num_examples, batch_size, chains, seed, block)[place]


@dataclass(frozen=True)
class Passes:
    """The next slice of the data, in an order that every chain shuffles anew for every
    epoch.

    Within a pass the errors of the gradients nearly cancel, which those of independent
    minibatches do not. A remainder of fewer than n examples is left out of its pass.

    Example:
        >>> seen = [Passes().indices(6, 2, chains=1, seed=0, step=t) for t in range(3)]
        >>> torch.cat(seen, 1).sort().values
        tensor([[0, 1, 2, 3, 4, 5]])
    """

    replacement = False

    def indices(
        self, num_examples: int, batch_size: int, chains: int, seed: int, step: int
    ) -> Tensor:
        """Choose the examples of a step for every chain: ``(chains, n)`` int64."""
        _check_size(num_examples, batch_size)
        number, place = self._place(step, num_examples // batch_size)
        return _pass(num_examples, batch_size, chains, seed, number)[place]

    def _place(self, step: int, length: int) -> tuple[int, int]:
        """Return the pass and the place in it of a step."""
        return divmod(step, length)


class Sweeps(Passes):
    """A pass over the data, and then the same pass backwards (Paulin, Whalley, Chada
    and Leimkuhler, 2024: symmetric minibatch splitting).

    Example:
        >>> seen = [Sweeps().indices(6, 2, chains=1, seed=0, step=t) for t in range(6)]
        >>> [torch.equal(seen[t], seen[5 - t]) for t in range(3)]
        [True, True, True]
    """

    def _place(self, step: int, length: int) -> tuple[int, int]:
        """Return the pass and the place in it of a step."""
        number, place = divmod(step, 2 * length)
        return number, min(place, 2 * length - 1 - place)


@dataclass(frozen=True)
class Held:
    """One minibatch of another rule, held for so many steps, then the next one.

    Args:
        num_steps: number of steps that see the same minibatch.
        rule: where the minibatches come from.

    Example:
        >>> held = [Held(3).indices(99, 2, chains=1, seed=0, step=t) for t in range(4)]
        >>> torch.equal(held[0], held[2]), torch.equal(held[2], held[3])
        (True, False)
    """

    num_steps: int
    rule: MinibatchRule = Fresh()

    def __post_init__(self):
        check_count("num_steps", self.num_steps)
        check_instance("rule", self.rule, MinibatchRule, "Passes()")

    @property
    def replacement(self) -> bool:
        """Whether a minibatch may hold an example twice."""
        return self.rule.replacement

    def indices(
        self, num_examples: int, batch_size: int, chains: int, seed: int, step: int
    ) -> Tensor:
        """Choose the examples of a step for every chain: ``(chains, n)`` int64."""
        number = step // self.num_steps
        return self.rule.indices(num_examples, batch_size, chains, seed, number)


@lru_cache
def _check_size(num_examples: int, size: int, replacement: bool = False) -> None:
    """Raise a ValueError unless minibatches of that size can be drawn."""
    check_count("batch_size", size)
    if size > num_examples and not replacement:
        raise ValueError(
            f"batch_size is {size}, but there are only {num_examples} examples: take a "
            "smaller batch"
        )


def _steps_together(chains: int, batch_size: int) -> int:
    """Return the number of steps whose fresh minibatches are drawn together."""
    return max(1, min(_STEPS, _INDICES // (chains * batch_size)))


@lru_cache(maxsize=2)
def _fresh_block(
    rule: Fresh, num_examples: int, size: int, chains: int, seed: int, block: int
) -> list[Tensor]:
    """Draw the minibatches of a block of steps: for each ``(chains, n)``."""
    generator = counter_based(seed, _FRESH, block)
    length = _steps_together(chains, size)
    rows = length * chains
    if rule.replacement:
        drawn = generator.integers(num_examples, size=(rows, size))
    elif 4 * size > num_examples:
        drawn = _shuffled(num_examples, rows, generator)[:, :size]
    else:
        drawn = _subsets(num_examples, size, rows, generator)
    drawn = torch.from_numpy(np.ascontiguousarray(drawn))
    return list(drawn.view(length, chains, size))


@lru_cache(maxsize=2)
def _pass(num_examples: int, size: int, chains: int, seed: int, number: int):
    """Shuffle the data, and cut them: for each step of an epoch ``(chains, n)``."""
    orders = _shuffled(num_examples, chains, counter_based(seed, _PASSES, number))
    return list(torch.from_numpy(orders).split(size, 1))


def _shuffled(num_examples: int, rows: int, generator: np.random.Generator):
    orders = np.broadcast_to(np.arange(num_examples), (rows, num_examples))
    return generator.permuted(orders, axis=1)


def _subsets(num_examples: int, size: int, rows: int, generator: np.random.Generator):
    """Draw a random subset a row: the first n new examples of a sequence."""
    # On average size² / 2N of n are repetitions, or a little more; a row with more
    # repetitions than the width allows is drawn again.
    width = size + int(size**2 / num_examples) + 12
    drawn = generator.integers(num_examples, size=(rows, width))
    keys = drawn * width + np.arange(width)
    keys.sort(-1)  # sorts by example, and for one example by place
    example, place = np.divmod(keys, width)
    first = np.diff(example, axis=-1, prepend=-1) > 0
    new = np.empty_like(first)
    np.put_along_axis(new, place, first, -1)
    new &= new.cumsum(-1) <= size
    short = new.sum(-1) < size
    chosen = np.empty((rows, size), dtype=drawn.dtype)
    chosen[~short] = drawn[~short][new[~short]].reshape(-1, size)
    if short.any():
        chosen[short] = _subsets(num_examples, size, int(short.sum()), generator)
    return chosen
