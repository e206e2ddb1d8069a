"""Chains of linear layers, differentiated by hand, for all chains and examples at once.

The gradient of example i in a layer's weights is δᵢaᵢᵀ, from its activations aᵢ at the
layer's input and its signal δᵢ, the gradient at the layer's output (Bishop, 2006, eq.
5.53). So the sum over the examples is one matrix product, and so is the sum of the
squares, Σᵢ(δᵢaᵢᵀ)² = Σᵢδᵢ²(aᵢ²)ᵀ: no example's gradient is ever made."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from sgmc.potentials import Kind

# of each activation f: f, and f′ as a function of f
ACTIVATIONS = {
    nn.ReLU: (torch.relu, torch.sign),
    nn.Sigmoid: (torch.sigmoid, lambda a: a - a.square()),
    nn.Tanh: (torch.tanh, lambda a: 1 - a.square()),
}


def activations_of(module: nn.Module) -> list[type[nn.Module]] | None:
    """List the activations between the linear layers of a network; None if it is
    something else than linear layers and known activations in turn.

    Example:
        >>> activations_of(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
        [<class 'torch.nn.modules.activation.Tanh'>]
    """
    layers = list(module) if type(module) is nn.Sequential else [module]
    linear, between = layers[::2], [type(layer) for layer in layers[1::2]]
    right = (
        len(linear) == len(between) + 1
        and all(type(layer) is nn.Linear for layer in linear)
        and set(between) <= set(ACTIVATIONS)
        # each layer has weights of its own, and does nothing beside
        and len(list(module.parameters()))
        == sum(len(list(x.parameters())) for x in linear)
        and not any(x._forward_hooks or x._forward_pre_hooks for x in module.modules())
    )
    return between if right else None


def moments(
    parameters: Iterable[Tensor],
    activations: list[type[nn.Module]],
    inputs: Tensor,
    slope: Callable[[Tensor], Tensor],
    sums: Iterable[Tensor],
    kind: Kind | None = None,
) -> list[Tensor]:
    """Sum the examples' gradients of a function of the outputs, and their squares.

    Args:
        parameters: weights ``(chains, outputs, inputs)`` and, if there are any, biases
            ``(chains, outputs)`` of each layer.
        activations: those between the layers.
        inputs: ``(chains or 1, n, inputs)``.
        slope: the gradient of the function in the outputs, from outputs ``(chains, n,
            outputs)`` to the same shape.
        sums: where the sums of the gradients go, like the parameters.
        kind: ``"diagonal"`` for all the squares; ``"scalar"``, where they are summed
            over the weights of each layer; None for none.

    Returns:
        The sums of the squares for each parameter, ``(chains, number)``.
    """
    layers = []
    for each in zip(parameters, sums, strict=True):
        if each[0].ndim == 3:
            layers.append([])
        layers[-1].append(each)
    signal, entering = inputs.expand(len(layers[0][0][0]), -1, -1), []
    for number, ((weight, _), *bias) in enumerate(layers):
        if number > 0:
            signal = ACTIVATIONS[activations[number - 1]][0](signal)
        entering.append(signal)
        if bias:
            signal = torch.baddbmm(bias[0][0][:, None], signal, weight.mT)
        else:
            signal = signal @ weight.mT
    signal, squares = slope(signal), []
    for number in reversed(range(len(layers))):
        ((weight, total), *bias), active = layers[number], entering[number]
        torch.bmm(signal.mT, active, out=total)
        for _, total in bias:
            torch.sum(signal, 1, out=total)
        if kind is not None:
            square, active_square = signal.square(), active.square()
            if kind == "scalar":
                square = square.sum(-1, keepdim=True)
                active_square = active_square.sum(-1, keepdim=True)
            of_weight = (square.mT @ active_square).flatten(1)
            squares = [of_weight, *(square.sum(1) for _ in bias), *squares]
        if number > 0:
            derivative = ACTIVATIONS[activations[number - 1]][1](active)
            signal = (signal @ weight).mul_(derivative)
    return squares
