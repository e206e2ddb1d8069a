"""Result files: where they are, how they are written and read, and the scores that they
hold.
"""

import json
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from booklib.prediction import (
    brier_score,
    error_rate,
    expected_calibration_error,
    log_score,
)
from experiments.options import ExperimentError
from sgmc.checkpoints import replace_file

FORMAT = 1
RESULTS = Path(__file__).resolve().parents[1] / "book" / "results"


def score(probabilities: Tensor, targets: Tensor) -> dict[str, float]:
    """Score predictions by error rate, log loss, Brier score and expected calibration
    error.

    Example:
        >>> import torch
        >>> score(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 0]))["error"]
        0.0
    """
    scores = {
        "error": error_rate,
        "log_loss": log_score,
        "brier": brier_score,
        "calibration_error": expected_calibration_error,
    }
    return {
        name: round(function(probabilities, targets), 6)
        for name, function in scores.items()
    }


def write_result(path: Path, result: dict) -> None:
    """Write a result file, in one stroke; lists of numbers stay on one line.

    Raises:
        ExperimentError: if a file of another version is there; it is left as it is.
    """
    if path.exists():
        read_result(path)
    text = _pretty({"format": FORMAT, **result}) + "\n"
    replace_file(path, lambda unfinished: unfinished.write_text(text))


def read_result(path: Path) -> dict:
    """Read a result file.

    Raises:
        ExperimentError: if it is missing, corrupt, or of another version.
    """
    name = Path(path).stem
    try:
        result = json.loads(Path(path).read_text())
        version = result["format"]
    except FileNotFoundError:
        raise ExperimentError(
            f"{path} is missing: write it by `python -m experiments run {name}`"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ExperimentError(
            f"{path} is no result file, or corrupt ({error}): move it away and run "
            f"{name} again"
        ) from error
    if version != FORMAT:
        raise ExperimentError(
            f"{path} has format {version}, and this version reads {FORMAT}: move it "
            f"away and run {name} again"
        )
    return result


def do_once(path: Path, depends: dict, make: Callable[[], dict]) -> dict:
    """Do something, or read what came of it when it was done before.

    Args:
        path: where to keep it.
        depends: what it depends on, in what JSON has.
        make: does it, and returns what JSON has.

    Raises:
        ExperimentError: if the file is corrupt, or of something that depends on other
            things.
    """
    if path.exists():
        try:
            saved = json.loads(path.read_text())
            before, found = saved["depends"], saved["found"]
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"{path} is corrupt ({error}): delete it to have it made anew"
            ) from error
        if before != json.loads(json.dumps(depends)):
            raise ExperimentError(
                f"{path} is of other settings, {before} and not {depends}: undo the "
                "change, or delete the file"
            )
        return found
    found = make()
    replace_file(
        path,
        lambda unfinished: unfinished.write_text(
            json.dumps({"depends": depends, "found": found})
        ),
    )
    return found


def who_ran(result: dict) -> str:
    """Say who ran what and when, in lines as wide as a page."""
    origin = result["provenance"]
    versions = ", ".join(
        f"{name} {version}" for name, version in origin["versions"].items()
    )
    # its name when the oldest files were made
    command = origin["command"].replace("-m sgmc.experiments", "-m experiments")
    return textwrap.fill(
        f"Stored result of `{command}`, {origin['date']}, {origin['machine']}, "
        f"{versions}",
        88,
    )


def _pretty(value, indent: str = "") -> str:
    """Write JSON with a line for each entry of a dictionary and for each list of
    numbers.
    """
    deeper = indent + " "
    if isinstance(value, dict):
        lines = [
            f"{deeper}{json.dumps(key)}: {_pretty(item, deeper)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, Sequence) and any(isinstance(item, dict) for item in value):
        return (
            "[\n"
            + ",\n".join(deeper + _pretty(item, deeper) for item in value)
            + f"\n{indent}]"
        )
    return json.dumps(value, allow_nan=False)
