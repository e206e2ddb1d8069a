"""Networks: the layers asked for, and what is refused."""

import pytest
import torch
from torch import nn

from booklib.models.networks import (
    ACTIVATIONS,
    convolutional_network,
    multilayer_perceptron,
)


@pytest.mark.parametrize(
    ("activation", "function"),
    [("relu", torch.relu), ("sigmoid", torch.sigmoid), ("tanh", torch.tanh)],
)
def test_a_network_is_its_layers_written_out(activation, function, generator):
    network = multilayer_perceptron([4, 5, 6, 3], activation)
    first, second, last = (layer for layer in network if isinstance(layer, nn.Linear))
    assert [tuple(layer.weight.shape) for layer in (first, second, last)] == [
        (5, 4),
        (6, 5),
        (3, 6),
    ]
    inputs = torch.randn(7, 4, generator=generator)
    expected = (
        function(
            function(inputs @ first.weight.T + first.bias) @ second.weight.T
            + second.bias
        )
        @ last.weight.T
        + last.bias
    )
    torch.testing.assert_close(network(inputs), expected)


def test_without_hidden_layers_it_is_a_linear_map_and_the_default_is_relu():
    assert [type(layer) for layer in multilayer_perceptron([4, 3])] == [nn.Linear]
    assert [type(layer) for layer in multilayer_perceptron([4, 5, 3])] == [
        nn.Linear,
        nn.ReLU,
        nn.Linear,
    ]
    assert set(ACTIVATIONS) == {"relu", "sigmoid", "tanh"}


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [4],
        [4, 0, 3],
        [4, -1],
        [4, 2.5, 3],
        [4, True],
        ["4", "3"],
        4,
        None,
        torch.tensor([4, 3]),
    ],
    ids=str,
)
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(
        ValueError,
        match=r"sizes.*positive",
    ):
        multilayer_perceptron(sizes)


def test_an_unknown_activation_is_refused():
    with pytest.raises(
        ValueError,
        match=r"activation.*'gelu'",
    ):
        multilayer_perceptron([4, 3], "gelu")


@pytest.mark.parametrize("normalisation", [None, "group", "batch"])
def test_a_convolutional_network_is_its_layers_written_out(normalisation, generator):
    network = convolutional_network(
        (2, 8, 12),
        (5, 4),
        hidden=7,
        kernel_size=5,
        normalisation=normalisation,
        classes=3,
    )
    (first, second), (third, last) = (
        [layer for layer in network if isinstance(layer, kind)]
        for kind in (nn.Conv2d, nn.Linear)
    )
    images = torch.randn(6, 2, 8, 12, generator=generator)

    def normalise(features):
        if normalisation is None:
            return features
        axes = (0, 2, 3) if normalisation == "batch" else (1, 2, 3)
        mean, variance = (
            features.mean(axes, keepdim=True),
            features.var(axes, correction=0, keepdim=True),
        )
        return (features - mean) / (variance + 1e-5).sqrt()

    features = images
    for layer in (first, second):
        features = torch.tanh(
            normalise(
                nn.functional.conv2d(features, layer.weight, layer.bias, padding=2)
            )
        )
        # after the activation, as in the report
        features = nn.functional.max_pool2d(features, 2)
    expected = last(torch.tanh(third(features.flatten(1))))
    torch.testing.assert_close(network(images.flatten(1)), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"shape": (3, 30, 32)},
            r"\bshape.*channels.*\(3, 30, 32\)",
        ),
        (
            {"shape": 32},
            r"\bshape.*channels.*\b32\b",
        ),
        (
            {"channels": (32, 16, 8)},
            r"channels.*\(32, 16, 8\)",
        ),
        (
            {"channels": 16},
            r"channels.*\b16\b",
        ),
        ({"hidden": 0}, r"hidden.*\b0\b"),
        (
            {"classes": 2.5},
            r"classes.*\b2\.5\b",
        ),
        ({"kernel_size": 4}, r"kernel_size.*\b4\b"),
        (
            {"kernel_size": -1},
            r"kernel_size.*-1\b",
        ),
        ({"activation": "gelu"}, r"activation.*gelu"),
        (
            {"normalisation": "layer"},
            r"normalisation.*'layer'",
        ),
    ],
    ids=str,
)
def test_bad_settings_of_a_convolutional_network_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        convolutional_network(**{"shape": (3, 32, 32), **settings})
