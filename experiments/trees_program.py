"""Epochs of trees by the rule of the report's program, and of ours on Fashion-MNIST.

The program grows its trees by rules of its own (:mod:`booklib.program_trees`), with one
momentum for all of them or a fresh one at every 50th, and takes the variance 2αT of the
noise for a standard deviation. On Fashion-MNIST our reading of the report goes three
epochs, as on MNIST in the experiment ``trees``.
"""

from collections.abc import Iterator
from functools import partial

from booklib.networks import multilayer_perceptron
from booklib.plans import Plan, Prior, Trees
from booklib.program_trees import ProgramTrees
from experiments import sgnuts
from experiments.mnist import LAYERS
from experiments.study import Experiment, Options, Prepared
from experiments.trees import of_epochs
from sgmc.minibatches import Fresh


def prepare(options: Options) -> dict[str, Prepared]:
    """Load the data, by name."""
    network, folder = partial(multilayer_perceptron, LAYERS), options.folder("program")
    data = sgnuts.prepare(options).items()
    return {name: on._replace(network=network, folder=folder) for name, on in data}


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; their rounds are samples."""
    rate, decay, batch_size, epoch = 2e-6, 0.01, 500, 100
    if small:
        rate, decay, batch_size, epoch = 0.1 / 4000, 0.02, 400, 10
    size = {"batch_size": batch_size, "burn_in": 0, "rounds": epoch if small else 300}
    rule = ProgramTrees(rate, decay, temperature=2 * decay)
    plan = Plan(rule, Prior(1.0), "uniform", Fresh(), data="MNIST", **size)
    plans = [
        plan.but(method="their rule, one momentum"),
        plan.but(method="their rule, a fresh momentum at 50", resample_every=50),
    ]
    if small:
        return plans
    reading = Trees(rate / 2, decay, "energy", "drift_kick", held=True)
    clothes = plan.but(kernel=reading, data="Fashion-MNIST")
    return [*plans, clothes.but(method="our reading, Fashion-MNIST")]


def run(options: Options, prepared: dict[str, Prepared]) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    return of_epochs(settings(options.small), options, prepared)


EXPERIMENT = Experiment(prepare, run, plans=True)
