"""The price board of *Further*: what an independent sample costs by each way out of the
law of :doc:`/book/further/price`, exact, in one direction of curvature 1.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from booklib.page.scoreboard import pace
from sgmc.splittings import linear_chain
from sgmc.splittings.flows import Flow
from sgmc.splittings.linear_laws import LinearChain

ONE = torch.eye(1, dtype=torch.float64)
SHARE = 0.01  # n/N of the board
NOISE = 1 / SHARE - 1  # V of minibatches without replacement


class Price(NamedTuple):
    """What a chain costs: how far the variance of θ is above 1, which is right, and the
    steps for an independent θ and θ².
    """

    excess: float
    steps: float
    steps_of_square: float


def price_of(chain: LinearChain) -> Price:
    """Compute the price of a linear chain whose first coordinate is θ.

    Example:
        >>> from sgmc.splittings import langevin_chain
        >>> round(price_of(langevin_chain(ONE, 0.001, 99.0)).excess, 4)
        0.05
    """
    theta = torch.eye(len(chain.transition))[0]
    variance = float(chain.stationary_covariance()[0, 0])
    return Price(variance - 1, chain.autocorrelation_time(theta), pace(chain))


def ordered_price(
    splitting: Sequence[Flow], noise_variance: float, length: int, sweeps: bool = False
) -> Price:
    """Compute the price of a splitting with one kick whose minibatches come in passes,
    averaged over the steps of a pass.

    The errors of a pass are those of a sample without replacement: each N(0, V), any
    two with the covariance −V/(m − 1), so that they add up to zero. With Φ = Fᵖ of a
    period of p steps the moments of z = (θ, r) follow from one Lyapunov equation, and
    the lags beyond the period are geometric series in Φ and Φ ⊗ Φ.

    Args:
        splitting: flows with one kick, such as those of
            :func:`sgmc.splittings.flows.palindromic`.
        noise_variance: V of a minibatch.
        length: m, the number of minibatches of a pass.
        sweeps: whether each pass is followed by the same one backwards.

    Example:
        >>> from sgmc.splittings import flows
        >>> step = flows.palindromic(0.1, 1.0)
        >>> round(ordered_price(step, 4.0, 10).excess, 4)
        0.0147
        >>> round(ordered_price(step, 4.0, 10, sweeps=True).excess, 4)
        0.0118
    """
    move, injected = linear_chain(splitting, ONE)
    with_noise = linear_chain(splitting, ONE, 1.0).noise_covariance - injected
    values, vectors = torch.linalg.eigh(with_noise)
    enters = vectors[:, -1] * values[-1].clamp(min=0).sqrt()  # an error of variance 1
    errors = torch.eye(length, dtype=torch.float64) - 1 / length
    errors = noise_variance * length / (length - 1) * errors
    if sweeps:
        there_and_back = [*range(length), *reversed(range(length))]
        errors = errors[there_and_back][:, there_and_back]
    period = len(errors)
    powers = [torch.eye(2, dtype=torch.float64)]
    for _ in range(period):
        powers.append(move @ powers[-1])
    powers = torch.stack(powers)  # Fᵏ
    lag = torch.arange(1, period + 1)[:, None] - 1 - torch.arange(period)
    weights = torch.where((lag >= 0)[..., None, None], powers[lag.clamp(min=0)], 0)
    from_errors = weights @ enters  # (step, error, 2)
    within = torch.einsum("ski,kl,tlj->sitj", from_errors, errors, from_errors)
    within += torch.einsum("skia,ab,tkjb->sitj", weights, injected, weights)
    start = LinearChain(powers[-1], within[-1, :, -1]).stationary_covariance()
    within += torch.einsum("sia,ab,tjb->sitj", powers[1:], start, powers[1:])
    theta, to_end = within[:, 0, :, 0], within[-1, :, :, 0]  # Cov(θ, θ), Cov(z_p, θ)
    variances = theta.diagonal()
    ahead = torch.linalg.solve(torch.eye(2).double() - powers[-1], to_end)
    later = (powers[1:, 0] @ ahead).sum()
    squares = torch.stack([torch.kron(c, c) for c in to_end.T], 1)
    twice = torch.kron(powers[-1], powers[-1])
    ahead = torch.linalg.solve(torch.eye(4).double() - twice, squares)
    rows = torch.stack([torch.kron(row, row) for row in powers[1:, 0]])
    square_later = (rows @ ahead).sum()
    return Price(
        float(variances.mean()) - 1,
        float((theta.sum() + 2 * later) / variances.sum()),
        float((theta.square().sum() + 2 * square_later) / variances.square().sum()),
    )


def at_one_per_cent(price: Callable[[float], Price], largest: float) -> Price:
    """Find the largest step size below ``largest`` whose excess is one per cent, and
    its price.
    """
    low, high = 1e-6 * largest, largest
    for _ in range(50):
        middle = (low * high) ** 0.5
        try:
            small = abs(price(middle).excess) <= 0.01
        except ValueError:  # no stationary distribution
            small = False
        low, high = (middle, high) if small else (low, middle)
    return price(low)
