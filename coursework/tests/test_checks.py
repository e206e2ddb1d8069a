"""The checks with which answers are graded: their examples, their size and their
power.
"""

import doctest
import importlib.util
from pathlib import Path

import pytest
import torch

spec = importlib.util.spec_from_file_location(
    "checks",
    Path(__file__).resolve().parents[2] / "coursework" / "assignments" / "checks.py",
)
checks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checks)


@pytest.fixture(autouse=True)
def in_double_precision():
    """Let the default dtype be double, as it is in the assignments."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def draws(*shape, seed=0):
    return torch.randn(*shape, generator=checks.seeded(seed), dtype=torch.float64)


def uniform(*shape, seed=0):
    return torch.rand(*shape, generator=checks.seeded(seed), dtype=torch.float64)


def test_the_examples():
    assert doctest.testmod(checks).failed == 0


@pytest.mark.parametrize(
    ("samples", "check"),
    [
        (
            draws(1_500, 20),
            lambda sample: checks.assert_mean(sample, sample.shape, 0.0, "it", std=1.0),
        ),
        (
            draws(1_500, 20, 3),
            lambda sample: checks.assert_mean(sample, sample.shape, 0.0, "it", std=1.0),
        ),
        (
            draws(1_500, 40),
            lambda sample: checks.assert_normal(sample, (40,), 0.0, 1.0, "it"),
        ),
        (
            3 + 2 * draws(1_000, 500),
            lambda sample: checks.assert_normal(sample, (500,), 3.0, 4.0, "it"),
        ),
        (
            uniform(1_500, 500) < 0.3,
            lambda sample: checks.assert_share(sample, sample.shape, 0.3, "it"),
        ),
        (
            uniform(1_000, 500, 3) < 0.3,
            lambda sample: checks.assert_share(sample, sample.shape, 0.3, "it"),
        ),
    ],
    ids=["a mean", "three means", "a normal law", "another", "a share", "three shares"],
)
def test_the_false_alarm_rate(samples, check):
    # At a rate raised to 0.01 the number of alarms is at most Binomial(n, 0.01), and of
    # the checks without a discrete law or a Bonferroni bound nearly that: n/100 with a
    # standard deviation of (n/100)^½. The test itself fails for a right check once in
    # 100,000 times.
    alarms = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "FALSE_ALARM", 0.01)
        for sample in samples:
            try:
                check(sample)
            except AssertionError:
                alarms += 1
    expected = len(samples) / 100
    assert expected / 2 - 2 < alarms < expected + 4.4 * expected**0.5


def test_an_assignment_stays_below_one_in_ten_thousand():
    assert 15 * checks.FALSE_ALARM < 1e-4


@pytest.mark.parametrize("outlier", [1e30, -1e30, 1e100, 300.0])
@pytest.mark.parametrize(
    "check",
    [
        lambda values: checks.assert_mean(values, (10_000,), 0.5, "it", std=1.0),
        lambda values: checks.assert_normal(values, (10_000,), 0.5, 1.0, "it"),
    ],
    ids=["a mean", "a normal law"],
)
def test_an_outlier_does_not_widen_the_tolerance(check, outlier):
    values = draws(10_000)  # of another mean
    values[17] = outlier
    with pytest.raises(AssertionError):
        check(values)


WRONG_LAWS = {
    "another mean": draws(10_000) + 0.08,
    "another variance": 1.06 * draws(10_000),
    "uniform": 12**0.5 * (uniform(10_000) - 0.5),
    "two values": draws(10_000).sign(),
    "heavy tails": draws(10_000) * draws(10_000, seed=1),
    "one draw, many times": draws(1).expand(10_000),
    "quantiles, which fit too well": torch.special.ndtri(
        (torch.arange(10_000).double() + 0.5) / 10_000
    ),
    "zeros": torch.zeros(10_000, dtype=torch.float64),
}


@pytest.mark.parametrize("values", WRONG_LAWS.values(), ids=WRONG_LAWS.keys())
def test_what_is_not_the_normal_law_is_found_out(values):
    with pytest.raises(AssertionError, match="more than chance allows"):
        checks.assert_normal(values, (10_000,), 0.0, 1.0, "it")


def test_the_bound_is_shared_among_entries():
    values = draws(1_000, 3)
    values[:, 2] += 0.2
    with pytest.raises(AssertionError, match="should be 0, but it is"):
        checks.assert_mean(values, (1_000, 3), 0.0, "the mean", std=1.0)


NOT_FINITE = torch.tensor([1.0, float("inf")], dtype=torch.float64)
FEW = torch.zeros(1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        ("assert_close", (torch.ones(2), torch.ones(3), "it"), "it should be of shape"),
        ("assert_close", (float("nan"), 1.0, "it"), "it should be 1, but it is nan"),
        ("assert_close", (1e30, 1.0, "it"), "it should be 1, but it is 1e"),
        (
            "assert_close",
            (None, 1.0, "it"),
            "it should be a number or a tensor, but it is None",
        ),
        ("assert_close", (True, 1.0, "it"), "it should be real"),
        ("assert_close", (1 + 1e-3j, 1.0, "it"), "it should be real"),
        (
            "assert_close",
            (torch.tensor(1.0, dtype=torch.float16) + 1e-3, 1.0, "it"),
            "it should be 1, but it is",
        ),
        ("assert_shape", (3.0, (1,), "it"), "it should be a tensor, but it is 3.0"),
        (
            "assert_shape",
            (torch.zeros(2, dtype=torch.int64), (2,), "it"),
            "it should be of dtype torch.float64, but it is of torch.int64",
        ),
        (
            "assert_shape",
            (torch.ones(2), (2,), "it", torch.bool),
            "it should be of dtype torch.bool",
        ),
        ("assert_shape", (NOT_FINITE, (2,), "it"), "it should be finite"),
        ("assert_mean", (NOT_FINITE, (2,), 1.0, "it", 1.0), "finite"),
        (
            "assert_mean",
            (torch.tensor([True, False]), (2,), 0.5, "it", 0.5),
            "it should be of dtype torch.float64",
        ),
        ("assert_normal", (NOT_FINITE, (2,), 0.0, 1.0, "it"), "finite"),
        (
            "assert_normal",
            (FEW, (4,), 0.0, 1.0, "it"),
            r"of shape \(4,\), but it is of",
        ),
        ("assert_close", (FEW.float(), FEW, "it"), "of dtype torch.float64, but"),
        (
            "assert_normal",
            (draws(1_000) * 2, (1_000,), 0.0, 2.0, "it"),
            "it should have the variance 2",
        ),
        (
            "assert_share",
            (uniform(1_000, 2) < torch.tensor([0.5, 0.7]), (1_000, 2), 0.5, "it"),
            "it should be 0.5, but it is 0.7",
        ),
        ("assert_share", (torch.arange(1_000) % 2 == 0, (1_000,), 0.5, "it"), None),
    ],
)
def test_what_is_wrong_is_said(check, arguments, message):
    if message is None:
        getattr(checks, check)(*arguments)
        return
    with pytest.raises(AssertionError, match=message):
        getattr(checks, check)(*arguments)
