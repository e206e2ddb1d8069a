"""Experiments whose seeds run side by side: settings, one method alone, and all."""

import json

import pytest
import torch

from booklib.runs.results import RESULTS, read_result
from experiments import (
    comparison,
    load,
    mnist_more,
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
