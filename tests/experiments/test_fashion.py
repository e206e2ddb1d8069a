"""Fashion-MNIST: what the report's noise is, and which settings are run."""

import math
from dataclasses import replace

import pytest
import torch

from booklib.datasets import Data
from experiments import fashion
from experiments.options import Options, Prepared
from experiments.plan import Plan
from sgmc.kernels import SGHMC
from sgmc.targets import Gaussian
from tests.checks import z_bound

SIZE = {
    "rounds": 3,
    "burn_in": 1,
    "batch_size": 2000,
    "keep_every": 1,
    "record_every": 1,
}


@pytest.fixture
def options(tmp_path):
    return Options(
        data=tmp_path / "nowhere", runs=tmp_path, small=True, seeds=2, progress=False
    )


def test_the_reported_noise_has_the_standard_deviation_that_was_meant_as_a_variance(
    generator,
):
    """At a point without force and from rest, one step leaves the injected noise alone
    in v = εr.
    """
    learning_rate, momentum_decay = 1e-2, 0.1
    right = Plan(learning_rate, momentum_decay)
    position, target = torch.zeros(100_000, 1), Gaussian.standard(1)
    variance = 2 * momentum_decay * learning_rate
    for plan, std in (
        (right, math.sqrt(variance)),
        (right.variance_as_scale(), variance),
    ):
        kernel = plan.kernel()
        assert isinstance(kernel, SGHMC)
        state = kernel.init(target, position, generator)._replace(
            momentum=torch.zeros_like(position)
        )
        velocity = kernel.step(target, state, generator)[0].momentum * kernel.step_size
        ratio = float(velocity.double().var() / std**2)
        assert abs(ratio - 1) < z_bound(2) * math.sqrt(2 / len(position))


def test_the_settings_are_those_of_the_report_at_its_size():
    train = Data(torch.zeros(50_000, 1), torch.zeros(50_000, dtype=torch.int64))
    plans = fashion.settings(Prepared(train, train), small=False)
    rates = {method: choices[0].learning_rate for method, choices in plans.items()}
    expected = {
        "SGHMC": 1e-6,
        "SGLD": 1e-5,
        "SGD with momentum": 1e-6,
        "SGD": 1e-5,
        "SGHMC, as reported": 1e-6,
    }
    assert rates == pytest.approx(expected)
    assert all(
        len(choices) == 1 and choices[0].burn_in == 100 for choices in plans.values()
    )
    assert plans["SGHMC, as reported"][0].temperature == pytest.approx(2e-8)
    temperatures = {
        method: choices[0].temperature
        for method, choices in plans.items()
        if "reported" not in method
    }
    assert temperatures == {
        "SGHMC": 1.0,
        "SGLD": 1.0,
        "SGD with momentum": 0.0,
        "SGD": 0.0,
    }
    assert {
        method for method, choices in plans.items() if choices[0].minibatches == "fresh"
    } == {"SGHMC, as reported"}


def test_small_runs_end_to_end(options, monkeypatch):
    settings = fashion.settings
    monkeypatch.setattr(
        fashion,
        "settings",
        lambda *given: {
            k: [replace(p, **SIZE) for p in v] for k, v in settings(*given).items()
        },
    )
    result = list(fashion.run(options, fashion.prepare(options)))[-1]
    assert list(result["methods"]) == [
        "SGHMC",
        "SGLD",
        "SGD with momentum",
        "SGD",
        "SGHMC, as reported",
    ]
    for content in result["methods"].values():
        assert [run["plan"]["seed"] for run in content["runs"]] == [0, 1]
        assert all(
            "wrong" not in run and run["gradient_evaluations"] == 6
            for run in content["runs"]
        )
    assert len(fashion.summary(result)) == 6
