"""A list of flows as a kernel, and the exact law of its chain on a Gaussian."""

from sgmc.splittings import flows
from sgmc.splittings.kernel import Splitting
from sgmc.splittings.linear_laws import (
    LinearChain,
    langevin_chain,
    linear_chain,
    naive_sghmc_chain,
    sghmc_chain,
)

__all__ = [
    "LinearChain",
    "Splitting",
    "flows",
    "langevin_chain",
    "linear_chain",
    "naive_sghmc_chain",
    "sghmc_chain",
]
