"""SGNUTS on networks: repaired and as we read the report, against SGHMC at equal
gradient evaluations, and the two in turn.

The network is 784–100–10 with ReLU units and N(0, 1) priors, minibatches are drawn
afresh, and every run starts at a draw from the prior unless its name says otherwise. A
round is N/n gradient evaluations, whatever trees they are spent on; a tree that is not
finished at the end of a round counts in the next ones. The students who proposed SGNUTS
counted N/n trees instead, of up to 1,023 gradients each."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch

from booklib.datasets import Data, digits, fashion_mnist, mnist
from booklib.networks import multilayer_perceptron
from booklib.prediction import predictive_entropy
from experiments.comparison import run_file
from experiments.mnist import LAYERS
from experiments.options import Options, Prepared
from experiments.plan import Plan
from experiments.provenance import checksum
from experiments.results import score
from experiments.run import Run
from experiments.walk import Walk

BURN_INS = [0, 1, 2, 5, 10, 25]  # rounds, as in the report's table
AVERAGED = 25  # rounds after each of them whose networks are averaged
HEAD_START = 3  # rounds before a run that changes its kernel does so
COSTS = ("SGHMC", "SGNUTS", "SGNUTS, our reading")  # whose gradients are timed


def prepare(options: Options) -> dict[str, Prepared]:
    """Load the data, by name."""
    network, folder = partial(multilayer_perceptron, LAYERS), options.folder("sgnuts")
    if options.small:
        return {"MNIST": Prepared(*digits(), network, folder)}
    data = {"MNIST": mnist(options.data), "Fashion-MNIST": fashion_mnist(options.data)}
    return {
        name: Prepared(Data(*(x[:50_000] for x in train)), test, network, folder)
        for name, (train, test) in data.items()
    }


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; the small version has 4,000 digits, and starts from
    small weights as well.
    """
    size = {
        "rounds": 70,
        "burn_in": 20,
        "prior_precision": 1.0,
        "start": "prior",
        "minibatches": "fresh",
        "record_every": 1,
    }
    if small:
        # η is 0.1/N as on all of MNIST, and with this friction the prior's directions
        # are overdamped, as they are there.
        plans = methods(
            Plan(
                0.1 / 4000,
                0.02,
                data="MNIST",
                **size | {"batch_size": 100, "rounds": 30, "burn_in": 5},
            )
        )
        starts = [
            replace(plan, start="fan-in", method=f"{plan.method}, small start")
            for plan in (plans[0], plans[2])
        ]
        return plans + starts
    # The learning rates are those of SGHMC in the report.
    return (
        methods(Plan(2e-6, 0.01, data="MNIST", **size))
        + methods(Plan(1e-6, 0.01, data="Fashion-MNIST", **size))[:3]
    )


def methods(plan: Plan) -> list[Plan]:
    """Make the plans of the methods from that of SGHMC."""
    kinds = {
        "SGNUTS": {"trees": "uniform"},
        "SGNUTS, our reading": {
            "trees": "energy",
            "integrator": "drift_kick",
            "minibatches": "held",
        },
        "SGHMC": {},
        "SGNUTS, then SGHMC": {"trees": "uniform", "head_start": HEAD_START},
        "fresh momenta, then SGHMC": {"resample_every": 10, "head_start": HEAD_START},
    }
    return [replace(plan, method=method, **kind) for method, kind in kinds.items()]


class TreeRun(Run):
    """A run that may be of trees: a point of the curve for each network that ends a
    round, and averages after several burn-ins.

    Its seconds are those of the walk, without the time for predictions.
    """

    def __init__(
        self,
        plan: Plan,
        prepared: Prepared,
        device: str = "cpu",
        path: Path | None = None,
    ):
        # pixels without data: their weights follow the prior exactly
        self.empty = (prepared.train.inputs == 0).all(0)
        super().__init__(
            plan, prepared.network(), prepared.train, prepared.test, device, path
        )
        self.averages = {
            burn_in: torch.zeros_like(self.last)
            for burn_in in BURN_INS
            if burn_in <= plan.rounds
        }
        self.entropy = 0.0  # of the networks that are averaged, summed
        self.record()  # the start

    def observe(self) -> None:
        """Put the network at the end of a round into the averages."""
        super().observe()
        for burn_in, average in self.averages.items():
            if burn_in < self.done <= burn_in + AVERAGED:
                average += self.last / AVERAGED
        if self.done > self.plan.burn_in:
            self.entropy += float(predictive_entropy(self.last).mean())

    def record(self) -> None:
        """Add a point to the learning curve, if there is a new network; a long tree may
        end several rounds, all of them with the same.
        """
        if self.moved:
            super().record()

    def point(self) -> dict:
        """Make a point of the learning curve."""
        position = self.walk.state.position
        scores = score(self.last.cpu(), self.targets)
        weights = self.walk.posterior.parameters_of(position)["0.weight"].view(
            -1, len(self.empty)
        )[:, self.empty]
        temperature = float(weights.square().mean()) if self.empty.any() else None
        point = {
            "gradients": self.walk.num_gradients,
            "trees": len(self.walk.trees),
            "processor_seconds": self.walking_seconds,
        }
        point |= {"error": scores["error"], "log_loss": scores["log_loss"]}
        point |= {"length": float(position.square().sum()), "temperature": temperature}
        return {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in point.items()
        }

    def result(self) -> dict:
        """Return the scores, the learning curve, what the trees were, and the report's
        table.
        """
        trees = self.walk.trees
        depths = [depth for depth, _, _ in trees]
        entropies = (
            float(predictive_entropy(self.average).mean()),
            self.entropy / (self.done - self.plan.burn_in),
        )
        return {
            "plan": asdict(self.plan),
            "made": self.made,
            "average": score(self.average, self.targets),
            "entropy": [round(entropy, 5) for entropy in entropies],
            "gradients": self.walk.num_gradients,
            "processor_seconds": round(self.walking_seconds, 2),
            "curve": self.curve,
            "trees": len(trees),
            "depths": torch.bincount(
                torch.tensor(depths, dtype=torch.int64), minlength=11
            ).tolist(),
            "depths_in_order": depths[:100],
            "depth_limited": sum(limited for _, limited, _ in trees),
            "diverged": sum(diverged for _, _, diverged in trees),
            "after": [
                self.after(burn_in)
                for burn_in in self.averages
                if burn_in + AVERAGED <= self.done
            ],
        }

    def after(self, burn_in: int) -> dict:
        """Write a line of the report's table: the last network after a burn-in, its
        costs, and the average over the rounds that follow.
        """
        gradients = self.curve["gradients"]
        at = next(
            i
            for i, number in enumerate(gradients)
            if number >= burn_in * self.walk.gradients_per_round
        )
        line = {
            name: self.curve[name][at]
            for name in ("gradients", "processor_seconds", "error", "log_loss")
        }
        return {
            "burn_in": burn_in,
            **line,
            "average": score(self.averages[burn_in].cpu(), self.targets),
        }

    def content(self) -> dict:
        """Give all that is needed to go on."""
        return {**super().content(), "averages": self.averages, "entropy": self.entropy}

    def restore(self, content: dict) -> None:
        """Go back to what ``content`` gave."""
        super().restore(content)
        self.averages = {
            burn_in: average.to(self.walk.device)
            for burn_in, average in content["averages"].items()
        }
        self.entropy = content["entropy"]


def costs(plans: list[Plan], prepared: Prepared, device: str, repetitions: int) -> dict:
    """Measure what a gradient costs in each kernel, in milliseconds of the processor,
    in one process and in turn.

    Returns:
        A list of measurements for each kernel, and for the gradient alone.
    """
    walks = {
        plan.method: Walk(
            replace(plan, start="fan-in"), prepared.network(), prepared.train, device
        )
        for plan in plans
    }
    walk = next(iter(walks.values()))
    position = walk.start()
    steps = itertools.count()
    measured = {method: [] for method in ("gradient", *walks)}

    def gradient() -> int:
        walk.posterior.stochastic_gradient(position, walk.generator, next(steps))
        return 1

    def step_of(walk: Walk) -> int:
        before = walk.num_gradients
        walk.step()
        return walk.num_gradients - before

    def milliseconds(work, *arguments) -> float:
        """Do work that takes some gradients until it has taken 200."""
        number, started = 0, time.process_time()
        while number < 200:
            number += work(*arguments)
        return round(1000 * (time.process_time() - started) / number, 4)

    with torch.no_grad():
        for _ in range(repetitions):
            measured["gradient"].append(milliseconds(gradient))
            for method, each in walks.items():
                measured[method].append(milliseconds(step_of, each))
    return measured


def run(options: Options, prepared: dict[str, Prepared]) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run; at
    last measure what a gradient costs.
    """
    # energies as weights of SGNUTS compare energies of the order of 100,000
    torch.set_float32_matmul_precision("highest")
    plans = settings(options.small)
    result = {
        "data_checksum": {
            name: checksum(each.train, each.test) for name, each in prepared.items()
        },
        "head_start": HEAD_START,
        "averaged": AVERAGED,
        "runs": {
            name: {plan.method: [] for plan in plans if plan.data == name}
            for name in prepared
        },
    }
    for seed in range(options.seeds):
        for plan in plans:
            each = prepared[plan.data]
            path = run_file(each.folder, f"{plan.data} {plan.method}", seed)
            finished = TreeRun(replace(plan, seed=seed), each, options.device, path).go(
                options.progress
            )
            result["runs"][plan.data][plan.method].append(finished)
            yield result
    timed = [
        plan for plan in plans if plan.data == plans[0].data and plan.method in COSTS
    ]
    result["costs"] = costs(
        timed, prepared[plans[0].data], options.device, 2 if options.small else 3
    )
    yield result


def summary(result: dict) -> list[str]:
    """Write one line for each data set and method, averaged over the seeds."""
    lines = [
        f"{'':44} {'accuracy, average':>18} {'log loss':>9} {'gradients':>10} "
        f"{'at the limit':>13} {'seconds':>8}"
    ]
    for name, methods in result["runs"].items():
        for method, runs in methods.items():

            def mean(value, runs=runs):
                return sum(map(value, runs)) / len(runs)

            lines.append(
                f"{name + ', ' + method:44} "
                f"{mean(lambda run: 1 - run['average']['error']):18.4f} "
                f"{mean(lambda run: run['average']['log_loss']):9.4f} "
                f"{mean(lambda run: run['gradients']):10.0f} "
                f"{mean(lambda run: run['depth_limited'] / max(1, run['trees'])):13.2%} "  # noqa: E501
                f"{mean(lambda run: run['processor_seconds']):8.1f}"
            )
    return lines
