"""The recommender on made-up ratings, as many as MovieLens-100K has, at a tenth of the
cost; its model is known, so that truth can be told.

Everything else is as in :mod:`experiments.recommender`.
"""

from experiments.options import Options
from experiments.recommender import MADE_UP_RANK, Prepared, made_up, run, summary

__all__ = ["prepare", "run", "summary"]


def prepare(options: Options) -> Prepared:
    """Make the ratings up."""
    size = (100, 80, 3_000, 2) if options.small else (943, 1_682, 100_000, MADE_UP_RANK)
    return made_up(options.folder("recommender_100k"), *size)
