"""numpyro: NUTS; it has no stochastic gradients of this kind."""

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import random
from numpyro import distributions
from numpyro.infer import MCMC, NUTS

from conformance.speed import in_jax, shared


def nuts():
    """Warm up and draw as its users do; count the gradients."""
    inputs, targets = in_jax.DATA

    def model():
        theta = numpyro.sample("theta", distributions.Normal(0, 1).expand([50]))
        likelihood = distributions.Bernoulli(logits=inputs @ theta)
        numpyro.sample("y", likelihood, obs=targets)

    told = {"extra_fields": ("num_steps",)}
    mcmc = MCMC(NUTS(model), num_warmup=1_000, num_samples=1_000, progress_bar=False)

    def run():
        key = random.PRNGKey(next(in_jax.SEEDS))
        mcmc.warmup(key, collect_warmup=True, **told)
        steps = mcmc.get_extra_fields()["num_steps"].sum()
        mcmc.run(mcmc.post_warmup_state.rng_key, **told)
        return int(steps + mcmc.get_extra_fields()["num_steps"].sum())

    return run


def program(write):
    """Warm up and draw from a program, in four chains."""
    model = write(numpyro, distributions, jnp.exp, jnp.log, jnp.asarray)
    settings = {"num_warmup": shared.HALF, "num_samples": shared.HALF}
    settings |= {"num_chains": shared.CHAINS, "chain_method": "sequential"}
    mcmc = MCMC(NUTS(model), progress_bar=False, **settings)

    def run():
        mcmc.run(random.PRNGKey(next(in_jax.SEEDS)))
        draws = mcmc.get_samples(group_by_chain=True).values()
        each = [np.asarray(x).reshape(shared.CHAINS, shared.HALF, -1) for x in draws]
        return np.concatenate(each, -1)

    return run


if __name__ == "__main__":
    rows = {("numpyro", shared.NUTS): ("NUTS", nuts())}
    for row, write in shared.PROGRAMS.items():
        rows["numpyro", row] = "NUTS", program(write)
    missing = "it ships no sampler of fresh minibatches; HMCECS corrects for them"
    shared.serve(rows, "numpyro", "jax", "jaxlib", missing=missing)
