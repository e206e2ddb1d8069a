"""What a chain reports as a local learning coefficient, λ̂ = nβ(E L(w) − L(w*)), near a
minimum w* at which the loss L is a quadratic.

With the localising prior exp(−½γ|w − w*|²) the chain moves in U(δ) = ½δᵀPδ, δ = w − w*
and P = nβH + γ, so that :mod:`sgmc.splittings` has its exact distribution; once the
minibatches are given, their own Hessians and gradients are part of it, too."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from sgmc.splittings import LinearChain, langevin_chain, sghmc_chain

DOUBLE = torch.float64


class Minimum(NamedTuple):
    """A minimum of the mean loss of N examples.

    Example:
        >>> minimum = Minimum(torch.eye(2).double(), torch.eye(2).double(), 100)
        >>> round(minimum.localised(nbeta=20, localization=1), 3)
        0.952
    """

    hessian: Tensor  #: H, (dim, dim)
    covariance: Tensor  #: of one example's gradient, (dim, dim)
    num_examples: int  #: N

    def precision(self, nbeta: float, localization: float) -> Tensor:
        """Compute P = nβH + γ, ``(dim, dim)``."""
        return nbeta * self.hessian + localization * torch.eye(
            len(self.hessian), dtype=DOUBLE
        )

    def noise(self, nbeta: float, batch_size: int) -> Tensor:
        """Compute V of n examples without replacement, ``(dim, dim)``."""
        factor = 1 / batch_size - 1 / self.num_examples
        return nbeta**2 * factor * self.covariance

    def localised(self, nbeta: float, localization: float) -> float:
        """Compute what an exact sampler reports, ½ tr(nβH P⁻¹)."""
        precision = self.precision(nbeta, localization)
        return nbeta / 2 * float(torch.linalg.solve(precision, self.hessian).trace())


def _series(move: Tensor, term: Tensor) -> Tensor:
    """Sum FᵏXFᵏᵀ over all k ≥ 0, by doubling the number of terms."""
    total = term
    while move.abs().max() > 1e-20:
        total = total + move @ total @ move.T
        move = move @ move
        if not total.isfinite().all():
            raise ValueError("the chain is not stable: take a smaller step_size")
    return total


def reported(
    chain: LinearChain, curvature: Tensor, num_steps: int, dropped: int = 0
) -> tuple[float, float]:
    """Compute mean and standard deviation of what one chain reports, ½δᵀ(nβH)δ averaged
    over its steps after the first ``dropped``, from δ = 0 and a momentum N(0, I). The
    ``curvature`` is nβH, ``(dim, dim)``. The mean is exact; the deviation is that of a
    long stationary chain, which is a little too large for a short one.

    Example:
        >>> chain = langevin_chain(torch.eye(1), 0.1)
        >>> [round(x, 3) for x in reported(chain, torch.eye(1), 10_000, 1_000)]
        [0.526, 0.024]
    """
    dim, move = len(curvature), chain.transition.double()
    form = torch.zeros_like(move)
    form[:dim, :dim] = curvature
    stationary = _series(move, chain.noise_covariance.double())
    missing = stationary.clone()  # what the start lacks of the stationary covariance
    missing[dim:, dim:] -= torch.eye(len(move) - dim, dtype=DOUBLE)
    first, last = (torch.linalg.matrix_power(move, k) for k in (dropped, num_steps))
    lacking = first @ missing @ first.T - last @ missing @ last.T
    kept = num_steps - dropped
    average = stationary - _series(move, lacking) / kept
    mean = 0.5 * (form * average).sum()
    square = stationary @ form @ stationary
    lags = _series(move, square)
    variance = 0.5 * (form * (2 * lags - square)).sum() / kept
    return float(mean), float(variance.sqrt())


class Minibatches(NamedTuple):
    """The losses Lᵦ + gᵦ·δ + ½δᵀHᵦδ of some minibatches."""

    losses: Tensor  #: Lᵦ, (batches,)
    gradients: Tensor  #: gᵦ, (batches, dim)
    hessians: Tensor  #: Hᵦ, (batches, dim, dim)

    @classmethod
    def of_regression(cls, inputs: Tensor, residuals: Tensor) -> "Minibatches":
        """Take the losses ½(e − x·δ)², from ``(batches, n, dim)``, ``(batches, n)``."""
        n = inputs.shape[1]
        return cls(
            residuals.square().mean(1) / 2,
            -torch.einsum("bni,bn->bi", inputs, residuals) / n,
            torch.einsum("bni,bnj->bij", inputs, inputs) / n,
        )


def reported_given(
    batches: Minibatches,
    order: Sequence[int],
    first_loss: float,
    nbeta: float,
    localization: float,
    step_size: float,
) -> tuple[float, float]:
    """Compute, exactly, mean and standard deviation over SGLD's own noise of nβ(mean of
    the steps' minibatch losses − ``first_loss``), with the minibatches of ``order`` and
    δ ← δ − η(nβ(gᵦ + Hᵦδ) + γδ) + N(0, 2η), from δ = 0; each loss is that before its
    step.

    The mean and the covariance of δ go forwards; what the steps still to come will add,
    a quadratic ½δᵀQδ + q·δ, comes backwards. The variances of what each step's noise
    adds are summed, because that has mean zero given the noises before.
    """
    dim = batches.gradients.shape[1]
    eye, zero = torch.eye(dim, dtype=DOUBLE), torch.zeros(dim, dtype=DOUBLE)
    decay = eye - step_size * (nbeta * batches.hessians + localization * eye)
    mean, covariance = zero, 0 * eye
    total, path = 0.0, []
    for b in order:
        hessian, gradient, move = batches.hessians[b], batches.gradients[b], decay[b]
        slope = gradient + hessian @ mean
        second = covariance + torch.outer(mean, mean)
        total += batches.losses[b] + gradient @ mean + (hessian * second).sum() / 2
        path.append((hessian, slope, move, covariance))
        mean = move @ mean - step_size * nbeta * gradient
        covariance = move @ covariance @ move.T + 2 * step_size * eye
    variance, form, line = 0.0, 0 * eye, zero
    for hessian, slope, move, covariance in reversed(path):
        pull, noise = form @ move, 2 * step_size
        spread = (pull @ covariance * pull).sum()
        variance += noise * (line @ line + spread) + noise**2 / 2 * (form * form).sum()
        line = slope + move.T @ line
        form = hessian + move.T @ pull
    steps = len(path)
    deviation = nbeta * float(variance) ** 0.5 / steps
    return nbeta * (float(total) / steps - first_loss), deviation


class Choice(NamedTuple):
    """A setting, and what the law says that its chains will report."""

    kernel: str
    step_size: float
    friction: float | None
    batch_size: int
    expected: float  #: of every chain, after its first half
    deviation: float  #: of one chain
    bias: float  #: expected over what an exact sampler reports, less 1


def _settings(
    kernels: Sequence[str], stiff: float, loudest: float
) -> Iterator[tuple[str, float, float | None]]:
    """List steps and frictions, for the largest eigenvalues of P and V; SGHMC's
    friction is at least ½εV, and at most 1/ε.
    """
    if "SGLD" in kernels:
        for share in torch.logspace(-3.5, 0, 36).tolist():
            yield "SGLD", share / stiff, None
    if "SGHMC" in kernels:
        for share in torch.logspace(-2, -0.2, 19).tolist():
            step = share / stiff**0.5
            for factor, more in product((1.001, 1.5), (0.0, 0.03, 0.1, 0.3)):
                friction = factor * step * loudest / 2 + more * stiff**0.5
                if 0 < step * friction < 1:
                    yield "SGHMC", step, friction


def choose(
    minimum: Minimum,
    nbeta: float,
    localization: float,
    gradients: int,
    chains: int,
    batch_sizes: Sequence[int] = (64,),
    kernels: Sequence[str] = ("SGLD", "SGHMC"),
    within: float = 0.02,
) -> Choice:
    """Choose kernel, step, friction and minibatch for a number of examples' gradients a
    chain: the least expected squared error that the law allows, SGLD as it is and SGHMC
    with B̂ = ½εV and a friction that is at least B̂; the first half is dropped.

    Raises:
        ValueError: if no setting comes so near, that is, if the bias is more than
            ``within``, or with two standard errors of the chains' mean more than twice
            that.
    """
    precision = minimum.precision(nbeta, localization)
    right, found = minimum.localised(nbeta, localization), []
    stiff = float(torch.linalg.eigvalsh(precision)[-1])
    for n in batch_sizes:
        noise, steps = minimum.noise(nbeta, n), gradients // n
        loudest = float(torch.linalg.eigvalsh(noise)[-1])
        for kernel, step, friction in _settings(kernels, stiff, loudest):
            if friction is None:
                chain = langevin_chain(precision, step, noise)
            else:
                given = step, friction, noise, step / 2 * noise
                chain = sghmc_chain(precision, *given)
            form = nbeta * minimum.hessian
            mean, deviation = reported(chain, form, steps, steps // 2)
            setting = kernel, step, friction, n
            found.append(Choice(*setting, mean, deviation, mean / right - 1))
    best = min(
        found, key=lambda each: (each.bias * right) ** 2 + each.deviation**2 / chains
    )
    unsure = 2 * best.deviation / chains**0.5 / right
    if abs(best.bias) > within or abs(best.bias) + unsure > 2 * within:
        raise ValueError(
            f"no setting of {gradients} gradients a chain comes within {within:.0%}: "
            f"the best is off by {best.bias:+.1%} ± {unsure:.1%}. Give more gradients "
            "or chains, or take a smaller nbeta or a larger localization"
        )
    return best
