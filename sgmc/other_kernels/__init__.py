"""Kernels beyond the core: cycles, a random walk, a thermostat, AMAGOLD."""

from sgmc.other_kernels.amagold import AMAGOLD
from sgmc.other_kernels.cyclical import Cyclical
from sgmc.other_kernels.random_walk import RandomWalkMetropolis
from sgmc.other_kernels.sgnht import SGNHT

__all__ = ["AMAGOLD", "SGNHT", "Cyclical", "RandomWalkMetropolis"]
