"""Comparisons: which setting the validation digits choose."""

from dataclasses import replace

import pytest
import torch

from sgmc.datasets import Data
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
