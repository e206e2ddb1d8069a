"""Networks: the layers asked for, and what is refused."""

import pytest
import torch
from torch import nn

from sgmc.networks import ACTIVATIONS, multilayer_perceptron


@pytest.mark.parametrize(("activation", "function"), [("relu", torch.relu), ("sigmoid", torch.sigmoid), ("tanh", torch.tanh)])
def test_a_network_is_its_layers_written_out(activation, function, generator):
    network = multilayer_perceptron([4, 5, 6, 3], activation)
    first, second, last = (layer for layer in network if isinstance(layer, nn.Linear))
    assert [tuple(layer.weight.shape) for layer in (first, second, last)] == [(5, 4), (6, 5), (3, 6)]
    inputs = torch.randn(7, 4, generator=generator)
    expected = function(function(inputs @ first.weight.T + first.bias) @ second.weight.T + second.bias) @ last.weight.T + last.bias
    torch.testing.assert_close(network(inputs), expected)


def test_without_hidden_layers_it_is_a_linear_map_and_the_default_is_relu():
    assert [type(layer) for layer in multilayer_perceptron([4, 3])] == [nn.Linear]
    assert [type(layer) for layer in multilayer_perceptron([4, 5, 3])] == [nn.Linear, nn.ReLU, nn.Linear]
    assert set(ACTIVATIONS) == {"relu", "sigmoid", "tanh"}


@pytest.mark.parametrize("sizes", [[], [4], [4, 0, 3], [4, -1], [4, 2.5, 3]], ids=str)
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="sizes must be at least two positive whole numbers, inputs to classes, but they are "):
        multilayer_perceptron(sizes)


def test_an_unknown_activation_is_refused():
    with pytest.raises(ValueError, match=r"activation must be one of \['relu', 'sigmoid', 'tanh'\], but it is 'gelu'"):
        multilayer_perceptron([4, 3], "gelu")
