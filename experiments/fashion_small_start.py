"""The report's Figure 7a with the right noise from a small start, and its competitors.

As small_start, on clothes, with SGLD and Nesterov's momentum for rivals: settings and
length are those of fashion_reported.
"""

from functools import partial

from experiments import fashion, fashion_reported
from experiments.comparison import Methods, side_by_side
from experiments.study import Prepared


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    reported = fashion_reported.settings(prepared, small)
    names = {
        "SGHMC": "SGHMC, right noise",
        "SGLD": "SGLD, right noise",
        "SGD with Nesterov momentum": "SGD with momentum",
    }
    more = {"start": "fan-in", "record_every": 5 if small else 25}
    return {name: [reported[old][0].but(**more)] for name, old in names.items()}


EXPERIMENT = side_by_side(
    partial(fashion.prepare, name="fashion_small_start"), settings
)
