"""Fashion-MNIST as the report's program ran it: Figure 7a of Adam-Day et al. (2022).

Their program starts every weight from U(-2, 2), draws each minibatch afresh, gives SGD
Nesterov's momentum, and takes 100 epochs of warm-up and 800 more. Its noise has the
variance (2αη)² for SGHMC and (2η)² for SGLD, those of the temperatures 2αη and 2η. It
scores drawn labels: for a sampler the class that most of its networks draw, for an
optimiser one draw from its last network. "Right noise" is the same at T = 1.
"""

from functools import partial

from booklib.runs.plans import Hamiltonian, Langevin, Nesterov, Plan, Prior, Settings
from booklib.runs.predictions import drawn_by_round
from experiments import fashion
from experiments.comparison import Methods, of_plans
from experiments.study import Prepared
from sgmc.minibatches import Fresh


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings; learning rates times N are the report's for N = 50,000."""
    # The first network averaged is that of round 100.
    size = {"rounds": 900, "burn_in": 99, "keep_every": 25, "record_every": 10}
    if small:
        size = {"rounds": 60, "burn_in": 29, "batch_size": 100}
        size |= {"keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)

    def plan(kernel: Settings) -> Plan:
        return Plan(kernel, Prior(1.0), "uniform", Fresh(), **size)

    sghmc, sgld = plan(Hamiltonian(0.05 / total, 0.01)), plan(Langevin(0.5 / total))
    return {
        "SGHMC": [sghmc.variance_as_scale()],
        "SGLD": [sgld.variance_as_scale()],
        "SGD": [sgld.but(temperature=0.0)],
        "SGD with momentum": [plan(Nesterov(0.05 / total, 0.01))],
        "SGHMC, right noise": [sghmc],
        "SGLD, right noise": [sgld],
    }


EXPERIMENT = of_plans(
    partial(fashion.prepare, name="fashion_reported"),
    settings,
    look=lambda run: {"drawn": drawn_by_round(run)},
)
