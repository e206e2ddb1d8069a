"""CIFAR-10: the sampler of all layers and its optimiser once more, with 300 passes in
place of 60: one to two hours of a core for each.

What a pass moves a weight that the data leave alone, κ = (η/α)(N/n), is also what the
minibatches heat every other one by, κNσ²/2 for an example's gradient of variance σ²,
whatever η, α and n: larger minibatches, more friction and smaller steps are one remedy.
So the sampler's learning rate falls to a sixteenth over the first half of its passes,
and with it κ and the heat; then it stays, and the networks of the other half are
averaged. The optimiser's falls to zero over the same number of passes. Network, priors
and images are those of the experiment cifar, and so is the small version."""

from collections.abc import Iterator
from dataclasses import replace

from experiments import cifar
from experiments.cifar import heat, on
from experiments.comparison import Methods, compare, named, summary
from experiments.options import Options, Prepared

__all__ = ["prepare", "run", "settings", "summary"]

LONGER, COOLED = 5, 1 / 16


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment cifar."""
    return cifar.prepare(options)._replace(folder=options.folder("cifar_hour"))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    methods = cifar.settings(prepared, small)
    [body], [falling] = methods["all layers"], methods["all layers, falling rate"]
    longer = {"rounds": LONGER * body.rounds, "burn_in": LONGER * body.rounds // 2}
    return named(
        {
            "all layers, cooled": [replace(body, cooled=COOLED, **longer)],
            "all layers, falling rate": [replace(falling, **longer)],
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the two."""
    return compare(
        settings(prepared, options.small),
        prepared,
        options,
        look=lambda run: {"heat": heat(run)},
        on=on,
    )
