"""Comparisons: which setting the validation digits choose."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from booklib.datasets import Data
from booklib.networks import multilayer_perceptron
from experiments import comparison, mnist, steps
from experiments.comparison import compare, mistakes, named, tune
from experiments.options import DivergedError, Options, Prepared
from experiments.plan import Plan

PLAN = Plan(
    1e-2,
    method="SGD",
    temperature=0.0,
    prior_precision=1.0,
    rounds=16,
    burn_in=4,
    batch_size=10,
)


def prepared(tmp_path):
    generator = torch.Generator().manual_seed(0)

    def data(examples):
        targets = torch.randint(10, (examples,), generator=generator)
        return Data(
            torch.nn.functional.one_hot(targets, 10).float()
            + 0.1 * torch.randn(examples, 10, generator=generator),
            targets,
        )

    train, validation, test = data(200), data(50), data(40)
    return Prepared(
        train,
        test,
        lambda: multilayer_perceptron([10, 8, 10], "tanh"),
        tmp_path,
        validation,
    )


def options(tmp_path, **more):
    return Options(tmp_path, tmp_path, progress=False, **more)


def test_tuning_takes_the_best_on_the_validation_digits_and_a_run_that_diverges_loses(
    tmp_path,
):
    plans = [
        replace(PLAN, learning_rate=rate, burn_in=6) for rate in (1e30, 1e-8, 1e-2)
    ]
    best, table = tune(plans, prepared(tmp_path), options(tmp_path), shorter=2)
    assert best is plans[2]
    assert (
        table[0] == {"plan": table[0]["plan"], "diverged": True}
        and table[2]["error"] < table[1]["error"]
    )
    # half of a shorter run is burn-in
    assert [(row["plan"]["rounds"], row["plan"]["burn_in"]) for row in table] == [
        (8, 4)
    ] * 3
    with pytest.raises(
        DivergedError,
        match="every setting of SGD left the finite numbers: lower its learning rates",
    ):
        tune([plans[0], plans[0]], prepared(tmp_path / "other"), options(tmp_path))


def test_every_seed_runs_with_the_setting_chosen_and_is_yielded(tmp_path):
    plans = [replace(PLAN, learning_rate=rate) for rate in (1e-8, 1e-2)]
    results = list(
        compare(
            named({"SGD": plans, "fixed": [PLAN]}),
            prepared(tmp_path),
            options(tmp_path, seeds=2),
            shorter=2,
        )
    )
    methods = results[-1]["methods"]
    assert len(results) == 4 and [
        len(methods[name]["tuning"]) for name in ("SGD", "fixed")
    ] == [2, 0]
    for runs in (methods["SGD"]["runs"], methods["fixed"]["runs"]):
        assert [
            (run["plan"]["learning_rate"], run["plan"]["seed"]) for run in runs
        ] == [(1e-2, 0), (1e-2, 1)]


def test_tuning_never_sees_the_test_digits(tmp_path):
    plans = [replace(PLAN, learning_rate=rate) for rate in (1e-8, 1e-2)]
    assert (
        tune(
            plans, prepared(tmp_path)._replace(test=None), options(tmp_path), shorter=2
        )[0]
        is plans[1]
    )


@pytest.mark.parametrize(
    ("temperature", "looked_at"), [(1.0, "average"), (0.0, "last")]
)
def test_samplers_are_chosen_by_their_average_and_optimisers_by_their_last_network(
    temperature, looked_at, tmp_path, monkeypatch
):
    # ties of the error go to the smaller log loss
    scores = {1.0: (0.2, 0.2), 2.0: (0.1, 0.4), 3.0: (0.1, 0.3)}

    class MadeUp:
        def __init__(self, plan, *_):
            self.plan = plan

        def go(self, progress):
            rate = self.plan.learning_rate
            misleading = {"error": rate, "log_loss": 0.0}
            looked = dict(zip(("error", "log_loss"), scores[rate], strict=True))
            return {
                "plan": {},
                "last": misleading,
                "average": misleading,
                looked_at: looked,
            }

    monkeypatch.setattr(comparison, "make_run", MadeUp)
    plans = [
        replace(PLAN, learning_rate=rate, temperature=temperature) for rate in scores
    ]
    assert tune(plans, None, options(tmp_path))[0] is plans[2]


@pytest.mark.parametrize("small", [True, False])
def test_training_validation_and_test_digits_share_none(small, tmp_path, monkeypatch):
    numbers = torch.arange(70_000)
    monkeypatch.setattr(
        mnist,
        "mnist",
        lambda root: (
            Data(numbers[:60_000, None], numbers[:60_000]),
            Data(numbers[60_000:, None], numbers[60_000:]),
        ),
    )
    ready = mnist.prepare(Options(tmp_path, tmp_path, small=small))
    parts = [ready.train, ready.validation, ready.test]
    sizes = [len(part.targets) for part in parts]
    assert sizes == ([3_200, 800, 1_000] if small else [50_000, 10_000, 10_000])
    assert len(torch.cat([part.inputs for part in parts]).unique(dim=0)) == sum(sizes)


def test_the_settings_are_those_of_the_papers():
    digits = Data(torch.zeros(50_000, 1), torch.zeros(50_000))
    everything = Prepared(digits, digits)
    [plan] = mnist.settings(everything, small=False)["SGHMC"]
    assert (plan.learning_rate, plan.momentum_decay, plan.prior_precision) == (
        pytest.approx(2e-6),
        0.01,
        None,
    )
    assert (plan.rounds, plan.burn_in, plan.batch_size, plan.minibatches) == (
        800,
        50,
        500,
        "passes",
    )
    for m, name in {
        1: "m = 1",
        3: "m = 3, equal samples",
        5: "m = 5, equal gradients",
    }.items():
        [plan] = steps.settings(everything, small=False)[name]
        assert (plan.learning_rate, plan.momentum_decay) == (
            pytest.approx(2e-6 / m**2),
            pytest.approx(0.01 / m),
        )
        assert (plan.prior_precision, plan.minibatches) == (1.0, "fresh")


def test_the_optimisers_have_no_temperature_and_the_samplers_have_that_of_the_posterior():
    digits = Data(torch.zeros(50_000, 1), torch.zeros(50_000))
    for method, plans in mnist.settings(Prepared(digits, digits), small=False).items():
        optimiser = "SGD" in method
        assert {(plan.temperature, plan.prior_precision is None) for plan in plans} == {
            (0.0, False) if optimiser else (1.0, True)
        }
        assert {plan.minibatches for plan in plans} == {
            "fresh" if "fresh" in method else "passes"
        }


def test_steps_learn_from_50_000_digits(tmp_path, monkeypatch):
    numbers = torch.arange(70_000)
    monkeypatch.setattr(
        steps,
        "mnist",
        lambda root: (
            Data(numbers[:60_000, None], numbers[:60_000]),
            Data(numbers[60_000:, None], numbers[60_000:]),
        ),
    )
    assert len(steps.prepare(Options(tmp_path, tmp_path)).train.targets) == 50_000


def test_mistakes_are_those_of_each_prediction():
    one_hot = torch.eye(2)
    run = SimpleNamespace(
        last=one_hot[[0, 0, 1]],
        average=one_hot[[1, 1, 1]],
        targets=torch.tensor([0, 1, 1]),
    )
    assert mistakes(run) == {"wrong": {"last": [1], "average": [0]}}


def test_a_result_knows_all_of_its_data(tmp_path):
    ready, seen = prepared(tmp_path), set()
    for part in (None, "train", "validation", "test"):
        changed = (
            {}
            if part is None
            else {
                part: Data(
                    getattr(ready, part).inputs, 9 - getattr(ready, part).targets
                )
            }
        )
        [result] = compare(
            named({"SGD": [PLAN]}),
            ready._replace(folder=tmp_path / str(part), **changed),
            options(tmp_path, seeds=1),
        )
        seen.add(result["data_checksum"])
    assert len(seen) == 4


def test_a_finished_run_is_looked_at_and_may_be_on_other_data(tmp_path):
    seen, ready = [], prepared(tmp_path)
    fewer = ready._replace(train=Data(*(x[:100] for x in ready.train)))

    def on(plan, given):
        return fewer if plan.method == "fewer" else given

    def look(run):
        seen.append((run.done, run.walk.posterior.num_examples))
        return mistakes(run)

    [result, _] = compare(
        named({"all": [PLAN], "fewer": [PLAN]}),
        ready,
        options(tmp_path, seeds=1),
        look=look,
        on=on,
    )
    assert seen == [(16, 200), (16, 100)]
    for content in result["methods"].values():
        for use in ("last", "average"):
            assert len(content["runs"][0]["wrong"][use]) == round(
                40 * content["runs"][0][use]["error"]
            )
