"""The tutorial's scoreboard: what each of its samplers makes of the bowl."""

from collections.abc import Callable

import torch

from booklib.page.tables import show_table
from sgmc.splittings import langevin_chain, naive_sghmc_chain, sghmc_chain

STEP_SIZE, NOISE_VARIANCE, FRICTION = 0.1, 4.0, 0.5
B = STEP_SIZE * NOISE_VARIANCE / 2  # the diffusion of the gradient noise, 0.2


def _sghmc(noise_estimate: float) -> float:
    chain = sghmc_chain(
        torch.eye(1), STEP_SIZE, FRICTION, NOISE_VARIANCE, noise_estimate
    )
    return float(chain.stationary_covariance()[0, 0])


def _trajectories(noise_variance: float) -> float:
    chain = naive_sghmc_chain(torch.eye(1), STEP_SIZE, 50, noise_variance)
    return float(chain.stationary_covariance()[0, 0])


def _sgld() -> float:
    chain = langevin_chain(torch.eye(1), STEP_SIZE**2, NOISE_VARIANCE)
    return float(chain.stationary_covariance()[0, 0])


# The page, the sampler, the variance V of its gradient noise, and its exact variance of
# θ, by a linear chain or by a theorem on that page.
ROWS: list[tuple[int, str, float, Callable[[], float]]] = [
    (2, "random-walk Metropolis", 0.0, lambda: 1.0),
    (3, "leapfrog, never rejected", 0.0, lambda: _trajectories(0.0)),
    (4, "HMC", 0.0, lambda: 1.0),
    (6, "SGLD, η = ε²", NOISE_VARIANCE, _sgld),
    (7, "naive SGHMC, 50 steps", NOISE_VARIANCE, lambda: _trajectories(NOISE_VARIANCE)),
    (8, "SGHMC, C = 0.5, B̂ = 0", NOISE_VARIANCE, lambda: _sghmc(0.0)),
    (8, "SGHMC, C = 0.5, B̂ = B", NOISE_VARIANCE, lambda: _sghmc(B)),
    (9, "SGHMC, C = 0.5, B̂ = 2B", NOISE_VARIANCE, lambda: _sghmc(2 * B)),
    (11, "NUTS", 0.0, lambda: 1.0),
    (12, "SGNUTS, weights of NUTS", NOISE_VARIANCE, lambda: 0.5),
    (12, "SGNUTS, equal weights", NOISE_VARIANCE, lambda: 1.0),
]


def show_scoreboard(page: int) -> None:
    """Show the exact variances of θ in the bowl U = ½θ², of which 1 is right, of the
    samplers of all pages before this one, at ε = 0.1.

    Args:
        page: the page of the tutorial, from 3 on.

    Example:
        >>> show_scoreboard(3)
        sampler                 gradient noise V  variance of θ
        random-walk Metropolis                 0         1.0000
    """
    show_table(
        ["sampler", "gradient noise V", "variance of θ"],
        [
            [name, f"{noise:g}", f"{exact():.4f}"]
            for number, name, noise, exact in ROWS
            if number < page
        ],
    )


def exact_variance(sampler: str) -> float:
    """Compute the exact variance of θ of one row, named as on the scoreboard.

    Raises:
        ValueError: if there is no such row.

    Example:
        >>> round(exact_variance("SGHMC, C = 0.5, B̂ = 0"), 4)
        1.4036
    """
    for _, name, _, exact in ROWS:
        if name == sampler:
            return exact()
    raise ValueError(f"sampler must be one of {[row[1] for row in ROWS]}: {sampler!r}")
