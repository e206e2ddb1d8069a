"""What a step costs on a GPU: SGHMC with one chain and with 10⁴ on the double well, and
on a 784–100–10 network against ``torch.optim.SGD(fused=True)``, and the memory of 1,000
kept networks.

usage: python -m benchmarks.gpu [--device cuda]

Everything of a row runs in turns in one process, and a turn ends when the device has
finished; the median counts. A run on a GPU is written to ``book/results/gpu.json`` with
the card's name. Without CUDA it says so and does nothing; ``--device cpu`` runs a
hundredth of it, to see that it works."""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from itertools import count

import torch
from torch.nn import functional

from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import RESULTS, circumstances, write_result
from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior
from sgmc.targets import DoubleWell, NoisyGradient

TURNS, SEEDS = 5, count()
WELLS = {"double well, 1 chain": 1, "double well, 10,000 chains": 10_000}


def in_turns(
    functions: dict[str, Callable[[], object]], steps: int, device: str
) -> dict[str, float]:
    """Time functions of so many steps in turns; return the median of each, in
    microseconds a step. The first turn warms up.
    """
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = {name: [] for name in functions}
    for turn in range(TURNS + 1):
        for name, function in functions.items():
            wait()
            start = time.perf_counter()
            function()
            wait()
            if turn:
                times[name].append((time.perf_counter() - start) / steps * 1e6)
    return {name: round(statistics.median(x), 1) for name, x in times.items()}


def wells(device: str, draws: int) -> dict[str, float]:
    """Time SGHMC on the double well, 50 steps a draw."""
    potential, kernel = (
        NoisyGradient(DoubleWell(), 4.0),
        SGHMC(0.1, 3.0, 0.2, num_steps=50),
    )

    def turn(chains: int) -> Callable[[], object]:
        start = torch.zeros(chains, 1, device=device)
        return lambda: sample(
            kernel, potential, start, draws, seed=next(SEEDS), progress=False
        )

    functions = {name: turn(chains) for name, chains in WELLS.items()}
    return in_turns(functions, 50 * draws, device)


def networks(device: str, steps: int, kept: int) -> dict[str, float]:
    """Time SGHMC and SGD with momentum on a network with N = 50,000 and n = 500, and
    measure the memory of kept networks.
    """
    generator = torch.Generator(device).manual_seed(0)
    inputs = torch.rand(50_000, 784, device=device, generator=generator)
    targets = torch.randint(10, (50_000,), device=device, generator=generator)
    module = multilayer_perceptron([784, 100, 10]).to(device)
    settings = {"momentum": 0.99, "weight_decay": 1 / 50_000, "fused": True}
    optimiser = torch.optim.SGD(module.parameters(), 1e-6, **settings)
    posterior = NetworkPosterior(
        multilayer_perceptron([784, 100, 10]).to(device),
        inputs,
        targets,
        batch_size=500,
        minibatches=Fresh(replacement=True),
    )
    start = posterior.initial_position(1, generator)
    kernel = SGHMC.from_learning_rate(2e-11, 0.01, num_steps=steps)

    def sgd() -> None:
        where = {"device": device, "generator": generator}
        for _ in range(steps):
            chosen = torch.randint(50_000, (500,), **where)
            optimiser.zero_grad()
            functional.cross_entropy(module(inputs[chosen]), targets[chosen]).backward()
            optimiser.step()

    def sghmc() -> object:
        given = {"seed": next(SEEDS), "progress": False}
        return sample(kernel, posterior, start, 1, **given)

    rows = {"network, SGD, fused": sgd, "network, SGHMC, 1 chain": sghmc}
    found = in_turns(rows, steps, device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    draws = sample(SGLD(1e-12), posterior, start, kept, progress=False)
    found["megabytes kept"] = round(draws.samples.numel() * 4 / 2**20)
    if device == "cuda":
        found["megabytes at most"] = round(torch.cuda.max_memory_allocated() / 2**20)
    return found


def main(arguments: list[str] | None = None) -> dict[str, float] | None:
    """Print the rows, and store those of a GPU."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    device = parser.parse_args(arguments).device
    if device == "cuda" and not torch.cuda.is_available():
        print("There is no CUDA device here; --device cpu tries it on the processor.")
        return None
    warnings.simplefilter("ignore")  # these chains are not there to be right
    share = 1 if device == "cuda" else 100
    rows = wells(device, 100 // share)
    rows |= networks(device, 200 // share, 1_000 // share)
    for name, value in rows.items():
        print(f"{name:30} {value:10,.1f} {'MiB' if 'bytes' in name else 'µs a step'}")
    if device == "cuda":
        origin = {"command": "python -m benchmarks.gpu", **circumstances(device)}
        write_result(RESULTS / "gpu.json", {"provenance": origin, "rows": rows})
    return rows


if __name__ == "__main__":
    main()
