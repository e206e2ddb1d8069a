"""The networks of the book."""

import itertools

from torch import Tensor, nn

from sgmc.checks import check_choice, check_count

ACTIVATIONS = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
NORMALISATIONS = {
    None: lambda channels: [],
    "batch": lambda channels: [nn.BatchNorm2d(channels)],
    "group": lambda channels: [nn.GroupNorm(1, channels)],
}


def multilayer_perceptron(sizes: list[int], activation: str = "relu") -> nn.Sequential:
    """Make a fully connected network with the given layer sizes, from inputs to logits.

    Args:
        sizes: number of inputs, of the units of each hidden layer, and of classes;
            ``[784, 100, 10]`` is the network of Chen et al. (2014).
        activation: ``"relu"``, ``"sigmoid"`` or ``"tanh"``, after every layer but the
            last.

    Raises:
        ValueError: if there are fewer than two sizes, or the activation is unknown.

    Example:
        >>> sum(
        ...     parameter.numel()
        ...     for parameter in multilayer_perceptron([784, 100, 10]).parameters()
        ... )
        79510
    """
    if not _are_counts(sizes) or len(sizes) < 2:
        raise ValueError(
            "sizes must be at least two positive whole numbers, inputs to classes, "
            f"but they are {sizes}"
        )
    check_choice("activation", activation, tuple(ACTIVATIONS))
    layers = [
        layer
        for pair in itertools.pairwise(sizes)
        for layer in (nn.Linear(*pair), ACTIVATIONS[activation]())
    ]
    return nn.Sequential(*layers[:-1])


class Images(nn.Unflatten):
    """Read flat inputs ``(n, features)`` as images ``(n, channels, height, width)``,
    the channels of a pixel side by side in memory.

    Same numbers, other order: a convolution and its pooling take two thirds of the time
    on a CPU.

    Example:
        >>> Images((3, 4, 5))(Tensor(1, 60)).stride()
        (60, 1, 15, 3)
    """

    def __init__(self, shape: tuple[int, int, int]):
        if not _are_counts(shape) or len(shape) != 3:
            raise ValueError(
                f"shape must be (channels, height, width), but it is {shape}"
            )
        super().__init__(1, shape)

    def forward(self, inputs: Tensor) -> Tensor:
        """Reshape the inputs into images; permutations do it, because ``vmap`` ignores
        memory formats.
        """
        return (
            super().forward(inputs).permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        )


def convolutional_network(
    shape: tuple[int, int, int],
    channels: tuple[int, int] = (32, 16),
    hidden: int = 100,
    kernel_size: int = 3,
    activation: str = "tanh",
    normalisation: str | None = None,
    classes: int = 10,
) -> nn.Sequential:
    """Make a network of two convolutions, each with max-pooling by two and an
    activation, and two linear layers, for flat inputs.

    The activations rise, so that they may come after the pooling, where there is a
    quarter of the work: max f(x) = f(max x).

    Args:
        shape: (channels, height, width) of an image; height and width are multiples of
            4.
        channels: number of channels that each convolution makes.
        hidden: number of units between the two linear layers.
        kernel_size: width of the convolutions, odd; the images are padded by zeros.
        activation: ``"relu"``, ``"sigmoid"`` or ``"tanh"``.
        normalisation: what follows each convolution: None, ``"batch"``, or ``"group"``
            (Wu and He, 2018, with one group), which normalises each image by itself.
        classes: number of classes.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> sum(
        ...     parameter.numel()
        ...     for parameter in convolutional_network((3, 32, 32)).parameters()
        ... )
        109030
    """
    if not _are_counts(shape) or len(shape) != 3 or shape[1] % 4 or shape[2] % 4:
        raise ValueError(
            "shape must be (channels, height, width) with height and width multiples "
            f"of 4, but it is {shape}"
        )
    if not _are_counts(channels) or len(channels) != 2:
        raise ValueError(
            f"channels must be two positive whole numbers, but they are {channels}"
        )
    check_count("hidden", hidden)
    check_count("kernel_size", kernel_size)
    if kernel_size % 2 == 0:
        raise ValueError(f"kernel_size must be odd, but it is {kernel_size}")
    check_choice("activation", activation, tuple(ACTIVATIONS))
    check_count("classes", classes)
    if normalisation not in tuple(NORMALISATIONS):
        raise ValueError(
            "normalisation must be None, 'batch' or 'group', but it is "
            f"{normalisation!r}"
        )
    layers: list[nn.Module] = [Images(shape)]
    for inputs, outputs in itertools.pairwise((shape[0], *channels)):
        layers += [
            nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2),
            *NORMALISATIONS[normalisation](outputs),
        ]
        layers += [nn.MaxPool2d(2), ACTIVATIONS[activation]()]
    features = channels[1] * (shape[1] // 4) * (shape[2] // 4)
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(features, hidden),
        ACTIVATIONS[activation](),
        nn.Linear(hidden, classes),
    )


def _are_counts(values: object) -> bool:
    """Tell whether the value holds several positive whole numbers."""
    return isinstance(values, (list, tuple)) and all(
        type(value) is int and value > 0 for value in values
    )
