"""Variational inference against SGHMC as the reproduction report compared them, and
with both given the same.

Adam-Day et al. fitted a Gaussian with independent weights by Rényi's bound, α = 0.01
and two draws a step, to a network 784–100–10 with rectified linear units and the prior
N(0, 1), by Adam at the rate 0.001. In their code the log-likelihood of a minibatch of
500 is not scaled to all the data, so that the prior weighs a hundred times too much,
and the fit stops after eleven rounds, each step with the gradients of two draws: the
first method here. The others have the right scale, and as many gradients as SGHMC,
whose η = 0.1/N and α = 0.01 are the report's: with the report's bound, with the
ordinary one, and with drawn outputs of the layers, each with few rounds and with many.
All see pixels from 0 to 1. Predictions of a fit are averaged over 200 draws; SGHMC
averages a network a round from the second half of its rounds. The small version is on
the 5,000 digits."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor

from experiments import mnist
from experiments.fits import COLUMNS, Method, Methods, Task, compare
from experiments.neighbours import sghmc
from experiments.study import Experiment, Options, Prepared
from sgmc.approximations import variational
from sgmc.draws import Draws
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior

ROUNDS = (10, 80)
NETWORKS = 200
ALPHA = 0.01


class Unscaled(NetworkPosterior):
    """The posterior that a program follows which forgets N/n: that of the data raised
    to the power n/N.
    """

    def energy_of(
        self, position: Tensor, batch: tuple[Tensor, ...], scale: float
    ) -> Tensor:
        """Compute the energy of a batch."""
        scale = scale * self.batch_size / self.num_examples
        return super().energy_of(position, batch, scale)

    def gradient_of(
        self, position: Tensor, batch: tuple[Tensor, ...], scale: float
    ) -> Tensor:
        """Compute its gradient."""
        scale = scale * self.batch_size / self.num_examples
        return super().gradient_of(position, batch, scale)


def vary(task: Task, num_draws: int = 1, **settings) -> Draws:
    """Fit a Gaussian from the spread 0.1 at which the report's program starts; with as
    many gradients as the rounds have minibatches.
    """
    return variational(
        task.posterior,
        task.start(),
        task.num_networks,
        num_steps=max(1, task.num_steps // num_draws),
        learning_rate=1e-3,
        num_draws=num_draws,
        **settings,
        **task.fit,
    )


def as_reported(task: Task) -> Draws:
    """Fit as the report's program does, to the posterior that lacks N/n, each step with
    the gradients of two draws.
    """
    given = task.posterior
    posterior = Unscaled(
        given.module,
        *given.data,
        batch_size=given.batch_size,
        minibatches=given.minibatches,
    )
    return variational(
        posterior,
        task.start(),
        task.num_networks,
        num_steps=task.num_steps,
        learning_rate=1e-3,
        num_draws=2,
        alpha=ALPHA,
        **task.fit,
    )


METHODS: dict[str, Method] = {
    "SGHMC": partial(sghmc, rate=0.1, decay=0.01),
    "Rényi's bound": partial(vary, num_draws=2, alpha=ALPHA),
    "evidence bound": partial(vary, num_draws=2),
    "drawn outputs": partial(vary, local=True),
}


def methods(lengths: tuple[int, ...]) -> Methods:
    """List the methods at so many rounds; nothing is tuned, for the settings are the
    report's.
    """

    def lasting(method: Method, rounds: int) -> tuple[Method, list[dict]]:
        def fit(task: Task, rounds: int) -> Draws:
            return method(replace(task, rounds=rounds))

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
    posterior = NetworkPosterior(
        prepared.network(), *prepared.train, batch_size=size, minibatches=Fresh()
    )

    def task(rounds: int, seed: int, path) -> Task:
        return Task(posterior, rounds, many, seed, path, options.progress)

    return compare(methods(lengths), task, prepared, options, lengths[-1])


prepare = partial(mnist.prepare, name="renyi")
EXPERIMENT = Experiment(prepare, run, COLUMNS)
