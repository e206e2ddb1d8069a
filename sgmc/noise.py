"""Estimates of the gradient noise: its variance V̂, and with it B̂ = ½εV̂.

A *variance of kind* ``"scalar"``, ``"diagonal"`` or ``"full"`` is a tensor ``(chains, 1)``, ``(chains, dim)`` or ``(chains, dim, dim)``.
All of them are estimates of V = Cov(∇Ũ), the covariance of the **whole** minibatch gradient, N²/n and all, and never a standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from sgmc.matrices import Matrix, as_matrix, sum_of

Kind = Literal["scalar", "diagonal", "full"]
MEMORY = 4 * 2**30  # bytes that a full matrix of all chains may take


@dataclass(frozen=True)
class OnlineNoise:
    """An estimate B̂ = ½εV̂ made while sampling, from the very minibatches of the steps (Ahn, Korattikara and Welling, 2012, Section 4).

    Every ``refresh_every`` steps V̂ ← λV̂ + (1 − λ)V̂ₜ, where V̂ₜ is the unbiased estimate from the minibatch of step t.

    Args:
        kind: ``"scalar"`` (one number for all coordinates), ``"diagonal"`` or ``"full"``.
        refresh_every: number of steps from one look at the noise to the next; the kernel's ``num_steps`` for one look a draw. For one look
            and no more pass a fixed estimate from :func:`estimate_noise_variance` instead.
        averaging: λ in [0, 1), the weight of the past; 0 uses the last minibatch alone.

    Raises:
        ValueError: if the kind is unknown or a number is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.posteriors import LinearRegression
        >>> posterior = LinearRegression(torch.ones(100, 1), torch.linspace(-1, 1, 100), batch_size=10)
        >>> kernel = SGHMC(step_size=0.01, friction=20.0, noise_estimate=OnlineNoise("diagonal"))
        >>> sample(kernel, posterior, torch.zeros(4, 1), num_samples=5).statistics["clipped"].max()
        tensor(0.)
    """

    kind: Kind = "diagonal"
    refresh_every: int = 1
    averaging: float = 0.0

    def __post_init__(self):
        if self.kind not in ("scalar", "diagonal", "full"):
            raise ValueError(f"kind must be 'scalar', 'diagonal' or 'full', but it is {self.kind!r}")
        if not isinstance(self.refresh_every, int) or self.refresh_every < 1:
            raise ValueError(f"refresh_every must be a whole number of at least 1, but it is {self.refresh_every!r}")
        if not 0 <= self.averaging < 1:
            raise ValueError(f"averaging must be at least 0 and less than 1, but it is {self.averaging}")

    def update(self, potential, position: Tensor, variance: Tensor, step: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Draw ∇Ũ(θ) for a step, and bring V̂ up to date if it is time to.

        Args:
            potential: the target.
            position: ``(chains, dim)``.
            variance: V̂ so far, in the shape of its kind.
            step: number of steps taken before.
            generator: the source of the minibatch.

        Returns:
            The stochastic gradient ``(chains, dim)`` and V̂.
        """
        if step % self.refresh_every:
            return potential.stochastic_gradient(position, generator), variance
        gradient, now = potential.gradient_and_noise_variance(position, generator, self.kind)
        return gradient, now if self.averaging == 0 else torch.lerp(now, variance, self.averaging)


def injected_root(room: Matrix, step_size: float, variance: Tensor) -> tuple[Tensor, Tensor | float]:
    """Make a root of 2ε(TC − ½εV̂) for every chain, with what is negative in it set to zero.

    Args:
        room: TC, in any form of :mod:`sgmc.matrices`.
        step_size: ε.
        variance: V̂ of any kind.

    Returns:
        The root, in the shape of V̂'s kind (``(chains, dim)`` if the friction is a diagonal), and the share of coordinates or eigenvalues
        of each chain that were set to zero, ``(chains,)``, or 0.0 if none was in any.
    """
    if variance.ndim == 3 or (isinstance(room, Tensor) and room.ndim == 2):
        return _injected_root_full(room, step_size, variance)
    spare = torch.rsub(variance, 2 * step_size * room, alpha=step_size**2)
    if spare.min() >= 0:
        return spare.sqrt_(), 0.0
    negative = spare < 0
    return spare.clamp_(min=0).sqrt_(), negative.to(spare.dtype).mean(-1)


def _injected_root_full(room: Matrix, step_size: float, variance: Tensor) -> tuple[Tensor, Tensor | float]:
    dim = len(room) if isinstance(room, Tensor) else variance.shape[-1]
    room = sum_of(variance.new_zeros(dim, dim), room)
    variance = variance if variance.ndim == 3 else torch.diag_embed(variance.expand(-1, dim))
    spare = torch.rsub(variance, 2 * step_size * room, alpha=step_size**2)
    root, failed = torch.linalg.cholesky_ex(spare)
    if not failed.any():
        return root, 0.0
    failed = failed > 0
    eigenvalues, eigenvectors = torch.linalg.eigh(spare[failed])
    root[failed] = eigenvectors * eigenvalues.clamp(min=0).sqrt()[:, None, :]
    return root, spare.new_zeros(len(spare)).masked_scatter_(failed, (eigenvalues < 0).to(spare.dtype).mean(-1))


def add_noise_(target: Tensor, root: Tensor, noise: Tensor) -> Tensor:
    """Add noise in place, target ← target + Rξ, with each chain's own root from :func:`injected_root`."""
    return target.addcmul_(root, noise) if root.ndim == 2 else target.add_((root @ noise[..., None])[..., 0])


def estimate_noise_variance(potential, position: Tensor, generator: Generator, kind: Kind = "diagonal", num_batches: int = 1) -> Matrix:
    """Estimate V at some positions once and for all, to pass B̂ = ½εV̂ as a fixed estimate.

    Args:
        potential: a potential that knows its noise: a posterior with minibatches, or a noisy gradient.
        position: ``(chains, dim)``; the estimate is the average over chains too, so give draws from the posterior, or copies of its mode.
        generator: the source of the minibatches.
        kind: ``"scalar"``, ``"diagonal"`` or ``"full"``.
        num_batches: number of minibatches of each chain to average over.

    Returns:
        V̂ as a number, ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if the batch has one example, or a full matrix would not fit into memory.

    Example:
        >>> from sgmc.potentials import DoubleWell, NoisyGradient
        >>> estimate_noise_variance(NoisyGradient(DoubleWell(), 4.0), torch.zeros(1, 1), torch.Generator(), "scalar")
        4.0
    """
    with torch.no_grad():
        total = sum(potential.gradient_and_noise_variance(position, generator, kind)[1].mean(0) for _ in range(num_batches))
    variance = total / num_batches
    return float(variance) if kind == "scalar" else variance


def friction_for(noise_variance: Matrix, step_size: float, multiple: float = 3.0, at_least: float = 0.0) -> Matrix:
    """Choose a friction as a multiple of the noise's own, C = k·½εV, so that C ⪰ B̂ with room to spare.

    A diagonal V gives every coordinate a friction of its own; a full one gives one number for all, C = k·½ε·λ_max(V).
    In learning-rate form, with η in place of ε, the result is the momentum decay α.

    Args:
        noise_variance: V, in any form of :mod:`sgmc.matrices`.
        step_size: ε.
        multiple: k, more than 1. At k = 1 nothing would be injected, and any overestimate would be clipped.
        at_least: the smallest friction of a coordinate; one without noise and without friction would never settle.

    Returns:
        C, a number, or ``(dim,)`` for a diagonal V.

    Raises:
        ValueError: if the multiple is not more than 1, or ``at_least`` is negative.

    Example:
        >>> friction_for(4.0, step_size=0.1, multiple=3.0)
        0.6
        >>> friction_for(torch.tensor([4.0, 0.0]), step_size=0.1, multiple=3.0, at_least=0.1)
        tensor([0.6000, 0.1000])
    """
    if not multiple > 1:
        raise ValueError(f"multiple must be more than 1, but it is {multiple}: at 1 the noise leaves no room to inject any")
    if not at_least >= 0:
        raise ValueError(f"at_least must be a friction of at least 0, but it is {at_least}")
    variance = as_matrix(noise_variance, "noise_variance")
    if isinstance(variance, Tensor) and variance.ndim == 1:
        return (multiple * 0.5 * step_size * variance).clamp(min=at_least)
    if isinstance(variance, Tensor):
        variance = float(torch.linalg.eigvalsh(variance)[-1])
    return max(round(multiple * 0.5 * step_size * variance, 12), at_least)


def no_noise(position: Tensor, kind: Kind) -> Tensor:
    """Make V̂ = 0 of a kind for positions ``(chains, dim)``."""
    chains, dim = position.shape
    if kind == "full":
        check_fits(chains, dim, position.element_size())
    return position.new_zeros({"scalar": (chains, 1), "diagonal": (chains, dim), "full": (chains, dim, dim)}[kind])


def check_fits(chains: int, dim: int, element_size: int) -> None:
    """Raise a ValueError if full matrices of all chains are too large for memory."""
    size = chains * dim**2 * element_size
    if size > MEMORY:
        raise ValueError(
            f"a full noise estimate of {dim:,} coordinates in {chains} chain{'s' * (chains > 1)} takes {size / 2**30:,.1f} GiB, "
            f"more than {MEMORY / 2**30:g} GiB: use kind='diagonal' or 'scalar', or fewer chains"
        )


# Per-example squares in networks. The gradient of example i in a layer's weights is δᵢaᵢᵀ, from its activations aᵢ at the layer's input and
# its signal δᵢ, the gradient at the layer's output. So the sum of squares over the examples needs no example's gradient:
# Σᵢ(δᵢaᵢᵀ)² = Σᵢδᵢ²(aᵢ²)ᵀ, one matrix product. Where weights are used at many places p of an example, as in a convolution, the gradient
# is Σₚδᵢₚaᵢₚᵀ, and the squares are taken example by example, a few at a time.


def simple_layers(module: nn.Module) -> dict[str, nn.Module] | None:
    """Name a network's layers if all of its parameters belong to linear layers and plain convolutions, each to one; else None."""

    def simple(layer: nn.Module) -> bool:
        plain = type(layer) is nn.Conv2d and layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return type(layer) is nn.Linear or plain

    layers = {name: layer for name, layer in module.named_modules() if simple(layer)}
    owned = [f"{name}.{key}".lstrip(".") for name, layer in layers.items() for key, _ in layer.named_parameters()]
    everything = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    return layers if sorted(owned) == sorted(everything) == sorted(name for name, _ in module.named_parameters()) else None


class Recorder:
    """A context in which the inputs of layers are recorded in the order of their use, and a probe is added to each one's output.

    The probes are zero; the gradient in a probe is the layer's signal.
    """

    def __init__(self, layers: dict[str, nn.Module], probes: Sequence[Tensor] = ()):
        self.layers, self.probes = layers, probes
        self.names, self.inputs, self.output_shapes = [], [], []

    def __enter__(self) -> "Recorder":
        def hook_for(name):
            def hook(layer, inputs, output):
                self.names.append(name)
                self.inputs.append(inputs[0].detach())
                self.output_shapes.append(output.shape)
                return output + self.probes[len(self.names) - 1] if self.probes else None

            return hook

        self._handles = [layer.register_forward_hook(hook_for(name)) for name, layer in self.layers.items()]
        return self

    def __exit__(self, *_):
        for handle in self._handles:
            handle.remove()


def sums_of_squares(layer: nn.Module, inputs: Tensor, signals: Tensor, kind: Kind = "diagonal") -> dict[str, Tensor]:
    """Sum the squares of the examples' gradients in a layer's weights and biases.

    Args:
        layer: linear, or a convolution.
        inputs: activations at its input, ``(chains, n, ...)``.
        signals: the gradient at its output, ``(chains, n, ...)``.
        kind: ``"diagonal"``; or ``"scalar"``, where the squares may be summed over coordinates early.

    Returns:
        For each parameter of the layer ``(chains, size)``; for a scalar ``(chains, 1)`` if summed.
    """
    if isinstance(layer, nn.Conv2d):
        patches = functional.unfold(inputs.flatten(0, 1), layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        inputs = patches.mT.unflatten(0, inputs.shape[:2])  # (chains, n, places, inputs of a place)
        signals = signals.flatten(3).mT  # (chains, n, places, outputs)
    if inputs.ndim == 3:
        inputs, signals = inputs.square(), signals.square()
        if kind == "scalar":  # the sum over an outer product is the product of two sums, and no matrix is needed
            inputs, signals = inputs.sum(-1, keepdim=True), signals.sum(-1, keepdim=True)
        weight, bias = signals.mT @ inputs, signals.sum(1)
    else:
        inputs, signals = inputs.flatten(2, -2), signals.flatten(2, -2)
        few = max(1, 2**22 // (inputs.shape[-1] * signals.shape[-1] * inputs.shape[0]))
        pieces = zip(signals.split(few, 1), inputs.split(few, 1), strict=True)
        weight = sum((signal.mT @ activation).square().sum(1) for signal, activation in pieces)
        bias = signals.sum(2).square().sum(1)
    return {"weight": weight.flatten(1), "bias": bias} if layer.bias is not None else {"weight": weight.flatten(1)}
