"""Diagnostics against scipy's quadrature and tests, and distances worked out by
hand.
"""

import itertools
import math

import numpy
import pytest
import scipy.integrate
import scipy.stats
import torch

from booklib.scores.diagnostics import (
    bin_probabilities,
    expectation,
    inverse_transform_samples,
    stein_discrepancy,
    total_variation,
)
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from tests.checks import z_bound

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


def stein_kernel(potential, x, y, scale=1.0):
    """h(x, y) of two draws: with two, the mean over all pairs is that of one pair."""
    draws = torch.tensor([[x], [y]], dtype=torch.float64)
    return stein_discrepancy(
        potential, draws, torch.Generator(), torch.tensor([scale], dtype=torch.float64)
    )[0]


@pytest.mark.parametrize(
    ("potential", "low", "high"), [(NORMAL, -17, 19), (DoubleWell(), -4, 4)]
)
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_the_stein_kernel_has_mean_zero_under_the_target_whatever_the_other_draw(
    potential, low, high, scale
):
    """By quadrature over y: a wrong sign, factor or power in any of its four terms
    leaves a mean that is not zero.
    """
    points, weights = (
        torch.from_numpy(x) for x in numpy.polynomial.legendre.leggauss(500)
    )
    points = (high - low) / 2 * points + (high + low) / 2
    weights = weights * torch.exp(-potential.energy(points[:, None]))
    for x in (-1.3, 0.4, 2.5):
        values = torch.tensor(
            [stein_kernel(potential, x, float(y), scale) for y in points],
            dtype=torch.float64,
        )
        assert abs(float((weights * values).sum() / weights.sum())) < 1e-8 * float(
            (weights * values.abs()).sum() / weights.sum()
        )


def test_the_stein_kernel_of_several_coordinates_has_mean_zero_too(generator):
    """By a z-test over independent pairs; the factors of the dimension are those of a
    mean of zero only if all agree.
    """
    target = Gaussian(
        torch.tensor(
            [[1.0, 0.5, 0.0], [0.5, 2.0, 0.3], [0.0, 0.3, 0.5]], dtype=torch.float64
        )
    )
    exact = target.exact_samples(1_600, generator).view(400, 4, 3)
    values = torch.tensor(
        [
            stein_discrepancy(
                target, four, generator, torch.ones(3, dtype=torch.float64)
            )[0]
            for four in exact
        ]
    )
    assert values.mean().abs() / (values.std() / 20) < z_bound(1)


def test_noise_in_the_gradient_leaves_the_stein_discrepancy_in_the_mean(generator):
    """A pair of a draw with itself, left in, would add the noise's variance: 30
    here.
    """
    target, draws = (
        Gaussian.standard(2, torch.float64),
        torch.tensor([[1.0, -0.5], [0.3, 2.0], [-1.0, 0.1]], dtype=torch.float64),
    )
    scale = torch.tensor([0.7, 1.2], dtype=torch.float64)
    exact, _ = stein_discrepancy(target, draws, generator, scale)
    noisy = NoisyGradient(target, 30.0)
    values = torch.tensor(
        [stein_discrepancy(noisy, draws, generator, scale)[0] for _ in range(600)]
    )
    assert (values.mean() - exact).abs() / (values.std() / 600**0.5) < z_bound(1)


def test_the_standard_error_of_the_stein_discrepancy_is_its_own_under_the_target(
    generator,
):
    """E[value²] = E[error²], by a z-test over 2,000 replicas."""
    target = NoisyGradient(Gaussian.correlated(0.8), 4.0)
    replicas = target.potential.exact_samples(2_000 * 20, generator).view(2_000, 20, 2)
    values, errors = torch.tensor(
        [
            stein_discrepancy(target, draws, generator, torch.ones(2))
            for draws in replicas
        ]
    ).T
    difference = values**2 - errors**2
    assert difference.mean().abs() / (difference.std() / 2_000**0.5) < z_bound(1)


def test_the_stein_discrepancy_tells_wrong_widths_and_places_from_right_ones(generator):
    target = NoisyGradient(Gaussian.correlated(0.8), 4.0)
    exact = target.potential.exact_samples(1_000, generator)
    for wrong in (1.5 * exact, 0.5 * exact, exact + 0.5):
        value, error = stein_discrepancy(target, wrong, generator)
        assert value > 5 * error
    pooled = stein_discrepancy(target.potential, exact.view(500, 2, 2), generator)
    assert pooled == stein_discrepancy(target.potential, exact, generator)
