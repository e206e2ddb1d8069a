"""The report's Figure 5 with the right noise from a small start, and its competitors.

The experiment figure5 has the right noise from weights uniform on (−2, 2) alone, and
the small start with the program's noise alone. Here samplers at T = 1 and optimisers
all start from N(0, 1/fan-in); the other settings are those of Figure 5. Letters are
scored as in uncertainty.
"""

from experiments import mnist, report
from experiments.comparison import (
    Methods,
    look_at_ensembles,
    look_at_letters,
    side_by_side,
)
from experiments.study import Options, Prepared, no_digits


def prepare(options: Options) -> Prepared:
    """Load the digits, and images that are no digits."""
    prepared = mnist.prepare(options, name="small_start")
    return prepared._replace(others=no_digits(options))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    published = report.published(prepared, small)
    names = {
        "SGHMC": "SGHMC",
        "SGLD": "SGLD",
        "SGD with Nesterov momentum": "SGD with Nesterov momentum",
        "SGD": "SGD",
        "SGHMC, noise as programmed": "SGHMC, as programmed",
    }
    return {
        name: [published[old][0].but(start="fan-in", average_every=None)]
        for name, old in names.items()
    }


EXPERIMENT = side_by_side(
    prepare, settings, look=look_at_letters, look_at_all=look_at_ensembles
)
