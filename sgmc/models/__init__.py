"""Posteriors beside the core: of functions of named parameters, of Pyro's programs, of
networks whose prior is drawn too, with control variates.
"""

from sgmc.models.control_variates import control_variates
from sgmc.models.functions import Posterior
from sgmc.models.hierarchical import HierarchicalNetwork, draw_precision
from sgmc.models.named import NamedPosterior, Parameters

__all__ = [
    "HierarchicalNetwork",
    "NamedPosterior",
    "Parameters",
    "Posterior",
    "control_variates",
    "draw_precision",
]
