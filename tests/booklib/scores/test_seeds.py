"""Differences over seeds: what scipy says of each pair, Holm's steps, and the power."""

import math

import numpy as np
import pytest
from scipy import stats

from booklib.scores.seeds import MOST_SEEDS, Gap, family, gap

RNG = np.random.default_rng(0)


def test_the_larger_p_value_and_the_wider_interval_count():
    for shared in (0.0, 1.0):  # with pairs that have nothing or much in common
        common = shared * RNG.normal(size=5)
        first, second = (common + RNG.normal(m, 0.3, 5) for m in (0.0, 0.5))
        found = gap(first, second)
        tests = (
            stats.ttest_rel(first, second),
            stats.ttest_ind(first, second, equal_var=False),
        )
        assert found.p_value == max(test.pvalue for test in tests)
        ends = [test.confidence_interval(0.95) for test in tests]
        assert found.high - found.low == pytest.approx(max(map(np.ptp, ends)))
        assert (found.low + found.high) / 2 == pytest.approx(found.mean)
        assert found.mean == pytest.approx(first.mean() - second.mean())


def test_groups_of_different_sizes_have_no_pairs():
    first, second = RNG.normal(size=4), RNG.normal(size=6)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert gap(first, second).p_value == expected.pvalue
    assert gap(first, second).num_seeds == 4


def test_a_gap_is_written_with_two_digits_of_half_its_interval():
    assert str(Gap(0.0301, -0.4419, 0.5021, 0.9, 5)) == "0.03 [−0.44, 0.50]"
    assert str(Gap(-5.668, -7.099, -4.237, 0.1, 5)) == "−5.7 [−7.1, −4.2]"
    assert str(Gap(1234.5, 1000.0, 1469.0, 0.1, 5)) == "1,230 [1,000, 1,470]"


def test_no_finding_from_two_seeds():
    with pytest.raises(ValueError, match=r"three.* 2 and 5"):
        gap([1, 2], [1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("p_values", "decided"),
    [
        ((0.04,), "a"),
        ((0.04, 0.04), ""),  # Bonferroni's and Holm's first step
        ((0.02, 0.04), "ab"),  # Holm's second step, which Bonferroni does not take
        ((0.001, 0.03, 0.03), "a"),
        ((0.03, 0.001, 0.03), "b"),
        ((0.03, 0.001, 0.02), "abc"),
        ((0.02, 0.021, 0.001), "abc"),
        ((0.06, 0.001, 0.02), "bc"),
    ],
)
def test_holms_procedure(p_values, decided, monkeypatch):
    """The decisions are those of the definition, written out by hand."""
    given = iter(p_values)
    monkeypatch.setattr(
        "booklib.scores.seeds.gap", lambda *pair: Gap(0.0, -1.0, 1.0, next(given), 5)
    )
    found = family({name: ([], []) for name in "abc"[: len(p_values)]})
    assert "".join(name for name in found if found[name].decided) == decided
    assert {one.comparisons for one in found.values()} == {len(p_values)}


def test_a_difference_is_excluded_only_by_the_whole_interval():
    found = Gap(0.05, -0.1, 0.2, 0.4, 5)
    assert found.is_within(0.21) and not found.is_within(0.2)
    assert not Gap(-0.05, -0.2, 0.1, 0.4, 5).is_within(0.2)


def test_so_many_seeds_have_the_power_that_is_asked_for():
    """By simulation: with the number that is named 80 % of the experiments decide."""
    spread, margin = 0.3, 0.25
    half = spread / math.sqrt(5) * stats.t.ppf(0.975, 4)
    found = Gap(0.0, -half, half, 0.5, 5, comparisons=4)
    number = found.seeds_needed(margin)
    draws = np.random.default_rng(1).normal(margin, spread, (20_000, number))
    share = (stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05 / 4).mean()
    assert 0.8 - 0.015 < share < 0.8 + 0.06, (number, share)
    fewer = draws[:, :-1]
    assert (stats.ttest_1samp(fewer, 0, axis=1).pvalue < 0.05 / 4).mean() < 0.81
    assert found.seeds_needed(1e-6) == MOST_SEEDS


@pytest.mark.parametrize("comparisons", [1, 6])
def test_the_number_of_seeds_is_the_first_with_the_power(comparisons):
    """At least two; the interval may be anywhere."""
    half = 0.5 / math.sqrt(7) * stats.t.ppf(0.975, 6)
    for margin in (0.2, 0.5, 3.0, 50.0):
        power = [
            stats.nct.sf(
                stats.t.ppf(1 - 0.025 / comparisons, n - 1), n - 1, 2 * margin * n**0.5
            )
            for n in range(2, 200)
        ]
        expected = next(n for n, found in enumerate(power, 2) if found >= 0.8)
        found = Gap(1.0, 1 - half, 1 + half, 0.5, 7, comparisons)
        assert found.seeds_needed(margin) == expected
        assert found.parts(margin)["seeds"] == str(expected)
    assert MOST_SEEDS == 1_000 and Gap(0.0, -1.0, 1.0, 0.5, 3).comparisons == 1
