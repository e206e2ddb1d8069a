"""Variational inference against SGHMC as the reproduction report compared them.

Adam-Day et al. fitted a Gaussian with independent weights by Rényi's bound, α = 0.01
and two draws a step, by Adam at the rate 0.001. Their code does not scale a minibatch's
log-likelihood to all the data, so that the prior weighs a hundred times too much, and
stops after eleven rounds: the first method. The others have the right scale, and as
many gradients as SGHMC, with few rounds and with many. Predictions of a fit average 200
draws; SGHMC's a network a round from the second half of its rounds.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor

from booklib.rivals import variational
from experiments import mnist
from experiments.fits import Method, Methods, Task, compare, tasks
from experiments.neighbours import sghmc
from experiments.study import Experiment, Options, Prepared
from sgmc.door.draws import Draws
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior

ROUNDS, NETWORKS, ALPHA = (10, 80), 200, 0.01


class Unscaled(NetworkPosterior):
    """The posterior of a program that omits N/n: of the data to the power n/N."""

    def log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute n/N of each example's log likelihood."""
        share = self.batch_size / self.num_examples
        return share * super().log_likelihood(position, inputs, targets)

    def _gradient_of(self, position: Tensor, batch: tuple, scale: float) -> Tensor:
        """Compute its gradient."""
        shrunk = scale * self.batch_size / self.num_examples
        return super()._gradient_of(position, batch, shrunk)


def vary(task: Task, num_draws: int = 1, **settings) -> Draws:
    """Fit a Gaussian, with as many gradients as the rounds have minibatches."""
    size = {"num_steps": max(1, task.num_steps // num_draws), "num_draws": num_draws}
    size |= {"learning_rate": 1e-3, **settings}
    given = task.posterior, task.start(), task.num_networks
    return variational(*given, **size, **task.run())


def as_reported(task: Task) -> Draws:
    """Fit the posterior that lacks N/n, where a step has the gradients of two draws."""
    given = task.posterior
    size = {"batch_size": given.batch_size, "minibatches": given.minibatches}
    unscaled = Unscaled(given.module, *given.data, **size)
    # Each step takes a round's minibatch twice.
    longer = replace(task, posterior=unscaled, rounds=2 * task.rounds)
    return vary(longer, num_draws=2, alpha=ALPHA)


METHODS: dict[str, Method] = {
    "SGHMC": partial(sghmc, rate=0.1, decay=0.01),
    "Rényi's bound": partial(vary, num_draws=2, alpha=ALPHA),
    "evidence bound": partial(vary, num_draws=2),
    "drawn outputs": partial(vary, local=True),
}


def methods(lengths: tuple[int, ...]) -> Methods:
    """List the methods at so many rounds; the settings are the report's."""

    def lasting(method: Method, rounds: int) -> tuple[Method, list[dict]]:
        fit = lambda task, rounds: method(replace(task, rounds=rounds))
        return fit, [{"rounds": rounds}]

    every = {
        f"{name}, {rounds} rounds": lasting(method, rounds)
        for rounds in lengths
        for name, method in METHODS.items()
    }
    return {"as reported": lasting(as_reported, 11), **every}


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods at each number of rounds."""
    size, many = (100, 50) if options.small else (500, NETWORKS)
    lengths = (4, 12) if options.small else ROUNDS
    rule = {"batch_size": size, "minibatches": Fresh()}
    posterior = NetworkPosterior(prepared.network(), *prepared.train, **rule)
    task = tasks(posterior, lambda rounds: many, options)
    return compare(methods(lengths), task, prepared, options, lengths[-1])


prepare = partial(mnist.prepare, name="renyi")
EXPERIMENT = Experiment(prepare, run)
