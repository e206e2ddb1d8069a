"""Level 2 of the ladder: on a Gaussian target with Gaussian noise the discretised
chains have exactly known laws.

Each test compares second moments over thousands of chains with the solution of a
discrete Lyapunov equation; false alarms: 1 in 10,000 for each test."""

import pytest
import torch

from sgmc import sample
from sgmc.kernels import HMC, SGHMC, SGLD, NaiveSGHMC
from sgmc.kernels.sghmc import SGHMCInfo
from sgmc.noise import OnlineNoise
from sgmc.potentials import Potential
from sgmc.splittings import (
    Splitting,
    flows,
    langevin_chain,
    linear_chain,
    naive_sghmc_chain,
    sghmc_chain,
)
from sgmc.targets import Gaussian, NoisyGradient
from tests.checks import assert_covariance, z_bound


def generator_of(seed):
    return torch.Generator().manual_seed(seed)


COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64)
NOISE = torch.tensor([[4.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
TARGET = Gaussian(COVARIANCE)
NOISY = NoisyGradient(TARGET, NOISE)
START = torch.zeros(4_000, 2, dtype=torch.float64)


def full_noise_estimate(step_size):
    return 0.5 * step_size * NOISE


SGHMC_CASES = {
    "scalar friction, no estimate": dict(step_size=0.2, friction=2.0),
    "right estimate": dict(
        step_size=0.2, friction=2.0, noise_estimate=full_noise_estimate(0.2)
    ),
    "diagonal estimate": dict(
        step_size=0.2,
        friction=2.0,
        noise_estimate=torch.tensor([0.4, 0.2], dtype=torch.float64),
    ),
    "matrix friction and mass": dict(
        step_size=0.2,
        friction=torch.tensor([[2.0, 0.5], [0.5, 3.0]], dtype=torch.float64),
        noise_estimate=full_noise_estimate(0.2),
        mass=torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=torch.float64),
    ),
    "diagonal mass": dict(
        step_size=0.2, friction=2.0, mass=torch.tensor([0.5, 2.0], dtype=torch.float64)
    ),
    "half temperature": dict(step_size=0.2, friction=2.0, temperature=0.5),
}


@pytest.mark.parametrize("case", SGHMC_CASES)
def test_sghmc_has_the_law_of_its_linear_chain(case):
    settings = SGHMC_CASES[case]
    law = sghmc_chain(
        TARGET.precision, noise_variance=NOISE, **settings
    ).stationary_covariance()
    draws = sample(
        SGHMC(**settings), NOISY, START, num_samples=20, warm_up=150, thinning=5, seed=1
    )
    assert_covariance(draws.samples, law[:2, :2])


def falling(draw):
    return 0.3 * (1 + draw) ** -0.5


@pytest.mark.parametrize(
    ("estimate", "kept"),
    [(0.0, 0.0), (0.5 * 0.3 * NOISE, 0.3), (OnlineNoise("full"), None)],
    ids=["no estimate", "that of the first step size", "that of each step size"],
)
def test_sghmc_with_falling_steps_has_the_law_of_its_linear_chains(estimate, kept):
    """The law of a product of chains, two steps a draw, on its way; NoisyGradient tells
    V itself, so that B̂ = ½ε_tV.
    """
    chains, num_draws, friction = 40_000, 12, 3.0
    covariance, laws = torch.block_diag(torch.zeros(2, 2), torch.eye(2)).double(), []
    for draw in range(num_draws):
        step_size = falling(draw)
        noise_estimate = 0.5 * (step_size if kept is None else kept) * NOISE
        chain = sghmc_chain(
            TARGET.precision, step_size, friction, NOISE, noise_estimate
        ).power(2)
        covariance = (
            chain.transition @ covariance @ chain.transition.T + chain.noise_covariance
        )
        laws.append(covariance[:2, :2])
    kernel = SGHMC(falling, friction, estimate, num_steps=2)
    draws = sample(
        kernel,
        NOISY,
        torch.zeros(chains, 2, dtype=torch.float64),
        num_samples=num_draws,
        seed=7,
        progress=False,
    ).samples
    for place in (2, num_draws - 1):
        assert_covariance(draws[place : place + 1], laws[place], 5e-5)


def test_sghmc_in_learning_rate_form_has_the_same_law():
    learning_rate, momentum_decay = 0.03, 0.3
    step_size = learning_rate**0.5
    law = sghmc_chain(
        TARGET.precision,
        step_size,
        momentum_decay / step_size,
        NOISE,
        0.5 * learning_rate * NOISE / step_size,
    ).stationary_covariance()
    kernel = SGHMC.from_learning_rate(
        learning_rate, momentum_decay, noise_estimate=0.5 * learning_rate * NOISE
    )
    draws = sample(
        kernel, NOISY, START, num_samples=20, warm_up=150, thinning=5, seed=2
    )
    assert_covariance(draws.samples, law[:2, :2])


class ExplicitEulerSGHMC(SGHMC):
    """The order of updates of several libraries, with the gradient at the old
    position.
    """

    def step(self, potential, state, generator):
        gradient = potential.stochastic_gradient(
            state.position, generator, state.num_gradients
        )
        moved = state.position + self.step_size * state.momentum
        noise = (2 * self.friction * self.step_size) ** 0.5 * torch.randn(
            moved.shape, generator=generator, dtype=moved.dtype
        )
        momentum = (
            (1 - self.step_size * self.friction) * state.momentum
            - self.step_size * gradient
            + noise
        )
        num_gradients = state.num_gradients + 1
        return state._replace(
            position=moved, momentum=momentum, num_gradients=num_gradients
        ), SGHMCInfo(num_gradients, None)


def test_explicit_euler_has_another_law_which_the_test_tells_apart():
    settings = dict(step_size=0.2, friction=2.0)
    position_first = sghmc_chain(
        TARGET.precision, noise_variance=NOISE, **settings
    ).stationary_covariance()[:2, :2]
    explicit = sghmc_chain(
        TARGET.precision, noise_variance=NOISE, explicit_euler=True, **settings
    ).stationary_covariance()[:2, :2]
    draws = sample(
        ExplicitEulerSGHMC(**settings),
        NOISY,
        START,
        num_samples=20,
        warm_up=150,
        thinning=5,
        seed=3,
    )
    assert_covariance(draws.samples, explicit)
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(draws.samples, position_first)


SGLD_CASES = {
    "no estimate": {},
    "right estimate": {"noise_estimate": full_noise_estimate(0.1)},
    "half temperature": {"temperature": 0.5},
    "right estimate and a full mass": {
        "noise_estimate": full_noise_estimate(0.1),
        "mass": torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=torch.float64),
    },
    "descent with a diagonal mass": {
        "temperature": 0.0,
        "mass": torch.tensor([0.5, 2.0], dtype=torch.float64),
    },
}


@pytest.mark.parametrize("settings", SGLD_CASES.values(), ids=SGLD_CASES)
def test_sgld_has_the_law_of_its_linear_chain(settings):
    law = langevin_chain(
        TARGET.precision, 0.1, NOISE, **settings
    ).stationary_covariance()
    draws = sample(
        SGLD(0.1, **settings),
        NOISY,
        START,
        num_samples=20,
        warm_up=200,
        thinning=10,
        seed=4,
    )
    assert_covariance(draws.samples, law)


@pytest.mark.parametrize(
    "mass",
    [1.0, torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=torch.float64)],
    ids=["scalar", "matrix"],
)
def test_naive_sghmc_has_the_law_of_its_linear_chain(mass):
    law = naive_sghmc_chain(
        TARGET.precision, 0.3, 6, NOISE, mass
    ).stationary_covariance()
    draws = sample(
        NaiveSGHMC(0.3, 6, mass=mass),
        NOISY,
        START,
        num_samples=20,
        warm_up=60,
        thinning=2,
        seed=5,
    )
    assert_covariance(draws.samples, law[:2, :2])


def test_hmc_without_correction_has_the_law_of_its_linear_chain():
    law = naive_sghmc_chain(TARGET.precision, 0.5, 4).stationary_covariance()
    draws = sample(
        HMC(0.5, 4, metropolis=False),
        TARGET,
        START,
        num_samples=20,
        warm_up=40,
        thinning=2,
        seed=6,
    )
    assert_covariance(draws.samples, law[:2, :2])


FULL = torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=torch.float64)
DIAGONAL = torch.tensor([0.5, 2.0], dtype=torch.float64)
# does not commute with the mass
FULL_FRICTION = torch.tensor([[2.0, -0.5], [-0.5, 3.0]], dtype=torch.float64)
SPLITTINGS = {
    "BAOAB": (flows.baoab(0.4, FULL_FRICTION, FULL), FULL),
    "BAOAB, half temperature": (
        flows.baoab(0.4, 2.0, DIAGONAL, temperature=0.5),
        DIAGONAL,
    ),
    "OBABO": (flows.obabo(0.4, FULL_FRICTION, FULL), FULL),
    "OBABO, half temperature": (flows.obabo(0.4, DIAGONAL, 1.7, temperature=0.5), 1.7),
    "UBU": (flows.ubu(0.4, DIAGONAL, 1.7), 1.7),
    "UBU, half temperature": (flows.ubu(0.4, 2.0, DIAGONAL, temperature=0.5), DIAGONAL),
    "palindromic": (
        flows.palindromic(0.4, FULL_FRICTION, full_noise_estimate(0.4), FULL),
        FULL,
    ),
    "SGHMC": (
        flows.sghmc(
            0.2, FULL_FRICTION, full_noise_estimate(0.2), FULL, temperature=0.9
        ),
        FULL,
    ),
    "explicit Euler": (
        flows.explicit_euler_sghmc(0.2, FULL_FRICTION, 0.1, DIAGONAL),
        DIAGONAL,
    ),
    "naive SGHMC": (flows.naive_sghmc(0.3, 6, FULL), FULL),
}


@pytest.mark.parametrize("name", SPLITTINGS)
def test_a_splitting_has_the_law_of_its_linear_chain(name):
    """Of positions and momenta together, with gradients seen through noise."""
    splitting, mass = SPLITTINGS[name]
    law = linear_chain(splitting, TARGET.precision, NOISE).stationary_covariance()
    kernel, generator, draws = (
        Splitting(splitting, num_steps=3, mass=mass),
        generator_of(8),
        [],
    )
    state = kernel.init(NOISY, START, generator)
    for step in range(70):
        state, _ = kernel.step(NOISY, state, generator)
        if step >= 50 and step % 2:
            draws.append(torch.cat([state.position, state.momentum], -1))
    assert_covariance(torch.stack(draws), law)


def test_a_splitting_of_positions_alone_has_the_law_of_its_linear_chain():
    splitting = flows.sgld(0.1, full_noise_estimate(0.1), temperature=0.9)
    law = linear_chain(splitting, TARGET.precision, NOISE).stationary_covariance()
    draws = sample(
        Splitting(splitting),
        NOISY,
        START,
        num_samples=20,
        warm_up=200,
        thinning=10,
        seed=4,
    )
    assert_covariance(draws.samples, law)


@pytest.mark.parametrize(
    ("name", "other"),
    [("BAOAB", "OBABO"), ("OBABO", "BAOAB"), ("SGHMC", "palindromic")],
)
def test_splittings_are_told_apart(name, other):
    """The negative control: the pieces are alike, only their order differs."""
    arguments = (
        (0.8, FULL_FRICTION, FULL)
        if name != "SGHMC"
        else (0.4, FULL_FRICTION, full_noise_estimate(0.4), FULL)
    )
    makers = {
        "BAOAB": flows.baoab,
        "OBABO": flows.obabo,
        "SGHMC": flows.sghmc,
        "palindromic": flows.palindromic,
    }
    splitting, wrong = makers[name](*arguments), makers[other](*arguments)
    draws = sample(
        Splitting(splitting, num_steps=3, mass=FULL),
        NOISY,
        START,
        num_samples=10,
        warm_up=50,
        thinning=2,
        seed=9,
    )
    assert_covariance(
        draws.samples,
        linear_chain(splitting, TARGET.precision, NOISE).stationary_covariance()[
            :2, :2
        ],
    )
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(
            draws.samples,
            linear_chain(wrong, TARGET.precision, NOISE).stationary_covariance()[
                :2, :2
            ],
        )


def test_autocorrelation_time_of_a_linear_chain():
    chain = sghmc_chain(TARGET.precision, 0.2, 2.0, NOISE)
    direction = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
    by_sum = 1 + 2 * float(chain.autocorrelation(direction, 2_000)[1:].sum())
    assert chain.autocorrelation_time(direction) == pytest.approx(by_sum, rel=1e-10)
    assert torch.allclose(
        chain.power(3).transition, torch.linalg.matrix_power(chain.transition, 3)
    )


@pytest.mark.parametrize("momentum_decay", [0.05, 0.5])
@pytest.mark.parametrize("noise_variance", [0.0, 4.0])
def test_momentum_forgets_faster_by_one_over_its_decay(momentum_decay, noise_variance):
    """At equal η the autocorrelation times of the mean are 2/ηa − 1 and α(2/ηa − 1/(2 −
    α)), whatever the noise is: a ratio of 1/α where ηa is small.
    """
    one, curvature, learning_rate = torch.eye(1, dtype=torch.float64), 3.0, 0.002
    step_size, slow = learning_rate**0.5, 2 / (learning_rate * curvature)
    sgld = langevin_chain(curvature * one, learning_rate, noise_variance)
    sghmc = sghmc_chain(
        curvature * one, step_size, momentum_decay / step_size, noise_variance
    )
    first = torch.tensor([1.0, 0.0], dtype=torch.float64)
    times = sgld.autocorrelation_time(first[:1]), sghmc.autocorrelation_time(first)
    expected = slow - 1, momentum_decay * (slow - 1 / (2 - momentum_decay))
    assert times == pytest.approx(expected, rel=1e-8)
    assert times[0] / times[1] == pytest.approx(1 / momentum_decay, rel=0.01)


def test_a_chain_without_stationary_law_is_refused():
    with pytest.raises(ValueError, match=r"stationary.*step_size"):
        langevin_chain(torch.eye(1), 2.5).stationary_covariance()


class OneMinibatchPerTrajectory(Potential):
    """The known bug of holding one draw of the noise for a whole trajectory of five
    steps.
    """

    dim = 2

    def energy(self, position):
        return TARGET.energy(position)

    def draw_minibatches(self, position, generator, step, num_steps=1):
        seeds = [10**6 + number // 5 for number in range(step, step + num_steps)]
        return torch.stack(
            [
                torch.randn(
                    position.shape, generator=generator_of(seed), dtype=position.dtype
                )
                for seed in seeds
            ]
        )

    def gradient_given(self, position, minibatch):
        return NOISY.gradient_given(position, minibatch)


WRONG_SETTINGS = {
    "variance used as standard deviation": lambda: (
        SGHMC(0.2, 2.0 * 2.0 * 0.2 * 2.0),
        NOISY,
    ),
    "noise estimate low by a factor": lambda: (
        SGHMC(0.2, 2.0, noise_estimate=0.01 * full_noise_estimate(0.2)),
        NOISY,
    ),
    "one minibatch for a whole trajectory": lambda: (
        SGHMC(0.2, 2.0, noise_estimate=full_noise_estimate(0.2), num_steps=5),
        OneMinibatchPerTrajectory(),
    ),
}


@pytest.mark.parametrize("bug", WRONG_SETTINGS)
def test_known_bugs_are_told_apart(bug):
    """Level 5: each wrong form fails the very comparison that the right one passes."""
    kernel, potential = WRONG_SETTINGS[bug]()
    right = sghmc_chain(
        TARGET.precision, 0.2, 2.0, NOISE, full_noise_estimate(0.2)
    ).stationary_covariance()[:2, :2]
    draws = sample(
        kernel, potential, START, num_samples=20, warm_up=200, thinning=5, seed=7
    )
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(draws.samples, right)


def test_z_bound_is_the_two_sided_normal_quantile():
    assert z_bound(1, 0.05) == pytest.approx(1.959964, abs=1e-5)
