"""Figure 7a of the report in its own setting: start, noise, length, minibatches, and
what it scores.
"""

from dataclasses import replace

import pytest
import torch

from booklib.datasets import Data
from experiments import fashion, fashion_reported
from experiments.options import Options, Prepared

METHODS = [
    "SGHMC",
    "SGLD",
    "SGD",
    "SGD with momentum",
    "SGHMC, right noise",
    "SGLD, right noise",
]


def test_the_settings_are_those_of_figure_7a():
    train = Data(torch.zeros(50_000, 1), torch.zeros(50_000, dtype=torch.int64))
    plans = {
        method: choices[0]
        for method, choices in fashion_reported.settings(
            Prepared(train, train), small=False
        ).items()
    }
    assert list(plans) == METHODS
    published = {
        "SGHMC": (1e-6, 0.01, 2e-8),
        "SGLD": (1e-5, None, 2e-5),
        "SGD": (1e-5, None, 0.0),
        "SGD with momentum": (1e-6, 0.01, 0.0),
    }
    assert [method for method, plan in plans.items() if plan.nesterov] == [
        "SGD with momentum"
    ]
    right = {
        "SGHMC, right noise": (1e-6, 0.01, 1.0),
        "SGLD, right noise": (1e-5, None, 1.0),
    }
    for method, (rate, decay, temperature) in (published | right).items():
        plan = plans[method]
        assert plan.learning_rate == pytest.approx(
            rate
        ) and plan.temperature == pytest.approx(temperature)
        assert (
            plan.momentum_decay == decay
            and plan.prior_precision == 1.0
            and plan.batch_size == 500
        )
        assert (plan.start, plan.minibatches, plan.rounds, plan.burn_in) == (
            "uniform",
            "fresh",
            900,
            99,
        )


def test_a_drawn_class_is_wrong_as_often_as_the_right_one_is_improbable(tmp_path):
    options = Options(
        data=tmp_path / "nowhere", runs=tmp_path, small=True, seeds=1, progress=False
    )
    prepared = fashion_reported.prepare(options)
    train, test = (Data(*(x[::20] for x in data)) for data in prepared[:2])
    [plan] = fashion_reported.settings(prepared, small=True)["SGD"]
    size = {"rounds": 5, "burn_in": 1, "keep_every": 2}
    run = fashion_reported.Run(replace(plan, **size), prepared.network(), train, test)
    run.go(progress=False)
    found = fashion_reported.drawn(run)
    assert found["round"] == [3, 5]
    generator = torch.Generator().manual_seed(0)
    wrong = (
        torch.multinomial(
            run.last.float(), 4_000, replacement=True, generator=generator
        )
        != test.targets[:, None]
    )
    assert found["error"][-1] == pytest.approx(
        float(wrong.double().mean()), abs=4.5 * 0.5 / (len(test.targets) * 4_000) ** 0.5
    )
    assert found["error"][-1] == pytest.approx(
        1 - float(run.last[range(len(test.targets)), test.targets].mean()), abs=1e-6
    )


def test_small_runs_end_to_end(tmp_path, monkeypatch):
    settings, size = (
        fashion_reported.settings,
        {
            "rounds": 3,
            "burn_in": 1,
            "batch_size": 2000,
            "keep_every": 1,
            "record_every": 1,
        },
    )
    monkeypatch.setattr(
        fashion_reported,
        "settings",
        lambda *given: {
            k: [replace(p, **size) for p in v] for k, v in settings(*given).items()
        },
    )
    options = Options(
        data=tmp_path / "nowhere", runs=tmp_path, small=True, seeds=1, progress=False
    )
    prepared = fashion_reported.prepare(options)
    assert prepared.folder != fashion.prepare(options).folder
    result = list(fashion_reported.run(options, prepared))[-1]
    assert list(result["methods"]) == METHODS
    for content in result["methods"].values():
        [run] = content["runs"]
        assert (
            run["drawn"]["round"] == [2, 3]
            and 0 < run["drawn"]["error"][0] < 1
            and run["networks_averaged"] == 2
        )
