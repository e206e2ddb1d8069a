"""The recommender: parts of the ratings, what methods are made of, what is measured and
stored.
"""

import json

import pytest
import torch

from experiments import recommender
from experiments.recommender import (
    Prediction,
    descend,
    gibbs,
    made_up,
    measure,
    parts,
    walk,
)
from experiments.study import CACHE, Options
from sgmc.minibatches import Fresh


@pytest.fixture
def prepared(tmp_path):
    return made_up(tmp_path / "recommender", 40, 30, 600, 2)


def task_of(*arguments, **settings):
    return recommender.task_of(*arguments, minibatches=Fresh(), **settings)


def options(folder, data=None, **settings):
    data = CACHE.expanduser() if data is None else data
    return Options(
        **{"data": data, "runs": folder, "seeds": 2, "progress": False} | settings
    )


def test_every_rating_is_tested_once_and_validation_sees_no_test(prepared):
    tests = [parts(prepared, fold)[1] for fold in range(5)]
    assert torch.equal(torch.cat(tests).sort().values, torch.arange(600)) and {
        len(test) for test in tests
    } == {120}
    for fold, test in enumerate(tests):
        train, again = parts(prepared, fold)
        assert (
            torch.equal(test, again) and len(torch.cat([train, test]).unique()) == 600
        )
        learnt, held_back = parts(prepared, fold, validation=True)
        assert len(held_back) == 48 and torch.equal(
            torch.cat([held_back, learnt]), train
        )


def test_what_is_measured(prepared):
    train, test = parts(prepared, 0)
    task = task_of(prepared, train, test, passes=1, seed=0)
    ratings, means = (
        prepared.ratings.ratings[test].double(),
        prepared.means[test].double(),
    )
    truth = measure(
        Prediction(means, torch.full_like(means, 0.85)), prepared, task, test
    )["all"]
    assert truth["rmse_of_means"] == 0 and truth["rmse"] == truth[
        "floor"
    ] == pytest.approx(0.85, abs=4 * 0.85 / 240**0.5)
    assert (
        truth["width"] == pytest.approx(2 * 1.64485 * 0.85, rel=1e-4)
        and truth["ratings"] == 120
    )
    assert truth["coverage"] == pytest.approx(0.9, abs=4 * (0.09 / 120) ** 0.5)
    exact = measure(
        Prediction(ratings - 1, torch.full_like(means, 1 / 1.7)), prepared, task, test
    )
    assert exact["all"]["rmse"] == 1 and exact["all"]["coverage"] == 0
    assert (
        measure(
            Prediction(ratings - 1, torch.full_like(means, 1 / 1.6)),
            prepared,
            task,
            test,
        )["all"]["coverage"]
        == 1
    )
    counts = prepared.ratings.items[train].bincount(minlength=30)[
        prepared.ratings.items[test]
    ]
    assert exact["cold items"]["ratings"] == int((counts <= recommender.COLD).sum()) > 0


@pytest.fixture
def known():
    """Ratings with so little noise that a good method must predict them."""
    ratings, means = recommender.made_up_ratings(60, 50, 2_400, rank=2, noise_std=0.3)
    return recommender.Prepared(ratings, means, "made up", 2, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (descend, {"rate": 0.01, "precision": 0.3}),
        (descend, {"rate": 0.001, "precision": 0.3, "momentum_decay": 0.1}),
        (walk, {"share": 0.5, "hamiltonian": True}),
        (walk, {"share": 0.5, "hamiltonian": False}),
        (gibbs, {}),
    ],
)
def test_every_method_finds_the_factors(method, settings, known):
    """Biases alone leave an error of about √(0.3² + ¼) = 0.58, and truth one of 0.3;
    all methods come to 0.32.
    """
    train, test = parts(known, 0)
    task = task_of(known, train, test, passes=30, seed=0)
    scores = measure(method(task, **settings), known, task, test)["all"]
    assert scores["rmse"] < 0.4 and scores["coverage"] > 0.75


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(recommender, "PASSES", 8)
    monkeypatch.setattr(
        recommender,
        "METHODS",
        {
            name: (*recommender.METHODS[name][:1], recommender.METHODS[name][1][:2])
            for name in ("SGD", "SGHMC", "Gibbs, all the data")
        },
    )


@pytest.mark.slow
def test_what_is_stored_and_that_it_is_not_made_again(
    tmp_path, prepared, quick, monkeypatch
):
    *_, result = recommender.run(options(tmp_path), prepared)
    assert (
        result["ratings"] == 600
        and "made up" in result["data"]
        and result["steps"] == 8 * 160
    )
    for name, content in result["methods"].items():
        assert [row["fold"] for row in content["runs"]] == [0, 1]
        assert ("scores_with_validated_width" in content["runs"][0]) == (name == "SGD")
        if content["tuning"]:
            assert (
                content["settings"]
                == min(content["tuning"], key=lambda row: row["rmse"])["settings"]
                and len(content["tuning"]) == 2
            )
    json.dumps(result, allow_nan=False)
    for name in ("tried", "fitted"):
        monkeypatch.setattr(
            recommender, name, lambda *arguments: pytest.fail("it was made before")
        )
    *_, again = recommender.run(options(tmp_path), prepared)
    assert again == result
