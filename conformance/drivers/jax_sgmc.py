"""jax-sgmc: its integrators by probes, its solvers by many chains."""

import importlib.metadata
import inspect
import itertools
import json
import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax import lax, random  # noqa: E402
from jax_sgmc import adaption, alias, data, integrator, potential, scheduler, solver  # noqa: E402
from jax_sgmc.data.numpy_loader import DeviceNumpyDataLoader, NumpyDataLoader  # noqa: E402

SAMPLERS = {
    "sgld": ("integrator.py", 767),
    "sgld_rms": ("adaption.py", 226),
    "sghmc": ("integrator.py", 563),
    "obabo": ("integrator.py", 138),
    "reversible_leapfrog": ("integrator.py", 349),
    "amagold": ("solver.py", 301),
    "sggmc": ("solver.py", 434),
    "re_sgld": ("solver.py", 220),
}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0
MAKERS = {
    "sghmc": integrator.friction_leapfrog,
    "obabo": integrator.obabo,
    "sggmc": integrator.obabo,
    "reversible_leapfrog": integrator.reversible_leapfrog,
    "amagold": integrator.reversible_leapfrog,
}
OF_BOTH = ("potential_temperature", "batch_size", "copies")


def model(curvature, variance=0.0, potential_temperature=1.0, batch_size=1, copies=1):
    """Make potentials of data with all signs: a batch's gradient has the variance V."""
    signs = np.array(
        list(itertools.product([-1.0, 1.0], repeat=len(curvature))) * copies
    )
    loader = DeviceNumpyDataLoader(x=signs * (variance * batch_size) ** 0.5)
    a, count = jnp.array(curvature), len(signs)

    def likelihood(sample, seen):
        theta = sample["w"]
        return -(a * theta**2 / 2 + seen["x"] * theta).sum() / count

    made = {"strategy": "vmap", "temperature": potential_temperature}
    prior = lambda sample: jnp.array(0.0)
    batches = data.random_reference_data(loader, 1, batch_size)
    whole = data.full_reference_data(loader, 1, count)
    small = potential.minibatch_potential(prior, likelihood, **made)
    return small, batches, potential.full_potential(prior, likelihood, **made), whole


def build(name, curvature, variance=0.0, **given):
    """Give the solver, and whether its integrator has a momentum."""
    ours = {key: given.pop(key) for key in OF_BOTH if key in given}
    small, batches, full, whole = model(curvature, variance, **ours)
    if name in ("sgld", "sgld_rms", "re_sgld"):
        adapted = adaption.rms_prop() if name == "sgld_rms" else None
        moves = integrator.langevin_diffusion(small, batches, adaption=adapted)
        return (solver.parallel_tempering if name == "re_sgld" else solver.sgmc)(moves)
    if "mass" in given:
        mass = given.pop("mass")
        given["const_mass"] = {"w": jnp.full(len(curvature), mass)}
    if given.pop("noise_model", None):
        given["noise_model"] = adaption.fisher_information(minibatch_potential=small)
    moves = MAKERS[name](small, batches, **given)
    if name in ("amagold", "sggmc"):
        return getattr(solver, name)(moves, full, whole)
    return solver.sgmc(moves)


def scheduled(step_size, temperature):
    return scheduler.schedule(
        step_size=jnp.array(step_size),
        temperature=jnp.array(temperature),
        burn_in=jnp.array(1.0),
        accept=jnp.array(True),
    )


def begin(name, solve, position, key, given, data_key):
    kwargs = {"batch_kwargs": {"key": data_key}}
    if name == "sgld_rms":
        kwargs["adaption_kwargs"] = given
    samples = [{"w": position}] * (2 if name == "re_sgld" else 1)
    return solve[0](*samples, key=key, **kwargs)


class Unrolled:
    """Stands for jax.lax: a loop of Python asks for its random numbers in order."""

    cond = staticmethod(lax.cond)

    @staticmethod
    def scan(body, state, steps):
        for each in steps:
            state, _ = body(state, each)
        return state, None


def probe(name, curvature, step_size, temperature=1.0, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    dim, without = len(curvature), name in ("sgld", "sgld_rms")
    adapted = {key: given.pop(key) for key in ("alpha", "lmbd") if key in given}
    solve = build(name, curvature, **given)
    key, steps = random.PRNGKey(0), given.get("steps", 1)
    first = begin(name, solve, jnp.zeros(dim), key, adapted, key)
    draws = {"obabo": 2 * steps, "sghmc": 1 + steps}.get(name, steps)
    size = dim * (2 - without)

    def step(z):
        xi = [{"w": each} for each in z[size:].reshape(draws, dim)]
        if without:
            state = first._replace(latent_variables={"w": z[:size]})
        else:
            momentum = {"w": z[dim:size]}
            state = first._replace(positions={"w": z[:dim]}, momentum=momentum)
        integrator.random_tree = lambda key, like: xi.pop(0)
        new, _ = solve[1](state, scheduled(step_size, temperature))
        if without:
            return new.latent_variables["w"]
        return jnp.concatenate([new.positions["w"], new.momentum["w"]])

    real = integrator.random_tree, integrator.lax
    integrator.lax = Unrolled
    try:
        columns = jax.jit(jax.vmap(step))(jnp.eye(size + draws * dim)).T
    finally:
        integrator.random_tree, integrator.lax = real
    transition, noise = np.array(columns[:, :size]), np.array(columns[:, size:])
    return {"transition": transition.tolist(), "noise": (noise @ noise.T).tolist()}


def moments(
    name,
    curvature,
    step_size,
    iterations,
    temperature=1.0,
    chains=5_000,
    start=1.0,
    hot=None,
    **given,
):
    adapted = {key: given.pop(key) for key in ("alpha", "lmbd") if key in given}
    solve = build(name, curvature, **given)
    schedules = [scheduled(step_size, each) for each in (temperature, hot) if each]

    def chain(key):
        ours, theirs, batches = random.split(key, 3)
        position = start**0.5 * random.normal(ours, (len(curvature),))
        state = begin(name, solve, position, theirs, adapted, batches)
        # some of its first states have Python numbers
        state = jax.tree_util.tree_map(jnp.asarray, state)
        kinds = jax.tree_util.tree_map(lambda x: x.dtype, state)

        def body(state, _):
            new = solve[1](state, *schedules)[0]
            return jax.tree_util.tree_map(jnp.asarray, new, kinds), None

        state = lax.scan(body, state, jnp.arange(iterations))[0]
        return solve[2](state)["variables"]["w"]

    square = jax.jit(jax.vmap(chain))(random.split(random.PRNGKey(1), chains)) ** 2
    return {
        "steps": iterations,
        "start": start,
        "second": square.mean(0).tolist(),
        "standard_error": (square.std(0) / chains**0.5).tolist(),
        "chains": chains,
    }


def cell(name, test, curvature=EVEN, variance=0.0, kind="probe", **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given.get("potential_temperature", 1.0) * given.get(
        "temperature", 1.0
    )
    row = {"sampler": name, "test": test, "given": given, "problem": problem}
    if kind == "probe":
        return row | {"probe": probe(name, curvature, **given)}
    return row | {"moments": moments(name, curvature, variance=variance, **given)}


def observe(name, test, given, **found):
    return {"sampler": name, "test": test, "given": given, "observed": found}


def front(name):
    """Run the door of `alias` at its defaults, with two chains from one position."""
    loader = NumpyDataLoader(x=np.zeros((64, 2)))
    likelihood = lambda sample, seen: -((sample["w"] - seen["x"]) ** 2).sum() / 128
    prior = lambda sample: jnp.array(0.0)
    small = potential.minibatch_potential(prior, likelihood, strategy="vmap")
    full = potential.full_potential(prior, likelihood, strategy="vmap")
    both = name in ("amagold", "sggmc")
    potentials = [small, full] if both else [small]
    given = {"rms_prop": True} if name == "sgld_rms" else {}
    start = {"w": jnp.ones(2)}

    def run(**given):
        door = getattr(alias, name.removesuffix("_rms"))
        run = door(*potentials, loader, progress_bar=False, **given)
        starts = [(start, start)] * 2 if name == "re_sgld" else [start] * 2
        found = run(*starts, iterations=1_000)
        return [np.array(each["samples"]["variables"]["w"]) for each in found]

    one, two = run(**given)
    finite, moved = bool(np.isfinite(one).all()), float(np.abs(one[-1] - 1).min())
    moved = moved if finite else 0.0
    yield observe(name, "front door", given, finite=finite, moved=moved)
    if both:  # with their defaults nothing is finite
        given = {"first_step_size": 0.1, "last_step_size": 0.05}
        one, two = run(**given)
    apart = float(np.abs(one - two).max())
    yield observe(name, "two states", given, difference_of_two_chains=apart)


def schedule(name):
    """Its step sizes, from the first to the last, as `alias` sets them by default."""
    defaults = inspect.signature(getattr(alias, name.removesuffix("_rms"))).parameters
    first, last = (defaults[f"{x}_step_size"].default for x in ("first", "last"))
    made = scheduler.init_scheduler(
        step_size=scheduler.polynomial_step_size_first_last(first, last),
        progress_bar=False,
    )
    state, sizes = made[0](100)[0], []
    for _ in range(100):
        sizes.append(float(made[2](state).step_size))
        state = made[1](state)
    given = {"first": first, "last": last, "iterations": 100}
    finite = bool(np.isfinite(sizes).all())
    ends = {"begins": sizes[0], "ends": sizes[-1]} if finite else {}
    yield observe(name, "schedule", given, finite=finite, **ends)


def resume(name, **given):
    """Write a state, read it again, and go on."""
    adapted = given.pop("adapted", {})
    solve, key = build(name, EVEN, 1.0, **given), random.PRNGKey(3)
    temperatures = (1.0, 10.0) if name == "re_sgld" else (1.0,)
    times = [scheduled(0.1, each) for each in temperatures]
    state = begin(name, solve, jnp.ones(2), key, adapted, key)
    state, _ = solve[1](state, *times)
    leaves, tree = jax.tree_util.tree_flatten(state)
    read = pickle.loads(pickle.dumps([np.asarray(each) for each in leaves]))
    read = jax.tree_util.tree_unflatten(tree, [jnp.asarray(each) for each in read])
    ends = [
        solve[2](solve[1](each, *times)[0])["variables"]["w"] for each in (state, read)
    ]
    difference = float(jnp.abs(ends[0] - ends[1]).max())
    yield observe(name, "resume", given, difference=difference)


def loading():
    """Ask `mcmc` for its checkpoints."""
    solve = build("sgld", EVEN)
    schedules = scheduler.init_scheduler(progress_bar=False)
    row = {"sampler": "sgld", "test": "resume", "given": {"loading": "a checkpoint"}}
    try:
        run = solver.mcmc(solve, schedules, loading=lambda *_: None)
        run(begin("sgld", solve, jnp.ones(2), random.PRNGKey(0), {}, random.PRNGKey(0)))
    except NotImplementedError as error:
        return row | {"error": f"{type(error).__name__}: {error}"}
    return row | {"observed": {"difference": 0.0}}


def all_cells():
    base = {"step_size": 0.008}
    noisy = {"kind": "moments", "variance": VARIANCE}
    yield cell("sgld", "exact gradient", **base)
    yield cell("sgld", "temperature", **base, temperature=0.25)
    cooler = {"step_size": 0.002, "potential_temperature": 0.25}
    yield cell("sgld", "temperature", **cooler)
    yield cell("sgld", "uneven curvature", UNEVEN, **base)
    yield cell("sgld", "mean or sum", copies=7, **base)
    fewer = {"variance": 1.0, "iterations": 100, "chains": 10_000}
    yield cell("sgld", "gradient noise", **noisy | base | fewer)
    base = {"step_size": 0.02, "alpha": 0.99, "lmbd": 0.1}
    many = base | {"kind": "moments", "iterations": 200}
    yield cell("sgld_rms", "mass", **base | {"alpha": 1.0, "lmbd": 1.0})
    yield cell("sgld_rms", "exact gradient", **many)
    yield cell("sgld_rms", "temperature", temperature=0.25, **many)
    yield cell("sgld_rms", "gradient noise", variance=VARIANCE, **many)
    yield cell("sgld_rms", "uneven curvature", [0.3, 3.0], **many)
    for name, unit in (("sghmc", 1.0), ("obabo", 1.0), ("reversible_leapfrog", 0.5)):
        base = {"step_size": 0.1, "steps": 3, "friction": unit}
        base |= {"steps": 10} if name == "sghmc" else {}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "friction", **base | {"friction": 3 * unit})
        yield cell(name, "friction", **base | {"friction": 0.3 * unit})
        yield cell(name, "mass", mass=4.0, **base)
        yield cell(name, "temperature", temperature=0.25, **base)
        yield cell(name, "temperature", potential_temperature=0.25, **base)
        yield cell(name, "uneven curvature", UNEVEN, **base)
        yield cell(name, "mean or sum", copies=7, **base)
        once, held = {"steps": 1, "iterations": 60}, {"steps": 10, "iterations": 10}
        # its momentum is drawn anew, so that a single step would never see a gradient
        once = {"steps": 5, "iterations": 20} if name == "sghmc" else once
        yield cell(name, "gradient noise", **noisy, **base | once)
        yield cell(name, "held minibatch", **noisy, **base | held)
    estimate = {"noise_model": True, "batch_size": 2, "copies": 2, "variance": 8.0}
    estimate |= {"kind": "moments", "step_size": 0.1, "steps": 30, "iterations": 8}
    yield cell("sghmc", "noise estimate", friction=1.0, **estimate)
    for name in ("amagold", "sggmc"):
        base = {"step_size": 0.6, "steps": 2, "friction": 0.25, "iterations": 60}
        base |= {"kind": "moments"}
        if name == "sggmc":
            base |= {"step_size": 0.9, "steps": 1, "friction": 0.1, "iterations": 200}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=1.0, **base)
        held = {"steps": 4, "variance": 1.0, "iterations": 60}
        yield cell(name, "held minibatch", **base | held)
        yield cell(name, "temperature", temperature=0.25, **base)
        cooler = {"step_size": base["step_size"] / 2, "potential_temperature": 0.25}
        if name == "amagold":  # far from the target it hardly accepts
            cooler |= {"start": 0.0, "iterations": 200}
        yield cell(name, "temperature", **base | cooler)
        yield cell(name, "friction", **base | {"friction": 1.5})
        yield cell(name, "mass", mass=4.0, **base)
        yield cell(name, "uneven curvature", [0.3, 3.0], **base)
        yield cell(name, "mean or sum", copies=2, **base)
    base = {"kind": "moments", "step_size": 0.02, "iterations": 200, "hot": 10.0}
    yield cell("re_sgld", "exact gradient", **base)
    yield cell("re_sgld", "temperature", **base | {"hot": 2.0})
    yield cell("re_sgld", "uneven curvature", [0.3, 3.0], **base)
    for name in SAMPLERS:
        if name != "reversible_leapfrog":
            yield from front(name)
            yield from schedule(name)
        more = {} if "sgld" in name else {"steps": 2}
        more |= {"adapted": {"alpha": 0.9, "lmbd": 1e-5}} if name == "sgld_rms" else {}
        yield from resume(name, **more)
    yield loading()


if __name__ == "__main__":
    found = {
        "library": "jax-sgmc",
        "version": importlib.metadata.version("jax-sgmc"),
        "samplers": [
            {"name": name, "file": file, "line": line}
            for name, (file, line) in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": [
            {
                "sampler": "re_sgld",
                "test": "gradient noise",
                "reason": "its paper's correction is of an unknown variance: no law",
            },
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
