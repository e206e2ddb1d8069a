"""SGHMC and SGNUTS by epochs of N/n samples: the warm-ups of Adam-Day et al. (2022).

Their table has, for a warm-up of so many epochs, the accuracy of the average over the
N/n networks of the next one, a tree being a sample; here it is of probabilities, on the
test digits. As a tree takes up to 1,023 gradients, SGNUTS as we read their report goes
three epochs, as theirs did, and repaired one, before SGHMC: the hybrid that they
propose. One SGHMC has the noise of their program at the end of its history.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Hamiltonian, Plan, Prior
from booklib.runs.results import checksum, score
from booklib.runs.run import Chain, Run
from booklib.runs.trees import count
from experiments import steps
from experiments.comparison import make_run
from experiments.mnist import LAYERS
from experiments.program_trees import TreeState
from experiments.sgnuts import methods
from experiments.study import Experiment, Options, Prepared, study
from sgmc.minibatches import Fresh

WARM_UPS = (0, 1, 2, 5, 10, 25)  # in epochs, as in the table


def prepare(options: Options) -> Prepared:
    """Load the digits."""
    network = partial(multilayer_perceptron, LAYERS)
    return steps.prepare(options, "trees")._replace(network=network)


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; their rounds are samples."""
    kernel, batch_size, epoch = Hamiltonian(2e-6, 0.01), 500, 100
    if small:
        kernel, batch_size, epoch = Hamiltonian(0.1 / 4000, 0.02), 400, 10
    size = {"batch_size": batch_size, "burn_in": 0}
    rounds = epoch * (max(WARM_UPS) + 1)
    plan = Plan(kernel, Prior(1.0), "uniform", Fresh(), rounds=rounds, **size)
    plans = {plan.method: plan for plan in methods(plan, head_start=1)}
    sghmc, reading = plans["SGHMC"], plans["SGNUTS, our reading"]
    return [
        sghmc,
        sghmc.variance_as_scale().but(method="SGHMC, noise as in their program"),
        plans["SGNUTS, then SGHMC"],
        reading.but(rounds=epoch if small else 3 * epoch),
    ]


class SampleBySample(Chain):
    """A chain whose rounds are samples, and whose head start is epochs of trees."""

    def head_start_is_over(self) -> bool:
        """Tell whether the trees of the head start are done."""
        return len(self.trees) >= self.plan.kernel.rounds * self.gradients_per_round

    def round(self) -> bool:
        """Take a sample.

        As an epoch begins the program computes the energy of all data.
        """
        if (
            isinstance(self.state, TreeState)
            and self.rounds % self.gradients_per_round == 0
        ):
            energy = self.posterior.energy(self.state.position)
            self.state = self.state._replace(energy=energy)
        self.rounds += 1
        self.step()
        return True


class EpochRun(Run):
    """A run whose rounds are samples: it averages, and predicts by, the networks of
    whole epochs after each of the warm-ups; its seconds are those of the chain.
    """

    chains = SampleBySample
    more = ("epoch_total", "lines")

    def __init__(self, *given: object):
        super().__init__(*given)
        self.described["round"] = "sample"
        self.epoch_total, self.lines = torch.zeros_like(self.last), []

    @property
    def epoch(self) -> int:
        """The number of epochs before the present sample's."""
        return (self.done - 1) // self.chain.gradients_per_round

    def predict(self) -> Tensor:
        """Compute class probabilities where they are to be averaged."""
        needed = self.done == 0 or self.epoch in WARM_UPS
        return super().predict() if needed else self.last

    def observe(self) -> None:
        """Add the network to the average of its epoch; at its end, write a line."""
        if self.epoch not in WARM_UPS:
            return
        self.epoch_total += self.last
        samples = self.chain.gradients_per_round
        if self.done % samples == 0:
            average = (self.epoch_total / samples).cpu()
            line = {
                "warm_up": self.epoch,
                "gradients": self.chain.num_gradients,
                "trees": len(self.chain.trees),
                "processor_seconds": round(self.walking_seconds, 2),
                "average": score(average, self.targets),
                "last": score(self.last.cpu(), self.targets),
                "length": float(self.chain.state.position.square().sum()),
            }
            self.lines.append(line)
            self.epoch_total = torch.zeros_like(self.last)

    def record(self) -> None:
        """Record no learning curve."""

    def result(self) -> dict:
        """Return the lines of the table, and the counts of trees."""
        depths = [depth for depth, _, _ in self.chain.trees]
        size = self.chain.gradients_per_round
        epochs = [depths[at : at + size] for at in range(0, len(depths), size)]
        return {
            "plan": self.plan.record(),
            "made": self.made,
            "epochs": self.lines,
            "depths": [count(epoch) for epoch in epochs],
            "diverged": sum(diverged for _, _, diverged in self.chain.trees),
            "processor_seconds": round(self.walking_seconds, 2),
        }


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run all plans, one seed after the other, and yield the result after each run."""
    return of_epochs(settings(options.small), options, {"": prepared})


def of_epochs(
    plans: list[Plan], options: Options, prepared: dict[str, Prepared]
) -> Iterator[dict]:
    """Run plans, each on its data, one seed after the other; yield after each run."""
    # The weights compare energies of the order of 100,000, as in the experiment sgnuts.
    torch.set_float32_matmul_precision("highest")
    data = {name: checksum(each.train, each.test) for name, each in prepared.items()}

    def ran(method: str, plan: Plan, seed: int) -> dict:
        plan, on = plan.but(seed=seed), prepared[plan.data]
        return make_run(plan, on, options, kind=EpochRun).go(options.progress)

    choices = {plan.method: [plan] for plan in plans}
    for found in study(choices, range(options.seeds), None, ran):
        runs = {method: content["runs"] for method, content in found.items()}
        yield {"data_checksum": data.get("", data), "runs": runs}


EXPERIMENT = Experiment(prepare, run, plans=True)
