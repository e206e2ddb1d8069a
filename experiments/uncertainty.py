"""Uncertainty on letters, clothes and turned digits: an optimiser against SGHMC.

The point estimate is the last network of SGD with momentum; SGHMC's prediction averages
its reservoir, one network every 25 rounds, and so that nobody takes for Bayes what
averaging does, so does a third. All are from runs of mnist, which come first.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from booklib.runs.predictions import ANGLES, SHARES, look
from booklib.runs.results import ExperimentError, checksum
from booklib.runs.run import read_run
from experiments import mnist
from experiments.comparison import run_file
from experiments.study import Experiment, Options, Prepared, no_digits
from sgmc.posteriors import NetworkPosterior

# Each entry names the run of its networks, and whether they are its reservoir or its
# last network.
PREDICTIONS = {
    "SGHMC": ("SGHMC", True),
    "SGD with momentum": ("SGD with momentum", False),
    "SGD with momentum, averaged": ("SGD with momentum", True),
}


def prepare(options: Options) -> Prepared:
    """Load the digits and images that are no digits, and check that the runs of mnist
    exist.
    """
    prepared = mnist.prepare(options, "sigmoid")
    for seed in range(options.seeds):
        for method, _ in PREDICTIONS.values():
            path = run_file(prepared.folder, method, seed)
            if not path.exists():
                raise ExperimentError(
                    f"{path} is missing: run mnist with {options.seeds} seeds first, "
                    "or give fewer by --seeds"
                )
    return prepared._replace(others=no_digits(options))


def networks(folder: Path, method: str, seed: int, average: bool) -> Tensor:
    """Read ``(networks, dim)``, the reservoir of a run or its last network."""
    saved = read_run(run_file(folder, method, seed))
    if saved["done"] < saved["settings"]["rounds"]:
        raise ExperimentError(
            f"the run of {method} with seed {seed} is not finished: go on with it by "
            "`run mnist --resume`"
        )
    return torch.stack(saved["reservoir"]) if average else saved["walk"]["position"]


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Predict with each method and seed, and yield the result after each seed."""
    data = checksum(prepared.test, *prepared.others.values())
    methods = {name: [] for name in PREDICTIONS}
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    for seed in range(options.seeds):
        for name, (method, average) in PREDICTIONS.items():
            positions = networks(prepared.folder, method, seed, average)
            found = {"seed": seed, "networks": len(positions)}
            looked = look(posterior, positions, prepared.test, prepared.others)
            methods[name].append(found | looked)
        fixed = {"data_checksum": data, "angles": ANGLES, "shares": SHARES}
        yield {**fixed, "methods": methods}


EXPERIMENT = Experiment(prepare, run)
