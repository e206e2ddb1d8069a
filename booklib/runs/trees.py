"""Runs that may consist of trees: averages after several burn-ins, a thermometer, and
counts of the trees.
"""

import torch

from booklib.runs.plans import Plan
from booklib.runs.results import score
from booklib.runs.run import Run
from booklib.scores.prediction import predictive_entropy

BURN_INS = [0, 1, 2, 5, 10, 25]  # in rounds, as in the report's table
AVERAGED = 25  # rounds after each burn-in whose networks are averaged


class TreeRun(Run):
    """A run that may consist of trees: a point of the curve for each network that ends
    a round, and averages after several burn-ins.

    Its seconds are those of the walk, without the time for predictions.
    """

    more = ("averages", "entropy")

    def __init__(self, plan: Plan, network, train, *given: object):
        # These pixels have no data, so their weights follow the prior exactly.
        self.empty = (train.inputs == 0).all(0)
        super().__init__(plan, network, train, *given)
        self.averages = {
            burn_in: torch.zeros_like(self.last)
            for burn_in in BURN_INS
            if burn_in <= plan.rounds
        }
        self.entropy = 0.0  # summed over the averaged networks
        self.record()  # records the start

    def observe(self) -> None:
        """Add the network at the end of a round to the average."""
        super().observe()
        for burn_in, average in self.averages.items():
            if burn_in < self.done <= burn_in + AVERAGED:
                average += self.last / AVERAGED
        if self.done > self.plan.burn_in:
            self.entropy += float(predictive_entropy(self.last).mean())

    def record(self) -> None:
        """Add a point to the learning curve if there is a new network; a long tree may
        end several rounds with the same network.
        """
        if self.moved:
            super().record()

    def point(self) -> dict:
        """Make a point of the learning curve."""
        position = self.chain.state.position
        scores = score(self.last.cpu(), self.targets)
        weights = self.chain.posterior.parameters_of(position)["0.weight"]
        unseen = weights.view(-1, len(self.empty))[:, self.empty]
        point = {
            "gradients": self.chain.num_gradients,
            "trees": len(self.chain.trees),
            "processor_seconds": self.walking_seconds,
            "error": scores["error"],
            "log_loss": scores["log_loss"],
            "length": float(position.square().sum()),
            "temperature": float(unseen.square().mean()) if self.empty.any() else None,
        }
        return {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in point.items()
        }

    def result(self) -> dict:
        """Return the scores, the learning curve, the counts of trees, and the report's
        table.
        """
        trees = self.chain.trees
        depths = [depth for depth, _, _ in trees]
        entropy = float(predictive_entropy(self.average).mean())
        alone = self.entropy / (self.done - self.plan.burn_in)
        starts = [each for each in self.averages if each + AVERAGED <= self.done]
        return {
            "plan": self.plan.record(),
            "made": self.made,
            "average": score(self.average, self.targets),
            "entropy": [round(entropy, 5), round(alone, 5)],
            "gradients": self.chain.num_gradients,
            "processor_seconds": round(self.walking_seconds, 2),
            "curve": self.curve,
            "trees": len(trees),
            "depths": count(depths),
            "depths_in_order": depths[:100],
            "depth_limited": sum(limited for _, limited, _ in trees),
            "diverged": sum(diverged for _, _, diverged in trees),
            "after": [self.after(burn_in) for burn_in in starts],
        }

    def after(self, burn_in: int) -> dict:
        """Write a line of the report's table: the last network after a burn-in, its
        costs, and the average over the rounds that follow.
        """
        start = burn_in * self.chain.gradients_per_round
        at = next(i for i, n in enumerate(self.curve["gradients"]) if n >= start)
        columns = ("gradients", "processor_seconds", "error", "log_loss")
        line = {name: self.curve[name][at] for name in columns}
        average = score(self.averages[burn_in].cpu(), self.targets)
        return {"burn_in": burn_in, **line, "average": average}


def count(depths: list[int]) -> list[int]:
    """Count the trees of each depth, from 0 to 10."""
    return torch.bincount(
        torch.tensor(depths, dtype=torch.int64), minlength=11
    ).tolist()
