"""lightning-uq-box: its optimiser, and the method for regression that trains by it."""

import importlib.metadata
import json
import logging
import sys
import warnings

import torch
from lightning import Trainer
from lightning_uq_box.uq_methods.sgld import SGLD, SGLDRegression

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
torch.set_num_threads(1)
SAMPLERS = {"SGLD": 31, "SGLDRegression": 170, "SGLDClassification": 295}
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0


def move(param, optimiser, gradient):
    param.grad = gradient.clone()
    optimiser.step(lambda: None)


def probe(curvature, variance=0.0, **given):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    a, dim = torch.tensor(curvature).double(), len(curvature)
    a = a - given.get("weight_decay", 0.0)  # the library adds that part of the gradient

    def step(z, zeta, xi):
        param = torch.nn.Parameter(z.clone())
        draw, torch.randn_like = torch.randn_like, lambda x: xi.clone()
        try:
            move(param, SGLD([param], **given), a * z + variance**0.5 * zeta)
        finally:
            torch.randn_like = draw
        return param.detach()

    none, one = torch.zeros(dim).double(), torch.eye(dim).double()
    noise = [step(none, none, each) for each in one]
    noise += [step(none, each, none) for each in one if variance]
    noise = torch.stack(noise, 1)
    columns = [step(each, none, none) for each in one]
    return {
        "transition": torch.stack(columns, 1).tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


def cell(test, curvature=EVEN, variance=0.0, note="", **given):
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given["noise_factor"] ** 2
    row = {"sampler": "SGLD", "test": test, "given": given, "problem": problem}
    row |= {"note": note} if note else {}
    return row | {"probe": probe(curvature, variance, **given)}


def observe(sampler, test, given, observation):
    """Keep what was observed, or what was raised."""
    row = {"sampler": sampler, "test": test, "given": given}
    try:
        return row | {"observed": observation()}
    except (AttributeError, OSError, RuntimeError, TypeError) as error:
        return row | {"error": f"{type(error).__name__}: {error}"}


def start(**given):
    param = torch.nn.Parameter(torch.ones(3))
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
    moved = float((found - 1).abs().min())
    return {"finite": bool(found.isfinite().all()), "moved": moved}


def two_states(given):
    alone = walk(*start(**given), 5, 2)
    walk(*start(**given | {"lr": 0.3}), 5, 3)
    return differ(alone, walk(*start(**given), 5, 2))


def resume(given):
    param, optimiser = start(**given)
    walk(param, optimiser, 5, 2)
    torch.save([param, optimiser.state_dict()], "state.pt")
    again, state = torch.load("state.pt", weights_only=True)
    other = SGLD([again], **given | {"lr": 0.3})
    other.load_state_dict(state)
    return differ(walk(param, optimiser, 3, 4), walk(again, other, 3, 4))


def schedule(given):
    param, optimiser = start(**given | {"noise_factor": 0.0})
    falls = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: 1 / (1 + k))
    asked, used = [], []
    for _ in range(4):
        param.data.zero_()
        asked.append(optimiser.param_groups[0]["lr"])
        move(param, optimiser, torch.ones(3))
        used.append(-float(param.detach()[0]))
        falls.step()
    return {"asked": asked, "used": used}


def fit(folder, seed, **given):
    """Train a line y = 2x, as its tests do."""
    torch.manual_seed(seed)
    x = torch.linspace(-1, 1, 32)[:, None]
    data = [{"input": each, "target": 2 * each} for each in x]
    settings = {"lr": 0.01, "weight_decay": 0.0, "noise_factor": 0.05}
    settings |= {"burnin_epochs": 1, "n_sgld_samples": 3}
    model = SGLDRegression(torch.nn.Linear(1, 1), torch.nn.MSELoss(), **settings)
    trainer = Trainer(
        default_root_dir=folder,
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    trainer.fit(model, loader, **given)
    return model, trainer


def spread(model):
    """Note how many samples its prediction has, and how far they are apart."""
    with torch.no_grad():
        found = model.predict_step(torch.ones(1, 1))
    kept = [torch.load(each)["weight"] for each in model.dir_list]
    return {
        "finite": bool(found["pred"].isfinite().all()),
        "moved": float((kept[-1] - kept[0]).abs().max()),
        "samples": len(kept),
    }


def predict_again():
    model, trainer = fit("third", 2)
    trainer.save_checkpoint("third.ckpt")
    parts = {"model": torch.nn.Linear(1, 1), "loss_fn": torch.nn.MSELoss()}
    with torch.no_grad():
        one = model.predict_step(torch.ones(1, 1))["pred"]
        again = SGLDRegression.load_from_checkpoint(
            "third.ckpt", weights_only=False, **parts
        )
        return differ(one, again.predict_step(torch.ones(1, 1))["pred"])


def all_cells():
    base = {"lr": 0.02, "noise_factor": 1.0}
    yield cell("exact gradient", **base)
    yield cell("arguments", weight_decay=0.5, **base)
    yield cell("gradient noise", variance=VARIANCE, **base)
    yield cell("temperature", **base | {"noise_factor": 0.5})
    yield cell("uneven curvature", UNEVEN, **base)
    note = "the temperature is noise_factor², and 1/N of it is right for a mean"
    rate = {"lr": 50 * base["lr"], "noise_factor": 50**-0.5}
    yield cell("mean or sum", [each / 50 for each in EVEN], note=note, **rate)
    yield observe("SGLD", "front door", base, lambda: front_door(base))
    yield observe("SGLD", "two states", base, lambda: two_states(base))
    yield observe("SGLD", "resume", base, lambda: resume(base))
    yield observe("SGLD", "schedule", base, lambda: schedule(base))
    name, one = "SGLDRegression", {"n_sgld_samples": 3}
    yield observe(name, "front door", one, lambda: spread(fit("first", 0)[0]))
    given = one | {"default_root_dir": "that of the first"}
    yield observe(name, "two states", given, lambda: spread(fit("first", 1)[0]))
    yield observe(name, "resume", one, predict_again)


if __name__ == "__main__":
    found = {
        "library": "lightning-uq-box",
        "version": importlib.metadata.version("lightning-uq-box"),
        "samplers": [
            {"name": name, "file": "uq_methods/sgld.py", "line": line}
            for name, line in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": [
            {
                "sampler": "SGLD",
                "test": "held minibatch",
                "reason": "it takes one step a call: its caller chooses the batch",
            },
            {
                "sampler": "SGLDClassification",
                "test": "front door",
                "reason": "it shares SGLDBase and the optimiser with SGLDRegression",
            },
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
