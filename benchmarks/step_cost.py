"""What a step costs: the mixture job in several programs, where the time goes, the
roofline, and the cost against the size of the data.

usage: python -m benchmarks.step_cost [--turns 3] [--seed 0] [--only jobs own memory
chains ... variants]

Times are seconds of the processor, not of the clock: on a machine that others use too,
the clock tells how busy they are. What is compared runs in turns in one process on one
thread; the best of the turns and their median are kept. Everything but `--only` goes to
book/results/step_cost.json, and so does `--only variants`, which needs Numba, with a
provenance of its own."""

import argparse
import ctypes
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import arviz
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks import mixture
from benchmarks.mixture import MINIBATCH, PRINTED, Job
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import (
    RESULTS,
    circumstances,
    peak_memory,
    read_result,
    write_result,
)
from sgmc import sample
from sgmc.kernels import HMC, SGHMC
from sgmc.minibatches import Fresh
from sgmc.models import control_variates
from sgmc.posteriors import LogisticRegression, NetworkPosterior
from sgmc.potentials import Potential
from sgmc.randomness import normal_block
from sgmc.splittings import LinearChain, sghmc_chain

ROOT = Path(__file__).resolve().parents[1]
SIZES = [784, 100, 10]  # of the network's layers
BATCH = 500
EXAMPLES = (10**4, 10**5, 10**6, 10**7)
CHAINS = (1, 10, 100, 1_000, 10_000, 50_000)
# the report's Python and C++ programs: what they ran, in its notebooks, and for how
# long
PUBLISHED = {
    "Python": {
        "job": Job(0.01, 1.0, 0.005, 0.0, 50, steps=4),
        "draws": 499,
        "seconds": 7.61,
    },
    "C++": {
        "job": Job(0.1, 1.0, 0.2, 4.0, None, steps=100),
        "draws": 3_999,
        "seconds": 0.316,
    },
}


def mixture_counts(size: int, chains: int = 1) -> tuple[int, int]:
    """Count operations and bytes of the mixture's gradient in float32: +, −, ×, ÷ and
    exp one each, every operand read and written once.

    An example takes 8: distance and product in the exponent, its sign, exp, 1 +, 1 ÷,
    and w, wx into their sums (+, ×, +, less the sign).

    Example:
        >>> mixture_counts(200, 10_000)
        (16000000, 160800)
    """
    return 8 * size * chains, 4 * (size + 2 * 2 * chains)


def update_counts(coordinates: int) -> tuple[int, int]:
    """Count operations and bytes of SGHMC's update in float32, without the gradient and
    the drawing of the noise.

    θ + εr, (1 − εC)r, − ε∇Ũ, + σξ: seven operations; θ, r, ∇Ũ and ξ are read, θ and r
    written.

    Example:
        >>> update_counts(10)
        (70, 240)
    """
    return 7 * coordinates, 4 * 6 * coordinates


def network_counts(sizes: list[int], batch: int) -> tuple[int, int]:
    """Count the operations of a network's gradient that are matrix products, and the
    bytes of parameters and inputs read once.

    A layer of a × b takes 2nab forwards, 2nab for its weights' gradient, and 2nab for
    that of its inputs, which the first does not need.

    Example:
        >>> network_counts([784, 100, 10], 500)
        (159800000, 1886040)
    """
    products = [a * b for a, b in pairwise(sizes)]
    parameters = sum(products) + sum(sizes[1:])
    return 2 * batch * (3 * sum(products) - products[0]), 4 * (
        parameters + batch * sizes[0]
    )


def logistic_counts(examples: int, dim: int) -> tuple[int, int]:
    """Count operations and bytes of the gradient of logistic regression in float32: two
    products with the inputs, five for the weights.

    Example:
        >>> logistic_counts(1000, 4)
        (21000, 20000)
    """
    return examples * (4 * dim + 5), 4 * examples * (dim + 1)


def in_turns(
    functions: dict[str, Callable[[], object]], turns: int
) -> dict[str, dict[str, float]]:
    """Measure functions in turns, in seconds of the processor: the best and the median
    turn. A turn before them warms up.
    """
    times = {name: [] for name in functions}
    for turn in range(turns + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if turn:
                times[name].append(time.process_time() - start)
    return {
        name: {"best": min(values), "median": statistics.median(values)}
        for name, values in times.items()
    }


def per(times: dict[str, float], number: float) -> dict[str, float]:
    """Divide times by a number, and keep four digits."""
    return {name: float(f"{seconds / number:.4g}") for name, seconds in times.items()}


def per_call(
    functions: dict[str, Callable[[], object]], turns: int, seconds: float = 0.05
) -> dict[str, dict[str, float]]:
    """Measure short functions, each called as often in a turn as fits into some
    time.
    """
    calls = {}
    for name, function in functions.items():
        function()
        start = time.process_time()
        function()
        calls[name] = max(1, int(seconds / max(time.process_time() - start, 1e-7)))
    repeated = {
        name: lambda f=function, n=calls[name]: [f() for _ in range(n)]
        for name, function in functions.items()
    }
    return {
        name: per(times, calls[name])
        for name, times in in_turns(repeated, turns).items()
    }


def effective(draws: np.ndarray) -> float:
    """Give the effective sample size of draws ``(draws, chains, 2)``, pooled: the
    smaller of the lower and the upper mean's.
    """
    ordered = np.sort(draws, -1)  # the model does not say which mean is the first one
    return min(
        float(arviz.ess(ordered[..., i].T.astype(float), method="mean"))
        for i in range(2)
    )


def jobs(turns: int, seed: int, programs: Callable = mixture.programs) -> dict:
    """Measure every program at both jobs: seconds a step, an example's gradient and an
    effective sample, and moments of the draws.
    """
    found = {}
    for title, job, many, seconds in (
        ("printed", PRINTED, 10_000, 0.4),
        ("minibatches", MINIBATCH, 1_000, 0.3),
    ):
        functions, draws, kept, chains_of = {}, {}, {}, {}
        # One long chain tells how many steps an effective sample takes, for all
        # programs: their law is the same, and an estimate from many short chains is
        # another number.
        long = (
            mixture.cpp_chain(job, 20_000, seed, "fast")
            if mixture.has_compiler()
            else mixture.numpy_chain(job, 4_000, seed)
        )
        share = effective(long[20:, None]) / (len(long) - 20) / job.steps  # of a step
        for name, (chains, function) in programs(job, many).items():
            function(2, seed)
            start = time.process_time()
            function(20, seed + 1)
            each = (time.process_time() - start) / 20
            number = max(400 if chains == 1 else 100, int(seconds / each))
            number = min(number, 20_000)
            # minibatches of a seed that was seen before would lie in a cache
            seeds = iter(range(seed + 2, seed + 100))
            functions[name] = lambda n=name, f=function, d=number, s=seeds, k=kept: (
                k.update({n: f(d, next(s))})
            )
            draws[name], chains_of[name] = number, chains
        times = in_turns(functions, turns)
        size = job.batch_size or len(mixture.observations())
        rows = {}
        for name, seconds_of in times.items():
            # without the way from the start
            values = np.asarray(kept[name], dtype=float).reshape(
                draws[name], chains_of[name], 2
            )[20:]
            if not np.isfinite(values).all():
                raise FloatingPointError(f"{name} diverged")
            own = effective(values) / (len(values) * chains_of[name] * job.steps)
            steps = draws[name] * chains_of[name] * job.steps
            rows[name] = {
                "chains": chains_of[name],
                "draws": draws[name],
                "seconds_a_step": per(seconds_of, steps),
                "seconds_an_example": per(seconds_of, steps * size),
                "steps_an_effective_sample": round(1 / share, 3),
                "steps_by_own_draws": round(1 / own, 3),
                "seconds_an_effective_sample": per(seconds_of, steps * share),
                "mean": [round(x, 5) for x in np.sort(values, -1).mean((0, 1))],
                "sd": [round(x, 5) for x in np.sort(values, -1).std((0, 1))],
                "switched": bool((values[..., 0] > values[..., 1]).any()),
            }
            print(
                title,
                name,
                rows[name]["seconds_a_step"],
                rows[name]["seconds_an_effective_sample"],
                flush=True,
            )
        found[title] = rows
    return found


def variants(turns: int, seed: int) -> dict:
    """Measure the report's variants, a Cholesky factor and Numba, in turns with what
    they vary.
    """
    return jobs(turns, seed, mixture.variants)


def own(turns: int, seed: int) -> dict:
    """Measure the two jobs that the report's programs were timed on, which are not one
    job.
    """
    found = {}
    job, draws = PUBLISHED["Python"]["job"], PUBLISHED["Python"]["draws"]
    functions = {
        "NumPy": lambda: mixture.numpy_chain(job, draws, seed),
        "sgmc": lambda: mixture.package(job, 1)(draws, seed),
    }
    if mixture.has_compiler():
        functions |= {
            f"C++ {kind}": lambda k=kind: mixture.cpp_chain(job, draws, seed, k)
            for kind in ("plain", "fast")
        }
    found["Python"] = {
        name: per(times, 1) for name, times in in_turns(functions, turns).items()
    }
    well, draws = PUBLISHED["C++"]["job"], PUBLISHED["C++"]["draws"]
    if mixture.has_compiler():
        functions = {
            f"C++ {kind}": lambda k=kind: mixture.cpp_double_well(well, draws, seed, k)
            for kind in ("plain", "fast")
        }
        found["C++"] = {
            name: per(times, 1) for name, times in in_turns(functions, turns).items()
        }
    for name, published in PUBLISHED.items():
        found[name]["published"] = {
            "seconds": published["seconds"],
            "steps": published["draws"] * published["job"].steps,
        }
    print(found, flush=True)
    return found


@torch.no_grad()
def chains(turns: int, seed: int) -> dict:
    """Measure a step of all chains together against their number, at the printed
    job.
    """
    found = {"chains": list(CHAINS)}
    for kind in ("eager", "compiled"):
        if kind == "compiled" and not mixture.has_compiler():
            continue
        found[kind] = []
        for number in CHAINS:
            kernel, potential = (
                mixture.kernel(PRINTED, kind == "compiled"),
                mixture.posterior(PRINTED),
            )
            generator = torch.Generator().manual_seed(seed)
            state = [
                kernel.init(
                    potential,
                    torch.tensor([mixture.MEANS]).repeat(number, 1),
                    generator,
                )
            ]

            def step(
                state=state, kernel=kernel, potential=potential, generator=generator
            ):
                state[0], _ = kernel.step(potential, state[0], generator)

            found[kind].append(per(per_call({kind: step}, turns)[kind], PRINTED.steps))
        print(kind, found[kind], flush=True)
    return found


def network(seed: int) -> tuple[NetworkPosterior, Tensor]:
    """Make the posterior of a network on 50,000 examples without meaning, and a
    position.
    """
    generator = torch.Generator().manual_seed(seed)
    inputs, targets = (
        torch.rand(50_000, SIZES[0], generator=generator),
        torch.randint(SIZES[-1], (50_000,), generator=generator),
    )
    posterior = NetworkPosterior(
        multilayer_perceptron(SIZES), inputs, targets, batch_size=BATCH
    )
    return posterior, posterior.initial_position(1, generator)


class Known(Potential):
    """A potential whose gradient is a tensor that is there."""

    def __init__(self, known: Tensor):
        self.known = known

    def gradient(self, position: Tensor) -> Tensor:
        """Give it."""
        return self.known


def update_of(
    kernel: SGHMC, position: Tensor, momentum: Tensor, gradient: Tensor, normal: Tensor
) -> Callable[[], None]:
    """Make the update of a step, as the kernel does it, on tensors that it may
    overwrite.
    """
    position, momentum = position.clone(), momentum.clone()
    known, noise = Known(gradient), kernel.injected_noise()

    def update() -> None:
        kernel.trajectory(known, position, momentum, [None], [normal], noise)

    return update


def keep_memory() -> None:
    """Have the C library keep freed memory, where it is glibc, so that what is measured
    does not depend on what was freed before.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(-3, 2**25)  # M_MMAP_THRESHOLD; 32 megabytes is the most that it takes
    mallopt(-1, 2**30)  # M_TRIM_THRESHOLD


FRESH = """
import resource, time, torch
from benchmarks import mixture
torch.set_num_threads(1)
means = mixture.MixtureMeans(torch.from_numpy(mixture.observations()).float())
many = torch.tensor([mixture.MEANS]).repeat(10_000, 1)
means.gradient(many)
faults, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, []
for _ in range(TURNS):
    start = time.process_time()
    for _ in range(10):
        means.gradient(many)
    seconds.append((time.process_time() - start) / 10)
faults = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / (10 * TURNS)
print(min(seconds), sorted(seconds)[TURNS // 2], faults)
"""


def memory(turns: int, seed: int) -> dict:
    """Measure the eager gradient of ten thousand chains in processes of its own, with
    and without memory being kept, and page faults.
    """
    settings = {
        "default": {},
        "kept": {
            "MALLOC_MMAP_THRESHOLD_": str(2**25),
            "MALLOC_TRIM_THRESHOLD_": str(2**30),
        },
    }
    found = {}
    for name, variables in settings.items():
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            FRESH.replace("TURNS", str(turns)),
        ]
        run = subprocess.run(
            command,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        best, median, faults = map(float, run.stdout.split())
        found[name] = {
            **per({"best": best, "median": median}, 1),
            "page_faults": round(faults),
        }
    print(found, flush=True)
    return found


@torch.no_grad()
def parts(turns: int, seed: int) -> dict:
    """Measure the parts of a step: random numbers, choice of examples, gather,
    gradient, update, and the rest, which is Python's.
    """
    whole_network, weights = network(seed)
    keep_memory()
    many = torch.tensor([mixture.MEANS]).repeat(10_000, 1)
    cases = {
        "mixture, 1 chain": (
            mixture.posterior(PRINTED),
            mixture.kernel(PRINTED),
            torch.tensor([mixture.MEANS]),
        ),
        "mixture, 10,000 chains": (
            mixture.posterior(PRINTED),
            mixture.kernel(PRINTED),
            many,
        ),
        "mixture by minibatches, 1 chain": (
            mixture.posterior(MINIBATCH),
            mixture.kernel(MINIBATCH),
            torch.tensor([mixture.MEANS]),
        ),
        "network, 1 chain": (
            whole_network,
            SGHMC.from_learning_rate(2e-6, 0.01, num_steps=10),
            weights,
        ),
    }
    found = {}
    for name, (potential, kernel, position) in cases.items():
        generator, momentum = (
            torch.Generator().manual_seed(seed),
            torch.zeros_like(position),
        )
        steps = kernel.num_steps
        normals, noise = (
            normal_block(position, steps, generator),
            potential.draw_minibatches(position, generator, 0, steps),
        )
        gradient = potential.gradient_given(position, noise[0])
        state, place = [kernel.init(potential, position, generator)], [0]

        def step(state=state, potential=potential, kernel=kernel, generator=generator):
            state[0], _ = kernel.step(potential, state[0], generator)

        def choose(
            potential=potential,
            position=position,
            generator=generator,
            place=place,
            steps=steps,
        ):
            place[0] += steps
            return potential.draw_minibatches(
                position, generator, place[0] + 2**20, steps
            )

        functions = {
            "whole": step,
            "injected noise": lambda p=position, g=generator, s=steps: normal_block(
                p, s, g
            ),
        }
        functions |= {"minibatch or gradient noise": choose}
        functions["update"] = update_of(
            kernel, position, momentum, gradient, normals[0]
        )
        functions["gradient"] = lambda p=potential, x=position, n=noise[0]: (
            p.gradient_given(x, n)
        )
        if getattr(potential, "batch_size", None) is not None:
            functions["gather"] = lambda p=potential, n=noise[0]: p.gather(n)
        times = per_call(functions, turns, 0.1)
        of_steps = {"whole", "injected noise", "minibatch or gradient noise"}
        row = {
            part: per(value, steps if part in of_steps else 1)
            for part, value in times.items()
        }
        best = {part: value["best"] for part, value in row.items()}
        if "gather" in best:
            best["gradient"] -= best["gather"]
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU]
        ) as profile:
            step()
        operators = sum(
            event.count
            for event in profile.key_averages()
            if event.key.startswith("aten::")
        )
        best["loop and calls"] = max(
            0.0,
            best["whole"]
            - sum(value for part, value in best.items() if part != "whole"),
        )
        found[name] = {
            "seconds": {part: float(f"{value:.4g}") for part, value in best.items()},
            "operators": operators / steps,
        }
        print(name, found[name], flush=True)
    return found


@torch.no_grad()
def roofline(turns: int, seed: int) -> dict:
    """Measure the two roofs of this machine, and what the gradients and updates reach,
    with operations and bytes as counted.
    """
    keep_memory()
    generator = torch.Generator().manual_seed(seed)
    side, peaks = 1_024, {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        a, b = (torch.rand(side, side, generator=generator).to(dtype) for _ in range(2))
        peaks[str(dtype).removeprefix("torch.")] = lambda a=a, b=b: a @ b
    seconds = per_call(peaks, turns, 0.2)
    peak = {
        name: float(f"{2 * side**3 / times['best']:.4g}")
        for name, times in seconds.items()
    }
    # a permission, which may also mean another library
    torch.set_float32_matmul_precision("medium")
    seconds = per_call({"medium": peaks["float32"]}, turns, 0.2)["medium"]["best"]
    torch.set_float32_matmul_precision("highest")
    peak["float32, medium"] = float(f"{2 * side**3 / seconds:.4g}")
    bandwidth = {}
    for name, elements in (("cache", 2**15), ("memory", 2**25)):
        # in place: a third would be read as well
        a, b = (torch.rand(elements, generator=generator) for _ in range(2))
        times = per_call({name: lambda a=a, b=b: a.add_(b, alpha=3.0)}, turns)[name]
        bandwidth[name] = float(f"{12 * elements / times['best']:.4g}")
    pair = torch.zeros(2)
    call = per_call({"add": lambda: pair.add_(pair)}, turns)["add"]["best"]
    points = {}

    def put(name: str, counts: tuple[int, int], function: Callable[[], object]) -> None:
        times = per_call({name: function}, turns)[name]
        points[name] = {
            "operations": counts[0],
            "bytes": counts[1],
            "seconds": times["best"],
        }

    many = torch.tensor([mixture.MEANS]).repeat(10_000, 1)
    means = mixture.MixtureMeans(torch.from_numpy(mixture.observations()).float())
    put(
        "mixture's gradient, eager",
        mixture_counts(200, 10_000),
        lambda: means.gradient(many),
    )
    if mixture.has_compiler():
        compiled = torch.compile(means.gradient, fullgraph=True)
        put(
            "mixture's gradient, compiled",
            mixture_counts(200, 10_000),
            lambda: compiled(many),
        )
    one = many[:1].clone()
    put("mixture's gradient, 1 chain", mixture_counts(200), lambda: means.gradient(one))
    posterior, weights = network(seed)
    (indices,) = posterior.draw_minibatches(weights, generator, 0)
    put(
        "network's gradient",
        network_counts(SIZES, BATCH),
        lambda: posterior.gradient_given(weights, indices),
    )
    kernel = SGHMC.from_learning_rate(2e-6, 0.01)
    for name, like in (
        ("update of a network", weights),
        ("update of 30 million coordinates", torch.zeros(1, 30_000_000)),
    ):
        put(
            name,
            update_counts(like.numel()),
            update_of(kernel, *(torch.zeros_like(like) for _ in range(4))),
        )
    inputs, targets = (
        torch.randn(10**6, 4, generator=generator),
        torch.randint(2, (10**6,), generator=generator).float(),
    )
    full, origin = LogisticRegression(inputs, targets), torch.zeros(1, 4)
    put(
        "regression's gradient, a million examples",
        logistic_counts(10**6, 4),
        lambda: full.gradient(origin),
    )
    for name, point in points.items():
        print(
            name,
            {
                **point,
                "gigaflops": round(point["operations"] / point["seconds"] / 1e9, 2),
            },
            flush=True,
        )
    return {
        "peak": peak,
        "bandwidth": bandwidth,
        "seconds_a_call": call,
        "points": points,
    }


def precision(turns: int, seed: int) -> dict:
    """Measure what other precisions save: a step of the network, and of ten thousand
    chains at the mixture.
    """
    found = {}
    posterior, weights = network(seed)
    (indices,) = posterior.draw_minibatches(
        weights, torch.Generator().manual_seed(seed), 0
    )
    inputs, targets = posterior.gather(indices)
    functions = {}

    def with_precision(word: str) -> Callable[[], object]:
        def gradient():
            torch.set_float32_matmul_precision(word)
            posterior.gradient_given(weights, indices)
            torch.set_float32_matmul_precision("highest")

        return gradient

    for word in ("highest", "medium"):
        functions[f"float32, {word}"] = with_precision(word)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        module = multilayer_perceptron(SIZES).to(dtype)
        batch = inputs[0].to(dtype)

        def gradient(module=module, batch=batch):
            module.zero_grad()
            functional.cross_entropy(
                module(batch), targets[0], reduction="sum"
            ).backward()

        functions[f"module in {str(dtype).removeprefix('torch.')}"] = gradient
    found["network"] = per_call(functions, turns)
    functions = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        compiled = mixture.has_compiler() and dtype != torch.bfloat16
        means = mixture.MixtureMeans(torch.from_numpy(mixture.observations()).to(dtype))
        many = torch.tensor([mixture.MEANS], dtype=dtype).repeat(10_000, 1)
        functions[f"eager, {str(dtype).removeprefix('torch.')}"] = (
            lambda p=means, x=many: p.gradient(x)
        )
        if compiled:
            functions[f"compiled, {str(dtype).removeprefix('torch.')}"] = partial(
                torch.compile(means.gradient, fullgraph=True), many
            )
    found["mixture"] = per_call(functions, turns)
    found["products"] = products(turns, seed)
    print(found, flush=True)
    return found


def products(turns: int, seed: int) -> dict:
    """Measure the network's largest product of matrices in several precisions: its
    time, and its error relative to the exact one.
    """
    generator, found = torch.Generator().manual_seed(seed), {}
    a, b = (
        torch.randn(BATCH, SIZES[0], generator=generator),
        torch.randn(SIZES[0], SIZES[1], generator=generator),
    )
    exact = a.double() @ b.double()
    for name, dtype, word in (
        ("float64", torch.float64, "highest"),
        ("float32, highest", torch.float32, "highest"),
        ("float32, high", torch.float32, "high"),
        ("float32, medium", torch.float32, "medium"),
        ("bfloat16", torch.bfloat16, "highest"),
    ):
        torch.set_float32_matmul_precision(word)
        left, right = a.to(dtype), b.to(dtype)
        error = float((left @ right - exact).norm() / exact.norm())
        times = per_call({name: lambda x=left, y=right: x @ y}, turns)[name]
        torch.set_float32_matmul_precision("highest")
        found[name] = {**times, "error": float(f"{error:.3g}")}
    return found


def newton(posterior: LogisticRegression) -> tuple[Tensor, Tensor]:
    """Find the mode of a regression, ``(dim,)``, and the curvature A there, ``(dim,
    dim)``, in float64.
    """
    inputs, _ = posterior.data
    position, identity = (
        torch.zeros(1, inputs.shape[1]),
        torch.eye(inputs.shape[1], dtype=torch.float64),
    )
    for _ in range(8):
        chance = torch.sigmoid(inputs @ position[0])
        curvature = (
            inputs.T @ (inputs * (chance * (1 - chance))[:, None])
        ).double() + identity
        position = (
            position
            - torch.linalg.solve(
                curvature, posterior.gradient(position)[0].double()
            ).float()
        )
    return position[0], curvature


def squares_time(chain: LinearChain) -> float:
    """Give the autocorrelation time of θ² of a linear chain in (θ, r): 1 + 2Σρₖ²,
    summed by the chain of the products (θ, r) ⊗ (θ, r).

    Example:
        >>> round(
        ...     squares_time(sghmc_chain(torch.eye(1), 0.1, 10.0)), 3
        ... )  # εC = 1: θ is SGLD's chain with η = 0.01
        99.503
    """
    first = chain.stationary_covariance()[:, 0]
    pairs, start = (
        torch.kron(chain.transition, chain.transition),
        torch.kron(first, first),
    )
    return float(
        2
        * torch.linalg.solve(torch.eye(4, dtype=torch.float64) - pairs, start)[0]
        / start[0]
        - 1
    )


def best_step(curvature: Tensor, noise: Tensor) -> tuple[float, float, float]:
    """Choose ε and C of SGHMC from the exact law of the linear chain: the fewest steps
    an independent draw of the slowest direction.

    A draw of the position or of its square, whichever takes longer: chains that swing
    are quick with means alone. The friction holds all of the gradient noise, C ≥ ½εV,
    which is subtracted, and no variance is more than 5 % too large.

    Returns:
        ε, C, and the steps an independent draw, τ.
    """
    values, vectors = torch.linalg.eigh(curvature)
    rotated, largest = (
        vectors.T @ noise @ vectors,
        float(torch.linalg.eigvalsh(noise)[-1]),
    )
    best = (0.0, 0.0, math.inf)
    for step in 2.0 ** torch.arange(0.0, -16.0, -0.5):
        for share in (0.25, 0.5, 1.0, 2.0):
            step_size = float(step / values[-1].sqrt())
            needed = 0.5 * step_size * largest
            friction = max(2 * share * float(values[0].sqrt()), needed)
            taus, heats = [], []
            for value, variance in zip(
                values.tolist(), rotated.diagonal().tolist(), strict=True
            ):
                estimate = 0.5 * step_size * variance
                chain = sghmc_chain(
                    torch.tensor([[value]], dtype=torch.float64),
                    step_size,
                    friction,
                    variance,
                    estimate,
                )
                try:
                    heats.append(float(chain.stationary_covariance()[0, 0]) * value)
                except ValueError:
                    heats.append(math.inf)
                    break
                taus += [
                    chain.autocorrelation_time(
                        torch.tensor([1.0, 0.0], dtype=torch.float64)
                    ),
                    squares_time(chain),
                ]
            if max(heats) < 1.05 and max(taus) < best[2]:
                best = (step_size, friction, max(taus))
    return best


def seconds_a_step(
    kernel: SGHMC | HMC,
    potential: Potential,
    position: Tensor,
    generator: torch.Generator,
    turns: int,
) -> dict[str, float]:
    """Measure a step of a kernel, calls and all, but without the look that `sample`
    takes at all the data before the first one.
    """
    state = [kernel.init(potential, position, generator)]

    def step():
        state[0], _ = kernel.step(potential, state[0], generator)

    return per(per_call({"step": step}, turns)["step"], kernel.num_steps)


@torch.no_grad()
def size(turns: int, seed: int) -> dict:
    """Measure a step and an effective sample against the number of examples:
    minibatches, control variates and HMC.
    """
    found = {
        "examples": [],
        "batch": BATCH,
        "dim": 4,
        "rows": {name: [] for name in ("SGHMC", "SGHMC, control variates", "HMC")},
    }
    for number in EXAMPLES:
        generator = torch.Generator().manual_seed(seed)
        inputs, coefficients = (
            torch.randn(number, 4, generator=generator),
            torch.tensor([0.5, -0.5, 1.0, 0.0]),
        )
        targets = (
            torch.rand(number, generator=generator)
            < torch.sigmoid(inputs @ coefficients)
        ).float()
        settings = dict(batch_size=BATCH, minibatches=Fresh(replacement=True))
        full, plain = (
            LogisticRegression(inputs, targets),
            LogisticRegression(inputs, targets, **settings),
        )
        mode, curvature = newton(full)
        start = time.process_time()
        calm = control_variates(plain, mode)
        set_up = time.process_time() - start
        found["examples"].append(number)
        few = LogisticRegression(inputs[: 10**5], targets[: 10**5])
        near = mode + 0.5 * torch.linalg.cholesky(
            torch.linalg.inv(curvature)
        ).float() @ torch.randn(4, generator=generator)
        gradients = [
            few.per_example_gradients(x[None], few.gather(None))[0].double()
            for x in (mode, near)
        ]
        # at one sd from the mode
        noises = {
            "SGHMC": gradients[0],
            "SGHMC, control variates": 2 * (gradients[1] - gradients[0]),
        }
        potentials = {"SGHMC": plain, "SGHMC, control variates": calm}
        for name, potential in potentials.items():
            noise = number**2 / BATCH * torch.cov(noises[name].T)
            step_size, friction, tau = best_step(curvature, noise)
            kernel, position = (
                SGHMC(step_size, friction, num_steps=20),
                mode[None].clone(),
            )
            seconds = seconds_a_step(kernel, potential, position, generator, turns)
            row = {
                "seconds_a_step": seconds,
                "steps_an_effective_sample": round(tau, 2),
                "step_size": step_size,
                "friction": friction,
            }
            row["seconds_an_effective_sample"] = per(seconds, 1 / tau)
            if number <= 10**5:  # the same by sampling, where it is not long
                every = max(1, int(tau / 4))
                estimate = 0.5 * step_size * noise
                made = SGHMC(
                    step_size, friction, 0.999 * estimate.float(), num_steps=every
                )
                draws = sample(
                    made,
                    potential,
                    position,
                    800,
                    warm_up=40,
                    seed=seed + 1,
                    progress=False,
                ).samples.double()
                values = draws[:, 0].numpy() - mode.numpy()
                row["sampled"] = round(
                    min(
                        float(
                            800 * every / arviz.ess(values[None, :, i], method="mean")
                        )
                        for i in range(4)
                    ),
                    2,
                )
                row["sampled_worst"] = round(
                    max(
                        float(
                            800 * every / arviz.ess(values[None, :, i], method="mean")
                        )
                        for i in range(4)
                    ),
                    2,
                )
                row["variance_ratio"] = round(
                    float(
                        draws[:, 0].T.cov().trace()
                        / torch.linalg.inv(curvature).trace()
                    ),
                    3,
                )
            if name != "SGHMC":
                row["set_up_seconds"] = float(f"{set_up:.4g}")
            found["rows"][name].append(row)
        kernel = HMC(
            0.9 / float(torch.linalg.eigvalsh(curvature)[-1].sqrt()), num_steps=2
        )
        times = seconds_a_step(kernel, full, mode[None].clone(), generator, turns)
        row = {"seconds_a_step": times}
        if number == EXAMPLES[0]:
            draws = (
                sample(kernel, full, mode[None], 2_000, seed=seed, progress=False)
                .samples[:, 0]
                .double()
                .numpy()
            )
            # means alone would profit from draws that alternate
            values = np.concatenate([draws, (draws - draws.mean(0)) ** 2], 1)
            steps = (
                2
                * 2_000
                / min(
                    float(arviz.ess(values[None, :, i], method="mean"))
                    for i in range(8)
                )
            )
        # by Bernstein and von Mises the same chain, in units of 1/√N
        row["steps_an_effective_sample"] = round(steps, 2)
        row["seconds_an_effective_sample"] = per(times, 1 / steps)
        found["rows"]["HMC"].append(row)
        print(
            number, {name: rows[-1] for name, rows in found["rows"].items()}, flush=True
        )
    return found


SECTIONS = {
    f.__name__: f for f in (jobs, own, memory, chains, parts, roofline, precision, size)
}


def main() -> None:
    """Measure what is asked for, and keep it when it is everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    known = SECTIONS | {"variants": variants}
    parser.add_argument("--only", nargs="+", choices=known, default=list(SECTIONS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    load, clock, processor = (
        [os.getloadavg()[0]],
        time.perf_counter(),
        time.process_time(),
    )
    found = {name: known[name](given.turns, given.seed) for name in given.only}
    load.append(os.getloadavg()[0])
    busy = {
        "load_average": [round(x, 1) for x in load],
        "clock_seconds": round(time.perf_counter() - clock),
    }
    busy["processor_seconds"] = round(time.process_time() - processor)
    print(busy)
    if given.only not in (list(SECTIONS), ["variants"]):
        return
    command = (
        f"python -m benchmarks.step_cost --turns {given.turns} --seed {given.seed}"
    )
    result = {
        "provenance": {
            "command": command,
            **circumstances("cpu"),
            "peak_memory_megabytes": peak_memory("cpu"),
        },
        "machine_load": busy,
        "settings": {"turns": given.turns, "seed": given.seed},
        "compiler": mixture.compiler(),
        **found,
    }
    path = RESULTS / "step_cost.json"
    before = read_result(path) if path.exists() else {}
    if given.only == ["variants"]:
        result["provenance"]["command"] += " --only variants"
        result["provenance"]["versions"]["numba"] = version("numba")
        result = before | {"variants": result | {"jobs": result.pop("variants")}}
    elif "variants" in before:
        result["variants"] = before["variants"]
    write_result(path, result)


if __name__ == "__main__":
    main()
