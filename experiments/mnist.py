"""MNIST as Chen et al. (2014) ran it: one hidden layer of 100 sigmoid units, Gibbs
steps for the prior, 800 rounds.

Of the 60,000 training digits the first 50,000 are for training and the last 10,000 for
validation, which chooses the settings of all methods but SGHMC, whose settings are
those of the paper. Only the final runs look at the 10,000 test digits. A round is a
pass over the training digits in a new random order, N/n minibatches of n, but for the
last method, which draws each minibatch afresh. The samplers draw the precision of each
tensor's prior by a Gibbs step after every round; the optimisers have one precision
(weight decay), chosen by validation."""

from collections.abc import Iterator
from functools import partial

import torch

from booklib.datasets import Data, digits, mnist
from booklib.networks import multilayer_perceptron
from experiments.comparison import Methods, compare, mistakes, named, summary
from experiments.options import Options, Prepared
from experiments.plan import Plan

__all__ = ["LAYERS", "prepare", "run", "settings", "summary"]

LAYERS = [784, 100, 10]


def prepare(options: Options) -> Prepared:
    """Load and split the data; the small version has 3,200, 800 and 1,000 digits."""
    network, folder = (
        partial(multilayer_perceptron, LAYERS, "sigmoid"),
        options.folder("mnist"),
    )
    if not options.small:
        train, test = mnist(options.data)
        return Prepared(
            Data(*(x[:50_000] for x in train)),
            test,
            network,
            folder,
            Data(*(x[50_000:] for x in train)),
        )
    train, test = digits()
    chosen = torch.arange(len(train.targets)) % 5 == 0  # they are sorted by class
    return Prepared(
        Data(*(x[~chosen] for x in train)),
        test,
        network,
        folder,
        Data(*(x[chosen] for x in train)),
    )


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings to choose from; the same learning rates times N suit the full
    and the small experiment.
    """
    size = (
        {
            "rounds": 100,
            "burn_in": 20,
            "batch_size": 100,
            "keep_every": 10,
            "record_every": 5,
        }
        if small
        else {}
    )
    total = len(prepared.train.targets)

    def sampler(rate: float, decay: float | None = None, **more) -> Plan:
        return Plan(rate / total, decay, **size, **more)

    def optimiser(rate: float, decay: float | None, precision: float) -> Plan:
        return sampler(rate, decay, temperature=0.0, prior_precision=precision)

    return named(
        {
            "SGHMC": [sampler(0.1, 0.01)],  # Chen et al. (2014): η = 0.1/N, α = 0.01
            "SGD with momentum": [
                optimiser(rate, 0.01, precision)
                for rate in (0.1, 0.2, 0.05)
                for precision in (1.0, 3.0, 10.0)
            ],
            "SGLD": [sampler(rate) for rate in (1.0, 2.0, 4.0, 8.0, 16.0)],
            "SGD": [
                optimiser(rate, None, precision)
                for rate in (2.0, 4.0, 8.0, 1.0)
                for precision in (1.0, 3.0, 10.0)
            ]
            + [optimiser(rate, None, 0.3) for rate in (2.0, 4.0, 8.0, 1.0)],
            "SGHMC, fresh minibatches": [sampler(0.1, 0.01, minibatches="fresh")],
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return compare(settings(prepared, options.small), prepared, options, look=mistakes)
