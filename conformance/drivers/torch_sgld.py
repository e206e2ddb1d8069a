"""torch-sgld: its optimiser, with and without momentum, and its two schedules."""

import copy
import importlib.metadata
import json
import sys

import torch
import torch_sgld
from torch_sgld import SGLD, lr_scheduler

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
SAMPLERS = {"SGLD": ("sgld.py", 49), "SGHMC": ("sgld.py", 49)}
SAMPLERS |= {"cSGLD": ("lr_scheduler.py", 58)}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0


def move(param, optimiser, gradient):
    param.grad = gradient.clone()
    optimiser.step()


def probe(curvature, variance=0.0, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    a, dim = torch.tensor(curvature), len(curvature)
    a = a - given.get("weight_decay", 0.0)  # the library adds that part of the gradient
    a = -a if given.get("maximize") else a  # the gradient of log p
    size = 2 * dim if given.get("momentum") else dim

    def step(z, zeta, xi):
        param = torch.nn.Parameter(z[:dim].clone())
        optimiser = SGLD([param], **given)
        if size > dim:
            optimiser.state[param]["momentum_buffer"] = z[dim:].clone()
        draw, torch.randn_like = torch.randn_like, lambda x: xi.clone()
        try:
            move(param, optimiser, a * z[:dim] + variance**0.5 * zeta)
        finally:
            torch.randn_like = draw
        parts = [param.detach()]
        parts += [optimiser.state[param]["momentum_buffer"]] if size > dim else []
        return torch.cat(parts)

    none, one = torch.zeros(dim), torch.eye(dim)
    columns = [step(each, none, none) for each in torch.eye(size)]
    noise = [step(torch.zeros(size), none, each) for each in one]
    noise += [step(torch.zeros(size), each, none) for each in one if variance]
    noise = torch.stack(noise, 1)
    return {
        "transition": torch.stack(columns, 1).tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


def cell(sampler, test, curvature=EVEN, variance=0.0, **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given.get("temperature", 1.0)
    row = {"sampler": sampler, "test": test, "given": given, "problem": problem}
    return row | {"probe": probe(curvature, variance, **given)}


def observe(sampler, test, given, observation):
    """Keep what was observed, or what was raised."""
    row = {"sampler": sampler, "test": test, "given": given}
    try:
        return row | {"observed": observation()}
    except (AttributeError, ImportError, TypeError) as error:
        return row | {"error": f"{type(error).__name__}: {error}"}


def start(ones=3, **given):
    param = torch.nn.Parameter(torch.ones(ones))
    return param, SGLD([param], **given)


def walk(param, optimiser, steps, seed):
    torch.manual_seed(seed)
    for _ in range(steps):
        move(param, optimiser, param.detach())
    return param.detach().clone()


def differ(one, other):
    return {"difference": float((one - other).abs().max())}


def front_door(given):
    found = walk(*start(**given), 1_000, 1)
    return {
        "finite": bool(found.isfinite().all()),
        "moved": float((found - 1).abs().min()),
    }


def two_states(given):
    alone = walk(*start(**given), 5, 2)
    walk(*start(**given | {"lr": 0.3, "temperature": 9.0}), 5, 3)
    return differ(alone, walk(*start(**given), 5, 2))


def added_group(given):
    (param, optimiser), other = start(**given), torch.nn.Parameter(torch.ones(3))
    optimiser.add_param_group({"params": [other]})
    other.grad = torch.ones(3)
    walk(param, optimiser, 1, 2)
    return {"moved": float((other.detach() - 1).abs().min())}


def resume(given, how):
    param, optimiser = start(**given)
    walk(param, optimiser, 5, 2)
    if how == "deepcopy":
        again, other = copy.deepcopy((param, optimiser))
    else:
        torch.save([param, optimiser.state_dict()], "state.pt")
        again, state = torch.load("state.pt", weights_only=True)
        other = SGLD([again], **given)
        other.load_state_dict(state)
    return differ(walk(param, optimiser, 3, 4), walk(again, other, 3, 4))


def schedule(make, steps, **given):
    """Note the rates that a schedule writes, and those that the steps took."""
    param, optimiser = start(1, **given)
    falls, asked, used, kept = make(optimiser), [], [], 0
    for _ in range(steps):
        asked.append(optimiser.param_groups[0]["lr"])
        param.data.zero_()
        if given.get("momentum"):
            optimiser.state[param]["momentum_buffer"].zero_()
        param.grad = torch.ones(1)
        optimiser.step(noise=False)
        used.append(-float(param.detach()))
        kept += bool(falls.should_sample()) if hasattr(falls, "should_sample") else 0
        falls.step()
    return {"asked": asked, "used": used, "kept": kept}


def harmonic(optimiser):
    return torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: 1 / (1 + k))


def all_names():
    names = {}
    exec("from torch_sgld import *", names)
    return {"names": sorted(name for name in names if name[0] != "_")}


def all_cells():
    for name, base in (("SGLD", {}), ("SGHMC", {"momentum": 0.5})):
        base = {"lr": 0.02, **base}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "arguments", weight_decay=0.5, **base)
        yield cell(name, "arguments", maximize=True, **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **base)
        yield cell(name, "temperature", temperature=0.25, **base)
        yield cell(name, "uneven curvature", UNEVEN, **base)
        mean = [each / 50 for each in EVEN]
        rate = {"lr": 50 * base["lr"], "temperature": 1 / 50}
        yield cell(name, "mean or sum", mean, **base | rate)
        yield observe(name, "front door", base, lambda base=base: front_door(base))
        yield observe(name, "two states", base, lambda base=base: two_states(base))
        group = base | {"group": "added later"}
        yield observe(name, "two states", group, lambda base=base: added_group(base))
        for how in ("state_dict", "deepcopy"):
            found = lambda base=base, how=how: resume(base, how)
            yield observe(name, "resume", base | {"how": how}, found)
        found = lambda base=base: schedule(harmonic, 4, **base)
        yield observe(name, "schedule", base | {"schedule": "LambdaLR"}, found)
    yield cell("SGHMC", "friction", lr=0.02, momentum=0.9)
    cosine = {"n_cycles": 4, "n_samples": 20, "T_max": 100}
    make = lambda x: torch_sgld.CosineLR(x, **cosine)
    cyclical = lambda: schedule(make, 100, lr=0.5, momentum=0.9)
    annealing = {"final_lr": 0.001, "gamma": 0.55, "T_max": 100}
    fall = lambda x: lr_scheduler.ABAnnealingLR(x, **annealing)
    falling = lambda: schedule(fall, 101, lr=0.1)
    yield observe("cSGLD", "front door", cosine, cyclical)
    yield observe(
        "SGLD", "schedule", annealing | {"schedule": "ABAnnealingLR"}, falling
    )
    yield observe("SGLD", "front door", {"import": "*"}, all_names)
    # As with an earlier PyTorch, whose schedules took a third argument.
    parent = lr_scheduler._LRScheduler
    first = parent.__init__
    parent.__init__ = lambda self, x, last_epoch=-1, verbose=False: first(
        self, x, last_epoch
    )
    yield observe("cSGLD", "schedule", cosine | {"verbose": "left out"}, cyclical)
    given = annealing | {"schedule": "ABAnnealingLR", "verbose": "left out"}
    yield observe("SGLD", "schedule", given, falling)


if __name__ == "__main__":
    found = {
        "library": "torch-sgld",
        "version": importlib.metadata.version("torch-sgld"),
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
            for name in ("SGLD", "SGHMC")
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
