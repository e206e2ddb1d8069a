"""jax-sgmc: a scan over its solver, with its data on the device."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_sgmc import data, integrator, potential, scheduler, solver
from jax_sgmc.data.numpy_loader import DeviceNumpyDataLoader

from conformance.speed import in_jax, shared


def sampler(model, steps, job):
    """Its SGHMC, whose noise model does not fit here; or its SGLD."""
    parts = {f"part{i}": np.asarray(part) for i, part in enumerate(model.data)}
    batches = data.random_reference_data(DeviceNumpyDataLoader(**parts), 1, model.batch)
    each = lambda theta, datum: model.likelihood(theta, tuple(datum.values()))
    small = potential.minibatch_potential(model.prior, each, strategy="vmap")
    made = integrator.langevin_diffusion(small, batches)
    if job:
        numbers = {"steps": shared.INNER, "friction": job[1]}
        made = integrator.friction_leapfrog(small, batches, **numbers)
        steps //= shared.INNER
    begin, update, get = solver.sgmc(made)
    size = jnp.array(job[0] if job else shared.SGLD_STEP)
    times = scheduler.schedule(size, jnp.array(1.0), jnp.array(1.0), jnp.array(True))

    def chain(key, theta):
        state = begin(theta, key=key, batch_kwargs={"key": key})
        state = jax.tree_util.tree_map(jnp.asarray, state)
        kinds = jax.tree_util.tree_map(lambda x: x.dtype, state)

        def one(state, _):
            new = jax.tree_util.tree_map(jnp.asarray, update(state, times)[0], kinds)
            return new, get(new)["variables"]

        return lax.scan(one, state, None, steps)[1]

    return chain


if __name__ == "__main__":
    law = "Algorithm 2 at the temperature C; momentum drawn anew for ten steps"
    rows = in_jax.rows("jax-sgmc", law, sampler)
    shared.serve(rows, "jax-sgmc", "jax", "jaxlib", missing="it ships no NUTS")
