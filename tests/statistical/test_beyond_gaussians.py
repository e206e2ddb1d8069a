"""Level 2 of the ladder where the target is no Gaussian: in one dimension the law of a
chain is found by quadrature, on a grid.

Algorithm 2 and the palindromic step move by θ'' = m(θ, θ') + N(0, s(θ')²), from two
neighbouring positions to the next one. The law of such a pair is the fixed point of a
linear map, and sums over a grid stand for its integrals, exact to many digits, because
Gaussians are smooth. So the order of a bias, the bias of noise that depends on the
position and the rate of escape are checked without any chance; chains of the package
are compared with these laws by z-tests, with 1 false alarm in 10,000 for each test."""

import math

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.integrate import cumulative_trapezoid
from scipy.sparse.linalg import spsolve

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


def midpoint_friction(potential, step_size, friction):
    """m and s of the kicks of the palindromic step with M = 1 and a friction C(y) that
    may follow the position, S = 2εC(y).
    """

    def mean(old, middle):
        share = 0.5 * step_size * friction(middle)
        return middle + (
            (1 - share) * (middle - old) - step_size**2 * slope(potential, middle)
        ) / (1 + share)

    def std(middle):
        return (
            step_size
            * (2 * step_size * friction(middle)).sqrt()
            / (1 + 0.5 * step_size * friction(middle))
        )

    return mean, std


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


@pytest.mark.slow
@pytest.mark.parametrize("step_size", [0.2, 0.1])
def test_the_leading_term_of_the_bias_is_that_of_the_formula(step_size):
    # Relative to the leading term the rest is of order ε², once the mass is the
    # palindromic one, 1 − ½εC.
    law, truth = no_noise_law(step_size), true_mean(Valley(), square)
    palindromic, algorithm_2 = leading_bias(
        FRICTION, mass=1 - 0.5 * step_size * FRICTION
    )
    assert (
        abs((law.mean(square) - truth) / (step_size**2 * algorithm_2) - 1)
        < 4 * step_size**2
    )
    assert (
        abs((law.mean_between(square) - truth) / (step_size**2 * palindromic) - 1)
        < 4 * step_size**2
    )


def leading_bias(friction, mass):
    """The coefficients of ε² in the bias of θ² on the valley, palindromic and Algorithm
    2: thm-leading-bias of the appendix.
    """
    solution = UnderdampedSolution(friction, mass)
    scale = 1 / math.sqrt(mass)
    second = 2 / np.cosh(solution.grid) ** 2 + 0.5
    third = -4 * np.tanh(solution.grid) / np.cosh(solution.grid) ** 2
    # E[w³φ] over w, at each θ
    cubic = math.sqrt(6) * solution.levels[3] + 3 * solution.levels[1]
    palindromic = scale**2 / 8 * solution.average(
        second * (solution.grid**2 - solution.average(solution.grid**2))
    ) - scale**3 / 12 * solution.average(third * cubic)
    return palindromic, palindromic + scale**2 / 8 * 2


class UnderdampedSolution:
    """The solution φ of −ℒφ = θ² − ∫θ²dπ on the valley: φ = Σₖφₖ(θ)hₖ(w), with
    normalised Hermite polynomials of w = √M v.
    """

    def __init__(self, friction, mass=1.0, levels=16, points=501, half_width=8.0):
        self.grid = np.linspace(-half_width, half_width, points)
        energy = 2 * np.log(np.cosh(self.grid)) + self.grid**2 / 4
        self.density = np.exp(-energy) / np.exp(-energy).sum()
        width = self.grid[1] - self.grid[0]
        derivative = sparse.diags(
            [1 / 12, -8 / 12, 8 / 12, -1 / 12], [-2, -1, 1, 2], shape=(points, points)
        ).tolil()
        one_sided = np.array([[-25, 48, -36, 16, -3], [-3, -10, 18, -6, 1]]) / 12
        derivative[:2], derivative[-2:] = 0, 0
        derivative[:2, :5], derivative[-2:, -5:] = one_sided, -one_sided[::-1, ::-1]
        derivative = (derivative / width).tocsr()
        force = sparse.diags(2 * np.tanh(self.grid) + self.grid / 2)
        scale = 1 / math.sqrt(mass)
        rows = [[None] * levels for _ in range(levels)]
        for k in range(levels):
            rows[k][k] = -friction / mass * k * sparse.identity(points)
            if k > 0:
                rows[k][k - 1] = scale * math.sqrt(k) * derivative
            if k < levels - 1:
                rows[k][k + 1] = scale * math.sqrt(k + 1) * (derivative - force)
        right = np.zeros(points * levels + 1)
        right[:points] = -(self.grid**2 - self.average(self.grid**2))
        weights = np.zeros((1, points * levels))
        weights[0, :points] = self.density
        system = sparse.bmat(
            [[sparse.bmat(rows), (weights > 0).T.astype(float)], [weights, None]]
        ).tocsc()
        self.levels = spsolve(system, right)[:-1].reshape(levels, points)

    def average(self, values):
        return float((self.density * values).sum())


def test_on_a_cubic_energy_the_work_has_a_remainder_that_is_even_in_time():
    # With U = θ³/6, ∇³U = 1: W − G(z') + G(z) = −ε³(v³ + v'³)/24 without any error, the
    # expansion of thm-leading-bias.
    y, before, after = np.random.default_rng(0).normal(size=(3, 1_000))
    step_size = 0.4
    old, new = y - 0.5 * step_size * before, y + 0.5 * step_size * after
    work = new**3 / 6 - old**3 / 6 - 0.5 * y**2 * (new - old)
    remainder = work - step_size**2 / 8 * (new * after**2 - old * before**2)
    assert np.allclose(
        remainder, -(step_size**3) / 24 * (before**3 + after**3), rtol=0, atol=1e-12
    )
    # With v' twice it would be wrong by more than the noise of a kick allows.
    assert np.abs(remainder + step_size**3 / 12 * after**3).max() > 1e-3


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


def loudness(middle):
    """V(θ) = 8θ²/(1 + θ²), by which the gradient is noisier away from the mode."""
    return 8 * middle**2 / (1 + middle**2)


@pytest.mark.slow
def test_noise_that_depends_on_the_position_adds_the_bias_of_the_formula_to_first_order():
    # ½ε∫V ∂²φ/∂r² dπ, where no estimate is taken away: eq-local-noise of the appendix.
    solution = UnderdampedSolution(FRICTION)
    predicted = 0.5 * solution.average(
        loudness(solution.grid) * math.sqrt(2) * solution.levels[2]
    )
    slopes = []
    for step_size in (0.2, 0.1):
        # A little of the noise against none: what is not linear in V, and the bias of
        # the step itself, drop out.
        noise = 2 * step_size * FRICTION
        law = PairLaw(
            *drift_kick(
                Valley(),
                step_size,
                FRICTION,
                lambda y, h=step_size, s=noise: s + 0.01 * h**2 * loudness(y),
            ),
            5.5,
            Valley().energy,
        )
        slopes.append(
            (law.mean(square) - no_noise_law(step_size).mean(square))
            / (0.01 * step_size)
        )
    extrapolated = 2 * slopes[1] - slopes[0]
    assert abs(extrapolated / predicted - 1) < 0.04
    # It is no temperature: with the average noise in its place the bias would be
    # another one.
    average = (
        solution.average(loudness(solution.grid))
        * solution.average(math.sqrt(2) * solution.levels[2])
        * 0.5
    )
    assert abs(average / predicted - 1) > 0.1


def test_friction_that_follows_the_noise_has_no_bias_of_first_order():
    # C(y) = C + ½εV(y) with S = 2εC(y): detailed balance up to the flip, up to the
    # work, whatever V is.
    truth, biases = true_mean(Valley(), square), []
    for step_size in (0.4, 0.2):
        law = PairLaw(
            *midpoint_friction(
                Valley(),
                step_size,
                lambda y, h=step_size: FRICTION + 0.5 * h * loudness(y),
            ),
            6.0,
            Valley().energy,
        )
        biases.append(law.mean_between(square) - truth)
    assert abs(math.log2(biases[0] / biases[1]) - 2) < 0.35


def test_the_reversal_up_to_the_work_holds_with_friction_that_depends_on_the_position():
    # log[e^{−H(z)}P(z, z') / e^{−H(z')}P(Fz', Fz)] = W at random pairs, to rounding;
    # not with noise that does not follow the friction.
    generator = generator_of(5)
    y, r, new_r = torch.randn(3, 200, generator=generator, dtype=DOUBLE)
    step_size, potential = 0.3, Valley()
    start, end = y - 0.5 * step_size * r, y + 0.5 * step_size * new_r

    def energy(position):
        return potential.energy(position[:, None])

    def log_kick(before, after, friction, noise):
        residual = (
            after
            - before
            + 0.5 * step_size * friction * (before + after)
            + step_size * slope(potential, y)
        )
        return -0.5 * residual**2 / noise

    work = energy(end) - energy(start) - slope(potential, y) * (end - start)
    hamiltonian = energy(start) + 0.5 * r**2, energy(end) + 0.5 * new_r**2
    friction = 1.0 + loudness(y)
    for noise, same in (
        (2 * step_size * friction, True),
        (2 * step_size * torch.ones_like(y), False),
    ):
        ratio = (
            hamiltonian[1]
            - hamiltonian[0]
            + log_kick(r, new_r, friction, noise)
            - log_kick(-new_r, -r, friction, noise)
        )
        assert (float((ratio - work).abs().max()) < 1e-10) == same


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


def test_the_rate_of_escape_falls_faster_than_any_power_of_the_step():
    rates = []
    for step_size in (0.4, 0.3, 0.2):
        law = PairLaw(
            *drift_kick(DoubleWell(), step_size, 3.0, constant(6 * step_size)),
            1.1 * turning_point(step_size, 3.0),
            DoubleWell().energy,
            finest=0.6,
            tolerance=1e-10,
            shortest=150,
        )
        rates.append(law.escape)
    assert 0.01 < rates[0] < 0.05 and 1e-5 < rates[1] < 4e-5 and abs(rates[2]) < 1e-13


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


def test_the_covariance_of_random_contractions_needs_no_independence_of_factor_and_noise():
    # Three equally likely pairs (F, ξ) with E ξ = 0 that depend on each other:
    # thm-contractions, part 2.
    generator = np.random.default_rng(0)
    factors, noise = (
        0.5 * generator.normal(size=(3, 2, 2)),
        generator.normal(size=(3, 2)),
    )
    noise -= noise.mean(0)
    image = np.einsum("nij,nkl->ikjl", factors, factors).reshape(4, 4) / 3
    assert np.abs(np.linalg.eigvals(image)).max() < 0.9
    assert np.abs(np.einsum("ni,njk->ijk", noise, factors)).max() > 0.1, (
        "so that factor and noise are correlated"
    )
    expected = np.linalg.solve(
        np.eye(4) - image, (noise.T @ noise / 3).ravel()
    ).reshape(2, 2)
    mean, second = np.array([3.0, -2.0]), np.eye(2)
    for _ in range(500):
        moved = factors @ mean
        mixed = moved.T @ noise / 3
        second = (
            (factors @ second @ factors.transpose(0, 2, 1)).mean(0)
            + mixed
            + mixed.T
            + noise.T @ noise / 3
        )
        mean = (moved + noise).mean(0)
    assert np.allclose(mean, 0, atol=1e-12) and np.allclose(
        second, expected, rtol=1e-10
    )


# A bound that holds at every step


@pytest.mark.parametrize("step_size", [0.01, 0.1, 0.2])
@pytest.mark.parametrize("noise_variance", [0.0, 4.0])
def test_the_wasserstein_bound_holds_on_a_gaussian(step_size, noise_variance):
    curvatures = torch.tensor([1.0, 2.0, 5.0], dtype=DOUBLE)  # m = 1, L = 5, η ≤ 1/L
    start = 3.0  # every chain begins here, in each coordinate
    mean, variance = torch.full((3,), start, dtype=DOUBLE), torch.zeros(3, dtype=DOUBLE)
    begin = torch.sqrt((mean**2 + 1 / curvatures).sum())
    for step in range(1, 401):
        mean, variance = (
            (1 - step_size * curvatures) * mean,
            (1 - step_size * curvatures) ** 2 * variance,
        )
        variance = variance + 2 * step_size + step_size**2 * noise_variance
        # W₂ of two Gaussians
        distance = torch.sqrt(
            (mean**2 + (variance.sqrt() - curvatures.rsqrt()) ** 2).sum()
        )
        bound = (
            (1 - step_size) ** step * begin
            + 1.5 * 5 * (3 * step_size) ** 0.5
            + (3 * step_size * noise_variance) ** 0.5
        )
        assert distance <= bound
