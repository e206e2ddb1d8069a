"""Steps per sample on MNIST: m = 1, 3 and 5 with εm fixed, at equal samples and costs.

With the friction C fixed, ε/m is the learning rate η/m² and the momentum decay α/m:
every sample is the same stretch εm of the same dynamics in finer steps. At equal
samples a larger m costs m times more; at equal gradients all have what m = 1 has, and
average as many networks. The momentum is not drawn afresh.
"""

from functools import partial

from booklib import data as datasets
from booklib.data import part
from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Hamiltonian, Plan, Prior
from experiments.comparison import Methods, of_plans
from experiments.mnist import LAYERS
from experiments.study import Options, Prepared
from sgmc.minibatches import Fresh

STEPS = (1, 3, 5)


def prepare(options: Options, name: str = "steps") -> Prepared:
    """Load the digits; there is nothing to validate."""
    small = options.small
    train, test = datasets.digits() if small else datasets.mnist(options.data)
    network = partial(multilayer_perceptron, LAYERS, "relu")
    return Prepared(part(train, slice(50_000)), test, network, options.folder(name))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    size = {"rounds": 120, "burn_in": 100, "record_every": 4}
    if small:
        size = {"rounds": 30, "burn_in": 15, "batch_size": 100, "record_every": 3}
    kernel = Hamiltonian(0.1 / len(prepared.train.targets), 0.01)
    one = Plan(kernel, Prior(1.0), minibatches=Fresh(), **size)
    finer = {m: one.finer(m) for m in STEPS[1:]}
    # Without fresh momentum, m steps a sample are m samples of one step, so the chain
    # may be evaluated as often as at m = 1.
    equal = {m: plan.but(num_steps=1) for m, plan in finer.items()}
    return (
        {"m = 1": [one]}
        | {f"m = {m}, equal gradients": [plan] for m, plan in equal.items()}
        | {f"m = {m}, equal samples": [plan] for m, plan in finer.items()}
    )


EXPERIMENT = of_plans(prepare, settings)
