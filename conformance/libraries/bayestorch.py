"""bayestorch: its two optimisers, with what they adapt frozen at one."""

from bayestorch.optim import SGHMC, SGLD
from libraries.torch_optim import Optimiser
from sglaws import Setting, laws


class Langevin(Optimiser):
    """θ ← θ − ½lr G g + N(0, lr G) (optim/sgld.py:147-166); with the decay rate 1 the
    preconditioner stays G = 1. The default moves it: no law in a formula.
    """

    name, kind, documented, make = "SGLD", "sgld", staticmethod(laws.sgld), SGLD
    blank = {"front door": "its preconditioner moves at the defaults: see below"}

    def arguments(self, s):
        frozen = {"num_burn_in_steps": 0, "precondition_decay_rate": 1.0}
        return {"lr": 2 * s.step} | frozen


class Default(Langevin):
    """The same with the preconditioner of its defaults: Li et al. (2016) without Γ."""

    name, documented, linear = "SGLD, preconditioned", None, False
    at_defaults = Setting(step=5e-3)
    blank = {
        test: "as without a preconditioner"
        for test in ("save and load", "copy", "later parameters", "schedule")
    }
    required = {"num_burn_in_steps": 0}

    def arguments(self, s):
        return {"lr": 2 * s.step, "num_burn_in_steps": 0}


def adapted(x, r, gradient, normal, s):
    """Springenberg et al. (2016), eq. 10, with a B̂ beside its own, ½ε V̂ at V̂ = 1."""
    s = s._replace(estimate=s.estimate + s.step / 2)
    return laws.kick_first(x, r, gradient, normal, s)


class Momentum(Optimiser):
    """ε = lr, C = momentum_decay / lr, M = √V̂, which is 1 without a burn-in; B̂ =
    grad_noise (optim/sghmc.py:159-181). Its reference is Chen et al. (2014); it says
    that it was adapted from a program (:30-31), which takes ε⁴ from the noise, too.
    """

    name, kind, make, buffer = "SGHMC", "sghmc", SGHMC, "momentum"
    documented = staticmethod(adapted)
    offers = frozenset({"friction", "estimate"})
    at_defaults = Setting(step=0.01, friction=5.0)
    required = {"num_burn_in_steps": 0}

    def arguments(self, s):
        return {
            "lr": s.step,
            "momentum_decay": s.friction * s.step,
            "grad_noise": s.estimate,
            "num_burn_in_steps": 0,
        }


ADAPTERS = [Langevin(), Default(), Momentum()]
