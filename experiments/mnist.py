"""MNIST as Chen et al. (2014) ran it: 100 sigmoid units, Gibbs steps for the prior.

Validation, on the last 10,000 of the 60,000 training digits, chooses the settings of
all methods but SGHMC, whose settings are those of the paper; only the final runs look
at the test digits. Samplers draw the precision of each tensor's prior by a Gibbs step
after every round; optimisers have one precision (weight decay).
"""

from functools import partial

from booklib import data as datasets
from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Hamiltonian, Langevin, Plan, Prior, Settings
from experiments.comparison import Methods, mistakes, of_plans
from experiments.study import Options, Prepared, split
from sgmc.minibatches import Fresh

LAYERS = [784, 100, 10]


def prepare(
    options: Options, activation: str = "relu", name: str = "mnist"
) -> Prepared:
    """Load and split the digits, for the network of most experiments."""
    network = partial(multilayer_perceptron, LAYERS, activation)
    return split(options, datasets.mnist, network, name)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings; the same rates times N suit the full and the small version."""
    size = {}
    if small:
        size = {"rounds": 100, "burn_in": 20, "batch_size": 100}
        size |= {"keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)

    def optimisers(kernels: list[Settings], precisions: tuple) -> list[Plan]:
        return [
            Plan(kernel, Prior(precision), **size)
            for kernel in kernels
            for precision in precisions
        ]

    # these are the settings of Chen et al. (2014)
    sghmc = Plan(Hamiltonian(0.1 / total, 0.01), **size)
    momentum = [Hamiltonian(rate / total, 0.01, 0.0) for rate in (0.1, 0.2, 0.05)]
    plain = [Langevin(rate / total, 0.0) for rate in (2.0, 4.0, 8.0, 1.0)]
    rates = (1.0, 2.0, 4.0, 8.0, 16.0)
    return {
        "SGHMC": [sghmc],
        "SGD with momentum": optimisers(momentum, (1.0, 3.0, 10.0)),
        "SGLD": [Plan(Langevin(rate / total), **size) for rate in rates],
        "SGD": optimisers(plain, (1.0, 3.0, 10.0)) + optimisers(plain, (0.3,)),
        "SGHMC, fresh minibatches": [sghmc.but(minibatches=Fresh())],
    }


EXPERIMENT = of_plans(partial(prepare, activation="sigmoid"), settings, look=mistakes)
