"""Diagnostics against scipy's quadrature and tests, and distances worked out by
hand.
"""

import itertools
import math

import pytest
import scipy.integrate
import scipy.stats
import torch

from booklib.scores.diagnostics import (
    bin_probabilities,
    expectation,
    inverse_transform_samples,
    total_variation,
)
from sgmc.targets import DoubleWell, Gaussian

NORMAL = Gaussian(
    torch.tensor([[4.0]], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)
)
EDGES = torch.tensor([-15.0, -3.0, 0.0, 0.5, 4.0, 17.0])


def density(x):
    return math.exp(2 * x**2 - x**4)


def test_bins_of_the_normal_distribution_have_its_probabilities():
    expected = torch.from_numpy(scipy.stats.norm(1, 2).cdf(EDGES.double())).diff()
    probabilities = bin_probabilities(NORMAL, EDGES)
    torch.testing.assert_close(probabilities, expected, rtol=1e-9, atol=1e-12)
    assert float(probabilities.sum()) == pytest.approx(1, abs=1e-14)


def test_bins_and_expectations_of_the_double_well_are_those_of_scipys_quadrature():
    edges = [-3.0, -1.0, 0.2, 3.0]
    masses = torch.tensor(
        [scipy.integrate.quad(density, *pair)[0] for pair in itertools.pairwise(edges)],
        dtype=torch.float64,
    )
    torch.testing.assert_close(
        bin_probabilities(DoubleWell(), torch.tensor(edges)),
        masses / masses.sum(),
        rtol=1e-7,
        atol=0,
    )
    for function in (lambda x: x**2, lambda x: abs(x), lambda x: (x + 1) ** 3):
        exact = scipy.integrate.quad(
            lambda x: function(x) * density(x), -3, 3, points=[0]
        )[0] / float(masses.sum())
        assert expectation(DoubleWell(), function, -3, 3) == pytest.approx(
            exact, rel=1e-9
        )


@pytest.mark.parametrize(
    ("samples", "distance"),
    [
        ([0.1, 0.2, 1.5, 1.7], 0.25),  # frequencies ½, ½, 0
        ([0.1, 1.5, 1.6, 2.5], 0.0),
        ([0.1, 1.5, 1.6, 9.0], 0.25),  # one in the wrong place, outside of the edges
        ([9.0, 9.0, -1.0, -1.0], 1.0),
        ([2.5, 2.5, 2.5, 2.5], 0.75),
    ],
)
def test_total_variation_by_hand(samples, distance):
    probabilities, edges = (
        torch.tensor([0.25, 0.5, 0.25]),
        torch.tensor([0.0, 1.0, 2.0, 3.0]),
    )
    assert total_variation(
        torch.tensor(samples), probabilities, edges
    ) == pytest.approx(distance, abs=1e-12)
    assert total_variation(
        torch.tensor(samples).reshape(2, 2, 1), probabilities, edges
    ) == pytest.approx(distance, abs=1e-12)


def test_exact_draws_have_the_distribution_function(generator):
    """False alarms: 1 in 10,000 for each test of Kolmogorov and Smirnov."""
    values = inverse_transform_samples(NORMAL, 20_000, -15, 17, generator)
    assert (
        values.dtype == torch.float64
        and scipy.stats.kstest(values, scipy.stats.norm(1, 2).cdf).pvalue > 1e-4
    )
    values = inverse_transform_samples(DoubleWell(), 20_000, -3, 3, generator)
    grid = torch.linspace(-3, 3, 4_001, dtype=torch.float64)
    distribution = scipy.integrate.cumulative_simpson(
        torch.exp(2 * grid**2 - grid**4), x=grid, initial=0
    )
    distribution = torch.from_numpy(distribution / distribution[-1])
    assert (
        scipy.stats.kstest(
            values, scipy.interpolate.interp1d(grid, distribution)
        ).pvalue
        > 1e-4
    )
