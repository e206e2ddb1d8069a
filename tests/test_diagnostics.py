"""Diagnostics against scipy's quadrature and tests, and distances worked out by hand."""

import itertools
import math

import pytest
import scipy.integrate
import scipy.stats
import torch

from sgmc.diagnostics import bin_probabilities, expectation, inverse_transform_samples, total_variation
from sgmc.targets import DoubleWell, Gaussian

NORMAL = Gaussian(torch.tensor([[4.0]], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64))
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
    masses = torch.tensor([scipy.integrate.quad(density, *pair)[0] for pair in itertools.pairwise(edges)], dtype=torch.float64)
    torch.testing.assert_close(bin_probabilities(DoubleWell(), torch.tensor(edges)), masses / masses.sum(), rtol=1e-7, atol=0)
    for function in (lambda x: x**2, lambda x: abs(x), lambda x: (x + 1) ** 3):
        exact = scipy.integrate.quad(lambda x: function(x) * density(x), -3, 3, points=[0])[0] / float(masses.sum())
        assert expectation(DoubleWell(), function, -3, 3) == pytest.approx(exact, rel=1e-9)


def test_expectations_of_the_normal_distribution():
    assert expectation(NORMAL, lambda x: x, -20, 22) == pytest.approx(1, rel=1e-12)
    assert expectation(NORMAL, lambda x: (x - 1) ** 4, -20, 22) == pytest.approx(3 * 2**4, rel=1e-12)


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
    probabilities, edges = torch.tensor([0.25, 0.5, 0.25]), torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert total_variation(torch.tensor(samples), probabilities, edges) == pytest.approx(distance, abs=1e-12)
    assert total_variation(torch.tensor(samples).reshape(2, 2, 1), probabilities, edges) == pytest.approx(distance, abs=1e-12)


def test_total_variation_needs_edges_that_fit():
    with pytest.raises(ValueError, match="edges must be one more than probabilities, but they are 3 and 3"):
        total_variation(torch.zeros(4), torch.ones(3) / 3, torch.tensor([0.0, 1.0, 2.0]))


def test_exact_draws_have_the_distribution_function(generator):
    """False alarms: 1 in 10,000 for each test of Kolmogorov and Smirnov."""
    values = inverse_transform_samples(NORMAL, 20_000, -15, 17, generator)
    assert values.dtype == torch.float64 and scipy.stats.kstest(values, scipy.stats.norm(1, 2).cdf).pvalue > 1e-4
    values = inverse_transform_samples(DoubleWell(), 20_000, -3, 3, generator)
    grid = torch.linspace(-3, 3, 4_001, dtype=torch.float64)
    distribution = scipy.integrate.cumulative_simpson(torch.exp(2 * grid**2 - grid**4), x=grid, initial=0)
    distribution = torch.from_numpy(distribution / distribution[-1])
    assert scipy.stats.kstest(values, scipy.interpolate.interp1d(grid, distribution)).pvalue > 1e-4


def test_exact_draws_are_those_of_their_generator():
    first, second = (inverse_transform_samples(DoubleWell(), 5, -3, 3, torch.Generator().manual_seed(2)) for _ in range(2))
    assert torch.equal(first, second) and (first.abs() <= 3).all()


PLANE = Gaussian.standard(2)
HALVES = torch.tensor([0.5, 0.5])
BOUNDS = torch.tensor([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bin_probabilities(PLANE, EDGES), "potential must have 1 coordinate, but its dim is 2"),
        (lambda: bin_probabilities(DoubleWell, EDGES), r"potential must be of type Potential, such as DoubleWell\(\), but it is the class"),
        (lambda: bin_probabilities(NORMAL, [0.0, 1.0]), r"edges must be a tensor \(bins \+ 1,\), but it is a list"),
        (lambda: bin_probabilities(NORMAL, EDGES.flip(0)), r"edges must be at least two numbers that increase, but they are \[17.0,"),
        (lambda: bin_probabilities(NORMAL, EDGES[:1]), "edges must be at least two numbers that increase"),
        (lambda: bin_probabilities(NORMAL, torch.tensor([0.0, math.inf])), r"edges must be finite, but it is inf at \(1,\)"),
        (lambda: bin_probabilities(NORMAL, EDGES, 0), "points_per_bin must be a whole number of at least 1"),
        (lambda: bin_probabilities(DoubleWell(), 500 + BOUNDS), "integrates to 0.0: choose bounds between which the density is"),
        (lambda: expectation(PLANE, lambda x: x, -3, 3), "potential must have 1 coordinate"),
        (lambda: expectation(NORMAL, lambda x: x, 3, -3), "low and high must be numbers, the first less than the second, .* 3 and -3"),
        (lambda: expectation(NORMAL, lambda x: x, -math.inf, 3), "low and high must be numbers"),
        (lambda: expectation(NORMAL, lambda x: x, -3, 3, num_bins=0), "num_bins must be a whole number of at least 1"),
        (lambda: expectation(NORMAL, None, -3, 3), "function must be of type Callable"),
        (lambda: expectation(NORMAL, lambda x: x[:, 0], -3, 3), r"function must keep the shape .* \(200, 16\), but gives \(200,\)"),
        (lambda: total_variation([0.5], HALVES, BOUNDS), "samples must be a tensor, but it is a list"),
        (lambda: total_variation(torch.tensor([math.nan]), HALVES, BOUNDS), "samples must be finite"),
        (lambda: total_variation(torch.ones(0), HALVES, BOUNDS), r"samples \(0,\) is empty"),
        (lambda: total_variation(HALVES, 2 * HALVES, BOUNDS), "probabilities must be at least 0 with sum 1 over bins"),
        (lambda: total_variation(HALVES, HALVES, BOUNDS.flip(0)), "edges must be at least two numbers that increase"),
        (lambda: inverse_transform_samples(PLANE, 3, -3, 3, torch.Generator()), "potential must have 1 coordinate"),
        (lambda: inverse_transform_samples(NORMAL, 3, 3, -3, torch.Generator()), "low and high must be numbers"),
        (lambda: inverse_transform_samples(NORMAL, 3, -3, 3, None), "generator must be of type Generator, .* but it is of type NoneType"),
        (lambda: inverse_transform_samples(NORMAL, 3.0, -3, 3, torch.Generator()), "num_samples must be a whole number of at least 0"),
        (lambda: inverse_transform_samples(DoubleWell(), 3, 500, 600, torch.Generator()), "integrates to 0.0: choose bounds"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
