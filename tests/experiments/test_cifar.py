"""CIFAR-10: how images are read and standardised, and what random features are."""

import torch
from torch import Generator

from booklib.data import Data, scramble, standardise
from booklib.models.networks import convolutional_network
from experiments import cifar


def images(generator, examples=40, shape=(3, 8, 8)):
    return Data(
        torch.rand(examples, shape[0] * shape[1] * shape[2], generator=generator),
        torch.arange(examples) % 10,
    )


def test_scrambling_reads_pixels_as_colours():
    pixels = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
    # as the files of CIFAR-10 come out of torchvision
    as_stored = pixels.permute(0, 2, 3, 1).contiguous()
    scrambled = scramble(
        Data(pixels.flatten(1), torch.zeros(2, dtype=torch.int64)), (3, 4, 4)
    )
    assert torch.equal(scrambled.inputs.view(2, 3, 4, 4), as_stored.reshape(2, 3, 4, 4))
    assert not torch.equal(scrambled.inputs.view(2, 3, 4, 4), pixels)
    grey = Data(pixels.flatten(1)[:, :16], torch.zeros(2, dtype=torch.int64))
    # one colour cannot be scrambled
    assert torch.equal(scramble(grey, (1, 4, 4)).inputs, grey.inputs)


def test_standardised_colours_have_mean_zero_and_variance_one_and_the_test_images_follow(
    generator,
):
    train, test = images(generator), images(generator, 7)
    new_train, new_test = standardise(train, test, 3)
    colours = new_train.inputs.view(40, 3, 64)
    torch.testing.assert_close(colours.mean((0, 2)), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(colours.std((0, 2)), torch.ones(3))
    repeated = standardise(train, Data(train.inputs[3:4], train.targets[3:4]), 3)[1]
    torch.testing.assert_close(repeated.inputs[0], new_train.inputs[3])
    assert new_test.inputs.shape == (7, 192)


def test_convolutions_that_are_held_are_the_whole_network_at_their_weights(generator):
    train, test = images(generator), images(generator, 6)
    network = convolutional_network((3, 8, 8), (4, 5), hidden=6)
    held, held_test, layers = cifar.behind_convolutions(
        train, test, network, Generator().manual_seed(3)
    )
    torch.testing.assert_close(layers(held.inputs), network(train.inputs))
    torch.testing.assert_close(layers(held_test.inputs), network(test.inputs))
    numbers = Generator().manual_seed(3)
    for layer, fan_in in (network[1], 27), (network[4], 36):
        torch.testing.assert_close(
            layer.weight,
            torch.empty_like(layer.weight).normal_(generator=numbers) / fan_in**0.5,
        )
        assert layer.bias.abs().max() == 0
