"""NUTS: its path, invariance from exact draws, reference posteriors after adaptation,
calibration by simulation, and what it refuses.

Every z-test is over independent chains, with a Bonferroni correction; false alarms: 1
in 10,000 for each test."""

import math

import pytest
import torch

from booklib.scores.diagnostics import expectation, inverse_transform_samples
from sgmc import sample
from sgmc.integrators import draw_momentum, leapfrog
from sgmc.kernels import NUTS
from sgmc.matrices import Matrix
from sgmc.posteriors import LogisticRegression
from sgmc.potentials import Potential
from sgmc.targets import DoubleWell, Gaussian
from sgmc.tuning import adapt
from tests.checks import assert_leaves_exact_draws_invariant, z_bound
from tests.fakes import TARGET, Banana, Funnel
from tests.kernels.steps import FULL, MASSES
from tests.statistical.test_stationary_laws import gewekes_joint_test

pytestmark = pytest.mark.filterwarnings("ignore:.*trees:UserWarning")


def z_scores(draws, functions_and_values):
    """Compare averages of functions of the draws with known values: z-scores from the
    spread between chains.
    """
    z = []
    for function, value in functions_and_values:
        mean, standard_error = draws.mean_and_standard_error(function)
        z.append(((mean - value) / standard_error).flatten())
    return torch.cat(z)


def below(bounds):
    return lambda x: (x < bounds).double()


# Exact algebra


@pytest.mark.parametrize("mass", MASSES)
def test_the_next_position_lies_on_the_leapfrog_path(mass):
    kernel = NUTS(0.2, MASSES[mass], max_depth=3)
    position = torch.randn(
        200, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    state = kernel.init(TARGET, position, torch.Generator())
    momentum = draw_momentum(
        position, Matrix(kernel.mass), torch.Generator().manual_seed(2)
    )
    moved, info = kernel.step(TARGET, state, torch.Generator().manual_seed(2))
    states = [
        leapfrog(TARGET.gradient, position, way * momentum, 0.2, n, kernel.mass)[0]
        for way in (1, -1)
        for n in range(8)
    ]
    distance = (moved.position - torch.stack(states)).abs().amax(-1).amin(0)
    assert distance.max() < 1e-12
    assert (moved.position != position).any(-1).double().mean() > 0.9
    torch.testing.assert_close(moved.energy, TARGET.energy(moved.position))
    torch.testing.assert_close(moved.gradient, TARGET.gradient(moved.position))
    assert torch.equal(info.energy, moved.energy) and torch.equal(
        info.num_gradients, moved.num_gradients
    )


def test_the_acceptance_is_a_mean_over_the_steps_of_each_chain_alone():
    """With small steps nearly all would be accepted; a chain that is done early must
    not count the steps of the others.
    """
    draws = sample(
        NUTS(0.05),
        Gaussian.standard(2),
        torch.randn(50, 2, generator=torch.Generator().manual_seed(0)),
        num_samples=5,
    )
    assert len(draws.statistics["depth"].unique()) > 1
    assert (
        0.9 < draws.statistics["acceptance"].min()
        and draws.statistics["acceptance"].max() <= 1 + 1e-6
    )


def test_gradients_are_counted_for_each_chain_alone():
    class Counted(DoubleWell):
        calls = 0

        def gradient(self, position):
            self.calls += len(position)
            return super().gradient(position)

    for seed in range(20):
        target = Counted()
        kernel = NUTS(0.3)
        generator = torch.Generator().manual_seed(seed)
        state = kernel.init(target, torch.ones(1, 1), generator)
        assert state.num_gradients.item() == target.calls == 1
        for _ in range(3):
            state, _ = kernel.step(target, state, generator)
        assert state.num_gradients.item() == target.calls
    # Among others a chain counts only what its own tree needed.
    draws = sample(
        NUTS(0.1), DoubleWell(), torch.randn(500, 1, generator=generator), num_samples=1
    )
    used, depth = draws.statistics["num_gradients"][0] - 1, draws.statistics["depth"][0]
    assert (
        len(depth.unique()) > 1
        and (used >= 2**depth - 1).all()
        and (used < 2 ** (depth + 1)).all()
    )


# Invariance


@pytest.mark.slow
@pytest.mark.parametrize("step_size", [0.15, 0.5])
def test_nuts_leaves_the_double_well_invariant(step_size, generator):
    start = inverse_transform_samples(DoubleWell(), 40_000, -3, 3, generator)[:, None]
    moved = sample(
        NUTS(step_size), DoubleWell(), start, num_samples=1, warm_up=4, seed=1
    ).samples[0, :, 0]
    z = []
    for function in (
        lambda x: x,
        lambda x: x**2,
        lambda x: x**4,
        lambda x: (x.abs() < 0.5).double(),
    ):
        values = function(moved)
        z.append(
            (values.mean() - expectation(DoubleWell(), function, -4, 4))
            / (values.std() / len(values) ** 0.5)
        )
    assert torch.stack(z).abs().max() < z_bound(len(z)), f"z = {z}"


@pytest.mark.parametrize(
    ("target", "kernel"),
    [
        (Banana(), NUTS(0.4)),
        (Banana(), NUTS(0.4, FULL.float())),
        (Funnel(3), NUTS(0.3, max_depth=5)),
        (Gaussian.correlated(0.9), NUTS(0.4)),
        (Gaussian.correlated(0.9), NUTS(0.4, torch.tensor([0.5, 2.0]))),
    ],
    ids=[
        "banana",
        "banana, full mass",
        "funnel",
        "correlated",
        "correlated, diagonal mass",
    ],
)
def test_nuts_leaves_exact_draws_invariant(target, kernel, generator):
    assert_leaves_exact_draws_invariant(target, kernel, 20_000, 3, generator)


@pytest.mark.parametrize(
    "kernel",
    [NUTS(0.3), NUTS(0.8), NUTS(0.5, 2.0, max_depth=2)],
    ids=["0.3", "0.8", "heavy and short"],
)
def test_nuts_passes_gewekes_test(kernel, generator):
    assert gewekes_joint_test(kernel, 40_000, generator).abs().max() < z_bound(4)


# Reference posteriors, from a start that knows nothing


@pytest.mark.slow
def test_correlated_gaussian_in_fifty_dimensions():
    generator = torch.Generator().manual_seed(3)
    factor = torch.randn(50, 50, generator=generator, dtype=torch.float64) / 50**0.5
    scale = torch.logspace(-1, 1, 50, dtype=torch.float64)
    covariance = (
        scale[:, None]
        * (factor @ factor.T + 0.3 * torch.eye(50, dtype=torch.float64))
        * scale
    )
    target = Gaussian(covariance, mean=scale)
    kernel, position = adapt(
        NUTS(1.0),
        target,
        torch.zeros(200, 50, dtype=torch.float64),
        num_steps=100,
        seed=1,
    )
    draws = sample(kernel, target, position, num_samples=20, seed=2)
    variance = covariance.diagonal()
    tail = target.mean + 1.2815515655446004 * variance.sqrt()  # the 90 % quantile
    pair = covariance[0, 1]
    z = z_scores(
        draws,
        [
            (lambda x: x, target.mean),
            (lambda x: (x - target.mean) ** 2, variance),
            (
                lambda x: (x[..., 0] - target.mean[0]) * (x[..., 1] - target.mean[1]),
                pair,
            ),
            (below(tail), 0.9),
        ],
    )
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


class EightSchools(Potential):
    """The eight schools of Rubin (1981), non-centred: yⱼ ~ N(μ + τηⱼ, σⱼ²), ηⱼ ~ N(0,
    1), μ ~ N(0, 5²), τ ~ half-Cauchy(0, 5).

    Positions are (μ, log τ, η₁, …, η₈).
    """

    dim = 10
    effects = torch.tensor([28.0, 8, -3, 7, -1, 1, 18, 12], dtype=torch.float64)
    errors = torch.tensor([15.0, 10, 16, 11, 9, 11, 10, 18], dtype=torch.float64)

    def energy(self, position):
        mean, log_scale, standard = position[:, 0], position[:, 1], position[:, 2:]
        prior = (
            mean**2 / 50 + self.scale_energy(log_scale) + 0.5 * standard.pow(2).sum(-1)
        )
        fitted = mean[:, None] + log_scale.exp()[:, None] * standard
        return prior + 0.5 * ((self.effects - fitted) / self.errors).pow(2).sum(-1)

    @staticmethod
    def scale_energy(log_scale):
        return torch.log1p((2 * log_scale).exp() / 25) - log_scale

    def reference(self):
        """Integrate μ and η by hand and log τ by quadrature: values of the functions of
        :meth:`functions`.
        """
        log_scale = torch.linspace(-14, 6, 40_001, dtype=torch.float64)
        square = (2 * log_scale).exp()[:, None]
        precision = 1 / (self.errors**2 + square)  # of yⱼ given μ and τ
        variance = 1 / (1 / 25 + precision.sum(-1))  # of μ given τ and y
        mean = variance * (precision * self.effects).sum(-1)
        energy = self.scale_energy(log_scale) - 0.5 * (
            precision.log().sum(-1) + variance.log()
        )
        energy = (
            energy
            + 0.5 * (precision * self.effects**2).sum(-1)
            - 0.5 * mean**2 / variance
        )
        weight = torch.softmax(-energy, 0)
        # E[θⱼ | μ, τ] = μ + shrink·(yⱼ − μ)
        shrink = square / (square + self.errors**2)
        school = mean[:, None] + shrink * (self.effects - mean[:, None])
        school_variance = (
            shrink * self.errors**2 + (1 - shrink) ** 2 * variance[:, None]
        )
        quantile = log_scale[
            torch.searchsorted(
                weight.cumsum(0), torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
            )
        ]
        tail = 0.5 * (1 + torch.erf((10 - mean) / (2 * variance).sqrt()))
        return quantile, {
            "mean": (weight * mean).sum(),
            "mean squared": (weight * (mean**2 + variance)).sum(),
            "mean below 10": (weight * tail).sum(),
            "log scale": (weight * log_scale).sum(),
            "log scale below its quantiles": torch.stack(
                [weight[log_scale < x].sum() for x in quantile]
            ),
            "schools": (weight[:, None] * school).sum(0),
            "schools squared": (weight[:, None] * (school**2 + school_variance)).sum(0),
        }

    @staticmethod
    def functions(quantile):
        def schools(x):
            return x[..., :1] + x[..., 1:2].exp() * x[..., 2:]

        return {
            "mean": lambda x: x[..., 0],
            "mean squared": lambda x: x[..., 0] ** 2,
            "mean below 10": lambda x: (x[..., 0] < 10).double(),
            "log scale": lambda x: x[..., 1],
            "log scale below its quantiles": lambda x: (
                x[..., 1:2] < quantile
            ).double(),
            "schools": schools,
            "schools squared": lambda x: schools(x) ** 2,
        }


@pytest.mark.slow
def test_eight_schools():
    target = EightSchools()
    kernel, position = adapt(
        NUTS(1.0),
        target,
        torch.zeros(400, 10, dtype=torch.float64),
        num_steps=150,
        seed=1,
        target_acceptance=0.9,
    )
    draws = sample(kernel, target, position, num_samples=60, seed=2)
    quantile, values = target.reference()
    functions = target.functions(quantile)
    z = z_scores(draws, [(functions[name], value) for name, value in values.items()])
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


def test_logistic_regression():
    generator = torch.Generator().manual_seed(4)
    inputs = torch.randn(
        40, 3, generator=generator, dtype=torch.float64
    ) * torch.tensor([1.0, 3.0, 0.3], dtype=torch.float64)
    targets = (
        torch.rand(40, generator=generator) < torch.sigmoid(inputs.sum(-1))
    ).double()
    target = LogisticRegression(inputs, targets, prior_variance=4.0)
    kernel, position = adapt(
        NUTS(1.0),
        target,
        torch.zeros(400, 3, dtype=torch.float64),
        num_steps=100,
        seed=1,
    )
    draws = sample(kernel, target, position, num_samples=60, seed=2)

    # Quadrature on a grid over eight standard deviations each way, which the draws only
    # place.
    centre, spread = (
        draws.samples.flatten(0, 1).mean(0),
        draws.samples.flatten(0, 1).std(0),
    )
    axes = [
        centre[i] + spread[i] * torch.linspace(-8, 8, 65, dtype=torch.float64)
        for i in range(3)
    ]
    grid = torch.cartesian_prod(*axes)
    weight = torch.softmax(
        -torch.cat([target.energy(part) for part in grid.split(30_000)]), 0
    )[:, None]
    mean = (weight * grid).sum(0)
    centred = grid - mean
    z = z_scores(
        draws,
        [
            (lambda x: x, mean),
            (lambda x: (x - mean) ** 2, (weight * centred**2).sum(0)),
            (
                lambda x: torch.sigmoid(x @ inputs[0]),
                (weight[:, 0] * torch.sigmoid(grid @ inputs[0])).sum(),
            ),
            # a smooth tail probability
            (
                lambda x: torch.tanh(x - mean - spread),
                (weight * torch.tanh(centred - spread)).sum(0),
            ),
        ],
    )
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


def test_funnel_in_its_whitened_form():
    """θ₁ = 3z₁, θ₂ = e^{θ₁/2}z₂ with standard normal z: what the funnel itself keeps
    from its neck, its whitened form reaches.
    """
    target = Gaussian(torch.diag(torch.tensor([9.0, 1.0, 1.0], dtype=torch.float64)))
    kernel, position = adapt(
        NUTS(1.0),
        target,
        torch.zeros(300, 3, dtype=torch.float64),
        num_steps=100,
        seed=1,
    )
    draws = sample(kernel, target, position, num_samples=60, seed=2)
    # 10 %, 50 %, 90 % of N(0, 9)
    neck_quantiles = torch.tensor([-3.844654697, 0.0, 3.844654697], dtype=torch.float64)
    tail = expectation(
        Gaussian(torch.tensor([[9.0]])),
        lambda v: 0.5 * (1 + torch.erf(torch.exp(-v / 2) / math.sqrt(2))),
        -30,
        30,
    )

    def other(x):
        return torch.exp(x[..., 0] / 2) * x[..., 1]

    z = z_scores(
        draws,
        [
            (lambda x: x[..., 0], 0.0),
            (lambda x: x[..., 0] ** 2, 9.0),
            (
                lambda x: (x[..., :1] < neck_quantiles).double(),
                torch.tensor([0.1, 0.5, 0.9]),
            ),
            (lambda x: (other(x) < 1).double(), tail),
            (lambda x: (other(x) < 0).double(), 0.5),
        ],
    )
    assert z.abs().max() < z_bound(len(z)), f"z = {z}"


# Calibration by simulation


class NormalModel(Potential):
    """yᵢ ~ N(μ, e²ˢ) with μ ~ N(0, 1), s ~ N(0, 0.3²): every chain has data of its own,
    ``(chains, n)``.
    """

    dim = 2

    def __init__(self, data, prior_precision=1.0):
        self.data, self.prior_precision = data, prior_precision

    def energy(self, position):
        mean, log_std = position.unbind(-1)
        prior = 0.5 * self.prior_precision * mean**2 + 0.5 * (log_std / 0.3) ** 2
        standard = (self.data - mean[:, None]) * torch.exp(-log_std)[:, None]
        return prior + self.data.shape[1] * log_std + 0.5 * standard.pow(2).sum(-1)


def rank_statistic(prior_precision, chains=4_000, draws=15):
    """Rank the true parameters among draws from their posteriors (Talts et al., 2018):
    chi-squared statistics of the ranks.
    """
    generator = torch.Generator().manual_seed(5)
    truth = torch.randn(
        chains, 2, generator=generator, dtype=torch.float64
    ) * torch.tensor([1.0, 0.3], dtype=torch.float64)
    noise = torch.randn(chains, 5, generator=generator, dtype=torch.float64)
    target = NormalModel(truth[:, :1] + truth[:, 1:].exp() * noise, prior_precision)
    samples = sample(
        NUTS(0.2),
        target,
        torch.zeros_like(truth),
        num_samples=draws,
        warm_up=15,
        thinning=5,
        seed=6,
    ).samples
    ranks = (samples < truth).sum(0)
    expected = chains / (draws + 1)
    return torch.stack(
        [
            (torch.bincount(rank, minlength=draws + 1) - expected).pow(2).sum()
            / expected
            for rank in ranks.T
        ]
    )


@pytest.mark.slow
def test_calibration_by_simulation():
    """The ranks are uniform; χ² with 15 degrees of freedom exceeds 46.5 with
    probability 5 in 100,000, and there are two.
    """
    assert rank_statistic(prior_precision=1.0).max() < 46.5
    assert rank_statistic(prior_precision=4.0)[0] > 2 * 46.5, (
        "the negative control: a prior of half the width"
    )


# What it says when something is wrong


class Walled(Potential):
    """A standard normal with a wall at 1, beyond which the energy is not a number."""

    dim = 1

    def energy(self, position):
        return torch.where(position[:, 0] > 1, math.nan, 0.5 * position[:, 0] ** 2)

    def gradient(self, position):
        return position


def test_a_start_of_no_finite_energy_is_refused():
    with pytest.raises(
        ValueError,
        match=r"energy.*nan.*\b1\b",
    ):
        sample(NUTS(0.1), Walled(), torch.tensor([[0.0], [2.0]]), num_samples=1)


def test_an_energy_that_is_not_finite_ends_the_path_and_is_counted():
    with pytest.warns(UserWarning, match=r"\d+ of 500 .*diverged.*step_size"):
        draws = sample(NUTS(0.2), Walled(), torch.zeros(50, 1), num_samples=10)
    assert (draws.samples <= 1).all() and 0 < draws.statistics[
        "diverged"
    ].double().mean() < 1
    assert torch.isfinite(draws.statistics["acceptance"]).all()


def test_too_large_a_step_diverges_and_stays():
    with pytest.warns(UserWarning, match=r"20 of 20 trees \(100.00%\) diverged"):
        draws = sample(
            NUTS(1e3), Gaussian.standard(2), torch.ones(2, 2), num_samples=10
        )
    assert (
        (draws.samples == 1).all()
        and (draws.statistics["depth"] == 0).all()
        and (draws.statistics["acceptance"] == 0).all()
    )


def test_the_share_of_trees_at_the_depth_limit_is_reported():
    with pytest.warns(
        UserWarning,
        match=r"40 of 40.*100\.00%.*max_depth = 3",
    ):
        draws = sample(
            NUTS(1e-3, max_depth=3),
            Gaussian.standard(2),
            torch.ones(4, 2),
            num_samples=10,
        )
    assert (
        draws.statistics["depth_limited"].all()
        and (draws.statistics["num_gradients"][-1] == 71).all()
    )
