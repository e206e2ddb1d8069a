"""Fifteen more seeds of mnist's five methods, and of falling's, side by side.

Five seeds left the comparisons of Chen et al. (2014, Figure 4) open, so the rule was
fixed before these were run. The new seeds alone decide; all twenty are shown.

* The source's family has four comparisons of the test error, those of :data:`GAPS`:
  each sampler, by its averaged prediction, against each optimiser, by its last network.
  They are tested by Holm's rule at :data:`LEVEL`, each with the larger of the p-values
  of the paired and of Welch's t-test.
* Two methods are called equal if the 95 % interval lies within half of the published
  gap on both sides of zero.
* All other comparisons, such as those with an optimiser's average or a falling rate,
  are a second family.

The settings are those that validation chose for mnist and falling.
"""

from booklib.runs.plans import Falling, Hamiltonian, Langevin, Prior
from experiments import mnist
from experiments.comparison import (
    Methods,
    look_at_ensembles,
    look_at_letters,
    mistakes,
    side_by_side,
)
from experiments.study import Options, Prepared, no_digits
from sgmc.minibatches import Fresh

FIRST = 5  # mnist has the seeds 0 to 4
LEVEL = 0.05
# Each entry has a sampler, an optimiser, and the published difference by which the
# sampler's error is smaller.
GAPS = {
    ("SGHMC", "SGD with momentum"): 0.0183 - 0.0156,
    ("SGHMC", "SGD"): 0.0202 - 0.0156,
    ("SGLD", "SGD with momentum"): 0.0183 - 0.0178,
    ("SGLD", "SGD"): 0.0202 - 0.0178,
}


def prepare(options: Options, name: str = "mnist_more") -> Prepared:
    """Load the digits of the experiment mnist, and images that are no digits."""
    prepared = mnist.prepare(options, "sigmoid", name)
    return prepared._replace(others=no_digits(options))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    total = len(prepared.train.targets)
    [sghmc] = mnist.settings(prepared, small)["SGHMC"]
    sghmc = sghmc.but(record_every=5 if small else 25)

    def optimiser(kernel: Hamiltonian | Langevin, precision: float):
        return sghmc.but(kernel=kernel, prior=Prior(precision))

    momentum = optimiser(Hamiltonian(0.1 / total, 0.01, 0.0), 3.0)
    falling = momentum.but(learning_rate=0.2 / total, schedule=Falling())
    return {
        "SGHMC": [sghmc],
        "SGD with momentum": [momentum],
        "SGLD": [sghmc.but(kernel=Langevin(4.0 / total))],
        "SGD": [optimiser(Langevin(2.0 / total, 0.0), 1.0)],
        "SGD with momentum, falling rate": [falling],
        "SGHMC, fresh minibatches": [sghmc.but(minibatches=Fresh())],
    }


def look(one, prepared: Prepared) -> dict:
    """List the digits that are wrong, and score the networks on letters."""
    return mistakes(one) | look_at_letters(one, prepared)


EXPERIMENT = side_by_side(
    prepare, settings, first=FIRST, look=look, look_at_all=look_at_ensembles
)
