"""How long a step, how much friction: SGHMC tuned from the curvature of an energy and
the noise of its gradient.
"""

import math
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from tqdm import tqdm

from sgmc.checks import check_dims, check_positive
from sgmc.kernels.sghmc import SGHMC, SGHMCState
from sgmc.matrices import Matrix, as_matrix
from sgmc.noise import estimate_noise_variance
from sgmc.potentials import Potential
from sgmc.randomness import normal_like
from sgmc.sampling import DivergenceError
from sgmc.starting import check_start

# in standard deviations; with the friction 2A there is no stationary law beyond 0.83
LONGEST_STEP = 0.5
MOST_STEPS = 10_000  # of a draw
MANY = 200_000  # gradients of each chain, which tune announces before it takes them
FULL = 200  # coordinates up to which curvature and noise are whole matrices
FLAT = 1e-6  # share of the largest curvature below which a direction counts as flat
# chains that the tuning makes, and how many draws of each
_CHAINS, _DRAWS = 20, 10
_LOOKS = 10  # number of random directions
_TOGETHER = 64  # number of positions at which gradients are computed at once


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
    Cov(θ, r) = −½εKM.

    Args:
        curvature: A, a number, ``(dim,)`` or ``(dim, dim)``.
        noise_variance: V, the covariance of the gradient noise; same forms.
        step_size: ε.
        friction: C; same forms.
        mass: M; same forms.

    Returns:
        B̂, in the simplest form that holds it.

    Raises:
        ValueError: if a matrix is none, M − ½εC − ¼ε²A is not positive, so that there
            is no stationary law, or B̂ exceeds C.

    Example:
        >>> from sgmc.splittings.linear_laws import sghmc_chain
        >>> noise_estimate = matched_noise_estimate(
        ...     2.0, noise_variance=4.0, step_size=0.4, friction=3.0
        ... )
        >>> chain = sghmc_chain(2 * torch.eye(1), 0.4, 3.0, 4.0, noise_estimate)
        >>> round(float(chain.stationary_covariance()[0, 0]), 12)
        0.5
    """
    check_positive("step_size", step_size)
    check_dims(
        curvature=curvature, noise_variance=noise_variance, friction=friction, mass=mass
    )
    a, v = (
        as_matrix(curvature, "curvature", positive=True),
        as_matrix(noise_variance, "noise_variance"),
    )
    c, m = as_matrix(friction, "friction"), as_matrix(mass, "mass", positive=True)
    room = m - 0.5 * step_size * c
    if min((room - 0.25 * step_size**2 * a).eigenvalues) <= 0:
        raise ValueError(
            f"step_size is {step_size:g}, at which no stationary law exists: take a "
            "smaller one, or a larger mass"
        )
    half = c @ room.inverse @ a
    estimate = 0.5 * step_size * v + 0.125 * step_size**2 * (half + half.transposed)
    spare = (c - estimate).eigenvalues
    if min(spare) < -1e-6 * max(map(abs, spare)):
        raise ValueError(
            "friction must be at least the noise estimate that belongs to step_size "
            f"= {step_size:g}, but their difference has an "
            f"eigenvalue of {min(spare):g}: take a smaller step_size, more friction "
            "or a larger batch"
        )
    return estimate.value


@dataclass(frozen=True, eq=False, repr=False)
class DefaultSGHMC(SGHMC):
    """The SGHMC of :func:`default_kernel`, which says why it is as it is.

    Args:
        reason: what was measured, and what was chosen from it.
        num_examples: number N of examples for which it was tuned; another potential is
            refused, for mass, friction and noise estimate grow like N.
    """

    step_size: float
    noise_estimate: float | Tensor = 0.0
    mass: float | Tensor = 1.0
    reason: str = ""
    num_examples: int | None = None

    def __repr__(self) -> str:
        return (
            f"SGHMC(step_size={self.step_size:.4g}, num_steps={self.num_steps}): "
            f"{self.reason}"
        )

    def __str__(self) -> str:
        return repr(self).replace(": ", ":\n  ").replace("; ", "\n  ")

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> SGHMCState:
        """Start at the given position ``(chains, dim)``, as SGHMC does."""
        number = getattr(potential, "num_examples", None)
        if None not in (number, self.num_examples) and number != self.num_examples:
            raise ValueError(
                f"the kernel was tuned for {self.num_examples:,} examples, but the "
                f"potential has {number:,}, and curvature and gradient noise grow with "
                "their number: tune again, by default_kernel(potential, position)"
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
        # with M = A and C = 2A what the step itself widens is ½ε²A/(1 − ε)
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

    Mass M = A, so that all directions are of one size and a standard deviation is
    crossed in a time of one; friction C = 2A, the critical one; B̂ from
    :func:`matched_noise_estimate`; and ε = min(½, 2/ν), ν being the largest eigenvalue
    of A⁻¹V: a gradient then brings at most half of the noise that friction needs, and
    of an error in V̂ at most half goes into the temperature. A draw is taken every 2/ε
    steps, but at most 10,000.

    With N examples and minibatches of n, A grows like N and V like N²/n, so that ν is
    about N/n − 1: mass, friction and noise estimate belong to one N, and ε to one N/n.
    Tune with all the examples, not with some of them.

    On a Gaussian with constant noise the draws have exactly the target's covariance.
    Elsewhere A and V are those of a Gaussian that touches the target, and the draws are
    as good as that is: compare with half the step size, by
    :func:`~sgmc.tuning.half_step`, or tune again at the draws.

    Up to 200 coordinates A and V are whole matrices. Beyond, both are diagonals: A's
    entries are the lengths of the rows of ∇²U, from the products ∇²U z with random
    signs z. The stiffest direction then bounds the step, ε = min(1/(2√κ), 2/ν), where κ
    is its curvature after division by A, and ν its noise. Noise that coordinates share
    is not subtracted, and heats the stiffest direction to about 1½ at most.

    Args:
        potential: the target, with its minibatches.
        position: a mode ``(1, dim)``, such as that of :func:`~sgmc.tuning.find_mode`,
            or a few draws ``(chains, dim)``, over which curvature and noise are
            averaged.
        seed: seed of the minibatches and directions that are looked at.
        step_size: ε in place of the default, such as half of it; B̂ is matched to it.

    Returns:
        The kernel, whose ``reason`` says what was found.

    Raises:
        ValueError: if an argument is unusable, the step is too long, or the noise is
            unknown or that of batches of one example.

    Warns:
        UserWarning: if the position is neither near a mode nor like a draw, such as
            untrained weights; if the energy is flat or curves downwards in some
            direction; or if a draw would take more than 10,000 steps.

    Example:
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target = NoisyGradient(Gaussian.standard(2, torch.float64), 40.0)
        >>> default_kernel(target, torch.zeros(1, 2, dtype=torch.float64))
        SGHMC(step_size=0.05, num_steps=40): whole matrices of 2 coordinates; noise up
        to 40 times the curvature, 50% of what friction needs
    """
    look = _look(potential, position, seed)
    if look.far:
        warnings.warn(
            f"the position is at no mode and like no draw: it is some {look.far:.3g} "
            "standard deviations from a mode, and draws are about one, so that "
            "curvature and noise may be others where the mass is: give a mode, such as "
            "find_mode(potential, position), or draws",
            stacklevel=2,
        )
    kernel = _choose(look, step_size)
    if kernel.num_steps * kernel.step_size < 1.99:  # the time of a draw is two
        warnings.warn(
            f"num_steps is {kernel.num_steps:,}, where a step_size of "
            f"{kernel.step_size:.3g} needs {2 / kernel.step_size:,.0f} for draws that "
            "are nearly independent: keep more of them, or take a larger batch_size",
            stacklevel=2,
        )
    return kernel


def tune(
    potential: Potential, position: Tensor, seed: int = 0, progress: bool = True
) -> tuple[DefaultSGHMC, Tensor]:
    """Tune SGHMC where the mass is: at a mode, then at draws from there, then at draws
    from these.

    The curvature of a mode may be that of nowhere else. Where a posterior is bent, and
    most where it is flat along a circle, a direction that is soft at the mode is stiff
    at another draw; the mode's step is then too long for it and its noise estimate too
    small. So twice, twenty chains make ten draws with a quarter of the step, and
    :func:`default_kernel` averages curvature and noise over where they are.

    Each chain takes about 160/ε gradients of minibatches, ε being the step size at the
    mode: 320 where they are quiet, 80·N/n where they are not. A warning announces more
    than 200,000 of them. Ctrl-C ends the tuning at once.

    Args:
        potential: the target, with its minibatches.
        position: a mode ``(1, dim)``, such as that of :func:`~sgmc.tuning.find_mode`,
            or several ``(chains, dim)``.
        seed: seed of the looks and of the chains.
        progress: whether to show a progress bar on a terminal.

    Returns:
        The kernel, and the draws ``(20, dim)`` at which it was tuned, or ``(chains,
        dim)`` if there are more: start from them.

    Raises:
        ValueError: as :func:`default_kernel` does, or if the position is so far from a
            mode that the chains would not get there.
        DivergenceError: if a chain diverges with a quarter of the step.

    Example:
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target = NoisyGradient(Gaussian.standard(2, torch.float64), 40.0)
        >>> kernel, start = tune(target, torch.zeros(1, 2, dtype=torch.float64))
        >>> round(kernel.step_size, 6), start.shape
        (0.05, torch.Size([20, 2]))
    """
    for turn in range(2):
        with warnings.catch_warnings():
            # what is said of a mode is no longer true of the draws
            warnings.simplefilter("ignore")
            look = _look(potential, position, seed)
            usual = _choose(look)
            careful = _choose(look, usual.step_size / 4, 4 * MOST_STEPS)
        if look.far and usual.num_steps == MOST_STEPS:
            raise ValueError(
                f"position is some {look.far:.3g} standard deviations from a mode, and "
                "its gradients are so noisy that chains would hardly leave it: begin "
                "at a mode, such as find_mode(potential, position)"
            )
        number = (2 - turn) * _DRAWS * careful.num_steps
        if turn == 0 and number > MANY:
            warnings.warn(
                f"tune takes about {number:,} gradients of minibatches in each of "
                f"{max(_CHAINS, len(position))} chains; larger batches need fewer",
                stacklevel=2,
            )
        start = position.repeat(math.ceil(_CHAINS / len(position)), 1)
        start = start[: max(_CHAINS, len(position))]
        position = _walk(careful, potential, start, seed + turn, progress)
    return default_kernel(potential, position, seed), position


def _walk(
    kernel: SGHMC, potential: Potential, position: Tensor, seed: int, progress: bool
) -> Tensor:
    """Give the last of ten draws, those of :func:`sgmc.sampling.sample`; as there is
    nothing to keep before, a stop is obeyed within a draw.
    """
    generator = Generator(position.device).manual_seed(seed)
    bar = tqdm(
        total=_DRAWS * kernel.num_steps,
        desc="tuning",
        unit="gradient",
        delay=2,
        disable=None if progress else True,  # None: where there is no terminal
    )
    with torch.no_grad(), bar:
        state = kernel.init(potential, position, generator)
        for _ in range(_DRAWS):
            state, _ = kernel.step(potential, state, generator)
            bar.update(kernel.num_steps)
    if not state.position.isfinite().all():
        raise DivergenceError(
            f"a chain diverged with the step_size {kernel.step_size:.3g}: the energy "
            "is far from quadratic at the position; start from draws",
            None,
        )
    return state.position


class _Look(NamedTuple):
    """What was measured: A, V, ν, κ, in which form, of how many coordinates; the number
    of examples; and how many standard deviations from a mode, 0 if near.
    """

    curvature: Tensor
    noise: Tensor
    loudness: float
    stiffness: float
    form: str
    num_examples: int | None
    far: float


def _look(potential: Potential, position: Tensor, seed: int) -> _Look:
    check_start(potential, position, seed)
    generator = Generator(position.device).manual_seed(seed)
    chains, dim = position.shape
    with torch.no_grad():
        if dim <= FULL:
            curvature, stiffness = _hessian(potential, position), 1.0
            form = "whole matrices"
            rows = 400 * dim  # examples to look at, over all positions
            size = getattr(potential, "batch_size", None) or rows
            looks = math.ceil(rows / (chains * size))  # minibatches at each
            together = min(looks, math.ceil(_TOGETHER / chains))
            noise = estimate_noise_variance(
                potential,
                position.repeat(together, 1),
                generator,
                "full",
                math.ceil(looks / together),
            )
            noise, root = (
                _symmetric(torch.as_tensor(noise)),
                Matrix(curvature).root.inverse,
            )
            loudness = max((root @ Matrix(noise) @ root).eigenvalues)
        else:
            curvature = _row_lengths(potential, position, generator)
            noise = torch.as_tensor(
                estimate_noise_variance(potential, position, generator, "diagonal", 10)
            )
            stiffness, along = _stiffest(potential, position, curvature, generator)
            loudness = max(along, float((noise / curvature).max()))
            form = f"diagonals, the stiffest direction {stiffness:.3g} times as curved,"
            root = Matrix(curvature.rsqrt())
        far = _distance(root @ potential.gradient(position))
    form = f"{form} of {dim} coordinates"
    examples = getattr(potential, "num_examples", None)
    return _Look(curvature, noise, loudness, stiffness, form, examples, far)


def _distance(slopes: Tensor) -> float:
    """Compute how many standard deviations positions are from a mode, from A^−½∇U
    ``(chains, dim)``; 0 where they may be a mode or draws.

    At a mode, which a single position is to be, these are zero; at draws their mean
    square is one in every coordinate, for E[∇U∇Uᵀ] = E[∇²U], and the largest of dim
    normal numbers hardly exceeds √(2 log dim) + 4."""
    squares = slopes.square().mean(0)
    largest, spread = float(squares.max()) ** 0.5, float(squares.mean()) ** 0.5
    wide = spread > (0.3 if len(slopes) == 1 else 2.0)
    far = wide or largest > math.sqrt(2 * math.log(len(squares))) + 4
    return largest if far else 0.0


def _choose(
    look: _Look, step_size: float | None = None, most: int = MOST_STEPS
) -> DefaultSGHMC:
    if step_size is None:
        step_size = min(
            LONGEST_STEP / math.sqrt(look.stiffness), 2 / max(look.loudness, 1e-12)
        )
    friction = 2 * look.curvature
    estimate = matched_noise_estimate(
        look.curvature, look.noise, step_size, friction, look.curvature
    )
    share = f"{step_size * look.loudness / 4:.0%} of what friction needs"
    reason = (
        f"{look.form}; noise up to {look.loudness:.3g} times the curvature, {share}"
    )
    return DefaultSGHMC(
        step_size,
        friction,
        estimate,
        look.curvature,
        num_steps=min(math.ceil(2 / step_size), most),
        reason=reason,
        num_examples=look.num_examples,
    )


def _curved(potential: Potential, position: Tensor, directions: Tensor) -> Tensor:
    """Compute ∇²U(θ)z, averaged over positions ``(chains, dim)``, for directions
    ``(number, dim)``, from gradients at θ + z and θ − z.
    """
    pieces = [
        (each, piece) for each in position for piece in directions.split(_TOGETHER)
    ]
    products = [
        potential.gradient(each + piece) - potential.gradient(each - piece)
        for each, piece in pieces
    ]
    return torch.cat(products).view(len(position), *directions.shape).mean(0) / 2


def _length(position: Tensor) -> float:
    """Choose how far from a position gradients are compared, for the third root of the
    precision balances rounding and curvature.
    """
    return torch.finfo(position.dtype).eps ** (1 / 3) * (
        1 + float(position.square().mean().sqrt())
    )


def _hessian(potential: Potential, position: Tensor) -> Tensor:
    """Average ∇²U over positions; a direction that is flat or curves downwards gets the
    median curvature of the others.
    """
    length = _length(position)
    steps = length * torch.eye(
        position.shape[1], dtype=position.dtype, device=position.device
    )
    hessian = _curved(potential, position, steps) / length
    eigenvalues, eigenvectors = torch.linalg.eigh(_symmetric(hessian))
    curved = eigenvalues > FLAT * eigenvalues.max().clamp(min=0)
    if not curved.any():
        raise ValueError(
            "the energy curves in no direction upwards at the position: give a mode "
            "of the density, or draws from it"
        )
    if not curved.all():
        warnings.warn(
            f"the energy is flat or curves downwards in {int((~curved).sum())} of "
            f"{len(curved)} directions at the position, and no "
            "Gaussian stands for it there: what is chosen for them is a guess, so "
            "compare with half the step size, or give draws",
            stacklevel=4,
        )
    half = (
        eigenvectors
        * torch.where(curved, eigenvalues, eigenvalues[curved].median()).sqrt()
    )
    return _symmetric(half @ half.mT)


def _symmetric(matrix: Tensor) -> Tensor:
    return (matrix + matrix.mT) / 2


def _row_lengths(
    potential: Potential, position: Tensor, generator: Generator
) -> Tensor:
    """Compute the lengths of the rows of ∇²U, (E[(∇²U z)ⱼ²])^½ over random signs z."""
    length = _length(position)
    signs = normal_like(position[:1].expand(_LOOKS, -1), generator).sign()
    lengths = (
        (_curved(potential, position, length * signs) / length).square().mean(0).sqrt()
    )
    return lengths.clamp(min=FLAT * float(lengths.max()))


def _stiffest(
    potential: Potential, position: Tensor, curvature: Tensor, generator: Generator
) -> tuple[float, float]:
    """Find the largest eigenvalue of D^−½∇²U D^−½ by powers, and the variance of D^−½∇Ũ
    along its eigenvector.

    Gradients are compared a standard deviation apart, for a kink of a rectified unit
    right here is not the curvature that a chain meets."""
    scale, stiffness = curvature.rsqrt(), 0.0
    direction = normal_like(position[:1], generator)
    for _ in range(3 * _LOOKS):
        direction /= direction.norm()
        product = scale * _curved(potential, position, scale * direction)
        stiffness = float((direction * product).sum())
        # shifted, so that what curves downwards is not found
        direction = product + product.norm() * direction
    probe = scale * direction / direction.norm()
    along = torch.stack(
        [
            (potential.stochastic_gradient(position, generator) * probe).sum(-1)
            for _ in range(3 * _LOOKS)
        ]
    )
    return max(stiffness, 1.0), float(along.double().var(0).mean())
