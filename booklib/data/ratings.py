"""Ratings of items by users: MovieLens, and ratings drawn from a factor model."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance, check_number


class Ratings(NamedTuple):
    """Ratings, with the user and the item of each."""

    users: Tensor  #: (N,) int64 from 0
    items: Tensor  #: (N,) int64 from 0
    ratings: Tensor  #: (N,) float32


# MovieLens has its ratings in these files: each has its folder in the archive and the
# separator between the four numbers of a line.
MOVIELENS_FILES = {"ratings.dat": ("ml-1m", "::"), "u.data": ("ml-100k", "\t")}


def movielens(folder: str | Path) -> Ratings:
    """Load your own copy of MovieLens-1M or MovieLens-100K (Harper and Konstan, 2015):
    ``ratings.dat`` or ``u.data``.

    Their licence forbids to pass them on, so nothing is fetched: get ml-1m.zip or
    ml-100k.zip from GroupLens and unpack it. Users and items are numbered from 0 in the
    order of their numbers in the file; what nobody rated has no number.

    Args:
        folder: the folder with the file, or the one with ``ml-1m`` or ``ml-100k`` in
            it. If there are both, the larger set is read.

    Returns:
        The ratings in the order of the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not four whole numbers, a rating is not from 1 to 5, or
            somebody rated something twice.

    Example:
        >>> movielens("data").ratings.shape  # doctest: +SKIP
        torch.Size([1000209])
    """
    check_instance("folder", folder, str | Path, '"ml-1m"')
    places = [
        Path(folder) / inner / name
        for name, (archive, _) in MOVIELENS_FILES.items()
        for inner in ("", archive)
    ]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise FileNotFoundError(
            f"{Path(folder).resolve()} holds neither ratings.dat of MovieLens-1M nor "
            "u.data of MovieLens-100K, which may not be passed on: "
            "get ml-1m.zip from https://grouplens.org/datasets/movielens/ and unpack "
            "it there"
        )
    separator = MOVIELENS_FILES[path.name][1]
    lines = path.read_text(encoding="latin-1").splitlines()
    table = np.empty((len(lines), 4), dtype=np.int64)
    for number, line in enumerate(lines, 1):
        try:
            table[number - 1] = list(map(int, line.split(separator)))
        except ValueError as error:
            raise ValueError(
                f"{path} must have four whole numbers in a line with {separator!r} "
                "between them, user, item, rating and time, but line "
                f"{number} is {line[:60]!r}: is it from the archive? Unpack it again"
            ) from error
    if len(table) == 0 or table[:, 2].min() < 1 or table[:, 2].max() > 5:
        given = (
            f"they go from {table[:, 2].min()} to {table[:, 2].max()}"
            if len(table)
            else "it is empty"
        )
        raise ValueError(
            f"{path} must have ratings from 1 to 5, but {given}: unpack the archive "
            "again"
        )
    users, items = (
        torch.from_numpy(
            np.unique(table[:, column], return_inverse=True)[1].reshape(-1)
        )
        for column in (0, 1)
    )
    pairs = users * (int(items.max()) + 1) + items
    if len(pairs.unique()) < len(pairs):
        raise ValueError(
            f"{path} has {len(pairs) - len(pairs.unique())} ratings of what their "
            "users rated before: unpack the archive again"
        )
    return Ratings(users, items, torch.from_numpy(table[:, 2]).float())


def made_up_ratings(
    num_users: int = 6_040,
    num_items: int = 3_706,
    num_ratings: int = 1_000_209,
    rank: int = 5,
    noise_std: float = 0.85,
    seed: int = 0,
) -> tuple[Ratings, Tensor]:
    """Draw ratings from a factor model, by default as many as MovieLens-1M has: no such
    users or items exist.

    A rating is 3.6 + aᵢ + bⱼ + uᵢ·wⱼ and noise N(0, σ²), a real number and no stars,
    with aᵢ ~ N(0, 0.4²), bⱼ ~ N(0, 0.5²) and factors so wide that uᵢ·wⱼ has variance ¼.
    Who rates much and what is rated often have popularities e^x with x ~ N(0, 1) and
    e^1.5x, and pairs are drawn without replacement with probabilities in proportion to
    the product: a few items have most of the ratings, and many hardly any.

    Args:
        num_users: number of users.
        num_items: number of items.
        num_ratings: N, at most the number of pairs.
        rank: length of uᵢ and wⱼ.
        noise_std: σ.
        seed: seed of the generator, the only source of randomness.

    Returns:
        The ratings, and their means without the noise, ``(N,)``.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> data, means = made_up_ratings(20, 10, 100)
        >>> data.users.shape, bool(0.7 < (data.ratings - means).std() < 1)
        (torch.Size([100]), True)
    """
    for name, value in {
        "num_users": num_users,
        "num_items": num_items,
        "num_ratings": num_ratings,
        "rank": rank,
    }.items():
        check_count(name, value)
    check_count("seed", seed, at_least=0)
    check_number("noise_std", noise_std, 0)
    if num_ratings > num_users * num_items:
        raise ValueError(
            f"num_ratings is {num_ratings}, but {num_users} users and {num_items} "
            f"items have {num_users * num_items} pairs"
        )
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    # The largest of log-weights with Gumbel noise are a sample without replacement in
    # proportion to the weights.
    keys = (
        torch.rand(num_users, num_items, generator=generator)
        .log_()
        .neg_()
        .log_()
        .neg_()
    )
    keys += normal(num_users, 1) + 1.5 * normal(1, num_items)
    chosen = keys.flatten().topk(num_ratings, sorted=False).indices.sort().values
    users, items = chosen // num_items, chosen % num_items
    factor_std = (0.25 / rank) ** 0.25
    user_factors, item_factors = (
        factor_std * normal(num_users, rank),
        factor_std * normal(num_items, rank),
    )
    means = 3.6 + 0.4 * normal(num_users)[users] + 0.5 * normal(num_items)[items]
    means += (user_factors[users] * item_factors[items]).sum(-1)
    return Ratings(users, items, means + noise_std * normal(num_ratings)), means
