"""The checks with which answers are graded: their examples, their size and their power."""

import doctest
import importlib.util
from pathlib import Path

import pytest
import torch

spec = importlib.util.spec_from_file_location("checks", Path(__file__).resolve().parents[2] / "book" / "assignments" / "checks.py")
checks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checks)


def test_the_examples():
    assert doctest.testmod(checks).failed == 0


def test_the_false_alarm_rate():
    # 20,000 t-tests of 20 draws each: at a rate raised to 0.01, the number of alarms is Binomial(20,000, 0.01), 200 ± 14.
    generator = torch.Generator().manual_seed(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "FALSE_ALARM", 0.01)
        alarms = 0
        for draws in torch.randn(20_000, 20, generator=generator):
            try:
                checks.assert_mean(draws, 0.0, "the mean")
            except AssertionError:
                alarms += 1
    assert abs(alarms - 200) < 4.5 * 14.1


def test_an_assignment_stays_below_one_in_ten_thousand():
    assert 15 * checks.FALSE_ALARM < 1e-4


def test_the_bound_is_shared_among_entries():
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(1_000, 3, generator=generator)
    draws[:, 2] += 0.2
    with pytest.raises(AssertionError, match="should be 0, but it is"):
        checks.assert_mean(draws, 0.0, "the mean")


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        ("assert_close", (torch.ones(2), torch.ones(3), "it"), "it should be of shape"),
        ("assert_close", (float("nan"), 1.0, "it"), "it should be 1, but it is nan"),
        ("assert_close", (None, 1.0, "it"), "it should be a number or a tensor, but it is None"),
        ("assert_shape", (3.0, (1,), "it"), "it should be a tensor, but it is 3.0"),
        ("assert_mean", (torch.tensor([1.0, float("inf")]), 1.0, "it"), "not finite"),
        ("assert_variance", (torch.randn(1_000) * 2, 2.0, "it"), "standard errors away"),
        ("assert_covariance", (torch.randn(1_000, 2) @ torch.tensor([[1.0, 1.0], [0.0, 1.0]]), torch.eye(2), "it"), "standard errors away"),
    ],
)
def test_what_is_wrong_is_said(check, arguments, message):
    with pytest.raises(AssertionError, match=message):
        getattr(checks, check)(*arguments)
