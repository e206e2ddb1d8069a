"""Comparisons: which setting the validation digits choose."""

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Langevin, Plan, Prior
from booklib.runs.run import DivergedError, Run
from experiments import comparison
from experiments.comparison import compare, mistakes
from experiments.study import Options, Prepared

SIZE = {"rounds": 16, "burn_in": 4, "batch_size": 10}
PLAN = Plan(Langevin(1e-2, 0.0), Prior(1.0), method="SGD", **SIZE)


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


def test_every_seed_runs_with_the_setting_chosen_and_is_yielded(tmp_path):
    plans = [PLAN.but(learning_rate=rate) for rate in (1e-8, 1e-2)]
    results = list(
        compare(
            {"SGD": plans, "fixed": [PLAN]},
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
            {"SGD": [PLAN]},
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
        seen.append((run.done, run.chain.posterior.num_examples))
        return mistakes(run)

    [result, _] = compare(
        {"all": [PLAN], "fewer": [PLAN]},
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


def tuned(plans, prepared, given, **more):
    """Compare the settings of one method, and say which was chosen, and the table."""
    *_, result = compare({"SGD": plans}, prepared, given, **more)
    content = result["methods"]["SGD"]
    return content["runs"][0]["plan"]["learning_rate"], content["tuning"]


def test_tuning_takes_the_best_on_the_validation_digits_and_a_run_that_diverges_loses(
    tmp_path,
):
    plans = [PLAN.but(learning_rate=rate, burn_in=6) for rate in (1e30, 1e-8, 1e-2)]
    given = options(tmp_path, seeds=1)
    rate, table = tuned(plans, prepared(tmp_path), given, shorter=2)
    assert rate == 1e-2 and table[2]["error"] < table[1]["error"]
    assert table[0] == {"plan": table[0]["plan"], "diverged": True}
    # half of a shorter run is burn-in
    lengths = [(row["plan"]["rounds"], row["plan"]["burn_in"]) for row in table]
    assert lengths == [(8, 4)] * 3
    with pytest.raises(DivergedError, match="every setting of SGD left the finite"):
        tuned([plans[0]] * 2, prepared(tmp_path / "other"), given)


@pytest.mark.parametrize(("temperature", "use"), [(1.0, "average"), (0.0, "last")])
def test_samplers_are_chosen_by_their_average_and_optimisers_by_their_last_network(
    temperature, use, tmp_path, monkeypatch
):
    # ties of the error go to the smaller log loss
    scores = {1.0: (0.2, 0.2), 2.0: (0.1, 0.4), 3.0: (0.1, 0.3)}

    class MadeUp:
        def __init__(self, plan, *_):
            self.plan = plan

        def go(self, progress):
            rate = self.plan.kernel.learning_rate
            misleading = {"error": rate, "log_loss": 0.0}
            looked = dict(zip(("error", "log_loss"), scores[rate], strict=True))
            found = {"plan": self.plan.record(), "last": misleading}
            return found | {"average": misleading, use: looked}

    monkeypatch.setattr(comparison, "make_run", MadeUp)
    plans = [PLAN.but(learning_rate=x, temperature=temperature) for x in scores]
    assert tuned(plans, prepared(tmp_path), options(tmp_path, seeds=1))[0] == 3.0


def test_tuning_is_on_the_validation_digits_and_the_result_on_the_test_digits(
    tmp_path, monkeypatch
):
    seen = []

    def noted(plan, network, train, examples, device, path):
        seen.append((examples, device))
        return Run(plan, network, train, examples, "cpu", path)

    ready = prepared(tmp_path)
    make = lambda *given, **more: make_run(*given, **more, kind=noted)
    make_run = comparison.make_run
    monkeypatch.setattr(comparison, "make_run", make)
    plans = [PLAN.but(learning_rate=rate) for rate in (1e-8, 1e-2)]
    given = options(tmp_path, seeds=1, device="cuda:1")
    tuned(plans, ready, given, shorter=2)
    assert [examples is ready.validation for examples, _ in seen] == [True, True, False]
    assert seen[2][0] is ready.test and {device for _, device in seen} == {"cuda:1"}
