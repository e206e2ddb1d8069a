"""Streams of random numbers, from a generator or a seed and a place."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Generator, Tensor

# A block of noise has so many numbers, which fit into a processor's second-level cache.
_ELEMENTS = 2**16


def normal_like(tensor: Tensor, generator: Generator) -> Tensor:
    """Draw standard normal noise with the shape, type and device of ``tensor``.

    Example:
        >>> first, again = Generator().manual_seed(0), Generator().manual_seed(0)
        >>> one = normal_like(torch.zeros(2, 3), first)
        >>> one.shape, bool((one == normal_like(one, again)).all())
        (torch.Size([2, 3]), True)
    """
    empty = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return empty.normal_(generator=generator)


def uniform_like(tensor: Tensor, generator: Generator, *rows: int) -> Tensor:
    """Draw numbers between 0 and 1: ``(*rows, *tensor.shape)``.

    Example:
        >>> numbers = uniform_like(torch.zeros(3), Generator().manual_seed(0), 4)
        >>> numbers.shape, bool((numbers < 1).all())
        (torch.Size([4, 3]), True)
    """
    place = {"dtype": tensor.dtype, "device": tensor.device}
    return torch.rand((*rows, *tensor.shape), generator=generator, **place)


def normal_block(
    tensor: Tensor, num_steps: int, generator: Generator, drawn: bool = True
) -> Tensor:
    """Draw ``(num_steps, *tensor.shape)`` normal numbers, or make zeros without
    drawing.

    Example:
        >>> normal_block(torch.ones(2, 1), 3, Generator(), drawn=False).shape
        torch.Size([3, 2, 1])
    """
    block = tensor.new_empty((num_steps, *tensor.shape))
    return block.normal_(generator=generator) if drawn else block.zero_()


def blocks(
    first_step: int, num_steps: int, position: Tensor
) -> Iterator[tuple[int, int]]:
    """Cut steps into blocks whose noise fits into the processor's cache, and is drawn
    at once: return for each block the number of its first step, and its size.

    Example:
        >>> list(blocks(10, 5, torch.zeros(2**15, 1)))
        [(10, 2), (12, 2), (14, 1)]
    """
    length = max(1, _ELEMENTS // max(1, position.numel()))
    for start in range(0, num_steps, length):
        yield first_step + start, min(length, num_steps - start)


def counter_based(seed: int, purpose: int, place: int) -> np.random.Generator:
    """Make the generator of one place of a stream: a pure function of its arguments
    (Philox; Salmon et al., 2011).

    Example:
        >>> bool(counter_based(0, 1, 7).random() == counter_based(0, 1, 7).random())
        True
    """
    # A list of both would become floating-point numbers if the seed is large.
    key = np.array([seed, purpose], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, place, 0, 0]))


def derived_seed(seed: int, purpose: str) -> int:
    """Derive another seed for a purpose from a run's seed, so that no two parts of the
    run replay the same numbers.

    Example:
        >>> derived_seed(0, "warm-up") != derived_seed(1, "warm-up")
        True
    """
    entropy = [seed % 2**64, *purpose.encode()]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
