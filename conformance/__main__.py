"""The command line of the conformance suite: ``python -m conformance list``, ``run
NAME``, ``patches``, ``reports`` and ``speed``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from booklib.runs.results import RESULTS, circumstances, read_result, write_result
from conformance import turns
from conformance.blocks import blocks_of, try_report
from conformance.patched import try_patch

FOLDER = Path(__file__).parent
# of each file of adapters, the library's name on the index, and its environment
LIBRARIES = {
    "aws_fortuna": ("aws-fortuna", "fortuna"),
    "bayestorch": ("bayestorch", "torch"),
    "blackjax": ("blackjax", "jax"),
    "devinterp": ("devinterp", "torch"),
    "jax_sgmc": ("jax-sgmc", "old_jax"),
    "langevin_sampling": ("langevin-sampling", "torch"),
    "lightning_uq_box": ("lightning-uq-box", "torch"),
    "mxnet": ("mxnet", "old_numpy"),
    "numpyro": ("numpyro", "jax"),
    "posteriors": ("posteriors", "torch"),
    "pybnn": ("pybnn", "torch"),
    "sghmc": ("sghmc", "old_numpy"),
    "sgmc": ("sgmc", "sgmc"),
    "sgmcmcjax": ("SGMCMCJax", "old_jax"),
    "torch_sgld": ("torch-sgld", "torch"),
    "torch_uncertainty": ("torch-uncertainty", "torch"),
    "uqdeepnn": ("uqdeepnn", "torch"),
}
# of libraries that have reports and no adapters, the environment
READ = {"sghmcmc": "old_numpy", "tensorflow_probability": "tensorflow"}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the libraries, and when they were run")
    run = commands.add_parser("run", help="measure a library, and store the result")
    run.add_argument("name", choices=[*LIBRARIES, "all"])
    speed = commands.add_parser(
        "speed", help="time the libraries in turns, and store the result"
    )
    speed.add_argument("--turns", type=int, default=turns.TURNS)
    speed.add_argument("--rows", nargs="+", default=[], help="some, stored anew")
    speed.add_argument("--workers", nargs="+", default=[], choices=turns.WORKERS)
    patches = commands.add_parser("patches", help="try the patches of released files")
    reports = commands.add_parser(
        "reports", help="run the lines of the reports, and compare what they print"
    )
    reports.add_argument(
        "names", nargs="*", help="of libraries or reports; all if none"
    )
    for command in (run, speed, patches, reports):
        command.add_argument(
            "--environments",
            type=Path,
            default=Path(tempfile.gettempdir()) / "conformance",
            help="folder of the environments, each made if it is not there and kept",
        )
        command.add_argument(
            "--python", default=sys.executable, help="of new environments"
        )
    given = parser.parse_args(arguments)
    if given.command == "list":
        return show_list()
    make = lambda name: interpreter_of(name, given.environments / name, given.python)
    if given.command == "speed":
        turns.run_speed(make, given.turns, given.rows, given.workers)
        return 0
    if given.command == "patches":
        for patch in sorted((FOLDER / "patches").glob("*.patch")):
            environment = LIBRARIES[patch.stem.partition("-")[0]][1]
            print(patch.stem, try_patch(patch, make(environment)), flush=True)
        return 0
    if given.command == "reports":
        return run_reports(given.names, make)
    names = LIBRARIES if given.name == "all" else [given.name]
    return int(not all([measure(name, make(LIBRARIES[name][1])) for name in names]))


def run_reports(names: list[str], make: Callable[[str], Path]) -> int:
    """Run the lines of reports in their libraries' environments; say what is wrong."""
    environments = {name: environment for name, (_, environment) in LIBRARIES.items()}
    environments |= READ
    wrong = []
    for report in sorted((FOLDER / "reports").glob("*-*.md")):
        library = report.stem.partition("-")[0]
        asked = not names or {library, report.stem} & {*names}
        if not asked or not blocks_of(report.read_text()):
            continue
        said = try_report(report, make(environments[library]))
        print(f"{report.stem:44} {said or 'as shown'}", flush=True)
        wrong += [report.stem] if said else []
    return int(bool(wrong))


def show_list() -> int:
    """Print each library with its version, squares and date."""
    for name in LIBRARIES:
        path = RESULTS / f"conformance_{name}.json"
        if not path.exists():
            print(f"{name:20} not run yet")
            continue
        found = read_result(path)
        number = len(found["squares"])
        print(f"{name:20} {found['version']:10} {number:3} squares  {found['date']}")
    return 0


def interpreter_of(name: str, folder: Path, python: str) -> Path:
    """Give the Python of an environment, which is made if it is not there.

    A line ``# --no-deps: NAME==VERSION ...`` of the requirements has packages that are
    installed without what they ask for, because what is measured of them needs none.
    """
    interpreter = folder.resolve() / "bin" / "python"
    if not interpreter.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        requirements = FOLDER / "requirements" / f"{name}.txt"
        install = [str(interpreter), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "-r", str(requirements)], check=True)
        for line in requirements.read_text().splitlines():
            if line.startswith("# --no-deps: "):
                alone = line.removeprefix("# --no-deps: ").split()
                subprocess.run([*install, "--no-deps", *alone], check=True)
    return interpreter


def measure(name: str, interpreter: Path) -> bool:
    """Measure a library's samplers with the tool, and store what it found."""
    library, environment = LIBRARIES[name]
    with tempfile.TemporaryDirectory() as folder:
        target, adapters = Path(folder) / "found.json", FOLDER / "libraries"
        # -P: a file of adapters has the name of its library
        command = [str(interpreter), "-P", "-W", "ignore", "-m", "sglaws", "report"]
        command += [str(adapters / f"{name}.py"), "--library", library]
        path = [FOLDER, FOLDER.parent] if environment == "sgmc" else [FOLDER]
        alone = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
        asked = [*command, "-o", str(target)]
        subprocess.run(asked, cwd=folder, env=alone | {"OMP_NUM_THREADS": "1"})
        if not target.exists():
            print(f"{name}: its samplers could not be measured", file=sys.stderr)
            return False
        store(name, json.loads(target.read_text()))
    return True


def store(name: str, found: dict):
    """Store a report of the tool, with where it was run."""
    origin = {"command": f"python -m conformance run {name}", **circumstances()}
    origin |= {"date": found["date"], "seconds": found["processor_seconds"]}
    write_result(RESULTS / f"conformance_{name}.json", {"provenance": origin, **found})
    print(f"{name}: {len(found['squares'])} squares stored")


if __name__ == "__main__":
    sys.exit(main())
