"""Posteriors beyond the core: of functions of named parameters, of Pyro's programs, and
with control variates. ``PyroPosterior`` can be imported from here, too, where Pyro is
installed.
"""

from importlib import import_module

from sgmc.models.control_variates import control_variates
from sgmc.models.functions import Posterior
from sgmc.models.named import NamedPosterior, Parameters

__all__ = [
    "NamedPosterior",
    "Parameters",
    "Posterior",
    "control_variates",
]


def __getattr__(name: str):
    """Import a name that needs Pyro when it is asked for."""
    if name != "PyroPosterior":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.pyro_model").PyroPosterior
