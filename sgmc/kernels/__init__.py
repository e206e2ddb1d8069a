"""How to move: one Markov kernel a file.

A kernel is a frozen dataclass of its tuning parameters with two methods: ``init(potential, position, generator)`` makes a
state, ``step(potential, state, generator)`` makes the next one. A step may overwrite the tensors of the state it is given.
"""

from sgmc.kernels.hmc import HMC
from sgmc.kernels.langevin import SGLD
from sgmc.kernels.naive_sghmc import NaiveSGHMC
from sgmc.kernels.random_walk import RandomWalkMetropolis
from sgmc.kernels.sghmc import SGHMC

__all__ = ["HMC", "SGHMC", "SGLD", "NaiveSGHMC", "RandomWalkMetropolis"]
