"""Comparisons: which setting the validation digits choose."""

from dataclasses import replace

import pytest
import torch

from sgmc.datasets import Data
from sgmc.experiments import comparison, mnist, steps
from sgmc.experiments.comparison import Prepared, compare, tune
from sgmc.experiments.runner import DivergedError, Options, Plan
from sgmc.networks import multilayer_perceptron

PLAN = Plan("SGD", 1e-2, None, temperature=0.0, prior_precision=1.0, rounds=16, burn_in=4, batch_size=10)


def prepared(tmp_path):
    generator = torch.Generator().manual_seed(0)

    def data(examples):
        targets = torch.randint(10, (examples,), generator=generator)
        return Data(torch.nn.functional.one_hot(targets, 10).float() + 0.1 * torch.randn(examples, 10, generator=generator), targets)

    return Prepared(data(200), data(50), data(40), tmp_path, lambda: multilayer_perceptron([10, 8, 10], "tanh"))


def options(tmp_path, **more):
    return Options(tmp_path, tmp_path, progress=False, **more)


def test_tuning_takes_the_best_on_the_validation_digits_and_a_run_that_diverges_loses(tmp_path):
    plans = [replace(PLAN, learning_rate=rate) for rate in (1e30, 1e-8, 1e-2)]
    best, table = tune(plans, prepared(tmp_path), options(tmp_path), shorter=2)
    assert best is plans[2]
    assert table[0] == {"plan": table[0]["plan"], "diverged": True} and table[2]["error"] < table[1]["error"]
    assert [row["plan"]["rounds"] for row in table] == [8, 8, 8]
    with pytest.raises(DivergedError, match="every setting of SGD left the finite numbers: lower its learning rates"):
        tune([plans[0], plans[0]], prepared(tmp_path), options(tmp_path))


def test_every_seed_runs_with_the_setting_chosen_and_is_yielded(tmp_path):
    plans = [replace(PLAN, learning_rate=rate) for rate in (1e-8, 1e-2)]
    fixed = [replace(PLAN, method="fixed")]
    results = list(compare({"SGD": plans, "fixed": fixed}, prepared(tmp_path), options(tmp_path, seeds=2), shorter=2))
    methods = results[-1]["methods"]
    assert len(results) == 4 and [len(methods[name]["tuning"]) for name in ("SGD", "fixed")] == [2, 0]
    for runs in (methods["SGD"]["runs"], methods["fixed"]["runs"]):
        assert [(run["plan"]["learning_rate"], run["plan"]["seed"]) for run in runs] == [(1e-2, 0), (1e-2, 1)]


def test_tuning_never_sees_the_test_digits(tmp_path):
    plans = [replace(PLAN, learning_rate=rate) for rate in (1e-8, 1e-2)]
    assert tune(plans, prepared(tmp_path)._replace(test=None), options(tmp_path), shorter=2)[0] is plans[1]


@pytest.mark.parametrize(("temperature", "looked_at"), [(1.0, "average"), (0.0, "last")])
def test_samplers_are_chosen_by_their_average_and_optimisers_by_their_last_network(temperature, looked_at, tmp_path, monkeypatch):
    scores = {1.0: (0.2, 0.5), 2.0: (0.1, 0.4), 3.0: (0.1, 0.3)}  # ties go to the smaller log loss

    def one_run(plan, *_):
        misleading = {"error": plan.learning_rate, "log_loss": 0.0}
        return {
            "plan": {},
            "last": misleading,
            "average": misleading,
            looked_at: dict(zip(("error", "log_loss"), scores[plan.learning_rate], strict=True)),
        }

    monkeypatch.setattr(comparison, "one_run", one_run)
    plans = [replace(PLAN, learning_rate=rate, temperature=temperature) for rate in scores]
    assert tune(plans, None, None)[0] is plans[2]


@pytest.mark.parametrize("small", [True, False])
def test_training_validation_and_test_digits_share_none(small, tmp_path, monkeypatch):
    numbers = torch.arange(70_000)
    monkeypatch.setattr(
        mnist, "mnist", lambda root: (Data(numbers[:60_000, None], numbers[:60_000]), Data(numbers[60_000:, None], numbers[60_000:]))
    )
    parts = mnist.prepare(Options(tmp_path, tmp_path, small=small))[:3]
    sizes = [len(part.targets) for part in parts]
    assert sizes == ([3_200, 800, 1_000] if small else [50_000, 10_000, 10_000])
    assert len(torch.cat([part.inputs for part in parts]).unique(dim=0)) == sum(sizes)


def test_the_settings_are_those_of_the_papers(tmp_path):
    digits = Data(torch.zeros(50_000, 1), torch.zeros(50_000))
    everything = Prepared(digits, digits, digits, tmp_path)
    [plan] = mnist.settings(everything, small=False)["SGHMC"]
    assert (plan.learning_rate, plan.momentum_decay, plan.prior_precision) == (pytest.approx(2e-6), 0.01, None)
    assert (plan.rounds, plan.burn_in, plan.batch_size, plan.minibatches) == (800, 50, 500, "passes")
    for m, name in {1: "m = 1", 3: "m = 3, equal samples", 5: "m = 5, equal gradients"}.items():
        plan = steps.settings(everything, small=False)[name]
        assert (plan.learning_rate, plan.momentum_decay) == (pytest.approx(2e-6 / m**2), pytest.approx(0.01 / m))
        assert (plan.prior_precision, plan.minibatches) == (1.0, "fresh")


def test_steps_learn_from_50_000_digits(tmp_path, monkeypatch):
    numbers = torch.arange(70_000)
    monkeypatch.setattr(
        steps, "mnist", lambda root: (Data(numbers[:60_000, None], numbers[:60_000]), Data(numbers[60_000:, None], numbers[60_000:]))
    )
    assert len(steps.prepare(Options(tmp_path, tmp_path)).train.targets) == 50_000
