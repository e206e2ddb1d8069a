"""Chains of linear layers, differentiated by hand, for all chains and examples at once.

The gradient of example i in a layer's weights is δᵢaᵢᵀ, from the activations aᵢ at the
layer's input and the gradient δᵢ at its output (Bishop, 2006, eq. 5.53). So the sum
over the examples is a matrix product, and that of the squares another, Σᵢδᵢ²(aᵢ²)ᵀ."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sgmc.potentials import Kind

# of each activation f: f, and f′ as a function of f
ACTIVATIONS = {
    nn.ReLU: (torch.relu, torch.sign),
    nn.Sigmoid: (torch.sigmoid, lambda a: a - a.square()),
    nn.Tanh: (torch.tanh, lambda a: 1 - a.square()),
}


class Layer(NamedTuple):
    """A linear layer, by the names of its parameters."""

    activation: type[nn.Module] | None  #: what comes before it
    weight: str
    bias: str | None


def layers_of(module: nn.Module) -> list[Layer] | None:
    """List the layers of a network; None if it is something else than linear layers and
    known activations in turn.

    Example:
        >>> layers_of(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))[1]
        Layer(activation=<class 'torch.nn.modules.activation.Tanh'>, weight='2.weight',
            bias='2.bias')
    """
    stages = list(module) if type(module) is nn.Sequential else [module]
    linear, between = stages[::2], [type(stage) for stage in stages[1::2]]
    if (
        any(type(layer) is not nn.Linear for layer in linear)
        or not set(between) <= set(ACTIVATIONS)
        or len(linear) != len(between) + 1
        # no weights are used twice, and nothing is done beside
        or len(list(module.parameters())) != sum(len([*x.parameters()]) for x in linear)
        or any(x._forward_hooks or x._forward_pre_hooks for x in module.modules())
    ):
        return None
    names = iter(dict(module.named_parameters()))
    return [
        Layer(activation, next(names), None if layer.bias is None else next(names))
        for activation, layer in zip([None, *between], linear, strict=True)
    ]


def moments(
    layers: list[Layer],
    parameters: Mapping[str, Tensor],
    inputs: Tensor,
    slope: Callable[[Tensor], Tensor],
    sums: Mapping[str, Tensor],
    kind: Kind | None = None,
) -> dict[str, Tensor]:
    """Sum the examples' gradients of a function of the outputs, and their squares.

    Args:
        layers: the network.
        parameters: by name, weights ``(chains, outputs, inputs)`` and biases ``(chains,
            outputs)``.
        inputs: ``(chains or 1, n, inputs)``.
        slope: the function's gradient, from outputs ``(chains, n, outputs)`` to the
            same shape.
        sums: where the sums of the gradients go, like the parameters.
        kind: ``"diagonal"`` for all the squares; ``"scalar"``, where those of a layer's
            weights are summed; None for none.

    Returns:
        The sums of the squares by name, ``(chains, number)``.
    """
    signal, entering = inputs.expand(len(parameters[layers[0].weight]), -1, -1), []
    for activation, weight, bias in layers:
        if activation is not None:
            signal = ACTIVATIONS[activation][0](signal)
        entering.append(signal)
        if bias is None:
            signal = signal @ parameters[weight].mT
        else:
            added = parameters[bias][:, None]
            signal = torch.baddbmm(added, signal, parameters[weight].mT)
    signal, squares = slope(signal), {}
    for activation, weight, bias in reversed(layers):
        active = entering.pop()
        torch.bmm(signal.mT, active, out=sums[weight])
        if bias is not None:
            torch.sum(signal, 1, out=sums[bias])
        if kind is not None:
            square, active_square = signal.square(), active.square()
            if kind == "scalar":
                square, active_square = (
                    square.sum(-1, True),
                    active_square.sum(-1, True),
                )
            squares[weight] = (square.mT @ active_square).flatten(1)
            if bias is not None:
                squares[bias] = square.sum(1)
        if activation is not None:
            derivative = ACTIVATIONS[activation][1](active)
            signal = (signal @ parameters[weight]).mul_(derivative)
    return squares
