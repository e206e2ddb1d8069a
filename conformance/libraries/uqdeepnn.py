"""uqdeepnn: the two optimisers of its ``deepuq.methods.mcmc``."""

from deepuq.methods.mcmc import SGHMCOptimizer, SGLDOptimizer
from libraries.torch_optim import Optimiser
from sglaws import Setting, laws


class Langevin(Optimiser):
    """θ ← θ − lr g + N(0, 2 lr): "calibrated by the step size, following Welling & Teh"
    (methods/mcmc.py:11-47).
    """

    name, kind, documented = "SGLDOptimizer", "sgld", staticmethod(laws.sgld)
    make, at_defaults = SGLDOptimizer, Setting(step=1e-3)

    def arguments(self, s):
        return {"lr": s.step}


class Momentum(Optimiser):
    """v ← (1 − α)v − lr g + N(0, 2α lr) ``noise_scale``, θ ← θ + v: the docstring's
    formula (methods/mcmc.py:177-182). α = ``momentum_decay``, T = ``noise_scale``².
    """

    name, kind, make, buffer = "SGHMCOptimizer", "sghmc", SGHMCOptimizer, "velocity"
    documented = staticmethod(laws.kick_first)
    offers = frozenset({"temperature", "friction"})
    at_defaults = Setting(step=0.01, friction=1.0)

    def arguments(self, s):
        return {
            "lr": s.step**2,
            "momentum_decay": s.step * s.friction,
            "noise_scale": s.temperature**0.5,
        }


ADAPTERS = [Langevin(), Momentum()]
