"""torch-uncertainty: its two optimisers, by file: its package wants lightning."""

import importlib.util
import sys
from pathlib import Path

from libraries.torch_optim import Optimiser, springenberg
from sglaws import Setting, laws

HOME = Path(importlib.util.find_spec("torch_uncertainty").origin).parent


def load(file):
    path = HOME / file
    spec = importlib.util.spec_from_file_location(f"tu_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Langevin(Optimiser):
    """θ ← θ − lr g + N(0, 2 lr s²), s = ``noise_factor``, "a factor to reduce the
    amount of noise" (optim/sgld.py:52-60), so T = s²: by default 10⁻⁴.
    """

    name, kind, documented = "SGLD", "sgld", staticmethod(laws.sgld)
    make, offers = load("optim/sgld.py").SGLD, frozenset({"temperature"})
    at_defaults = Setting(step=1e-3, temperature=1e-4)

    def arguments(self, s):
        return {"lr": s.step, "noise_factor": s.temperature**0.5}


class Momentum(Optimiser):
    """ε = lr, C = friction / lr (optim/sghmc.py:98-112); T = noise_factor², with a
    floor of 10⁻⁸ below the velocity's noise, which nothing documents.
    """

    name, kind, buffer = "SGHMC", "sghmc", "momentum"
    documented = staticmethod(springenberg)
    make = load("optim/sghmc.py").SGHMC
    offers = frozenset({"temperature", "friction"})
    at_defaults = Setting(step=0.01, friction=5.0, temperature=1e-4)
    required = {"burn_in_steps": 0}
    blank = {"mean of the loss": "V̂ = 1 without a burn-in, of which no noise is left"}

    def arguments(self, s):
        return {
            "lr": s.step,
            "friction": s.friction * s.step,
            "noise_factor": s.temperature**0.5,
            "burn_in_steps": 0,
        }


ADAPTERS = [Langevin(), Momentum()]
