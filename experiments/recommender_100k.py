"""The recommender on made-up ratings, as many as MovieLens-100K has."""

from experiments import recommender
from experiments.recommender import MADE_UP_RANK, SMALL, Prepared, made_up
from experiments.study import Options


def prepare(options: Options) -> Prepared:
    """Make the ratings up."""
    size = SMALL if options.small else (943, 1_682, 100_000, MADE_UP_RANK)
    return made_up(options.folder("recommender_100k"), *size)


EXPERIMENT = recommender.EXPERIMENT._replace(prepare=prepare)
