"""The two means of a mixture by SGHMC, in plain Python, NumPy, Numba, C++ and this
package: one job, one law.

The job is the one of a course report (Wang and Mi, 2021): 200 observations, half from
N(−3, 1) and half from N(3, 1), the model ½N(μ₁, 1) + ½N(μ₂, 1) with unknown means,
priors N(0, 10), ε = 0.1, C = V = 4. Gradients are those of all the data plus N(0, V),
which is the one reading in which V = 4 is their variance; a second job has minibatches.

usage: python -m benchmarks.mixture [--steps 20000] (prints steps a second of every
program, once; benchmarks/step_cost.py measures)"""

import argparse
import ctypes
import math
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sgmc import sample
from sgmc.compiled import CompiledSGHMC
from sgmc.kernels import SGHMC
from sgmc.minibatches import Fresh
from sgmc.posteriors.base import DataPotential
from sgmc.potentials import Potential
from sgmc.targets import NoisyGradient

SOURCE = Path(__file__).with_suffix(".cpp")
MEANS, PRIOR_VARIANCE, NUMBER = (-3.0, 3.0), 10.0, 200
FLAGS = {
    "plain": ["-O3", "-march=native"],
    "fast": ["-O3", "-march=native", "-ffast-math"],
}


@dataclass(frozen=True)
class Job:
    """What is run: SGHMC with the given parameters, on gradients of all the data with
    N(0, V) added, or on minibatches.
    """

    step_size: float = 0.1
    friction: float = 4.0
    noise_estimate: float = 0.2  # ½εV
    # added to the gradient of all the data; 0 for minibatches
    noise_variance: float = 4.0
    batch_size: int | None = None
    steps: int = 10  # between two draws

    def __post_init__(self):
        if not self.friction >= self.noise_estimate >= 0:
            raise ValueError(
                "friction must be at least noise_estimate, but they are "
                f"{self.friction} and {self.noise_estimate}"
            )
        if self.batch_size is not None and not 0 < self.batch_size <= NUMBER:
            raise ValueError(
                f"batch_size must be from 1 to {NUMBER}, but it is {self.batch_size}"
            )


PRINTED = Job()
# V is about 300, and B̂ must be ½εV
MINIBATCH = Job(step_size=0.01, noise_estimate=1.5, noise_variance=0.0, batch_size=50)


class MixtureMeans(DataPotential):
    """The posterior of the means of two normal components with unit variance and equal
    weights, given observations ``(N,)``.

    Example:
        >>> MixtureMeans(torch.tensor([-3.0, 3.0])).gradient(
        ...     torch.tensor([[-3.0, 3.0]])
        ... ).abs().max() < 0.31
        tensor(True)
    """

    def __init__(
        self, observations: Tensor, batch_size: int | None = None, minibatches=None
    ):
        super().__init__((observations,), batch_size, minibatches, dim=2)

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute −|μ|²/2·10: ``(chains, 2)`` → ``(chains,)``."""
        return -position.square().sum(-1) / (2 * PRIOR_VARIANCE)

    def grad_log_prior(self, position: Tensor) -> Tensor:
        """Compute −μ/10: ``(chains, 2)`` → ``(chains, 2)``."""
        return position * (-1 / PRIOR_VARIANCE)

    def log_likelihood(self, position: Tensor, x: Tensor) -> Tensor:
        """Compute log(½N(x; μ₁, 1) + ½N(x; μ₂, 1)): ``(chains, 2)`` and ``(chains, n)``
        → ``(chains, n)``.
        """
        first, second = position[:, :1], position[:, 1:]
        return torch.logaddexp(
            -0.5 * (x - first).square(), -0.5 * (x - second).square()
        ) - 0.5 * math.log(8 * math.pi)

    def grad_log_likelihood(self, position: Tensor, x: Tensor) -> Tensor:
        """Compute Σwₖ(x)(x − μₖ) with the probability w₁ = 1/(1 + exp((μ₂ − μ₁)(x − (μ₁
        + μ₂)/2))) of the first component.
        """
        first, second = position[:, :1], position[:, 1:]
        weight = torch.sigmoid((first - second) * (x - (first + second) / 2))
        weights, weighted, size = (
            weight.sum(-1, keepdim=True),
            (weight * x).sum(-1, keepdim=True),
            x.shape[-1],
        )
        total = x.sum(-1, keepdim=True)
        return torch.cat(
            [weighted - weights * first, total - weighted - (size - weights) * second],
            -1,
        )


def observations() -> np.ndarray:
    """Make the data: 100 observations from each component, ``(200,)`` float64."""
    generator = np.random.default_rng(663)
    return np.concatenate(
        [mean + generator.standard_normal(NUMBER // 2) for mean in MEANS]
    )


def posterior(job: Job, dtype: torch.dtype = torch.float32) -> Potential:
    """Make the potential of a job."""
    data = torch.from_numpy(observations()).to(dtype)
    if job.batch_size is None:
        return NoisyGradient(MixtureMeans(data), job.noise_variance)
    return MixtureMeans(data, job.batch_size, Fresh())


def plain_python(job: Job, draws: int, seed: int) -> np.ndarray:
    """Run one chain in Python without any library, from the true means: ``(draws,
    2)``.
    """
    rng, data = random.Random(seed), observations().tolist()
    normal, exp = rng.gauss, math.exp
    eps, decay = job.step_size, 1 - job.step_size * job.friction
    injected, noise = (
        math.sqrt(2 * (job.friction - job.noise_estimate) * eps),
        math.sqrt(job.noise_variance),
    )
    (m0, m1), r0, r1, out = MEANS, normal(0, 1), normal(0, 1), []
    for _ in range(draws):
        for _ in range(job.steps):
            m0, m1 = m0 + eps * r0, m1 + eps * r1
            batch = data if job.batch_size is None else rng.sample(data, job.batch_size)
            g0 = g1 = 0.0
            slope, middle = m1 - m0, (m0 + m1) / 2
            for x in batch:
                w = 1 / (1 + exp(slope * (x - middle)))
                g0 += w * (m0 - x)
                g1 += (1 - w) * (m1 - x)
            scale = len(data) / len(batch)
            g0 = m0 / PRIOR_VARIANCE + scale * g0 + noise * normal(0, 1)
            g1 = m1 / PRIOR_VARIANCE + scale * g1 + noise * normal(0, 1)
            r0 = decay * r0 - eps * g0 + injected * normal(0, 1)
            r1 = decay * r1 - eps * g1 + injected * normal(0, 1)
        out.append((m0, m1))
    return np.array(out)


def numpy_chain(
    job: Job, draws: int, seed: int, injection: str = "scaled"
) -> np.ndarray:
    """Run one chain in NumPy, from the true means: ``(draws, 2)``.

    The injected noise is ``scaled`` by its standard deviation; or, as the report has
    it, multiplied by a ``Cholesky`` factor, or drawn by ``multivariate normal``.
    """
    rng, data = np.random.default_rng(seed), observations()
    eps, decay = job.step_size, 1 - job.step_size * job.friction
    variance, noise = (
        2 * (job.friction - job.noise_estimate) * eps,
        math.sqrt(job.noise_variance),
    )
    injected, covariance = math.sqrt(variance), variance * np.eye(2)
    root, zero = np.linalg.cholesky(covariance), np.zeros(2)
    inject = {
        "scaled": lambda: injected * rng.standard_normal(2),
        "Cholesky": lambda: root @ rng.standard_normal(2),
        "multivariate normal": lambda: rng.multivariate_normal(zero, covariance),
    }[injection]
    position, momentum, out = (
        np.array(MEANS),
        rng.standard_normal(2),
        np.empty((draws, 2)),
    )
    for draw in range(draws):
        for _ in range(job.steps):
            position = position + eps * momentum
            x = (
                data
                if job.batch_size is None
                else data[rng.permutation(len(data))[: job.batch_size]]
            )
            w = 1 / (1 + np.exp((position[1] - position[0]) * (x - position.mean())))
            weights, weighted = w.sum(), w @ x
            likelihood = np.array(
                [
                    weights * position[0] - weighted,
                    (len(x) - weights) * position[1] - x.sum() + weighted,
                ]
            )
            gradient = position / PRIOR_VARIANCE + len(data) / len(x) * likelihood
            if noise:
                gradient += noise * rng.standard_normal(2)
            momentum = decay * momentum - eps * gradient + inject()
        out[draw] = position
    return out


def _walk(rng, data, out, eps, decay, injected, noise, batch, steps):
    """Move one chain number by number, in Python that Numba compiles."""
    (m0, m1), r0, r1 = MEANS, rng.standard_normal(), rng.standard_normal()
    for draw in range(len(out)):
        for _ in range(steps):
            m0, m1 = m0 + eps * r0, m1 + eps * r1
            some = data[rng.permutation(len(data))[:batch]] if batch else data
            g0 = g1 = 0.0
            slope, middle = m1 - m0, (m0 + m1) / 2
            for x in some:
                w = 1 / (1 + math.exp(slope * (x - middle)))
                g0 += w * (m0 - x)
                g1 += (1 - w) * (m1 - x)
            scale = len(data) / len(some)
            g0, g1 = m0 / PRIOR_VARIANCE + scale * g0, m1 / PRIOR_VARIANCE + scale * g1
            if noise:
                g0 += noise * rng.standard_normal()
                g1 += noise * rng.standard_normal()
            r0 = decay * r0 - eps * g0 + injected * rng.standard_normal()
            r1 = decay * r1 - eps * g1 + injected * rng.standard_normal()
        out[draw] = m0, m1


@cache
def compiled_walk() -> Callable:
    """Compile the chain of single numbers.

    Raises:
        ImportError: if Numba is not installed, which nothing else needs.
    """
    try:
        from numba import njit
    except ImportError:
        raise ImportError("Numba is not installed: pip install numba") from None
    return njit(_walk)


def numba_chain(
    job: Job, draws: int, seed: int, walk: Callable | None = None
) -> np.ndarray:
    """Run one chain compiled by Numba, or by another function in its place, from the
    true means: ``(draws, 2)``, the same numbers as NumPy's up to rounding.
    """
    out, eps = np.empty((draws, 2)), job.step_size
    (walk or compiled_walk())(
        np.random.default_rng(seed),
        observations(),
        out,
        eps,
        1 - eps * job.friction,
        math.sqrt(2 * (job.friction - job.noise_estimate) * eps),
        math.sqrt(job.noise_variance),
        job.batch_size or 0,
        job.steps,
    )
    return out


class _Job(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_double)
        for name in (
            "step_size",
            "friction",
            "noise_estimate",
            "noise_variance",
            "prior_variance",
        )
    ]
    _fields_ += [
        (name, ctypes.c_int64) for name in ("number", "batch", "draws", "steps")
    ] + [("seed", ctypes.c_uint64)]


def has_compiler() -> bool:
    """Tell whether g++ is here."""
    return shutil.which("g++") is not None


def compiler() -> str:
    """Say which compiler is here, and with which flags it is called; nothing where
    there is none.
    """
    if not has_compiler():
        return ""
    version = subprocess.run(
        ["g++", "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return f"g++ {version}, " + ", ".join(
        f"{name}: {' '.join(flags)}" for name, flags in FLAGS.items()
    )


@cache
def load(flags: str) -> ctypes.CDLL:
    """Compile the C++ program with the flags of that name, and load it into this
    process.
    """
    folder = Path(tempfile.mkdtemp(prefix="mixture"))
    objects, shared = folder / "mixture.o", folder / "mixture.so"
    # In two steps: where -ffast-math is given to the linker, loading the library
    # switches subnormal numbers off in the whole process.
    subprocess.run(
        [
            "g++",
            *FLAGS[flags],
            "-std=c++17",
            "-fPIC",
            "-c",
            str(SOURCE),
            "-o",
            str(objects),
        ],
        check=True,
    )
    subprocess.run(["g++", "-shared", str(objects), "-o", str(shared)], check=True)
    loaded = ctypes.CDLL(str(shared))
    shutil.rmtree(folder)
    return loaded


def cpp_chain(job: Job, draws: int, seed: int, program: str = "plain") -> np.ndarray:
    """Run one chain of the C++ program ``plain`` or ``fast``, from the true means:
    ``(draws, 2)``.
    """
    data, out = observations(), np.empty((draws, 2))
    out[0] = MEANS
    return _call(f"mixture_{program}", program, job, data, out, seed)


def cpp_double_well(
    job: Job, draws: int, seed: int, program: str = "plain"
) -> np.ndarray:
    """Run SGHMC on the double well in C++, from 0: ``(draws, 1)``."""
    return _call(
        f"well_{program}", program, job, np.empty(0), np.zeros((draws, 1)), seed
    )


def _call(
    name: str, flags: str, job: Job, data: np.ndarray, out: np.ndarray, seed: int
) -> np.ndarray:
    numbers = (
        job.step_size,
        job.friction,
        job.noise_estimate,
        job.noise_variance,
        PRIOR_VARIANCE,
    )
    given = _Job(*numbers, len(data), job.batch_size or 0, len(out), job.steps, seed)
    pointer = ctypes.POINTER(ctypes.c_double)
    getattr(load(flags), name)(
        ctypes.byref(given), data.ctypes.data_as(pointer), out.ctypes.data_as(pointer)
    )
    return out


def kernel(job: Job, compiled: bool = False) -> SGHMC:
    """Make the package's kernel for a job."""
    make = CompiledSGHMC if compiled else SGHMC
    return make(job.step_size, job.friction, job.noise_estimate, num_steps=job.steps)


def package(
    job: Job, chains: int, compiled: bool = False, dtype: torch.dtype = torch.float32
) -> Callable[[int, int], np.ndarray]:
    """Make a function of the number of draws and a seed that runs chains in the
    package, from the true means: ``(draws, chains, 2)``.
    """
    potential, made = posterior(job, dtype), kernel(job, compiled)
    start = torch.tensor(MEANS, dtype=dtype).repeat(chains, 1)
    return lambda draws, seed: sample(
        made, potential, start, draws, seed=seed, progress=False
    ).samples.numpy()


def programs(
    job: Job, chains: int = 10_000, compiled: bool = True
) -> dict[str, tuple[int, Callable[[int, int], np.ndarray]]]:
    """List the programs: name, number of chains, and a function of the number of draws
    and a seed.
    """
    found = {
        "plain Python, 1 chain": (
            1,
            lambda draws, seed: plain_python(job, draws, seed),
        ),
        "NumPy, 1 chain": (1, lambda draws, seed: numpy_chain(job, draws, seed)),
    }
    if has_compiler():
        found["C++ plain, 1 chain"] = (
            1,
            lambda draws, seed: cpp_chain(job, draws, seed, "plain"),
        )
        found["C++ fast, 1 chain"] = (
            1,
            lambda draws, seed: cpp_chain(job, draws, seed, "fast"),
        )
    for number in (1, chains):
        word = f"{number:,} chain{'s' * (number > 1)}"
        found[f"sgmc, {word}"] = (number, package(job, number))
        if compiled and has_compiler():
            found[f"sgmc compiled, {word}"] = (
                number,
                package(job, number, compiled=True),
            )
    return found


def variants(
    job: Job, chains: int = 1
) -> dict[str, tuple[int, Callable[[int, int], np.ndarray]]]:
    """List the variants of the report, with what they vary, as :func:`programs` does;
    they need Numba, and all have one chain.
    """
    functions = {"plain Python": plain_python}
    for injection in ("multivariate normal", "Cholesky", "scaled"):
        functions[f"NumPy, {injection}"] = partial(numpy_chain, injection=injection)
    functions["Numba"] = numba_chain
    if has_compiler():
        functions["C++ plain"] = cpp_chain
    return {name: (1, partial(run, job)) for name, run in functions.items()}


def main() -> None:
    """Print how many steps a second each program takes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20_000)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    for title, job in (("all the data", PRINTED), ("minibatches", MINIBATCH)):
        for name, (chains, function) in programs(job).items():
            draws = max(2, steps // job.steps // (1 if chains == 1 else 50))
            function(2, 0)  # warms up, and compiles
            start = time.process_time()
            function(draws, 1)
            seconds = time.process_time() - start
            print(
                f"{title}, {name:32} "
                f"{seconds / (draws * chains * job.steps) * 1e9:12.1f} ns a step and "
                "chain",
                flush=True,
            )


if __name__ == "__main__":
    main()
