"""The hybrid of the reproduction report by its program's trees: one epoch, then SGHMC.

The trees are those of trees_program, and SGHMC at T = 1 goes on from where they end;
epochs and averages are those of trees, which has SGHMC alone with the same seeds.
"""

from collections.abc import Iterator

from booklib.runs.plans import HeadStart, Plan
from experiments import trees, trees_program
from experiments.study import Experiment, Options, Prepared


def prepare(options: Options) -> Prepared:
    """Load the digits."""
    return trees.prepare(options)._replace(folder=options.folder("trees_hybrid"))


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; their rounds are samples."""
    sghmc = trees.settings(small)[0]
    return [
        sghmc.but(kernel=HeadStart(plan.kernel, 1), method=f"{plan.method}, then SGHMC")
        for plan in trees_program.settings(small)
    ]


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    return trees.of_epochs(settings(options.small), options, {"": prepared})


EXPERIMENT = Experiment(prepare, run, plans=True)
