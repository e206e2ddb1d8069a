"""Which examples a chain sees at a step: rules, each a pure function of the seed, the
step and the chain.

The same seed gives the same minibatches, wherever a run is taken up: their numbers come
from a counter-based generator. For speed those of neighbouring steps are made together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance
from sgmc.randomness import counter_based

# at most so many steps, and about so many indices, are drawn together
_STEPS, _INDICES = 32, 2**14
_FRESH, _PASSES, _COUNTED = 1, 2, 3  # purposes of the streams
# numbers of a tensor of which some examples, or tenths of all, are made
_LOOKED_AT, _MANY = 2**16, 2**24


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
        CPU, which nobody changes in place. A ValueError if the batch does not fit.
        """
        ...


@dataclass(frozen=True)
class Fresh:
    """A uniformly random subset of the data, or with replacement a random sequence of
    examples, at every step and for every chain its own.

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
    """The next slice of the data, in an order shuffled anew for every pass, and for
    every chain its own.

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
        number, place = divmod(step, num_examples // batch_size)
        return _pass(num_examples, batch_size, chains, seed, number)[place]


@dataclass(frozen=True)
class Held:
    """One minibatch of another rule for so many steps, then the next.

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


def check_rule(
    rule: MinibatchRule,
    num_examples: int,
    batch_size: int,
    seed: int,
    data: Sequence[Tensor] = (),
) -> None:
    """Raise a ValueError if a rule gives minibatches of another shape, or all chains
    the same one, where chance does not, or chooses some examples more often than others
    (:func:`check_uniform`), which those of this module do not.
    """
    name = f"minibatches: {type(rule).__name__}.indices"
    drawn = rule.indices(num_examples, batch_size, 2, seed, 0)
    if drawn.shape != (2, batch_size):
        raise ValueError(
            f"{name} must return (chains, n), here (2, {batch_size}), but it returned "
            f"{tuple(drawn.shape)}"
        )
    if torch.equal(*drawn) and math.comb(num_examples, batch_size) > 10**6:
        raise ValueError(
            f"{name} gives all chains the same minibatch, so that chains are not "
            "independent and standard errors too small: choose another one for each"
        )
    while type(rule) is Held:
        rule = rule.rule
    if type(rule) not in (Fresh, Passes):
        check_uniform(rule, num_examples, batch_size, seed, data)


def check_uniform(
    rule: MinibatchRule,
    num_examples: int,
    batch_size: int,
    seed: int,
    data: Sequence[Tensor] = (),
) -> None:
    """Raise a ValueError if of some 400 minibatches of a rule, at random steps, an
    example is in too many or too few, or the share of a tenth of the data, by place or
    by the values of a tensor, is off by more than a tenth.

    Minibatches need be independent, and not the examples in one. By chance that happens
    to a uniform rule less than once in a million times.
    """
    number = min(2_000, max(400, 40 * num_examples // batch_size))
    # far apart, for neighbours may have the same minibatch, or belong to one pass
    steps = counter_based(seed, _COUNTED, 0).integers(2**31, size=number).tolist()
    given = num_examples, batch_size, 2, seed
    try:
        drawn = torch.stack([rule.indices(*given, step)[0] for step in steps])
    except LookupError:  # a rule for fewer steps
        return
    found: list[tuple[float, str]] = []
    keys = {"their place": torch.arange(num_examples)} | {
        f"tensor {number} of the data": _keys(x)
        for number, x in enumerate(data)
        if x.numel() <= _MANY
    }
    for name, key in keys.items():
        tenths = torch.empty_like(key, dtype=torch.int64)
        tenths[key.argsort()] = torch.arange(num_examples) * 10 // num_examples
        sizes = tenths.bincount(minlength=10) / num_examples * batch_size
        cells = tenths[drawn] + 10 * torch.arange(number)[:, None]
        came = cells.flatten().bincount(minlength=10 * number).view(-1, 10).double()
        mean, variance = came.mean(0), came.var(0) + sizes  # at least that of chance
        off = (mean - sizes).abs()
        odd = (off > 0.1 * sizes) & (off > 7 * (variance / number).sqrt())
        for place in odd.nonzero().flatten().tolist():
            ratio = float(mean[place] / sizes[place])
            text = (
                f"of the tenths of the examples by {name}, from the least, number "
                f"{place + 1} comes {ratio:.2f} times as often as it should"
            )
            found.append((abs(ratio - 1), text))
    expected = drawn.numel() / num_examples  # of each example
    counts = drawn.flatten().bincount(minlength=num_examples).double()
    # Chernoff's bound of a count's tail, for a sum of independent ones of 0 and 1
    tail = torch.special.xlogy(counts, counts / expected) - counts + expected
    place = int(tail.argmax())
    if tail.max() > math.log(1e7 * num_examples):
        text = (
            f"example {place} came {int(counts[place])} times in {number} minibatches, "
            f"where {expected:.3g} are expected"
        )
        found.append((0.0, text))
    if found:
        raise ValueError(
            f"minibatches: {type(rule).__name__}.indices does not choose the examples "
            f"uniformly, and N/n is no right scale then: {max(found)[1]}. Choose each "
            "equally often; what shall weigh more gets a weight in the likelihood"
        )


def spread(data: Sequence[Tensor], most: int) -> Tensor:
    """Choose examples from all over the data, at most so many, by their place and by
    the values of each tensor, the last one first: for each the rarest value, the least,
    the largest, and some between: ``(m,)`` int64, in their order.

    Example:
        >>> rare = torch.zeros(1_000)
        >>> rare[123] = 1.0
        >>> spread([rare], most=4)
        tensor([  0, 123, 499, 999])
    """
    number = len(data[0])
    every = torch.tensor([0.0, 1.0, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875])
    lists = [(every * (number - 1)).long().tolist()]
    for x in data:
        stride = x.numel() // _LOOKED_AT + 1
        values, order = _keys(x[::stride]).sort(stable=True)
        counts = values.unique_consecutive(return_counts=True)[1]
        first = order[counts.cumsum(0) - counts] * stride
        between = first[(every * (len(first) - 1)).long()]
        lists.insert(0, [int(first[counts.argmin()]), *between.tolist()])
    chosen = dict.fromkeys(x for each in zip_longest(*lists) for x in each)
    chosen.pop(None, None)
    return torch.tensor(sorted(list(chosen)[:most]))


def _keys(x: Tensor) -> Tensor:
    """Make a number of each example of a tensor that tells it from others: ``(N,)``."""
    x = x.detach()[:, None].flatten(1).float()
    weights = torch.arange(1.0, x.shape[1] + 1, device=x.device).sqrt()
    return (x * weights).sum(1).nan_to_num().cpu()


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
    """Give the number of steps whose fresh minibatches are drawn together."""
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
    """Shuffle the data, and cut them: for each step of a pass ``(chains, n)``."""
    orders = _shuffled(num_examples, chains, counter_based(seed, _PASSES, number))
    whole = num_examples // size * size
    return list(torch.from_numpy(orders)[:, :whole].split(size, 1))


def _shuffled(num_examples: int, rows: int, generator: np.random.Generator):
    orders = np.broadcast_to(np.arange(num_examples), (rows, num_examples))
    return generator.permuted(orders, axis=1)


def _subsets(num_examples: int, size: int, rows: int, generator: np.random.Generator):
    """Draw a random subset a row: the first n that are new in a sequence."""
    # On average size² / 2N of n are repetitions of others, or a little more; a row that
    # has more than there is room for is drawn again.
    width = size + int(size**2 / num_examples) + 12
    drawn = generator.integers(num_examples, size=(rows, width))
    keys = drawn * width + np.arange(width)
    keys.sort(-1)  # by example, and for one example by place
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
