"""Whether cycles and momentum help in the order that Zhang et al. (2020) found on
CIFAR-10, at the scale of a laptop.

Twenty thousand images of CIFAR-10, averaged to 16 × 16 pixels, a network of two
convolutions with priors N(0, 1/fan-in), minibatches of 100, and 40 rounds for every
method; 5,000 other images choose the settings. The samplers are run twice: of the
posterior, and cold, at the temperature 1/N that the authors' program has by default.
The small version is on the 5,000 digits."""

import math
from collections.abc import Iterator
from functools import partial

from torch.nn import functional

from booklib.datasets import Data, cifar10
from booklib.networks import convolutional_network
from experiments import mnist
from experiments.cifar import standardise
from experiments.fits import Method, Task, compare, summary
from experiments.neighbours import DECAY, cycles, cyclical, sghmc, sgld
from experiments.options import Options, Prepared
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior

__all__ = ["methods", "prepare", "run", "summary"]

TRAINING, VALIDATION, ROUNDS, NETWORKS = 20_000, 5_000, 40, 18


def prepare(options: Options) -> Prepared:
    """Load the images, and make them small."""
    folder = options.folder("ordering")
    if options.small:
        network = partial(
            convolutional_network, (1, 28, 28), (8, 16), activation="relu"
        )
        return mnist.prepare(options)._replace(folder=folder, network=network)
    train, test = standardise(*cifar10(options.data), 3)
    train, test = (
        Data(functional.avg_pool2d(x.view(-1, 3, 32, 32), 2).flatten(1), targets)
        for x, targets in (train, test)
    )
    validation = Data(*(x[TRAINING : TRAINING + VALIDATION] for x in train))
    network = partial(convolutional_network, (3, 16, 16), (16, 32), activation="relu")
    return Prepared(
        Data(*(x[:TRAINING] for x in train)), test, network, folder, validation
    )


def methods(num_examples: int) -> dict[str, tuple[Method, list[dict]]]:
    """List the methods, each with the settings to choose from."""
    plain, momentum = (0.1, 0.3, 1.0), (0.03, 0.1, 0.3)
    found = {
        "SGD": (cycles, [{"rate": rate, "decay": 1.0, "number": 1} for rate in plain]),
        "SGD with momentum": (
            cycles,
            [{"rate": rate, "decay": DECAY, "number": 1} for rate in momentum],
        ),
        "snapshots of SGD": (cycles, [{"rate": rate, "decay": 1.0} for rate in plain]),
        "snapshots with momentum": (
            cycles,
            [{"rate": rate, "decay": DECAY} for rate in momentum],
        ),
    }
    for name, temperature in {"": 1.0, ", cold": 1 / num_examples}.items():
        given = {"temperature": temperature}
        found |= {
            f"SGLD{name}": (sgld, [{"rate": rate, **given} for rate in plain]),
            f"cSGLD{name}": (cyclical, [{"rate": rate, **given} for rate in plain]),
            f"SGHMC{name}": (
                sghmc,
                [{"rate": rate, "decay": DECAY, **given} for rate in momentum],
            ),
            f"cSGHMC{name}": (
                cyclical,
                [{"rate": rate, "decay": DECAY, **given} for rate in momentum],
            ),
        }
    return found


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    network = prepared.network()
    variances = {
        name: 1.0 if parameter.ndim == 1 else 1 / math.prod(parameter.shape[1:])
        for name, parameter in network.named_parameters()
    }
    rounds = 6 if options.small else ROUNDS

    def task(rounds: int, seed: int, path) -> Task:
        posterior = NetworkPosterior(
            network,
            *prepared.train,
            prior_variance=variances,
            batch_size=100,
            minibatches=Passes(),
        )
        return Task(
            posterior, rounds, min(NETWORKS, rounds // 2), seed, path, options.progress
        )

    return compare(
        methods(len(prepared.train.targets)), task, prepared, options, rounds
    )
