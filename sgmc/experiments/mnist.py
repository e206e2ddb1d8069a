"""MNIST as Chen et al. (2014) ran it: one hidden layer of 100 sigmoid units, Gibbs steps for the prior, 800 rounds.

Of the 60,000 training digits the first 50,000 are for training and the last 10,000 for validation, which chooses the settings of all
methods but SGHMC, whose settings are those of the paper. Only the final runs look at the 10,000 test digits. A round is a pass
over the training digits in a new random order, N/n minibatches of n, but for the last method, which draws each minibatch afresh.
The samplers draw the precision of each tensor's prior by a Gibbs step after every round; the optimisers have one precision (weight
decay), chosen by validation.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from sgmc.datasets import Data, digits, mnist
from sgmc.experiments import comparison
from sgmc.experiments.comparison import LAYERS, Prepared, checkpoint, one_run, summary
from sgmc.experiments.runner import Options, Plan

__all__ = ["LAYERS", "SETTINGS", "Prepared", "checkpoint", "one_run", "prepare", "run", "settings", "summary"]

# Learning rates times N, the number of training digits: the same number suits the full and the small experiment.
SETTINGS = {
    "SGHMC": [Plan("SGHMC", 0.1, 0.01)],  # Chen et al. (2014): η = 0.1/N, α = 0.01
    "SGD with momentum": [Plan("SGD with momentum", rate, 0.01, 0.0, decay) for rate in (0.1, 0.2, 0.05) for decay in (1.0, 3.0, 10.0)],
    "SGLD": [Plan("SGLD", rate, None) for rate in (1.0, 2.0, 4.0, 8.0, 16.0)],
    "SGD": [Plan("SGD", rate, None, 0.0, decay) for rate in (2.0, 4.0, 8.0, 1.0) for decay in (1.0, 3.0, 10.0)]
    + [Plan("SGD", rate, None, 0.0, 0.3) for rate in (2.0, 4.0, 8.0, 1.0)],
    "SGHMC, fresh minibatches": [Plan("SGHMC, fresh minibatches", 0.1, 0.01, minibatches="fresh")],
}


def prepare(options: Options) -> Prepared:
    """Load and split the data; the small version has 3,200, 800 and 1,000 digits."""
    if not options.small:
        train, test = mnist(options.data)
        return Prepared(Data(*(x[:50_000] for x in train)), Data(*(x[50_000:] for x in train)), test, options.runs / "mnist")
    train, test = digits()
    chosen = torch.arange(len(train.targets)) % 5 == 0  # they are sorted by class
    validation = Data(train.inputs[chosen], train.targets[chosen])
    return Prepared(Data(train.inputs[~chosen], train.targets[~chosen]), validation, test, options.runs / "mnist-small")


def settings(prepared: Prepared, small: bool) -> dict[str, list[Plan]]:
    """List the settings to choose from, for each method, with the learning rates divided by N."""
    size = {"rounds": 100, "burn_in": 20, "batch_size": 100, "keep_every": 10, "record_every": 5} if small else {}
    total = len(prepared.train.targets)
    return {
        method: [replace(plan, learning_rate=plan.learning_rate / total, **size) for plan in plans] for method, plans in SETTINGS.items()
    }


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return comparison.compare(settings(prepared, options.small), prepared, options)
