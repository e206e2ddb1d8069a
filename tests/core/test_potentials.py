"""The potential's protocol: what a subclass writes, what follows from it, and what is
refused.
"""

import pytest
import torch

from sgmc import sample
from sgmc.checks import check_fits
from sgmc.door.starting import check_start
from sgmc.kernels import HMC, SGHMC, SGLD, NaiveSGHMC
from sgmc.noise import OnlineNoise
from sgmc.potentials import Potential, differentiate, no_noise
from sgmc.splittings import Splitting
from sgmc.splittings.flows import baoab
from sgmc.targets import DoubleWell

START = torch.tensor([[0.5, -1.0], [2.0, 0.1], [0.0, 1.0]])


class Quartic(Potential):
    def energy(self, position):
        return position.pow(4).sum(-1)


class Written(Quartic):
    """With a gradient of its own, to tell it from the automatic one."""

    def gradient(self, position):
        return 4 * position**3 + 1


class Noisy(Quartic):
    """A gradient seen through noise that depends on the step, and takes one number of
    the generator.
    """

    def draw_minibatches(self, position, generator, step, num_steps=1):
        return [
            step + torch.rand((), generator=generator)
            for step in range(step, step + num_steps)
        ]

    def gradient_given(self, position, minibatch):
        return self.gradient(position) + minibatch


class Knowing(Noisy):
    def gradient_and_variance_given(self, position, minibatch, kind):
        return self.gradient_given(position, minibatch), no_noise(
            position, kind
        ) + 1 / 12


def generator_of(seed=0):
    return torch.Generator().manual_seed(seed)


def test_an_energy_is_enough():
    target = Quartic()
    torch.testing.assert_close(target.gradient(START), 4 * START**3)
    energy, gradient = target.energy_and_gradient(START)
    torch.testing.assert_close(energy, START.pow(4).sum(-1))
    torch.testing.assert_close(gradient, 4 * START**3)
    assert (
        target.dim is None and not energy.requires_grad and not gradient.requires_grad
    )
    assert torch.equal(target.gradient_given(START, None), gradient)
    assert sample(HMC(0.1, 3), target, START, num_samples=3).samples.shape == (3, 3, 2)


def test_a_gradient_of_its_own_is_the_one_that_is_used():
    target = Written()
    for gradient in (
        target.energy_and_gradient(START)[1],
        target.gradient_given(START, None),
        target.stochastic_gradient(START, generator_of()),
        target.gradient_and_noise_variance(START, generator_of(), "scalar")[0],
    ):
        assert torch.equal(gradient, 4 * START**3 + 1)


def test_automatic_differentiation_leaves_no_trace():
    position = START.clone().requires_grad_()
    with torch.no_grad():
        value, gradient = differentiate(lambda x: x.pow(2).sum(-1), position)
        assert not torch.is_grad_enabled()
    assert (
        position.grad is None and not value.requires_grad and not gradient.requires_grad
    )
    torch.testing.assert_close(gradient, 2 * START)


@pytest.mark.parametrize("kind", ["scalar", "diagonal", "full"])
def test_without_noise_there_is_none_and_nothing_is_drawn(kind):
    generator = generator_of()
    before = generator.get_state()
    assert tuple(Quartic().draw_minibatches(START, generator, step=5, num_steps=3)) == (
        None,
        None,
        None,
    )
    gradient, variance = Quartic().gradient_and_variance_given(START, None, kind)
    assert torch.equal(gradient, Quartic().gradient(START)) and not variance.any()
    assert (
        variance.shape
        == {"scalar": (3, 1), "diagonal": (3, 2), "full": (3, 2, 2)}[kind]
    )
    assert torch.equal(generator.get_state(), before)


def test_the_stochastic_gradient_follows_from_noise_and_gradient():
    target = Noisy()
    (noise,) = target.draw_minibatches(START, generator_of(3), step=7)
    assert torch.equal(
        target.stochastic_gradient(START, generator_of(3), step=7),
        target.gradient(START) + noise,
    )
    by_hand, generator = [], generator_of(3)
    for _ in range(2):  # without a step's number a random one is taken
        by_hand.append(
            target.stochastic_gradient(START, generator) - target.gradient(START)
        )
    assert by_hand[0].mean() > 1e6 and (by_hand[0] - by_hand[1]).abs().min() > 1e6
    again = target.stochastic_gradient(START, generator_of(3)) - target.gradient(START)
    assert torch.equal(again, by_hand[0])


def test_the_variance_follows_the_gradient_of_the_same_noise():
    gradient, variance = Knowing().gradient_and_noise_variance(
        START, generator_of(3), "diagonal", step=7
    )
    assert torch.equal(
        gradient, Knowing().stochastic_gradient(START, generator_of(3), step=7)
    )
    assert torch.equal(variance, torch.full((3, 2), 1 / 12))
    with pytest.raises(
        NotImplementedError,
        match=r"Noisy.*gradient_and_variance_given",
    ):
        Noisy().gradient_and_noise_variance(START, generator_of(3), "diagonal")


class Listening(Knowing):
    """Take note of the steps that are asked for."""

    def __init__(self):
        self.asked = []

    def draw_minibatches(self, position, generator, step, num_steps=1):
        self.asked.extend(range(step, step + num_steps))
        return super().draw_minibatches(0 * position, generator, 0, num_steps)


KERNELS = {
    "SGLD": (SGLD(1e-3), 1),
    "SGHMC": (SGHMC(1e-2, 1.0, num_steps=3), 3),
    "SGHMC with an online estimate": (SGHMC(1e-2, 1.0, OnlineNoise(), num_steps=3), 3),
    "a splitting": (Splitting(baoab(1e-2, 1.0), num_steps=2), 4),
    "naive SGHMC": (NaiveSGHMC(1e-2, num_steps=2), 3),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_number_their_gradients_from_zero(name):
    """So that a minibatch rule sees each step once, in order; one more look may lie far
    beyond all of them.
    """
    kernel, each = KERNELS[name]
    target = Listening()
    state = kernel.init(target, START, generator_of())
    assert all(step >= 2**40 for step in target.asked)
    target.asked.clear()
    for _ in range(5):
        state, info = kernel.step(target, state, generator_of())
    assert target.asked == list(range(5 * each)) and info.num_gradients == 5 * each


@pytest.mark.parametrize("name", ["stochastic_gradient", "gradient_and_noise_variance"])
def test_what_kernels_do_not_call_cannot_be_written(name):
    """A class that writes it would be sampled without its noise, and nobody would
    know.
    """
    message = rf"Mine.*{name}.*draw_minibatches.*gradient_given"
    method = {name: lambda self, position, *_, **given: position}
    for parents in ((DoubleWell,), (type("Other", (), method), DoubleWell)):
        mine = type("Mine", parents, method if len(parents) == 1 else {})()
        with pytest.raises(ValueError, match=message):
            check_start(mine, torch.zeros(2, 1), 0)


def test_a_full_matrix_too_large_for_memory_is_refused_with_its_size():
    with pytest.raises(
        ValueError,
        match=r"79,510 coordinates.*2 chains.*47\.1 GiB.*4 GiB",
    ):
        no_noise(torch.empty(2, 79_510, device="meta"), "full")
    check_fits(1, 10_000, 4)
