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


def fresh(key, theta):
    """Take steps of its SGHMC, each on a minibatch of its own."""
    model, (size, friction, _) = in_jax.REGRESSION, shared.LOGISTIC
    move = blackjax.sgmcmc.diffusions.sghmc(friction)
    gradient = jax.grad(model.energy)

    def one(state, key):
        noise, batch = random.split(key)
        slope = -gradient(state[0], model.minibatch(batch))
        return move(noise, *state, slope, size), None

    def draw(state, key):
        state, _ = lax.scan(one, state, random.split(key, shared.INNER))
        return state, state[0]

    keys = random.split(key, shared.STEPS[0] // shared.INNER)
    return lax.scan(draw, (theta, random.normal(key, theta.shape)), keys)[1]


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
    once = in_jax.turn(fresh, in_jax.TRUTH, shared.STEPS[0])
    name = "blackjax, fresh minibatches"
    rows[name, shared.SGHMC] = "explicit Euler", once
    run = lambda: int(nuts(random.PRNGKey(next(in_jax.SEEDS)))[1])
    rows["blackjax", shared.NUTS] = "NUTS", run
    shared.serve(rows, "blackjax", "jax", "jaxlib")
