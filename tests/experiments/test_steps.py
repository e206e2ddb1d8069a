"""Steps per sample: what m means, and what is held fixed."""

from dataclasses import replace

import pytest
import torch

from experiments import steps
from experiments.options import Options
from experiments.plan import Plan
from experiments.run import Run


@pytest.fixture
def options(tmp_path):
    return Options(
        data=tmp_path / "nowhere", runs=tmp_path, small=True, seeds=1, progress=False
    )


def test_equal_samples_and_equal_gradients_are_what_they_say(options):
    prepared = steps.prepare(options)
    for small in (True, False):
        plans = {
            name: choices[0]
            for name, choices in steps.settings(prepared, small).items()
        }
        one = plans["m = 1"]
        for name, plan in plans.items():
            m = int(name.split(",")[0].removeprefix("m = "))
            assert (plan.rounds, plan.burn_in, plan.num_steps) == (
                one.rounds,
                one.burn_in,
                m if "samples" in name else 1,
            )
            assert plan.learning_rate * m**2 == pytest.approx(
                one.learning_rate
            ) and plan.momentum_decay * m == pytest.approx(0.01)


def test_m_steps_a_sample_are_m_samples_of_one_step(options):
    """Without fresh momentum m only thins: the same chain, with a prediction every m-th
    time.
    """
    prepared = steps.prepare(options)
    three = Plan(
        1e-6,
        0.01,
        prior_precision=1.0,
        rounds=2,
        burn_in=1,
        batch_size=500,
        num_steps=3,
    )
    plans = [three, replace(three, num_steps=1, rounds=6)]
    runs = [
        Run(plan, prepared.network(), prepared.train, prepared.test) for plan in plans
    ]
    results = [run.go(progress=False) for run in runs]
    assert torch.equal(runs[0].walk.state.position, runs[1].walk.state.position)
    assert (
        results[0]["gradient_evaluations"] == results[1]["gradient_evaluations"] == 48
    )


def test_small_runs_end_to_end_and_resume(options, monkeypatch):
    settings = steps.settings
    size = {"rounds": 2, "burn_in": 1, "batch_size": 2000, "record_every": 1}
    monkeypatch.setattr(
        steps,
        "settings",
        lambda *given: {
            k: [replace(p, **size) for p in v] for k, v in settings(*given).items()
        },
    )
    prepared = steps.prepare(options)
    results = [
        list(steps.run(options, prepared))[-1]
        for options in (options, options._replace(seeds=2))
    ]
    assert list(results[1]["methods"]) == [
        "m = 1",
        *(
            f"m = {m}, equal {what}"
            for what in ("gradients", "samples")
            for m in (3, 5)
        ),
    ]
    for name, content in results[1]["methods"].items():
        assert content["runs"][0] == results[0]["methods"][name]["runs"][0]
        assert (
            content["runs"][1]["gradient_evaluations"]
            == 4 * content["runs"][1]["plan"]["num_steps"]
        )
    assert len(steps.summary(results[1])) == 6
