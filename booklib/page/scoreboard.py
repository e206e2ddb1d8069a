"""The tutorial's scoreboard: how each of its samplers does on the bowl, and for how
many gradients.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from booklib.page.claims import check, near
from booklib.page.tables import show_table
from sgmc.splittings import langevin_chain, naive_sghmc_chain, sghmc_chain
from sgmc.splittings.linear_laws import LinearChain

STEP_SIZE, NOISE_VARIANCE, FRICTION = 0.1, 4.0, 0.5
B = STEP_SIZE * NOISE_VARIANCE / 2  # the diffusion of the gradient noise is 0.2
ONE = torch.eye(1, dtype=torch.float64)


class Row(NamedTuple):
    """A sampler of the scoreboard: the page that adds it, its name, the variance V of
    its gradient noise, its exact variance of θ, by a linear chain or by a theorem on
    that page, and the number of gradients for an independent θ², where its chain is a
    linear one.
    """

    page: int
    sampler: str
    noise_variance: float
    chain: Callable[[], LinearChain] | None = None
    gradients: int = 1  # the gradients of one step of the chain
    theorem: float = 1.0

    @property
    def variance(self) -> float:
        """Compute the exact variance of θ."""
        if self.chain is None:
            return self.theorem
        return float(self.chain().stationary_covariance()[0, 0])

    @property
    def cost(self) -> float | None:
        """Compute the gradients for an independent θ²: τ times those of a step."""
        return None if self.chain is None else self.gradients * pace(self.chain())


def pace(chain: LinearChain) -> float:
    """Compute the steps of a linear chain for an independent value of θ².

    With A its transition and Σ its stationary covariance, the autocovariance of θ² is
    2(AᵏΣ)₀₀², and τ = 1 + 2Σₖρₖ² is a geometric series in A ⊗ A.

    Args:
        chain: a linear chain whose first coordinate is θ.

    Example:
        >>> round(pace(langevin_chain(ONE, 0.01, 4.0)), 1)
        99.5
    """
    moves, law = chain.transition.double(), chain.stationary_covariance().double()
    first, moved = torch.kron(law[:, 0], law[:, 0]), torch.kron(moves, moves)
    series = torch.linalg.solve(torch.eye(len(moved)).to(moved) - moved, first)
    return float(2 * series[0] / first[0] - 1)


def _sghmc(noise_estimate: float) -> Callable[[], LinearChain]:
    return lambda: sghmc_chain(ONE, STEP_SIZE, FRICTION, NOISE_VARIANCE, noise_estimate)


def _trajectories(noise_variance: float) -> Callable[[], LinearChain]:
    return lambda: naive_sghmc_chain(ONE, STEP_SIZE, 50, noise_variance)


def _sgld() -> LinearChain:
    return langevin_chain(ONE, STEP_SIZE**2, NOISE_VARIANCE)


V = NOISE_VARIANCE
ROWS = {
    "random-walk": Row(2, "random-walk Metropolis", 0.0),
    "leapfrog": Row(3, "leapfrog, never rejected", 0.0, _trajectories(0.0), 50),
    "hmc": Row(4, "HMC", 0.0),
    "sgld": Row(6, "SGLD, η = ε²", V, _sgld),
    "naive": Row(7, "naive SGHMC, 50 steps", V, _trajectories(V), 50),
    "sghmc-0": Row(8, "SGHMC, C = 0.5, B̂ = 0", V, _sghmc(0.0)),
    "sghmc-B": Row(8, "SGHMC, C = 0.5, B̂ = B", V, _sghmc(B)),
    "sghmc-2B": Row(9, "SGHMC, C = 0.5, B̂ = 2B", V, _sghmc(2 * B)),
    "nuts": Row(11, "NUTS", 0.0),
    "sgnuts-weighted": Row(12, "SGNUTS, weights of NUTS", V, theorem=0.5),
    "sgnuts": Row(12, "SGNUTS, equal weights", V),
}
HEADS = ["sampler", "gradient noise V", "variance of θ", "gradients for a θ²"]


def _entries(row: Row, variance: str) -> list[str]:
    cost = "–" if row.cost is None else f"{row.cost:.0f}"
    return [row.sampler, f"{row.noise_variance:g}", variance, cost]


def show_scoreboard(page: int, first: int = 2) -> None:
    """Show the exact variances of θ in the bowl U = ½θ², of which 1 is right, of the
    samplers of earlier pages, at ε = 0.1, and the exact number of gradients for an
    independent θ² of those that are linear chains.

    Args:
        page: the page of the tutorial, from 3 on: rows of the pages before it.
        first: the first page whose rows are shown.

    Example:
        >>> show_scoreboard(4)
        sampler                   gradient noise V  variance of θ  gradients for a θ²
        random-walk Metropolis                   0         1.0000                   –
        leapfrog, never rejected                 0         1.0025                  59
    """
    rows = [row for row in ROWS.values() if first <= row.page < page]
    show_table(HEADS, [_entries(row, f"{row.variance:.4f}") for row in rows])


def exact_variance(name: str) -> float:
    """Compute the exact variance of θ of one row, by its name in :data:`ROWS`.

    Example:
        >>> round(exact_variance("sghmc-0"), 4)
        1.4036
    """
    return ROWS[name].variance


def show_row(name: str, samples: Tensor) -> None:
    """Show the scoreboard's row that a page's own code made: the mean of θ² beside the
    exact variance of its sampler.

    The row is a claim (:func:`booklib.page.claims.check`) with the row's name, which
    holds within five standard errors, from the spread of the chains.

    Args:
        name: of the row, in :data:`ROWS`.
        samples: kept values of θ of independent chains, whose chains are the last
            axis, ``(num_samples, chains)`` or ``(chains,)``.

    Raises:
        booklib.page.claims.ClaimError: if the samples do not have that variance.

    Example:
        >>> show_row("hmc", torch.randn(50, 200, generator=torch.manual_seed(0)))
        ✓ hmc: 1 within 5 standard errors (because it is the exact variance)
        sampler  gradient noise V  measured E[θ²]   exact  gradients for a θ²
        HMC                     0   1.0... ± 0.01...  1.0000                   –
    """
    row = ROWS[name]
    of_chains = (
        samples.detach().double().square().reshape(-1, samples.shape[-1]).mean(0)
    )
    value, error = of_chains.mean(), of_chains.std() / math.sqrt(len(of_chains))
    because = "it is the exact variance"
    check(name, value, near(row.variance), error=float(error), because=because)
    entries = _entries(row, f"{value:.3f} ± {error:.3f}")
    entries.insert(3, f"{row.variance:.4f}")
    heads = [*HEADS[:2], "measured E[θ²]", "exact", HEADS[3]]
    show_table(heads, [entries], live=["measured E[θ²]"])
