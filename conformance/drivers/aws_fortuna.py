"""Fortuna: its two integrators by probes, its front door by a model that is many chains.

Nothing is stubbed: what is imported here needs neither TensorFlow nor matplotlib, which
its requirements name.
"""

import importlib.metadata
import json
import logging
import pathlib
import sys
import tempfile

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from fortuna.data.loader import DataLoader
from fortuna.prob_model import (
    CyclicalSGLDPosteriorApproximator,
    FitCheckpointer,
    FitConfig,
    FitMonitor,
    FitOptimizer,
    MAPPosteriorApproximator,
    ProbRegressor,
    SGHMCPosteriorApproximator,
)
from fortuna.prob_model.posterior.sgmcmc import (
    sgmcmc_preconditioner,
    sgmcmc_step_schedule,
)
from fortuna.prob_model.posterior.sgmcmc.cyclical_sgld import (
    cyclical_sgld_callback,
    cyclical_sgld_integrator,
)
from fortuna.prob_model.posterior.sgmcmc.sghmc import sghmc_integrator
from jax import random

FOLDER = "prob_model/posterior/sgmcmc"
SAMPLERS = {
    "sghmc": (f"{FOLDER}/sghmc/sghmc_integrator.py", 29),
    "cyclical_sgld": (f"{FOLDER}/cyclical_sgld/cyclical_sgld_integrator.py", 21),
}
APPROXIMATORS = {
    "sghmc": SGHMCPosteriorApproximator,
    "cyclical_sgld": CyclicalSGLDPosteriorApproximator,
}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0
BASE = {
    "sghmc": {"step_size": 0.0025, "momentum_decay": 0.9},
    "cyclical_sgld": {
        "init_step_size": 0.01,
        "cycle_length": 100,
        "exploration_ratio": 0.0,
    },
}


def build(name, given):
    """Give a sampler as a gradient transformation of optax."""
    given = dict(given)
    made = sgmcmc_preconditioner.identity_preconditioner()
    if "eps" in given:
        names = ("running_average_factor", "eps")
        made = sgmcmc_preconditioner.rmsprop_preconditioner(
            **{key: given.pop(key) for key in names}
        )
    if name == "cyclical_sgld":
        maker = cyclical_sgld_integrator.cyclical_sgld_integrator
        return maker(random.PRNGKey(0), preconditioner=made, **given)
    return sghmc_integrator.sghmc_integrator(
        given["momentum_decay"],
        given.get("momentum_resample_steps"),
        random.PRNGKey(0),
        sgmcmc_step_schedule.constant_schedule(given["step_size"]),
        made,
    )


def probe(name, curvature, variance=0.0, steps=1, **given):
    """Read F and Q off some steps from count 0, with unit vectors as states, as random
    numbers and as the gradient's noise.
    """
    a, dim = jnp.array(curvature), len(curvature)
    size = dim * (1 + (name == "sghmc"))
    init, update = build(name, given)
    draw = sghmc_integrator.generate_random_normal_like_tree

    def move(z):
        xi = list(z[size:].reshape(2 * steps, dim))
        sghmc_integrator.generate_random_normal_like_tree = lambda *_: xi.pop(0)
        position, state = z[:dim], init(z[:dim])
        if name == "sghmc":
            state = state._replace(momentum=z[dim:size])
        for _ in range(steps):
            zeta = variance**0.5 * xi.pop()
            change, state = update(-a * position + zeta, state)
            position = position + change
        return np.concatenate(
            [position, *([state.momentum] if name == "sghmc" else [])]
        )

    try:
        columns = np.stack([move(z) for z in jnp.eye(size + 2 * steps * dim)], 1)
    finally:
        sghmc_integrator.generate_random_normal_like_tree = draw
    noise = columns[:, size:]
    return {
        "transition": columns[:, :size].tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


class Constant(nn.Module):
    """Predicts θ whatever the input: each output is a chain of its own."""

    output_dim: int

    @nn.compact
    def __call__(self, x, train=False):
        theta = self.param("theta", nn.initializers.zeros, (self.output_dim,))
        return theta + 0 * x[:, :1]


class Unit(nn.Module):
    """Predicts a log-variance of 0; its parameter has no effect."""

    output_dim: int

    @nn.compact
    def __call__(self, x, train=False):
        self.param("unused", nn.initializers.zeros, (1,))
        return jnp.zeros((len(x), self.output_dim))


def fitted(approximator, outputs, size, config=None, model=None):
    """Fit y ~ N(θ, 1) with the prior N(0, 1): the curvature is 1 + len(outputs)."""
    dim = outputs.shape[1]
    model = model or ProbRegressor(
        Constant(dim), Unit(dim), posterior_approximator=approximator
    )
    inputs = np.zeros((len(outputs), 1), "float32")
    loader = DataLoader.from_array_data((inputs, outputs), batch_size=size)
    model.train(loader, **({"fit_config": config} if config else {}))
    return model


def theta(model, *which):
    """Read θ from the stored states of a posterior."""
    state = model.posterior.state.get(*which)
    return np.array(state.params["model"]["params"]["theta"])


def configured(epochs, **checkpointer):
    return FitConfig(
        optimizer=FitOptimizer(n_epochs=epochs),
        monitor=FitMonitor(verbose=False),
        checkpointer=FitCheckpointer(**checkpointer),
    )


def door(name, chains=4_000):
    """Moments from the front door, in minibatches of two observations with sum zero."""
    outputs = np.tile(np.array([[1.0], [-1.0]] * 2, "float32"), (1, chains))
    given = {"n_thinning": 99, "init_step_size": 0.04, "cycle_length": 100}
    given["exploration_ratio"] = 0.0
    steps, curvature = 99, 5.0
    if name == "sghmc":
        given = {"burnin_length": 199, "step_schedule": 0.01, "momentum_decay": 0.9}
        steps = 200
    made = APPROXIMATORS[name](n_samples=1, **given)
    square = theta(fitted(made, outputs, 2, configured(100)), 0) ** 2
    problem = {"curvature": [curvature], "gradient_variance": 0.0, "temperature": 1.0}
    found = {"steps": steps, "start": 0.0, "second": [float(square.mean())]}
    found["standard_error"] = [float(square.std() / chains**0.5)]
    row = {"sampler": name, "test": "mean or sum", "given": given, "problem": problem}
    return row | {"moments": found | {"chains": chains}}


def cell(name, test, curvature=EVEN, variance=0.0, steps=1, **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    row = {"sampler": name, "test": test, "given": given | {"steps": steps}}
    row["problem"] = problem | {"temperature": 1.0}
    return row | {"probe": probe(name, curvature, variance, steps, **given)}


def observe(sampler, test, given, **found):
    return {"sampler": sampler, "test": test, "given": given, "observed": found}


def phases(cycle_length=20, exploration_ratio=0.25, init_step_size=0.1, cycles=2):
    """The step size and the noise of each step of the cycles, and what is collected."""
    given = {"cycle_length": cycle_length, "exploration_ratio": exploration_ratio}
    init, update = build("cyclical_sgld", given | {"init_step_size": init_step_size})
    state, one, sizes, noisy = init(jnp.zeros(1)), jnp.ones(1), [], []
    draw = sghmc_integrator.generate_random_normal_like_tree
    for _ in range(cycles * cycle_length):
        ends = []
        for xi in (0.0, 1.0):
            fake = lambda *_, xi=xi: xi * one
            sghmc_integrator.generate_random_normal_like_tree = fake
            change, new = update(one, state)
            ends.append(float(change[0]))
        state = new
        sizes.append(ends[0])
        noisy.append(ends[1] != ends[0])
    sghmc_integrator.generate_random_normal_like_tree = draw
    seen = cyclical_sgld_callback.CyclicalSGLDSamplingCallback(
        cycles, cycle_length, 1, 1, cycle_length, exploration_ratio, None, None, 1
    )
    steps = range(1, 1 + len(sizes))
    collected = [bool(seen._do_sample(step, 0)) for step in steps]
    given |= {"init_step_size": init_step_size}
    found = {"sizes": sizes, "noisy": noisy, "collected": collected}
    return observe("cyclical_sgld", "schedule", given, **found)


def behaviour(name, outputs, before):
    """The front door at its defaults, a MAP fit before and after it, and resuming."""
    model = fitted(APPROXIMATORS[name](), outputs, 2)
    last = theta(model, 9)
    moved = float(np.abs(last - theta(model, 0)).min())
    finite = bool(np.isfinite(last).all())
    yield observe(name, "front door", {}, finite=finite, moved=moved)
    after = theta(fitted(MAPPosteriorApproximator(), outputs, 2))
    found = {"before": float(before[0]), "after": float(after[0])}
    yield observe(name, "two states", {"then": "MAPPosteriorApproximator"}, **found)

    given = {"burnin_length": 99, "step_schedule": 1e-3}
    if name == "cyclical_sgld":
        given = {"cycle_length": 1_000, "exploration_ratio": 0.05, "n_thinning": 100}
    made = APPROXIMATORS[name](n_samples=1, **given)
    with tempfile.TemporaryDirectory() as folder:
        keep = {"save_checkpoint_dir": folder, "dump_state": True}
        model = fitted(made, outputs, 2, configured(6, **keep))
        asked = {"restore_checkpoint_path": folder}
        counts = [count_of(model)]
        again = fitted(made, outputs, 2, configured(6, **asked))
        counts.append(count_of(again))
    yield observe(
        name, "resume", given | {"how": "restore_checkpoint_path"}, counts=counts
    )
    with tempfile.TemporaryDirectory() as folder:
        again.save_state(folder)
        files = len(list(pathlib.Path(folder).rglob("checkpoint_*")))
    yield observe(name, "resume", {"how": "save_state"}, files=files)
    asked = {"start_from_current_state": True}
    row = {"sampler": name, "test": "resume", "given": given | asked}
    try:
        fitted(made, outputs, 2, configured(6, **asked), again)
        yield row | {"observed": {"counts": [counts[0], count_of(again)]}}
    except Exception as error:
        yield row | {"error": f"{type(error).__name__}: {error}"}


def count_of(model):
    """Read how many steps the integrator counted when the first sample was stored."""
    state = model.posterior.state.get(0).opt_state
    for key in ("sgld_state", "count"):
        state = (
            state.get(key, state)
            if isinstance(state, dict)
            else getattr(state, key, state)
        )
    return int(state)


def all_cells():
    outputs = np.ones((40, 3), "float32")
    before = theta(fitted(MAPPosteriorApproximator(), outputs, 2))
    for name in SAMPLERS:
        base = BASE[name]
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **base)
        yield cell(name, "uneven curvature", UNEVEN, **base)
        yield cell(name, "mass", running_average_factor=1.0, eps=2.0, **base)
        yield door(name)
        yield from behaviour(name, outputs, before)
    base = BASE["sghmc"]
    yield cell("sghmc", "friction", **base | {"momentum_decay": 0.5})
    yield cell("sghmc", "friction", **base | {"momentum_decay": 0.0})
    yield cell("sghmc", "arguments", steps=10, momentum_resample_steps=10, **base)
    for burnin in (4, 0):
        given = {"init_step_size": 0.1, "final_step_size": 0.01, "burnin_steps": burnin}
        made = sgmcmc_step_schedule.constant_schedule_with_cosine_burnin(**given)
        sizes = [float(made(jnp.array(step))) for step in range(6)]
        finite = [bool(np.isfinite(size)) for size in sizes]
        found = {"finite": finite, "sizes": np.nan_to_num(sizes, nan=-1.0).tolist()}
        yield observe("sghmc", "schedule", given, **found)
    yield phases()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    found = {
        "library": "aws-fortuna",
        "version": importlib.metadata.version("aws-fortuna"),
        "samplers": [
            {"name": name, "file": file, "line": line}
            for name, (file, line) in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": [
            {
                "sampler": name,
                "test": "held minibatch",
                "reason": "it takes one step a call: its caller chooses the batch",
            }
            for name in SAMPLERS
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
