"""Level 2 of the ladder where the target is no Gaussian: in one dimension the law of a
chain is found by quadrature, on a grid.

Algorithm 2 and the palindromic step move by θ'' = m(θ, θ') + N(0, s(θ')²), from two
neighbouring positions to the next one. The law of such a pair is the fixed point of a
linear map, and sums over a grid stand for its integrals, exact to many digits, because
Gaussians are smooth. So the order of a bias is checked without any chance; chains of
the package are compared with these laws by z-tests, with 1 false alarm in 10,000 each."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import cumulative_trapezoid

from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.models import control_variates
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.potentials import Potential
from sgmc.splittings import flows, linear_chain, sghmc_chain
from sgmc.targets import DoubleWell, NoisyGradient
from tests.checks import z_bound

DOUBLE = torch.float64
FRICTION = 2.0


def generator_of(seed):
    return torch.Generator().manual_seed(seed)


class Valley(Potential):
    """U = 2 log cosh θ + θ²/4: smooth, with a bounded second and third derivative, and
    not quadratic.
    """

    dim = 1

    def energy(self, position):
        return (2 * torch.log(torch.cosh(position)) + position**2 / 4).sum(-1)

    def gradient(self, position):
        return 2 * torch.tanh(position) + position / 2


class PairLaw:
    """The stationary law of two neighbouring positions, θ'' ~ N(m(θ, θ'), s(θ')²), on a
    grid from −half_width to half_width.

    ``escape`` is the probability to leave the grid in a step, once that is stationary.
    """

    def __init__(
        self, mean, std, half_width, energy, finest=1.0, tolerance=1e-13, shortest=0
    ):
        smallest = float(
            std(torch.linspace(-half_width, half_width, 1_001, dtype=DOUBLE)).min()
        )
        points = math.ceil(2 * half_width / (finest * smallest)) + 1
        self.grid = torch.linspace(-half_width, half_width, points, dtype=DOUBLE)
        width = float(self.grid[1] - self.grid[0])
        old, middle, new = (
            self.grid[None, None, :],
            self.grid[:, None, None],
            self.grid[None, :, None],
        )
        kernel = (
            torch.exp(-0.5 * ((new - mean(old, middle)) / std(middle)) ** 2)
            / (math.sqrt(2 * math.pi) * std(middle))
            * width
        )
        kernel = kernel.expand(points, points, points)  # [θ', θ'', θ]
        shape = torch.exp(-energy(self.grid[:, None]))
        # [θ', θ]
        law = shape[:, None] * torch.exp(
            -0.5 * ((self.grid[:, None] - self.grid) / (2 * smallest)) ** 2
        )
        for step in range(5_000):
            # [θ'', θ'], which is the next [θ', θ]
            moved = torch.bmm(kernel, law[:, :, None])[:, :, 0].T
            self.escape = 1 - float(moved.sum() / law.sum())
            moved, before = moved / moved.sum(), law / law.sum()
            law = moved
            if step >= shortest and float((moved - before).abs().sum()) < tolerance:
                break
        self.law = law

    def mean(self, function):
        """The expectation of a function of a position."""
        return float((self.law.sum(0) * function(self.grid)).sum())

    def mean_between(self, function):
        """The expectation of a function of the point halfway between two neighbouring
        positions.
        """
        return float(
            (self.law * function(0.5 * (self.grid + self.grid[:, None]))).sum()
        )


def drift_kick(potential, step_size, friction, noise, old_position=False):
    """m and s of Algorithm 2 with M = 1: θ'' = θ' + (1 − εC)(θ' − θ) − ε²U'(θ') + εN(0,
    S); explicit Euler has U'(θ).
    """

    def mean(old, middle):
        at = old if old_position else middle
        return (
            middle
            + (1 - step_size * friction) * (middle - old)
            - step_size**2 * slope(potential, at)
        )

    return mean, lambda middle: step_size * noise(middle).sqrt()


def slope(potential, at):
    return potential.gradient(at.reshape(-1, 1)).reshape(at.shape)


def true_mean(potential, function, half_width=12.0):
    grid = torch.linspace(-half_width, half_width, 4_001, dtype=DOUBLE)
    density = torch.exp(-potential.energy(grid[:, None]))
    return float((density * function(grid)).sum() / density.sum())


def square(position):
    return position**2


def constant(value):
    return lambda middle: torch.full_like(middle, value)


def no_noise_law(step_size, old_position=False):
    noise = constant(2 * step_size * FRICTION)
    return PairLaw(
        *drift_kick(Valley(), step_size, FRICTION, noise, old_position),
        5.5,
        Valley().energy,
    )


# The integrator of others


def spd(generator, shift):
    root = torch.randn(3, 3, generator=generator, dtype=DOUBLE)
    return root @ root.T / 3 + shift * torch.eye(3, dtype=DOUBLE)


def test_the_integrator_of_matthews_and_weare_is_the_palindromic_step_with_friction_raised_by_the_noise():
    # Their program (github.com/c-matthews/nogin, lib/integrators/nogin.py), with D = c₁
    # + ¼h²Σ: half a drift, half a kick, noise, (1 + D)⁻¹(1 − D), the same noise, half a
    # kick, half a drift. Equal to ours with C = (2/ε)c₁ + ½εΣ and B̂ = ½εΣ; with C left
    # at (2/ε)c₁ it is not.
    generator = generator_of(3)
    covariance, step_size, c1 = spd(generator, 0.2), 0.3, 0.25
    eye = torch.eye(3, dtype=DOUBLE)
    position, momentum = torch.randn(2, 4, 3, generator=generator, dtype=DOUBLE)
    normal, force = torch.randn(2, 4, 3, generator=generator, dtype=DOUBLE)

    q = position + step_size / 2 * momentum
    kick, p = math.sqrt(c1) * normal, momentum + step_size / 2 * force
    p = torch.linalg.solve(eye * (1 + c1) + step_size**2 / 4 * covariance, (p + kick).T)
    p = (
        ((eye * (1 - c1) - step_size**2 / 4 * covariance) @ p).T
        + kick
        + step_size / 2 * force
    )
    q = q + step_size / 2 * p

    for friction, same in (
        (2 / step_size * c1 * eye + 0.5 * step_size * covariance, True),
        (2 / step_size * c1 * eye, False),
    ):
        injected = 2 / step_size * c1  # C − B̂
        ours = [
            flows.Drift(step_size / 2),
            flows.friction_flow(step_size / 2, friction),
            flows.Kick(step_size),
            Given((2 * step_size * injected) ** 0.5 * normal),
            flows.implicit_friction_flow(step_size / 2, friction),
            flows.Drift(step_size / 2),
        ]
        end, end_momentum = position.clone(), momentum.clone()
        flows.advance(ours, end, end_momentum, lambda _: -force, generator)
        assert (
            torch.allclose(end, q, atol=1e-12)
            and torch.allclose(end_momentum, p, atol=1e-12)
        ) == same


class Given(flows.Kick):
    """A kick by given numbers."""

    def __init__(self, numbers):
        object.__setattr__(self, "time", 1.0)
        object.__setattr__(self, "numbers", numbers)

    def move(self, position, momentum, gradient, generator):
        momentum.add_(self.numbers)


# The order of the bias


def test_the_law_on_the_grid_is_the_law_of_the_linear_chain_on_a_gaussian():
    class Bowl(Potential):
        dim = 1

        def energy(self, position):
            return 0.5 * position.square().sum(-1)

        def gradient(self, position):
            return position

    step_size, variance = 0.3, 4.0
    noise = constant(2 * step_size * FRICTION + step_size**2 * variance)
    law = PairLaw(*drift_kick(Bowl(), step_size, FRICTION, noise), 9.0, Bowl().energy)
    exact = sghmc_chain(
        torch.eye(1), step_size, FRICTION, variance
    ).stationary_covariance()[0, 0]
    assert abs(law.mean(square) - float(exact)) < 1e-9


def test_the_law_on_the_grid_is_that_of_the_packages_chains():
    step_size = 0.4
    law = no_noise_law(step_size)
    # the estimate is right: the total noise is 2εC
    kernel = SGHMC(step_size, FRICTION, 0.5 * step_size * 4.0)
    draws = sample(
        kernel,
        NoisyGradient(Valley(), 4.0),
        torch.zeros(20_000, 1, dtype=DOUBLE),
        10,
        warm_up=40,
        thinning=5,
        seed=3,
    )
    values = draws.samples[..., 0].square().mean(0)
    z = (values.mean() - law.mean(square)) / (values.std() / len(values) ** 0.5)
    assert abs(float(z)) < z_bound(1)
    # The test is sharp enough to tell the chain's law from the target.
    assert (
        abs(law.mean(square) - true_mean(Valley(), square))
        > 8 * float(values.std()) / len(values) ** 0.5
    )


@pytest.mark.slow
def test_algorithm_2_and_the_palindromic_step_have_order_two_on_a_target_that_is_not_quadratic():
    truth = true_mean(Valley(), square)
    steps = (0.4, 0.2, 0.1)
    laws = [no_noise_law(h) for h in steps]
    new, between = (
        np.array([getattr(law, name)(square) - truth for law in laws])
        for name in ("mean", "mean_between")
    )
    old = np.array(
        [no_noise_law(h, old_position=True).mean(square) - truth for h in steps]
    )
    # Halving ε divides the bias by 4 in the limit; by 2 where the gradient is taken at
    # the old position.
    assert abs(math.log2(new[1] / new[2]) - 2) < 0.25
    assert abs(math.log2(between[1] / between[2]) - 2) < 0.25
    assert abs(math.log2(old[1] / old[2]) - 1) < 0.25


def growth(step_size, friction, curvatures):
    """By how much a palindromic step with the mass 1 − ½εC multiplies the distance of
    two chains with the same noise, |x|² + |x + 2w/C|², at worst: lem-convex-contraction.
    """
    mass = 1 - 0.5 * step_size * friction
    to_momentum = torch.tensor([[1.0, 0.0], [0.0, mass]], dtype=DOUBLE)
    to_norm = torch.tensor([[1.0, 0.0], [1.0, 2 / friction]], dtype=DOUBLE)
    change = to_norm @ torch.linalg.inv(to_momentum)
    splitting, worst = flows.palindromic(step_size, friction, mass=mass), 0.0
    for curvature in curvatures:
        step = linear_chain(splitting, torch.full((1, 1), float(curvature)).double())
        moved = change @ step.transition @ torch.linalg.inv(change)
        worst = max(worst, float(torch.linalg.matrix_norm(moved, 2)))
    return worst


@pytest.mark.parametrize("step_size", [0.1, 0.01])
@pytest.mark.parametrize("friction", [3.0**0.5, 2.0, 3.0])
def test_two_chains_with_the_same_noise_approach_each_other_on_convex_energies(
    step_size, friction
):
    # The curvatures of the valley lie between m = ½ and L = 5/2, and C² ≥ m + L. With
    # less friction the distance may grow in a step.
    curvatures = np.linspace(0.5, 2.5, 41)
    assert growth(step_size, friction, curvatures) <= 1 - 0.5 * step_size / (
        2 * friction
    )
    assert growth(step_size, 1.2, curvatures) > 1.005


# Noise that depends on the position


class Coins:
    """Twelve throws, explained by one coefficient, in minibatches of two: the law of
    SGLD by enumeration and quadrature.
    """

    size, batch = 12, 2
    inputs = torch.linspace(0.2, 2.4, 12, dtype=DOUBLE)
    labels = torch.tensor([1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1], dtype=DOUBLE)

    def __init__(self):
        self.posterior = LogisticRegression(
            self.inputs[:, None], self.labels, batch_size=self.batch
        )
        self.grid = torch.linspace(-5, 6, 441, dtype=DOUBLE)
        self.width = float(self.grid[1] - self.grid[0])
        density = torch.exp(-self.posterior.energy(self.grid[:, None]))
        self.density = density / density.sum()
        prior = self.grid[:, None] / self.size
        self.each = (
            self.inputs
            * (torch.sigmoid(self.inputs * self.grid[:, None]) - self.labels)
            + prior
        )
        factor = self.size**2 / self.batch * (self.size - self.batch) / (self.size - 1)
        self.noise = factor * self.each.var(-1, correction=0)

    def law(self, step_size):
        pairs = torch.combinations(torch.arange(self.size), self.batch)
        # (grid, minibatches)
        gradient = self.size / self.batch * self.each[:, pairs].sum(-1)
        mean = (self.grid[:, None] - step_size * gradient)[None]
        kernel = torch.exp(
            -((self.grid[:, None, None] - mean) ** 2) / (4 * step_size)
        ).mean(-1)
        kernel = kernel / kernel.sum(0)
        law = self.density.clone()
        for _ in range(3_000):
            law, before = kernel @ law, law
            if float((law - before).abs().sum()) < 1e-13:
                break
        return law

    def first_order(self):
        """h of π(1 + ηh) = π(1 + η(½∫V dU − ½V + ¼U'² − ½U'')), with mean zero."""
        slope = self.each.sum(-1)
        curvature = (
            self.inputs**2
            * torch.sigmoid(self.inputs * self.grid[:, None])
            * torch.sigmoid(-self.inputs * self.grid[:, None])
        ).sum(-1) + 1
        path = torch.from_numpy(
            cumulative_trapezoid((self.noise * slope).numpy(), dx=self.width, initial=0)
        )
        h = 0.5 * path - 0.5 * self.noise + 0.25 * slope**2 - 0.5 * curvature
        return h - (self.density * h).sum()


def test_the_first_order_law_of_sgld_with_minibatches_is_that_of_the_formula():
    coins = Coins()
    h, distances, without = coins.first_order(), [], []
    for step_size in (0.02, 0.01):
        law = coins.law(step_size)
        distances.append(
            float((law - coins.density * (1 + step_size * h)).abs().sum()) / 2
        )
        temperature = 1 + 0.5 * step_size * float(coins.noise[coins.density.argmax()])
        heated = torch.exp(-coins.posterior.energy(coins.grid[:, None]) / temperature)
        without.append(float((law - heated / heated.sum()).abs().sum()) / 2)
    assert abs(math.log2(distances[0] / distances[1]) - 2) < 0.2, (
        "what is left after the first order is of the second"
    )
    assert abs(math.log2(without[0] / without[1]) - 1) < 0.2, (
        "and what is left after a temperature is of the first"
    )


@pytest.mark.slow
def test_sgld_with_minibatches_has_the_law_of_the_enumeration():
    coins, step_size = Coins(), 0.04
    law = coins.law(step_size)
    exact = torch.stack([(law * coins.grid).sum(), (law * coins.grid**2).sum()])
    draws = sample(
        SGLD(step_size),
        coins.posterior,
        torch.full((20_000, 1), 0.76, dtype=DOUBLE),
        5,
        warm_up=100,
        thinning=25,
        seed=4,
    )
    values = torch.cat([draws.samples, draws.samples**2], -1).mean(0)
    z = (values.mean(0) - exact) / (values.std(0) / len(values) ** 0.5)
    assert float(z.abs().max()) < z_bound(2)
    truth = (coins.density * coins.grid).sum()
    assert (
        abs(float((exact[0] - truth) / (values[:, 0].std() / len(values) ** 0.5))) > 6
    ), "the bias is seen"


# Where there is no law


def turning_point(step_size, friction):
    """Beyond this position a chain of Algorithm 2 on θ⁴ − 2θ² swings wider at every
    step.
    """
    return math.sqrt(1 + (2 - step_size * friction) / (2 * step_size**2))


def test_chains_escape_from_the_double_well_at_the_rate_that_the_grid_gives():
    step_size, friction, chains = 0.35, 3.0, 4_000
    half_width = 2 * turning_point(step_size, friction)
    noise = constant(2 * step_size * friction)
    law = PairLaw(
        *drift_kick(DoubleWell(), step_size, friction, noise),
        half_width,
        DoubleWell().energy,
        finest=0.15,
        tolerance=1e-10,
        shortest=200,
    )
    generator = generator_of(6)
    position = torch.ones(chains, 1, dtype=DOUBLE)
    momentum = torch.randn(chains, 1, generator=generator, dtype=DOUBLE)
    alive = []
    for step in range(301):
        if step in (100, 300):
            # those that are not numbers any more do not count
            alive.append(int((position.abs() < half_width).sum()))
        flows.advance(
            flows.sghmc(step_size, friction),
            position,
            momentum,
            DoubleWell().gradient,
            generator,
        )
    survive = (1 - law.escape) ** 200
    z = (alive[1] - survive * alive[0]) / math.sqrt(alive[0] * survive * (1 - survive))
    assert abs(z) < z_bound(1), f"z = {z}, rate {law.escape}"


# Heavy tails


@pytest.mark.slow
def test_with_control_variates_the_second_moment_is_that_of_random_contractions_and_has_no_bound_beyond_their_limit():
    generator = generator_of(7)
    inputs = torch.randn(60, 1, generator=generator, dtype=DOUBLE)
    targets = inputs[:, 0] + torch.randn(60, generator=generator, dtype=DOUBLE)
    full = LinearRegression(inputs, targets)
    posterior = control_variates(
        LinearRegression(inputs, targets, batch_size=1), full.mean
    )
    prior = float(full.precision[0, 0] - inputs.square().sum())
    curvatures = 60 * inputs[:, 0].square() + prior
    step_size = 0.3 / 60
    factors = 1 - step_size * curvatures
    assert float(factors.square().mean()) < 1 and float(factors.pow(4).mean()) < 1, (
        "so that the z-test has a variance"
    )
    expected = 2 * step_size / (1 - float(factors.square().mean()))
    draws = sample(
        SGLD(step_size),
        posterior,
        full.mean.expand(40_000, 1).contiguous(),
        5,
        warm_up=60,
        thinning=10,
        seed=8,
    )
    values = (draws.samples[..., 0] - full.mean).square().mean(0)
    z = (values.mean() - expected) / (values.std() / len(values) ** 0.5)
    assert abs(float(z)) < z_bound(1)
    # A constant noise of the average size would have the variance that a linear chain
    # has.
    assert (
        abs(
            expected * float(full.precision[0, 0])
            - 1 / (1 - 0.5 * step_size * float(full.precision[0, 0]))
        )
        > 0.1
    )
