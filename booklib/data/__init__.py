"""The data sets of the book, one file for each kind."""

from booklib.data.characters import digits, letters, split_digits
from booklib.data.examples import Data, part
from booklib.data.images import (
    cifar10,
    fashion_mnist,
    mnist,
    notmnist,
    read_idx,
    scramble,
    standardise,
)
from booklib.data.ratings import Ratings, made_up_ratings, movielens
from booklib.data.tabular import (
    diabetes,
    mushrooms,
    synthetic_mushrooms,
)

__all__ = [
    "Data",
    "Ratings",
    "cifar10",
    "diabetes",
    "digits",
    "fashion_mnist",
    "letters",
    "made_up_ratings",
    "mnist",
    "movielens",
    "mushrooms",
    "notmnist",
    "part",
    "read_idx",
    "scramble",
    "split_digits",
    "standardise",
    "synthetic_mushrooms",
]
