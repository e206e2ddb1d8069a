"""The settings of the experiment that runs MNIST as the reproduction report did."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch

from booklib.datasets import Data
from booklib.prediction import predictive_entropy
from experiments import figure5, figure5_around, report
from experiments.options import Options, Prepared
from experiments.plan import Plan
from sgmc.posteriors import NetworkPosterior


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return report.prepare(
        Options(
            tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("runs"), small=True
        )
    )


def test_the_grids_are_those_of_the_report(prepared):
    plans = report.settings(prepared, small=True)
    assert {method: len(choices) for method, choices in plans.items()} == {
        "SGHMC": 12, "SGD with momentum": 36, "SGHMC, variance as scale": 12, "SGLD": 4, "SGLD, annealed": 4, "SGD": 12
    }  # fmt: skip
    rates = sorted({plan.learning_rate * 3_200 / 50_000 for plan in plans["SGHMC"]})
    assert rates == pytest.approx([1e-6, 2e-6, 4e-6, 8e-6])
    assert sorted(
        {plan.learning_rate * 3_200 / 50_000 for plan in plans["SGD"]}
    ) == pytest.approx([1e-5, 2e-5, 4e-5, 6e-5])
    assert all(
        plan.prior_precision == 1 and plan.minibatches == "fresh"
        for plan in plans["SGHMC"]
    )
    assert (
        {plan.temperature for plan in plans["SGLD"] + plans["SGLD, annealed"]}
        == {1.0}
        == {plan.temperature for plan in plans["SGHMC"]}
    )
    for method in ("SGD", "SGD with momentum"):
        assert {(plan.temperature, plan.prior_precision) for plan in plans[method]} == {
            (0.0, 0.1),
            (0.0, 1.0),
            (0.0, 10.0),
        }
    assert isinstance(prepared.network()[1], torch.nn.ReLU)


def test_a_variance_used_as_a_scale_is_a_temperature(prepared):
    for plan in report.settings(prepared, small=True)["SGHMC, variance as scale"]:
        kernel, scale = plan.kernel(), 2 * plan.momentum_decay * plan.learning_rate
        # of v = εr
        injected = (
            2
            * kernel.temperature
            * kernel.friction
            * kernel.step_size
            * kernel.step_size**2
        )
        assert injected == pytest.approx(scale**2)


def test_annealed_steps_fall_to_a_quarter(prepared):
    plan = report.settings(prepared, small=True)["SGLD, annealed"][0]
    step_size = plan.kernel().step_size
    assert step_size(0) == plan.learning_rate
    assert step_size(plan.rounds * 32) == pytest.approx(plan.learning_rate / 4)


def test_a_look_measures_spread_and_length(prepared):
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    start = posterior.initial_position(1, torch.Generator().manual_seed(0))[0]
    apart = torch.cat(
        [
            torch.full((size,), value)
            for size, value in zip(
                (78_400, 100, 1_000, 10), (0.1, 0.2, 0.3, 0.4), strict=True
            )
        ]
    )
    seen = report.look([start - apart, start, start + apart], prepared)
    assert list(seen["spread"].values()) == pytest.approx(
        [0.1, 0.2, 0.3, 0.4], rel=1e-4
    )
    assert seen["length"]["0.bias"] == pytest.approx(0.2 * (2 / 3) ** 0.5, rel=1e-4)
    assert seen["networks"] == 3 and sum(seen["histogram"]) == 1_000
    alone = report.look([start] * 2, prepared)
    probabilities = posterior.predict(start[None], prepared.test.inputs)[0].double()
    assert alone["entropy"] == pytest.approx(
        float(predictive_entropy(probabilities).mean()), rel=1e-4
    )
    assert set(alone["spread"].values()) == {0.0}


def test_the_spread_is_a_root_mean_square(prepared):
    """Half of the first tensor spreads by 0.1, and half by 0.7: the root mean square is
    0.5, and the mean 0.4.
    """
    apart = torch.zeros(79_510)
    apart[:39_200], apart[39_200:78_400] = 0.1, 0.7
    seen = report.look([-apart, 0 * apart, apart], prepared)
    assert seen["spread"]["0.weight"] == pytest.approx(0.5, rel=1e-4)
    assert seen["length"]["0.weight"] == pytest.approx(0.5 * (2 / 3) ** 0.5, rel=1e-4)


def test_the_entropy_is_that_of_the_average_and_not_the_mean_of_entropies(prepared):
    """Two networks, each sure of another class: their average has the entropy log 2,
    and each of them none.
    """
    one, other = torch.zeros(2, 79_510).unbind()
    one[-10], other[-9] = 50.0, 50.0  # biases of the output
    seen = report.look([one, other], prepared)
    assert seen["entropy"] == pytest.approx(
        torch.log(torch.tensor(2.0)).item(), rel=1e-4
    )
    assert (
        sum(seen["histogram"])
        == seen["histogram"][
            int(
                torch.log(torch.tensor(2.0))
                / torch.log(torch.tensor(10.0))
                * report.BINS
            )
        ]
    )


def test_the_tuning_runs_have_42_rounds(prepared, monkeypatch):
    seen = []
    monkeypatch.setattr(
        report,
        "compare",
        lambda methods, prepared, options, shorter, look: (
            seen.append(shorter) or iter([])
        ),
    )
    list(report.run(Options(None, None), prepared))
    plans = [
        plan
        for choices in report.settings(prepared, small=False).values()
        for plan in choices
    ]
    assert {
        (plan.rounds // seen[0], plan.rounds // (2 * seen[0]), plan.burn_in)
        for plan in plans
    } == {(42, 21, 50)}


def at_full_size():
    digits = Data(torch.zeros(50_000, 1), torch.zeros(50_000))
    return Prepared(digits, digits)


def test_figure_5_is_run_at_its_published_settings():
    """Page 11: SGHMC 2·10⁻⁶ and 0.01, SGLD 4·10⁻⁵, SGD 10⁻⁵, with Nesterov momentum
    10⁻⁶ and 0.01; page 10 has λ = 1, n = 500.
    """
    plans = {
        name: plan
        for name, [plan] in figure5.settings(at_full_size(), small=False).items()
    }
    settings = {
        name: (plan.learning_rate, plan.momentum_decay)
        for name, plan in plans.items()
        if "start" not in name
    }
    assert settings == {
        "SGHMC": (pytest.approx(2e-6), 0.01), "SGHMC, as programmed": (pytest.approx(2e-6), 0.01),
        "SGLD": (pytest.approx(4e-5), None), "SGLD, as programmed": (pytest.approx(4e-5), None),
        "SGD": (pytest.approx(1e-5), None), "SGD with Nesterov momentum": (pytest.approx(1e-6), 0.01),
    }  # fmt: skip
    common = Plan(
        1.0,
        prior_precision=1.0,
        minibatches="fresh",
        start="uniform",
        rounds=850,
        burn_in=50,
        batch_size=500,
    )
    for name, plan in plans.items():
        changes = {
            field
            for field, value in asdict(common).items()
            if asdict(plan)[field] != value
        }
        assert changes - {
            "learning_rate",
            "momentum_decay",
            "temperature",
            "nesterov",
            "method",
            "record_every",
            "average_every",
        } == ({"start"} if "small start" in name else set())
        assert plan.nesterov is ("Nesterov" in name)
    temperatures = {name: plan.temperature for name, plan in plans.items()}
    assert {temperatures["SGHMC"], temperatures["SGLD"]} == {1.0}
    assert temperatures["SGHMC, as programmed"] == pytest.approx(4e-8)  # 2αη
    assert temperatures["SGLD, as programmed"] == pytest.approx(8e-5)  # 2η
    assert all(
        temperature == 0
        for name, temperature in temperatures.items()
        if name.startswith("SGD")
    )
    assert [800 // every for every in plans["SGD"].average_every] == [
        800,
        400,
        200,
        100,
        50,
        20,
        10,
        5,
        2,
        1,
    ]


def test_around_figure_5_is_what_the_report_tried():
    """Precisions 100 and 0.01, which a standard deviation of 0.1 and of 10 is; η =
    8·10⁻⁴ twice; steps that fall; a small start.
    """
    core = {
        name: plan
        for name, [plan] in figure5.settings(at_full_size(), small=False).items()
    }
    plans = {
        name: replace(plan, method="")
        for name, [plan] in figure5_around.settings(at_full_size(), small=False).items()
    }
    nesterov, sgd, sgld = (
        replace(core[name], method="")
        for name in ("SGD with Nesterov momentum", "SGD", "SGLD, as programmed")
    )
    for precision in (100.0, 0.01):
        assert plans[f"SGD, λ = {precision:g}"] == replace(
            sgd, prior_precision=precision
        )
        assert plans[f"SGD with Nesterov momentum, λ = {precision:g}"] == replace(
            nesterov, prior_precision=precision
        )
    decayed = plans["SGD with Nesterov momentum, weight decay"]
    assert decayed == replace(
        nesterov, learning_rate=decayed.learning_rate, prior_precision=1 + 1e-6
    )
    assert decayed.learning_rate == pytest.approx(8e-4**2)
    annealed = plans["SGLD, annealed, as programmed"]
    assert replace(annealed, annealing=None) == sgld and annealed.weight(
        85_000
    ) == pytest.approx(0.25)
    assert plans["SGHMC, as programmed, small start"] == replace(
        core["SGHMC, as programmed"], start="fan-in", method=""
    )
    assert len(plans) == 7


def test_a_label_that_is_drawn_is_wrong_as_often_as_the_network_says():
    last, targets = (
        torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=torch.float64),
        torch.tensor([0, 0]),
    )
    assert report.drawn(SimpleNamespace(last=last, targets=targets)) == pytest.approx(
        0.35
    )


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [figure5, figure5_around])
def test_small_versions_run_and_keep_apart(experiment, tmp_path, monkeypatch):
    """Shortened to show that all the parts fit."""
    options = Options(tmp_path, tmp_path, small=True, seeds=1, progress=False)
    prepared, settings = experiment.prepare(options), experiment.settings
    assert prepared.folder == tmp_path / f"{experiment.__name__.split('.')[-1]}-small"
    size = {
        "rounds": 40,
        "burn_in": 20,
        "batch_size": 1_600,
        "keep_every": 10,
        "average_every": (1, 4, 20),
    }

    def short(*given):
        return {
            method: [replace(plan, **size) for plan in plans[:2]]
            for method, plans in settings(*given).items()
        }

    monkeypatch.setattr(experiment, "settings", short)
    *_, result = experiment.run(options, prepared)
    assert list(result["methods"]) == list(settings(prepared, True))
    for content in result["methods"].values():
        [run] = content["runs"]
        assert [row[0] for row in run["by_number"]] == [1, 5, 20] and run["kept"][
            "networks"
        ] == 2
        assert run["by_number"][0][1:] == pytest.approx(
            [run["last"]["error"], run["last"]["log_loss"]], abs=2e-6
        )
        assert 0 < run["drawn"] < 1
    assert experiment.summary(result)
