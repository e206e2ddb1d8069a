"""Try the patches: each on a copy of its package, with the squares that it turns.

``python -m conformance patches --environments FOLDER``
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
TRY = """
import json, sys
from sglaws import check_one
from sglaws.report import load

asked = {tuple(each) for each in json.loads(sys.argv[2])}
for adapter in load(sys.argv[1]):
    for name, test in sorted(asked):
        if name == adapter.name:
            square = check_one(adapter, test)
            print("|".join((name, test, square.sign, square.text)))
"""


def named(text: str) -> list[tuple[str, str]]:
    """Read squares off a text: ```sampler` (test, ...), ...``."""
    found = re.findall(r"`([^`]+)` \(([^)]+)\)", text)
    return [(name, test) for name, tests in found for test in tests.split(", ")]


def squares_of(patch: Path) -> list[tuple[str, str]]:
    """Read the squares that a patch turns, which its first line names."""
    return named(patch.read_text().split("\n\n")[0])


def try_patch(patch: Path, interpreter: Path) -> dict[tuple[str, str], str]:
    """Apply a patch to a copy of its package, and give the signs of its squares."""
    package = re.search(r"^--- a/([^/]+)/", patch.read_text(), re.M)[1]
    where = f"import importlib.util as u; print(u.find_spec({package!r}).origin)"
    asked = [str(interpreter), "-P", "-c", where]
    found = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    library = FOLDER / "libraries" / f"{patch.stem.partition('-')[0]}.py"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(Path(found.strip()).parent, Path(folder) / package)
        with open(patch) as text:
            apply = ["patch", "-p1", "--quiet"]
            subprocess.run(apply, cwd=folder, stdin=text, check=True)
        path = os.pathsep.join([folder, str(FOLDER)])
        run = [str(interpreter), "-P", "-W", "ignore", "-c", TRY, str(library)]
        run.append(json.dumps(squares_of(patch)))
        alone = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        told = subprocess.run(
            run, env=alone, check=True, capture_output=True, text=True
        )
    lines = [line.split("|") for line in told.stdout.splitlines() if "|" in line]
    return {(name, test): f"{sign} {text}" for name, test, sign, text in lines}
