"""Result files: what is written comes back, and what is refused."""

import re

import pytest
import torch

from booklib.data import Data
from booklib.runs.results import (
    FORMAT,
    RESULTS,
    ExperimentError,
    Seeds,
    checksum,
    read_result,
    score,
    who_ran,
    write_result,
)
from booklib.scores.prediction import (
    brier_score,
    error_rate,
    expected_calibration_error,
    log_score,
)

OTHERS = {  # results whose name does not give the command
    "blocks": "-m tools.blocks",
    "learning_coefficient": "-m benchmarks.learning_coefficient ",
    "recommender_1m": "-m benchmarks.recommender",
    "speed_of_libraries": "-m conformance speed",
}


def test_results_come_back_as_they_were_written(tmp_path):
    result = {"a": [1, 2.5], "b": {"c": [{"d": None}, {"d": [0.1]}]}}
    write_result(tmp_path / "x.json", result)
    assert read_result(tmp_path / "x.json") == {"format": FORMAT, **result}
    # nothing is left of the writing
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": 0}', r"x\.json.*format 0.*reads 1.*run x"),
        ("[]", r"x\.json.*corrupt"),
        ('{"format": 1', r"x\.json.*corrupt"),
    ],
)
def test_results_of_another_version_are_refused_and_kept(content, message, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ExperimentError, match=message):
        write_result(path, {})
    assert path.read_text() == content


def test_a_missing_result_says_how_to_make_it(tmp_path):
    with pytest.raises(
        ExperimentError, match=r"write it by `python -m experiments run x`"
    ):
        read_result(tmp_path / "x.json")


def test_stored_results_are_read_and_say_who_ran_them():
    stored = sorted(RESULTS.glob("*.json"))
    assert len(stored) >= 8
    for path in stored:
        result = read_result(path)
        said, name = " ".join(who_ran(result).split()), path.stem
        assert (
            f"run {name} --seeds" in said
            or f"-m benchmarks.{name} --" in said
            or f"-m conformance run {name.removeprefix('conformance_')}" in said
            or OTHERS.get(name, "nothing") in said
            or re.search(rf"-m benchmarks\.{name.replace('_', ' .*--')}\b", said)
        )


def test_each_score_is_what_it_is_called(generator):
    probabilities, targets = (
        torch.rand(50, 4, generator=generator).softmax(-1),
        torch.randint(4, (50,), generator=generator),
    )
    functions = {
        "error": error_rate,
        "log_loss": log_score,
        "brier": brier_score,
        "calibration_error": expected_calibration_error,
    }
    expected = {
        name: round(function(probabilities, targets), 6)
        for name, function in functions.items()
    }
    assert (
        score(probabilities, targets) == expected and len(set(expected.values())) == 4
    )


def test_the_checksum_sees_inputs_and_targets():
    inputs, targets = torch.rand(4, 2), torch.arange(4)
    one = checksum(Data(inputs, targets))
    assert (
        one
        == checksum(Data(inputs.clone(), targets.clone()))
        == checksum(Data(inputs, targets), None)
    )
    assert one != checksum(Data(inputs, targets.flip(0))) and one != checksum(
        Data(inputs + 1e-3, targets)
    )


def test_numbers_are_taken_from_the_runs():
    runs = [{"last": {"error": e}, "more": [e, 1.0]} for e in (0.0204, 0.0196, 0.02)]
    seeds = Seeds({"SGD": {"runs": runs}})
    assert seeds("SGD", "last.error", 100) == pytest.approx([2.04, 1.96, 2.0])
    assert seeds("SGD", lambda run: run["more"][1]).tolist() == [1.0] * 3
    assert seeds.cell("SGD", "last.error", 100) == "2.00 ± 0.04"
    assert len(Seeds.read("mnist")("SGHMC", "average.error")) >= 5
