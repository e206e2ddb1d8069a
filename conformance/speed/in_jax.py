"""The jobs in JAX, as users of its libraries write them; with jax 0.4 and 0.10."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import random

from conformance.speed import shared

SEEDS = itertools.count()
NOISES = 2**16  # data of the double well: seeds, of which each stands for a noise
*DATA, TRUTH = map(jnp.asarray, shared.regression())


class Model(NamedTuple):
    """A log density of data: of a prior, and of one example given as a tuple."""

    prior: Callable
    likelihood: Callable
    data: tuple
    batch: int = shared.BATCH

    def energy(self, theta, batch):
        """Compute U(θ), estimated by a minibatch."""
        each = jax.vmap(self.likelihood, (None, 0))(theta, batch)
        return -self.prior(theta) - len(self.data[0]) * each.mean()

    def minibatch(self, key):
        """Draw a minibatch, with replacement."""
        chosen = random.randint(key, (self.batch,), 0, len(self.data[0]))
        return tuple(part[chosen] for part in self.data)


def normal_prior(theta):
    """Give the log density of N(0, 1)."""
    return -0.5 * (theta**2).sum()


def well_prior(theta):
    """Give that of the double well, of as many chains as coordinates."""
    return (2 * theta**2 - theta**4).sum()


def well_noise(theta, datum):
    """Give what a datum adds: ζ·θ has the gradient ζ ~ N(0, 4)."""
    noise = random.normal(random.PRNGKey(datum[0]), theta.shape)
    return 2 * (noise * theta).sum() / NOISES


def logistic(theta, datum):
    """Give the log likelihood of an example of the regression."""
    logit = datum[0] @ theta
    return datum[1] * logit - jax.nn.softplus(logit)


def network(theta, datum):
    """Give that of an example of the network."""
    a, b, c, d = jnp.split(theta, [78_400, 78_500, 79_500])
    hidden = jax.nn.relu(datum[0] @ a.reshape(784, 100) + b)
    return jax.nn.log_softmax(hidden @ c.reshape(100, 10) + d)[datum[1]]


REGRESSION = Model(normal_prior, logistic, tuple(DATA))


def rows(entry: str, law: str, make: Callable, flat: str = "SGLD") -> dict:
    """Make the rows of an entry, its law and that of its SGLD given. ``make`` makes of
    a model, a number of steps and the job's numbers, or None for SGLD, a function (key,
    position) that runs a chain.
    """
    made = {}
    for row, (chains, steps, _) in shared.WELLS.items():
        model = Model(well_prior, well_noise, (jnp.arange(NOISES),), 1)
        chain = make(model, steps, shared.WELL)
        made[entry, row] = law, turn(chain, jnp.zeros(chains), steps)
    for row, job in ((shared.SGLD, None), (shared.SGHMC, shared.LOGISTIC)):
        chain, steps = make(REGRESSION, shared.STEPS[0], job), shared.STEPS[0]
        made[entry, row] = (law if job else flat), turn(chain, TRUTH, steps)
    made[entry, shared.OWN] = made[entry, shared.SGHMC]
    for row, (chains, steps, _) in shared.NETWORKS.items():
        *data, start = map(jnp.asarray, shared.pictures(chains))
        model = Model(normal_prior, network, tuple(data))
        several = jax.vmap(make(model, steps, shared.NETWORK))
        made[entry, row] = law, turn(several, start, steps, (chains, 2))
    return made


def turn(chain: Callable, start, steps: int, keys: tuple = (2,)) -> Callable:
    """Compile a chain, or several at once, and make a turn of it."""
    compiled = jax.jit(chain)

    def run():
        key = random.randint(random.PRNGKey(next(SEEDS)), keys, 0, 2**31 - 1)
        jax.block_until_ready(compiled(key.astype("uint32"), start))
        return steps

    return run
