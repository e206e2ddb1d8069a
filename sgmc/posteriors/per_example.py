"""Squares of the examples' gradients in a network, summed over a minibatch without
making any example's gradient.

The gradient of example i in a layer's weights is δᵢaᵢᵀ, from its activations aᵢ at the
layer's input and its signal δᵢ, the gradient at the layer's output. So the sum of
squares over the examples needs no example's gradient: Σᵢ(δᵢaᵢᵀ)² = Σᵢδᵢ²(aᵢ²)ᵀ, one
matrix product. Where weights are used at many places p of an example, as in a
convolution, the gradient is Σₚδᵢₚaᵢₚᵀ, and the squares are taken example by example, a
few at a time."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from sgmc.potentials import Kind


def simple_layers(module: nn.Module) -> dict[str, nn.Module] | None:
    """Name a network's layers if all of its parameters belong to linear layers and
    plain convolutions, each to one; else None.
    """

    def simple(layer: nn.Module) -> bool:
        plain = (
            type(layer) is nn.Conv2d
            and layer.groups == 1
            and layer.padding_mode == "zeros"
            and not isinstance(layer.padding, str)
        )
        return type(layer) is nn.Linear or plain

    layers = {name: layer for name, layer in module.named_modules() if simple(layer)}
    owned = [
        f"{name}.{key}".lstrip(".")
        for name, layer in layers.items()
        for key, _ in layer.named_parameters()
    ]
    everything = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    return (
        layers
        if sorted(owned)
        == sorted(everything)
        == sorted(name for name, _ in module.named_parameters())
        else None
    )


class Recorder:
    """A context in which the inputs of layers are recorded in the order of their use,
    and a probe is added to each one's output.

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
                return (
                    output + self.probes[len(self.names) - 1] if self.probes else None
                )

            return hook

        self._handles = [
            layer.register_forward_hook(hook_for(name))
            for name, layer in self.layers.items()
        ]
        return self

    def __exit__(self, *_):
        for handle in self._handles:
            handle.remove()


def sums_of_squares(
    layer: nn.Module, inputs: Tensor, signals: Tensor, kind: Kind = "diagonal"
) -> dict[str, Tensor]:
    """Sum the squares of the examples' gradients in a layer's weights and biases.

    Args:
        layer: linear, or a convolution.
        inputs: activations at its input, ``(chains, n, ...)``.
        signals: the gradient at its output, ``(chains, n, ...)``.
        kind: ``"diagonal"``; or ``"scalar"``, where the squares may be summed over
            coordinates early.

    Returns:
        For each parameter of the layer ``(chains, size)``; for a scalar ``(chains, 1)``
        if summed.
    """
    if isinstance(layer, nn.Conv2d):
        patches = functional.unfold(
            inputs.flatten(0, 1),
            layer.kernel_size,
            layer.dilation,
            layer.padding,
            layer.stride,
        )
        # (chains, n, places, inputs of a place)
        inputs = patches.mT.unflatten(0, inputs.shape[:2])
        signals = signals.flatten(3).mT  # (chains, n, places, outputs)
    if inputs.ndim == 3:
        inputs, signals = inputs.square(), signals.square()
        # the sum over an outer product is the product of two sums, and no matrix is
        # needed
        if kind == "scalar":
            inputs, signals = (
                inputs.sum(-1, keepdim=True),
                signals.sum(-1, keepdim=True),
            )
        weight, bias = signals.mT @ inputs, signals.sum(1)
    else:
        inputs, signals = inputs.flatten(2, -2), signals.flatten(2, -2)
        few = max(1, 2**22 // (inputs.shape[-1] * signals.shape[-1] * inputs.shape[0]))
        pieces = zip(signals.split(few, 1), inputs.split(few, 1), strict=True)
        weight = sum(
            (signal.mT @ activation).square().sum(1) for signal, activation in pieces
        )
        bias = signals.sum(2).square().sum(1)
    return (
        {"weight": weight.flatten(1), "bias": bias}
        if layer.bias is not None
        else {"weight": weight.flatten(1)}
    )
