"""The experiments whose runs are plans: what their settings have in common with each
other's, what they look at, and that their small versions run.

What is published is held against the settings by test_published.py.
"""

import pytest
import torch

from booklib.data import Data
from experiments import (
    EXPERIMENTS,
    comparison,
    load,
    noise,
)
from experiments.study import Options, Prepared, part
from sgmc.minibatches import Fresh
from tests.booklib.runs.test_runs import PLANS, make

NUMBERS = Data(torch.zeros(50_000, 1), torch.zeros(50_000, dtype=torch.int64))
FULL = Prepared(NUMBERS, NUMBERS)
SIDE_BY_SIDE = (
    "mnist_more uncertainty_control small_start fashion_small_start letters_report "
    "held_whole"
).split()
COMPARED = [
    name
    for name in EXPERIMENTS
    if load(name).plans
    and name not in ("sgnuts", "falling", "mnist")
    and not name.startswith("trees")
    and name not in SIDE_BY_SIDE
]


@pytest.fixture
def options(tmp_path):
    return Options(tmp_path / "nowhere", tmp_path, small=True, seeds=1, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_small_versions_run_keep_apart_and_go_on(name, options, monkeypatch):
    """Shortened to show that all the parts fit."""
    experiment, whole = load(name), comparison.compare
    size = {"rounds": 3, "burn_in": 1, "batch_size": 100, "record_every": 1}
    size |= {"keep_every": 1, "average_every": None}

    def short(methods, *given, **more):
        few = {name: [plans[0].but(**size)] for name, plans in methods.items()}
        return whole(few, *given, **more)

    monkeypatch.setattr(comparison, "compare", short)
    prepared = experiment.prepare(options)
    folder = "mnist" if name == "noise" else name
    assert prepared.folder == options.runs / f"{folder}-small"
    prepared = prepared._replace(
        train=part(prepared.train, slice(None, None, 20)),
        test=part(prepared.test, slice(None, None, 20)),
    )
    *_, result = experiment.run(options, prepared)
    *_, again = experiment.run(options, prepared)
    assert again == result
    for content in result["methods"].values():
        [run] = content["runs"]
        steps = len(prepared.train.targets) // 100 * 3 * run["plan"]["num_steps"]
        assert run["gradient_evaluations"] == steps and run["networks_averaged"] == 2


def test_a_share_of_the_coordinates_is_clipped_and_the_momentum_has_a_temperature():
    """With nearly no friction there is room in no coordinate that the data reach, step
    after step; with much there is in all.
    """
    plan = PLANS["SGHMC, precisions drawn"].but(rounds=5, minibatches=Fresh())
    for decay, share in (1e-9, 1.0), (1.0, 0.0):
        run = make(plan.but(momentum_decay=decay, noise_refresh=1))
        run.go(progress=False)
        found = noise.look(run)
        assert found["clipped"] == pytest.approx(share, abs=0.02)
        expected = float(run.chain.state.momentum[0, :24].square().mean())
        assert found["temperature"]["0.weight"] == pytest.approx(expected, abs=1e-5)
    zero = make(plan)
    zero.go(progress=False)
    assert "clipped" not in noise.look(zero)
