"""Steps per sample to the end: Figure 8 of Adam-Day et al. (2022), as in held.

The experiment held stops 50 rounds after the warm-up; here are all 800, and a network a
round is averaged.
"""

from functools import partial

from experiments import held, steps
from experiments.comparison import Methods, side_by_side
from experiments.study import Prepared


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    size = {} if small else {"rounds": 900, "burn_in": 99, "record_every": 25}
    return {
        name: [plan.but(**size)]
        for name, [plan] in held.settings(prepared, small).items()
    }


EXPERIMENT = side_by_side(partial(steps.prepare, name="held_whole"), settings)
