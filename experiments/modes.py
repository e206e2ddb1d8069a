"""The mixture of 25 Gaussians of Zhang et al. (2020): who finds which modes.

Every method takes 50,000 steps with gradients seen through noise N(0, 1), in one chain
or in each of four, from starts U(−10, 10)². SGLD and cSGLD have the settings of the
authors' program, github.com/ruqizhang/csgmcmc (experiments/mog25.m, sgld.m, csgld.m);
the settings of the others, and of both once more, are chosen by tuning runs from other
starts. All know the noise, B̂ = ½ηV. All seeds go at once, each with five chains: its
first is the setting with one chain, the others that with four.
"""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Generator, Tensor

from booklib.runs.results import circumstances
from experiments.study import Experiment, Options, grid, study
from sgmc import sample
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import SGHMC, SGLD, Kernel
from sgmc.kernels.langevin import SGLDState
from sgmc.other_kernels import Cyclical
from sgmc.randomness import derived_seed
from sgmc.targets import GaussianMixture, NoisyGradient

STEPS, CYCLES, NOISE, RINGS = 50_000, 30, 1.0, 4
SKIPPED = 50 / 1667  # the share of a cycle that is not kept
# the chains' places among the five of a seed
CHAINS = {"one chain": slice(0, 1), "four chains": slice(1, 5)}
TUNING_CHAINS, TUNING_SEED = 20, 10_000
WITHIN = 3  # a draw finds a mode within so many standard deviations of its mean
# the share of the draws that a mode has to exceed to be found
SHARES = {"any": 0.0, "0.1 %": 1e-3, "1 %": 1e-2}


class Modes(GaussianMixture):
    """The mixture with its gradient by hand, four times as fast: (θ − Σₖwₖμₖ)/σ²."""

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U: ``(chains, dim)`` → ``(chains, dim)``."""
        squares = (position[:, None] - self.means).square().sum(-1)
        weights = torch.softmax(-squares / (2 * self.variance), -1)
        return (position - weights @ self.means) / self.variance


def langevin(rate: float) -> SGLD:
    """Make SGLD with the exact noise of the gradient."""
    return SGLD(rate, noise_estimate=NOISE * rate / 2)


def hamiltonian(rate: float, decay: float) -> SGHMC:
    """Make SGHMC with the exact noise of the gradient."""
    return SGHMC.from_learning_rate(rate, decay, NOISE * rate / 2)


@dataclass(frozen=True, eq=False)
class Falling(Kernel):
    """SGLD with a step size that is constant for a while and then falls as t^−γ."""

    rate: float  #: η at first
    held: int = 500  #: number of steps for which it stays
    exponent: float = 0.55  #: γ

    def step_size(self, step: int) -> float:
        """Return η after so many steps."""
        return self.rate * max(1, step + 1 - self.held) ** -self.exponent

    def init(self, potential, position: Tensor, generator: Generator) -> SGLDState:
        """Start at a position ``(chains, dim)``."""
        return langevin(self.rate).init(potential, position, generator)

    def step(self, potential, state: SGLDState, generator: Generator) -> tuple:
        """Take one step."""
        kernel = langevin(self.step_size(state.num_gradients))
        return kernel.step(potential, state, generator)


def draw(
    kernel: Kernel, start: Tensor, num_samples: int, seed: int, warm_up: int = 0
) -> Tensor:
    """Sample the mixture from starts ``(chains, 2)``: ``(draws, chains, 2)``."""
    potential, given = NoisyGradient(Modes(), NOISE), {"warm_up": warm_up, "seed": seed}
    with warnings.catch_warnings():
        # That chains do not agree is the subject here.
        warnings.simplefilter("ignore")
        draws = sample(kernel, potential, start, num_samples, progress=False, **given)
    if not draws.complete:
        raise KeyboardInterrupt
    return draws.samples


def falling(start: Tensor, steps: int, seed: int, rate: float, held=500) -> Tensor:
    """Keep every step of SGLD with a falling step size."""
    return draw(Falling(rate, held), start, steps, seed)


def constant(start: Tensor, steps: int, seed: int, rate: float, decay=None) -> Tensor:
    """Keep 99 in 100 steps of SGLD or, with a decay, of SGHMC."""
    kernel = langevin(rate) if decay is None else hamiltonian(rate, decay)
    return draw(kernel, start, steps - steps // 100, seed, warm_up=steps // 100)


def cyclical(start: Tensor, steps: int, seed: int, cycles=CYCLES, **more) -> Tensor:
    """Keep every step of the sampling stages of :func:`cycle`."""
    kernel, length = cycle(steps, cycles=cycles, **more)
    return draw(kernel, start, cycles * length, seed)


def cycle(
    steps: int, rate: float, cycles=CYCLES, exploration=SKIPPED, decay=None
) -> tuple[Cyclical, int]:
    """Make SGLD or, with a decay, SGHMC in cycles, and count the steps of a stage."""
    length = math.ceil(steps / cycles)
    sampling = length - math.ceil(round(exploration * length, 9))
    make = langevin if decay is None else partial(hamiltonian, decay=decay)
    return Cyclical(make, rate, length, sampling, exploration), sampling


def restarted(start: Tensor, steps: int, seed: int, rate: float) -> Tensor:
    """Start SGLD with a falling step size anew for each published cycle."""
    length = math.ceil(steps / CYCLES)
    skipped = math.ceil(round(SKIPPED * length, 9))
    starts, kept = _starts(start, CYCLES, seed), length - skipped
    return _again(draw(Falling(rate), starts, kept, seed, warm_up=skipped), CYCLES)


def fresh_cycles(start: Tensor, steps: int, seed: int, cycles: int, **more) -> Tensor:
    """Sample by cycles of SGLD, each of which has a start of its own."""
    kernel, length = cycle(steps, cycles=cycles, **more)
    return _again(draw(kernel, _starts(start, cycles, seed), length, seed), cycles)


def _starts(start: Tensor, number: int, seed: int) -> Tensor:
    """Add starts to each chain's, ``(chains, 2)`` → ``(chains · number, 2)``."""
    generator = Generator().manual_seed(derived_seed(seed, "restarts"))
    further = torch.rand(len(start), number - 1, 2, generator=generator)
    return torch.cat([start[:, None], 20 * further - 10], 1).flatten(0, 1)


def _again(samples: Tensor, number: int) -> Tensor:
    """Join the restarts of each chain, ``(draws · number, chains, 2)``."""
    return samples.unflatten(1, (-1, number)).permute(2, 0, 1, 3).flatten(0, 1)


# A method takes starts, a number of steps, a seed, and settings by name.
Method = Callable[..., Tensor]
RATES = (0.01, 0.02, 0.03, 0.035, 0.04, 0.043, 0.046, 0.05, 0.054, 0.058)
MANY = {"cycles": (30, 100, 300, 1_000), "exploration": (0.5, 0.8)}
DECAYS = (0.1, 0.3, 0.9)
FALLING = grid(rate=(0.043, 0.05, 0.055), held=(500, 10_000, 40_000))
FEWER = {"cycles": (300, 1_000), "exploration": (0.5, 0.8), "decay": DECAYS}
METHODS: dict[str, tuple[Method, list[dict]]] = {
    "SGLD": (falling, grid(rate=0.043)),
    "cSGLD": (cyclical, grid(rate=0.07)),
    "SGLD, restarted": (restarted, grid(rate=0.043)),
    "SGLD, tuned": (falling, FALLING),
    "SGLD, constant": (constant, grid(rate=RATES)),
    "SGHMC": (constant, grid(rate=(0.04, 0.05, 0.06, 0.07, 0.08), decay=DECAYS)),
    "fresh cycles, tuned": (fresh_cycles, grid(rate=(0.03, 0.07), **MANY)),
    "cSGLD, tuned": (cyclical, grid(rate=(0.06, 0.07, 0.08), **MANY)),
    "cSGHMC, tuned": (cyclical, grid(rate=(0.07, 0.1, 0.13), **FEWER)),
}


def measure(samples: Tensor) -> dict:
    """Measure how draws ``(draws, chains, 2)``, all chains together, lie among the
    modes.

    Returns:
        ``found``, the number of modes with a share of the draws within three standard
        deviations; ``mass``, the share nearest to each mean; ``modes_tv``, the total
        variation of these shares from 1/25; ``cells_tv``, that over a hundred cells of
        probability 1/100, four rings about each mean; ``variance``, about the means.
    """
    mixture, number = GaussianMixture(), len(samples) * samples.shape[1]
    modes, cells, inside = torch.zeros(25), torch.zeros(25 * RINGS), torch.zeros(25)
    squares, exactly = 0.0, "donot_use_mm_for_euclid_dist"
    for part in samples.flatten(0, 1).split(100_000):
        distances = torch.cdist(part, mixture.means, compute_mode=exactly)
        distance, mode = distances.min(-1)
        square = distance.square() / mixture.variance
        # The square |θ − μ|²/σ² is exponential with mean 2.
        ring = (-torch.expm1(-square / 2) * RINGS).long().clamp(max=RINGS - 1)
        modes += torch.bincount(mode, minlength=25)
        cells += torch.bincount(mode * RINGS + ring, minlength=25 * RINGS)
        inside += torch.bincount(mode[square < WITHIN**2], minlength=25)
        squares += float(distance.double().square().sum())
    found = {name: int((inside / number > each).sum()) for name, each in SHARES.items()}
    return {
        "found": found,
        "mass": [round(share, 6) for share in (modes / number).tolist()],
        "modes_tv": round(float((modes / number - 1 / 25).abs().sum() / 2), 6),
        "cells_tv": round(float((cells / number - 1 / len(cells)).abs().sum() / 2), 6),
        "variance": round(squares / number / 2, 6),
    }


def starts(seeds: range) -> Tensor:
    """Draw where the five chains of each seed start, ``(5 · seeds, 2)``."""
    generators = (Generator().manual_seed(seed) for seed in seeds)
    return torch.cat([20 * torch.rand(5, 2, generator=one) - 10 for one in generators])


def prepare(options: Options) -> Path:
    """Name the folder for finished results."""
    return options.folder("modes")


def run(options: Options, prepared: Path) -> Iterator[dict]:
    """Yield the result after each method; all seeds go at once."""
    steps, few = (1_000, 2) if options.small else (STEPS, None)
    fixed = {"steps": steps, "within": WITHIN}

    def tried(name: str, number: int, settings: dict) -> dict:
        return try_settings(METHODS[name][0], settings, steps)

    def ran(name: str, settings: dict, number: int) -> dict:
        return all_seeds(METHODS[name][0], settings, steps, number)

    choices = {name: settings[:few] for name, (_, settings) in METHODS.items()}
    given = [options.seeds], tried, ran, lambda row: row["cells_tv"]
    for found in study(choices, *given, prepared, steps=steps):
        methods = {name: {**each, **each["runs"][0]} for name, each in found.items()}
        yield {**fixed, "methods": methods}


def try_settings(method: Method, settings: dict, steps: int) -> dict:
    """Try settings by many chains, each of which is a trial with one chain."""
    begun = starts(range(TUNING_SEED, TUNING_SEED + TUNING_CHAINS // 5))
    try:
        samples = method(begun, steps, TUNING_SEED, **settings)
    except DivergenceError:
        return {"settings": settings, "diverged": True}
    rows = [measure(samples[:, [chain]]) for chain in range(TUNING_CHAINS)]
    number = len(rows)
    found = {name: sum(row["found"][name] for row in rows) / number for name in SHARES}
    means = {
        name: round(sum(row[name] for row in rows) / number, 6)
        for name in ("modes_tv", "cells_tv", "variance")
    }
    return {"settings": settings, "found": found, **means}


def all_seeds(method: Method, settings: dict, steps: int, seeds: int) -> dict:
    """Run the five chains of all seeds."""
    samples = method(starts(range(seeds)), steps, 0, **settings)
    runs = [{"seed": seed} for seed in range(seeds)]
    for seed, (name, chains) in itertools.product(range(seeds), CHAINS.items()):
        own = samples[:, 5 * seed : 5 * seed + 5]
        runs[seed][name] = measure(own[:, chains])
    return {"made": circumstances(), "draws": len(samples), "runs": runs}


EXPERIMENT = Experiment(prepare, run)
