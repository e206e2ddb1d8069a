"""langevin-sampling: its two optimisers."""

from langevin_sampling.precondSGLD import pSGLD
from langevin_sampling.SGLD import SGLD
from libraries.torch_optim import Optimiser
from sglaws import Setting, laws


class Langevin(Optimiser):
    """θ ← θ − lr g + N(0, 2 lr) (SGLD.py:78-83), of Welling and Teh (2011)."""

    name, kind, documented, make = "SGLD", "sgld", staticmethod(laws.sgld), SGLD

    def arguments(self, s):
        return {"lr": s.step}


class Momentum(Optimiser):
    """b ← momentum b + g; θ ← θ − lr b + N(0, 2 lr): PyTorch's momentum, with the noise
    of a step without one (SGLD.py:61-83). Nothing says what that samples.
    """

    name, kind, make = "SGLD with momentum", "sghmc", SGLD
    buffer, offers = "momentum_buffer", frozenset({"friction"})

    def arguments(self, s):
        return {"lr": s.step**2, "momentum": 1 - s.step * s.friction}


class Frozen(Langevin):
    """θ ← θ − lr g/G + N(0, 2 lr/G), G = √V + Lambda (precondSGLD.py:84-109); with beta
    and Lambda 1, G stays 1.
    """

    name, make = "pSGLD", pSGLD
    blank = {"front door": "its preconditioner moves at the defaults: see below"}

    def arguments(self, s):
        return {"lr": s.step, "beta": 1.0, "Lambda": 1.0}


class Default(Frozen):
    """The preconditioner of its defaults: Li et al. (2016) without Γ, from V = 0."""

    name, documented, linear = "pSGLD, default", None, False
    at_defaults = Setting(step=1e-2)
    blank = {
        test: "as with a frozen preconditioner"
        for test in ("save and load", "copy", "later parameters", "schedule")
    }

    def arguments(self, s):
        return {"lr": s.step}


ADAPTERS = [Langevin(), Momentum(), Frozen(), Default()]
