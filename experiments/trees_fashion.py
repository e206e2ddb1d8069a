"""Three epochs of our trees on Fashion-MNIST, as on MNIST in ``trees``."""

from collections.abc import Iterator
from functools import partial

from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Plan, Prior, Trees
from experiments import sgnuts, trees
from experiments.mnist import LAYERS
from experiments.study import Experiment, Options, Prepared
from sgmc.minibatches import Fresh


def prepare(options: Options) -> Prepared:
    """Load the clothes; digits if small."""
    prepared = list(sgnuts.prepare(options).values())[-1]
    network = partial(multilayer_perceptron, LAYERS)
    return prepared._replace(network=network, folder=options.folder("trees_fashion"))


def settings(small: bool) -> list[Plan]:
    """List the plan for seed 0; its rounds are samples."""
    both, size = (1e-6, 0.01), {"burn_in": 0, "rounds": 300}
    if small:
        both, size = (0.1 / 4000, 0.02), {"burn_in": 0, "rounds": 10, "batch_size": 400}
    reading = Trees(*both, "energy", "drift_kick", held=True)
    plan = Plan(reading, Prior(1.0), "uniform", Fresh(), data="Fashion-MNIST", **size)
    return [plan.but(method="our reading, Fashion-MNIST")]


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run the plan, one seed after the other, and yield the result after each run."""
    return trees.of_epochs(
        settings(options.small), options, {"Fashion-MNIST": prepared}
    )


EXPERIMENT = Experiment(prepare, run, plans=True)
