"""SGMCMCJax: its kernels and diffusions, by probes and by many chains."""

import importlib.metadata
import itertools
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax import lax, random  # noqa: E402
from sgmcmcjax import diffusions, kernels, samplers  # noqa: E402

SAMPLERS = {
    "sgld": ("kernels.py", 130),
    "sgldCV": ("kernels.py", 156),
    "sgld_SVRG": ("kernels.py", 188),
    "psgld": ("kernels.py", 220),
    "sgldAdam": ("kernels.py", 254),
    "sghmc": ("kernels.py", 471),
    "sghmcCV": ("kernels.py", 514),
    "sghmc_SVRG": ("kernels.py", 559),
    "baoab": ("kernels.py", 356),
    "sgnht": ("kernels.py", 290),
    "sgnhtCV": ("kernels.py", 322),
    "badodab": ("kernels.py", 394),
    "badodabCV": ("kernels.py", 430),
    "diffusions.sghmc": ("diffusions.py", 161),
    "diffusions.baoab": ("diffusions.py", 205),
    "diffusions.badodab": ("diffusions.py", 297),
}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0


def model(a, variance=0.0, spread=0.0, copies=1):
    """Data with all signs, so that one of them gives N(0, V)'s first two moments."""
    signs = itertools.product([-1.0, 1.0], repeat=len(a) + 1)
    data = jnp.array(list(signs) * copies)
    count, a = len(data), jnp.array(a)

    def log_likelihood(theta, x):
        curved = a * (1 + spread * x[-1]) * theta**2 / 2
        return -(curved + variance**0.5 * x[:-1] * theta).sum() / count

    return {
        "loglikelihood": log_likelihood,
        "logprior": lambda theta: 0.0 * theta.sum(),
        "data": (data,),
        "batch_size": 1 if variance or spread else count,
    }


def seeded(a, variance, count):
    """Make each datum the seed of a noise, for very many coordinates."""

    def log_likelihood(theta, seed):
        noise = random.normal(random.PRNGKey(seed), theta.shape)
        return -(variance**0.5) * (noise * theta).sum() / count

    return {
        "loglikelihood": log_likelihood,
        "logprior": lambda theta: -(a * theta**2).sum() / 2,
        "data": (jnp.arange(count),),
        "batch_size": 1 if variance else count,
    }


def build(name, problem, given, what="kernel"):
    module = kernels if what == "kernel" else samplers
    extra = {"pbar": False} if what == "sampler" else {}
    problem = dict(problem)
    dim = problem.pop("dim")
    if name.endswith("CV"):
        extra["centering_value"] = jnp.zeros(dim)
    return getattr(module, f"build_{name}_{what}")(**problem, **given, **extra)


class Fixed:
    """Stands for jax.random in the module that draws the noise."""

    split = staticmethod(random.split)

    def __init__(self, draws):
        self.draws = list(draws)

    def normal(self, key=None, shape=()):
        return self.draws.pop(0)


def probe(name, curvature, variance=0.0, copies=1, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    a, dim, steps = jnp.array(curvature), len(curvature), given.get("L", 0)
    with_momentum, gradient = "sgld" not in name, lambda x: -a * x
    if name.startswith("diffusions."):
        init, update, get, *_ = getattr(diffusions, name[11:])(**given)
    else:
        more = {"compiled_leapfrog": False} if steps else {}
        settings = {**model(curvature, copies=copies), "dim": dim}
        start, kernel, _ = build(name, settings, given | more)
        state = start(random.PRNGKey(0), jnp.zeros(dim))
    key, draws = random.PRNGKey(0), 1 + steps

    def step(z, xi, noise=0.0):
        parts = [z[:dim], z[dim:]] if with_momentum else [z]
        if name == "psgld":
            parts.append(jnp.zeros(dim))
        g, (real, diffusions.random) = gradient(parts[0]) + noise, (random, Fixed(xi))
        try:
            if not name.startswith("diffusions."):
                old = state.diffusion_state._replace(packed_state=[parts])
                old = state._replace(diffusion_state=old, param_grad=g)
                new = kernel(0, key, old).diffusion_state
            elif isinstance(update, tuple):
                new = init(jnp.zeros(dim))._replace(packed_state=[parts])
                new = update[0](0, key, g, new)
                new = update[1](0, key, gradient(get(new)), new)
            else:
                new = init(jnp.zeros(dim))._replace(packed_state=[parts])
                new = update(0, key, g, new)
        finally:
            diffusions.random = real
        return jnp.concatenate(new.packed_state[0][: 1 + with_momentum])

    size, none = dim * (1 + with_momentum), jnp.zeros((draws, dim))
    eye, unit = jnp.eye(size), jnp.eye(draws * dim).reshape(-1, draws, dim)
    noise = [step(jnp.zeros(size), each) for each in unit]
    if variance:
        noise += [step(jnp.zeros(size), none, variance**0.5 * x) for x in jnp.eye(dim)]
    noise = np.stack(noise, 1)
    columns = [step(each, none) for each in eye]
    return {
        "transition": np.stack(columns, 1).tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


def run(name, curvature, steps, chains, start, variance, spread, given):
    """Run many chains with the kernel, or, as its guide does, with the diffusion."""
    a = jnp.array(curvature)
    if name.startswith("diffusions."):
        init, (first, second), get = getattr(diffusions, name[11:])(**given)
    else:
        settings = {**model(curvature, variance, spread), "dim": len(a)}
        init, kernel, get = build(name, settings, given)

    def chain(key):
        ours, theirs, keys = random.split(key, 3)
        position = start**0.5 * random.normal(ours, (len(a),))

        def gradient(key, state):
            x = get(state)
            return -a * x - variance**0.5 * random.normal(key, x.shape)

        def body(carry, x):
            if not name.startswith("diffusions."):
                return (kernel(*x, carry[0]), 0), None
            state, g = carry
            one, two = random.split(x[1])
            state = first(x[0], one, g, state)
            g = gradient(two, state)
            return (second(x[0], one, g, state), g), None

        if name.startswith("diffusions."):
            state = init(position)
            carry = (state, gradient(theirs, state))
            # its initial friction is a Python number
            carry = jax.tree_util.tree_map(jnp.asarray, carry)
        else:
            carry = (init(theirs, position), 0)
        inputs = (jnp.arange(steps), random.split(keys, steps))
        return get(lax.scan(body, carry, inputs)[0][0])

    return jax.jit(jax.vmap(chain))(random.split(random.PRNGKey(1), chains))


def moments(
    name, curvature, steps, chains=10_000, start=1.0, variance=0.0, spread=0.0, **given
):
    square = run(name, curvature, steps, chains, start, variance, spread, given) ** 2
    return {
        "steps": steps,
        "start": start,
        "second": square.mean(0).tolist(),
        "standard_error": (square.std(0) / chains**0.5).tolist(),
        "chains": chains,
    }


def thermostat(name, curvature, variance, each=2_000, steps=3_000, **given):
    """One chain of very many coordinates, from the target."""
    all_of_them = jnp.repeat(jnp.array(curvature), each)
    count = (1_000 if name.endswith("CV") else 100_000) if variance else 1
    settings = seeded(all_of_them, variance, count)
    settings["dim"] = len(all_of_them)
    init, kernel, get = build(name, settings, given)
    position = random.normal(random.PRNGKey(2), all_of_them.shape) / all_of_them**0.5
    inputs = (jnp.arange(steps), random.split(random.PRNGKey(3), steps))
    scan = jax.jit(lambda s: lax.scan(lambda s, x: (kernel(*x, s), None), s, inputs)[0])
    square = get(scan(init(random.PRNGKey(4), position))).reshape(-1, each) ** 2
    return {
        "steps": steps,
        "start": 0.0,
        "second": square.mean(1).tolist(),
        "standard_error": (square.std(1) / each**0.5).tolist(),
        "chains": each,
    }


def cell(
    name, test, curvature=EVEN, variance=0.0, kind="probe", temperature=1.0, **given
):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = temperature
    found = {"probe": probe, "moments": moments, "thermostat": thermostat}[kind]
    measured = found(name, curvature, variance=variance, **given)
    kind = "probe" if kind == "probe" else "moments"
    row = {"sampler": name, "test": test, "given": given, "problem": problem}
    return row | {kind: measured}


def observe(name, test, given, **found):
    return {"sampler": name, "test": test, "given": given, "observed": found}


NEEDED = {"sghmc": {"L": 5}, "baoab": {"gamma": 1.0}}


def behaviour(name):
    """Its front door at its defaults, a schedule, two chains, and a saved state."""
    given = {"dt": 0.01} | NEEDED.get(name.removesuffix("CV").removesuffix("_SVRG"), {})
    given |= {"update_rate": 10} if name.endswith("_SVRG") else {}
    settings = {**model([1.0, 1.0], 1.0), "dim": 2}
    key, start = random.PRNGKey(5), jnp.ones(2)
    made = hasattr(samplers, f"build_{name}_sampler")
    init, kernel, get = build(name, settings, given)
    if made:
        sampler = build(name, settings, given, "sampler")
        path = jnp.array(sampler(key, 500, start))
        again = jnp.array(sampler(key, 500, start))
        other = jnp.array(sampler(random.PRNGKey(6), 500, start))
    else:

        def sampler(key):
            state = init(key, start)
            inputs = (jnp.arange(500), random.split(key, 500))
            body = lambda s, x: (lambda s: (s, get(s)))(kernel(*x, s))
            return lax.scan(body, state, inputs)[1]

        path, again, other = sampler(key), sampler(key), sampler(random.PRNGKey(6))
    moved = float(jnp.abs(path[-1] - start).min())
    finite = bool(jnp.isfinite(path).all())
    yield observe(name, "front door", given, finite=finite, moved=moved, sampler=made)
    yield observe(
        name,
        "two states",
        given,
        difference_of_a_repeated_run=float(jnp.abs(path - again).max()),
        difference_of_two_keys=float(jnp.abs(path - other).max()),
    )
    seen = []
    schedule = {"dt": lambda i: seen.append(int(i)) or 0.01 / (1 + i)}
    more = {"compiled_leapfrog": False} if "L" in given else {}
    _, eager, _ = build(name, settings, given | schedule | more)
    state = init(key, start)
    for i in range(3):
        state = eager(i, key, state)
    yield observe(
        name, "schedule", {"dt": "0.01 / (1 + i)"}, steps_seen=sorted(set(seen))
    )
    leaves, tree = jax.tree_util.tree_flatten(kernel(3, key, state))
    np.savez("state.npz", *leaves)
    read = np.load("state.npz")
    state = jax.tree_util.tree_unflatten(tree, [read[each] for each in read.files])
    unsaved = jax.tree_util.tree_unflatten(tree, leaves)
    ends = [get(kernel(4, key, each)) for each in (state, unsaved)]
    difference = float(jnp.abs(ends[0] - ends[1]).max())
    yield observe(name, "resume", given, difference=difference)


def cycle():
    """Its cyclical schedule, as the first twelve iterations of a sampler see it."""
    given = {"alpha_0": 1.0, "M": 2, "K": 12}
    steps = [float(diffusions.cyclical_schedule(**given)(i)) for i in range(12)]
    yield observe("sgld", "schedule", given, step_sizes=steps)


def all_cells():
    for name in ("sgld", "sgldCV", "sgld_SVRG"):
        base = {"dt": 0.008} | ({"update_rate": 5} if name == "sgld_SVRG" else {})
        noisy = {"kind": "moments", "steps": 100}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "uneven curvature", UNEVEN, **base)
        yield cell(name, "mean or sum", copies=7, **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **noisy, **base)
        yield cell(name, "gradient noise", spread=0.9, **noisy, **base)
    rate = {"kind": "moments", "steps": 200, "chains": 5_000}
    for name, more in (("psgld", {"eps": 0.1}), ("sgldAdam", {"eps": 0.1})):
        yield cell(name, "exact gradient", **rate, dt=0.05, **more)
        yield cell(name, "gradient noise", variance=VARIANCE, **rate, dt=0.05, **more)
        yield cell(name, "uneven curvature", [0.3, 3.0], **rate, dt=0.05, **more)
    yield cell("psgld", "mass", dt=0.01, alpha=1.0, eps=0.5)
    for name in ("sghmc", "sghmcCV", "sghmc_SVRG"):
        base = {"dt": 0.01, "L": 5, "alpha": 0.1}
        base |= {"update_rate": 5} if name == "sghmc_SVRG" else {}
        noisy = {"kind": "moments", "variance": VARIANCE, **base}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "friction", **base | {"alpha": 0.4})
        yield cell(name, "uneven curvature", UNEVEN, **base)
        yield cell(name, "mean or sum", copies=7, **base)
        yield cell(name, "gradient noise", steps=40, **noisy)
        yield cell(name, "held minibatch", steps=20, **noisy | {"L": 10})
    for beta in (0.0, 0.02):
        given = {"dt": 0.01, "alpha": 0.1, "beta": beta}
        yield cell("diffusions.sghmc", "noise estimate", variance=VARIANCE, **given)
    for name, kind in (
        ("baoab", {"kind": "moments", "steps": 200}),
        ("diffusions.baoab", {}),
    ):
        base = {"dt": 0.2, "gamma": 1.0, **kind}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "temperature", temperature=0.25, tau=0.25, **base)
        yield cell(name, "friction", **base | {"gamma": 3.0})
        yield cell(name, "uneven curvature", UNEVEN, **base)
        noisy = base | {"kind": "moments", "steps": 200, "variance": VARIANCE}
        yield cell(name, "gradient noise", **noisy)
    for name in ("sgnht", "sgnhtCV"):
        base = {"kind": "thermostat", "dt": 0.03**2, "a": 0.3 * 0.03}
        yield cell(name, "exact gradient", [1.0], **base)
        yield cell(name, "gradient noise", [1.0], 2.0, **base)
        yield cell(name, "friction", [1.0], **base | {"a": 1.0 * 0.03})
        yield cell(name, "uneven curvature", UNEVEN, **base | {"a": 0.1 * 0.03})
    for name in ("badodab", "badodabCV", "diffusions.badodab"):
        base = {"kind": "moments", "dt": 0.1, "steps": 200, "chains": 5_000}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=1.0, **base)
        yield cell(name, "friction", **base, a=1.0)
        yield cell(name, "uneven curvature", [0.3, 3.0], **base)
    for name in SAMPLERS:
        if not name.startswith("diffusions."):
            yield from behaviour(name)
    yield from cycle()


if __name__ == "__main__":
    found = {
        "library": "SGMCMCJax",
        "version": importlib.metadata.version("SGMCMCJax"),
        "samplers": [
            {"name": name, "file": file, "line": line}
            for name, (file, line) in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": [
            {
                "sampler": "sghmc",
                "test": "noise estimate",
                "reason": "build_sghmc_kernel has no such argument; the diffusion has",
            },
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
