"""Fewer draws that represent all: evenly thinned, or herded so that the average of a
chosen feature stays close.
"""

import dataclasses

import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance, check_tensor
from sgmc.door.draws import Draws


def thin(draws: Draws, number: int) -> Draws:
    """Keep so many draws, evenly spaced from first to last and from all chains.

    The draws of all chains are put in one row, all chains' first ones first, and cut
    into ``number`` pieces of nearly equal length. Of the draw in the middle of a piece
    one chain is kept, the next one for each piece.

    Args:
        draws: the draws, ``samples`` being ``(num_samples, chains, ...)``.
        number: number of draws to keep.

    Returns:
        Draws of one chain, ``(number, 1, ...)``, with the statistics that those draws
        had, and ``index``, their places in the row.

    Raises:
        ValueError: if no draws are to be kept, or more than there are.

    Example:
        >>> thin(Draws(torch.arange(9.0).view(9, 1, 1)), 3).samples.flatten()
        tensor([1., 4., 7.])
    """
    total, pieces = _total(draws, number), torch.arange(number)
    chains = _first(draws).shape[1]
    middles = ((pieces.double() + 0.5) * total / number).long() // chains
    # The chain of the middle would always be the same one where the number of chains
    # divides the length of the pieces.
    return _select(draws, middles * chains + pieces % chains, f"thin({number})")


def herd(draws: Draws, number: int, gram: Tensor) -> Draws:
    """Choose draws one by one so that their mean feature stays as near as possible to
    that of all draws (Chen, Welling and Smola, 2010).

    With features φ and their mean μ over all draws, the next draw is the one of those
    left that makes the squared length of Σ(φ − μ) over the chosen least. Any first few
    of the chosen are what a herd of so many would be. Averages over them are plain
    means, without weights. They keep what the features hold, and of what they do not
    hold they may keep less than draws taken at random.

    Args:
        draws: the draws, ``samples`` being ``(num_samples, chains, ...)``.
        number: number of draws to keep.
        gram: the inner products of the features of every two draws, ``(n, n)`` for the
            n draws of all chains in one row, all chains' first ones first: ``features @
            features.mT``, or a kernel k(θ, θ′).

    Returns:
        Draws of one chain, ``(number, 1, ...)``, in the order of their choice, with the
        statistics that they had, ``index``, their places in the row, and ``distance``,
        how far the mean feature of the first few, up to each, is from that of all.

    Raises:
        ValueError: if no draws are to be kept, or more than there are, or the inner
            products are not theirs.

    Example:
        >>> features = torch.tensor([[0.0], [1.0], [2.0], [5.0]])
        >>> few = herd(Draws(features[:, None]), 3, features @ features.mT)
        >>> few.samples.flatten(), few.statistics["distance"].flatten()
        (tensor([2., 1., 5.]), tensor([0.0000, 0.5000, 0.6667], dtype=torch.float64))
    """
    total = _total(draws, number)
    check_tensor("gram", gram, "n", "n")
    if gram.shape != (total, total):
        raise ValueError(
            f"gram must be ({total}, {total}), for {total} draws of all chains, but it "
            f"is {tuple(gram.shape)}"
        )
    gram = gram.double()
    means = gram.mean(0)
    centred = gram - means - means[:, None] + means.mean()
    squares = centred.diagonal().clamp(min=0)
    # holds ⟨Σ(φ − μ) of the chosen, φ − μ⟩ of each draw
    toward = torch.zeros_like(squares)
    left, square = torch.ones_like(squares, dtype=torch.bool), 0.0
    chosen, distances = [], []
    for count in range(1, number + 1):
        growth = 2 * toward + squares
        best = int(torch.where(left, growth, torch.inf).argmin())
        # Rounding may take the last squares below zero.
        square = max(0.0, square + float(growth[best]))
        toward += centred[best]
        left[best] = False
        chosen.append(best)
        distances.append(square**0.5 / count)
    kept = _select(draws, torch.tensor(chosen), f"herd({number})")
    kept.statistics["distance"] = torch.tensor(distances, dtype=torch.float64)[:, None]
    return kept


def _first(draws: Draws) -> Tensor:
    samples = draws.samples
    return next(iter(samples.values())) if isinstance(samples, dict) else samples


def _total(draws: Draws, number: int) -> int:
    check_instance("draws", draws, Draws, "Draws(samples)")
    check_count("number", number)
    total = _first(draws).shape[:2].numel()
    if number > total:
        raise ValueError(
            f"number is {number}, but there are only {total} draws: keep fewer, or "
            "draw more"
        )
    return total


def _select(draws: Draws, index: Tensor, name: str) -> Draws:
    """Select draws by their places in the row of all draws."""

    def take(value: Tensor) -> Tensor:
        return value.flatten(0, 1)[index.to(value.device)][:, None]

    samples = (
        {key: take(value) for key, value in draws.samples.items()}
        if isinstance(draws.samples, dict)
        else take(draws.samples)
    )
    statistics = {key: take(value) for key, value in draws.statistics.items()} | {
        "index": index[:, None]
    }
    return dataclasses.replace(
        draws,
        samples=samples,
        statistics=statistics,
        kernel=f"{name} of {draws.kernel}",
    )
