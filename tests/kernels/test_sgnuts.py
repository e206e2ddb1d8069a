"""SGNUTS: its steps and their reversal, its weights, what is exact about it, and what
its bias does when the step shrinks.

Every z-test is over independent chains, with a Bonferroni correction; false alarms: 1
in 10,000 for each test."""

import math
from functools import partial

import pytest
import torch

from booklib.scores.diagnostics import expectation, inverse_transform_samples
from sgmc import sample
from sgmc.integrators import draw_momentum
from sgmc.kernels import NUTS, SGNUTS
from sgmc.matrices import Matrix
from sgmc.minibatches import Fresh, Held
from sgmc.posteriors import LinearRegression
from sgmc.splittings import flows, linear_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from tests.checks import z_bound
from tests.fakes import TARGET, Banana, Flat
from tests.kernels.steps import DIAGONAL, FULL
from tests.statistical.test_stationary_laws import gewekes_joint_test

pytestmark = pytest.mark.filterwarnings("ignore:.*trees:UserWarning")


@pytest.mark.parametrize("friction", [1.0, 100.0])
def test_the_palindromic_step_is_stable_at_any_friction(friction):
    """By its spectral radius, where εC is 10, too."""
    SGNUTS(0.1, friction)
    chain = linear_chain(flows.palindromic(0.1, friction), TARGET.precision)
    assert torch.linalg.eigvals(chain.transition).abs().max() < 1


# Exact algebra: a friction that equals the noise estimate injects no noise, and the
# path is deterministic


def drift_kick(position, momentum, way, step_size, friction, mass):
    """The equations of the report: a step to the right (way = 1) and one to the left
    (way = −1).
    """
    position = position + way * step_size * momentum @ torch.linalg.inv(mass)
    damped = momentum - step_size * momentum @ torch.linalg.inv(mass) @ friction
    return position, damped - way * step_size * TARGET.gradient(position)


def palindromic(position, momentum, way, step_size, friction, mass):
    """The implicit equation r' = r ∓ ε∇U − ½εCM⁻¹(r + r'), solved by iteration; a step
    to the left runs with −r.
    """
    middle = position + 0.5 * way * step_size * momentum @ torch.linalg.inv(mass)
    kicked = momentum
    for _ in range(200):
        friction_force = 0.5 * (momentum + kicked) @ torch.linalg.inv(mass) @ friction
        kicked = (
            momentum
            - way * step_size * TARGET.gradient(middle)
            - step_size * friction_force
        )
    return middle + 0.5 * way * step_size * kicked @ torch.linalg.inv(mass), kicked


@pytest.mark.parametrize("weights", ["uniform", "energy"])
@pytest.mark.parametrize("integrator", [drift_kick, palindromic])
@pytest.mark.parametrize(
    "friction",
    [torch.zeros(2, 2, dtype=torch.float64), 0.7 * FULL],
    ids=["none", "full"],
)
@pytest.mark.parametrize(
    "mass", [torch.diag(DIAGONAL), FULL @ FULL], ids=["diagonal", "full"]
)
def test_the_next_position_lies_on_the_path_of_the_equations(
    integrator, friction, mass, weights
):
    kernel = SGNUTS(
        0.3,
        friction,
        friction,
        mass,
        max_depth=3,
        weights=weights,
        integrator=integrator.__name__,
    )
    start = torch.randn(
        200, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    moved = kernel.step(
        TARGET,
        kernel.init(TARGET, start, torch.Generator()),
        torch.Generator().manual_seed(2),
    )[0].position
    path = [start]
    for way in (1, -1):
        position, momentum = (
            start,
            draw_momentum(start, Matrix(mass), torch.Generator().manual_seed(2)),
        )
        for _ in range(7):
            position, momentum = integrator(
                position, momentum, way, 0.3, friction, mass
            )
            path.append(position)
    distances = (moved - torch.stack(path)).abs().amax(-1)
    assert distances.amin(0).max() < 1e-10
    nearest = distances.argmin(0)
    # both directions are met
    assert (nearest > 0).double().mean() > 0.8 and {1, 2, 8, 9} <= set(nearest.tolist())


def test_a_tree_of_two_states_moves_by_its_energies():
    """With probability min(1, exp(H − H')), the momenta included."""
    kernel = SGNUTS(0.9, 0.0, max_depth=1, weights="energy")
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(2_000, 2, generator=generator, dtype=torch.float64)
    state = kernel.init(TARGET, start, generator)
    moved = kernel.step(TARGET, state, torch.Generator().manual_seed(2))[0].position
    momentum = draw_momentum(start, Matrix(1.0), generator.manual_seed(2))
    numbers = torch.rand(2, 1, 2_000, generator=generator, dtype=torch.float64)
    way = torch.where(numbers[0, 0] < 0.5, -1.0, 1.0)[:, None]
    one = torch.eye(2, dtype=torch.float64)
    end, kicked = palindromic(start, momentum, way, 0.9, 0 * one, one)
    gained = TARGET.energy(end) + 0.5 * kicked.square().sum(-1)
    gained -= TARGET.energy(start) + 0.5 * momentum.square().sum(-1)
    expected = numbers[1, 0].log() < -gained
    assert torch.equal((moved != start).any(-1), expected)
    assert 0.1 < expected.double().mean() < 0.95


@pytest.mark.parametrize(
    "friction", [1.3, DIAGONAL, FULL], ids=["scalar", "diagonal", "full"]
)
@pytest.mark.parametrize(
    "mass", [2.0, DIAGONAL, FULL @ FULL], ids=["scalar", "diagonal", "full"]
)
def test_all_forms_of_friction_and_mass_are_one(friction, mass):
    def expand(matrix):
        return (
            matrix * torch.eye(2, dtype=torch.float64)
            if isinstance(matrix, float) or matrix.ndim == 1
            else matrix
        )

    for settings in (
        dict(),
        dict(integrator="drift_kick"),
        dict(weights="work", noise_estimate=0.0),
        dict(weights="energy"),
    ):
        settings = {"noise_estimate": 0.1, "max_depth": 3} | settings
        start = torch.ones(50, 2, dtype=torch.float64)
        given = sample(
            SGNUTS(0.3, friction, mass=mass, **settings),
            TARGET,
            start,
            num_samples=2,
            seed=1,
        )
        full = sample(
            SGNUTS(0.3, expand(friction), mass=expand(mass), **settings),
            TARGET,
            start,
            num_samples=2,
            seed=1,
        )
        # The roots of equal matrices of different form may differ in their last bits
        # only.
        torch.testing.assert_close(given.samples, full.samples)


@pytest.mark.parametrize(
    "make", [NUTS, partial(SGNUTS, friction=0.0)], ids=["NUTS", "SGNUTS"]
)
def test_a_mass_is_a_change_of_coordinates(make):
    """In √M θ the mass is one: the same numbers give the same paths, and where they
    turn is told by velocities, not by momenta.
    """
    scales = torch.tensor([0.2, 4.0], dtype=torch.float64)
    scaled, start = (
        Gaussian(TARGET.covariance * scales * scales[:, None]),
        torch.ones(200, 2, dtype=torch.float64),
    )
    given = sample(make(0.2, mass=scales**2), TARGET, start, num_samples=3, seed=1)
    plain = sample(make(0.2), scaled, start * scales, num_samples=3, seed=1)
    torch.testing.assert_close(
        given.samples * scales, plain.samples, rtol=1e-8, atol=1e-8
    )
    assert torch.equal(given.statistics["depth"], plain.statistics["depth"])


def test_work_is_that_of_exact_gradients():
    """Those that are seen through noise are not even drawn."""
    kernel, start = (
        SGNUTS(0.3, 0.7, weights="work"),
        torch.ones(50, 2, dtype=torch.float64),
    )
    draws = [
        sample(kernel, target, start, num_samples=3, seed=1).samples
        for target in (TARGET, NoisyGradient(TARGET, 4.0))
    ]
    assert torch.equal(*draws)


def test_the_kick_keeps_the_law_of_the_momentum(generator):
    """Without a force r' = (1 + X)⁻¹((1 − X)r + ξ), X = ½εCM⁻¹, has covariance M if r
    has: the algebra of the repaired step.
    """
    step_size = 0.9
    half = 0.5 * step_size * FULL @ torch.linalg.inv(FULL @ FULL)
    solve, root = (
        torch.linalg.inv(torch.eye(2) + half),
        Matrix(2 * step_size * FULL).root.dense(2),
    )
    before = torch.eye(2) - half
    covariance = solve @ (before @ (FULL @ FULL) @ before.T + root @ root.T) @ solve.T
    torch.testing.assert_close(covariance, FULL @ FULL)
    # of r' and r: symmetric, so the kick is reversible
    cross = solve @ before @ (FULL @ FULL)
    torch.testing.assert_close(cross, cross.T)
    # That is what the flows do, between the two half drifts and without
    # the gradient.
    _, friction, kick, noise, implicit_friction, _ = flows.palindromic(
        step_size, FULL, mass=FULL @ FULL
    )
    # rows are vectors
    torch.testing.assert_close(implicit_friction.factor @ before.T, before @ solve.T)
    momentum = torch.eye(2, dtype=torch.float64)
    friction.move(torch.zeros_like(momentum), momentum, None, generator)
    torch.testing.assert_close(momentum, before.T)
    assert kick.time == step_size
    zero = torch.zeros(2, 2, dtype=torch.float64)
    step = linear_chain([friction, kick, noise, implicit_friction], zero)
    torch.testing.assert_close(step.transition[2:, 2:], solve @ before)
    momentum_covariance = torch.block_diag(zero, FULL @ FULL)
    moved = (
        step.transition @ momentum_covariance @ step.transition.T
        + step.noise_covariance
    )
    torch.testing.assert_close(moved, momentum_covariance, rtol=0, atol=1e-12)


def test_equal_weights_choose_every_state_of_the_other_half_alike():
    """On a straight path the start is uniform on 2ʲ places, and the choice on the half
    of the path where the start is not.
    """
    kernel = SGNUTS(1.0, 0.0, max_depth=4)
    generator = torch.Generator().manual_seed(0)
    start = torch.zeros(100_000, 1, dtype=torch.float64)
    moved = kernel.step(
        Flat(), kernel.init(Flat(), start, generator), copy_of(generator)
    )[0].position
    momentum = draw_momentum(start, Matrix(1.0), generator)
    steps = (moved / momentum).round()[:, 0].long()
    probability = torch.zeros(31, dtype=torch.float64)
    for here in range(16):
        for there in range(8, 16) if here < 8 else range(8):
            probability[15 + there - here] += 1 / 128
    counts = torch.bincount(steps + 15, minlength=31)
    assert (counts[probability == 0] == 0).all()
    met = probability > 0
    z = ((counts - 1e5 * probability) / (1e5 * probability * (1 - probability)).sqrt())[
        met
    ]
    assert z.abs().max() < z_bound(len(z))


def copy_of(generator):
    copy = torch.Generator()
    copy.set_state(generator.get_state())
    return copy


# With exact gradients the weights of the work make the target invariant, at any step
# size


EXACT = {
    "scalar": SGNUTS(0.5, 1.0, weights="work"),
    "large step": SGNUTS(0.7, 3.0, weights="work"),
    "no friction": SGNUTS(0.5, 0.0, weights="work"),
    "heavy": SGNUTS(0.6, 1.0, mass=2.0, weights="work", max_depth=2),
}


@pytest.mark.parametrize("name", EXACT)
def test_weights_of_the_work_leave_the_double_well_invariant(name, generator):
    z = double_well_scores(
        EXACT[name], DoubleWell(), generator, num_chains=40_000, num_steps=4
    )
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


@pytest.mark.parametrize("name", EXACT)
def test_weights_of_the_work_pass_gewekes_test(name, generator):
    assert gewekes_joint_test(EXACT[name], 40_000, generator).abs().max() < z_bound(4)


@pytest.mark.parametrize(
    ("target", "kernel"),
    [
        (Banana(), SGNUTS(0.5, FULL, mass=FULL @ FULL, weights="work")),
        (TARGET, SGNUTS(0.8, DIAGONAL, mass=FULL, weights="work")),
    ],
    ids=["banana", "correlated"],
)
def test_weights_of_the_work_leave_exact_draws_invariant(target, kernel, generator):
    start = target.exact_samples(20_000, generator).double()
    moved = sample(kernel, target, start, num_samples=1, warm_up=2, seed=2).samples[0]
    before, after = (
        torch.cat([x, x**2, x[:, :1] * x[:, 1:2]], -1).clamp(-50, 50)
        for x in (start, moved)
    )
    difference = after - before
    z = difference.mean(0) / (difference.std(0) / len(difference) ** 0.5)
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


# The bias


def double_well_scores(kernel, potential, generator, num_chains, num_steps):
    """Move exact draws of the double well by the kernel: z-scores of four averages."""
    start = inverse_transform_samples(DoubleWell(), num_chains, -3, 3, generator)[
        :, None
    ]
    moved = sample(
        kernel, potential, start, num_samples=1, warm_up=num_steps, seed=1
    ).samples[0, :, 0]
    z = []
    for function in DOUBLE_WELL_FUNCTIONS:
        values = function(moved)
        z.append(
            (values.mean() - expectation(DoubleWell(), function, -4, 4))
            / (values.std() / len(values) ** 0.5)
        )
    return torch.stack(z)


DOUBLE_WELL_FUNCTIONS = (
    lambda x: x,
    lambda x: x**2,
    lambda x: x**4,
    lambda x: (x.abs() < 0.5).double(),
)


def noisy_double_well(step_size, **settings):
    return SGNUTS(
        step_size, 3.0, noise_estimate=2.0 * step_size, **settings
    ), NoisyGradient(DoubleWell(), 4.0)


@pytest.mark.slow
def test_the_repaired_chain_has_no_bias_to_be_seen_at_a_small_step(generator):
    """The setting of Chen et al. (2014), Figure 1: gradient noise N(0, 4), C = 3, B̂ =
    ½εV, here with ε = 0.05.
    """
    z = double_well_scores(
        *noisy_double_well(0.05), generator, num_chains=20_000, num_steps=12
    )
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


def test_the_bias_of_energy_weights_does_not_vanish_with_the_step(generator):
    """They pile up the mass in the wells, at a quarter of the step as well."""
    for step_size in (0.1, 0.025):
        z = double_well_scores(
            *noisy_double_well(step_size, weights="energy"),
            generator,
            num_chains=10_000,
            num_steps=5,
        )
        assert z[3] < -1.5 * z_bound(1), f"z = {z}"


# Minibatches


class Recorded(LinearRegression):
    """A posterior that remembers the minibatches it was asked for."""

    def __init__(self, minibatches):
        super().__init__(
            torch.ones(1_000, 1),
            torch.linspace(-1, 1, 1_000),
            batch_size=3,
            minibatches=minibatches,
        )
        self.seen = []

    def gradient_given(self, position, minibatch):
        self.seen.append(minibatch)
        # hardly a force, so that every tree grows to its limit
        return 1e-6 * super().gradient_given(position, minibatch)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_held_minibatch_is_that_of_the_whole_tree_and_a_fresh_one_is_not(seed):
    for minibatches, distinct in (
        (Held(2**3), 1),
        (Held(2**3, Fresh(replacement=True)), 1),
        (Fresh(), 7),
    ):
        potential = Recorded(minibatches)
        kernel = SGNUTS(1e-3, 0.0, max_depth=3)
        generator = torch.Generator().manual_seed(seed)
        state = kernel.init(potential, torch.zeros(4, 1), generator)
        trees = []
        for _ in range(3):
            potential.seen.clear()
            state, _ = kernel.step(potential, state, generator)
            trees.append(torch.stack(potential.seen))
            assert len(trees[-1]) == 7 and len(trees[-1].unique(dim=0)) == distinct
        # another tree, another minibatch
        assert len(torch.stack([tree[0] for tree in trees]).unique(dim=0)) == 3
        assert len(trees[0][0].unique(dim=0)) == 4  # and another one for every chain


def test_a_tree_that_ends_early_leaves_the_rest_of_its_numbers_unused():
    """The k-th tree counts its gradients from k·2^max_depth, however many the trees
    before it took.
    """
    asked = []

    class Watched:
        replacement = False

        def indices(self, num_examples, batch_size, chains, seed, step):
            asked.append(step)
            return Fresh().indices(num_examples, batch_size, chains, seed, step)

    posterior = LinearRegression(
        torch.ones(100, 1),
        torch.linspace(-1, 1, 100),
        batch_size=10,
        minibatches=Watched(),
    )
    kernel, generator = SGNUTS(0.1, 0.5, max_depth=6), torch.Generator().manual_seed(0)
    state = kernel.init(posterior, torch.zeros(1, 1), generator)
    for tree in range(5):
        asked.clear()
        before = state.num_gradients
        state, _ = kernel.step(posterior, state, generator)
        taken = int(state.num_gradients - before)
        assert asked == list(range(64 * tree, 64 * tree + taken)) and 0 < taken < 63


def test_all_the_data_make_fresh_and_held_minibatches_one(generator):
    inputs, targets = (
        torch.randn(2, 30, 2, generator=generator)[0],
        torch.randn(30, generator=generator),
    )
    start = torch.zeros(5, 2)
    whole = sample(
        SGNUTS(0.1, 1.0), LinearRegression(inputs, targets), start, num_samples=5
    )
    batch = sample(
        SGNUTS(0.1, 1.0),
        LinearRegression(inputs, targets, batch_size=30),
        start,
        num_samples=5,
    )
    held = LinearRegression(inputs, targets, batch_size=30, minibatches=Held(2**10))
    assert torch.equal(whole.samples, batch.samples)
    assert torch.equal(
        whole.samples, sample(SGNUTS(0.1, 1.0), held, start, num_samples=5).samples
    )


# What it says when something is wrong


@pytest.mark.parametrize("weights", ["energy", "work"])
def test_a_start_of_no_finite_energy_is_refused_where_energies_are_used(weights):
    class Nowhere(DoubleWell):
        def energy(self, position):
            return torch.full_like(position[:, 0], math.inf)

    with pytest.raises(ValueError, match=r"energy.*inf.*\b0\b"):
        sample(
            SGNUTS(0.1, 1.0, weights=weights),
            Nowhere(),
            torch.zeros(2, 1),
            num_samples=1,
        )


@pytest.mark.parametrize("weights", ["uniform", "energy", "work"])
def test_a_path_that_leaves_the_finite_numbers_is_thrown_away_and_counted(weights):
    class Cliff(DoubleWell):
        def energy(self, position):
            inside = super().energy(position)
            return torch.where(position[:, 1] > 1.5, math.inf, inside)

        def gradient(self, position):
            # in the second coordinate alone
            beyond = position > torch.tensor([math.inf, 1.5])
            return torch.where(beyond, math.inf, super().gradient(position))

    with pytest.warns(UserWarning, match=r"\d+ of 1000 trees \([\d.]+%\) diverged"):
        draws = sample(
            SGNUTS(0.2, 1.0, weights=weights),
            Cliff(2),
            torch.ones(100, 2),
            num_samples=10,
        )
    assert (
        torch.isfinite(draws.samples).all()
        and 0 < draws.statistics["diverged"].double().mean() < 1
    )


def test_the_share_of_trees_at_the_depth_limit_is_reported():
    with pytest.warns(
        UserWarning,
        match=r"40 of 40.*100\.00%.*max_depth = 2",
    ):
        draws = sample(
            SGNUTS(1e-3, 1.0, noise_estimate=1.0, max_depth=2),
            Gaussian.standard(1),
            torch.zeros(4, 1),
            num_samples=10,
        )
    assert (draws.statistics["num_gradients"][-1] == 30).all()
