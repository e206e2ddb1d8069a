"""The networks of the book."""

import itertools

from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


def multilayer_perceptron(sizes: list[int], activation: str = "relu") -> nn.Sequential:
    """Make a fully connected network with the given layer sizes, from inputs to logits.

    Args:
        sizes: number of inputs, of the units of each hidden layer, and of classes; ``[784, 100, 10]`` is the network of Chen et al. (2014).
        activation: ``"relu"``, ``"sigmoid"`` or ``"tanh"``, after every layer but the last.

    Raises:
        ValueError: if there are fewer than two sizes, or the activation is unknown.

    Example:
        >>> sum(parameter.numel() for parameter in multilayer_perceptron([784, 100, 10]).parameters())
        79510
    """
    if len(sizes) < 2 or any(not isinstance(size, int) or size < 1 for size in sizes):
        raise ValueError(f"sizes must be at least two positive whole numbers, inputs to classes, but they are {sizes}")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, but it is {activation!r}")
    layers = [layer for pair in itertools.pairwise(sizes) for layer in (nn.Linear(*pair), ACTIVATIONS[activation]())]
    return nn.Sequential(*layers[:-1])
