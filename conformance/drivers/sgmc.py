"""sgmc, ours: its kernels through the same door, one step at a time."""

import inspect
import json
import os
import shutil
import sys
import warnings

import torch
from torch import Generator

import sgmc
from sgmc import sample
from sgmc.checkpoints import Checkpoint
from sgmc.compiled import CompiledSGHMC
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, NaiveSGHMC
from sgmc.minibatches import Held
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import SGNHT, Cyclical, RandomWalkMetropolis
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.splittings import Splitting, flows
from sgmc.targets import NoisyGradient

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
warnings.simplefilter("ignore")
EVEN, UNEVEN, VARIANCE = [1.0, 4.0], [0.1, 0.46, 2.15, 10.0], 4.0
MEAN = [each / 50 for each in EVEN]
COMPILER = shutil.which("g++")
LISTS = {
    "BAOAB": flows.baoab,
    "OBABO": flows.obabo,
    "UBU": flows.ubu,
    "palindromic": flows.palindromic,
    "explicit Euler": flows.explicit_euler_sghmc,
}
KERNELS = {"SGLD": SGLD, "SGHMC": SGHMC, "CompiledSGHMC": CompiledSGHMC, "HMC": HMC}
KERNELS |= {"NaiveSGHMC": NaiveSGHMC, "NUTS": NUTS, "SGNUTS": SGNUTS, "SGNHT": SGNHT}
KERNELS |= {"RandomWalkMetropolis": RandomWalkMetropolis}
SAMPLERS = KERNELS | LISTS | {"Cyclical": Cyclical}


def place(sampler):
    """Find the file of a class or function, as seen from the package, and its line."""
    file = os.path.relpath(inspect.getfile(sampler), os.path.dirname(sgmc.__file__))
    return {"file": file, "line": inspect.getsourcelines(sampler)[1]}


class Quadratic(Potential):
    def __init__(self, curvature):
        self.curvature = torch.as_tensor(curvature)

    def energy(self, position):
        return 0.5 * (self.curvature * position**2).sum(-1)

    def gradient(self, position):
        return self.curvature * position


def make(name, given):
    """Make a kernel from what a cell was given."""
    given = {
        key: torch.tensor(x) if isinstance(x, list) else x for key, x in given.items()
    }
    at, decay = given.pop("at", None), given.pop("momentum_decay", None)
    if at is not None and name != "Cyclical":  # a schedule
        first = given.pop("step_size")
        given["step_size"] = lambda t: first / (1 + t)
    if given.get("noise_estimate") == "online":
        given["noise_estimate"] = OnlineNoise("scalar")
    if decay:
        return SGHMC.from_learning_rate(momentum_decay=decay, **given)
    if name in LISTS:
        mass = given.get("mass", 1.0)
        temperature = given.get("temperature", 1.0)
        return Splitting(LISTS[name](**given), mass=mass, temperature=temperature)
    if name == "Cyclical":
        temperature = given.pop("temperature", 1.0)
        cold = given.pop("explorer", None) is not None
        return Cyclical(lambda rate: SGLD(rate, temperature), **given, cold=cold)
    return KERNELS[name](**given)


def fed(numbers):
    """Replace normal numbers by given ones, then zeros; count them."""
    used = [0]

    def normal_(tensor, mean=0.0, std=1.0, *, generator=None):
        chosen = torch.zeros(tensor.numel())
        part = numbers[used[0] : used[0] + tensor.numel()]
        chosen[: len(part)] = part
        used[0] += tensor.numel()
        return tensor.copy_(mean + std * chosen.reshape(tensor.shape))

    return normal_, used


def probe(kernel, potential, dim, at=0):
    """Read F and Q off one step: unit vectors as states and as random numbers."""
    generator = Generator().manual_seed(0)
    start = kernel.init(potential, torch.zeros(1, dim), generator)
    kind = getattr(start, "inner", start)
    size = 2 * dim if "momentum" in kind._fields else dim
    draw = torch.Tensor.normal_

    def step(z, numbers):
        parts = {"position": z[None, :dim].clone()}
        if size > dim:
            parts["momentum"] = z[None, dim:].clone()
        state = kind._replace(**parts)
        if kind is not start:
            state = start._replace(inner=state, num_draws=at)
        elif at:
            state = state._replace(num_gradients=at)
        torch.Tensor.normal_, used = fed(numbers)
        try:
            new, _ = kernel.step(potential, state, Generator().manual_seed(0))
        finally:
            torch.Tensor.normal_ = draw
        new = getattr(new, "inner", new)
        found = [new.position[0]] + ([new.momentum[0]] if size > dim else [])
        return torch.cat(found), used[0]

    none = torch.zeros(0)
    columns = [step(each, none)[0] for each in torch.eye(size)]
    number = step(torch.zeros(size), none)[1]
    noise = [step(torch.zeros(size), each)[0] for each in torch.eye(number)]
    noise = torch.stack(noise, 1)
    return {
        "transition": torch.stack(columns, 1).tolist(),
        "noise": (noise @ noise.T).tolist(),
    }


def cell(name, test, curvature=EVEN, variance=0.0, at=None, held=None, **given):
    if at is not None:
        given["at"] = at
    potential = Quadratic(curvature)
    potential = NoisyGradient(potential, variance) if variance else potential
    problem = {"curvature": curvature, "gradient_variance": variance}
    problem["temperature"] = given.get("temperature", 1.0)
    row = {"sampler": name, "test": test, "given": given, "problem": problem}
    found = probe(make(name, given), potential, len(curvature), at or 0)
    return row | {"probe": found}


def moments(name, test, curvature, given, steps, each, variance=0.0, copies=0):
    """Estimate E θ² after so many steps from zero. A thermostat starts from the target;
    it has so many copies of each coordinate, and its standard error is that of chains.
    """
    torch.manual_seed(0)
    a, dim = torch.tensor(curvature), len(curvature)
    potential = Quadratic(a)
    start = torch.zeros(each, dim)
    if copies:
        potential = Quadratic(a.repeat_interleave(copies))
        start = torch.randn(each, dim * copies) / potential.curvature**0.5
    potential = NoisyGradient(potential, variance) if variance else potential
    kernel, generator = make(name, given), Generator().manual_seed(1)
    state = kernel.init(potential, start, generator)
    for _ in range(steps):
        state, _ = kernel.step(potential, state, generator)
    square = (state.position**2).reshape(each, dim, max(1, copies)).mean(-1)
    problem = {"curvature": curvature, "gradient_variance": variance}
    found = {"steps": steps, "start": 0.0, "second": square.mean(0).tolist()}
    found |= {"standard_error": (square.std(0) / each**0.5).tolist(), "chains": each}
    row = {"sampler": name, "test": test, "given": given, "moments": found}
    return row | {"problem": problem | {"temperature": 1.0}}


def held(name, given, steps, period=5, each=20_000):
    """One minibatch of 4 of 20 examples for some steps: θ around the posterior mean."""
    targets = 0.25 * torch.arange(20.0)
    rule = {"batch_size": 4, "minibatches": Held(period)}
    model = LinearRegression(torch.ones(20, 1), targets, 10.0, 1.0, **rule)
    kernel, generator = make(name, given), Generator().manual_seed(1)
    state = kernel.init(model, model.mean.expand(each, 1), generator)
    for _ in range(steps):
        state, _ = kernel.step(model, state, generator)
    square = (state.position - model.mean) ** 2
    variance = 20**2 / 4 * float(targets.var()) / 10**2 * (1 - 4 / 20)
    found = {"steps": steps, "start": 0.0, "second": square.mean(0).tolist()}
    found |= {"standard_error": (square.std(0) / each**0.5).tolist(), "chains": each}
    problem = {"curvature": [float(model.precision)], "gradient_variance": variance}
    row = {"sampler": name, "test": "held minibatch", "moments": found}
    given = given | {"held": period}
    return row | {"given": given, "problem": problem | {"temperature": 1.0}}


def behaviour(name, given):
    """The front door at its defaults, two runs in one process, and a run resumed."""
    potential = Quadratic(torch.ones(1))
    start, quiet = torch.zeros(4, 1), {"progress": False}
    found = sample(make(name, given), potential, start, 200, **quiet).samples
    row = {"sampler": name, "given": given}
    finite, moved = bool(found.isfinite().all()), float(found[-1].abs().min())
    yield row | {"test": "front door", "observed": {"finite": finite, "moved": moved}}
    sample(make(name, given), potential, start + 1, 7, seed=3, **quiet)
    again = sample(make(name, given), potential, start, 200, **quiet).samples
    off = float((again - found).abs().max())
    yield row | {"test": "two states", "observed": {"difference": off}}
    for number in (80, 200):
        kept = {"checkpoint": Checkpoint(f"{name}.pt")} | quiet
        again = sample(make(name, given), potential, start, number, **kept).samples
    off = float((again - found).abs().max())
    yield row | {"test": "resume", "observed": {"difference": off}}


def warned(name, given, num_samples):
    """What a run warns of, on N(0, 1) in three coordinates."""
    kernel, potential = make(name, given), Quadratic(torch.ones(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sample(
            kernel, potential, torch.zeros(20, 3), num_samples, progress=False
        )
    return kernel, float(found.samples.var()), " ".join(str(x.message) for x in caught)


def warnings_of_runs():
    given = {"step_size": 0.3, "friction": 1.0, "temperature": 0.25}
    for name in ("SGHMC", "BAOAB"):
        kernel, _, text = warned(name, given, 2_000)
        seen = {"target_temperature": kernel.target_temperature()}
        seen |= {"warned": "too narrow" in text or "too wide" in text}
        yield {"sampler": name, "test": "temperature", "given": given, "observed": seen}
    given = {"step_size": 0.3, "friction": 1.0, "max_depth": 1}
    for integrator in ("palindromic", "drift_kick"):
        each = given | {"integrator": integrator}
        _, variance, text = warned("SGNUTS", each, 2_000)
        seen = {"told": "reached max_depth = 1 before" in text, "ratio": variance}
        yield {
            "sampler": "SGNUTS",
            "test": "arguments",
            "given": each,
            "observed": seen,
        }


def all_cells():
    sgld, sghmc = {"step_size": 0.02}, {"step_size": 0.1, "friction": 1.0}
    for name in ("SGLD", "SGHMC", *LISTS):
        base = sgld if name == "SGLD" else sghmc
        yield cell(name, "exact gradient", **base)
        yield cell(name, "gradient noise", variance=VARIANCE, **base)
        if name != "palindromic":
            yield cell(name, "temperature", temperature=0.25, **base)
            rate = base["step_size"] * (50 if name == "SGLD" else 50**0.5)
            mean = base | {"step_size": rate, "temperature": 1 / 50}
            if name != "SGLD":
                mean["friction"] = 50**-0.5
            yield cell(name, "mean or sum", MEAN, **mean)
        if name != "SGLD":
            yield cell(name, "friction", **base | {"friction": 3.0})
        yield cell(name, "mass", mass=2.0, **base)
        yield cell(name, "mass", mass=[2.0, 0.5], **base)
        if name not in ("BAOAB", "OBABO", "UBU"):
            half = base["step_size"] * VARIANCE / 2
            known = base | {"noise_estimate": half}
            yield cell(name, "noise estimate", variance=VARIANCE, **known)
            if name != "palindromic":
                cold = known | {"temperature": 0.25}
                yield cell(name, "noise estimate", variance=VARIANCE, **cold)
        rough = {"friction": 3.0} if name == "explicit Euler" else {}
        yield cell(name, "uneven curvature", UNEVEN, **base | rough)
    for test, variance, more in (  # each is compiled anew
        ("exact gradient", 0.0, {}),
        ("noise estimate", VARIANCE, {"noise_estimate": 0.2, "temperature": 0.25}),
        ("mass", VARIANCE, {"mass": [2.0, 0.5], "friction": 3.0}),
    ):
        given = {**sghmc, "num_steps": 2, **more}
        if COMPILER:
            yield cell("CompiledSGHMC", test, variance=variance, **given)
    yield cell("SGLD", "schedule", at=3, step_size=0.08)
    online = sghmc | {"noise_estimate": "online"}
    yield cell("SGHMC", "noise estimate", variance=VARIANCE, **online)
    yield cell("SGHMC", "schedule", at=3, step_size=0.4, friction=1.0)
    rate = {"learning_rate": 0.04, "momentum_decay": 0.1}
    yield cell("SGHMC", "arguments", **rate)
    full = {"mass": [[2.0, 0.5], [0.5, 1.0]], "friction": [[1.5, 0.3], [0.3, 0.8]]}
    yield cell("SGHMC", "mass", variance=VARIANCE, **sghmc | full)
    fresh = {"num_steps": 3, "resample_every": 1, "mass": 2.0, "temperature": 0.25}
    yield cell("SGHMC", "arguments", variance=VARIANCE, **sghmc | fresh)
    yield held("SGLD", sgld, 500)
    yield held("SGHMC", sghmc, 500)
    naive = {"step_size": 0.2, "num_steps": 5}
    yield cell("NaiveSGHMC", "exact gradient", **naive)
    yield cell("NaiveSGHMC", "gradient noise", variance=VARIANCE, **naive)
    yield cell("NaiveSGHMC", "mass", mass=2.0, **naive)
    yield cell("NaiveSGHMC", "uneven curvature", UNEVEN, **naive)
    exact = naive | {"metropolis": True}
    given = (exact, 300, 20_000, VARIANCE)
    yield moments("NaiveSGHMC", "gradient noise", EVEN, *given)
    hmc = {"step_size": 0.4, "num_steps": 5, "jitter": 0.5}
    trees, walk = {"step_size": 0.4}, {"step_size": 0.8}
    work = {"step_size": 0.4, "friction": 1.0, "weights": "work"}
    for test, curvature in (("exact gradient", EVEN), ("uneven curvature", UNEVEN)):
        yield moments("HMC", test, curvature, hmc, 200, 20_000)
        yield moments("NUTS", test, curvature, trees, 60, 5_000)
        yield moments("SGNUTS", test, curvature, work, 60, 4_000)
        steps = 1_500 if test == "uneven curvature" else 300
        yield moments("RandomWalkMetropolis", test, curvature, walk, steps, 10_000)
    yield moments("HMC", "friction", EVEN, hmc | {"refreshment": 0.4}, 200, 20_000)
    yield moments("HMC", "mass", EVEN, hmc | {"mass": [2.0, 0.5]}, 200, 20_000)
    yield moments("NUTS", "mass", EVEN, trees | {"mass": [2.0, 0.5]}, 60, 5_000)
    yield cell("HMC", "arguments", step_size=0.4, num_steps=5, metropolis=False)
    path = sghmc | {"max_depth": 1}
    yield cell("SGNUTS", "exact gradient", **path)
    half = path | {"noise_estimate": 0.05 * VARIANCE}
    yield cell("SGNUTS", "noise estimate", variance=VARIANCE, **half)
    yield cell("SGNUTS", "gradient noise", variance=VARIANCE, **path)
    yield cell("SGNUTS", "mass", mass=2.0, **path)
    yield cell("SGNUTS", "friction", **path | {"friction": 3.0})
    yield cell("SGNUTS", "arguments", integrator="drift_kick", **path)
    warm = {"step_size": 0.03, "diffusion": 0.3}
    for test, curvature, variance, more in (
        ("exact gradient", [1.0], 0.0, {}),
        ("gradient noise", [1.0], 2.0, {}),
        ("friction", [1.0], 2.0, {"diffusion": 1.0}),
        ("mass", [1.0], 2.0, {"mass": 2.0}),
        ("uneven curvature", UNEVEN, 0.0, {"diffusion": 0.1}),
    ):
        copies = 500 // len(curvature)
        given = (warm | more, 4_000, 40, variance, copies)
        yield moments("SGNHT", test, curvature, *given)
    wave = {"step_size": 0.2, "cycle_length": 12, "num_draws": 3, "exploration": 0.25}
    yield cell("Cyclical", "exact gradient", **wave)
    yield cell("Cyclical", "gradient noise", variance=VARIANCE, **wave)
    yield cell("Cyclical", "temperature", temperature=0.25, **wave)
    yield cell("Cyclical", "uneven curvature", UNEVEN, **wave)
    for at in (1, 2, 3):  # to the end of a cycle, and into the next
        yield cell("Cyclical", "schedule", at=at, **wave)
    yield cell("Cyclical", "arguments", explorer="T = 0", **wave)
    given = {name: sghmc for name in LISTS} | {"SGLD": sgld, "SGHMC": sghmc, "HMC": hmc}
    given |= {"NaiveSGHMC": naive, "NUTS": trees, "SGNUTS": sghmc, "SGNHT": warm}
    given |= {"RandomWalkMetropolis": walk, "Cyclical": wave}
    given |= {"CompiledSGHMC": sghmc} if COMPILER else {}
    yield from warnings_of_runs()
    for name, each in given.items():
        yield from behaviour(name, each)


if __name__ == "__main__":
    shared = "its minibatches come by the same rules as those of SGLD and SGHMC"
    reasons = [
        (name, "held minibatch", shared)
        for name in ("BAOAB", "SGNHT", "SGNUTS", "Cyclical")
    ]
    unknown = "with uniform weights and deep trees no law is known"
    reasons.append(("SGNUTS", "uneven curvature", unknown))
    if not COMPILER:
        reasons.append(("CompiledSGHMC", "exact gradient", "it needs a C++ compiler"))
    found = {
        "library": "sgmc",
        "version": sgmc.__version__,
        "samplers": [
            {"name": name, **place(sampler)} for name, sampler in SAMPLERS.items()
        ],
        "cells": list(all_cells()),
        "reasons": [
            {"sampler": name, "test": test, "reason": reason}
            for name, test, reason in reasons
        ],
    }
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
