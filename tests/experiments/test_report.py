"""The settings of the experiment that runs MNIST as the reproduction report did."""

import pytest
import torch

from experiments import report
from experiments.options import Options
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import predictive_entropy


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return report.prepare(Options(tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("runs"), small=True))


def test_the_grids_are_those_of_the_report(prepared):
    plans = report.settings(prepared, small=True)
    assert {method: len(choices) for method, choices in plans.items()} == {
        "SGHMC": 12, "SGD with momentum": 36, "SGHMC, variance as scale": 12, "SGLD": 4, "SGLD, annealed": 4, "SGD": 12
    }  # fmt: skip
    rates = sorted({plan.learning_rate * 3_200 / 50_000 for plan in plans["SGHMC"]})
    assert rates == pytest.approx([1e-6, 2e-6, 4e-6, 8e-6])
    assert sorted({plan.learning_rate * 3_200 / 50_000 for plan in plans["SGD"]}) == pytest.approx([1e-5, 2e-5, 4e-5, 6e-5])
    assert all(plan.prior_precision == 1 and plan.minibatches == "fresh" for plan in plans["SGHMC"])
    assert {plan.temperature for plan in plans["SGLD"] + plans["SGLD, annealed"]} == {1.0} == {plan.temperature for plan in plans["SGHMC"]}
    for method in ("SGD", "SGD with momentum"):
        assert {(plan.temperature, plan.prior_precision) for plan in plans[method]} == {(0.0, 0.1), (0.0, 1.0), (0.0, 10.0)}
    assert isinstance(prepared.network()[1], torch.nn.ReLU)


def test_a_variance_used_as_a_scale_is_a_temperature(prepared):
    for plan in report.settings(prepared, small=True)["SGHMC, variance as scale"]:
        kernel, scale = plan.kernel(), 2 * plan.momentum_decay * plan.learning_rate
        injected = 2 * kernel.temperature * kernel.friction * kernel.step_size * kernel.step_size**2  # of v = εr
        assert injected == pytest.approx(scale**2)


def test_annealed_steps_fall_to_a_quarter(prepared):
    plan = report.settings(prepared, small=True)["SGLD, annealed"][0]
    step_size = plan.kernel().step_size
    assert step_size(0) == plan.learning_rate
    assert step_size(plan.rounds * 32) == pytest.approx(plan.learning_rate / 4)


def test_a_look_measures_spread_and_length(prepared):
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    start = posterior.initial_position(1, torch.Generator().manual_seed(0))[0]
    apart = torch.cat([torch.full((size,), value) for size, value in zip((78_400, 100, 1_000, 10), (0.1, 0.2, 0.3, 0.4), strict=True)])
    seen = report.look([start - apart, start, start + apart], prepared)
    assert list(seen["spread"].values()) == pytest.approx([0.1, 0.2, 0.3, 0.4], rel=1e-4)
    assert seen["length"]["0.bias"] == pytest.approx(0.2 * (2 / 3) ** 0.5, rel=1e-4)
    assert seen["networks"] == 3 and sum(seen["histogram"]) == 1_000
    alone = report.look([start] * 2, prepared)
    probabilities = posterior.predict(start[None], prepared.test.inputs)[0].double()
    assert alone["entropy"] == pytest.approx(float(predictive_entropy(probabilities).mean()), rel=1e-4)
    assert set(alone["spread"].values()) == {0.0}


def test_the_spread_is_a_root_mean_square(prepared):
    """Half of the first tensor spreads by 0.1, and half by 0.7: the root mean square is 0.5, and the mean 0.4."""
    apart = torch.zeros(79_510)
    apart[:39_200], apart[39_200:78_400] = 0.1, 0.7
    seen = report.look([-apart, 0 * apart, apart], prepared)
    assert seen["spread"]["0.weight"] == pytest.approx(0.5, rel=1e-4)
    assert seen["length"]["0.weight"] == pytest.approx(0.5 * (2 / 3) ** 0.5, rel=1e-4)


def test_the_entropy_is_that_of_the_average_and_not_the_mean_of_entropies(prepared):
    """Two networks, each sure of another class: their average has the entropy log 2, and each of them none."""
    one, other = torch.zeros(2, 79_510).unbind()
    one[-10], other[-9] = 50.0, 50.0  # biases of the output
    seen = report.look([one, other], prepared)
    assert seen["entropy"] == pytest.approx(torch.log(torch.tensor(2.0)).item(), rel=1e-4)
    assert sum(seen["histogram"]) == seen["histogram"][int(torch.log(torch.tensor(2.0)) / torch.log(torch.tensor(10.0)) * report.BINS)]


def test_the_tuning_runs_have_42_rounds(prepared, monkeypatch):
    seen = []
    monkeypatch.setattr(report, "compare", lambda methods, prepared, options, shorter, look: seen.append(shorter) or iter([]))
    list(report.run(Options(None, None), prepared))
    plans = [plan for choices in report.settings(prepared, small=False).values() for plan in choices]
    assert {(plan.rounds // seen[0], plan.rounds // (2 * seen[0]), plan.burn_in) for plan in plans} == {(42, 21, 50)}
