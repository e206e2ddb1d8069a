"""How to move: one Markov kernel a file.

A kernel is a frozen dataclass of its tuning parameters with two methods: ``init(potential, position, generator)`` makes a
state, ``step(potential, state, generator)`` makes the next one. A step may overwrite the tensors of the state it is given.
A kernel may also have ``remarks(statistics)``: what to warn of after a run.
"""

from sgmc.kernels.hmc import HMC
from sgmc.kernels.langevin import SGLD
from sgmc.kernels.naive_sghmc import NaiveSGHMC
from sgmc.kernels.nuts import NUTS
from sgmc.kernels.random_walk import RandomWalkMetropolis
from sgmc.kernels.sghmc import SGHMC
from sgmc.kernels.sgnuts import SGNUTS

__all__ = ["HMC", "NUTS", "SGHMC", "SGLD", "SGNUTS", "NaiveSGHMC", "RandomWalkMetropolis"]
