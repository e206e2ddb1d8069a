"""Diagnostics that ArviZ lacks: distances between samples and a density of one
coordinate.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Generator, Tensor

from booklib.scores.checks import check_edges, check_probabilities
from sgmc.checks import check_count, check_instance, check_tensor, is_number
from sgmc.potentials import Potential


def bin_probabilities(
    potential: Potential, edges: Tensor, points_per_bin: int = 64
) -> Tensor:
    """Integrate a one-dimensional density exp(−U)/Z over bins, by Gauss–Legendre
    quadrature in each of them.

    Z is the sum over the bins: choose edges outside of which the density is negligible.

    Args:
        potential: a potential with one coordinate.
        edges: ``(bins + 1,)``, increasing.
        points_per_bin: number of quadrature points in each bin.

    Returns:
        Probabilities ``(bins,)`` float64, with sum 1.

    Raises:
        ValueError: if the potential has more coordinates, the edges do not increase, or
            the density vanishes between them.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> bin_probabilities(
        ...     Gaussian.standard(1, torch.float64), torch.tensor([-9.0, 0.0, 9.0])
        ... )
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    check_coordinates(potential, 1)
    check_edges(edges)
    check_count("points_per_bin", points_per_bin)
    _, mass = _quadrature(potential, edges, points_per_bin)
    return mass.sum(-1) / mass.sum()


def expectation(
    potential: Potential, function, low: float, high: float, num_bins: int = 200
) -> float:
    """Integrate E[f(θ)] under a one-dimensional density exp(−U)/Z on [low, high], by
    Gauss–Legendre quadrature at all points at once; SciPy's ``quad`` evaluates one by
    one.

    Raises:
        ValueError: if the potential has more coordinates, the bounds do not increase,
            or f changes the shape of what it is given.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> round(expectation(DoubleWell(), lambda position: position**2, -4, 4), 4)
        0.8327
    """
    check_coordinates(potential, 1)
    check_bounds(low, high)
    check_count("num_bins", num_bins)
    check_instance("function", function, Callable, "lambda position: position**2")
    position, mass = _quadrature(
        potential, torch.linspace(low, high, num_bins + 1, dtype=torch.float64), 16
    )
    values = torch.as_tensor(function(position))
    if values.shape not in ((), position.shape):
        raise ValueError(
            f"function must keep the shape of its argument, {tuple(position.shape)}, "
            f"but gives {tuple(values.shape)}"
        )
    return float((mass * values).sum() / mass.sum())


def total_variation(samples: Tensor, probabilities: Tensor, edges: Tensor) -> float:
    """Compute the total-variation distance ½Σ|p̂ₖ − pₖ| between the histogram of
    samples and exact bin probabilities.

    A sample outside of the edges counts as mass in the wrong place.

    Args:
        samples: any shape; all values are pooled.
        probabilities: p, ``(bins,)``.
        edges: ``(bins + 1,)``, increasing.

    Returns:
        A number between 0 and 1.

    Raises:
        ValueError: if the shapes of probabilities and edges do not match, or the edges
            do not increase.

    Example:
        >>> total_variation(
        ...     torch.tensor([0.5, 1.5]),
        ...     torch.tensor([0.5, 0.5]),
        ...     torch.tensor([0.0, 1.0, 2.0]),
        ... )
        0.0
    """
    check_tensor("samples", samples, "...", floating=False)
    check_probabilities("probabilities", probabilities, "bins")
    check_edges(edges)
    if len(edges) != len(probabilities) + 1:
        raise ValueError(
            f"edges must be one more than probabilities, but they are {len(edges)} "
            f"and {len(probabilities)}"
        )
    # torch.histogram supports no other device
    values = samples.flatten().double().cpu()
    frequencies = torch.histogram(values, edges.double()).hist / len(values)
    outside = 1 - float(frequencies.sum())
    return 0.5 * (float((frequencies - probabilities.double()).abs().sum()) + outside)


def inverse_transform_samples(
    potential: Potential,
    num_samples: int,
    low: float,
    high: float,
    generator: Generator,
) -> Tensor:
    """Draw independent exact samples of a one-dimensional density exp(−U)/Z on [low,
    high], by inverting its distribution function.

    The distribution function is tabulated at 100,001 points and inverted linearly,
    exact to about 1e−9 in probability. SciPy's ``NumericalInversePolynomial`` does that
    from a density of one number at a time, and not with a generator of PyTorch.

    Returns:
        ``(num_samples,)`` float64.

    Raises:
        ValueError: if the potential has more coordinates, the bounds do not increase,
            or the density vanishes between them.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> inverse_transform_samples(
        ...     DoubleWell(), 4, -3, 3, torch.Generator().manual_seed(0)
        ... ).shape
        torch.Size([4])
    """
    check_coordinates(potential, 1)
    check_count("num_samples", num_samples, at_least=0)
    check_bounds(low, high)
    check_instance(
        "generator", generator, Generator, "torch.Generator().manual_seed(0)"
    )
    grid = torch.linspace(low, high, 100_001, dtype=torch.float64)
    density = torch.exp(-potential.energy(grid[:, None]))
    distribution = torch.cumulative_trapezoid(density, grid)
    _check_mass(distribution[-1])
    distribution = torch.cat(
        [distribution.new_zeros(1), distribution / distribution[-1]]
    )
    uniform = torch.rand(num_samples, generator=generator, dtype=torch.float64)
    right = torch.searchsorted(distribution, uniform).clamp(1, len(grid) - 1)
    low_value, high_value = distribution[right - 1], distribution[right]
    share = (uniform - low_value) / (high_value - low_value)
    return grid[right - 1] + share * (grid[right] - grid[right - 1])


def check_coordinates(potential: Potential, number: int) -> None:
    """Raise a ValueError unless the potential has so many coordinates, or as many as
    the position.
    """
    check_instance("potential", potential, Potential, "DoubleWell()")
    if potential.dim not in (None, number):
        raise ValueError(
            f"potential must have {number} coordinate{'s' * (number > 1)}, but its "
            f"dim is {potential.dim}"
        )


def check_bounds(low: float, high: float) -> None:
    """Raise a ValueError unless the bounds of an interval are finite and increase."""
    if not (is_number(low) and is_number(high) and -math.inf < low < high < math.inf):
        raise ValueError(
            "low and high must be numbers, the first less than the second, but they "
            f"are {low!r} and {high!r}"
        )


def _check_mass(total: Tensor) -> None:
    if not 0 < total < math.inf:
        raise ValueError(
            f"exp(−U) integrates to {float(total)}: choose bounds between which the "
            "density is, or add a constant to U"
        )


def _quadrature(
    potential: Potential, edges: Tensor, points: int
) -> tuple[Tensor, Tensor]:
    """Place Gauss–Legendre points in every bin, and integrate exp(−U) around each: both
    ``(bins, points)`` float64.
    """
    nodes, weights = (
        torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(points)
    )
    edges = edges.double()
    half = (edges[1:] - edges[:-1])[:, None] / 2
    position = (edges[1:] + edges[:-1])[:, None] / 2 + half * nodes
    mass = (
        half
        * weights
        * torch.exp(-potential.energy(position.reshape(-1, 1)).reshape(position.shape))
    )
    _check_mass(mass.sum())
    return position, mass
