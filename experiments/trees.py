"""SGHMC and SGNUTS by epochs of N/n samples, a tree being a sample: the table of
warm-ups of Adam-Day et al. (2022) in its own unit.

Their table has, for a warm-up of so many epochs, the accuracy of the average over the
N/n networks of the epoch that follows. Here are the same averages of probabilities, on
the test digits, from the start of their program, uniform on (−2, 2). The hybrid is the
one that they propose, one epoch of SGNUTS and then SGHMC; its first epoch is that of
SGNUTS, repaired. A tree takes up to 1,023 gradients, so that SGNUTS goes no farther
than that here, and the sampler as we read their report goes three epochs, as theirs
did. One SGHMC has next to no noise: a standard deviation 2αη, as their program has it
at the end of its history. The small version is on the 5,000 digits."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from booklib.datasets import Data, digits, mnist
from booklib.networks import multilayer_perceptron
from experiments.comparison import run_file
from experiments.mnist import LAYERS
from experiments.options import Options, Prepared
from experiments.plan import Plan
from experiments.provenance import checksum
from experiments.results import score
from experiments.run import Run
from experiments.sgnuts import methods
from experiments.walk import Walk

WARM_UPS = (0, 1, 2, 5, 10, 25)  # epochs, as in the table


def prepare(options: Options) -> Prepared:
    """Load the digits."""
    train, test = digits() if options.small else mnist(options.data)
    train = Data(*(x[:50_000] for x in train))
    return Prepared(
        train, test, partial(multilayer_perceptron, LAYERS), options.folder("trees")
    )


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; their rounds are samples."""
    rate, decay, batch_size, epoch = (
        (0.1 / 4000, 0.02, 400, 10) if small else (2e-6, 0.01, 500, 100)
    )
    size = {
        "prior_precision": 1.0,
        "start": "uniform",
        "minibatches": "fresh",
        "batch_size": batch_size,
        "burn_in": 0,
    }
    plans = {
        plan.method: plan
        for plan in methods(
            Plan(rate, decay, rounds=epoch * (max(WARM_UPS) + 1), **size)
        )
    }
    sghmc = plans["SGHMC"]
    return [
        sghmc,
        replace(sghmc.variance_as_scale(), method="SGHMC, noise as in their program"),
        replace(plans["SGNUTS, then SGHMC"], head_start=1),
        replace(plans["SGNUTS, our reading"], rounds=epoch if small else 3 * epoch),
    ]


class SampleBySample(Walk):
    """A chain whose rounds are single samples, and whose head start is so many epochs
    of trees.
    """

    def head_start_is_over(self) -> bool:
        """Tell whether the trees of the head start are done."""
        return len(self.trees) >= self.plan.head_start * self.gradients_per_round

    def round(self) -> bool:
        """Take a sample."""
        self.rounds += 1
        self.step()
        return True


class EpochRun(Run):
    """A run whose rounds are samples: the networks of whole epochs are averaged, after
    each of the warm-ups.

    Only their predictions are computed; the seconds are those of the walk.
    """

    walks = SampleBySample

    def __init__(
        self,
        plan: Plan,
        prepared: Prepared,
        device: str = "cpu",
        path: Path | None = None,
    ):
        super().__init__(
            plan, prepared.network(), prepared.train, prepared.test, device, path
        )
        self.settings["round"] = "sample"
        self.epoch_total, self.lines = torch.zeros_like(self.last), []

    @property
    def epoch(self) -> int:
        """Number of epochs before the present sample's."""
        return (self.done - 1) // self.walk.gradients_per_round

    def predict(self) -> Tensor:
        """Compute the class probabilities of the network, where they are to be
        averaged.
        """
        return (
            super().predict() if self.done == 0 or self.epoch in WARM_UPS else self.last
        )

    def observe(self) -> None:
        """Put the network into the average of its epoch, and at the end of that write a
        line of the table.
        """
        if self.epoch not in WARM_UPS:
            return
        self.epoch_total += self.last
        samples = self.walk.gradients_per_round
        if self.done % samples == 0:
            average, trees = (self.epoch_total / samples).cpu(), self.walk.trees
            line = {
                "warm_up": self.epoch,
                "gradients": self.walk.num_gradients,
                "trees": len(trees),
            }
            line |= {
                "processor_seconds": round(self.walking_seconds, 2),
                "average": score(average, self.targets),
            }
            line |= {
                "last": score(self.last.cpu(), self.targets),
                "length": float(self.walk.state.position.square().sum()),
            }
            self.lines.append(line)
            self.epoch_total = torch.zeros_like(self.last)

    def record(self) -> None:
        """Draw no learning curve."""

    def result(self) -> dict:
        """Return the lines of the table, and what the trees were."""
        depths = [depth for depth, _, _ in self.walk.trees]
        return {
            "plan": asdict(self.plan),
            "made": self.made,
            "epochs": self.lines,
            "depths": [
                torch.bincount(
                    torch.tensor(part, dtype=torch.int64), minlength=11
                ).tolist()
                for part in self.by_epoch(depths)
            ],
            "processor_seconds": round(self.walking_seconds, 2),
        }

    def by_epoch(self, values: list) -> list[list]:
        """Cut a list with an entry for each tree into epochs."""
        size = self.walk.gradients_per_round
        return [values[start : start + size] for start in range(0, len(values), size)]

    def content(self) -> dict:
        """Give all that is needed to go on."""
        return {
            **super().content(),
            "epoch_total": self.epoch_total,
            "lines": self.lines,
        }

    def restore(self, content: dict) -> None:
        """Go back to what ``content`` gave."""
        super().restore(content)
        self.epoch_total, self.lines = (
            content["epoch_total"].to(self.walk.device),
            content["lines"],
        )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    # as in the experiment sgnuts: weights compare energies of the order of 100,000
    torch.set_float32_matmul_precision("highest")
    plans = settings(options.small)
    result = {
        "data_checksum": checksum(prepared.train, prepared.test),
        "runs": {plan.method: [] for plan in plans},
    }
    for seed in options.each_seed():
        for plan in plans:
            path = run_file(prepared.folder, plan.method, seed)
            result["runs"][plan.method].append(
                EpochRun(replace(plan, seed=seed), prepared, options.device, path).go(
                    options.progress
                )
            )
            yield result


def summary(result: dict) -> list[str]:
    """Write one line for each method and warm-up: accuracy of the average and
    gradients, averaged over the seeds.
    """
    lines = [f"{'':34} {'warm-up':>8} {'accuracy':>9} {'gradients':>10} {'seconds':>8}"]
    for method, runs in result["runs"].items():
        for each in zip(*(run["epochs"] for run in runs), strict=True):
            accuracy = sum(1 - line["average"]["error"] for line in each) / len(each)
            gradients = sum(line["gradients"] for line in each) / len(each)
            seconds = sum(line["processor_seconds"] for line in each) / len(each)
            lines.append(
                f"{method:34} {each[0]['warm_up']:8} {accuracy:9.4f} "
                f"{gradients:10.0f} {seconds:8.1f}"
            )
    return lines
