"""numpyro: NUTS; it has no stochastic gradients of this kind."""

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


if __name__ == "__main__":
    rows = {("numpyro", shared.NUTS): ("NUTS", nuts())}
    missing = "it ships no sampler of fresh minibatches; HMCECS corrects for them"
    shared.serve(rows, "numpyro", "jax", "jaxlib", missing=missing)
