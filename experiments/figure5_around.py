"""What the reproduction report tried around its Figure 5: regularisation, weight decay
and annealing, as its program has them.

Everything else is as in :mod:`experiments.report`.
"""

from collections.abc import Iterator

from experiments import report
from experiments.comparison import Methods, summary
from experiments.options import Options, Prepared

__all__ = ["prepare", "run", "settings", "summary"]


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment report."""
    return report.prepare(options)._replace(folder=options.folder("figure5_around"))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    return report.around(prepared, small)


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return report.run(options, prepared, settings)
