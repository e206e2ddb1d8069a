"""Result files: where they are, how they are written, read and scored, and the
circumstances that they record.
"""

import datetime
import hashlib
import json
import os
import platform
import resource
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import sgmc
from booklib.numbers import with_the_digits_of
from booklib.scores.prediction import (
    brier_score,
    error_rate,
    expected_calibration_error,
    log_score,
)
from sgmc.checkpoints import replace_file

FORMAT = 1
RESULTS = Path(__file__).resolve().parents[2] / "book" / "results"
HOLDERS = ("problems", "tables", "methods", "runs")  # the keys that hold the runs
SCORES = {
    "error": error_rate,
    "log_loss": log_score,
    "brier": brier_score,
    "calibration_error": expected_calibration_error,
}


class ExperimentError(ValueError):
    """An error that stops an experiment and that the user can correct: the message is
    one line that says how.
    """


def score(probabilities: Tensor, targets: Tensor) -> dict[str, float]:
    """Score predictions by error rate, log loss, Brier score and expected calibration
    error.

    Example:
        >>> score(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 0]))["error"]
        0.0
    """
    return {name: round(f(probabilities, targets), 6) for name, f in SCORES.items()}


def write_result(path: Path, result: dict) -> None:
    """Write a result file in one stroke; lists of numbers stay on one line.

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


def runs_of(result: Mapping | list, name: str = "") -> dict[str, list[dict]]:
    """List the runs of a result by method, or by data set and method.

    Example:
        >>> runs_of({"methods": {"SGLD": {"tuning": [], "runs": [{"seed": 0}]}}})
        {'SGLD': [{'seed': 0}]}
    """
    if isinstance(result, list):
        return {name: result}
    found = {}
    if inner := [key for key in HOLDERS if key in result]:
        for key in inner:
            found |= runs_of(result[key], name)
        return found
    for key, each in result.items():
        found |= runs_of(each, f"{name}, {key}" if name else key)
    return found


@dataclass(frozen=True)
class Seeds:
    """The runs of a stored result, one for each method and seed.

    Example:
        >>> runs = [{"average": {"error": error}} for error in (0.0163, 0.0159, 0.0167)]
        >>> seeds = Seeds({"SGHMC": {"runs": runs}})
        >>> seeds.cell("SGHMC", "average.error", 100)
        '1.63 ± 0.04'
    """

    methods: Mapping[str, Mapping]

    @classmethod
    def read(cls, name: str) -> "Seeds":
        """Read the stored result of an experiment."""
        return cls(read_result(RESULTS / f"{name}.json")["methods"])

    def __call__(
        self, method: str, what: str | Callable[[Mapping], float], scale: float = 1.0
    ) -> np.ndarray:
        """Take one number of each run, such as ``"average.error"``, which is
        ``run["average"]["error"]``, or what a function computes from a run.
        """
        return np.array(
            [scale * _taken(run, what) for run in self.methods[method]["runs"]]
        )

    def cell(
        self, method: str, what: str | Callable[[Mapping], float], scale: float = 1.0
    ) -> str:
        """Write the mean and the standard deviation over the seeds."""
        numbers = self(method, what, scale)
        spread = numbers.std(ddof=1)
        mean = with_the_digits_of(numbers.mean(), spread, 3)
        return f"{mean} ± {with_the_digits_of(spread, spread, 1)}"


def _taken(run: Mapping, what: str | Callable[[Mapping], float]) -> float:
    if callable(what):
        return what(run)
    value = run
    for key in what.split("."):
        value = value[key]
    return float(value)


def who_ran(result: dict) -> str:
    """Write who ran what and when, in lines as wide as a page."""
    origin = result["provenance"]
    versions = ", ".join(
        f"{name} {version}" for name, version in origin["versions"].items()
    )
    # The command had this name when the oldest files were made.
    command = origin["command"].replace("-m sgmc.experiments", "-m experiments")
    return textwrap.fill(
        f"Stored result of `{command}`, {origin['date']}, {origin['machine']}, "
        f"{versions}",
        88,
    )


def circumstances(device: str = "cpu") -> dict:
    """Record when and on what something is run: date, versions, machine in words,
    rounding of matrix products.
    """
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {
            "sgmc": sgmc.__version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "machine": machine(device),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }


def machine(device: str) -> str:
    """Describe the machine in words: processor or accelerator, cores, threads."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = (line for line in lines if line.startswith("model name"))
        processor = next(names).split(":")[1].strip()
    except (OSError, StopIteration):
        pass
    words = (
        f"{processor}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s), "
        f"{platform.system()}"
    )
    if device.startswith("cuda"):
        return f"{torch.cuda.get_device_name(device)}; {words}"
    return words


def peak_memory(device: str) -> int:
    """Measure the most memory that this process has used, in megabytes; on an
    accelerator, the memory used there.
    """
    if device.startswith("cuda"):
        return round(torch.cuda.max_memory_allocated(device) / 2**20)
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def checksum(*data: Iterable[Tensor] | None) -> str:
    """Hash the tensors of data sets, leaving out None.

    Example:
        >>> len(checksum((torch.zeros(1, 2), torch.tensor([0]))))
        32
    """
    digest = hashlib.sha256()
    for part in data:
        for tensor in part or ():
            digest.update(tensor.contiguous().view(-1).numpy())
    return digest.hexdigest()[:32]


def _pretty(value: object, indent: str = "") -> str:
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
        lines = [deeper + _pretty(item, deeper) for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)
