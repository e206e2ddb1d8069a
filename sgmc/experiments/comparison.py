"""What the comparisons share: several methods, each tuned on validation digits and then run with several seeds on the test digits."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from sgmc.datasets import Data
from sgmc.experiments.runner import DivergedError, Options, Plan, Run, checksum
from sgmc.networks import multilayer_perceptron

LAYERS = [784, 100, 10]


class Prepared(NamedTuple):
    """The data of an experiment, where its runs are saved, and its network."""

    train: Data  #: what posteriors are of
    validation: Data  #: what settings are chosen by
    test: Data  #: what results are scored on
    folder: Path  #: where runs are saved
    network: Callable[[], torch.nn.Module] = partial(multilayer_perceptron, LAYERS, "sigmoid")  #: makes the network


def checkpoint(folder: Path, method: str, seed: int, tuning: int | None = None) -> Path:
    """Name the file of a run."""
    name = method.replace(",", "").replace(" ", "-")
    return folder / (f"{name}-{seed}.pt" if tuning is None else f"tuning-{tuning}-{name}-{seed}.pt")


def one_run(plan: Plan, prepared: Prepared, options: Options, tuning: int | None = None) -> dict:
    """Run one plan, scored on the test digits, or on the validation digits when it is the so-many-th plan of the tuning."""
    examples = prepared.test if tuning is None else prepared.validation
    path = checkpoint(prepared.folder, plan.method, plan.seed, tuning)
    return Run(plan, prepared.network(), prepared.train, examples, options.device, path, options.resume).go(options.progress)


def tune(plans: list[Plan], prepared: Prepared, options: Options, shorter: int = 8) -> tuple[Plan, list[dict]]:
    """Choose the plan with the smallest validation error, of the averaged prediction for a sampler, of the last network for an optimiser.

    The runs have one seed and are shorter by the given factor, half of them burn-in. Ties go to the smaller log loss, and a run that
    diverges loses.

    Returns:
        The plan, and the table of what was tried.
    """
    if len(plans) == 1:
        return plans[0], []
    table = []
    for tuning, plan in enumerate(plans):
        short = replace(plan, rounds=plan.rounds // shorter, burn_in=plan.rounds // (2 * shorter))
        try:
            result = one_run(short, prepared, options, tuning)
        except DivergedError:
            table.append({"plan": asdict(short), "diverged": True})
        else:
            table.append({"plan": result["plan"], **result["average" if plan.temperature > 0 else "last"]})
    tried = [i for i, row in enumerate(table) if "diverged" not in row]
    if not tried:
        raise DivergedError(f"every setting of {plans[0].method} left the finite numbers: lower its learning rates")
    return plans[min(tried, key=lambda i: (table[i]["error"], table[i]["log_loss"]))], table


def compare(methods: dict[str, list[Plan]], prepared: Prepared, options: Options, shorter: int = 8) -> Iterator[dict]:
    """Run all methods, one seed after the other, and yield the result after each run; a method is tuned before its first."""
    result = {"data_checksum": checksum(*prepared[:3]), "methods": {}}
    chosen = {}
    for seed in range(options.seeds):
        for method, plans in methods.items():
            if seed == 0:
                chosen[method], tuning = tune(plans, prepared, options, shorter)
                result["methods"][method] = {"tuning": tuning, "runs": []}
            result["methods"][method]["runs"].append(one_run(replace(chosen[method], seed=seed), prepared, options))
            yield result


def summary(result: dict) -> list[str]:
    """Write one line for each method: test error and log loss, of the average and of the last network, averaged over the seeds."""
    width = max(map(len, result["methods"]))
    lines = [f"{'method':{width}} {'error, average':>15} {'last':>8} {'log loss, average':>18} {'last':>8} {'seconds':>8}"]
    for method, content in result["methods"].items():
        runs = content["runs"]

        def mean(value, runs=runs):
            return sum(map(value, runs)) / len(runs)

        lines.append(
            f"{method:{width}} {mean(lambda run: run['average']['error']):15.2%} {mean(lambda run: run['last']['error']):8.2%} "
            f"{mean(lambda run: run['average']['log_loss']):18.4f} {mean(lambda run: run['last']['log_loss']):8.4f} "
            f"{mean(lambda run: run['seconds']):8.1f}"
        )
    return lines
