"""Whether cycles and momentum help in the order of Zhang et al. (2020) on CIFAR-10.

At the scale of a laptop: 20,000 images averaged to 16 × 16 pixels, two convolutions
with priors N(0, 1/fan-in), minibatches of 100, 40 rounds for every method; 5,000 other
images choose the settings. Samplers run twice: of the posterior, and cold, at the
temperature 1/N that the authors' program has by default.
"""

import math
from collections.abc import Iterator
from functools import partial

from torch.nn import functional

from booklib.data import Data, cifar10, part, standardise
from booklib.models.networks import convolutional_network
from experiments import mnist
from experiments.fits import Methods, compare, tasks
from experiments.neighbours import DECAY, cycles, cyclical, sghmc, sgld
from experiments.study import Experiment, Options, Prepared, grid
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior

TRAINING, VALIDATION, ROUNDS, NETWORKS = 20_000, 5_000, 40, 18


def prepare(options: Options) -> Prepared:
    """Load the images, and shrink them."""
    network = partial(convolutional_network, activation="relu")
    if options.small:
        network = partial(network, (1, 28, 28), (8, 16))
        return mnist.prepare(options, name="ordering")._replace(network=network)
    train, test = (
        Data(functional.avg_pool2d(x.view(-1, 3, 32, 32), 2).flatten(1), targets)
        for x, targets in standardise(*cifar10(options.data), 3)
    )
    network = partial(network, (3, 16, 16), (16, 32))
    validation = part(train, slice(TRAINING, TRAINING + VALIDATION))
    folder, train = options.folder("ordering"), part(train, slice(TRAINING))
    return Prepared(train, test, network, folder, validation)


def methods(num_examples: int) -> Methods:
    """List the methods, each with the settings to choose from."""
    plain, momentum = (0.1, 0.3, 1.0), (0.03, 0.1, 0.3)
    found = {
        "SGD": (cycles, grid(rate=plain, decay=1.0, number=1)),
        "SGD with momentum": (cycles, grid(rate=momentum, decay=DECAY, number=1)),
        "snapshots of SGD": (cycles, grid(rate=plain, decay=1.0)),
        "snapshots with momentum": (cycles, grid(rate=momentum, decay=DECAY)),
    }
    for name, temperature in {"": 1.0, ", cold": 1 / num_examples}.items():
        given = {"rate": plain, "temperature": temperature}
        both = {"rate": momentum, "decay": DECAY, "temperature": temperature}
        found |= {
            f"SGLD{name}": (sgld, grid(**given)),
            f"cSGLD{name}": (cyclical, grid(**given)),
            f"SGHMC{name}": (sghmc, grid(**both)),
            f"cSGHMC{name}": (cyclical, grid(**both)),
        }
    return found


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    network = prepared.network()
    variances = {
        name: 1 / math.prod(parameter.shape[1:])
        for name, parameter in network.named_parameters()
    }
    rule = {"batch_size": 100, "minibatches": Passes()}
    posterior = NetworkPosterior(network, *prepared.train, variances, **rule)
    task = tasks(posterior, lambda rounds: min(NETWORKS, rounds // 2), options)
    listed = methods(len(prepared.train.targets))
    return compare(listed, task, prepared, options, 6 if options.small else ROUNDS)


EXPERIMENT = Experiment(prepare, run)
