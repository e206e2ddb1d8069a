"""pybnn: the four optimisers of its ``sampler``, with what they adapt frozen."""

import torch
from libraries.torch_optim import Optimiser, springenberg
from pybnn.sampler import SGHMC, SGLD, AdaptiveSGHMC, PreconditionedSGLD
from sglaws import Setting, laws


class Langevin(Optimiser):
    """θ ← θ − ½lr g + N(0, lr) (sampler/sgld.py:73-79): no formula, no paper named."""

    name, kind, documented, make = "SGLD", "sgld", staticmethod(laws.sgld), SGLD
    at_defaults = Setting(step=5e-3)

    def arguments(self, s):
        return {"lr": 2 * s.step}


class Preconditioned(Langevin):
    """The same times G (sampler/preconditioned_sgld.py:65-88); at the decay rate 1 the
    preconditioner stays G = 1. The default moves it: no law in a formula.
    """

    name, make, at_defaults = "PreconditionedSGLD", PreconditionedSGLD, None
    blank = {"front door": "its preconditioner moves at the defaults: see below"}

    def arguments(self, s):
        frozen = {"precondition_decay_rate": 1.0, "diagonal_bias": 0.0}
        return super().arguments(s) | frozen


class Default(Preconditioned):
    """The preconditioner of its defaults: Li et al. (2016) without Γ."""

    name, documented, linear = "PreconditionedSGLD, default", None, False
    at_defaults = Setting(step=5e-3)
    blank = {
        test: "as with a frozen preconditioner"
        for test in ("save and load", "copy", "later parameters", "schedule")
    }

    def arguments(self, s):
        return {"lr": 2 * s.step}


class Momentum(Optimiser):
    """θ ← θ + lr p; p ← (1 − mdecay)p − lr g + N(0, 2 lr mdecay)
    (sampler/sghmc.py:83-93), so ε = lr and C = mdecay / lr. Its reference is Chen et
    al. (2014), whose eq. 15 has a momentum decay.
    """

    name, kind, make, buffer = "SGHMC", "sghmc", SGHMC, "momentum"
    documented = staticmethod(laws.kick_first)
    offers = frozenset({"friction"})
    at_defaults = Setting(step=0.01, friction=1.0)

    def arguments(self, s):
        return {"lr": s.step, "mdecay": s.friction * s.step}

    def init(self, theta, seed, **given):
        state = super().init(theta, seed, **given)
        # as its first step does, but before it, so that it can be read
        momentum = torch.randn_like(state.param)
        state.optimiser.state[state.param] = {"iteration": 0, "momentum": momentum}
        return state


class Adaptive(Optimiser):
    """ε = lr, C = mdecay / lr, V̂ = 1 without a burn-in; it names, and its comments
    cite, eq. 10 of Springenberg et al. (2016) (sampler/adaptive_sghmc.py:108-122).
    """

    name, kind, make = "AdaptiveSGHMC", "sghmc", AdaptiveSGHMC
    buffer, documented = "momentum", staticmethod(springenberg)
    offers = frozenset({"friction"})
    at_defaults = Setting(step=0.01, friction=5.0)
    required = {"num_burn_in_steps": 0}

    def arguments(self, s):
        given = {"lr": s.step, "mdecay": s.friction * s.step}
        return given | {"num_burn_in_steps": 0}


ADAPTERS = [Langevin(), Preconditioned(), Default(), Momentum(), Adaptive()]
