"""AMAGOLD: its step, its exact stationary distribution, the minibatches that it needs."""

import math

import pytest
import torch

from sgmc import sample
from sgmc.integrators import draw_momentum
from sgmc.matrices import Matrix
from sgmc.minibatches import Held, Passes, Sweeps
from sgmc.other_kernels import AMAGOLD
from sgmc.potentials import Potential
from sgmc.randomness import normal_block
from sgmc.splittings import flows
from sgmc.targets import Gaussian, NoisyGradient
from tests.checks import assert_leaves_exact_draws_invariant
from tests.fakes import logistic

FULL = torch.tensor([[1.0, 0.6], [0.6, 2.0]])


def test_without_friction_a_path_is_that_of_the_palindromic_flows(generator):
    """With exact gradients the work and the energies give the acceptance by hand."""
    target, kernel = Gaussian.correlated(0.9), AMAGOLD(0.3, 0.0, 3, mass=FULL)
    start = torch.ones(5, 2)
    state = kernel.init(target, start, generator)
    after, info = kernel.step(target, state, generator.manual_seed(2))
    normal_block(start, 3, generator.manual_seed(2))  # without friction of no effect
    position, work = start.clone(), torch.zeros(5)
    momentum = draw_momentum(position, Matrix(FULL), generator)
    for _ in range(3):
        before, gradients = position.clone(), []

        def gradient(at, gradients=gradients):
            gradients.append(target.gradient(at))
            return gradients[0]

        step = flows.palindromic(0.3, 0.0, mass=FULL)
        flows.advance(step, position, momentum, gradient, generator)
        work += (gradients[0] * (position - before)).sum(-1)
    change = target.energy(start) - target.energy(position) + work
    torch.testing.assert_close(info.acceptance, change.clamp(max=0).exp())
    moved = (after.position != start).any(-1)
    assert moved.any()
    torch.testing.assert_close(after.position[moved], position[moved])


@pytest.mark.parametrize("step_size", [0.1, 0.4])
def test_exact_draws_stay_exact_with_noise_and_matrices(step_size, generator):
    kernel = AMAGOLD(step_size, friction=FULL, num_steps=5, mass=torch.tensor([1, 2.0]))
    target = NoisyGradient(Gaussian.correlated(0.9), FULL)
    target.exact_samples = target.potential.exact_samples
    assert_leaves_exact_draws_invariant(target, kernel, 40_000, 5, generator)


@pytest.mark.parametrize("rule", [Passes(), Sweeps(), Held(3)], ids=str)
def test_minibatches_that_are_not_as_likely_in_reverse_are_refused(rule):
    posterior = logistic(batch_size=2, minibatches=rule)
    with pytest.raises(ValueError, match=r"minibatches is .*Fresh\(\)"):
        sample(AMAGOLD(0.1, 1.0, 5), posterior, torch.zeros(1, 2).double(), 2)


def test_the_acceptance_falls_with_the_heat_of_the_noise():
    """The work has the variance 2·tdB with B = ½εV, and E[e^−W] = 1: a path is accepted
    with the probability 2Φ(−√(½tdB)), where the error of the step is small.
    """
    step_size, steps, dim, noise = 0.01, 100, 10, 40.0
    target = NoisyGradient(Gaussian.standard(dim), noise)
    start = torch.randn(4_000, dim, generator=torch.Generator().manual_seed(1))
    draws = sample(AMAGOLD(step_size, 0.5, steps), target, start, 1)
    heat = steps * step_size * dim * 0.5 * step_size * noise  # tdB
    expected = math.erfc(math.sqrt(heat / 2) / math.sqrt(2))
    assert float(draws.statistics["acceptance"].mean()) == pytest.approx(expected, 0.1)


def test_a_gradient_may_be_the_position_itself(generator):
    """The position moves in place after the gradient was taken at it."""

    class Bowl(Potential):
        def energy(self, position):
            return 0.5 * position.square().sum(-1)

        def gradient(self, position):
            return position

    kernel = AMAGOLD(0.7, 0.0, 3)
    infos = [
        kernel.step(target, kernel.init(target, torch.ones(4, 1), generator), generator)
        for target in (Bowl(), Gaussian.standard(1))
        if generator.manual_seed(3)
    ]
    torch.testing.assert_close(infos[0][1].acceptance, infos[1][1].acceptance)
    assert (infos[0][1].acceptance < 0.99).any()
