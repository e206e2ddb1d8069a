"""blackjax: a scan over its kernels, with minibatches drawn by the user."""

import blackjax
import jax
import jax.numpy as jnp
from jax import lax, random

from conformance.speed import in_jax, shared


def sampler(model, steps, job):
    """Its SGHMC, which holds a minibatch for the steps of a draw; or its SGLD."""
    size, friction, estimate = job or (shared.SGLD_STEP, 0, 0)
    estimator = blackjax.sgmcmc.gradients.grad_estimator(
        model.prior, model.likelihood, len(model.data[0])
    )
    kernel = blackjax.sgld(estimator)
    if job:
        beta = 2 * estimate / size
        kernel = blackjax.sghmc(estimator, shared.INNER, friction, beta)
        steps //= shared.INNER

    def one(position, key):
        move, batch = random.split(key)
        position = kernel.step(move, position, model.minibatch(batch), size)
        return position, position

    return lambda key, theta: lax.scan(one, theta, random.split(key, steps))[1]


@jax.jit
def nuts(key):
    """Adapt by its window and draw, compiled as one; count the gradients."""
    model, (warm, draw) = in_jax.REGRESSION, random.split(key)
    density = lambda theta: -model.energy(theta, model.data)
    adapt = blackjax.window_adaptation(blackjax.nuts, density)
    (state, found), warmed = adapt.run(warm, jnp.zeros(50), 1_000)
    kernel = blackjax.nuts(density, **found)

    def one(state, key):
        state, info = kernel.step(key, state)
        return state, (state.position, info.num_integration_steps)

    _, (kept, steps) = lax.scan(one, state, random.split(draw, 1_000))
    return kept, warmed.info.num_integration_steps.sum() + steps.sum()


if __name__ == "__main__":
    law = "explicit Euler; minibatch held and momentum drawn anew for ten steps"
    rows = in_jax.rows("blackjax", law, sampler)
    run = lambda: int(nuts(random.PRNGKey(next(in_jax.SEEDS)))[1])
    rows["blackjax", shared.NUTS] = "NUTS", run
    shared.serve(rows, "blackjax", "jax", "jaxlib")
