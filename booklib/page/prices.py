"""The price board of *Further*: what an independent sample costs by each way out of the
law of :doc:`/book/further/price`, exact, in one direction of curvature 1.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from booklib.page.scoreboard import pace
from booklib.page.tables import show_table
from sgmc.matrices import Matrix
from sgmc.splittings import flows, langevin_chain, linear_chain, sghmc_chain
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
        >>> step = flows.palindromic(0.1, 1.0)
        >>> round(ordered_price(step, 4.0, 10).excess, 4)
        0.0147
        >>> round(ordered_price(step, 4.0, 10, sweeps=True).excess, 4)
        0.0118
    """
    move, injected = linear_chain(splitting, ONE)
    with_noise = linear_chain(splitting, ONE, 1.0).noise_covariance - injected
    enters, root = _root(with_noise)[:, -1], _root(injected)
    # The errors of a pass are these rows times independent N(0, 1).
    errors = torch.eye(length, dtype=torch.float64) - 1 / length
    errors = errors * (noise_variance * length / (length - 1)) ** 0.5
    if sweeps:
        errors = torch.cat([errors, errors.flip(0)])
    period = len(errors)
    powers = [torch.eye(2, dtype=torch.float64)]
    for _ in range(period):
        powers.append(move @ powers[-1])
    powers = torch.stack(powers)  # Fᵏ
    lag = torch.arange(period)[:, None] - torch.arange(period)
    weights = torch.where((lag >= 0)[..., None, None], powers[lag.clamp(min=0)], 0)
    # What z of a step, (step, 2, source), has of each source of noise since the start.
    from_errors = (weights @ enters).mT @ errors
    z = torch.cat([from_errors, *(weights @ root).permute(3, 0, 2, 1)], -1)
    start = LinearChain(powers[-1], z[-1] @ z[-1].T).stationary_covariance()
    z = torch.cat([z, powers[1:] @ _root(start)], -1)
    theta, to_end = z[:, 0] @ z[:, 0].T, z[-1] @ z[:, 0].T  # Cov(θ, θ), Cov(z_p, θ)
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


def _root(covariance: torch.Tensor) -> torch.Tensor:
    values, vectors = torch.linalg.eigh(covariance)
    return vectors * values.clamp(min=0).sqrt()


def at_one_per_cent(price: Callable[[float], Price]) -> float:
    """Find the largest step size below 1 whose excess is one per cent.

    Example:
        >>> sgld = lambda size: price_of(langevin_chain(ONE, size, 99.0))
        >>> round(at_one_per_cent(sgld), 6)
        0.0002
    """
    low, high = 1e-6, 1.0
    for _ in range(20):
        middle = (low * high) ** 0.5
        try:
            small = abs(price(middle).excess) <= 0.01
        except ValueError:  # no stationary distribution
            small = False
        low, high = (middle, high) if small else (low, middle)
    return low


class Way(NamedTuple):
    """A row of the board: the page that adds it, its name, its price at a step size and
    a friction, the frictions for θ and θ², how a setting reads, the step size, where
    it is not the largest one with an excess of one per cent, and the share of the data
    that a step reads.

    The friction for θ² is the cheapest one. For θ any is the same without an estimate
    and with fresh minibatches; the smallest is cheapest with passes, sweeps and control
    variates, and the board stops at ½. With an estimate both are by the rule C = 3B.
    """

    page: int
    name: str
    price: Callable[[float, float], Price]
    frictions: tuple[float, float] = (0.0, 0.0)
    setting: str = "ε = {:.2g}, C = {:g}"
    step_size: float | None = None
    share: float = SHARE


def _all_data(step_size: float, friction: float) -> Price:
    return price_of(linear_chain(flows.palindromic(step_size, friction), ONE))


def _sgld(step_size: float, friction: float) -> Price:
    return price_of(langevin_chain(ONE, step_size, NOISE))


def _sgld_with_estimate(step_size: float, friction: float) -> Price:
    return price_of(langevin_chain(ONE, step_size, NOISE, step_size * NOISE / 2))


def _sghmc(step_size: float, friction: float) -> Price:
    return price_of(sghmc_chain(ONE, step_size, friction, NOISE))


def _with_estimate(step_size: float, multiple: float) -> Price:
    b = step_size * NOISE / 2
    return price_of(sghmc_chain(ONE, step_size, multiple * b, NOISE, b))


def _ordered(sweeps: bool) -> Callable[[float, float], Price]:
    def price(step_size, friction):
        step = flows.palindromic(step_size, friction)
        return ordered_price(step, NOISE, round(1 / SHARE), sweeps)

    return price


def _control_variates(step_size: float, friction: float) -> Price:
    # The noise of a plain minibatch times (d + 1)/N; here d = 4 and N = 1,000.
    return price_of(sghmc_chain(ONE, step_size, friction, NOISE / 200))


def _sgd(rate: float, friction: float) -> Price:
    descent = flows.Descent(rate, covariance=Matrix(0.0))
    return price_of(linear_chain([descent], ONE, NOISE))


WAYS = {
    "sgld": Way(1, "SGLD", _sgld, setting="η = {:.2g}"),
    "sghmc": Way(1, "SGHMC, B̂ = 0", _sghmc, (1.0, 30.0)),
    # Its variance is exact at every stable step: half of the largest one.
    "all": Way(
        1,
        "all the data in each step (palindromic, exact)",
        _all_data,
        (0.5, 1.0),
        step_size=1.0,
        share=1.0,
    ),
    # A third of what is to be injected comes from the minibatch, as with C = 3B.
    "sgld-estimate": Way(
        2,
        "SGLD, B̂ = B",
        _sgld_with_estimate,
        setting="η = {:.2g}",
        step_size=2 / (3 * NOISE),
    ),
    "estimate": Way(
        2, "SGHMC, B̂ = B", _with_estimate, (3.0, 3.0), "ε = {:.2g}, C = {:g}B"
    ),
    "passes": Way(3, "shuffled passes, B̂ = 0", _ordered(sweeps=False), (0.5, 1.6)),
    "sweeps": Way(3, "symmetric sweeps, B̂ = 0", _ordered(sweeps=True), (0.5, 1.3)),
    "control": Way(
        4,
        "control variates, V/200, B̂ = 0 (mode known, second gradient not counted)",
        _control_variates,
        (0.5, 2.3),
    ),
    "sgd": Way(
        7,
        "SGD, P = 2(V + A)⁻¹ (V and A known)",
        _sgd,
        setting="P = {:.2g}",
        step_size=2 / (NOISE + 1),
    ),
}


class Least(NamedTuple):
    """The passes over the data for an independent θ or θ², and where."""

    passes: float
    step_size: float
    friction: float


def least_prices(name: str) -> tuple[Least, Least]:
    """Compute the least passes of a way for an independent θ and an independent θ², at
    a variance right to one per cent.

    Example:
        >>> for least in least_prices("estimate"):
        ...     print(round(least.passes, 2))
        2.94
        1.46
    """
    way, found = WAYS[name], []
    for friction in way.frictions:
        step_size = way.step_size or at_one_per_cent(
            lambda size, friction=friction: way.price(size, friction)
        )
        price = way.price(step_size, friction)
        steps = price.steps_of_square if found else price.steps
        found.append(Least(way.share * steps, step_size, friction))
    return found[0], found[1]


def show_prices(page: int) -> None:
    """Show the price board of a page of *Further*: all rows on page 1, elsewhere the
    rows that the page adds, below the first page's SGHMC, with their settings.

    Example:
        >>> show_prices(2)
        variance right to 1 %  passes for a θ  ...
        SGHMC, B̂ = 0                    99.00  ε = 0.0002, C = 1            49.60  ...
        SGLD, B̂ = B                      2.96         η = 0.0067             1.48  ...
        SGHMC, B̂ = B                     2.94    ε = 0.1, C = 3B             1.46  ...
    """
    rows = []
    for name, way in WAYS.items():
        if page in (1, way.page) or name == "sghmc":
            row = [way.name]
            for passes, *setting in least_prices(name):
                row.append(f"{passes:.2f}")
                if page != 1:
                    row.append(way.setting.format(*setting))
            rows.append(row)
    settings = [] if page == 1 else ["with"]
    heads = ["passes for a θ", *settings, "passes for a θ²", *settings]
    show_table(["variance right to 1 %", *heads], rows)
