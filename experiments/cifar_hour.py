"""CIFAR-10: the sampler of all layers and its optimiser once more, with 300 epochs.

κ = (η/α)(N/n) is how far an epoch moves a weight that the data leave alone; minibatches
raise the temperature of every other weight by κNσ²/2, for an example's gradient of
variance σ². So the sampler's rate falls to a sixteenth over the first half of its
epochs, and with it κ and that excess; the networks of the other half are averaged. The
optimiser's falls to zero.
"""

from functools import partial

from booklib.runs.plans import Cooled
from experiments import cifar
from experiments.comparison import Methods, of_plans
from experiments.study import Prepared

LONGER, COOLED = 5, 1 / 16


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    methods = cifar.settings(prepared, small)
    [body], [falling] = methods["all layers"], methods["all layers, falling rate"]
    longer = {"rounds": LONGER * body.rounds, "burn_in": LONGER * body.rounds // 2}
    return {
        "all layers, cooled": [body.but(schedule=Cooled(COOLED), **longer)],
        "all layers, falling rate": [falling.but(**longer)],
    }


EXPERIMENT = of_plans(
    partial(cifar.prepare, name="cifar_hour"), settings, look=cifar.heat, on=cifar.on
)
