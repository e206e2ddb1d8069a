"""Predictions averaged over draws, and how to score them.

Every function raises a ValueError if it is given no probabilities, which are at least 0
and have sum 1 over the classes, targets that are no class numbers, or shapes that do
not match. scikit-learn has some of them; here they are formulas to be read.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from booklib.scores.checks import check_probabilities
from sgmc.checks import check_count, check_instance, check_tensor, is_number


def error_rate(probabilities: Tensor, targets: Tensor) -> float:
    """Compute the share of examples whose most probable class is wrong.

    Args:
        probabilities: ``(n, classes)``.
        targets: class numbers ``(n,)``.

    Example:
        >>> error_rate(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]))
        0.5
    """
    _check(probabilities, targets)
    return float((probabilities.argmax(-1) != targets).double().mean())


def log_score(probabilities: Tensor, targets: Tensor) -> float:
    """Compute the mean of −log P(yᵢ), in nats; smaller is better.

    Arguments are those of :func:`error_rate`. A probability that is zero in floating
    point counts as the smallest positive number.

    Example:
        >>> round(log_score(torch.tensor([[0.5, 0.5]]), torch.tensor([0])), 4)
        0.6931
    """
    _check(probabilities, targets)
    chosen = probabilities.gather(-1, targets.long()[:, None])[:, 0]
    return float(
        -chosen.clamp(min=torch.finfo(chosen.dtype).tiny).double().log().mean()
    )


def brier_score(probabilities: Tensor, targets: Tensor) -> float:
    """Compute the mean of Σₖ(P(k) − [k = yᵢ])² (Brier, 1950); between 0 and 2, smaller
    is better.

    Arguments are those of :func:`error_rate`.

    Example:
        >>> brier_score(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        0.5
    """
    _check(probabilities, targets)
    one_hot = torch.nn.functional.one_hot(targets.long(), probabilities.shape[-1])
    return float((probabilities.double() - one_hot).pow(2).sum(-1).mean())


def reliability_curve(
    probabilities: Tensor, targets: Tensor, num_bins: int = 10
) -> tuple[Tensor, Tensor, Tensor]:
    """Compare confidence with accuracy, in bins of equal width of the largest
    probability (Guo et al., 2017, eq. 2).

    Returns:
        Mean confidence, accuracy and number of examples of each bin, each
        ``(num_bins,)``; NaN in the first two where a bin is empty.

    Example:
        >>> reliability_curve(
        ...     torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]), num_bins=1
        ... )[1]
        tensor([0.5000], dtype=torch.float64)
    """
    _check(probabilities, targets)
    check_count("num_bins", num_bins)
    confidence, predicted = probabilities.double().max(-1)
    bins = (confidence * num_bins).long().clamp(max=num_bins - 1)
    count = torch.bincount(bins, minlength=num_bins)
    mean_confidence = torch.bincount(bins, confidence, num_bins) / count
    accuracy = torch.bincount(bins, (predicted == targets).double(), num_bins) / count
    return mean_confidence, accuracy, count


def expected_calibration_error(
    probabilities: Tensor, targets: Tensor, num_bins: int = 10
) -> float:
    """Compute Σ (share of the bin)·abs(accuracy − confidence) (Guo et al., 2017, eq.
    3).

    Arguments are those of :func:`reliability_curve`.

    Example:
        >>> expected_calibration_error(
        ...     torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])
        ... )
        0.5
    """
    confidence, accuracy, count = reliability_curve(probabilities, targets, num_bins)
    return float(
        (count * (accuracy - confidence).abs().nan_to_num()).sum() / count.sum()
    )


def predictive_entropy(probabilities: Tensor) -> Tensor:
    """Compute −Σₖ P(k) log P(k) of each example, in nats: ``(..., classes)`` →
    ``(...,)``.

    Example:
        >>> predictive_entropy(torch.tensor([1.0, 0.0]))
        tensor(-0.)
    """
    check_probabilities("probabilities", probabilities, "...", "classes")
    return -torch.special.xlogy(probabilities, probabilities).sum(-1)


def area_under_roc(inside: Tensor, outside: Tensor) -> float:
    """Compute the probability that a score from ``outside`` exceeds one from
    ``inside``, ties counting half (Fawcett, 2006, Section 7).

    It is 1 where the scores separate the two perfectly, and ½ where they say nothing.

    Args:
        inside: scores ``(n,)``, such as the entropies of predictions on digits.
        outside: scores ``(m,)``, such as those on letters.

    Example:
        >>> area_under_roc(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
        0.875
    """
    check_tensor("inside", inside, "n")
    check_tensor("outside", outside, "m")
    ordered = inside.double().sort().values
    outside = outside.double()
    below, not_above = (
        torch.searchsorted(ordered, outside),
        torch.searchsorted(ordered, outside, right=True),
    )
    return float((below + not_above).double().mean() / (2 * len(ordered)))


def answered(inside: Tensor, outside: Tensor, share: float = 0.8) -> float:
    """Compute the share of examples from ``outside`` that are answered where a share of
    those from ``inside`` is: a prediction is given if its largest probability is at
    least a threshold, which that share reaches.

    Args:
        inside: probabilities ``(n, classes)``, such as those of digits.
        outside: probabilities ``(m, classes)``, such as those of letters.
        share: of ``inside``, between 0 and 1.

    Example:
        >>> inside = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        >>> answered(inside, torch.tensor([[0.7, 0.3], [0.15, 0.85]]), share=0.5)
        0.5
    """
    check_probabilities("inside", inside, "n", "classes")
    check_probabilities("outside", outside, "m", "classes")
    if not (is_number(share) and 0 < share < 1):
        raise ValueError(f"share must be between 0 and 1, but it is {share!r}")
    sure, others = (each.double().max(-1).values for each in (inside, outside))
    return float((others >= sure.quantile(1 - share)).double().mean())


def rejection_curve(
    probabilities: Tensor, targets: Tensor, shares: Sequence[float]
) -> list[float]:
    """Compute the error rate on the remaining examples when the given shares of the
    examples, those of largest entropy, are rejected.

    Example:
        >>> rejection_curve(
        ...     torch.tensor([[0.9, 0.1], [0.4, 0.6]]), torch.tensor([0, 0]), [0.0, 0.5]
        ... )
        [0.5, 0.0]
    """
    _check(probabilities, targets)
    check_instance("shares", shares, Sequence, "[0.0, 0.5]")
    if not all(is_number(share) and 0 <= share < 1 for share in shares):
        raise ValueError(
            "shares must be numbers of at least 0 and less than 1, but they are "
            f"{shares}"
        )
    surest_first = predictive_entropy(probabilities).argsort(stable=True)
    wrong = (probabilities.argmax(-1) != targets)[surest_first].double()
    return [
        float(wrong[: max(1, round(len(wrong) * (1 - share)))].mean())
        for share in shares
    ]


def _check(probabilities: Tensor, targets: Tensor) -> None:
    check_tensor("probabilities", probabilities, "...")
    check_tensor("targets", targets, "...", floating=False)
    if probabilities.ndim != 2 or targets.shape != probabilities.shape[:1]:
        raise ValueError(
            "probabilities must be (n, classes) and targets (n,), but they are "
            f"{tuple(probabilities.shape)} and {tuple(targets.shape)}"
        )
    check_probabilities("probabilities", probabilities, "n", "classes")
    low, high, classes = int(targets.min()), int(targets.max()), probabilities.shape[1]
    if (
        targets.is_floating_point()
        or targets.dtype == torch.bool
        or not 0 <= low <= high < classes
    ):
        raise ValueError(
            f"targets must be class numbers from 0 to {classes - 1}, but they go from "
            f"{low} to {high} as {targets.dtype}"
        )
