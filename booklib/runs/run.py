"""A run of one plan on a network: its rounds, with the predictions for some examples
averaged as they come.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.utils._pytree import tree_map_only

from booklib.data import Data
from booklib.models.hierarchical import HierarchicalNetwork
from booklib.runs.held import HeldMinibatch
from booklib.runs.plans import HeadStart, Langevin, Plan, draw_start
from booklib.runs.results import ExperimentError, checksum, circumstances, score
from booklib.scores.prediction import error_rate, log_score
from sgmc.checkpoints import Checkpoint
from sgmc.door.running import drive
from sgmc.door.sampling import flatten, unflatten
from sgmc.minibatches import Fresh
from sgmc.potentials import Potential

# The kind distinguishes the file from those of `sample` and of other versions.
KIND = {"kind of file": "the run of an experiment, version 2"}
SECONDS = ("seconds", "processor_seconds", "walking_seconds")
# Runs that are older than a setting had these values.
DEFAULTS = Plan(Langevin(1.0)).record()
del DEFAULTS["learning_rate"]


class DivergedError(ExperimentError):
    """A run whose numbers are no longer finite."""


class Chain:
    """The chain that a plan describes: its posterior, kernel and state, which go on
    round by round.

    Args:
        plan: the settings.
        network: the network.
        train: what the posterior is of.
        device: a device of torch.
        chains: number of chains side by side.

    Attributes:
        posterior: given the precisions of the present round.
        state: the kernel's.
        rounds: number of rounds begun.
        num_gradients: gradient evaluations so far.
        trees: depth of each tree so far, and whether it was at the depth limit and
            whether it diverged.
    """

    def __init__(
        self,
        plan: Plan,
        network: nn.Module,
        train: Data,
        device: torch.device | str = "cpu",
        chains: int = 1,
    ):
        self.plan, self.device = plan, torch.device(device)
        self.generator = Generator(self.device).manual_seed(plan.seed)
        self.gradients_per_round = getattr(plan.kernel, "num_steps", 1) * (
            len(train.targets) // plan.batch_size
        )
        posterior = HierarchicalNetwork(
            network,
            *(x.to(self.device) for x in train),
            batch_size=plan.batch_size,
            minibatches=plan.minibatches,
        )
        self.posterior = posterior.given(plan.prior.precisions(network))
        self.rounds, self.num_gradients, self.changed = 0, 0, False
        self.trees: list[tuple[int, bool, bool]] = []
        self.kernel = plan.make_kernel()
        start = draw_start(plan.start, self.posterior, self.generator, chains)
        self.state = self.kernel.init(self.potential(), start, self.generator)

    def potential(self) -> Potential:
        """Return the potential of the next step: the posterior, or one minibatch of it
        that is held for a tree.
        """
        if self.changed or not getattr(self.plan.kernel, "held", False):
            return self.posterior
        examples, size = self.posterior.num_examples, self.plan.batch_size
        indices = Fresh().indices(
            examples, size, 1, self.plan.seed, step=len(self.trees)
        )
        return HeldMinibatch(self.posterior, indices.to(self.device))

    def step(self) -> NamedTuple:
        """Take a step of the kernel, and return its information."""
        if isinstance(self.plan.kernel, HeadStart) and self.head_start_is_over():
            self.change()
        before = int(self.state.num_gradients)
        potential = self.potential()
        self.state, info = self.kernel.step(potential, self.state, self.generator)
        self.num_gradients += int(self.state.num_gradients) - before
        if hasattr(info, "depth"):
            tree = int(info.depth), bool(info.depth_limited), bool(info.diverged)
            self.trees.append(tree)
        return info

    def head_start_is_over(self) -> bool:
        """Tell whether the rounds of the head start are done."""
        return self.num_gradients >= self.plan.kernel.rounds * self.gradients_per_round

    def change(self) -> None:
        """Go on with another kernel after the head start, counting its steps on, so
        that no minibatch comes again.
        """
        if self.changed:
            return
        steps = self.num_gradients
        if self.trees:
            steps = len(self.trees) * 2**self.kernel.max_depth
        self.kernel, self.changed = self.plan.kernel.after(), True
        self.state = self.kernel.init(
            self.posterior, self.state.position, self.generator
        )._replace(num_gradients=steps)

    def round(self) -> bool:
        """Go on to the end of a round, and draw the prior's precisions there if the
        plan says so; return whether there was a step to take.

        A tree ends where it ends, after one round or several.
        """
        if hasattr(self.plan.schedule, "share"):
            self.kernel = self.plan.make_kernel(self.rounds)
        self.rounds += 1
        end = self.rounds * self.gradients_per_round
        moves = self.num_gradients < end
        while self.num_gradients < end:
            self.step()
        if self.plan.prior.precision is None and self.is_finite():
            self.posterior = self.posterior.given(
                self.posterior.draw_hyperparameters(self.state.position, self.generator)
            )
        return moves

    def is_finite(self) -> bool:
        """Tell whether all numbers of the chain are finite."""
        return bool(torch.isfinite(self.state.position).all())

    def state_dict(self) -> dict:
        """Return everything that is needed to go on, and the position by its name for
        readers of the file.
        """
        return {
            "position": self.state.position,
            "state": flatten(self.state),
            "changed": self.changed,
            "generator": self.generator.get_state(),
            "precisions": self.posterior.prior_precision,
            "rounds": self.rounds,
            "num_gradients": self.num_gradients,
            "trees": self.trees,
        }

    def load_state_dict(self, saved: dict) -> None:
        """Go back to a state that :meth:`state_dict` returned."""
        if saved["changed"]:
            self.change()
        self.state = unflatten(saved["state"], self.state)
        self.generator.set_state(saved["generator"].cpu())
        self.posterior = self.posterior.given(saved["precisions"])
        for name in ("rounds", "num_gradients", "trees"):
            setattr(self, name, saved[name])


class Run:
    """One sampler with one seed: a job of :func:`sgmc.door.running.drive` whose steps
    are rounds.

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
        chain: the chain.
        last: class probabilities ``(n, classes)`` of the network at the end of the last
            round, float64.
        reservoir: the networks kept, each ``(dim,)``, on the CPU.
        curve: the learning curve.
        made: date, versions, machine and precision of the run, or of its last part if
            it was resumed.
        chains: the class of its chain.

    Raises:
        ExperimentError: if the file is that of a run with other settings.
        CheckpointError: if it is no run's file, or corrupt.
    """

    chains: Callable[..., Chain] = Chain
    more: tuple[str, ...] = ()  #: what a kind of run saves in addition

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
        self.checkpoint = None if path is None else Checkpoint(path)
        self.chain = self.chains(plan, network, train, device)
        self.described = {
            **plan.record(),
            "network": str(network),
            "checksum": checksum(train, examples),
            "device": self.chain.device.type,
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
        """Run the remaining rounds and return the results of :meth:`result`, or raise a
        KeyboardInterrupt if someone stopped them.
        """
        more = {"title": f"{self.plan.method}, seed {self.plan.seed}", "unit": "round"}
        with warnings.catch_warnings():
            # The interrupt says so itself.
            warnings.filterwarnings("ignore", "interrupted after")
            rounds, file = self.plan.rounds, self.checkpoint
            drive(self, rounds, checkpoint=file, progress=progress, **more)
        if self.done < rounds:
            raise KeyboardInterrupt
        return self.result()

    def settings(self) -> dict:
        """Return the settings that distinguish a run's file from others;
        :meth:`load_state_dict` compares them.
        """
        return KIND

    def advance(self) -> None:
        """Run the chain for a round, and predict."""
        started, processor_started = time.monotonic(), time.process_time()
        self.made = self.made or circumstances(self.chain.device.type)
        self.moved = self.chain.round()
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
        """Raise an error if a number of the chain or of its predictions is not finite;
        logits overflow before weights do.
        """
        if not self.chain.is_finite() or not torch.isfinite(self.last).all():
            raise DivergedError(
                f"{self.plan.method} left the finite numbers in round {self.done}: "
                "lower its learning rate"
            )

    def predict(self) -> Tensor:
        """Compute the class probabilities of the present network for the examples:
        ``(n, classes)`` float64.
        """
        position = self.chain.state.position
        return (
            self.chain.posterior.log_predict(position, self.examples)[0].double().exp()
        )

    def observe(self) -> None:
        """Add the network at the end of a round to the averages and the reservoir."""
        since = self.done - self.plan.burn_in
        if since <= 0:
            return
        self.total += self.weight(self.done) * self.last
        for every, total in self.thinned.items():
            if since % every == 0:
                total += self.weight(self.done) * self.last
        if since % self.plan.keep_every == 0:
            self.reservoir.append(self.chain.state.position[0].cpu().clone())

    def weight(self, round: int) -> float:
        """Compute the weight of the network at the end of a round: that of its last
        step.
        """
        return self.plan.weight(round * self.chain.gradients_per_round - 1)

    @property
    def average(self) -> Tensor:
        """Mean class probabilities ``(n, classes)`` of the networks since the burn-in,
        weighted if steps fall; float64, on the CPU.
        """
        averaged = range(self.plan.burn_in + 1, self.done + 1)
        return (self.total / (sum(map(self.weight, averaged)) or 1.0)).cpu()

    def scores_by_number(self) -> list[list[float]]:
        """List the number of networks, error rate and log loss of the further averages,
        the smallest number first, leaving out those that have not begun.
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
        averaging = self.done > self.plan.burn_in
        precisions = self.chain.posterior.prior_precision.values()
        return {
            "round": self.done,
            "seconds": round(self.seconds, 2),
            "last": self.scores(self.last),
            "average": self.scores(self.average) if averaging else None,
            "length": float(f"{float(self.chain.state.position.square().sum()):.5g}"),
            "precisions": [float(f"{float(value):.4g}") for value in precisions],
        }

    def scores(self, probabilities: Tensor) -> list[float]:
        """Score predictions ``(n, classes)`` by error rate and log loss."""
        return [
            round(score_of(probabilities.cpu(), self.targets), 6)
            for score_of in (error_rate, log_score)
        ]

    def result(self) -> dict:
        """Return the scores, the learning curve and the costs of the run so far, ready
        for a result file.
        """
        return {
            "plan": self.plan.record(),
            "made": self.made,
            "last": score(self.last.cpu(), self.targets),
            "average": score(self.average, self.targets),
            "networks_averaged": max(0, self.done - self.plan.burn_in),
            "networks_kept": len(self.reservoir),
            "gradient_evaluations": self.chain.num_gradients,
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(self.processor_seconds, 1),
            "curve": self.curve,
            **({"by_number": self.scores_by_number()} if self.thinned else {}),
        }

    def state_dict(self) -> dict:
        """Return everything that is needed to go on, and the settings of the run."""
        names = ("made", "done", *SECONDS, "total", "last", "reservoir", "curve")
        names += ("thinned", *self.more)
        own = {name: getattr(self, name) for name in names}
        return {**own, "settings": self.described, "walk": self.chain.state_dict()}

    def load_state_dict(self, saved: dict) -> None:
        """Go back to a state that :meth:`state_dict` returned."""
        old, new = DEFAULTS | saved["settings"], self.described
        if differences := ", ".join(
            f"{name} was {old.get(name)!r} and is {new.get(name)!r}"
            for name in new | old
            if old.get(name) != new.get(name)
        ):
            raise ExperimentError(
                f"{self.checkpoint.path} is of a run with other settings "
                f"({differences}): undo the change, or delete the file"
            )
        self.chain.load_state_dict(saved["walk"])
        for name in ("done", "reservoir", "curve", *SECONDS):
            setattr(self, name, saved[name])
        self.made = saved["made"] if self.done == self.plan.rounds else {}
        move = partial(tree_map_only, Tensor, lambda x: x.to(self.chain.device))
        for name in ("total", "last", *self.more):
            setattr(self, name, move(saved[name]))
        thinned = move(saved.get("thinned", {}))  # older files lack it
        self.thinned = {every: thinned[every] for every in self.thinned}


def read_run(path: Path) -> dict:
    """Read a saved run, as :meth:`Run.state_dict` returned it.

    Raises:
        ExperimentError: if it is not there.
        CheckpointError: if it is no run's file, or corrupt.
    """
    saved = Checkpoint(path).open(KIND)
    if saved is None:
        raise ExperimentError(
            f"{path} is missing: run the experiment that writes it first"
        )
    return saved
