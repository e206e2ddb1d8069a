"""Networks with fewer weights."""

import dataclasses

import torch

from booklib.scores.checks import check_draws
from sgmc.checks import check_number
from sgmc.door.draws import Draws


def prune(draws: Draws, share: float) -> Draws:
    """Set the weights with the smallest ratio of signal to noise, ``|μ|/σ``, to zero in
    all draws of a chain (Blundell et al., 2015, Section 5.1).

    Args:
        draws: with the statistics ``mean`` and ``std``, as those of
            :func:`booklib.rivals.variational`.
        share: of a chain's weights, from 0 to less than 1; a number of weights that is
            not whole is rounded down.

    Raises:
        ValueError: if an argument is out of its range, or a statistic is missing.

    Example:
        >>> statistics = {
        ...     "mean": torch.tensor([[[1.0, -2.0]]]),
        ...     "std": torch.tensor([[[0.1, 1.0]]]),
        ... }
        >>> prune(Draws(torch.tensor([[[1.1, -1.5]]]), statistics), 0.5).samples
        tensor([[[1.1000, 0.0000]]])
    """
    check_draws("draws", draws, "mean", "std")
    check_number("share", share, 0, 1)
    signal = (draws.statistics["mean"] / draws.statistics["std"])[0].abs()
    pruned = signal.argsort(-1)[:, : int(share * signal.shape[-1])]
    kept = torch.ones_like(signal, dtype=torch.bool).scatter(-1, pruned, False)
    return dataclasses.replace(draws, samples=draws.samples.where(kept, 0.0))
