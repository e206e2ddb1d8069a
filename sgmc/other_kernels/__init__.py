"""Kernels beside the core: cycles of steps, Gibbs steps, the random walk, Nesterov's
momentum.
"""

from sgmc.other_kernels.cyclical import Cyclical
from sgmc.other_kernels.gibbs import Gibbs
from sgmc.other_kernels.nesterov import Nesterov
from sgmc.other_kernels.random_walk import RandomWalkMetropolis

__all__ = ["Cyclical", "Gibbs", "Nesterov", "RandomWalkMetropolis"]
