"""sglaws: does a stochastic-gradient sampler have the law that it documents?

A linear sampler on a Gaussian target has an exact stationary distribution, the bias of
its step size in it. This package reads a sampler's step off a library, compares it with
the law that its documentation states, and says how far that law is from the target.
"""

from . import laws
from .adapter import Adapter, Target
from .check import SIGNS, STANDARD, TESTS, check, check_one
from .laws import Chain, Setting, chain, refreshed
from .measure import compare, moments, probe, z_test

__version__ = "0.1.0"
__all__ = [
    "SIGNS",
    "STANDARD",
    "TESTS",
    "Adapter",
    "Chain",
    "Setting",
    "Target",
    "chain",
    "check",
    "check_one",
    "compare",
    "laws",
    "moments",
    "probe",
    "refreshed",
    "z_test",
]
