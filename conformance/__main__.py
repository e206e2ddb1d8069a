"""The command line of the conformance suite: ``python -m conformance list``, ``run
NAME`` and ``speed``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from booklib.runs.results import RESULTS, circumstances, read_result, write_result
from conformance.turns import TURNS, run_speed

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in (FOLDER / "drivers").glob("*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the libraries, and when they were run")
    run = commands.add_parser(
        "run", help="run a library's driver, and store the result"
    )
    run.add_argument("name", choices=[*NAMES, "all"])
    run.add_argument(
        "--environment",
        type=Path,
        help="folder of an environment, made if it is not there and kept; otherwise a "
        "throw-away one",
    )
    run.add_argument("--python", default=sys.executable, help="of a new environment")
    speed = commands.add_parser(
        "speed", help="time the libraries in turns, and store the result"
    )
    speed.add_argument(
        "--environments",
        type=Path,
        default=Path(tempfile.gettempdir()) / "conformance",
        help="folder of their environments, each made if it is not there and kept",
    )
    speed.add_argument("--turns", type=int, default=TURNS)
    speed.add_argument("--rows", nargs="+", default=[], help="some; nothing is stored")
    speed.add_argument("--python", default=sys.executable, help="of new environments")
    given = parser.parse_args(arguments)
    if given.command == "list":
        return show_list()
    if given.command == "speed":
        folder = given.environments
        make = lambda name: interpreter_of(name, folder / name, given.python)
        run_speed(make, given.turns, given.rows)
        return 0
    if given.name == "all" and given.environment:
        parser.error("--environment belongs to one library: give its name")
    failed = [
        name
        for name in (NAMES if given.name == "all" else [given.name])
        if not run_driver(name, given.environment, given.python)
    ]
    return int(bool(failed))


def show_list() -> int:
    """Print each library with its version, cells and date."""
    for name in NAMES:
        path = RESULTS / f"conformance_{name}.json"
        if not path.exists():
            print(f"{name:20} not run yet")
            continue
        found = read_result(path)
        made = found["provenance"]["date"]
        print(f"{name:20} {found['version']:10} {len(found['cells']):3} cells  {made}")
    return 0


def interpreter_of(name: str, folder: Path, python: str) -> Path:
    """Give the Python of an environment, which is made if it is not there."""
    interpreter = folder.resolve() / "bin" / "python"
    if not interpreter.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        requirements = FOLDER / "requirements" / f"{name}.txt"
        install = ["-m", "pip", "install", "--quiet", "-r", str(requirements)]
        subprocess.run([str(interpreter), *install], check=True)
    return interpreter


def run_driver(name: str, environment: Path | None, python: str) -> bool:
    """Run a driver in an environment of its own, and store what it found."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = environment or Path(temporary) / "environment"
        interpreter = interpreter_of(name, folder, python)
        started, target = time.monotonic(), Path(temporary) / "found.json"
        driver = str(FOLDER / "drivers" / f"{name}.py")
        # -P: a driver has the name of its library
        command = [str(interpreter), "-P", driver, str(target)]
        alone = {key: x for key, x in os.environ.items() if key != "PYTHONPATH"}
        if name == "sgmc":  # ours is not installed in an environment of its own
            alone["PYTHONPATH"] = str(FOLDER.parent)
        if subprocess.run(command, cwd=temporary, env=alone).returncode != 0:
            print(f"{name}: its driver failed", file=sys.stderr)
            return False
        freeze = [str(interpreter), "-m", "pip", "freeze"]
        packages = subprocess.run(freeze, check=True, capture_output=True, text=True)
        lines = (FOLDER / "requirements" / f"{name}.txt").read_text().splitlines()
        asked = {line.split("==")[0].lower() for line in lines}
        kept = [
            each
            for each in packages.stdout.splitlines()
            if each.split("==")[0].lower() in asked
        ]
        origin = {"command": f"python -m conformance run {name}", **circumstances()}
        origin |= {"seconds": round(time.monotonic() - started, 1)}
        origin |= {"packages": kept}
        found = json.loads(target.read_text())
        write_result(
            RESULTS / f"conformance_{name}.json", {"provenance": origin, **found}
        )
    print(f"{name}: {len(found['cells'])} cells stored")
    return True


if __name__ == "__main__":
    sys.exit(main())
