"""Epochs of trees by the rule of the report's program, on MNIST.

The program grows its trees by rules of its own (:mod:`experiments.program_trees`), with
one momentum for all of them or a fresh one at every 50th, and takes the variance 2α of
the noise for a standard deviation, which is a temperature of 2α.
"""

from collections.abc import Iterator

from booklib.runs.plans import Plan, Prior
from experiments import trees
from experiments.program_trees import ProgramTrees
from experiments.study import Experiment, Options, Prepared
from sgmc.minibatches import Fresh


def prepare(options: Options) -> Prepared:
    """Load the digits."""
    return trees.prepare(options)._replace(folder=options.folder("trees_program"))


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; their rounds are samples."""
    rate, decay, batch_size, epoch = 2e-6, 0.01, 500, 100
    if small:
        rate, decay, batch_size, epoch = 0.1 / 4000, 0.02, 400, 10
    size = {"batch_size": batch_size, "burn_in": 0, "rounds": epoch if small else 300}
    rule = ProgramTrees(rate, decay, temperature=2 * decay)
    plan = Plan(rule, Prior(1.0), "uniform", Fresh(), data="MNIST", **size)
    return [
        plan.but(method="their rule, one momentum"),
        plan.but(method="their rule, a fresh momentum at 50", resample_every=50),
    ]


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    return trees.of_epochs(settings(options.small), options, {"MNIST": prepared})


EXPERIMENT = Experiment(prepare, run, plans=True)
