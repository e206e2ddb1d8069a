"""Kernels beside the core: cycles of steps, Gibbs steps, the random walk, Nesterov's
momentum, a thermostat.
"""

from sgmc.other_kernels.cyclical import Cyclical
from sgmc.other_kernels.gibbs import Gibbs
from sgmc.other_kernels.nesterov import Nesterov
from sgmc.other_kernels.random_walk import RandomWalkMetropolis
from sgmc.other_kernels.sgnht import SGNHT

__all__ = ["SGNHT", "Cyclical", "Gibbs", "Nesterov", "RandomWalkMetropolis"]
