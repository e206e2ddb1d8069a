"""numpyro: HMCECS, which corrects for its minibatches; a copy is a chain."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import random
from numpyro import distributions as dist
from numpyro.infer import HMC, HMCECS
from sglaws import Adapter

jax.config.update("jax_enable_x64", True)
WEIGHT, OBSERVED = jnp.array([0.2, 0.4, 0.6, 0.8]), jnp.array([3.0, -1.0, 1.0, -1.0])


def model(curvature, size):
    """Its posterior is N(0, 1/a): a share of the precision from each of four data."""
    scale = jnp.array(curvature) / (1 + WEIGHT.sum())
    theta = numpyro.sample("theta", dist.Normal(0, scale**-0.5).to_event(1))
    with numpyro.plate("N", 4, subsample_size=size) as index:
        deviation = (WEIGHT[index, None] * scale) ** -0.5
        likelihood = dist.Normal(theta, deviation).to_event(1)
        numpyro.sample("obs", likelihood, obs=OBSERVED[index, None] * scale**-0.5)


@functools.cache
def made(degree, curvature, size):
    """Give init and sample over copies, compiled."""
    proxy = None
    if degree:
        proxy = HMCECS.taylor_proxy({"theta": jnp.zeros(len(curvature))}, degree)
    fixed = {"adapt_step_size": False, "adapt_mass_matrix": False}
    inner = HMC(model, step_size=0.3, trajectory_length=1.5, **fixed)
    kernel, given = HMCECS(inner, num_blocks=1, proxy=proxy), (curvature, size)
    init = lambda key, x: kernel.init(key, 0, {"theta": x}, given, {})
    return jax.vmap(init), jax.jit(jax.vmap(lambda s: kernel.sample(s, given, {})))


class Corrected(Adapter):
    """With a proxy of degree 2, the default, which is exact here."""

    name, kind, linear, own_batches = "HMCECS, proxy", "exact", False, True
    documented, degree, size = "the target", 2, 2
    blank = {
        "gradient noise": "one minibatch size",
        "front door": "its inner kernel adapts its step size",
    }

    def arguments(self, s):
        return {"curvature": s.curvature}

    def init(self, theta, seed, curvature):
        init, _ = made(self.degree, curvature, self.size)
        keys = random.split(random.PRNGKey(seed), len(theta))
        return init(keys, jnp.array(theta)), curvature

    def step(self, state, target, seed):
        keys = random.split(random.PRNGKey(seed), len(state[0].rng_key))
        _, sample = made(self.degree, state[1], self.size)
        return sample(state[0]._replace(rng_key=keys)), state[1]

    def position(self, state):
        return np.asarray(state[0].z["theta"])


class Naive(Corrected):
    """Without a proxy: "implements Algorithm 1 of [1] but uses a naive estimation",
    whose law here is a sum over minibatches that no formula gives.
    """

    name, degree, size, documented = "HMCECS, no proxy", None, 3, None


ADAPTERS = [Corrected(), Naive()]
