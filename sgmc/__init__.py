"""Stochastic-gradient Markov chain Monte Carlo, written to be read beside its
equations.
"""

from sgmc.door.sampling import sample

__all__ = ["sample"]
__version__ = "0.2.0"
