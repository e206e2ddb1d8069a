"""By hand in JAX: SGHMC and SGLD as a scan, and the bare gradient, their floor."""

import jax
import jax.numpy as jnp
from jax import lax, random

from conformance.speed import in_jax, shared


def gradient(model):
    """Make the gradient on a minibatch; that of the well has its noise elsewhere."""
    if model.prior is in_jax.well_prior:
        return lambda theta, batch: 4 * theta * (theta * theta - 1)
    return jax.grad(model.energy)


def sampler(model, steps, job):
    """Algorithm 2, the well's noise and the injected one drawn as one; or SGLD."""
    step, friction, estimate = job or (shared.SGLD_STEP, 0, 0)
    own = 4 * step**2 if model.prior is in_jax.well_prior else 0.0
    std = (2 * step * (friction - estimate if job else 1) + own) ** 0.5
    inner, of = shared.INNER if job else 1, gradient(model)

    def one(state, key):
        (theta, momentum), (noise, batch) = state, random.split(key)
        theta = theta + step * momentum if job else theta
        kick = std * random.normal(noise, theta.shape)
        kick = kick - step * of(theta, model.minibatch(batch))
        if not job:
            return (theta + kick, momentum), None
        return (theta, (1 - step * friction) * momentum + kick), None

    def draw(state, key):
        state, _ = lax.scan(one, state, random.split(key, inner))
        return state, state[0]

    def chain(key, theta):
        start = theta, random.normal(key, theta.shape)
        return lax.scan(draw, start, random.split(key, steps // inner))[1]

    return chain


def floor(model, steps, _, whole=False):
    """Descend by the gradient of one minibatch or of all data, and draw nothing."""
    of = gradient(model)

    def chain(key, theta):
        batch = model.data if whole else model.minibatch(key)
        one = lambda theta, _: (theta - 1e-9 * of(theta, batch), None)
        return lax.scan(one, theta, None, steps)[0]

    return chain


if __name__ == "__main__":
    name, law = "JAX, bare gradient", "a gradient"
    rows = in_jax.rows("JAX by hand", "Algorithm 2", sampler)
    rows |= in_jax.rows(name, law, floor, law)
    chain = floor(in_jax.REGRESSION, 2_000, None, whole=True)
    rows[name, shared.NUTS] = law, in_jax.turn(chain, jnp.zeros(50), 2_000)
    shared.serve(rows, "jax", "jaxlib", missing="NUTS is not written by hand")
