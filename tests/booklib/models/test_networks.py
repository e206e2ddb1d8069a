"""Networks: the layers asked for."""

import pytest
import torch
from torch import nn

from booklib.models.networks import (
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
