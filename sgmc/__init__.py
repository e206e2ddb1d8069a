"""Stochastic-gradient Markov chain Monte Carlo, written to be read beside its
equations.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sgmc.door.draws import Draws
from sgmc.door.sampling import sample
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS

if TYPE_CHECKING:
    from sgmc.models import NamedPosterior
    from sgmc.posteriors import NetworkPosterior
    from sgmc.tuning import tune

__all__ = [
    "HMC",
    "NUTS",
    "SGHMC",
    "SGLD",
    "SGNUTS",
    "Draws",
    "NamedPosterior",
    "NetworkPosterior",
    "sample",
    "tune",
]
__version__ = "0.2.0"

# These names are imported from their modules when they are asked for.
_ROOMS = {
    "NamedPosterior": "models",
    "NetworkPosterior": "posteriors",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'sgmc' has no attribute {name!r}")
    return getattr(import_module(f"sgmc.{_ROOMS[name]}"), name)
