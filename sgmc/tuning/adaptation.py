"""Warm-up that tunes the step size by dual averaging, and the mass by the variances of
the draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_number, warn
from sgmc.door.remarks import name_chains
from sgmc.door.running import drive
from sgmc.door.starting import check_kernel, check_start
from sgmc.integrators import draw_momentum, kinetic_energy, leapfrog
from sgmc.kernels.base import Kernel
from sgmc.kernels.metropolis import Guarded
from sgmc.matrices import Matrix, in_double
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed

STEP_SIZES = (1e-12, 1e12)  # beyond these something else is wrong


class DualAveraging:
    """Find the step size at which the mean acceptance is a* (Hoffman and Gelman, 2014,
    Section 3.2), from ε₁.

    After step t with acceptance aₜ, where h̄ₜ = (1 − w)h̄ₜ₋₁ + w(a* − aₜ) with w = 1/(t
    + t₀): log εₜ₊₁ = μ − (√t/γ)h̄ₜ, and log ε̄ₜ = t^−κ log εₜ₊₁ + (1 − t^−κ) log ε̄ₜ₋₁
    is its average; μ = log 10ε₁, γ = 0.05, t₀ = 10, κ = 0.75. No step is less than
    1e-12; a ValueError says so if one grows beyond 1e12.

    Example:
        >>> averaging = DualAveraging(step_size=1.0, target=0.8)
        >>> for _ in range(5000):
        ...     averaging.update(math.exp(-averaging.step_size))
        >>> round(averaging.average, 2)  # −log 0.8 is 0.223
        0.22
    """

    def __init__(self, step_size: float, target: float):
        self.step_size, self.average, self.target = step_size, step_size, target
        self.centre, self.shortfall, self.time = math.log(10 * step_size), 0.0, 0

    def update(self, acceptance: float) -> None:
        """Record the acceptance of the last step; set ``step_size`` and ``average``."""
        self.time += 1
        weight = 1 / (self.time + 10)
        self.shortfall += weight * (self.target - acceptance - self.shortfall)
        logarithm = self.centre - math.sqrt(self.time) / 0.05 * self.shortfall
        logarithm = max(logarithm, math.log(STEP_SIZES[0]))
        if logarithm > math.log(STEP_SIZES[1]):
            raise ValueError(
                "the step_size has grown to 1e12, and the acceptance is still above "
                f"target_acceptance = {self.target}: does the kernel report how often "
                "it would accept, and is the potential bounded below?"
            )
        forgetting = self.time**-0.75
        self.step_size = math.exp(logarithm)
        kept = (1 - forgetting) * math.log(self.average)
        self.average = math.exp(forgetting * logarithm + kept)


def adapt(
    kernel: Kernel,
    potential: Potential,
    position: Tensor,
    num_steps: int,
    *,
    seed: int = 0,
    target_acceptance: float = 0.8,
    progress: bool = True,
) -> tuple[Kernel, Tensor]:
    """Warm up a kernel: move the chains to the bulk of the distribution, and tune the
    step size and a diagonal mass, the same for all chains.

    The step size follows the mean acceptance of all chains by
    :class:`~sgmc.tuning.adaptation.DualAveraging`. After a first tenth of the steps the
    draws of all chains are gathered in windows that double; at the end of each the mass
    becomes the inverse of the draws' variances, and the search for the step size starts
    anew. The last fifth is for the step size alone (the schedule of Stan, simplified).

    In the first half of the steps the slowest chain leads instead, that of the least
    acceptance, averaged as a ← 0.9a + 0.1aₜ from a = 0, while this is less than a
    quarter of the target: where it is steep, the others would outvote it. A chain that
    rejects even a step of u^¾ at its start, u being the precision, leads nobody. Chains
    that have not moved in a window have no part in its variances, and one that does not
    move in the last fifth is named in a warning.

    Args:
        kernel: a kernel with a step size and a mass that reports its acceptance, NUTS
            or HMC. Its step size does not matter; its mass is used in the first window.
        potential: the target.
        position: where the chains start, ``(chains, dim)``.
        num_steps: number of steps of the kernel; 100 is little, 1,000 is plenty.
        seed: seed of the warm-up, whose numbers are not those of a run of this seed.
        target_acceptance: the mean acceptance to reach, from 0.01 and below 1.
        progress: whether to show a progress bar.

    Returns:
        The tuned kernel, and positions ``(chains, dim)`` from which to sample.

    Raises:
        ValueError: if the kernel reports no acceptance, or an argument is out of its
            range.

    Example:
        >>> from sgmc.kernels import NUTS
        >>> from sgmc.targets import Gaussian
        >>> target = Gaussian(torch.diag(torch.tensor([1.0, 100.0])))
        >>> kernel, position = adapt(NUTS(1.0), target, torch.zeros(100, 2), 100)
        >>> scales = kernel.mass.rsqrt()
        >>> bool((scales / torch.tensor([1.0, 10.0]) - 1).abs().max() < 0.2)
        True
    """
    check_count("num_steps", num_steps, at_least=20)
    check_number("target_acceptance", target_acceptance, 0.01, 1)
    check_kernel(kernel)
    check_start(potential, position, seed)
    if not all(hasattr(kernel, name) for name in ("step_size", "mass")):
        raise _unsuitable(kernel, "step_size and mass to adapt")
    run = _WarmUp(kernel, potential, position, num_steps, seed, target_acceptance)
    kept = "the kernel is tuned by what was seen so far"
    drive(run, num_steps, title="warm-up", kept=kept, progress=progress)
    # These chains have not moved since the last window, long enough ago for that to be
    # certain.
    stuck = ~run.moments.moved() & (run.done >= run.last + 10)
    if stuck.any():
        warn(
            f"{name_chains(stuck)} did not move in the last {run.done - run.last} "
            "steps of the warm-up, for the step_size that suits the others is too "
            "large there: start elsewhere, or look at the position that is returned "
            "[never-moves]"
        )
    return run.tuned(run.averaging.average, run.mass.value), run.state.position


def _unsuitable(kernel: Kernel, what: str) -> ValueError:
    name = type(kernel).__name__
    return ValueError(f"{name} has no {what}: give a kernel like NUTS or HMC")


@dataclass(eq=False)
class _WarmUp:
    """One call of :func:`adapt`, as a job of :func:`sgmc.door.running.drive`."""

    kernel: Any
    potential: Potential
    start: Tensor
    num_steps: int
    seed: int
    target: float

    def __post_init__(self):
        # One matrix serves all steps, and is factorised once.
        self.mass, self.done = Matrix.of(self.kernel.mass), 0
        seed = derived_seed(self.seed, "warm-up")
        self.generator = Generator(self.start.device).manual_seed(seed)
        first = self.tuned(self.kernel.step_size, self.mass)
        self.state = first.init(self.potential, self.start, self.generator)
        self.ends = _window_ends(self.num_steps)
        self.last, self.lead = self.ends[-1], self.num_steps // 2
        self.moments = _Moments(self.start)
        # Positions still move with this step size.
        able = self.one_step()(torch.finfo(self.start.dtype).eps ** 0.75) > 0.5
        self.able = able if able.any() else ~able
        self.recent = torch.zeros_like(self.start[self.able, 0])
        self.averaging = self.search(1.0, torch.amin)

    def tuned(self, step_size: float, mass: Any) -> Any:
        return replace(self.kernel, step_size=step_size, mass=mass)

    def one_step(self) -> Callable[[float], Tensor]:
        return _one_step_acceptance(
            self.potential, self.state.position, self.mass, self.generator
        )

    def search(self, start: float, over_chains=torch.mean) -> DualAveraging:
        """Start a search for the step size."""
        one_step = self.one_step()
        acceptance = lambda step_size: over_chains(one_step(step_size)[self.able])
        return DualAveraging(_reasonable_step_size(acceptance, start), self.target)

    def advance(self) -> None:
        kernel = self.tuned(self.averaging.step_size, self.mass)
        self.state, info = kernel.step(self.potential, self.state, self.generator)
        self.done += 1
        if not hasattr(info, "acceptance"):
            raise _unsuitable(kernel, "acceptance to adapt by")
        self.averaging.update(self.followed(info.acceptance))
        self.moments.update(self.state.position)
        if self.done in self.ends:
            self.mass = Matrix(1 / self.moments.variance().to(self.start))
        if self.done in (*self.ends, self.num_steps // 10):
            self.moments = _Moments(self.state.position)
        if self.done in (*self.ends, self.lead):
            self.averaging = self.search(self.averaging.average)

    def followed(self, acceptance: Tensor) -> float:
        """Choose the acceptance that the step size follows: the slowest chain's at
        first, as long as it is slow, and later the mean of all.
        """
        acceptance = acceptance[self.able]
        self.recent = 0.9 * self.recent + 0.1 * acceptance
        slowest = int(self.recent.argmin())
        if self.done <= self.lead and self.recent[slowest] < self.target / 4:
            return float(acceptance[slowest])
        return float(acceptance.mean())

    def check(self) -> None:
        pass  # kernels with an acceptance stay where energies are finite


class _Moments:
    """Running mean and variance of the draws of each chain (Welford, 1962), to be
    pooled over the chains that moved; in float64 on the CPU.
    """

    def __init__(self, start: Tensor):
        self.start = self.last = in_double(start)
        self.mean, self.squares = (torch.zeros_like(self.start) for _ in range(2))
        self.count = 0

    def update(self, position: Tensor) -> None:
        """Add a draw of every chain, ``(chains, dim)``."""
        self.count += 1
        self.last = in_double(position)
        shift = self.last - self.mean
        self.mean += shift / self.count
        self.squares += shift * (self.last - self.mean)

    def moved(self) -> Tensor:
        """Tell which chains have left their starts, ``(chains,)``."""
        return (self.last != self.start).any(-1)

    def variance(self) -> Tensor:
        """Estimate the variances ``(dim,)``, shrunk a little towards 0.001 as in Stan,
        which matters for few draws.
        """
        moved = self.moved()
        chosen = moved if moved.any() else ~moved
        mean, squares = self.mean[chosen], self.squares[chosen]
        n = self.count * len(mean)
        between = self.count * (mean - mean.mean(0)).square().sum(0)
        squares = squares.sum(0) + between
        return (n / (n + 5)) * squares / max(n - 1, 1) + 1e-3 * (5 / (n + 5))


def _window_ends(num_steps: int) -> list[int]:
    """Divide the steps between the first tenth and the last fifth into windows that
    double, and return the last step of each.

    Example:
        >>> _window_ends(1000)
        [125, 175, 275, 800]
    """
    first, last = num_steps // 10, num_steps - num_steps // 5
    length, ends = max(5, num_steps // 40), []
    end = first + length
    # Otherwise the next window but one would not fit, and this one takes the rest.
    while end + 2 * length * 2 <= last:
        ends.append(end)
        length *= 2
        end += length
    return [*ends, last]


def _one_step_acceptance(
    potential: Potential, position: Tensor, mass: Matrix, generator: Generator
) -> Callable[[float], Tensor]:
    """Draw momenta, and return the acceptance of one leapfrog step with them as a
    function of ε, ``(chains,)``.
    """
    momentum = draw_momentum(position, mass, generator)
    potential = Guarded(potential, position)
    energy = potential.energy(position) + kinetic_energy(momentum, mass)

    def acceptance(step_size: float) -> Tensor:
        moved, kicked = leapfrog(
            potential.gradient, position, momentum, step_size, 1, mass
        )
        error = potential.energy(moved) + kinetic_energy(kicked, mass) - energy
        return torch.exp(-error.clamp(min=0)).nan_to_num(nan=0.0)

    return acceptance


def _reasonable_step_size(
    acceptance: Callable[[float], Tensor], step_size: float = 1.0
) -> float:
    """Double or halve ε until the acceptance of one leapfrog step crosses ½ (Hoffman
    and Gelman, 2014, Algorithm 4).

    Example:
        >>> _reasonable_step_size(lambda step_size: math.exp(-step_size), 4.0)
        0.5
    """
    factor = 2.0 if acceptance(step_size) > 0.5 else 0.5
    while (acceptance(step_size * factor) > 0.5) == (factor > 1):
        step_size *= factor
        if not STEP_SIZES[0] < step_size < STEP_SIZES[1]:
            raise ValueError(
                "no step size between 1e-12 and 1e12 has an acceptance near one half: "
                "is the potential bounded below and its gradient that of its energy?"
            )
    return step_size * min(factor, 1.0)
