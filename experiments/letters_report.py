"""Letters by the report's network: Figure 6a of Adam-Day et al. (2022).

Its settings are those of Figure 5, with its start uniform on (−2, 2); letters and
clothes are scored as in uncertainty. small_start has the same from a small start.
"""

from experiments import report, small_start
from experiments.comparison import (
    Methods,
    look_at_ensembles,
    look_at_letters,
    side_by_side,
)
from experiments.study import Options, Prepared


def prepare(options: Options) -> Prepared:
    """Load the digits, and images that are no digits."""
    prepared = small_start.prepare(options)
    return prepared._replace(folder=options.folder("letters_report"))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    published = report.published(prepared, small)
    return {
        name: [published[name][0].but(average_every=None)]
        for name in ("SGHMC, as programmed", "SGHMC", "SGD with Nesterov momentum")
    }


EXPERIMENT = side_by_side(
    prepare, settings, look=look_at_letters, look_at_all=look_at_ensembles
)
