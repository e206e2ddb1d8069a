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
