"""lightning-uq-box: its optimiser; what trains by it has a report of its own."""

from libraries.torch_optim import Optimiser
from lightning_uq_box.uq_methods.sgld import SGLD
from sglaws import laws


class Langevin(Optimiser):
    """θ ← θ − lr g + N(0, 2 lr s²), s = ``noise_factor``, "how much noise to inject"
    (uq_methods/sgld.py): T = s².
    """

    name, kind, documented, make = "SGLD", "sgld", staticmethod(laws.sgld), SGLD
    offers, closure = frozenset({"temperature"}), (lambda: None,)

    def arguments(self, s):
        return {"lr": s.step, "noise_factor": s.temperature**0.5}


ADAPTERS = [Langevin()]
