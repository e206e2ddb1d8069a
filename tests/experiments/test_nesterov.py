"""Nesterov's momentum, and what the report's program makes of a weight decay."""

import pytest
import torch

from booklib.networks import multilayer_perceptron
from experiments.nesterov import Nesterov
from experiments.plan import Plan
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior
from tests.experiments.test_run import data


def posterior():
    """A small network in double precision, which sees fresh minibatches."""
    train = data(40)
    network = multilayer_perceptron([6, 4, 10], "sigmoid").double()
    return NetworkPosterior(
        network, train.inputs.double(), train.targets, batch_size=5, minibatches=Fresh()
    ).given({name: 2.0 for name, _ in network.named_parameters()})


def walk(kernel, potential, position, steps):
    generator = torch.Generator().manual_seed(0)
    state = kernel.init(potential, position, generator)
    for _ in range(steps):
        state, info = kernel.step(potential, state, generator)
    assert info.num_gradients == state.num_gradients == steps
    return state.position


def test_the_steps_are_those_of_torch():
    potential, generator = posterior(), torch.Generator().manual_seed(0)
    start = potential.initial_position(1, torch.Generator().manual_seed(1)).double()
    position = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([position], lr=1e-3, momentum=0.9, nesterov=True)
    for step in range(20):
        position.grad = potential.stochastic_gradient(
            position.detach(), generator, step
        )
        optimiser.step()
    mine = walk(Nesterov(1e-3, 0.1), potential, start, 20)
    assert torch.allclose(mine, position.detach(), rtol=1e-10, atol=1e-12)
    assert (mine - start).norm() > 1e-3


def test_a_decay_of_one_is_descent_without_momentum():
    potential, generator = posterior(), torch.Generator().manual_seed(0)
    position = start = potential.initial_position(
        1, torch.Generator().manual_seed(1)
    ).double()
    for step in range(5):
        position = position - 1e-3 * potential.stochastic_gradient(
            position, generator, step
        )
    assert torch.allclose(
        walk(Nesterov(1e-3, 1.0), potential, start, 5), position, rtol=1e-12
    )


@pytest.mark.parametrize("decay", [0.0, 1.5])
def test_a_decay_out_of_its_range_is_refused(decay):
    with pytest.raises(
        ValueError,
        match="momentum_decay must be greater than 0 and at most 1, but it is",
    ):
        Nesterov(1e-3, decay)


def test_the_rate_twice_is_what_the_program_does():
    """Their loop, written out: the decay multiplies the gradient by η, and the step
    does so again.
    """
    potential, generator = posterior(), torch.Generator().manual_seed(0)
    rate, decay, weight_decay = 0.03, 0.1, 0.5
    start = potential.initial_position(1, torch.Generator().manual_seed(1)).double()
    position, velocity = start, torch.zeros_like(start)
    for step in range(20):
        gradient = rate * (
            potential.stochastic_gradient(position, generator, step)
            + weight_decay * position
        )
        velocity = (1 - decay) * velocity + gradient
        position = position - rate * (gradient + (1 - decay) * velocity)
    plan = Plan(
        rate, decay, temperature=0.0, nesterov=True, prior_precision=2.0
    ).rate_twice(weight_decay)
    same = potential.given(
        {name: plan.prior_precision for name, _ in potential.module.named_parameters()}
    )
    mine = walk(plan.kernel(), same, start, 20)
    assert torch.allclose(mine, position, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(
        walk(plan.kernel(), potential, start, 20), position, rtol=1e-6
    )
