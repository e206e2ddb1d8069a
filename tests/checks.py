"""What the tests check in common: statistics with a known rate of false alarms."""

import math

import torch

from sgmc import sample


def z_bound(number: int, false_alarm: float = 1e-4) -> float:
    """Give the bound on |z| that ``number`` standard normal statistics exceed together
    with probability ``false_alarm`` at most.
    """
    return math.sqrt(2) * float(
        torch.special.erfinv(
            torch.tensor(1 - false_alarm / number, dtype=torch.float64)
        )
    )


def assert_covariance(
    samples: torch.Tensor, expected: torch.Tensor, false_alarm: float = 1e-4
) -> None:
    """Compare the second moments of zero-mean chains with their exact values, by
    z-tests with a Bonferroni correction.

    ``samples`` is (draws, chains, dim): chains are independent, so the spread of their
    averages is the Monte Carlo error, whatever the autocorrelation within a chain. With
    a hundred chains or more the averages are normal to good accuracy."""
    moments = torch.einsum("tci,tcj->cij", samples.double(), samples.double()) / len(
        samples
    )
    rows, columns = torch.triu_indices(*expected.shape).unbind()
    moments, expected = moments[:, rows, columns], expected[rows, columns]
    z = (moments.mean(0) - expected) / (moments.std(0) / len(moments) ** 0.5)
    assert z.abs().max() < z_bound(len(z), false_alarm), (
        f"z = {z.tolist()}, moments {moments.mean(0)}, expected {expected}"
    )


def assert_leaves_exact_draws_invariant(
    target, kernel, chains: int, steps: int, generator: torch.Generator
) -> None:
    """Start chains in exact draws from the target and see that their moments stay, by
    paired z-tests with a Bonferroni correction.
    """
    start = target.exact_samples(chains, generator)
    moved = (
        sample(kernel, target, start, num_samples=1, warm_up=steps - 1, seed=2)
        .samples[0]
        .double()
    )
    before, after = (
        torch.cat([x, x**2, x[:, :1] * x[:, 1:2]], -1).clamp(-50, 50)
        for x in (start.double(), moved)
    )
    difference = after - before  # paired: the same chain before and after
    z = difference.mean(0) / (difference.std(0) / len(difference) ** 0.5)
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"
