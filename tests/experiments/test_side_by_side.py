"""The experiments whose seeds run side by side: that they have the settings that were
chosen, that each method is run alone and all are put together, and what they look at.
"""

import itertools
import json
from dataclasses import replace

import pytest
import torch
from scipy import stats

from booklib.runs.results import RESULTS, read_result, score
from experiments import (
    comparison,
    held,
    held_whole,
    letters_report,
    load,
    mnist_more,
    report_momentum,
    small_start,
    uncertainty_control,
)
from experiments.__main__ import main
from experiments.study import Options, part
from tests.experiments.test_plan_experiments import FULL, SIDE_BY_SIDE

SIZE = {"rounds": 3, "burn_in": 1, "batch_size": 80, "record_every": 1}


def shortened(monkeypatch, number: int):
    """Let the first methods go three rounds."""
    whole = comparison.compare_side_by_side

    def short(methods, prepared, *given, **more):
        few = {
            name: [plan.but(**SIZE, keep_every=1)]
            for name, [plan] in list(methods.items())[:number]
        }
        return whole(few, prepared, *given, **more)

    monkeypatch.setattr(comparison, "compare_side_by_side", short)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_small_versions_run_and_are_not_run_again(name, tmp_path, monkeypatch):
    shortened(monkeypatch, 2)
    options = Options(tmp_path / "nowhere", tmp_path, True, seeds=2, progress=False)
    experiment = load(name)
    prepared = experiment.prepare(options)
    assert prepared.folder == tmp_path / f"{name}-small"
    few = slice(None, None, 20)
    prepared = prepared._replace(
        train=part(prepared.train, few),
        test=part(prepared.test, few),
        others={name: part(data, few) for name, data in prepared.others.items()},
    )
    *_, result = experiment.run(options, prepared)
    monkeypatch.setattr(comparison, "Together", None)
    *_, again = experiment.run(options, prepared)
    assert json.loads(json.dumps(result)) == again and len(result["methods"]) == 2
    for content in result["methods"].values():
        first, second = content["runs"]
        assert second["plan"]["seed"] == first["plan"]["seed"] + 1
        assert first["networks_averaged"] == 2 and first["last"] != second["last"]


def test_a_method_is_run_alone_and_found_when_all_are(tmp_path, monkeypatch, capsys):
    shortened(monkeypatch, 2)
    command = ["run", "held_whole", "--small", "--seeds", "2", "--runs", str(tmp_path)]
    assert main([*command, "--only", "m = 1"]) == 0
    folder = tmp_path / "held_whole-small"
    assert sorted(path.name for path in folder.iterdir()) == [
        "m-=-1-0.pt",
        "m-=-1.json",
    ]
    alone = json.loads((folder / "m-=-1.json").read_text())["found"]
    assert main([*command, "--resume"]) == 0
    result = read_result(tmp_path / "held_whole-small.json")
    assert list(result["methods"]) == ["m = 1", "m = 3, held"]
    assert result["methods"]["m = 1"] == alone
    capsys.readouterr()


def test_more_seeds_have_the_settings_that_validation_chose():
    ours = mnist_more.settings(FULL, small=False)
    stored = {
        method: content
        for name in ("mnist", "falling")
        for method, content in read_result(RESULTS / f"{name}.json")["methods"].items()
    }
    assert set(ours) == set(stored)
    for method, [plan] in ours.items():
        chosen = stored[method]["runs"][0]["plan"]
        record = json.loads(json.dumps(plan.record()))
        for setting in set(chosen) - {"seed", "method", "record_every"}:
            expected = chosen[setting]
            assert record[setting] == (
                pytest.approx(expected) if isinstance(expected, float) else expected
            ), (method, setting)
    assert {gap[0] for gap in mnist_more.GAPS} == {"SGHMC", "SGLD"}


def test_the_learned_precisions_are_the_means_of_the_stored_ones():
    runs = read_result(RESULTS / "mnist.json")["methods"]["SGHMC"]["runs"]
    drawn = torch.tensor(
        [
            precisions
            for run in runs
            for round, precisions in zip(
                run["curve"]["round"], run["curve"]["precisions"], strict=True
            )
            if round > run["plan"]["burn_in"]
        ]
    )
    assert drawn.mean(0).tolist() == pytest.approx(
        uncertainty_control.LEARNED, rel=0.003
    )


def test_the_controls_differ_from_the_rivals_by_the_prior_alone():
    rivals, controls = (
        {name: plan for name, [plan] in module.settings(FULL, small=False).items()}
        for module in (mnist_more, uncertainty_control)
    )
    fixed, learned = controls.values()
    momentum = rivals["SGD with momentum"]
    assert fixed == rivals["SGHMC"].but(prior=momentum.prior)
    assert replace(learned, prior=momentum.prior) == momentum


def test_small_starts_differ_from_the_reported_ones_by_the_start():
    uniform = letters_report.settings(FULL, small=False)
    small = small_start.settings(FULL, small=False)
    names = {"SGHMC, noise as programmed": "SGHMC, as programmed", "SGHMC": "SGHMC"}
    for ours, theirs in names.items():
        [plan], [other] = small[ours], uniform[theirs]
        assert plan == other.but(start="fan-in")


def test_the_whole_figure_8_is_held_and_longer():
    for (name, [plan]), (other, [short]) in zip(
        held_whole.settings(FULL, small=False).items(),
        held.settings(FULL, small=False).items(),
        strict=True,
    ):
        size = {"rounds": 900, "burn_in": 99, "record_every": 25}
        assert name == other and plan == short.but(**size)


def test_a_look_at_validation_digits_is_at_the_last_network_and_at_those_kept(
    tmp_path, monkeypatch
):
    options = Options(tmp_path, tmp_path, True, seeds=2, progress=False)
    prepared = report_momentum.EXPERIMENT.prepare(options)
    few = {
        name: part(getattr(prepared, name), slice(None, None, 20))
        for name in ("train", "validation", "test")
    }
    prepared, seen = prepared._replace(**few), []
    monkeypatch.setattr(
        comparison, "mistakes", lambda one, prepared: seen.append(one) or {}
    )
    [plan] = next(iter(report_momentum.settings(prepared, True).values()))
    plan = plan.but(**SIZE, keep_every=1)
    looks = {"look": comparison.mistakes}
    list(comparison.compare_side_by_side({"one": [plan]}, prepared, options, **looks))
    for one in seen:
        found = report_momentum.validate(one, prepared)["validation"]
        posterior, (inputs, targets) = one.chain.posterior, prepared.validation
        kept = torch.stack(one.reservoir)
        for name, positions in {"last": one.position, "kept": kept}.items():
            each = posterior.predict(positions, inputs).double()
            expected = score(each.mean(0), targets)
            assert found[name] == pytest.approx(expected, abs=2e-6)
    assert len(seen) == 2


def errors(result: dict, method: str, use: str) -> list[float]:
    return [run[use]["error"] for run in result["methods"][method]["runs"]]


def test_seeds_on_an_accelerator_agree_with_those_on_a_processor():
    """By Bonferroni's rule; a right result fails with a probability of 0.05."""
    new, values = read_result(RESULTS / "mnist_more.json"), []
    for old in map(read_result, (RESULTS / "mnist.json", RESULTS / "falling.json")):
        for method, use in itertools.product(old["methods"], ("last", "average")):
            both = errors(new, method, use), errors(old, method, use)
            values.append(stats.ttest_ind(*both, equal_var=False).pvalue)
    assert len(values) == 12 and min(values) > 0.05 / len(values)


def test_the_new_seeds_decide_the_paper_s_four_comparisons():
    """By the rule of the experiment, all four by Holm's: the samplers err less."""
    result, values = read_result(RESULTS / "mnist_more.json"), []
    for sampler, optimiser in mnist_more.GAPS:
        both = errors(result, sampler, "average"), errors(result, optimiser, "last")
        assert [len(each) for each in both] == [15, 15]
        paired, alone = stats.ttest_rel(*both), stats.ttest_ind(*both, equal_var=False)
        assert paired.statistic < 0
        values.append(max(paired.pvalue, alone.pvalue))
    for rank, value in enumerate(sorted(values)):
        assert value < mnist_more.LEVEL / (len(values) - rank)
