"""bayestorch: its two samplers, which are PyTorch optimisers, one step at a time."""

import importlib.metadata
import json
import sys

import torch
from bayestorch.optim import SGHMC, SGLD

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
KINDS = {"SGLD": SGLD, "SGHMC": SGHMC}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0
FROZEN = {"num_burn_in_steps": 0, "precondition_decay_rate": 1.0}


def make(name, start, state=None, **given):
    """Make a parameter and its optimiser, with the state that a burn-in left."""
    param = torch.nn.Parameter(start.clone())
    optimiser = KINDS[name]([param], **given)
    if state is not None:
        optimiser.state[param] = {
            key: x.clone() if isinstance(x, torch.Tensor) else x
            for key, x in state.items()
        }
    return param, optimiser


def move(param, optimiser, gradient):
    param.grad = gradient.clone()
    optimiser.step()


def probe(name, curvature, variance=0.0, adapted=None, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    a, dim = torch.tensor(curvature), len(curvature)
    size = 2 * dim if name == "SGHMC" else dim
    adapted = adapted or {"iteration": 0} | {
        key: torch.ones(dim) for key in ("tau", "g", "v_hat", "momentum")
    }

    def step(z, zeta, xi):
        known = adapted if size == dim else adapted | {"momentum": z[dim:]}
        param, optimiser = make(name, z[:dim], known, **given)
        draw, torch.normal = torch.normal, lambda mean, std: mean + std * xi
        try:
            move(param, optimiser, a * z[:dim] + variance**0.5 * zeta)
        finally:
            torch.normal = draw
        parts = [param.detach()]
        parts += [optimiser.state[param]["momentum"]] if size > dim else []
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


def burnt_in(name, curvature, variance=0.0, **given):
    """Give the state after the burn-in, or what the preconditioner learned by then."""
    torch.manual_seed(3)
    a = torch.tensor(curvature)
    param, optimiser = make(name, torch.zeros(len(a)), **given)
    for _ in range(given["num_burn_in_steps"] + 100):
        noise = variance**0.5 * torch.randn(len(a))
        move(param, optimiser, a * param.detach() + noise)
    return optimiser.state[param]


def moments(curvature, variance, steps, each, **given):
    """Run many chains of SGLD; every coordinate is one, with its preconditioner."""
    torch.manual_seed(0)
    a = torch.tensor(curvature).repeat_interleave(each)
    param, optimiser = make("SGLD", torch.zeros(len(a)), **given)
    for _ in range(steps):
        noise = variance**0.5 * torch.randn(len(a))
        move(param, optimiser, a * param.detach() + noise)
    square = param.detach().reshape(len(curvature), each) ** 2
    return {
        "steps": steps,
        "start": 0.0,
        "second": square.mean(1).tolist(),
        "standard_error": (square.std(1) / each**0.5).tolist(),
        "chains": each,
    }


def row(sampler, test, given, curvature=EVEN, variance=0.0, **found):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = 1.0
    return {
        "sampler": sampler,
        "test": test,
        "given": given,
        "problem": problem,
        **found,
    }


def cell(sampler, test, curvature=EVEN, variance=0.0, note="", **given):
    found = probe(sampler, curvature, variance, **given)
    extra = {"note": note} if note else {}
    return row(sampler, test, given, curvature, variance, probe=found, **extra)


def observe(sampler, test, given, **found):
    return {"sampler": sampler, "test": test, "given": given, "observed": found}


def behaviour(name, plain):
    torch.manual_seed(1)
    param, optimiser = make(name, torch.ones(3))
    for k in range(4_000):
        if k == 3_500:
            before = param.detach().clone()
        move(param, optimiser, param.detach())
    moved = float((param.detach() - before).abs().min())
    finite = bool(param.isfinite().all())
    yield observe(name, "front door", {}, finite=finite, moved=moved)
    used, power = [], 2 if name == "SGHMC" else 1
    param, optimiser = make(name, torch.zeros(1), **plain | {"lr": 0.1})
    falls = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: 1 / (1 + k))
    draw, torch.normal = torch.normal, lambda mean, std: mean + 0 * std
    for _ in range(4):  # without noise and momentum a step is lr / 2, or lr²
        param.data.zero_()
        if name == "SGHMC" and optimiser.state[param]:
            optimiser.state[param]["momentum"].zero_()
        move(param, optimiser, torch.ones(1))
        used.append((-float(param.detach()) * (3 - power)) ** (1 / power))
        falls.step()
    torch.normal = draw
    asked = [0.1 / (1 + k) for k in range(4)]
    given = {"lr": "0.1 / (1 + t)"}
    yield observe(name, "schedule", given, asked=asked, used=used)
    given, ends = {"num_burn_in_steps": 6}, []
    for other in (False, True):
        if other:  # one that ran before in this process
            earlier = make(name, torch.ones(3), lr=0.5)
            for _ in range(5):
                move(*earlier, torch.ones(3))
        torch.manual_seed(2)
        param, optimiser = make(name, torch.ones(3), **given)
        for _ in range(8):
            move(param, optimiser, param.detach())
        ends.append(param.detach())
    difference = float((ends[0] - ends[1]).abs().max())
    yield observe(name, "two states", given, difference=difference)
    torch.save([param, optimiser.state_dict()], "state.pt")
    saved, state = torch.load("state.pt", weights_only=True)
    again = make(name, saved.detach(), **given)
    again[1].load_state_dict(state)
    ends = []
    for each in ((param, optimiser), again):
        torch.manual_seed(4)
        move(*each, each[0].detach())
        ends.append(each[0].detach())
    difference = float((ends[0] - ends[1]).abs().max())
    yield observe(name, "resume", given, difference=difference)


def all_cells():
    plain = {"lr": 0.04, **FROZEN}
    yield cell("SGLD", "exact gradient", **plain)
    yield cell("SGLD", "gradient noise", variance=VARIANCE, **plain)
    yield cell("SGLD", "uneven curvature", UNEVEN, **plain)
    default = {"lr": 0.04, "num_burn_in_steps": 0, "precondition_decay_rate": 0.95}
    for variance, test in ((0.0, "exact gradient"), (VARIANCE, "gradient noise")):
        found = moments(EVEN, variance, 400, 20_000, **default)
        yield row("SGLD", test, default, EVEN, variance, moments=found)
    learning = {"lr": 0.04, "num_burn_in_steps": 900, "precondition_decay_rate": 0.99}
    learned = burnt_in("SGLD", UNEVEN, VARIANCE, **learning)
    found = probe("SGLD", UNEVEN, VARIANCE, learned, **plain)
    given = plain | {"preconditioner": learned["momentum"].tolist()}
    yield row("SGLD", "mass", given, UNEVEN, VARIANCE, probe=found)
    note = "given the mean over N examples it has the temperature N of the posterior, given the sum over a batch of n, as in examples/mnist, N/n"
    yield cell("SGLD", "mean or sum", [a / 50 for a in EVEN], note=note, **plain)
    hmc = {"lr": 0.1, "num_burn_in_steps": 0}
    yield cell("SGHMC", "exact gradient", **hmc)
    yield cell("SGHMC", "gradient noise", variance=VARIANCE, **hmc)
    yield cell("SGHMC", "uneven curvature", UNEVEN, **hmc)
    yield cell("SGHMC", "friction", momentum_decay=0.3, **hmc)
    estimate = {"momentum_decay": 0.1, "grad_noise": 0.1 * VARIANCE / 2}
    yield cell("SGHMC", "noise estimate", variance=VARIANCE, **hmc | estimate)
    yield cell("SGHMC", "mean or sum", [a / 50 for a in EVEN], note=note, **hmc)
    for test, curvature, variance, given in (
        ("mass", UNEVEN, VARIANCE, {"lr": 0.1, "num_burn_in_steps": 3_000}),
        # gradients near 2 momentum_decay / lr² = 10, beyond which there is no noise
        ("mass", [80.0], 0.0, {"lr": 0.1, "num_burn_in_steps": 3_000}),
    ):
        state = burnt_in("SGHMC", curvature, variance, **given)
        found = probe("SGHMC", curvature, variance, state, **given)
        given = given | {"v_hat": state["v_hat"].tolist()}
        yield row("SGHMC", test, given, curvature, variance, probe=found)
    for name in KINDS:
        yield from behaviour(name, FROZEN if name == "SGLD" else hmc)


if __name__ == "__main__":
    found = {
        "library": "bayestorch",
        "version": importlib.metadata.version("bayestorch"),
        "samplers": [
            {"name": "SGLD", "file": "optim/sgld.py", "line": 33},
            {"name": "SGHMC", "file": "optim/sghmc.py", "line": 33},
        ],
        "cells": list(all_cells()),
        "reasons": [
            {
                "sampler": name,
                "test": "held minibatch",
                "reason": "it takes one step a call: its caller chooses the batch",
            }
            for name in KINDS
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
