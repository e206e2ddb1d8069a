"""Estimates of the gradient noise: its variance V̂, and with it B̂ = ½εV̂.

A *variance of kind* ``"scalar"``, ``"diagonal"`` or ``"full"`` is a tensor ``(chains,
1)``, ``(chains, dim)`` or ``(chains, dim, dim)``. All of them are estimates of V =
Cov(∇Ũ), the covariance of the **whole** minibatch gradient, N²/n and all, and never a
standard deviation."""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Generator, Tensor

from sgmc import checks
from sgmc.matrices import Matrix, MatrixLike, as_matrix
from sgmc.potentials import Kind, Potential

KINDS = ("scalar", "diagonal", "full")


@dataclass(frozen=True)
class OnlineNoise:
    """An estimate B̂ = ½εV̂ made while sampling, from the very minibatches of the steps
    (Ahn, Korattikara and Welling, 2012, Section 4).

    Every ``refresh_every`` steps V̂ ← λV̂ + (1 − λ)V̂ₜ, where V̂ₜ is the unbiased
    estimate from the minibatch of step t.

    Args:
        kind: ``"scalar"`` (one number for all coordinates), ``"diagonal"`` or
            ``"full"``.
        refresh_every: number of steps from one estimate of the noise to the next; the
            kernel's ``num_steps`` for one estimate a draw.
        averaging: λ in [0, 1), the weight of the past; 0 uses the last minibatch alone.

    Raises:
        ValueError: if the kind is unknown or a number is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.targets import DoubleWell
        >>> kernel = SGHMC(0.01, friction=20.0, noise_estimate=OnlineNoise("scalar"))
        >>> draws = sample(kernel, DoubleWell(), torch.zeros(4, 1), num_samples=5)
        >>> draws.statistics["clipped"].max()
        tensor(0.)
    """

    kind: Kind = "diagonal"
    refresh_every: int = 1
    averaging: float = 0.0

    def __post_init__(self):
        checks.check_choice("kind", self.kind, KINDS)
        checks.check_count("refresh_every", self.refresh_every)
        checks.check_number("averaging", self.averaging, 0, 1)

    def first(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> Tensor:
        """Estimate V̂ at the start, from a minibatch that no step will see."""
        apart = Generator(position.device).manual_seed(generator.initial_seed())
        given = position, apart, self.kind
        return potential.gradient_and_noise_variance(*given, step=2**40)[1]

    def update(
        self, potential: Potential, position: Tensor, minibatch, variance, step: int
    ) -> tuple[Tensor, Tensor]:
        """Compute ∇Ũ(θ; ω) at positions ``(chains, dim)`` for the minibatch ω of a
        step, and update V̂ if the number of the step says so.
        """
        if step % self.refresh_every:
            return potential.gradient_given(position, minibatch), variance
        given = position, minibatch, self.kind
        gradient, now = potential.gradient_and_variance_given(*given)
        if self.averaging > 0:
            now = torch.lerp(now, variance, self.averaging)
        return gradient, now


def spare(
    temperature: float, friction: Matrix, noise_estimate: MatrixLike, name: str
) -> Matrix:
    """Compute the friction at a temperature less a noise estimate, TC − B̂.

    Raises:
        ValueError: if the estimate is not a symmetric matrix, or exceeds TC somewhere.

    Example:
        >>> spare(1.0, Matrix(3.0), 0.5, "friction").number
        2.5
        >>> spare(1.0, Matrix(3.0), 4.0, "friction")
        Traceback (most recent call last):
        ValueError: friction times temperature 1.0 minus noise_estimate must be ...
    """
    estimate = as_matrix(noise_estimate, "noise_estimate", signed=True)
    return as_matrix(
        temperature * friction - estimate,
        f"{name} times temperature {temperature} minus noise_estimate",
        remedy=f"raise the {name}, or take a smaller step_size or a larger batch",
    )


def _injected_root(
    room: Matrix, step_size: float, variance: Tensor
) -> tuple[Matrix, Tensor | float]:
    """Make a root of 2ε(TC − ½εV̂) for every chain from TC, ε and V̂ of any kind, with
    its negative part set to zero; return with it each chain's share of coordinates or
    eigenvalues that were negative, ``(chains,)``, or 0.0 if there were none.
    """
    noise = 2 * step_size * room - step_size**2 * Matrix.of_chains(variance)
    left = noise.tensor
    if not noise.full:
        root, negative = Matrix.of_chains(left.clamp(min=0).sqrt_()), left < 0
        return root, negative.to(left).mean(-1) if negative.any() else 0.0
    root, failed = torch.linalg.cholesky_ex(left)
    if not failed.any():
        return Matrix.of_chains(root), 0.0
    failed = failed > 0
    eigenvalues, eigenvectors = torch.linalg.eigh(left[failed])
    root[failed] = eigenvectors * eigenvalues.clamp(min=0).sqrt()[:, None, :]
    clipped = left.new_zeros(len(left))
    clipped[failed] = (eigenvalues < 0).to(left).mean(-1)
    return Matrix.of_chains(root), clipped


@dataclass
class InjectedNoise:
    """The noise N(0, 2ε(TC − B̂)) of some steps of SGHMC: a fixed B̂ needs its root
    alone; with ``online`` every gradient of a minibatch updates B̂ = ½εV̂.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> noise = SGHMC(0.5, friction=3.0, noise_estimate=2.0).injected_noise()
        >>> noise.step_size, noise.root.number  # the root of 2ε(C − B̂)
        (0.5, 1.0)
    """

    step_size: float  #: ε
    root: Any  #: Matrix, a root of the covariance; None if V̂ will provide it
    online: OnlineNoise | None = None
    room: Any = None  #: Matrix, TC, for an online estimate
    step: int = 0  #: number of steps taken before
    variance: Any = None  #: V̂
    clipped: Any = None  #: share of coordinates in which ½εV̂ > TC, summed over steps
    share: Any = 0.0  #: share of coordinates that were clipped for this root
    potential: Any = None  #: an online estimate sees its minibatches

    def watch(self, potential: Potential) -> Any:
        """Return the potential; an online estimate returns the noise itself, which
        computes the potential's gradients and learns from them.
        """
        self.potential = potential
        return potential if self.online is None else self

    def gradient_given(self, position: Tensor, minibatch: Any) -> Tensor:
        """Compute ∇Ũ(θ; ω), and with it the root of the noise to inject after it."""
        given = self.potential, position, minibatch, self.variance, self.step
        gradient, variance = cast(OnlineNoise, self.online).update(*given)
        if self.root is None or variance is not self.variance:
            self.root, self.share = _injected_root(self.room, self.step_size, variance)
        self.step, self.variance = self.step + 1, variance
        self.clipped = self.clipped + self.share
        return gradient


def estimate_noise_variance(
    potential: Potential,
    position: Tensor,
    generator: Generator,
    kind: Kind = "diagonal",
    num_batches: int = 1,
) -> float | Tensor:
    """Estimate V at some positions once and for all, to pass B̂ = ½εV̂ as a fixed
    estimate.

    Args:
        potential: a posterior with minibatches, or a noisy gradient.
        position: ``(chains, dim)``, draws from the posterior, or copies of its mode:
            the estimate is the average over chains, too.
        generator: the source of the minibatches.
        kind: ``"scalar"``, ``"diagonal"`` or ``"full"``.
        num_batches: number of minibatches of each chain to average over.

    Returns:
        V̂ as a number, ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if an argument is invalid, the minibatch has one example, or a full
            matrix would not fit into memory.

    Example:
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> noisy, generator = NoisyGradient(DoubleWell(), 4.0), torch.Generator()
        >>> estimate_noise_variance(noisy, torch.zeros(1, 1), generator, "scalar")
        4.0
    """
    checks.check_instance("potential", potential, Potential, "LinearRegression(...)")
    checks.check_tensor("position", position, "chains", "dim")
    checks.check_choice("kind", kind, KINDS)
    checks.check_count("num_batches", num_batches)
    if potential.dim is not None:
        checks.check_dims(position=position, potential=torch.empty(potential.dim))
    total = torch.tensor(0.0)
    draw = lambda: potential.gradient_and_noise_variance(position, generator, kind)[1]
    with torch.no_grad():
        for _ in range(num_batches):
            total = total + checks.evaluate(draw, position).mean(0)
    variance = total / num_batches
    return float(variance) if kind == "scalar" else variance
