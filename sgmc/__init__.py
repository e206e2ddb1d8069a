"""Stochastic-gradient Markov chain Monte Carlo, written to be read beside its equations."""

from sgmc.adaptation import adapt
from sgmc.claims import claim
from sgmc.sampling import sample

__all__ = ["adapt", "claim", "sample"]
__version__ = "0.1.0"
