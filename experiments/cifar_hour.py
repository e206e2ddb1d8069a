"""CIFAR-10: the sampler of all layers and its optimiser once more, with 300 passes in
place of 60: one to two hours of a core for each.

What a pass moves a weight that the data leave alone, κ = (η/α)(N/n), is also what the
minibatches heat every other one by, κNσ²/2 for an example's gradient of variance σ²,
whatever η, α and n: larger minibatches, more friction and smaller steps are one remedy.
So the sampler's learning rate falls to a sixteenth over the first half of its passes,
and with it κ and the heat; then it stays, and the networks of the other half are
averaged. The optimiser's falls to zero over the same number of passes. Network, priors
and images are those of the experiment cifar, and so is the small version."""

from functools import partial

from booklib.plans import Cooled
from experiments import cifar
from experiments.comparison import Methods, named, of_plans
from experiments.study import Prepared

LONGER, COOLED = 5, 1 / 16


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    methods = cifar.settings(prepared, small)
    [body], [falling] = methods["all layers"], methods["all layers, falling rate"]
    longer = {"rounds": LONGER * body.rounds, "burn_in": LONGER * body.rounds // 2}
    cooled = body.but(schedule=Cooled(COOLED), **longer)
    names = "all layers, cooled", "all layers, falling rate"
    return named({names[0]: [cooled], names[1]: [falling.but(**longer)]})


EXPERIMENT = of_plans(
    partial(cifar.prepare, name="cifar_hour"), settings, look=cifar.heat, on=cifar.on
)
