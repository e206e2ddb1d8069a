"""Distances from predictions to those of the posterior, in units of the reference's own
uncertainty.

Predictions are class probabilities averaged over draws, ``(n, classes)``. A regression
is brought to that form by :func:`bin_mixtures`: bins of the target are its classes.
"""

import itertools
import math

import torch
from torch import Tensor

from booklib.scores.checks import check_edges, check_probabilities
from sgmc.checks import check_positive, check_tensor


class NotMixedError(ValueError):
    """Chains that do not agree, so that they cannot serve as a reference."""


def agreement(first: Tensor, second: Tensor) -> float:
    """Compute the share of inputs on which both predictions have the same most probable
    class (Izmailov et al., 2021).

    Args:
        first: averaged predictions, ``(n, classes)``.
        second: others, ``(n, classes)``.

    Raises:
        ValueError: if these are no probabilities, or their shapes do not match.

    Example:
        >>> agreement(
        ...     torch.tensor([[0.9, 0.1], [0.4, 0.6]]),
        ...     torch.tensor([[0.6, 0.4], [0.6, 0.4]]),
        ... )
        0.5
    """
    _check(first, second)
    return float((first.argmax(-1) == second.argmax(-1)).double().mean())


def predictive_distance(first: Tensor, second: Tensor) -> float:
    """Compute the total variation ½Σₖ|p(k | x) − q(k | x)|, averaged over the inputs
    (Izmailov et al., 2021).

    Arguments are those of :func:`agreement`.

    Returns:
        A number from 0 to 1.

    Example:
        >>> predictive_distance(
        ...     torch.tensor([[0.75, 0.25], [0.5, 0.5]]),
        ...     torch.tensor([[0.5, 0.5], [0.5, 0.5]]),
        ... )
        0.125
    """
    _check(first, second)
    return float(0.5 * (first.double() - second.double()).abs().sum(-1).mean())


def bin_mixtures(outputs: Tensor, noise_variance: float, edges: Tensor) -> Tensor:
    """Integrate the predictive density of a regression, the mixture of N(f(x; θₛ), σ²)
    over the draws, on bins of the target.

    The total variation of two such rows is that of the densities, but for bins in which
    the densities cross: it is exact as the bins become narrow, and never too large.

    Args:
        outputs: f(x; θₛ), ``(draws, n)``.
        noise_variance: σ².
        edges: inner edges of the bins, ``(k,)``, increasing; the first and the last bin
            have no end.

    Returns:
        Probabilities ``(n, k + 1)`` float64.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> bin_mixtures(torch.tensor([[0.0], [2.0]]), 1.0, torch.tensor([0.0, 2.0]))
        tensor([[0.2614, 0.4772, 0.2614]], dtype=torch.float64)
    """
    check_tensor("outputs", outputs, "draws", "n")
    check_positive("noise_variance", noise_variance)
    check_edges(edges)
    edges, below = (
        edges.double(),
        outputs.new_zeros(outputs.shape[1], len(edges), dtype=torch.float64),
    )
    # All outputs at once would not fit into memory.
    for few in outputs.double().split(100):
        below += torch.special.ndtr(
            (edges - few[..., None]) / math.sqrt(noise_variance)
        ).sum(0)
    below = torch.nn.functional.pad(below / len(outputs), (1, 0))
    return torch.nn.functional.pad(below, (0, 1), value=1.0).diff(dim=-1)


def check_mixed(rhat: Tensor, at_most: float = 1.01) -> None:
    """Raise a :class:`NotMixedError` if an R̂, such as one of
    :func:`sgmc.predictions.function_space_rhat`, is larger than allowed.

    Example:
        >>> check_mixed(torch.tensor([1.0, 1.532]))
        Traceback (most recent call last):
        booklib.scores.fidelity.NotMixedError: the chains have not mixed: ...
    """
    largest = rhat.nan_to_num(nan=1.0)
    if largest.max() > at_most:
        place = tuple(int(index) for index in (largest == largest.max()).nonzero()[0])
        raise NotMixedError(
            f"the chains have not mixed: R̂ of the prediction {place} is "
            f"{float(largest.max()):.4g}, and a reference needs at most "
            f"{at_most}: draw more of each chain, or take longer trajectories"
        )


def error_floor(predictions: Tensor) -> tuple[Tensor, Tensor]:
    """Compare each half of the reference's chains with the other: more of the same
    sampling leaves these distances.

    Args:
        predictions: averaged predictions of each chain, ``(chains, n, classes)``.

    Returns:
        :func:`predictive_distance` and :func:`agreement` of every way to halve the
        chains, that of the first and the second half first; for eight chains both are
        ``(35,)``.

    Raises:
        ValueError: if the number of chains is odd, or these are no probabilities.

    Example:
        >>> distances, agreements = error_floor(
        ...     torch.tensor([[[0.5, 0.5]], [[0.25, 0.75]]])
        ... )
        >>> distances, agreements
        (tensor([0.2500], dtype=torch.float64), tensor([0.], dtype=torch.float64))
    """
    check_probabilities("predictions", predictions, "chains", "n", "classes")
    chains = len(predictions)
    if chains % 2:
        raise ValueError(
            "predictions must be of an even number of chains, which can be halved, "
            f"but there are {chains}"
        )
    distances, agreements = [], []
    for rest in itertools.combinations(range(1, chains), chains // 2 - 1):
        half = [0, *rest]
        other = [chain for chain in range(chains) if chain not in half]
        pair = predictions[half].mean(0), predictions[other].mean(0)
        distances.append(predictive_distance(*pair))
        agreements.append(agreement(*pair))
    return torch.tensor(distances, dtype=torch.float64), torch.tensor(
        agreements, dtype=torch.float64
    )


def _check(first: Tensor, second: Tensor) -> None:
    check_probabilities("first", first, "n", "classes")
    check_probabilities("second", second, "n", "classes")
    if first.shape != second.shape:
        raise ValueError(
            "first and second must be of the same inputs and classes, not "
            f"{tuple(first.shape)} and {tuple(second.shape)}"
        )
