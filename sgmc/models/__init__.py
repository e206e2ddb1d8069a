"""Posteriors beside the core: of functions and modules, of Pyro's programs, of
matrices, with control variates.
"""

from sgmc.models.control_variates import control_variates
from sgmc.models.factorisation import MatrixFactorisation
from sgmc.models.named import NamedPosterior, Parameters
from sgmc.models.scale_mixture import ScaleMixtureNetwork

__all__ = [
    "MatrixFactorisation",
    "NamedPosterior",
    "Parameters",
    "ScaleMixtureNetwork",
    "control_variates",
]
