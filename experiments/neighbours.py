"""The neighbours of SGHMC on MNIST: one network, one posterior, one budget.

Every method may take as many gradients of minibatches of 500 digits as 60 rounds do;
one ensemble has five times as many, and adversarial examples cost one gradient more
each. All but the point estimates, the ensembles and the snapshots predict with 30
networks. Settings are chosen on the validation digits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from booklib import rivals
from booklib.rivals.descent import Settings
from booklib.rivals.descent import descend as go_down
from experiments import mnist
from experiments.fits import Methods, Task, compare, tasks
from experiments.study import Experiment, Options, Prepared, grid, no_digits
from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import SGHMC, SGLD, SGNUTS, Kernel
from sgmc.minibatches import Passes
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import NetworkPosterior

ROUNDS, NETWORKS, MEMBERS, CYCLES = 60, 30, 5, 6
DECAY = 0.1  # α of all descents with momentum
EXPLORATION = 0.8  # the share of a cycle without noise
DEPTH = 5  # a path has at most 2⁵ states, so that three paths fit into a round


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment mnist, and images that are no digits."""
    prepared = mnist.prepare(options, name="neighbours")
    return prepared._replace(others=no_digits(options))


def chain(
    task: Task, kernel: Kernel, position: Tensor | None = None, part: str = ""
) -> Draws:
    """Sample for all rounds, half of them burn-in, and keep a network a round."""
    kept, length = task.rounds // 2, task.round_length
    start = task.start() if position is None else position
    size = {"warm_up": (task.rounds - kept) * length, "thinning": length}
    return sample(kernel, task.posterior, start, kept, **size, **task.run(part))


def sghmc(task: Task, rate: float, decay: float, temperature: float = 1.0) -> Draws:
    """Sample by SGHMC; rates are for a mean over the data."""
    rate = rate / task.posterior.num_examples
    kernel = SGHMC.from_learning_rate(rate, decay, temperature=temperature)
    return chain(task, kernel)


def sgld(task: Task, rate: float, temperature: float = 1.0) -> Draws:
    """Sample by SGLD."""
    return chain(task, SGLD(rate / task.posterior.num_examples, temperature))


def cyclical(
    task: Task, rate: float, decay: float | None = None, temperature: float = 1.0
) -> Draws:
    """Sample by SGHMC, or SGLD without a decay, at the end of each cycle."""
    kernel = SGLD
    if decay is not None:
        kernel = partial(SGHMC.from_learning_rate, momentum_decay=decay)
    length = task.num_steps // CYCLES
    number = max(1, min(task.num_networks // CYCLES, int(length * (1 - EXPLORATION))))
    kernel = partial(kernel, temperature=temperature)
    given = rate / task.posterior.num_examples, length, number, EXPLORATION
    cycles = Cyclical(kernel, *given, cold=True)
    return sample(cycles, task.posterior, task.start(), CYCLES * number, **task.run())


class RoundsState(NamedTuple):
    """A state of :class:`Rounds`."""

    inner: NamedTuple  #: the state of SGNUTS
    rounds: int  #: rounds so far

    @property
    def position(self) -> Tensor:
        """The position ``(1, dim)``."""
        return self.inner.position


@dataclass(frozen=True, eq=False)
class Rounds(Kernel):
    """Trees of SGNUTS, as long as the next one cannot exceed the gradients of the
    round.
    """

    kernel: SGNUTS
    num_gradients: int  #: the gradients of a round

    def init(self, potential, position: Tensor, generator: Generator) -> RoundsState:
        """Start at a position ``(1, dim)``."""
        return RoundsState(self.kernel.init(potential, position, generator), 0)

    def step(self, potential, state: RoundsState, generator: Generator) -> tuple:
        """Take the trees of a round."""
        inner, rounds = state.inner, state.rounds + 1
        due = rounds * self.num_gradients - 2**self.kernel.max_depth
        while True:
            inner, info = self.kernel.step(potential, inner, generator)
            if int(inner.num_gradients) > due:
                return RoundsState(inner, rounds), info


def trees(task: Task, rate: float, decay: float) -> Draws:
    """Sample by SGNUTS."""
    step_size = math.sqrt(rate / task.posterior.num_examples)
    depth = max(1, min(DEPTH, int(math.log2(task.round_length)) - 1))
    kernel = SGNUTS(step_size, decay / step_size, max_depth=depth)
    kept, rounds = task.rounds // 2, Rounds(kernel, task.round_length)
    size = {"warm_up": task.rounds - kept}
    return sample(rounds, task.posterior, task.start(), kept, **size, **task.run())


def cycles(task: Task, rate: float, decay: float, number: int = CYCLES) -> Draws:
    """Descend again and again, and keep the snapshots."""
    rate = rate / task.posterior.num_examples
    size = {"cycle_length": task.num_steps // number}
    size |= {"learning_rate": rate, "momentum_decay": decay}
    given = task.run(f"-{number}")
    return rivals.snapshots(task.posterior, task.start(), number, **size, **given)


# The methods below are descent with momentum, at a constant rate and at a falling one.
path = partial(sghmc, decay=DECAY, temperature=0.0)
descend = partial(cycles, decay=DECAY, number=1)


def constant(task: Task, rate: float, share: float) -> Draws:
    """Descend, estimate the noise there, and go on at a share of the optimal rate."""
    half, posterior = replace(task, rounds=task.rounds // 2), task.posterior
    first = descend(half, rate)
    mode, apart = first.samples[-1], Generator().manual_seed(task.seed)
    variances = [
        posterior.gradient_and_noise_variance(mode, apart, "scalar")[1]
        for _ in range(10)
    ]
    kernel = rivals.constant_sgd(float(torch.cat(variances).mean()) / share)
    draws = chain(half, kernel, mode, "-constant")
    return replace(draws, seconds=first.seconds + draws.seconds)


def vary(task: Task, rate: float, initial_std: float) -> Draws:
    """Fit a Gaussian by Bayes by Backprop, its layers' outputs being drawn."""
    size = {"num_steps": task.num_steps, "learning_rate": rate}
    size |= {"initial_std": initial_std, "local": True}
    given = task.posterior, task.start(), task.num_networks
    return rivals.variational(*given, **size, **task.run())


def drop(task: Task, rate: float, dropped: list[float]) -> Draws:
    """Train with dropout."""
    size = {"rate": dropped, "num_steps": task.num_steps, "learning_rate": rate}
    given = task.posterior, task.start(), task.num_networks
    return rivals.dropout(*given, **size, **task.run())


def members(
    task: Task, rate: float, share: int = MEMBERS, adversarial: float = 0.0
) -> Draws:
    """Train members that share the rounds, or have them all."""
    size = {"num_steps": task.num_steps // share, "learning_rate": rate}
    size |= {"adversarial": adversarial}
    start, given = task.start(MEMBERS), task.run(f"-{share}")
    return rivals.ensemble(task.posterior, start, **size, **given)


def average(task: Task, rate: float) -> Draws:
    """Fit a Gaussian to the path of descent."""
    walked, rank = path(task, rate), min(20, task.rounds // 2)
    return rivals.swag(walked, task.num_networks, rank=rank, seed=task.seed)


def curve(task: Task, rate: float) -> Draws:
    """Descend, and approximate the last layer about its mode given the other layers."""
    draws, posterior = descend(task, rate), task.posterior
    mode, body = draws.samples[-1], posterior.module[:-1]
    pieces = posterior.parameters_of(mode)
    weights = {
        name: pieces[name].view(parameter.shape)
        for name, parameter in body.named_parameters()
    }
    features = torch.func.functional_call(body, weights, (posterior.data[0],))
    last = NetworkPosterior(posterior.module[-1], features, posterior.data[1])
    head = mode[:, -last.dim :].clone()
    given = Generator(), Settings(500, 0.003)
    gradients = lambda noise: [last.gradient(head)]
    way = go_down(last, [head], gradients, *given, progress=task.progress)
    about = rivals.laplace(last, head, task.num_networks, seed=task.seed)
    held = mode[:, : -last.dim].expand(task.num_networks, 1, -1)
    name = f"{about.kernel} after {draws.kernel}"
    seconds = draws.seconds + way.seconds + about.seconds
    samples = torch.cat([held, about.samples], -1)
    return Draws(samples, kernel=name, seed=task.seed, seconds=seconds)


def methods() -> Methods:
    """List the methods, each with the settings to choose from."""
    pairs = ((0.1, 0.01), (0.4, 0.01), (0.4, 0.1), (1.0, 0.1))
    both = [{"rate": rate, "decay": decay} for rate, decay in pairs]
    plain, adam = (0.3, 1.0, 3.0), (3e-3, 1e-2, 3e-2)
    momentum, some = (0.05, 0.15, 0.5), (3e-3, 1e-2)
    shares = (1.0, 0.1, 0.01, 1e-3, 1e-4)
    masks = ([0.0, 0.2], [0.2, 0.5], [0.1, 0.1])
    cold = {"decay": DECAY, "temperature": (0.1, 0.01)}
    return {
        "SGHMC": (sghmc, both),
        "SGLD": (sgld, grid(rate=(0.25, 0.5, 1.0, 2.0))),
        "SGHMC, cold": (sghmc, grid(rate=(0.15, 0.4), **cold)),
        "cSGLD": (cyclical, grid(rate=(0.5, 1.0, 2.0, 4.0))),
        "cSGHMC": (cyclical, grid(rate=(0.15, 0.5, 1.0, 2.0), decay=DECAY)),
        "cSGHMC, cold": (cyclical, grid(rate=(0.15, 0.5), **cold)),
        "SGNUTS": (trees, both),
        "SGD": (cycles, grid(rate=plain, decay=1.0, number=1)),
        "SGD with momentum": (descend, grid(rate=momentum)),
        "path of SGD with momentum": (path, grid(rate=momentum)),
        "constant SGD": (constant, grid(rate=0.15, share=shares)),
        "snapshots of SGD": (cycles, grid(rate=plain, decay=1.0)),
        "snapshots with momentum": (cycles, grid(rate=(0.15, 0.5, 1.5), decay=DECAY)),
        "Bayes by Backprop": (vary, grid(rate=some, initial_std=(0.01, 0.05))),
        "dropout": (drop, grid(rate=some, dropped=masks)),
        "ensemble": (members, grid(rate=adam)),
        "ensemble, adversarial": (members, grid(rate=adam, adversarial=0.01)),
        "ensemble, five times the budget": (members, grid(rate=adam, share=1)),
        "SWAG": (average, grid(rate=momentum)),
        "Laplace, last layer": (curve, grid(rate=momentum)),
    }


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    rounds, size = (12, 100) if options.small else (ROUNDS, 500)
    rule = {"batch_size": size, "minibatches": Passes()}
    posterior = NetworkPosterior(prepared.network(), *prepared.train, **rule)
    task = tasks(posterior, lambda rounds: min(NETWORKS, rounds // 2), options)
    return compare(methods(), task, prepared, options, rounds)


EXPERIMENT = Experiment(prepare, run)
