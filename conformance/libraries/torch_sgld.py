"""torch-sgld: one optimiser, without and with momentum."""

from libraries.torch_optim import Optimiser
from sglaws import laws
from torch_sgld import SGLD


class Langevin(Optimiser):
    """θ ← θ − lr g + N(0, 2 lr T): the README's formula (sgld.py:42-46)."""

    name, kind, documented, make = "SGLD", "sgld", staticmethod(laws.sgld), SGLD
    offers = frozenset({"temperature"})

    def arguments(self, s):
        return {"lr": s.step, "temperature": s.temperature}


class Momentum(Langevin):
    """v ← (1 − m)v − lr g + N(0, 2 lr m T) with m = ``momentum`` (sgld.py:32-40): eq.
    15 of Chen et al. (2014), with α = m. Nothing says what m is but its name.
    """

    name, kind, buffer = "SGHMC", "sghmc", "momentum_buffer"
    documented = staticmethod(laws.kick_first)
    offers = frozenset({"temperature", "friction"})
    surprises = {
        "friction": "momentum is what a step forgets; PyTorch's is what it keeps"
    }

    def arguments(self, s):
        return super().arguments(s) | {
            "lr": s.step**2,
            "momentum": s.step * s.friction,
        }


ADAPTERS = [Langevin(), Momentum()]
