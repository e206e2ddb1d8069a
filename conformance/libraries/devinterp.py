"""devinterp: the three methods of its SGMCMC optimiser, and the deprecated two."""

import warnings

from devinterp.optim import SGLD, SGMCMC, SGNHT
from libraries.torch_optim import Optimiser
from sglaws import Setting, laws

warnings.simplefilter("ignore")


class Langevin(Optimiser):
    """θ ← θ − ½ lr nβ g + N(0, lr σ²) (optim/sgmcmc.py:478-531): T = σ²/nβ."""

    name, kind, documented = "SGMCMC.sgld", "sgld", staticmethod(laws.sgld)
    make, offers = SGMCMC.sgld, frozenset({"temperature"})
    at_defaults = Setting(step=0.005)

    def arguments(self, s):
        return {"lr": 2 * s.step * s.temperature, "nbeta": 1 / s.temperature}


class Deprecated(Langevin):
    name, make = "SGLD", SGLD


class Preconditioned(Langevin):
    """RMSprop from V = 0: Li et al. (2016) without Γ, for which an error is raised."""

    name, documented, linear = "SGMCMC.rmsprop_sgld", None, False
    make = SGMCMC.rmsprop_sgld


class NoThermostat(Langevin):
    """ "SGNHT", "with thermostat", Ding et al. (optim/sgmcmc.py:110, :134, :682); the
    thermostat's force is computed and not read (optim/preconditioner.py:208): what
    moves is SGLD with the noise N(0, 2A lr), of the temperature 2A/nβ. Judged by SGLD
    of the temperature 1/nβ, which a thermostat has for every A.
    """

    name, make = "SGMCMC.sgnht", SGMCMC.sgnht
    offers = frozenset({"temperature", "friction"})

    def arguments(self, s):
        given = {"lr": 2 * s.step * s.temperature, "nbeta": 1 / s.temperature}
        if s.friction != 1:  # A: three times its default
            given["diffusion_factor"] = 0.03
        return given


class Thermostat(Optimiser):
    """Ding et al. (2014), Algorithm 2, with lr = ε² and ``diffusion_factor`` = εA; its
    docstring has v ← v − lr nβ g − ξv, the code (1 − ξ)(v − lr nβ g)
    (optim/sgnht.py:137-140).
    """

    name, kind, linear, make = "SGNHT", "thermostat", False, SGNHT
    documented = staticmethod(laws.kick_first)
    offers = frozenset({"temperature", "friction"})
    at_defaults = Setting(step=0.1, friction=0.1)

    def arguments(self, s):
        return {
            "lr": s.step**2 * s.temperature,
            "nbeta": 1 / s.temperature,
            "diffusion_factor": s.friction * s.step,
        }


ADAPTERS = [Langevin(), Preconditioned(), NoThermostat(), Deprecated(), Thermostat()]
