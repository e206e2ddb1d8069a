"""SGNUTS on networks: as reported and repaired, against SGHMC at equal gradient evaluations, and the two in turn.

The network is 784–100–10 with ReLU units and N(0, 1) priors, minibatches are drawn afresh, and every run starts at a draw from the prior
unless its name says otherwise. An epoch is N/n gradient evaluations, whatever trees they are spent on; a tree that is not finished at the
end of an epoch counts in the next ones. The students who proposed SGNUTS counted N/n trees instead, of up to 1,023 gradients each.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from tqdm import tqdm

from sgmc.datasets import Data, digits, fashion_mnist, mnist
from sgmc.experiments.runner import ExperimentError, Options, checksum, circumstances, read_result, score, write_result
from sgmc.kernels import SGHMC, SGNUTS
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import HeldMinibatch, NetworkPosterior
from sgmc.prediction import predictive_entropy

LAYERS = [784, 100, 10]
WARM_UPS = [0, 1, 2, 5, 10, 25]  # epochs, as in the report's table
AVERAGED = 25  # epochs after each of them whose networks are averaged
HEAD_START = 3  # epochs before a run that changes its kernel does so
METHODS = {
    "MNIST": ["SGNUTS", "SGNUTS, as reported", "SGHMC", "SGNUTS, then SGHMC", "fresh momenta, then SGHMC"],
    "Fashion-MNIST": ["SGNUTS", "SGNUTS, as reported", "SGHMC"],
}


@dataclass(frozen=True)
class Plan:
    """The settings of one run, which a stored run must agree with.

    Args:
        data: the name of the data set.
        method: a name in ``METHODS``; SGNUTS and SGHMC may add ", small start".
        learning_rate: η = ε².
        momentum_decay: α = εC.
        batch_size: n, the examples of a minibatch.
        epochs: number of epochs, those of the warm-up included; an epoch is N/n gradients.
        warm_up: number of epochs before the networks at the ends of the epochs are averaged.
        seed: seed of the only generator.

    Example:
        >>> Plan("MNIST", "SGHMC", 1e-6, 0.01).head_start().resample_every is None
        True
    """

    data: str
    method: str
    learning_rate: float
    momentum_decay: float
    batch_size: int = 500
    epochs: int = 70
    warm_up: int = 20
    seed: int = 0

    @property
    def holds_minibatches(self) -> bool:
        """Whether a tree sees one minibatch only, its energies included, as in the report."""
        return self.method == "SGNUTS, as reported"

    @property
    def changes(self) -> bool:
        """Whether the run goes on with SGHMC after the head start."""
        return self.method.endswith(", then SGHMC")

    def head_start(self) -> SGNUTS | SGHMC:
        """Make the kernel with which the run starts."""
        step_size = math.sqrt(self.learning_rate)
        friction = self.momentum_decay / step_size
        if self.method.startswith("fresh momenta"):
            return SGHMC(step_size, friction, resample_every=10)
        if self.method.startswith("SGHMC"):
            return self.sghmc()
        if self.method == "SGNUTS, as reported":
            return SGNUTS(step_size, friction, weights="energy", integrator="drift_kick")
        return SGNUTS(step_size, friction)

    def sghmc(self) -> SGHMC:
        """Make the kernel with which a run that changes goes on."""
        return SGHMC.from_learning_rate(self.learning_rate, self.momentum_decay)


class Prepared(NamedTuple):
    """Training and test data by name, plans for seed 0, and the folder of the runs."""

    data: dict[str, tuple[Data, Data]]
    plans: list[Plan]
    folder: Path


def prepare(options: Options) -> Prepared:
    """Load the data and make the plans; the small version has 4,000 digits, and the methods from a small start as well."""
    if options.small:
        data = {"MNIST": digits()}
        # η is 0.1/N as on all of MNIST, and with this friction the prior's directions are overdamped, as they are there.
        methods = [*METHODS["MNIST"], "SGNUTS, small start", "SGHMC, small start"]
        plans = [Plan("MNIST", method, 0.1 / 4000, 0.02, 100, 30, 5) for method in methods]
        return Prepared(data, plans, options.runs / "sgnuts-small")
    data = {"MNIST": mnist(options.data), "Fashion-MNIST": fashion_mnist(options.data)}
    data = {name: (Data(*(x[:50_000] for x in train)), test) for name, (train, test) in data.items()}
    rates = {"MNIST": 2e-6, "Fashion-MNIST": 1e-6}  # of SGHMC in the report
    plans = [Plan(name, method, rates[name], 0.01) for name in data for method in METHODS[name]]
    return Prepared(data, plans, options.runs / "sgnuts")


def start(plan: Plan, posterior: NetworkPosterior, generator: Generator) -> Tensor:
    """Draw where a run starts, ``(1, dim)``: from the prior N(0, 1), or where optimisers start, N(0, 1/fan-in)."""
    if plan.method.endswith("small start"):
        return posterior.initial_position(1, generator)
    return torch.randn(1, posterior.dim, generator=generator, device=generator.device)


class Step(NamedTuple):
    """Where a run is after a step of its kernel: a tree, or a step of SGHMC."""

    position: Tensor
    num_gradients: int  # so far
    depth: int | None  # of the tree, None for a step of SGHMC
    depth_limited: bool
    diverged: bool


def steps(plan: Plan, posterior: NetworkPosterior, position: Tensor, generator: Generator) -> Iterator[Step]:
    """Take the steps of a run, one after the other, without end."""
    kernel, used = plan.head_start(), 0
    to_change = HEAD_START * (posterior.num_examples // plan.batch_size) if plan.changes else math.inf

    def potential():
        return HeldMinibatch(posterior, generator) if plan.holds_minibatches else posterior

    state = kernel.init(potential(), position, generator)
    while True:
        state = kernel.step(potential(), state, generator)
        tree = isinstance(kernel, SGNUTS)
        flags = (int(state.depth), bool(state.depth_limited), bool(state.diverged)) if tree else (None, False, False)
        yield Step(state.position, used + int(state.num_gradients), *flags)
        if used + int(state.num_gradients) >= to_change:
            kernel, used, to_change = plan.sghmc(), used + int(state.num_gradients), math.inf
            state = kernel.init(posterior, state.position, generator)


def one_run(plan: Plan, train: Data, test: Data, device: str = "cpu", progress: bool = False) -> dict:
    """Run one plan; look at the network at the end of every epoch.

    Returns:
        Scores of the average since the warm-up; of the last network and of an average after each of the warm-ups of the table; curves
        over the epochs; the depths of the trees. Its seconds are without the time for predictions.
    """
    generator = Generator(device).manual_seed(plan.seed)
    module = multilayer_perceptron(LAYERS)
    posterior = NetworkPosterior(module, train.inputs.to(device), train.targets.to(device), batch_size=plan.batch_size)
    inputs, per_epoch = test.inputs.to(device), len(train.targets) // plan.batch_size
    empty = (posterior.data[0] == 0).all(0)  # pixels without data: their weights follow the prior exactly
    warm_ups = [warm_up for warm_up in WARM_UPS if warm_up <= plan.epochs]
    sums = {warm_up: torch.zeros(len(test.targets), 10, dtype=torch.float64) for warm_up in (*warm_ups, "average")}
    entropy = 0.0
    curve = {name: [] for name in ("gradients", "trees", "processor_seconds", "error", "log_loss", "length", "temperature")}
    depths, limited, diverged, trees, seconds = [], 0, 0, 0, 0.0

    def look(step: Step) -> Tensor:
        probabilities = posterior.log_predict(step.position, inputs)[0].double().exp().cpu()
        scores = score(probabilities, test.targets)
        weights = posterior.parameters_of(step.position)["0.weight"].view(LAYERS[1], -1)[:, empty]
        values = (step.num_gradients, trees, seconds, scores["error"], scores["log_loss"])
        values += (float(step.position.square().sum()), float(weights.square().mean()) if empty.any() else None)
        for name, value in zip(curve, values, strict=True):
            curve[name].append(float(f"{value:.6g}") if isinstance(value, float) else value)
        return probabilities

    with (
        torch.no_grad(),
        tqdm(total=plan.epochs, desc=f"{plan.data}, {plan.method}, {plan.seed}", disable=None if progress else True) as bar,
    ):
        position = start(plan, posterior, generator)
        look(Step(position, 0, None, False, False))
        walk, epoch = steps(plan, posterior, position, generator), 0
        while epoch < plan.epochs:
            started = time.process_time()
            step = next(walk)
            seconds += time.process_time() - started
            if not torch.isfinite(step.position).all():
                raise ExperimentError(f"{plan.method} left the finite numbers in epoch {epoch}: lower its learning rate")
            if step.depth is not None:
                depths.append(step.depth)
                trees, limited, diverged = trees + 1, limited + step.depth_limited, diverged + step.diverged
            if step.num_gradients < (epoch + 1) * per_epoch:
                continue
            probabilities = look(step)
            # A long tree may end several epochs, all of them with the same network.
            while epoch < min(step.num_gradients // per_epoch, plan.epochs):
                epoch += 1
                for warm_up in warm_ups:
                    if warm_up < epoch <= warm_up + AVERAGED:
                        sums[warm_up] += probabilities / AVERAGED
                if epoch > plan.warm_up:
                    sums["average"] += probabilities
                    entropy += float(predictive_entropy(probabilities).mean())
                bar.update()
    averaged = epoch - plan.warm_up
    average = sums["average"] / averaged
    result = {
        "plan": asdict(plan),
        "made": circumstances(device),
        "average": score(average, test.targets),
        "entropy": [round(float(predictive_entropy(average).mean()), 5), round(entropy / averaged, 5)],
        "gradients": step.num_gradients,
        "processor_seconds": round(seconds, 2),
        "curve": curve,
        "trees": trees,
        "depths": torch.bincount(torch.tensor(depths, dtype=torch.int64), minlength=11).tolist(),
        "depths_in_order": depths[:100],
        "depth_limited": limited,
        "diverged": diverged,
    }
    result["after"] = [after(warm_up, curve, per_epoch, sums[warm_up], test) for warm_up in warm_ups if warm_up + AVERAGED <= epoch]
    return result


def after(warm_up: int, curve: dict, per_epoch: int, total: Tensor, test: Data) -> dict:
    """Write a line of the report's table: the last network after a warm-up, its costs, and the average over the epochs that follow."""
    at = next(i for i, gradients in enumerate(curve["gradients"]) if gradients >= warm_up * per_epoch)
    line = {name: curve[name][at] for name in ("gradients", "processor_seconds", "error", "log_loss")}
    return {"warm_up": warm_up, **line, "average": score(total, test.targets)}


def stored_run(plan: Plan, prepared: Prepared, options: Options) -> dict:
    """Run one plan, or read its result if it was run before and the experiment is resumed.

    A run takes less than a minute, so that only whole runs are stored. Each has its own generator: an interrupted experiment that is
    resumed gives the same numbers, but for the seconds.

    Raises:
        ExperimentError: if the stored run is of another plan or of other data; the file is left as it is.
    """
    train, test = prepared.data[plan.data]
    path = prepared.folder / f"{plan.data}-{plan.method.replace(',', '').replace(' ', '-')}-{plan.seed}.json"
    data = checksum(train, test)
    if options.resume and path.exists():
        stored = read_result(path)
        if stored["run"]["plan"] != asdict(plan) or stored["data_checksum"] != data:
            raise ExperimentError(f"{path} is of a run with other settings or data: undo the change, or delete the file")
        return stored["run"]
    result = one_run(plan, train, test, options.device, options.progress)
    write_result(path, {"data_checksum": data, "run": result})
    return result


def costs(prepared: Prepared, device: str, repetitions: int) -> dict:
    """Measure what a gradient costs in each kernel, in milliseconds of the processor, in one process and in turn.

    Returns:
        A list of measurements for each kernel, and for the gradient alone.
    """
    name, (train, _) = next(iter(prepared.data.items()))
    plan = next(plan for plan in prepared.plans if plan.data == name)
    generator = Generator(device).manual_seed(0)
    posterior = NetworkPosterior(multilayer_perceptron(LAYERS), *(x.to(device) for x in train), batch_size=plan.batch_size)
    with torch.no_grad():
        position = posterior.initial_position(1, generator)
        plans = {method: replace(plan, method=method) for method in ("SGHMC", "SGNUTS", "SGNUTS, as reported")}
        measured = {method: [] for method in ("gradient", *plans)}
        for _ in range(repetitions):
            started = time.process_time()
            for _ in range(200):
                posterior.stochastic_gradient(position, generator)
            measured["gradient"].append(round(1000 * (time.process_time() - started) / 200, 4))
            for method, one in plans.items():
                walk, gradients, started = steps(one, posterior, position, generator), 0, time.process_time()
                while gradients < 200:
                    gradients = next(walk).num_gradients
                measured[method].append(round(1000 * (time.process_time() - started) / gradients, 4))
    return measured


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run; at last measure what a gradient costs."""
    torch.set_float32_matmul_precision("highest")  # the weights of SGNUTS as reported compare energies of the order of 100,000
    result = {
        "data_checksum": {name: checksum(*pair) for name, pair in prepared.data.items()},
        "head_start": HEAD_START,
        "averaged": AVERAGED,
        "runs": {name: {plan.method: [] for plan in prepared.plans if plan.data == name} for name in prepared.data},
    }
    for seed in range(options.seeds):
        for plan in prepared.plans:
            result["runs"][plan.data][plan.method].append(stored_run(replace(plan, seed=seed), prepared, options))
            yield result
    result["costs"] = costs(prepared, options.device, 2 if options.small else 3)
    yield result


def summary(result: dict) -> list[str]:
    """Write one line for each data set and method, averaged over the seeds."""
    lines = [f"{'':44} {'accuracy, average':>18} {'log loss':>9} {'gradients':>10} {'at the limit':>13} {'seconds':>8}"]
    for name, methods in result["runs"].items():
        for method, runs in methods.items():

            def mean(value, runs=runs):
                return sum(map(value, runs)) / len(runs)

            lines.append(
                f"{name + ', ' + method:44} {mean(lambda run: 1 - run['average']['error']):18.4f} "
                f"{mean(lambda run: run['average']['log_loss']):9.4f} {mean(lambda run: run['gradients']):10.0f} "
                f"{mean(lambda run: run['depth_limited'] / max(1, run['trees'])):13.2%} {mean(lambda run: run['processor_seconds']):8.1f}"
            )
    return lines
