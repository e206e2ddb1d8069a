"""Predictions and scores, against values worked out by hand, PyTorch's losses and
scipy's entropy.
"""

import math

import pytest
import scipy.stats
import torch
from torch.nn import functional

from booklib.scores.prediction import (
    answered,
    area_under_roc,
    brier_score,
    error_rate,
    expected_calibration_error,
    log_score,
    predictive_entropy,
    rejection_curve,
    reliability_curve,
)

PROBABILITIES = torch.tensor(
    [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]
)
TARGETS = torch.tensor([0, 1, 1, 2])


@pytest.fixture
def random(generator):
    return torch.randn(50, 4, generator=generator).softmax(-1), torch.randint(
        4, (50,), generator=generator
    )


def test_scores_by_hand():
    assert error_rate(PROBABILITIES, TARGETS) == 0.25
    assert log_score(PROBABILITIES, TARGETS) == pytest.approx(
        -(math.log(0.7) + math.log(0.3) + math.log(0.5)) / 4
    )
    brier = (
        (0.3**2 + 0.2**2 + 0.1**2)
        + (0.1**2 + 0.7**2 + 0.6**2)
        + (0.25**2 + 0.5**2 + 0.25**2)
        + 0
    )
    assert brier_score(PROBABILITIES, TARGETS) == pytest.approx(brier / 4)


def test_scores_are_those_of_pytorch(random):
    probabilities, targets = random
    assert log_score(*random) == pytest.approx(
        float(functional.nll_loss(probabilities.log(), targets)), rel=1e-6
    )
    squares = (
        functional.mse_loss(
            probabilities, functional.one_hot(targets, 4).float(), reduction="sum"
        )
        / 50
    )
    assert brier_score(*random) == pytest.approx(float(squares), rel=1e-6)


def test_the_best_and_the_worst_prediction():
    certain = torch.eye(3)
    right, wrong = torch.arange(3), torch.tensor([1, 2, 0])
    assert (
        error_rate(certain, right)
        == log_score(certain, right)
        == brier_score(certain, right)
        == 0
    )
    assert error_rate(certain, wrong) == 1 and brier_score(certain, wrong) == 2
    # finite, as zero is a rounded number
    assert log_score(certain, wrong) == pytest.approx(
        -math.log(torch.finfo(torch.float32).tiny)
    )


def test_reliability_by_hand():
    """Confidences 0.7, 0.6, 0.5 and 1.0, of which the second is wrong, in bins of width
    ¼.
    """
    confidence, accuracy, count = reliability_curve(PROBABILITIES, TARGETS, num_bins=4)
    assert count.tolist() == [0, 0, 3, 1]
    torch.testing.assert_close(
        confidence[2:], torch.tensor([0.6, 1.0], dtype=torch.float64), rtol=1e-6, atol=0
    )
    torch.testing.assert_close(
        accuracy[2:], torch.tensor([2 / 3, 1.0], dtype=torch.float64)
    )
    assert confidence[:2].isnan().all() and accuracy[:2].isnan().all()
    assert expected_calibration_error(
        PROBABILITIES, TARGETS, num_bins=4
    ) == pytest.approx(3 / 4 * (2 / 3 - 0.6), rel=1e-6)


def test_calibration_error_is_the_sum_over_bins(random):
    confidence, predicted = random[0].double().max(-1)
    total = 0.0
    for low in torch.arange(10) / 10:
        inside = (confidence >= low) & (confidence < low + 0.1)
        if inside.any():
            total += float(
                inside.double().mean()
                * abs(
                    (predicted == random[1])[inside].double().mean()
                    - confidence[inside].mean()
                )
            )
    assert expected_calibration_error(*random) == pytest.approx(total, rel=1e-9)
    assert [len(x) for x in reliability_curve(*random)] == [10, 10, 10]


def test_entropy_is_that_of_scipy(random):
    torch.testing.assert_close(
        predictive_entropy(random[0]),
        torch.from_numpy(scipy.stats.entropy(random[0], axis=-1)),
        check_dtype=False,
    )
    assert (
        predictive_entropy(torch.full((2, 3, 4), 0.25)).tolist()
        == [[pytest.approx(math.log(4))] * 3] * 2
    )
    assert predictive_entropy(torch.tensor([0.0, 1.0])) == 0


def test_area_under_roc_counts_pairs(generator):
    inside = torch.randint(6, (40,), generator=generator).double()
    outside = torch.randint(2, 9, (50,), generator=generator).double()
    pairs = outside[:, None] - inside
    expected = ((pairs > 0).double() + 0.5 * (pairs == 0)).mean()
    assert abs(area_under_roc(inside, outside) - float(expected)) < 1e-12
    assert area_under_roc(inside, inside) == 0.5


def test_what_is_at_least_as_sure_as_a_share_of_the_known_is_answered():
    """The threshold is the confidence of the second of six, 0.6."""
    inside = torch.tensor([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    outside = torch.tensor([0.55, 0.59, 0.61, 0.75, 0.95])
    both = [torch.stack([p, 1 - p], -1).double() for p in (inside, outside)]
    assert answered(*both, 0.8) == 3 / 5
    assert answered(both[0], both[0].flip(-1), 0.8) == 5 / 6
    with pytest.raises(ValueError, match="share must be between 0 and 1"):
        answered(*both, 1.0)


def test_rejection_drops_the_least_sure(generator):
    probabilities = torch.rand(50, 4, generator=generator).softmax(-1)
    targets = torch.randint(4, (50,), generator=generator)
    errors = rejection_curve(probabilities, targets, [0.0, 0.2, 0.5])
    order = sorted(range(50), key=lambda i: float(predictive_entropy(probabilities[i])))
    for error, left in zip(errors, (50, 40, 25), strict=True):
        wrong = [
            int(probabilities[i].argmax()) != int(targets[i]) for i in order[:left]
        ]
        assert abs(error - sum(wrong) / left) < 1e-12
