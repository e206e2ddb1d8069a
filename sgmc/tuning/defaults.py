"""Defaults for SGHMC: its step and its friction, from the curvature of an energy and
the noise of its gradient.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.checks import check_dims, check_positive, check_precision, warn
from sgmc.door._models import few_examples
from sgmc.door.running import drive
from sgmc.door.sampling import DivergenceError
from sgmc.door.starting import check_start
from sgmc.kernels.sghmc import SGHMC
from sgmc.matrices import Matrix, as_matrix, in_double
from sgmc.noise import estimate_noise_variance, spare
from sgmc.potentials import Potential
from sgmc.randomness import normal_like
from sgmc.tuning.adaptation import STEP_SIZES

# The unit is a standard deviation; with the friction 2A there is no stationary
# distribution beyond 0.83.
LONGEST_STEP = 0.5
MOST_STEPS = 10_000  # the most steps of a draw
MANY = 200_000  # the gradients of each chain, which tune announces before it takes them
LOUD = 100  # the noise over curvature from which the chains of tune take all the data
FULL = 200  # up to so many coordinates curvature and noise are whole matrices
FLAT = 1e-6  # the share of the largest curvature below which a direction counts as flat
_CHAINS, _DRAWS = 20, 10  # chains and draws of a turn of tune
_LOOKS = 10  # the number of random directions
_TOGETHER = 64  # the number of positions at which gradients are computed at once


def matched_noise_estimate(
    curvature: float | Tensor,
    noise_variance: float | Tensor,
    step_size: float,
    friction: float | Tensor,
    mass: float | Tensor = 1.0,
) -> float | Tensor:
    """Compute the B̂ with which SGHMC has exactly the covariance A⁻¹ on U(θ) = ½θᵀAθ,
    at any step size at which it is stable.

    B̂ = ½εV + ⅛ε²(CKA + AKC) with K = (M − ½εC)⁻¹: the first part is the gradient's
    noise, the second what the step itself widens. Then Cov(θ) = A⁻¹, Cov(r) = MKM and
    Cov(θ, r) = −½εKM. All matrices are numbers, ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if a matrix is invalid, M − ½εC − ¼ε²A is not positive definite, so
            that there is no stationary distribution, or B̂ exceeds C.

    Example:
        >>> matched_noise_estimate(2.0, 4.0, step_size=0.5, friction=3.0)
        2.5
    """
    check_positive("step_size", step_size, at_most=STEP_SIZES[1])
    check_dims(
        curvature=curvature, noise_variance=noise_variance, friction=friction, mass=mass
    )
    a = as_matrix(curvature, "curvature", positive=True)
    v = as_matrix(noise_variance, "noise_variance")
    c = as_matrix(friction, "friction")
    m = as_matrix(mass, "mass", positive=True)
    damped = m - 0.5 * step_size * c
    if min((damped - 0.25 * step_size**2 * a).eigenvalues) <= 0:
        raise ValueError(
            f"step_size is {step_size:g}, at which no stationary law exists: take a "
            "smaller one, or a larger mass"
        )
    half = c @ damped.inverse @ a
    estimate = 0.5 * step_size * v + 0.125 * step_size**2 * (half + half.transposed)
    spare(1.0, c, estimate, "friction")
    return estimate.value


@dataclass(frozen=True, eq=False, repr=False)
class DefaultSGHMC(SGHMC):
    """The SGHMC of :func:`default_kernel`, which explains the choices.

    Example:
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target = NoisyGradient(Gaussian.standard(2, torch.float64), 40.0)
        >>> kernel = default_kernel(target, torch.zeros(1, 2, dtype=torch.float64))
        >>> print(kernel.reason[:31])
        whole matrices of 2 coordinates
    """

    step_size: float
    noise_estimate: float | Tensor = 0.0
    mass: float | Tensor = 1.0
    reason: str = ""  #: what was measured, and what was chosen from it
    #: for which it was tuned; mass, friction and noise estimate grow like it
    num_examples: int | None = None

    def __repr__(self) -> str:
        size = f"step_size={self.step_size:.4g}, num_steps={self.num_steps}"
        return f"SGHMC({size}): {self.reason}"

    def __str__(self) -> str:
        return repr(self).replace(": ", ":\n  ").replace("; ", "\n  ")

    def init(self, potential, position, generator):
        """Start at the given position ``(chains, dim)``, as SGHMC does."""
        number = getattr(potential, "num_examples", None)
        if None not in (number, self.num_examples) and number != self.num_examples:
            raise ValueError(
                f"the kernel was tuned for {self.num_examples:,} examples, but the "
                f"potential has {number:,}, and curvature and noise grow with them: "
                "tune again, by default_kernel(potential, position)"
            )
        return super().init(potential, position, generator)

    def halved(self) -> "DefaultSGHMC":
        """Make the kernel with half the step size, the noise estimate that matches it,
        and twice the steps.

        Example:
            >>> from sgmc.targets import Gaussian
            >>> kernel = default_kernel(Gaussian.standard(1), torch.zeros(1, 1))
            >>> kernel.step_size, kernel.halved().step_size, kernel.halved().num_steps
            (0.5, 0.25, 8)
        """
        step, half = self.step_size, self.step_size / 2
        # With M = A and C = 2A the step itself widens by ½ε²A/(1 − ε).
        noise = self.noise_estimate - step**2 / (2 - 2 * step) * self.mass  # ½εV
        return replace(
            self,
            step_size=half,
            noise_estimate=0.5 * noise + half**2 / (2 - 2 * half) * self.mass,
            num_steps=2 * self.num_steps,
        )


def default_kernel(
    potential: Potential,
    position: Tensor,
    seed: int = 0,
    step_size: float | None = None,
) -> DefaultSGHMC:
    """Tune SGHMC from the curvature A of the energy and the covariance V of the
    gradient noise at a mode, or averaged over some draws.

    M = A, C = 2A (critical damping), ε = min(½, 2/ν) where ν is the largest eigenvalue
    of A⁻¹V, B̂ from :func:`matched_noise_estimate`, and a draw every 2/ε steps, but at
    most 10,000. On a Gaussian with constant noise the draws have exactly the target's
    covariance; elsewhere compare with half the step size, by
    :func:`~sgmc.tuning.half_step`, or tune again at the draws. With N examples and
    minibatches of n, ν is about N/n − 1: tune with all the examples, not with some.

    Up to 200 coordinates A and V are whole matrices. Beyond, both are diagonals: A's
    entries are the lengths of the rows of ∇²U, from products ∇²U z with random signs z,
    and ε = min(1/(2√κ), 2/ν), κ being the curvature of the stiffest direction after
    division by A, and ν its noise. Noise that coordinates share is not subtracted.

    Args:
        potential: the target, with its minibatches.
        position: a mode ``(1, dim)``, such as that of :func:`~sgmc.tuning.find_mode`,
            or draws ``(chains, dim)``, over which curvature and noise are averaged.
        seed: seed of the minibatches and directions.
        step_size: ε in place of the default; B̂ is matched to it.

    Raises:
        ValueError: if the step is too long, or the noise is missing or that of
            minibatches of one example.

    Warns:
        UserWarning: if the position is neither near a mode nor like a draw, the energy
            is flat or curves downwards, or a draw would take more than 10,000 steps.

    Example:
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target = NoisyGradient(Gaussian.standard(2, torch.float64), 40.0)
        >>> default_kernel(target, torch.zeros(1, 2, dtype=torch.float64))
        SGHMC(step_size=0.05, num_steps=40): whole matrices of 2 coordinates; noise up
        to 40 times the curvature, 50% of what friction needs
    """
    look = _Look(potential, position, seed)
    if look.far:
        warn(
            f"the position is at no mode and like no draw: it is some {look.far:.3g} "
            "standard deviations from a mode, so that curvature and noise may be "
            "others where the mass is: give find_mode(potential, position), or draws "
            "[no-mode]"
        )
    kernel = look.kernel(step_size)
    if kernel.num_steps * kernel.step_size < 1.99:  # a draw takes the time εm = 2
        warn(
            f"num_steps is {kernel.num_steps:,}, where a step_size of "
            f"{kernel.step_size:.3g} needs {2 / kernel.step_size:,.0f} for draws that "
            "are nearly independent: keep more of them, or take a larger batch_size "
            "[slow]"
        )
    return kernel


def tune(
    potential: Potential,
    position: Tensor,
    seed: int = 0,
    progress: bool = True,
) -> tuple[DefaultSGHMC, Tensor]:
    """Tune SGHMC at a mode, then at draws from there, then at draws from these, because
    the curvature of a mode may occur nowhere else.

    Twice, twenty chains make ten draws with a quarter of the step, and
    :func:`default_kernel` averages curvature and noise over where they are. Each chain
    takes about 160/ε gradients of minibatches, ε being the step size at the mode: 320
    where they are quiet, 80ν where the noise is ν times the curvature, which in a model
    that fits are 80 passes over the data. Up to 200 coordinates and beyond ν = 100 it
    takes 320 gradients of all the data instead. A warning announces more than 200,000.
    Ctrl-C stops it after its present draw, a second one at once.

    Args:
        potential: the target, with its minibatches.
        position: a mode ``(1, dim)``, such as that of :func:`~sgmc.tuning.find_mode`,
            or several ``(chains, dim)``.
        seed: seed of the measurements and of the chains.
        progress: whether to show a progress bar.

    Returns:
        The kernel, and the draws at which it was tuned, ``(20, dim)``, or ``(chains,
        dim)`` if there are more: start from them.

    Raises:
        ValueError: as :func:`default_kernel` does, or if the position is far away.
        DivergenceError: if a chain diverges with a quarter of the step.

    Example:
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target = NoisyGradient(Gaussian.standard(2, torch.float64), 40.0)
        >>> kernel, start = tune(target, torch.zeros(1, 2, dtype=torch.float64))
        >>> round(kernel.step_size, 6), start.shape
        (0.05, torch.Size([20, 2]))
    """
    tuning, total = _Tuning(potential, position, seed), 2 * _DRAWS
    number = total * tuning.kernel.num_steps
    if number > MANY:
        warn(
            f"tune takes about {number:,} gradients of minibatches in each of "
            f"{len(tuning.state.position)} chains; larger batches need fewer [slow]"
        )
    words: Any = dict(unit="draw", title="tuning", kept="the kernel is not tuned yet")
    drive(tuning, total, progress=progress, **words)
    if tuning.done < total:
        raise KeyboardInterrupt
    return default_kernel(potential, tuning.position, seed), tuning.position


class _Tuning:
    """One call of :func:`tune`, as a job of :func:`sgmc.door.running.drive`."""

    def __init__(self, potential: Potential, position: Tensor, seed: int):
        self.potential, self.position, self.seed = potential, position, seed
        self.done = 0
        self.begin()

    def begin(self) -> None:
        """Measure the positions, and start chains there with a quarter of the step."""
        with warnings.catch_warnings():
            # The warnings about a mode no longer hold for draws.
            warnings.simplefilter("ignore")
            look = _Look(self.potential, self.position, self.seed)
        if look.far and look.kernel().num_steps == MOST_STEPS:
            raise ValueError(
                f"position is some {look.far:.3g} standard deviations from a mode, and "
                "its gradients are so noisy that chains would hardly leave it: begin "
                "at find_mode(potential, position)"
            )
        self.target = self.potential
        if look.curvature.ndim == 2 and look.loudness > LOUD:
            self.target = Potential()  # all the data give the exact gradient
            self.target.energy = self.potential.energy
            self.target.gradient = self.potential.gradient
            look.noise, look.loudness = 0 * look.noise, 0.0
        step_size = look.kernel().step_size / 4
        self.kernel = look.kernel(step_size, 4 * MOST_STEPS)
        chains = max(_CHAINS, len(self.position))
        start = self.position.repeat(math.ceil(chains / len(self.position)), 1)
        self.generator = Generator(start.device)
        self.generator.manual_seed(self.seed + self.done // _DRAWS)
        self.state = self.kernel.init(self.target, start[:chains], self.generator)

    def advance(self) -> None:
        self.state, _ = self.kernel.step(self.target, self.state, self.generator)
        self.done += 1
        if self.done % _DRAWS == 0:
            self.check()
            self.position = self.state.position
            if self.done == _DRAWS:
                self.begin()

    def check(self) -> None:
        if not self.state.position.isfinite().all():
            raise DivergenceError(
                f"a chain diverged with the step_size {self.kernel.step_size:.3g}: the "
                "energy is far from quadratic at the position; start from draws",
                None,
            )


class _Look:
    """Measurements at some positions: the curvature A, the noise V, its loudness ν, the
    stiffness κ, and how many standard deviations it is ``far`` from a mode, 0 if near.
    """

    def __init__(self, potential: Potential, position: Tensor, seed: int):
        check_start(potential, position, seed)
        check_precision("position", position)
        generator = Generator(position.device).manual_seed(seed)
        chains, dim = position.shape
        self.num_examples = getattr(potential, "num_examples", None)
        with torch.no_grad():
            if dim <= FULL:
                self.curvature, self.stiffness = _hessian(potential, position), 1.0
                self.form = f"whole matrices of {dim} coordinates"
                rows = 400 * dim  # examples to measure, over all positions
                size = getattr(potential, "batch_size", None) or rows
                looks = math.ceil(rows / (chains * size))  # minibatches a position
                together = min(looks, math.ceil(_TOGETHER / chains))
                many, number = position.repeat(together, 1), math.ceil(looks / together)
                given = potential, many, generator, "full", number
                noise = torch.as_tensor(estimate_noise_variance(*given))
                self.noise = _without_negative(_symmetric(noise))
                root = Matrix(self.curvature).root.inverse
                self.loudness = max((root @ Matrix(self.noise) @ root).eigenvalues)
            else:
                # The rows of ∇²U have the lengths (E[(∇²U z)ⱼ²])^½ over random signs z.
                signs = normal_like(position[:1].expand(_LOOKS, -1), generator).sign()
                lengths = _curved(potential, position, signs).square().mean(0).sqrt()
                self.curvature = lengths.clamp(min=FLAT * float(lengths.max()))
                given = potential, position, generator, "diagonal", 10
                self.noise = torch.as_tensor(estimate_noise_variance(*given))
                given = potential, position, self.curvature, generator
                self.stiffness, along = _stiffest(*given)
                self.loudness = max(along, float((self.noise / self.curvature).max()))
                self.form = f"diagonals, the stiffest direction {self.stiffness:.3g} "
                self.form += f"times as curved, of {dim} coordinates"
                root = Matrix(self.curvature.rsqrt())
            self.far = _distance(root @ potential.gradient(position))

    def kernel(
        self, step_size: float | None = None, most: int = MOST_STEPS
    ) -> DefaultSGHMC:
        """Choose the kernel, with the given step size if there is one."""
        if step_size is None:
            longest = LONGEST_STEP / math.sqrt(self.stiffness)
            step_size = min(longest, 2 / max(self.loudness, 1e-12))
        mass, friction = self.curvature, 2 * self.curvature
        return DefaultSGHMC(
            step_size,
            friction,
            matched_noise_estimate(mass, self.noise, step_size, friction, mass),
            mass,
            num_steps=min(math.ceil(2 / step_size), most),
            reason=f"{self.form}; noise up to {self.loudness:.3g} times the curvature, "
            f"{step_size * self.loudness / 4:.0%} of what friction needs",
            num_examples=self.num_examples,
        )


def _distance(slopes: Tensor) -> float:
    """Compute how many standard deviations positions are from a mode, from A^−½∇U
    ``(chains, dim)``; 0 where they may be a mode or draws.
    """
    # At a mode, which a single position should be, the slopes are zero; at draws their
    # mean square is one in every coordinate, because E[∇U∇Uᵀ] = E[∇²U], and the largest
    # of dim normal numbers hardly exceeds √(2 log dim) + 4.
    squares = slopes.square().mean(0)
    largest, spread = float(squares.max()) ** 0.5, float(squares.mean()) ** 0.5
    wide = spread > (0.3 if len(slopes) == 1 else 2.0)
    far = wide or largest > math.sqrt(2 * math.log(len(squares))) + 4
    return largest if far else 0.0


def _curved(
    potential: Potential, position: Tensor, directions: Tensor, near: bool = True
) -> Tensor:
    """Compute ∇²U(θ)z, averaged over positions ``(chains, dim)``, for directions
    ``(number, dim)``, from gradients at θ + hz and θ − hz. These are near each other if
    the third root of the precision balances rounding and curvature; else h = 1.
    """
    length = 1.0
    if near:
        length = torch.finfo(position.dtype).eps ** (1 / 3)
        length *= 1 + float(position.square().mean().sqrt())
    products = [
        potential.gradient(each + piece) - potential.gradient(each - piece)
        for each in position
        for piece in (length * directions).split(_TOGETHER)
    ]
    product = torch.cat(products).view(len(position), *directions.shape).mean(0)
    return product / 2 / length


def _hessian(potential: Potential, position: Tensor) -> Tensor:
    """Average ∇²U over positions; a direction that is flat or curves downwards gets the
    median curvature of the others.
    """
    identity = torch.eye(position.shape[1]).to(position)
    hessian = _curved(potential, position, identity)
    values, vectors = torch.linalg.eigh(_symmetric(hessian))
    curved = values > FLAT * values.max().clamp(min=0)
    if not curved.any():
        raise ValueError(
            "the energy curves in no direction upwards at the position: give a mode "
            "of the density, or draws from it"
        )
    if not curved.all():
        number = f"{int((~curved).sum())} of {len(curved)} directions"
        warn(
            _of_units(potential, hessian, number)
            or f"the energy is flat or curves downwards in {number} at the position, "
            "and no Gaussian stands for it there: compare what is guessed with half "
            "the step size, or give draws [no-mode]",
            stacklevel=4,
        )
    half = vectors * torch.where(curved, values, values[curved].median()).sqrt()
    return _symmetric(half @ half.mT)


def _of_units(potential: Any, hessian: Tensor, number: str) -> str:
    """Name the column that is in large units, if no direction is flat once each
    coordinate is measured by its own curvature; otherwise return an empty text.
    """
    scale = hessian.diagonal().clamp(min=0).sqrt()
    alike = hessian / (scale[:, None] * scale)
    if not alike.isfinite().all() or torch.linalg.eigvalsh(alike).min() < FLAT:
        return ""
    name, most = f"coordinate {int(scale.argmax())}", 0.0
    for place, x in enumerate(few_examples(potential)):
        if x.is_floating_point():
            columns = x[0, :, None].flatten(1).square().mean(0).sqrt()
            size, column = map(float, columns.max(0))
            if size > most:
                most, name = size, f"column {column:.0f} of tensor {place} of the data"
    of = f", of some {most:.2g}," if most else ""
    return (
        f"{number} look flat beside the others for their units alone: {name}{of} is in "
        "much larger ones. Standardise the columns, (x - x.mean(0)) / x.std(0); what "
        "is guessed in their place is wrong [no-mode]"
    )


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.mT) / 2


def _without_negative(covariance: Tensor) -> Tensor:
    """Set eigenvalues to zero that rounding has made more negative than allowed."""
    values, vectors = torch.linalg.eigh(covariance)
    if values.min() >= -FLAT * values.max():
        return covariance
    return _symmetric((vectors * values.clamp(min=0)) @ vectors.mT)


def _stiffest(
    potential: Potential, position: Tensor, curvature: Tensor, generator: Generator
) -> tuple[float, float]:
    """Find the largest eigenvalue of D^−½∇²U D^−½ by the power method, and the variance
    of D^−½∇Ũ along its eigenvector.
    """
    # The gradients are a standard deviation apart, because a kink of a rectified unit
    # at this very place is not the curvature that a chain meets.
    scale, stiffness = curvature.rsqrt(), 0.0
    direction = normal_like(position[:1], generator)
    for _ in range(3 * _LOOKS):
        direction /= direction.norm()
        product = scale * _curved(potential, position, scale * direction, near=False)
        stiffness = float((direction * product).sum())
        # The shift keeps downward curvature from being found.
        direction = product + product.norm() * direction
    probe = scale * direction / direction.norm()
    along = [
        (potential.stochastic_gradient(position, generator) * probe).sum(-1)
        for _ in range(3 * _LOOKS)
    ]
    return max(stiffness, 1.0), float(in_double(torch.stack(along)).var(0).mean())
