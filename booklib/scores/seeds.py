"""One rule for differences over seeds: a gap, its interval, and whether it is decided.

A comparison belongs to a family, which is declared before the first of them is looked
at: the source's own comparisons, or ours. Runs with the same seed share their start and
their minibatches, so a paired t-test suits them; Welch's test makes nothing of the
pairs. To choose between two tests after both results amounts to choosing the answer, so
the larger p-value counts, and the wider 95 % interval is shown. Holm's procedure
decides within a family at 0.05; the interval is of one comparison alone, and may leave
zero out where Holm's procedure does not decide.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from booklib.numbers import with_the_digits_of

LEVEL, POWER = 0.05, 0.8
MOST_SEEDS = 1_000  # nobody runs more


@dataclass(frozen=True)
class Gap:
    """A difference of two means over seeds.

    Attributes:
        mean: of the first less the second.
        low, high: the ends of the wider 95 % interval of the two tests.
        p_value: the larger one of the two tests.
        num_seeds: of either.
        comparisons: how many its family has.
        decided: whether Holm's procedure rejects, within its family, that there is no
            difference.
    """

    mean: float
    low: float
    high: float
    p_value: float
    num_seeds: int
    comparisons: int = 1
    decided: bool = False

    def __str__(self) -> str:
        """Write the difference and its interval, with two digits of half the latter.

        Example:
            >>> str(Gap(-0.5362, -0.9033, -0.1691, 0.01, 5))
            '−0.54 [−0.90, −0.17]'
        """
        unsure = (self.high - self.low) / 20
        mean, low, high = (
            with_the_digits_of(number, unsure, 2)
            for number in (self.mean, self.low, self.high)
        )
        return f"{mean} [{low}, {high}]"

    def starred(self) -> str:
        """Write the difference and its interval, with a star if it is decided.

        Example:
            >>> Gap(-0.5362, -0.9033, -0.1691, 0.01, 5, decided=True).starred()
            '−0.54 [−0.90, −0.17] *'
        """
        return f"{self} *" if self.decided else str(self)

    def parts(self, margin: float | None = None) -> dict[str, str]:
        """Write the parts that a sentence may name: the mean, the verdict, and the
        number of seeds that would decide a difference as large as a margin.
        """
        verdict = "decided" if self.decided else "open"
        found = {"mean": str(self).split()[0], "verdict": verdict}
        if margin is not None:
            found["seeds"] = str(self.seeds_needed(margin))
        return found

    def is_within(self, margin: float) -> bool:
        """Tell whether the interval excludes a difference as large as a margin."""
        return -margin < self.low and self.high < margin

    def seeds_needed(self, margin: float) -> int:
        """Count the seeds with which a difference as large as a margin is decided with
        a probability of 80 %, at most 1,000: by a t-test as wide as this interval, at
        0.05 over the number of comparisons in the family.
        """
        half = (self.high - self.low) / 2
        spread = half * math.sqrt(self.num_seeds)
        spread /= stats.t.ppf(1 - LEVEL / 2, self.num_seeds - 1)
        numbers = np.arange(2, MOST_SEEDS)
        limits = stats.t.ppf(1 - LEVEL / self.comparisons / 2, numbers - 1)
        shifts = margin / spread * np.sqrt(numbers)
        enough = stats.nct.sf(limits, numbers - 1, shifts) >= POWER
        return int(numbers[enough][0]) if enough.any() else MOST_SEEDS


Pair = tuple[Sequence[float], Sequence[float]]


def gap(first: Sequence[float], second: Sequence[float]) -> Gap:
    """Compare two methods over their seeds, paired if both have equally many.

    Raises:
        ValueError: if there are fewer than three seeds of either.

    Example:
        >>> found = gap([1.9, 2.1, 2.0, 2.2, 1.8], [2.5, 2.4, 2.6, 2.3, 2.7])
        >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
        (-0.5, -0.88, -0.12)
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    fewest = min(len(first), len(second))
    if fewest < 3:
        raise ValueError(
            f"a difference over seeds needs at least three of each, but there are "
            f"{len(first)} and {len(second)}"
        )
    tests = [stats.ttest_ind(first, second, equal_var=False)]
    if len(first) == len(second):
        tests.append(stats.ttest_rel(first, second))
    wider = max((test.confidence_interval() for test in tests), key=np.ptp)
    p_value = max(float(test.pvalue) for test in tests)
    mean = float(first.mean() - second.mean())
    return Gap(mean, float(wider.low), float(wider.high), p_value, fewest)


def family(pairs: Mapping[str, Pair]) -> dict[str, Gap]:
    """Compare pairs of methods that belong to one question, and decide by Holm's
    procedure: the smallest of k p-values counts at 0.05/k, the next at 0.05/(k − 1), up
    to the first that is not smaller.

    Example:
        >>> near, far = [1.0, 1.1, 0.9], [5.0, 5.1, 4.8]
        >>> found = family({"far": (near, far), "same": (near, [1.05, 0.9, 1.1])})
        >>> found["far"].decided, found["same"].decided
        (True, False)
    """
    gaps = {name: gap(*pair) for name, pair in pairs.items()}
    decided, number = set(), len(gaps)
    for rank, name in enumerate(sorted(gaps, key=lambda name: gaps[name].p_value)):
        if not gaps[name].p_value < LEVEL / (number - rank):
            break
        decided.add(name)
    return {
        name: replace(found, comparisons=number, decided=name in decided)
        for name, found in gaps.items()
    }
