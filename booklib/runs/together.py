"""Runs of one plan with several seeds, as chains side by side: one program serves all
of them, and an accelerator, or a processor with wide vectors, needs little more time
for it.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from torch import Tensor, nn

from booklib.data import Data
from booklib.runs.plans import Plan
from booklib.runs.results import score
from booklib.runs.run import Chain, Run

# the entries of a learning curve
PER_CHAIN = ("last", "average", "length", "precisions")


class Together(Run):
    """A run whose chains differ by their random numbers alone: by start, minibatches,
    noise and precisions. The first chain has the plan's seed, each further chain one
    more.

    Two plans with one seed have the same starts and minibatches, chain by chain.

    Args:
        number: number of chains.
        plan: the settings.
        network: the network.
        train: what the posterior is of.
        examples: what is predicted and scored.
        device: a device of torch.
        path: file to save the run in.
    """

    def __init__(
        self,
        number: int,
        plan: Plan,
        network: nn.Module,
        train: Data,
        examples: Data,
        device: str = "cpu",
        path: Path | None = None,
    ):
        self.number, self.chains = number, partial(Chain, chains=number)
        super().__init__(plan, network, train, examples, device, path)
        self.described["chains"] = number

    def predict(self) -> Tensor:
        """Compute the class probabilities of the present networks for the examples:
        ``(chains, n, classes)`` float64.
        """
        position = self.chain.state.position
        return self.chain.posterior.log_predict(position, self.examples).double().exp()

    def observe(self) -> None:
        """Add the networks at the end of a round to the averages and the reservoir,
        which has ``(chains, dim)`` of each such round.
        """
        super().observe()
        since = self.done - self.plan.burn_in
        if since > 0 and since % self.plan.keep_every == 0:
            self.reservoir[-1] = self.chain.state.position.cpu().clone()

    def point(self) -> dict:
        """Make a point of the learning curve, whose scores are lists over chains."""
        averaging = self.done > self.plan.burn_in
        position, last, average = self.chain.state.position, self.last.cpu(), None
        if averaging:
            average = [self.scores(each) for each in self.average]
        drawn = self.chain.posterior.prior_precision.values()
        by_tensor = [_numbers(value, self.number, 4) for value in drawn]
        return {
            "round": self.done,
            "seconds": round(self.seconds / self.number, 2),
            "last": [self.scores(each) for each in last],
            "average": average,
            "length": _numbers(position.square().sum(-1), self.number, 5),
            "precisions": [list(each) for each in zip(*by_tensor, strict=True)],
        }

    def scores_by_number(self) -> list[list[float]]:
        """Return no scores of thinned averages here: see :meth:`One.by_number`."""
        return []

    def result(self) -> dict:
        """Return a run's results for each chain."""
        return {"runs": [One(self, index).result() for index in range(self.number)]}

    def ones(self) -> list["One"]:
        """List the chains' runs."""
        return [One(self, index) for index in range(self.number)]


@dataclass
class One:
    """One of several runs side by side, seen as a finished
    :class:`booklib.runs.run.Run`.
    """

    run: Together
    index: int

    @property
    def plan(self) -> Plan:
        """The settings, with this chain's seed."""
        return self.run.plan.but(seed=self.run.plan.seed + self.index)

    @property
    def chain(self) -> Chain:
        """All the chains."""
        return self.run.chain

    @property
    def examples(self) -> Tensor:
        """The examples to predict."""
        return self.run.examples

    @property
    def targets(self) -> Tensor:
        """The classes of the examples."""
        return self.run.targets

    @property
    def position(self) -> Tensor:
        """The last network, ``(1, dim)``, on the CPU."""
        return self.run.chain.state.position[self.index].cpu()[None]

    @property
    def last(self) -> Tensor:
        """Class probabilities of the last network, ``(n, classes)``."""
        return self.run.last[self.index].cpu()

    @cached_property
    def average(self) -> Tensor:
        """Averaged class probabilities, ``(n, classes)``."""
        return self.run.average[self.index]

    @property
    def reservoir(self) -> list[Tensor]:
        """The networks kept, each ``(dim,)``."""
        return [kept[self.index] for kept in self.run.reservoir]

    def by_number(self) -> list[list[float]]:
        """List the size, error rate and log loss of each further average."""
        run, found = self.run, []
        for every, total in run.thinned.items():
            if (number := (run.done - run.plan.burn_in) // every) > 0:
                mean = (total[self.index] / total[self.index][0].sum()).cpu()
                found.append([number, *run.scores(mean)])
        return sorted(found)

    def result(self) -> dict:
        """Return the scores, the learning curve and a share of the costs."""
        run, number = self.run, self.run.number
        curve = {
            name: [None if value is None else value[self.index] for value in values]
            if name in PER_CHAIN
            else values
            for name, values in run.curve.items()
        }
        return {
            "plan": self.plan.record(),
            "made": run.made,
            "side_by_side": number,
            "last": score(self.last, self.targets),
            "average": score(self.average, self.targets),
            "networks_averaged": max(0, run.done - run.plan.burn_in),
            "networks_kept": len(run.reservoir),
            "gradient_evaluations": run.chain.num_gradients,
            "seconds": round(run.seconds / number, 1),
            "processor_seconds": round(run.processor_seconds / number, 1),
            "curve": curve,
            **({"by_number": self.by_number()} if run.thinned else {}),
        }


def _numbers(values: float | Tensor, number: int, digits: int) -> list[float]:
    """Round each chain's number; a single number stands for all chains."""
    listed = values.tolist() if isinstance(values, Tensor) else [values] * number
    return [float(f"{value:.{digits}g}") for value in listed]
