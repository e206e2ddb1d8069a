"""Checks of probabilities, of bins, and of draws with statistics."""

from typing import Any

import torch
from torch import Tensor

from sgmc.checks import check_instance, check_tensor
from sgmc.door.draws import Draws


def check_probabilities(name: str, value: Any, *axes: str) -> None:
    """Raise a ValueError unless ``value`` is a tensor of probabilities that sum to 1
    over the last axis, up to rounding.

    Example:
        >>> check_probabilities(
        ...     "probabilities", torch.tensor([[3.0, -1.0]]), "n", "classes"
        ... )
        Traceback (most recent call last):
        ValueError: probabilities must be at least 0 with sum 1 over classes, but go
            down to -1 and sum to 2...2: give no logits or logs
    """
    check_tensor(name, value, *axes)
    smallest, sums = float(value.min()), value.sum(-1, dtype=torch.float64)
    # The bound admits half precision, which has three digits.
    if smallest < 0 or (sums - 1).abs().max() > 0.01:
        raise ValueError(
            f"{name} must be at least 0 with sum 1 over {axes[-1]}, but go down to "
            f"{smallest:.4g} and sum to "
            f"{float(sums.min()):.4g}...{float(sums.max()):.4g}: give no logits or logs"
        )


def check_draws(name: str, value: Any, *statistics: str) -> None:
    """Raise a ValueError unless ``value`` holds draws in one tensor, with statistics of
    these names.

    Example:
        >>> check_draws("draws", Draws(torch.zeros(3, 2, 1)), "weight")
        Traceback (most recent call last):
        ValueError: draws must have the statistic weight, but has none
    """
    check_instance(name, value, Draws, "Draws(samples)")
    if isinstance(value.samples, dict):
        raise ValueError(
            f"{name} must have positions in one tensor, but has {[*value.samples]}: "
            "sample without collect"
        )
    for statistic in statistics:
        if statistic not in value.statistics:
            raise ValueError(
                f"{name} must have the statistic {statistic}, but has "
                f"{', '.join(value.statistics) or 'none'}"
            )


def check_indices(name: str, value: Any, number: int) -> None:
    """Raise a ValueError unless ``value`` has distinct whole numbers below a limit,
    int64 ``(size,)``.
    """
    check_tensor(name, value, "size", floating=False)
    different = f"{value.dtype}" == "torch.int64" and len(value.unique()) == len(value)
    right = different and 0 <= int(value.min()) <= int(value.max()) < number
    what = f"different numbers of torch.int64 from 0 to {number - 1}"
    if not right:
        given = value.dtype, value.tolist()
        raise ValueError(f"{name} must be {what}, but it is {given!r}")


def check_edges(edges: Tensor) -> None:
    """Raise a ValueError unless the edges of bins increase."""
    check_tensor("edges", edges, "bins + 1", floating=False)
    if len(edges) < 2 or not (edges.diff() > 0).all():
        raise ValueError(
            "edges must be at least two numbers that increase, but they are "
            f"{edges.tolist()}"
        )
