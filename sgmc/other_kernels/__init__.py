"""Kernels beyond the core: cycles, Gibbs steps, the random walk, a thermostat."""

from sgmc.other_kernels.cyclical import Cyclical
from sgmc.other_kernels.gibbs import Gibbs
from sgmc.other_kernels.random_walk import RandomWalkMetropolis
from sgmc.other_kernels.sgnht import SGNHT

__all__ = ["SGNHT", "Cyclical", "Gibbs", "RandomWalkMetropolis"]
