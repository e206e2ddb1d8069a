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

from booklib.networks import multilayer_perceptron
from experiments import mnist
from experiments.fits import Method, Task, compare, summary
from experiments.neighbours import sghmc
from experiments.options import Options, Prepared
from sgmc.approximations import variational
from sgmc.draws import Draws
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior

__all__ = ["ALPHA", "methods", "prepare", "run", "summary"]

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
        return super().energy_of(
            position, batch, scale * self.batch_size / self.num_examples
        )

    def gradient_of(
        self, position: Tensor, batch: tuple[Tensor, ...], scale: float
    ) -> Tensor:
        """Compute its gradient."""
        return super().gradient_of(
            position, batch, scale * self.batch_size / self.num_examples
        )


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment mnist."""
    network = partial(multilayer_perceptron, mnist.LAYERS, "relu")
    return mnist.prepare(options)._replace(
        folder=options.folder("renyi"), network=network
    )


def vary(task: Task, num_draws: int = 1, **settings) -> Draws:
    """Fit a Gaussian from the spread 0.1 at which the report's program starts; with as
    many gradients as the rounds have minibatches.
    """
    steps = max(1, task.num_steps // num_draws)
    return variational(
        task.posterior,
        task.start(),
        task.num_networks,
        num_steps=steps,
        learning_rate=1e-3,
        num_draws=num_draws,
        **settings,
        **task.run(),
    )


def as_reported(task: Task) -> Draws:
    """Fit as the report's program does, to the posterior that lacks N/n."""
    given = task.posterior
    posterior = Unscaled(
        given.module,
        *given.data,
        batch_size=given.batch_size,
        minibatches=given.minibatches,
    )
    steps = {"num_steps": task.num_steps, "learning_rate": 1e-3}
    return variational(
        posterior,
        task.start(),
        task.num_networks,
        **steps,
        num_draws=2,
        alpha=ALPHA,
        **task.run(),
    )


METHODS: dict[str, Method] = {
    "SGHMC": partial(sghmc, rate=0.1, decay=0.01),
    "Rényi's bound": partial(vary, num_draws=2, alpha=ALPHA),
    "evidence bound": partial(vary, num_draws=2),
    "drawn outputs": partial(vary, local=True),
}


def methods(lengths: tuple[int, ...]) -> dict[str, tuple[Method, list[dict]]]:
    """List the methods at so many rounds; nothing is tuned, for the settings are the
    report's.
    """

    def lasting(method: Method) -> Method:
        return lambda task, rounds: method(replace(task, rounds=rounds))

    every = {
        f"{name}, {rounds} rounds": (lasting(method), [{"rounds": rounds}])
        for rounds in lengths
        for name, method in METHODS.items()
    }
    return {"as reported": (lasting(as_reported), [{"rounds": 11}]), **every}


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods at each number of rounds."""
    size, many = (100, 50) if options.small else (500, NETWORKS)
    lengths = (4, 12) if options.small else ROUNDS

    def task(rounds: int, seed: int, path) -> Task:
        posterior = NetworkPosterior(
            prepared.network(), *prepared.train, batch_size=size, minibatches=Fresh()
        )
        return Task(posterior, rounds, many, seed, path, options.progress)

    return compare(methods(lengths), task, prepared, options, lengths[-1])
