"""numpyro: HMCECS, which corrects for its minibatches; many chains of it."""

import importlib.metadata
import json
import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import random
from numpyro import distributions as dist
from numpyro.infer import HMC, HMCECS, MCMC, NUTS

jax.config.update("jax_enable_x64", True)
DATA = {
    "weight": [0.2, 0.4, 0.6, 0.8],
    "observed": [3.0, -1.0, 1.0, -1.0],
    "prior": 1.0,
}
UNEVEN = [0.1, 0.46, 2.15, 10.0]


def model(curvature, size):
    """Its posterior is N(0, 1/curvature): a share of the precision from each datum."""
    weight, observed = jnp.array(DATA["weight"]), jnp.array(DATA["observed"])
    scale = jnp.array(curvature) / (DATA["prior"] + weight.sum())
    prior = dist.Normal(0, (DATA["prior"] * scale) ** -0.5).to_event(1)
    theta = numpyro.sample("theta", prior)
    with numpyro.plate("N", len(weight), subsample_size=size) as index:
        deviation = (weight[index, None] * scale) ** -0.5
        likelihood = dist.Normal(theta, deviation).to_event(1)
        numpyro.sample("obs", likelihood, obs=observed[index, None] * scale**-0.5)


def make(dim, degree=None, num_blocks=1, inner=None):
    proxy = HMCECS.taylor_proxy({"theta": jnp.zeros(dim)}, degree) if degree else None
    fixed = {"adapt_step_size": False, "adapt_mass_matrix": False}
    inner = inner or HMC(model, step_size=0.3, trajectory_length=1.5, **fixed)
    return HMCECS(inner, num_blocks=num_blocks, proxy=proxy)


def start(kernel, samples, chains=1):
    made = {"num_warmup": 0, "num_samples": samples, "progress_bar": False}
    return MCMC(kernel, num_chains=chains, chain_method=jax.vmap, **made)


def cell(test, curvature, steps=3_000, chains=100, subsample_size=2, **given):
    """Give E θ² of each coordinate, a mean of each chain's second part at a time."""
    mcmc = start(make(len(curvature), **given), steps, chains)
    mcmc.run(random.key(1), curvature, subsample_size)
    paths = np.asarray(mcmc.get_samples(group_by_chain=True)["theta"])
    each = (paths[:, steps // 4 :] ** 2).mean(1)
    moments = {"steps": steps, "start": 0.0, "chains": chains}
    moments["second"] = each.mean(0).tolist()
    moments["standard_error"] = (each.std(0, ddof=1) / chains**0.5).tolist()
    weighted = np.array(DATA["weight"]) * DATA["observed"]
    share = curvature[0] / (DATA["prior"] + sum(DATA["weight"]))
    noise = len(weighted) ** 2 / subsample_size * weighted.var() * share
    problem = {"curvature": curvature, "temperature": 1.0, "gradient_variance": noise}
    given = given | {"subsample_size": subsample_size} | DATA
    row = {"sampler": "HMCECS", "test": test, "given": given, "problem": problem}
    return row | {"moments": moments}


def observe(test, given, **found):
    return {"sampler": "HMCECS", "test": test, "given": given, "observed": found}


def front_door():
    """The example of its docstring."""

    def example(data):
        x = numpyro.sample("x", dist.Normal(0, 1))
        with numpyro.plate("N", data.shape[0], subsample_size=100):
            batch = numpyro.subsample(data, event_dim=0)
            numpyro.sample("obs", dist.Normal(x, 1), obs=batch)

    data = random.normal(random.key(0), (10_000,)) + 1
    kernel = HMCECS(NUTS(example), num_blocks=10)
    mcmc = MCMC(kernel, num_warmup=1_000, num_samples=1_000, progress_bar=False)
    mcmc.run(random.key(0), data)
    x = mcmc.get_samples()["x"]
    mean, apart = float(x.mean()), float(jnp.abs(x.mean() - data.mean()))
    found = {"finite": bool(jnp.isfinite(mean)), "moved": float(x.std()), "off": apart}
    yield observe("front door", {"num_blocks": 10}, **found)


def behaviour():
    """Two kernels with one inner kernel, a saved state, and a degree of three."""
    given, ends = ([1.0, 4.0], 2), []
    inner = HMC(model)
    for others in (False, True):
        mcmc = start(make(2, 2, inner=inner), 20)
        mcmc.run(random.key(2), *given)
        if others:
            start(make(2, inner=inner), 20).run(random.key(3), [9.0, 9.0], 3)
        mcmc.post_warmup_state = mcmc.last_state
        mcmc.run(mcmc.last_state.rng_key, *given)
        ends.append(mcmc.get_samples()["theta"][-1])
    difference = float(jnp.abs(ends[0] - ends[1]).max())
    yield observe("two states", {"degree": 2}, difference=difference)
    for degree in (None, 1, 2):
        kernel, ends = make(2, degree), []
        mcmc = start(kernel, 20)
        mcmc.run(random.key(2), *given)
        state = mcmc.last_state
        try:
            saved = pickle.loads(pickle.dumps(state))
        except (pickle.PicklingError, AttributeError) as error:
            row = {"sampler": "HMCECS", "test": "resume", "given": {"degree": degree}}
            yield row | {"error": f"{type(error).__name__}: {error}"}
            continue
        for each in (state, saved):
            mcmc.post_warmup_state = each
            mcmc.run(each.rng_key, *given)
            ends.append(mcmc.get_samples()["theta"][-1])
        difference = float(jnp.abs(ends[0] - ends[1]).max())
        yield observe("resume", {"degree": degree}, difference=difference)
    raised = ""
    try:
        start(make(2, 3), 2).run(random.key(2), *given)
    except ValueError as error:
        raised = str(error)
    yield observe("arguments", {"degree": 3}, raised=raised)


def all_cells():
    yield cell("exact gradient", [1.0], degree=2)
    yield cell("uneven curvature", UNEVEN, degree=2)
    yield cell("gradient noise", [1.0], subsample_size=3)
    yield cell("gradient noise", [1.0], degree=1)
    yield cell("noise estimate", [1.0], degree=1, subsample_size=3)
    yield cell("held minibatch", [1.0], subsample_size=3, num_blocks=2)
    yield cell("held minibatch", [1.0], degree=1, subsample_size=3, num_blocks=2)
    yield from front_door()
    yield from behaviour()


if __name__ == "__main__":
    found = {
        "library": "numpyro",
        "version": importlib.metadata.version("numpyro"),
        "samplers": [{"name": "HMCECS", "file": "infer/hmc_gibbs.py", "line": 250}],
        "cells": list(all_cells()),
        "reasons": [],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
