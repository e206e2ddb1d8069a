"""Markov kernels, one a file, each a :class:`sgmc.kernels.base.Kernel`."""

from sgmc.kernels.base import Kernel
from sgmc.kernels.hmc import HMC
from sgmc.kernels.langevin import SGLD
from sgmc.kernels.naive_sghmc import NaiveSGHMC
from sgmc.kernels.nuts import NUTS
from sgmc.kernels.sghmc import SGHMC
from sgmc.kernels.sgnuts import SGNUTS

__all__ = ["HMC", "NUTS", "SGHMC", "SGLD", "SGNUTS", "Kernel", "NaiveSGHMC"]
