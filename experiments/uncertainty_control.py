"""Whether sampling or the prior detects the letters: uncertainty, with priors changed.

SGHMC draws the precisions of four priors, and the optimiser it is compared with has
one, λ = 3. Here SGHMC has λ = 3 for all tensors, and the optimiser, and ensembles of
five, the precisions that SGHMC learned, :data:`LEARNED`. Seeds are those of mnist_more,
which has the two with their own priors.
"""

from functools import partial

from booklib.runs.plans import Prior
from experiments import mnist_more
from experiments.comparison import Methods, side_by_side
from experiments.study import Prepared

# These are precisions of weights and biases of the first layer and of the second,
# averaged over the five seeds of mnist and their rounds 60 to 800.
LEARNED = (3.24, 0.0928, 0.195, 1.02)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    plans = mnist_more.settings(prepared, small)
    [sghmc], [momentum] = plans["SGHMC"], plans["SGD with momentum"]
    return {
        "SGHMC, λ = 3": [sghmc.but(prior=momentum.prior)],
        "SGD with momentum, learned λ": [momentum.but(prior=Prior(LEARNED))],
    }


EXPERIMENT = side_by_side(
    partial(mnist_more.prepare, name="uncertainty_control"),
    settings,
    first=mnist_more.FIRST,
    look=mnist_more.look,
    look_at_all=mnist_more.look_at_ensembles,
)
