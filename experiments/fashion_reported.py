"""Fashion-MNIST as the report's program ran it: Figure 7a of Adam-Day et al., at its
length, from its start, with its noise and without.

Their program starts every weight from U(-2, 2), draws each minibatch afresh, gives SGD
the momentum of Nesterov, and goes through 100 epochs of warm-up and 800 more. Its noise
has the variance (2αη)² for SGHMC and (2η)² for SGLD, so that both are samplers at the
temperatures 2αη and 2η. What it scores is drawn: a sampler's prediction is the class
that most draws name, one draw from each of its networks, and an optimiser's is one
class drawn from its last network, which errs as often as one less the probability of
the right class, on average. "Right noise" is the same at T = 1. The data and the
network are those of the experiment fashion, of which the small version is too."""

from functools import partial

from booklib.looks import drawn_by_round
from booklib.plans import Hamiltonian, Langevin, Nesterov, Plan, Prior, Settings
from experiments import fashion
from experiments.comparison import Methods, named, of_plans
from experiments.study import Prepared
from sgmc.minibatches import Fresh


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method; learning rates times N are those of the
    report for N = 50,000.
    """
    # the first network averaged is that of round 100
    size = {"rounds": 900, "burn_in": 99, "keep_every": 25, "record_every": 10}
    if small:
        size = {"rounds": 60, "burn_in": 29, "batch_size": 100}
        size |= {"keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)

    def plan(kernel: Settings) -> Plan:
        return Plan(kernel, Prior(1.0), "uniform", Fresh(), **size)

    sghmc, sgld = plan(Hamiltonian(0.05 / total, 0.01)), plan(Langevin(0.5 / total))
    return named(
        {
            "SGHMC": [sghmc.variance_as_scale()],
            "SGLD": [sgld.variance_as_scale()],
            "SGD": [sgld.but(temperature=0.0)],
            "SGD with momentum": [plan(Nesterov(0.05 / total, 0.01))],
            "SGHMC, right noise": [sghmc],
            "SGLD, right noise": [sgld],
        }
    )


EXPERIMENT = of_plans(
    partial(fashion.prepare, name="fashion_reported"),
    settings,
    look=lambda run: {"drawn": drawn_by_round(run)},
)
