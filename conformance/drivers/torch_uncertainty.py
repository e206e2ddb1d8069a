"""torch-uncertainty: its two optimisers, and what collects their samples."""

import importlib.metadata
import importlib.util
import json
import sys

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
HOME = importlib.metadata.distribution("torch-uncertainty")
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0


def load(file):
    """Load a file of the package: importing the package needs lightning and more."""
    path = HOME.locate_file(f"torch_uncertainty/{file}")
    spec = importlib.util.spec_from_file_location(f"tu_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SGLD, SGHMC = load("optim/sgld.py").SGLD, load("optim/sghmc.py").SGHMC
CheckpointCollector = load("methods/checkpoint_collector.py").CheckpointCollector
SAMPLERS = {"SGLD": ("optim/sgld.py", 7), "SGHMC": ("optim/sghmc.py", 7)}
SAMPLERS |= {"CheckpointCollector": ("methods/checkpoint_collector.py", 7)}
KINDS = {"SGLD": SGLD, "SGHMC": SGHMC}


def move(param, optimiser, gradient):
    param.grad = gradient.clone()
    optimiser.step()


def probe(name, curvature, variance, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    dim, v_hat = len(curvature), given.pop("v_hat", 1.0)
    a = torch.tensor(curvature) - given.get("weight_decay", 0.0)  # which it adds
    size = dim * (1 + (name == "SGHMC"))

    def step(z, zeta, xi):
        param = torch.nn.Parameter(z[:dim].clone())
        optimiser = KINDS[name]([param], **given)
        if size > dim:
            one = torch.ones(dim)
            optimiser.state[param].update(
                v_hat=one * torch.tensor(v_hat), tau=one.clone(), g=one.clone()
            )
            optimiser.state[param]["momentum"] = z[dim:].clone()
        kept = torch.randn_like, torch.normal
        torch.randn_like = lambda x, **_: xi.clone()
        torch.normal = lambda mean, std, **_: mean + std * xi
        try:
            move(param, optimiser, a * z[:dim] + variance**0.5 * zeta)
        finally:
            torch.randn_like, torch.normal = kept
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


def cell(name, test, curvature=EVEN, variance=0.0, **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given.get("noise_factor", 1e-2) ** 2
    row = {"sampler": name, "test": test, "given": given, "problem": problem}
    return row | {"probe": probe(name, curvature, variance, **given)}


def observe(name, test, given, **found):
    return {"sampler": name, "test": test, "given": given, "observed": found}


def walk(param, optimiser, steps, seed):
    torch.manual_seed(seed)
    for _ in range(steps):
        move(param, optimiser, param.detach())
    return param.detach().clone()


def behaviour(name):
    def new(**given):
        param = torch.nn.Parameter(torch.ones(3))
        return param, KINDS[name]([param], **given)

    found = walk(*new(), 1_000, 1)
    finite, moved = bool(found.isfinite().all()), float((found - 1).abs().min())
    yield observe(name, "front door", {}, finite=finite, moved=moved)

    alone = walk(*new(lr=0.1), 5, 2)
    walk(*new(lr=0.3, noise_factor=1.0), 5, 3)
    difference = float((alone - walk(*new(lr=0.1), 5, 2)).abs().max())
    yield observe(name, "two states", {"lr": 0.1}, difference=difference)

    burns = [{"burn_in_steps": 0}, {"burn_in_steps": 5}] if name == "SGHMC" else [{}]
    for burn in burns:
        given = {"lr": 0.1, **burn}
        param, optimiser = new(**given)
        walk(param, optimiser, 10, 2)  # past the burn-in
        torch.save([param, optimiser.state_dict()], "state.pt")
        again, state = torch.load("state.pt", weights_only=True)
        other = KINDS[name]([again], **given)
        other.load_state_dict(state)
        ends = [walk(param, optimiser, 3, 4), walk(again, other, 3, 4)]
        difference = float((ends[0] - ends[1]).abs().max())
        yield observe(name, "resume", given, difference=difference)

    given = {"lr": 0.1, "noise_factor": 1e-9, **(burns[0] if burns else {})}
    param, optimiser = new(**given)
    falls = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: 1 / (1 + t))
    asked, used = [], []
    normal = torch.normal
    torch.normal = lambda mean, std, **_: mean
    for _ in range(5):
        asked.append(optimiser.param_groups[0]["lr"])
        param.data.zero_()
        if "momentum" in optimiser.state[param]:
            optimiser.state[param]["momentum"].zero_()
        move(param, optimiser, torch.ones(3))
        used.append(abs(float(param.detach()[0])) ** (0.5 if name == "SGHMC" else 1))
        falls.step()
    torch.normal = normal
    yield observe(name, "schedule", given, asked=asked, used=used)


def burn_in():
    """Count the steps in which two parameters adapt, and try the step's argument."""
    params = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    optimiser, seen = SGHMC(params, burn_in_steps=10), [0, 0]
    for step in range(20):
        before = [
            optimiser.state[p].get("v_hat", torch.ones(3)).clone() for p in params
        ]
        for p in params:
            p.grad = torch.full((3,), 2.0 + step)
        optimiser.step()
        for i, p in enumerate(params):
            seen[i] += bool((optimiser.state[p]["v_hat"] != before[i]).any())
    given = {"burn_in_steps": 10, "parameters": 2}
    yield observe("SGHMC", "arguments", given, steps=seen, asked=10)
    changed = []
    for flag in (True, False):
        param = torch.nn.Parameter(torch.ones(3))
        optimiser = SGHMC([param], burn_in_steps=0)
        param.grad = torch.full((3,), 2.0)
        optimiser.step(burn_in=flag)
        changed.append(float((optimiser.state[param]["v_hat"] - 1).abs().max()))
    given = {"step(burn_in)": "True, False"}
    yield observe("SGHMC", "arguments", given, with_true=changed[0], without=changed[1])


def collector():
    name, given = "CheckpointCollector", {"cycle_start": 2, "cycle_length": 3}

    def collect(epochs, **more):
        made, kept = CheckpointCollector(torch.nn.Linear(1, 1), **more), []
        for epoch in range(epochs):
            made.core_model.weight.data.fill_(float(epoch))
            made.update_wrapper(epoch)
        kept = [int(each.weight) for each in made.saved_models]
        return made.eval(), kept

    yield observe(
        name, "schedule", given, kept=collect(10, **given)[1], asked=[2, 5, 8]
    )
    made, kept = collect(5)
    found = made(torch.ones(1, 1)).detach()
    finite, moved = bool(found.isfinite().all()), len(set(kept))
    yield observe(name, "front door", {}, finite=finite, moved=moved)
    collect(9, **given)
    kept = collect(9, save_schedule=[1, 4])[1]
    scheduled = {"save_schedule": [1, 4]}
    yield observe(name, "two states", scheduled, kept=kept, asked=[1, 4])
    for final in (True, False):
        wrapped = torch.nn.Module()
        wrapped.model = collect(4, use_final_model=final)[0]
        torch.save(wrapped.state_dict(), "state.pt")
        fresh = torch.nn.Module()
        fresh.model = CheckpointCollector(
            torch.nn.Linear(1, 1), use_final_model=final
        ).eval()
        row = {"sampler": name, "test": "resume", "given": {"use_final_model": final}}
        try:
            fresh.load_state_dict(torch.load("state.pt", weights_only=True))
            difference = wrapped.model(torch.ones(1, 1)) - fresh.model(torch.ones(1, 1))
            difference = float(difference.detach().abs().max())
            yield row | {"observed": {"difference": difference}}
        except (RuntimeError, KeyError) as error:
            yield row | {"error": f"{type(error).__name__}: {str(error)[:150]}"}


def all_cells():
    for name in KINDS:
        base = {"lr": 0.05, "noise_factor": 1.0}
        base |= {"friction": 0.05, "burn_in_steps": 0} if name == "SGHMC" else {}
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **base)
        yield cell(name, "temperature", **base | {"noise_factor": 0.5})
        yield cell(name, "uneven curvature", UNEVEN, **base)
        # a mean over N = 50 examples, whose temperature is 1/N
        mean = base | {"noise_factor": 50**-0.5}
        mean |= {"lr": 0.15} if name == "SGHMC" else {"lr": 2.5}
        yield cell(name, "mean or sum", [x / 50 for x in EVEN], **mean)
        yield cell(name, "arguments", **base, weight_decay=0.5)
        if name == "SGHMC":
            yield cell(name, "friction", **base | {"friction": 0.3})
            yield cell(name, "mass", **base, v_hat=[0.25, 4.0])
            yield cell(
                name, "noise estimate", variance=VARIANCE, **base, v_hat=VARIANCE
            )
            # the defaults of lr, friction and noise_factor, without a burn-in
            yield cell(name, "temperature", burn_in_steps=0)
        yield from behaviour(name)
    yield from burn_in()
    yield from collector()


if __name__ == "__main__":
    found = {
        "library": "torch-uncertainty",
        "version": importlib.metadata.version("torch-uncertainty"),
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
            for name in KINDS
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
