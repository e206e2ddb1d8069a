"""blackjax: its stochastic-gradient samplers, by probes and by many coordinates."""

import importlib.metadata
import json
import sys
from unittest.mock import patch

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.sgmcmc import diffusions, gradients, sghmc
from jax import lax, random

SAMPLERS = {"sgld": 28, "sghmc": 31, "sgnht": 48, "csgld": 56}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0
DRAW = "generate_gaussian_noise"
REASON = "it has none: its caller passes a step size at each step"
STEP = ("step_size", "temperature", "step_size_diff", "step_size_stoch")


def front(name, curvature, **given):
    """Give init and step; a minibatch is the noise ζ of the gradient, ζ·θ of log p."""
    a = jnp.array(curvature)
    density = lambda x, noise: -(a * x**2).sum() / 2 - (noise * x).sum()
    built = {key: given[key] for key in given if key not in STEP}
    estimators = (density,) if name == "csgld" else ()
    made = getattr(blackjax, name)(*estimators, jax.grad(density), **built)
    late = {"step_size_stoch": 1e-3} if name == "csgld" else {}
    late |= {key: given[key] for key in given if key in STEP}
    return made.init, lambda key, state, noise: made.step(key, state, noise, **late)


def probe(name, curvature, variance=0.0, **given):
    """Read F and Q off one call: unit vectors as states and as random numbers."""
    dim = len(curvature)
    init, step = front(name, curvature, **given)
    draws = 1 + given.get("num_integration_steps", 10) if name == "sghmc" else 1

    def move(position, xi, noise):
        draw = lambda *_: next(xi)
        with jax.disable_jit(), patch.object(diffusions, DRAW, draw):
            with patch.object(sghmc, DRAW, draw):
                new = step(random.key(0), init(position), noise)
        return np.asarray(new.position if name == "csgld" else new, float)

    none, nothing = jnp.zeros(dim), jnp.zeros((draws, dim))
    columns = [move(each, iter(nothing), none) for each in jnp.eye(dim)]
    units = jnp.eye(draws * dim).reshape(-1, draws, dim)
    noise = [move(none, iter(each), none) for each in units]
    noise += [move(none, iter(nothing), variance**0.5 * x) for x in jnp.eye(dim)]
    noise = np.stack(noise, 1)
    transition = np.stack(columns, 1).tolist()
    return {"transition": transition, "noise": (noise @ noise.T).tolist()}


def follow(step, state, steps, variance, key, dim):
    def body(state, key):
        ours, theirs = random.split(key)
        return step(theirs, state, variance**0.5 * random.normal(ours, (dim,))), None

    state = jax.tree.map(jnp.asarray, state)
    return lax.scan(body, state, random.split(key, steps))[0]


def moments(name, curvature, variance=0.0, steps=4_000, each=4_000, **given):
    """A thermostat: one chain of very many coordinates; else as many chains."""
    keys, joint = random.split(random.key(1), 3), name == "sgnht"
    a = jnp.repeat(jnp.array(curvature), each if joint else 1)
    start = random.normal(keys[0], (len(a),) if joint else (each, len(a)))
    start = start * (given.get("temperature", 1.0) / a) ** 0.5
    init, step = front(name, a, **given)

    def chain(position, key):
        state = init(position, keys[2]) if joint else init(position)
        return follow(step, state, steps, variance, key, len(a)).position

    apart = random.split(keys[1], each)
    many = chain(start, keys[1]) if joint else jax.jit(jax.vmap(chain))(start, apart)
    square = (many.reshape(-1, each).T if joint else many) ** 2
    error = square.std(0) / each**0.5
    found = {"second": square.mean(0).tolist(), "standard_error": error.tolist()}
    return {"steps": steps, "start": 0.0, "chains": each} | found


def cell(name, test, curvature=EVEN, variance=0.0, kind=probe, **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given.get("temperature", 1.0)
    row = {"sampler": name, "test": test, "given": given, "problem": problem}
    return row | {kind.__name__: kind(name, curvature, variance, **given)}


def observe(name, test, given, **found):
    return {"sampler": name, "test": test, "given": given, "observed": found}


def behaviour(name):
    """Its front door at its defaults, two chains in turns, and a saved state."""
    size = "step_size_diff" if name == "csgld" else "step_size"
    init, step = front(name, [1.0, 1.0, 1.0], **{size: 0.01})
    key, start = random.key(5), jnp.ones(3)
    where = lambda state: getattr(state, "position", state)
    begin = lambda: init(start, key) if name == "sgnht" else init(start)
    end = where(follow(step, begin(), 100_000, 1.0, key, 3))
    found = {"steps": 100_000, "finite": bool(jnp.isfinite(end).all())}
    found["moved"] = float(jnp.abs(end - start).min()) if found["finite"] else 0.0
    if name == "sgnht":  # as in its docstring
        try:
            blackjax.sgnht(lambda x, _: -x).init(key, start)
        except TypeError as error:
            found["example_raises"] = str(error)
    yield observe(name, "front door", {size: 0.01}, **found)
    none, first, second, alone = jnp.zeros(3), begin(), begin(), begin()
    for i in range(3):
        first = step(random.key(i), first, none)
        second = step(random.key(10 + i), second, none)
        alone = step(random.key(i), alone, none)
    off = lambda one, two: float(jnp.abs(where(one) - where(two)).max())
    yield observe(name, "two states", {size: 0.01}, difference=off(first, alone))
    leaves, tree = jax.tree.flatten(first)
    np.savez("state.npz", *leaves)
    again = jax.tree.unflatten(tree, map(jnp.asarray, np.load("state.npz").values()))
    difference = off(*(step(key, each, none) for each in (first, again)))
    yield observe(name, "resume", {size: 0.01}, difference=difference)


def arguments():
    """Gradients from data; an initial friction; ζ in the update of the histogram."""
    data, x = random.normal(random.key(7), (6, 2)), jnp.array([0.3, -2.0])
    prior, likelihood = lambda x: -(x**2).sum() / 2, lambda x, y: -((x - y) ** 4).sum()
    exact = jax.grad(lambda x: prior(x) + sum(likelihood(x, y) for y in data))(x)
    plain = gradients.grad_estimator(prior, likelihood, len(data))
    estimators = [plain, gradients.control_variates(plain, jnp.ones(2), data)]
    means = [jnp.mean(jnp.stack([g(x, y[None]) for y in data]), 0) for g in estimators]
    bias = max(float(jnp.abs(mean / exact - 1).max()) for mean in means)
    yield observe("sgld", "arguments", {"control_variates": 1}, relative_bias=bias)
    given = {"init_xi": 0.0}
    state = blackjax.sgnht(plain).init(x, random.key(0), **given)
    yield observe("sgnht", "arguments", given, xi=float(state.xi))
    given = {"zeta": 0.5, "num_partitions": 4, "step_size_stoch": 0.1}
    init, step = front("csgld", EVEN, step_size_diff=0.0, **given)
    old, none = init(jnp.zeros(2)), jnp.zeros(2)
    before = old.energy_pdf[1]
    moved = step(random.key(0), old, none).energy_pdf[1] - before
    exponent = float(jnp.log(moved / 0.1 / (1 - before)) / jnp.log(before))
    yield observe("csgld", "arguments", given, exponent=exponent)


def all_cells():
    for name, base in (
        ("sgld", {"step_size": 0.01}),
        ("sghmc", {"step_size": 0.1, "num_integration_steps": 10}),
        ("csgld", {"step_size_diff": 0.01, "zeta": 0.0}),
    ):
        short = {"num_integration_steps": 2} if name == "sghmc" else {}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **base | short)
        yield cell(name, "temperature", temperature=0.25, **base)
        yield cell(name, "uneven curvature", UNEVEN, **base)
        size, mean = next(iter(base)), [each / 50 for each in EVEN]  # of 50 examples
        late = {size: (50**0.5 if short else 50) * base[size], "temperature": 1 / 50}
        yield cell(name, "mean or sum", mean, **base | late)
    base = {"step_size": 0.1, "num_integration_steps": 10}
    yield cell("sghmc", "held minibatch", variance=VARIANCE, **base)
    yield cell("sghmc", "friction", alpha=1.0, **base)
    yield cell("sghmc", "temperature", temperature=0.25, alpha=1.0, **base)
    base = {"step_size": 0.1, "num_integration_steps": 2, "alpha": 1.0}
    yield cell("sghmc", "noise estimate", variance=VARIANCE, beta=VARIANCE, **base)
    base = {"kind": moments, "step_size": 0.03, "alpha": 0.3}
    yield cell("sgnht", "exact gradient", [1.0], **base)
    yield cell("sgnht", "gradient noise", [1.0], 2.0, **base)
    yield cell("sgnht", "noise estimate", [1.0], 2.0, beta=2.0, **base)
    yield cell("sgnht", "temperature", [1.0], temperature=0.25, **base)
    yield cell("sgnht", "friction", [1.0], **base | {"alpha": 1.0})
    yield cell("sgnht", "uneven curvature", UNEVEN, **base | {"alpha": 0.1})
    contour = {"num_partitions": 8, "energy_gap": 1.0, "min_energy": -0.1}
    contour |= {"step_size_diff": 0.01, "step_size_stoch": 0.01, "kind": moments}
    contour |= {"steps": 500}
    for variance, test in ((0.0, "exact gradient"), (1.0, "gradient noise")):
        yield cell("csgld", test, [1.0], variance, **contour)
    for name in SAMPLERS:
        yield from behaviour(name)
    yield from arguments()


if __name__ == "__main__":
    found = {
        "library": "blackjax",
        "version": importlib.metadata.version("blackjax"),
        "samplers": [
            {"name": name, "file": f"sgmcmc/{name}.py", "line": line}
            for name, line in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": [
            {"sampler": name, "test": "schedule", "reason": REASON} for name in SAMPLERS
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
