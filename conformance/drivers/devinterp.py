"""devinterp: the three methods of its SGMCMC optimiser, and the deprecated two."""

import importlib.metadata
import json
import sys
import warnings

import torch
from devinterp.optim import SGLD, SGMCMC, SGNHT
from devinterp.optim.prior import GaussianPrior

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
SAMPLERS = {
    "SGMCMC.sgld": ("optim/sgmcmc.py", 579, SGMCMC.sgld),
    "SGMCMC.rmsprop_sgld": ("optim/sgmcmc.py", 714, SGMCMC.rmsprop_sgld),
    "SGMCMC.sgnht": ("optim/sgmcmc.py", 669, SGMCMC.sgnht),
    "SGLD": ("optim/sgld.py", 25, SGLD),
    "SGNHT": ("optim/sgnht.py", 8, SGNHT),
}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0


def make(name, start, **given):
    param = torch.nn.Parameter(start.clone())
    preset = given.pop("square_avg", None)
    optimiser = SAMPLERS[name][2]([param], **given)
    if preset is not None:
        optimiser.state[param]["square_avg"] = torch.tensor(preset)
    return param, optimiser


def move(param, optimiser, gradient):
    param.grad = gradient.clone()
    optimiser.step()


def probe(name, curvature, variance, **given):
    """Read F and Q off one step: unit vectors as positions and as random numbers."""
    prior = given.get("weight_decay", 0.0) + given.get("localization", 0.0)
    dim = len(curvature)
    # the library adds the prior's part of the gradient, and multiplies ours by nbeta
    a = torch.tensor(curvature) - prior / given.get("nbeta", 1.0)

    def step(theta, zeta, xi):
        param, optimiser = make(name, torch.zeros(dim), **given)
        param.data.copy_(theta)
        draw, torch.normal = torch.normal, lambda mean, std, **_: std * xi
        try:
            move(param, optimiser, a * theta + variance**0.5 * zeta)
        finally:
            torch.normal = draw
        return param.detach()

    none, one = torch.zeros(dim), torch.eye(dim)
    columns = [step(each, none, none) for each in one]
    noise = [step(none, none, each) for each in one]
    noise += [step(none, each, none) for each in one if variance]
    noise = torch.stack(noise, 1)
    return {
        "transition": torch.stack(columns, 1).tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


def moments(name, curvature, variance, temperature, steps, each, **given):
    """Estimate E θ² of each coordinate after so many steps, from `each` copies."""
    torch.manual_seed(0)
    a = torch.tensor(curvature).repeat_interleave(each)
    thermostat = name == "SGNHT"
    start = torch.randn(len(a)) * (temperature / a) ** 0.5 * thermostat
    param, optimiser = make(name, start, **given)
    for _ in range(steps):
        noise = variance**0.5 * torch.randn(len(a)) if variance else 0.0
        move(param, optimiser, a * param.detach() + noise)
    square = param.detach().reshape(len(curvature), each) ** 2
    return {
        "steps": steps,
        "start": 0.0,
        "second": square.mean(1).tolist(),
        "standard_error": (square.std(1) / each**0.5).tolist(),
        "chains": each,
    }


def cell(name, test, curvature=EVEN, variance=0.0, size=None, **given):
    temperature = given.get("noise_level", 1.0) ** 2 / given.get("nbeta", 1.0)
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = temperature
    row = {"sampler": name, "test": test, "given": given, "problem": problem}
    if size is None:
        return row | {"probe": probe(name, curvature, variance, **given)}
    found = moments(name, curvature, variance, temperature, *size, **given)
    return row | {"moments": found}


def observe(name, test, given, **found):
    return {"sampler": name, "test": test, "given": given, "observed": found}


def walk(param, optimiser, steps, seed):
    torch.manual_seed(seed)
    for _ in range(steps):
        move(param, optimiser, param.detach())
    return param.detach().clone()


def behaviour(name):
    ones, given = torch.ones(3), {"lr": 0.01, "nbeta": 2.0}

    def new(**more):
        torch.manual_seed(1)
        return make(name, ones, **given | more)

    found = walk(*make(name, ones), 1_000, 1)
    finite, moved = bool(found.isfinite().all()), float((found - 1).abs().min())
    yield observe(name, "front door", {}, finite=finite, moved=moved)

    alone = walk(*new(), 5, 2)
    walk(*new(lr=0.3, nbeta=9.0), 5, 3)
    difference = float((alone - walk(*new(), 5, 2)).abs().max())
    yield observe(name, "two states", given, difference=difference)

    param, optimiser = new()
    walk(param, optimiser, 5, 2)
    torch.save([param, optimiser.state_dict()], "state.pt")
    again, state = torch.load("state.pt", weights_only=False)
    other = SAMPLERS[name][2]([again], **given)
    other.load_state_dict(state)
    ends = [walk(param, optimiser, 3, 4), walk(again, other, 3, 4)]
    difference = float((ends[0] - ends[1]).abs().max())
    yield observe(name, "resume", given, difference=difference)

    param, optimiser = new(lr=0.1)
    falls = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: 1 / (1 + t))
    asked, used = [], []
    draw = torch.normal
    torch.normal = lambda mean, std, size, **_: torch.zeros(size)
    for _ in range(5):
        asked.append(optimiser.param_groups[0]["lr"])
        param.data.zero_()
        state, group = optimiser.state[param], optimiser.param_groups[0]
        state["square_avg"] = torch.full((3,), 0.81)  # with alpha 0.99 and g = 0.9
        if name == "SGNHT":
            state["momentum"].zero_()
            group["thermostat"].zero_()
        move(param, optimiser, torch.full((3,), 0.9))
        # G = 1/(0.9 + 0.1) = 1, a step of lr/2, or of lr for a momentum; nbeta = 2
        used.append(-float(param.detach()[0]) / 0.9 / (2 if name == "SGNHT" else 1))
        falls.step()
    torch.normal = draw
    yield observe(name, "schedule", given | {"lr": 0.1}, asked=asked, used=used)

    param, optimiser = new(bounding_box_size=0.1)
    reached = max(
        float((walk(param, optimiser, 1, seed) - 1).abs().max()) for seed in range(200)
    )
    box = {**given, "bounding_box_size": 0.1}
    yield observe(name, "arguments", box, furthest=reached, box=0.1)


def all_cells():
    for name in SAMPLERS:
        if name == "SGNHT":
            size, base = (4_000, 2_000), {"lr": 0.001, "diffusion_factor": 0.01}
            more, noise = {"diffusion_factor": 0.1, "lr": 0.01}, 0.25
        else:
            size, base, more, noise = None, {"lr": 0.02}, {}, VARIANCE
        if name == "SGMCMC.rmsprop_sgld":
            base |= {"alpha": 1.0, "eps": 1.0}
        yield cell(name, "exact gradient", size=size, **base)
        yield cell(name, "gradient noise", EVEN, noise, size, **base)
        yield cell(name, "temperature", size=size, nbeta=4.0, **base)
        yield cell(name, "uneven curvature", UNEVEN, size=size, **base)
        mean = [x / 50 for x in EVEN]
        yield cell(name, "mean or sum", mean, size=size, nbeta=50.0, **base)
        if "nht" in name.lower():
            friction = base | (more or {"diffusion_factor": 0.1})
            yield cell(name, "friction", size=size and (1_000, 20_000), **friction)
        else:
            yield cell(name, "temperature", noise_level=0.5, **base)
            yield cell(name, "arguments", weight_decay=0.5, nbeta=2.0, **base)
            yield cell(name, "arguments", localization=0.5, nbeta=2.0, **base)
        if name == "SGMCMC.rmsprop_sgld":
            frozen = {"eps": 0.1, "square_avg": [0.25, 4.0], "nbeta": 2.0}
            yield cell(name, "mass", **base | frozen)
            moving = {"lr": 0.02, "alpha": 0.99, "eps": 0.1}
            yield cell(name, "gradient noise", EVEN, 1.0, (400, 20_000), **moving)
        yield from behaviour(name)
    param = torch.nn.Parameter(torch.zeros(3))
    optimiser = SGMCMC([param], lr=0.1, prior=GaussianPrior(1.0, center=2.0))
    optimiser.param_groups[0]["noise_level"] = 0.0
    for _ in range(1_000):
        move(param, optimiser, torch.zeros(3))
    given = {"prior": "GaussianPrior(1.0, center=2.0)"}
    found = {"center": float(param.detach()[0]), "asked": 2.0}
    yield observe("SGMCMC.sgld", "arguments", given, **found)


if __name__ == "__main__":
    found = {
        "library": "devinterp",
        "version": importlib.metadata.version("devinterp"),
        "samplers": [
            {"name": name, "file": file, "line": line}
            for name, (file, line, _) in SAMPLERS.items()
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
