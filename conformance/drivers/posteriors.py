"""posteriors: its stochastic-gradient samplers, one step at a time."""

import importlib.metadata
import json
import sys

import posteriors
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
SAMPLERS = {"sgld": 82, "sghmc": 111, "sgnht": 120, "baoa": 116, "sglrw": 78}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0


def target(curvature, noise=0.0):
    """Give log p(θ), with a noise in its gradient: ζ·θ has the gradient ζ."""

    def log_posterior(params, batch):
        return -(params**2 * curvature).sum() / 2 - (
            noise * params
        ).sum(), torch.tensor([])

    return log_posterior


def probe(name, curvature, variance=0.0, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    update = getattr(posteriors.sgmcmc, name).update
    curvature, dim = torch.tensor(curvature), len(curvature)
    has_momentum = name != "sgld"
    size = dim * (1 + has_momentum)

    def step(state, noise, xi):
        draw, torch.randn_like = torch.randn_like, lambda x, **_: xi.clone()
        try:
            module = getattr(posteriors.sgmcmc, name)
            kind = next(
                x
                for x in vars(module).values()
                if hasattr(x, "step") and isinstance(x, type)
            )
            parts = (state[:dim], state[dim:]) if has_momentum else (state,)
            log_posterior = target(curvature, variance**0.5 * noise)
            new, _ = update(kind(*parts), None, log_posterior, **given)
        finally:
            torch.randn_like = draw
        return torch.cat([new.params, new.momenta]) if has_momentum else new.params

    nothing, one = torch.zeros(dim), torch.eye(dim)
    rest = step(torch.zeros(size), nothing, nothing)
    columns = [step(each, nothing, nothing) - rest for each in torch.eye(size)]
    noise = [step(torch.zeros(size), nothing, each) for each in one]
    noise += [step(torch.zeros(size), each, nothing) for each in one if variance]
    noise = torch.stack(noise, 1)
    return {
        "transition": torch.stack(columns, 1).tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


def run(name, positions, curvature, steps, variance=0.0, **given):
    """Move positions; every coordinate is a chain, but for the thermostat."""
    module = getattr(posteriors.sgmcmc, name)
    state = module.init(
        positions, **({"xi": given["alpha"]} if name == "sgnht" else {})
    )
    for _ in range(steps):
        noise = variance**0.5 * torch.randn_like(positions)
        state, _ = module.update(state, None, target(curvature, noise), **given)
    return state


def moments(name, curvature, steps, each, temperature=1.0, variance=0.0, **given):
    """Estimate E θ² of each coordinate after so many steps, from `each` copies."""
    torch.manual_seed(0)
    a = torch.tensor(curvature).repeat_interleave(each)
    start = (
        torch.randn(len(a)) * (temperature / a) ** 0.5
        if name == "sgnht"
        else torch.zeros(len(a))
    )
    given = given | {"temperature": temperature}
    square = (
        run(name, start, a, steps, variance, **given).params.reshape(
            len(curvature), each
        )
        ** 2
    )
    return {
        "steps": steps,
        "start": 0.0,
        "second": square.mean(1).tolist(),
        "standard_error": (square.std(1) / each**0.5).tolist(),
        "chains": each,
    }


def cell(sampler, test, curvature=EVEN, variance=0.0, **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given.get("temperature", 1.0)
    row = {"sampler": sampler, "test": test, "given": given, "problem": problem}
    if sampler in ("sgld", "sghmc", "baoa"):
        return row | {"probe": probe(sampler, curvature, variance, **given)}
    steps = {"sgnht": 4_000, "sglrw": 400}[sampler]
    size = {"sgnht": 2_000, "sglrw": 40_000}[sampler]
    return row | {
        "moments": moments(sampler, curvature, steps, size, variance=variance, **given)
    }


def observe(sampler, test, given, **found):
    return {"sampler": sampler, "test": test, "given": given, "observed": found}


def behaviour(name):
    """Two states, the front door, a schedule and resuming."""
    module, a = getattr(posteriors.sgmcmc, name), torch.ones(3)
    needed = {"lr": 0.01}
    torch.manual_seed(1)
    transform = module.build(target(a), **needed)
    state, start = transform.init(torch.zeros(3)), torch.zeros(3)
    for _ in range(1_000):
        state, _ = transform.update(state, None)
    moved = float((state.params - start).abs().min())
    yield observe(
        name,
        "front door",
        needed,
        finite=bool(state.params.isfinite().all()),
        moved=moved,
    )
    seen = []
    scheduled = module.init(torch.zeros(3))
    for _ in range(3):
        scheduled, _ = module.update(
            scheduled,
            None,
            target(a),
            lr=lambda t: seen.append(int(t)) or 0.1 / (1 + t),
        )
    yield observe(name, "schedule", {"lr": "0.1 / (1 + t)"}, steps_seen=seen)
    first = module.init(torch.zeros(3))
    for _ in range(5):
        first, _ = module.update(first, None, target(a), lr=0.01, inplace=True)
    second = module.init(torch.zeros(3))
    yield observe(
        name,
        "two states",
        {"lr": 0.01, "inplace": True},
        step_of_a_new_state=int(second.step),
    )
    torch.save(state, "state.pt")
    again = torch.load("state.pt", weights_only=False)
    ends = []
    for each in (state, again):
        torch.manual_seed(2)
        ends.append(transform.update(each, None)[0].params)
    yield observe(
        name, "resume", needed, difference=float((ends[0] - ends[1]).abs().max())
    )


def all_cells():
    momentum = {"sghmc": {"alpha": 1.0}, "baoa": {"alpha": 1.0}}
    for name in ("sgld", "sghmc", "baoa"):
        base = {"lr": 0.05 if momentum.get(name) else 0.01, **momentum.get(name, {})}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **base)
        yield cell(name, "temperature", temperature=0.25, **base)
        yield cell(name, "uneven curvature", UNEVEN, **base)
        # the mean over N = 50 examples, with the temperature 1/N that its guide asks for
        mean = [each / 50 for each in EVEN]
        rate = (
            {"lr": 50 * base["lr"]} if name == "sgld" else {"lr": 50**0.5 * base["lr"]}
        )
        friction = {} if name == "sgld" else {"alpha": 1.0 / 50**0.5}
        yield cell(
            name, "mean or sum", mean, temperature=1 / 50, **base | rate | friction
        )
        if name != "sgld":
            yield cell(name, "friction", **base | {"alpha": 3.0})
            yield cell(name, "mass", **base, sigma=2.0)
        if name != "baoa":
            yield cell(name, "noise estimate", variance=VARIANCE, beta=VARIANCE, **base)
            estimate = {"temperature": 0.25, "beta": VARIANCE}
            yield cell(name, "noise estimate", variance=VARIANCE, **base | estimate)
    for variance, test in ((0.0, "exact gradient"), (1.0, "gradient noise")):
        yield cell("sglrw", test, variance=variance, lr=0.01)
    yield cell("sglrw", "temperature", temperature=0.25, lr=0.01)
    yield cell("sgnht", "uneven curvature", UNEVEN, lr=0.03, alpha=0.1)
    yield cell("sgnht", "exact gradient", [1.0], lr=0.03, alpha=0.3)
    yield cell("sgnht", "gradient noise", [1.0], variance=2.0, lr=0.03, alpha=0.3)
    yield cell("sgnht", "temperature", [1.0], temperature=0.25, lr=0.03, alpha=0.3)
    for name in SAMPLERS:
        yield from behaviour(name)


if __name__ == "__main__":
    found = {
        "library": "posteriors",
        "version": importlib.metadata.version("posteriors"),
        "samplers": [
            {"name": name, "file": f"sgmcmc/{name}.py", "line": line}
            for name, line in SAMPLERS.items()
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
