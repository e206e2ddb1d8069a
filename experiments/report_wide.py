"""The methods of the reproduction report on a grid that goes beyond its own on every side, with Nesterov's momentum among them.

Everything else is as in :mod:`experiments.report`.
"""

from collections.abc import Iterator

from experiments import report
from experiments.comparison import Methods, summary
from experiments.options import Options, Prepared

__all__ = ["prepare", "run", "settings", "summary"]


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment report."""
    return report.prepare(options)._replace(folder=options.folder("report_wide"))


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings to choose from."""
    return report.wider(prepared, small)


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return report.run(options, prepared, settings)
