"""The thermostat: its step by hand, and its mean-field law."""

import math

import pytest
import torch

from sgmc import sample
from sgmc.matrices import Matrix
from sgmc.other_kernels import SGNHT
from sgmc.randomness import normal_like
from sgmc.splittings import flows
from sgmc.targets import Gaussian, NoisyGradient
from tests.other_kernels.mean_field import mean_field_variance

ALIKE = 500  # coordinates of each curvature


def ding(step_size, diffusion, temperature=1.0, first="kick"):
    """Algorithm 2 of Ding et al. as flows, from its friction; ``"together"`` is
    explicit Euler.
    """

    def step(friction):
        map_ = flows.MomentumMap(
            Matrix(1 - step_size * friction), Matrix(2 * diffusion * step_size)
        )
        kick, drift = flows.Kick(step_size), flows.Drift(step_size)
        if first == "together":
            return [flows.AtOnce([kick, map_, drift])]
        return [map_, kick, drift]

    return step


def test_a_step_by_hand():
    kernel, target = SGNHT(0.1, 0.0, mass=2.0), Gaussian.standard(2)
    position, generator = torch.tensor([[1.0, -2.0]]), torch.Generator().manual_seed(0)
    state = kernel.init(target, position, generator)
    momentum = state.momentum.clone()
    state = state._replace(friction=torch.tensor([0.5]))
    after, info = kernel.step(target, state, generator)
    kicked = momentum - 0.1 * 0.5 * momentum / 2 - 0.1 * torch.tensor([[1.0, -2.0]])
    moved = torch.tensor([[1.0, -2.0]]) + 0.1 * kicked / 2
    assert torch.allclose(after.momentum, kicked) and torch.allclose(
        after.position, moved
    )
    friction = 0.5 + 0.1 * (float((kicked**2 / 2).mean()) - 1)
    assert math.isclose(float(info.friction), friction, rel_tol=1e-5)


def test_the_heat_of_a_step_is_that_of_the_diagonal_of_the_inverse_mass():
    """M⁻¹ has 1/0.19 there, and −0.9/0.19 beside it; a diagonal mass has 1 and 10."""
    full, diagonal = torch.tensor([[1.0, 0.9], [0.9, 1.0]]), torch.tensor([1.0, 0.1])
    for mass, most in ((full, 0.95), (diagonal, 1 / 1.1)):
        SGNHT(0.1, 0.99 * most, mass)
        with pytest.raises(ValueError, match=r"mass is 1\.01, but must be below 1"):
            SGNHT(0.1, 1.01 * most, mass)


def variances(target, curvature, step_size=0.03, diffusion=0.3):
    """Measure the variance of the coordinates of each curvature, with its standard
    error, over eight chains that start in the target.
    """
    start = torch.randn(8, target.dim, generator=torch.Generator().manual_seed(1))
    start /= curvature.repeat_interleave(ALIKE).sqrt()
    draws = sample(
        SGNHT(step_size, diffusion), target, start, 40, warm_up=1_000, thinning=100
    )
    squares = draws.samples.square().unflatten(-1, (len(curvature), ALIKE)).mean((0, 3))
    return squares.double().mean(0), squares.double().std(0) / 8**0.5


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_the_variances_are_those_of_the_mean_field(noise):
    """Two comparisons at |t| < 9 with seven degrees of freedom: a false alarm in one of
    5,000 runs; the explicit Euler step is off by more than a hundred of them.
    """
    curvature = torch.tensor([0.5, 4.0])
    target = Gaussian(torch.diag(1 / curvature.repeat_interleave(ALIKE)))
    found, error = variances(
        NoisyGradient(target, noise) if noise else target, curvature
    )
    law, euler = (
        mean_field_variance(ding(0.03, 0.3, first=first), curvature, 1.0, noise)
        for first in ("kick", "together")
    )
    assert ((found - law).abs() < 9 * error).all(), (found, law, error)
    assert (law * curvature - 1).abs().max() < 0.03
    assert ((found - euler).abs() > 9 * error).any()


def test_one_friction_does_not_serve_two_noises():
    """With noise in half of the coordinates alone they are too hot, and the others too
    cold, exactly; a matrix B̂ has both right.
    """
    curvature, noise = torch.ones(2), torch.tensor([0.0, 20.0])
    law = mean_field_variance(ding(0.03, 0.3), curvature, 1.0, noise)
    assert law[0] < 0.7 < 1.3 < law[1]


def test_too_little_diffusion_for_explicit_euler():
    """A direction of curvature a has the friction ξ − εa there: at a tenth of the
    diffusion's size a small one is cold and a large one hot.
    """
    curvature = torch.tensor([0.1, 0.46, 2.15, 10.0])
    law = curvature * mean_field_variance(
        ding(0.03, 0.1, first="together"), curvature, 1.0
    )
    assert law[0] < 0.35 and law[-1] > 2.9
    right = curvature * mean_field_variance(ding(0.03, 0.1), curvature, 1.0)
    assert (right - 1).abs().max() < 0.01


@pytest.mark.parametrize("mass", [[1.0, 4.0], [[2.0, 0.5], [0.5, 1.0]]])
def test_steps_with_noise_by_hand(mass):
    """Of two chains, each with a friction of its own, and any mass."""
    mass = torch.tensor(mass, dtype=torch.float64)
    whole = mass if mass.ndim == 2 else torch.diag(mass)
    kernel, target = SGNHT(0.1, 0.4, mass=mass), Gaussian.standard(2, torch.float64)
    position = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    state = kernel.init(target, position, generator)
    assert state.friction.tolist() == [0.4, 0.4] and state.num_gradients == 0
    r, xi = state.momentum.clone(), state.friction
    for done in (1, 2):
        same = torch.Generator()
        same.set_state(generator.get_state())
        normal = normal_like(r, same)
        state, info = kernel.step(target, state, generator)
        r = r - 0.1 * xi[:, None] * (r @ whole.inverse()) - 0.1 * position
        r = r + (2 * 0.4 * 0.1) ** 0.5 * normal
        velocity = r @ whole.inverse()
        position = position + 0.1 * velocity
        xi = xi + 0.1 * ((r * velocity).sum(-1) / 2 - 1)
        for found, expected in zip(state, (r * 0 + position, r, xi, done), strict=True):
            torch.testing.assert_close(found, expected)
        assert info == (state.friction, done)


def test_the_momenta_at_the_start_are_of_the_mass(generator):
    start = torch.zeros(20_000, 2)
    kernel = SGNHT(0.1, 0.4, mass=torch.tensor([1.0, 9.0]))
    momentum = kernel.init(Gaussian.standard(2), start, generator).momentum
    torch.testing.assert_close(
        momentum.std(0), torch.tensor([1.0, 3.0]), rtol=0.03, atol=0
    )
