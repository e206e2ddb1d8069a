"""Steps before and after tuning: find a mode, and compare with half the step."""

from dataclasses import replace
from typing import Any, NamedTuple

import torch
from scipy.special import stdtrit
from torch import Tensor

from sgmc.checks import check_count, check_instance, check_positive
from sgmc.door.draws import Draws
from sgmc.door.remarks import remark_disagreement
from sgmc.door.sampling import sample
from sgmc.door.starting import check_start
from sgmc.kernels.base import Kernel
from sgmc.noise import OnlineNoise
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed
from sgmc.tuning.defaults import DefaultSGHMC

# the probability that half the step seems to change an answer by chance
FALSE_ALARMS = 1e-3
FACTOR = 2.0  # a larger change of a standard deviation must not go unseen


def find_mode(potential: Potential, position: Tensor, max_steps: int = 300) -> Tensor:
    """Descend to modes from every chain's start ``(chains, dim)``, by at most so many
    steps of L-BFGS with all the data.

    Raises:
        ValueError: if the energy falls without end, or is not finite on the way.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> find_mode(DoubleWell(), torch.tensor([[0.5], [-3.0]])).round(decimals=3)
        tensor([[ 1.],
                [-1.]])
    """
    check_start(potential, position, 0)
    check_count("max_steps", max_steps)
    mode = position.detach().clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [mode], max_iter=max_steps, line_search_fn="strong_wolfe"
    )

    def energy() -> Tensor:
        with torch.no_grad():
            value, mode.grad = potential.energy_and_gradient(mode.detach())
        return value.sum()

    optimiser.step(energy)
    mode = mode.detach()
    if not (mode.isfinite().all() and potential.energy(mode).isfinite().all()):
        raise ValueError(
            "no mode was found from the position: the energy falls without end, or is "
            "not finite on the way; give a prior, standardise inputs of very "
            "different scales, or start elsewhere"
        )
    return mode


def standard_deviations(run: Draws, reference: Draws) -> tuple[Tensor, Tensor]:
    """Compute the ratios of a run's standard deviations to those of another, about the
    mean of the other, and their standard errors from the spread of the chains, both
    ``(dim,)``.

    Example:
        >>> one = Draws(torch.tensor([[[2.0], [-2.0]], [[-2.0], [2.0]]]))
        >>> other = Draws(torch.tensor([[[1.0], [-1.0]], [[-1.0], [1.0]]]))
        >>> standard_deviations(one, other)[0]
        tensor([2.], dtype=torch.float64)
    """
    check_instance("run", run, Draws, "those of sample(...)")
    check_instance("reference", reference, Draws, "those of sample(...)")
    centre = reference.mean_and_standard_error()[0]
    (ours, error), (theirs, its) = (
        draws.mean_and_standard_error(lambda x: (x - centre) ** 2)
        for draws in (run, reference)
    )
    ratio = (ours / theirs).sqrt()
    return ratio, 0.5 * ratio * ((error / ours) ** 2 + (its / theirs) ** 2).sqrt()


class HalfStep(NamedTuple):
    """The result of :func:`half_step`; printed, it is a sentence.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.targets import Gaussian
        >>> kernel, start = SGHMC(0.1, friction=2.0, num_steps=20), torch.zeros(20, 1)
        >>> look = half_step(kernel, Gaussian.standard(1), start, 50, warm_up=10)
        >>> look.kernel.step_size, look.means.shape, look.draws.samples.shape
        (0.05, torch.Size([1]), torch.Size([50, 20, 1]))
    """

    means: Tensor  #: z of the differences of means, (dim,)
    standard_deviations: Tensor  #: z of the ratios of standard deviations, (dim,)
    limit: float  #: the largest of these exceeds it by chance once in 1,000 times
    verdict: str  #: their meaning in a sentence
    kernel: Kernel  #: the kernel with half the step
    draws: Draws  #: the samples of this kernel

    def __str__(self) -> str:
        return self.verdict


def half_step(
    kernel: Kernel,
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    warm_up: int = 0,
    thinning: int = 1,
    seed: int = 0,
    progress: bool = True,
) -> HalfStep:
    """Sample with a kernel and with half its step for the same time, and tell whether
    means and standard deviations differ.

    Errors that come from the step, or from a noise estimate that is wrong, fall with
    it; what does not depend on the step, such as a wrong model, is not seen. Nor is
    there a verdict where errors are so large that twice the standard deviation might
    be missed. A fixed noise estimate ½εV is halved with the step.

    The verdict says which change would have been seen: with the kernel and the twenty
    chains of :func:`~sgmc.tuning.tune` in five coordinates one of a standard deviation
    by about 30 % with 25 samples, 15 % with 100 and 7 % with 400. An error that falls
    with the step is twice the change.

    Args:
        kernel: a kernel with a step size that is a number, such as SGHMC.
        potential: the target.
        position: where the chains start, ``(chains, dim)``: twenty see far more than
            four.
        num_samples: number of draws of each chain.
        warm_up: number of draws to throw away first.
        thinning: number of steps of the kernel from one draw to the next.
        seed: of both runs, which are independent.
        progress: whether to show progress bars.

    Raises:
        ValueError: if the kernel has no step size to halve, or there is one chain.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target, start = (
        ...     NoisyGradient(Gaussian.standard(2), 40.0),
        ...     torch.zeros(40, 2),
        ... )
        >>> deaf = SGHMC(step_size=0.1, friction=3.0, num_steps=20)  # to the noise
        >>> print(half_step(deaf, target, start, 100, warm_up=10).verdict[:40])
        half the step changes the answer: |z| is
    """
    check_start(potential, position, seed)
    check_count("warm_up", warm_up, at_least=0)
    check_count("thinning", thinning)
    half, factor = _halved(kernel)
    if len(position) < 2:
        raise ValueError(
            "position has one chain, but the errors come from the spread between "
            "chains: give two or more, (chains, dim)"
        )

    def draw(kernel: Kernel, times: int, seed: int) -> Draws:
        length: Any = dict(
            warm_up=times * warm_up * thinning, thinning=times * thinning
        )
        length |= dict(seed=seed, progress=progress)
        return sample(kernel, potential, position, num_samples, **length)

    run = draw(kernel, 1, seed)
    other = draw(half, factor, derived_seed(seed, "half the step"))
    mean, error = run.mean_and_standard_error()
    other_mean, other_error = other.mean_and_standard_error()
    means = (mean - other_mean) / (error**2 + other_error**2).sqrt()
    ratio, error = standard_deviations(run, other)
    deviations = (ratio - 1) / error
    number = 2 * position.shape[1]
    limit = float(stdtrit(len(position) - 1, 1 - FALSE_ALARMS / (2 * number)))
    found = {"means": means, "standard deviations": deviations}
    worst = max(found, key=lambda name: float(found[name].abs().max()))
    largest, where = (float(each) for each in found[worst].abs().max(0))
    chance = f"{limit:.3g}, which {number} numbers exceed by chance once in 1,000 times"
    visible = limit * float(error.max())
    verdict = (
        f"half the step makes no difference that can be seen: |z| is at most "
        f"{largest:.3g}, below {chance}. A standard deviation that changes by "
        f"{visible:.0%} would be seen"
    )
    if not visible < FACTOR - 1:  # NaN means that chains grew beyond all numbers
        verdict = (
            f"half the step tells nothing: a standard deviation that is {FACTOR:g} "
            "times as large may not be seen. Take twenty chains, or more samples; and "
            "if the samples grow, a smaller step_size"
        )
    if largest > limit:
        verdict = (
            f"half the step changes the answer: |z| is {largest:.3g} for the {worst} "
            f"of coordinate {where:.0f}, above {chance}. Take half the step (kernel), "
            "and halve again"
        )
    if any(remark_disagreement({"": torch.as_tensor(x.samples)}) for x in (run, other)):
        verdict = "half the step tells nothing: the chains of a run do not agree"
    return HalfStep(means, deviations, limit, verdict, half, other)


def _halved(kernel: Any) -> tuple[Kernel, int]:
    """Return the kernel with half the step, and how many of its steps replace one."""
    if isinstance(kernel, DefaultSGHMC):
        return kernel.halved(), 1
    step_size: Any = getattr(kernel, "step_size", None)
    check_positive("kernel.step_size", step_size)
    changes, factor = {"step_size": step_size / 2}, 2
    estimate = getattr(kernel, "noise_estimate", None)
    if estimate is not None and not isinstance(estimate, OnlineNoise):
        changes["noise_estimate"] = 0.5 * estimate
    if hasattr(kernel, "num_steps"):
        changes["num_steps"], factor = 2 * kernel.num_steps, 1
    return replace(kernel, **changes), factor
