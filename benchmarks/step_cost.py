"""What a step costs: the mixture job in several programs, the number of chains, the
precision, and the size of the data.

usage: python -m benchmarks.step_cost [--turns 3] [--seed 0] [--only jobs own chains
precision size variants]

Times are seconds of the processor, not of the clock: on a machine that others use too,
the clock tells how busy they are. What is compared runs in turns in one process on one
thread; the best of the turns and their median are kept. Everything but `--only` goes to
book/results/step_cost.json, and so does `--only variants`, which needs Numba, with a
provenance of its own."""

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
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


def precision(turns: int, seed: int) -> dict:
    """Measure what other precisions save in a gradient of the network."""
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
    print(found, flush=True)
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


SECTIONS = {f.__name__: f for f in (jobs, own, chains, precision, size)}


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
