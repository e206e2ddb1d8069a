"""A run: the rounds of one plan, with the predictions for some examples averaged as
they come.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from pathlib import Path

import torch
from torch import Tensor, nn

from booklib.datasets import Data
from booklib.prediction import error_rate, log_score
from experiments.options import DivergedError, ExperimentError
from experiments.plan import Plan
from experiments.provenance import checksum, circumstances
from experiments.results import score
from experiments.walk import Walk
from sgmc.checkpoints import Checkpoint
from sgmc.sampling import drive

DEFAULTS = {
    field.name: field.default for field in fields(Plan) if field.default is not MISSING
}
# tells it from those of `sample` and of other versions
KIND = {"kind of file": "the run of an experiment, version 2"}


class Run:
    """One sampler, one seed: a job of :func:`sgmc.sampling.drive` whose steps are
    rounds.

    After each round the network's class probabilities for ``examples`` are added to a
    sum, from the burn-in on, and forgotten; every ``keep_every`` rounds the weights go
    into the reservoir. So memory does not grow with the number of sampled networks.

    Args:
        plan: the settings.
        network: the network.
        train: what the posterior is of.
        examples: what is predicted and scored.
        device: a device of torch.
        path: file to save the run in, every half minute and at the end, and from which
            to go on if it is there; the results are those of an uninterrupted run, bit
            for bit.
        watch: what to call with the run after each round.

    Attributes:
        done: number of rounds done.
        walk: the chain.
        last: class probabilities ``(n, classes)`` of the network at the end of the last
            round, float64.
        reservoir: the networks kept, each ``(dim,)``, on the CPU.
        curve: the learning curve.
        made: date, versions, machine and precision of the run, or of its last part if
            it was resumed.
        walks: the class of its chain.

    Raises:
        ExperimentError: if the file is that of a run with other settings.
        CheckpointError: if it is no run's file, or corrupt.
    """

    walks: type[Walk] = Walk

    def __init__(
        self,
        plan: Plan,
        network: nn.Module,
        train: Data,
        examples: Data,
        device: str = "cpu",
        path: Path | None = None,
        watch: Callable[["Run"], None] | None = None,
    ):
        self.plan, self.watch = plan, watch
        self.checkpoint = None if path is None else Checkpoint(path, KIND)
        self.walk = self.walks(plan, network, train, device)
        self.settings = {
            **asdict(plan),
            "network": str(network),
            "checksum": checksum(train, examples),
            "device": self.walk.device.type,
        }
        self.examples, self.targets = examples.inputs.to(device), examples.targets
        self.done, self.moved, self.made = 0, True, {}
        self.seconds, self.processor_seconds, self.walking_seconds = 0.0, 0.0, 0.0
        self.last = self.predict()
        self.total = torch.zeros_like(self.last)
        self.thinned = {
            every: torch.zeros_like(self.last) for every in plan.average_every or ()
        }
        self.reservoir: list[Tensor] = []
        self.curve: dict[str, list] = {name: [] for name in self.point()}

    def go(self, progress: bool = True) -> dict:
        """Run the rounds that are left and return the results of :meth:`result`."""
        title = f"{self.plan.method}, seed {self.plan.seed}"
        with warnings.catch_warnings():
            # the error below says so
            warnings.filterwarnings("ignore", "interrupted after")
            drive(
                self,
                self.plan.rounds,
                checkpoint=self.checkpoint,
                unit="round",
                title=title,
                progress=progress,
            )
        if self.done < self.plan.rounds:
            raise KeyboardInterrupt
        return self.result()

    def advance(self) -> None:
        """Walk for a round, and predict."""
        started, processor_started = time.monotonic(), time.process_time()
        self.made = self.made or circumstances(self.walk.device.type)
        self.moved = self.walk.round()
        self.walking_seconds += time.process_time() - processor_started
        self.done += 1
        if self.moved:
            self.last = self.predict()
        self.check()
        self.observe()
        self.seconds += time.monotonic() - started
        self.processor_seconds += time.process_time() - processor_started
        if self.done % self.plan.record_every == 0 or self.done == self.plan.rounds:
            self.record()
        if self.watch is not None:
            self.watch(self)

    def check(self) -> None:
        """Raise an error if the walk or its predictions left the finite numbers; logits
        overflow before weights do.
        """
        if not self.walk.is_finite() or not torch.isfinite(self.last).all():
            raise DivergedError(
                f"{self.plan.method} left the finite numbers in round {self.done}: "
                "lower its learning rate"
            )

    def predict(self) -> Tensor:
        """Compute the class probabilities of the present network for the examples:
        ``(n, classes)`` float64.
        """
        return (
            self.walk.posterior.log_predict(self.walk.state.position, self.examples)[0]
            .double()
            .exp()
        )

    def observe(self) -> None:
        """Put the network at the end of a round into the averages and the reservoir."""
        if self.done > self.plan.burn_in:
            self.total += self.weight(self.done) * self.last
            for every, total in self.thinned.items():
                if (self.done - self.plan.burn_in) % every == 0:
                    total += self.weight(self.done) * self.last
            if (self.done - self.plan.burn_in) % self.plan.keep_every == 0:
                self.reservoir.append(self.walk.state.position[0].cpu().clone())

    def weight(self, round: int) -> float:
        """Compute the weight of the network at the end of a round: of its last step."""
        return self.plan.weight(round * self.walk.gradients_per_round - 1)

    @property
    def average(self) -> Tensor:
        """Mean class probabilities ``(n, classes)`` of the networks since the burn-in,
        weighted if steps fall; float64, on the CPU.
        """
        weight = sum(
            self.weight(round) for round in range(self.plan.burn_in + 1, self.done + 1)
        )
        return (self.total / (weight or 1.0)).cpu()

    def scores_by_number(self) -> list[list[float]]:
        """List number of networks, error rate and log loss of the further averages, the
        smallest number first; of those that have begun.
        """
        since = self.done - self.plan.burn_in
        begun = {
            since // every: total / total[0].sum()
            for every, total in self.thinned.items()
            if since >= every
        }
        return [[number, *self.scores(begun[number])] for number in sorted(begun)]

    def record(self) -> None:
        """Add a point to the learning curve."""
        for name, value in self.point().items():
            self.curve[name].append(value)

    def point(self) -> dict:
        """Make a point of the learning curve."""
        return {
            "round": self.done,
            "seconds": round(self.seconds, 2),
            "last": self.scores(self.last),
            "average": self.scores(self.average)
            if self.done > self.plan.burn_in
            else None,
            "length": float(f"{float(self.walk.state.position.square().sum()):.5g}"),
            "precisions": [
                float(f"{float(value):.4g}")
                for value in self.walk.posterior.prior_precision.values()
            ],
        }

    def scores(self, probabilities: Tensor) -> list[float]:
        """Score predictions ``(n, classes)`` by error rate and log loss."""
        probabilities = probabilities.cpu()
        return [
            round(error_rate(probabilities, self.targets), 6),
            round(log_score(probabilities, self.targets), 6),
        ]

    def result(self) -> dict:
        """Return the scores, the learning curve and the costs of the run so far, ready
        for a result file.
        """
        return {
            "plan": asdict(self.plan),
            "made": self.made,
            "last": score(self.last.cpu(), self.targets),
            "average": score(self.average, self.targets),
            "networks_averaged": max(0, self.done - self.plan.burn_in),
            "networks_kept": len(self.reservoir),
            "gradient_evaluations": self.walk.num_gradients,
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "curve": self.curve,
            **({"by_number": self.scores_by_number()} if self.thinned else {}),
        }

    def content(self) -> dict:
        """Give all that is needed to go on, and the settings of the run."""
        return {
            "settings": self.settings,
            "made": self.made,
            "done": self.done,
            "seconds": self.seconds,
            "processor_seconds": self.processor_seconds,
            "walking_seconds": self.walking_seconds,
            "walk": self.walk.content(),
            "total": self.total,
            "last": self.last,
            "reservoir": self.reservoir,
            "curve": self.curve,
            "thinned": self.thinned,
        }

    def restore(self, content: dict) -> None:
        """Go back to what ``content`` gave."""
        path = self.checkpoint.path
        # older files have none
        if missing := self.content().keys() - content.keys() - {"thinned"}:
            raise ExperimentError(
                f"{path} lacks {', '.join(sorted(missing))}: it is no run's file, "
                "delete it to start that run anew"
            )
        # a run older than a setting had its default
        old = DEFAULTS | content["settings"]
        if changed := [
            name
            for name in self.settings | old
            if old.get(name) != self.settings.get(name)
        ]:
            differences = ", ".join(
                f"{name} was {old.get(name)!r} and is {self.settings.get(name)!r}"
                for name in changed
            )
            raise ExperimentError(
                f"{path} is of a run with other settings ({differences}): undo the "
                "change, or delete the file"
            )
        self.walk.restore(content["walk"])
        self.done, self.made = (
            content["done"],
            content["made"] if content["done"] == self.plan.rounds else {},
        )
        self.seconds, self.processor_seconds = (
            content["seconds"],
            content["processor_seconds"],
        )
        self.walking_seconds = content["walking_seconds"]
        self.total, self.last = (
            content["total"].to(self.walk.device),
            content["last"].to(self.walk.device),
        )
        self.reservoir, self.curve = content["reservoir"], content["curve"]
        self.thinned = {
            every: content["thinned"][every].to(self.walk.device)
            for every in self.thinned
        }


def read_run(path: Path) -> dict:
    """Read what a run saved: what :meth:`Run.content` gives.

    Raises:
        ExperimentError: if it is not there.
        CheckpointError: if it is no run's file, or corrupt.
    """
    content = Checkpoint(path, KIND).load("cpu")
    if content is None:
        raise ExperimentError(
            f"{path} is missing: run the experiment that writes it first"
        )
    return content
