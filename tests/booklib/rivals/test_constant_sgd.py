"""Constant gradient descent: its rates against the least divergence in closed form, its
iterates against exact laws.
"""

import itertools
import math

import pytest
import torch
from scipy.linalg import solve_continuous_lyapunov

from booklib.rivals.constant_sgd import average_covariance, constant_sgd
from sgmc import sample
from sgmc.matrices import Matrix
from sgmc.splittings import langevin_chain, sghmc_chain
from sgmc.targets import Gaussian, NoisyGradient
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import assert_covariance, z_bound
from tests.kernels.steps import DIAGONAL, FULL

DOUBLE = torch.float64
PRECISION = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE)
INVERSE = torch.linalg.inv(PRECISION)
# no multiple of A, nor does it commute with it
NOISE = torch.tensor([[9.0, 5.0], [5.0, 6.0]], dtype=DOUBLE)
KINDS = ["scalar", "diagonal", "full"]


def dense(mass):
    return Matrix(mass).dense(2)


def small_steps_law(mass, noise=NOISE):
    """Solve PAΣ + ΣAP = PVP, the law of the Ornstein–Uhlenbeck process, by another
    routine than that of the chain's.
    """
    rate = torch.linalg.inv(dense(mass))
    return torch.from_numpy(
        solve_continuous_lyapunov(
            (rate @ PRECISION).numpy(), (rate @ noise @ rate).numpy()
        )
    )


def divergence(covariance):
    """KL(N(0, Σ) ‖ N(0, A⁻¹))."""
    return (
        float(
            (PRECISION @ covariance).trace() - torch.logdet(PRECISION @ covariance) - 2
        )
        / 2
    )


def chain_of(kernel, noise, scale=1.0):
    return langevin_chain(
        PRECISION,
        kernel.step_size * scale,
        noise,
        temperature=kernel.temperature,
        mass=kernel.mass,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_mass_is_half_of_the_noise_in_the_form_asked_for(kind):
    kernel = constant_sgd(NOISE, kind)
    assert kernel.temperature == 0 and kernel.step_size == 1
    expected = {
        "scalar": torch.tensor(3.75).double(),
        "diagonal": torch.tensor([4.5, 3.0]).double(),
        "full": NOISE / 2,
    }[kind]
    torch.testing.assert_close(torch.as_tensor(kernel.mass, dtype=DOUBLE), expected)
    for noise, simpler in (
        (4.0, 2.0),
        (torch.tensor([2.0, 6.0]), {"scalar": 2.0}.get(kind, torch.tensor([1.0, 3.0]))),
    ):
        torch.testing.assert_close(
            torch.as_tensor(constant_sgd(noise, kind).mass), torch.as_tensor(simpler)
        )
    assert torch.equal(
        dense(constant_sgd(Matrix(NOISE), kind).mass), dense(kernel.mass)
    )


def test_the_scalar_rate_has_the_least_divergence():
    """Of all numbers, whatever A and V are: less than its neighbours on both sides,
    where the derivative vanishes to O(h²).
    """
    mass = constant_sgd(NOISE, "scalar").mass
    best, (less, more) = (
        divergence(small_steps_law(mass)),
        (divergence(small_steps_law(mass * math.exp(h))) for h in (-1e-3, 1e-3)),
    )
    assert best < less and best < more
    # which is h², where the slope away from the best rate is of the order of 1
    assert abs(more - less) / 2e-3 < 1e-5
    # for tr AΣ = dim
    assert best == pytest.approx(
        -0.5 * float(torch.logdet(PRECISION @ small_steps_law(mass))), rel=1e-12
    )


def test_the_diagonal_rate_has_the_least_divergence_where_the_noise_is_a_multiple_of_the_curvature():
    """There Σ = ½cP. Elsewhere it need not have it: for a noise across the curvature
    even the number does better.
    """
    mass, h = constant_sgd(7 * PRECISION, "diagonal").mass, 1e-3
    torch.testing.assert_close(
        small_steps_law(mass, 7 * PRECISION), 3.5 * torch.diag(1 / mass)
    )
    best = divergence(small_steps_law(mass, 7 * PRECISION))
    for direction in torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], dtype=DOUBLE):
        less, more = (
            divergence(
                small_steps_law(mass * (sign * h * direction).exp(), 7 * PRECISION)
            )
            for sign in (-1, 1)
        )
        assert best < less and best < more and abs(more - less) / (2 * h) < 1e-5
    across = torch.tensor([[4.0, -5.0], [-5.0, 8.0]], dtype=DOUBLE)
    scalar, diagonal = (
        divergence(small_steps_law(constant_sgd(across, kind).mass, across))
        for kind in ("scalar", "diagonal")
    )
    assert scalar < diagonal - 0.2


def test_the_full_rate_makes_the_target_where_steps_are_small():
    torch.testing.assert_close(
        small_steps_law(constant_sgd(NOISE, "full").mass), INVERSE
    )


def test_with_the_curvature_in_the_noise_the_full_rate_is_exact_at_any_size_of_the_step():
    for size in (0.01, 1.0, 100.0):
        covariance = chain_of(
            constant_sgd(size * NOISE + PRECISION, "full"), size * NOISE
        ).stationary_covariance()
        torch.testing.assert_close(covariance, INVERSE, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_law_tends_to_that_of_small_steps_as_the_noise_grows(kind):
    """Where V is c times as large steps are c times shorter, and the difference of the
    laws falls as 1/c.
    """
    errors = []
    for size in (100.0, 200.0, 400.0):
        kernel = constant_sgd(size * NOISE, kind)
        errors.append(
            (
                chain_of(kernel, size * NOISE).stationary_covariance()
                - small_steps_law(constant_sgd(NOISE, kind).mass)
            ).norm()
        )
    away = [
        abs(float(first / second) - 2) for first, second in itertools.pairwise(errors)
    ]
    assert away[1] < 0.01 and away[1] < 0.7 * away[0]


@pytest.mark.parametrize("kind", KINDS)
def test_iterates_have_the_law_of_the_linear_chain(kind):
    kernel, target = constant_sgd(NOISE, kind), NoisyGradient(Gaussian(INVERSE), NOISE)
    draws = sample(
        kernel,
        target,
        torch.zeros(4_000, 2, dtype=DOUBLE),
        num_samples=20,
        warm_up=100,
        thinning=5,
    )
    assert_covariance(draws.samples, chain_of(kernel, NOISE).stationary_covariance())


def noise_of(posterior):
    """Compute V(θ) of a linear regression's minibatches, averaged over the posterior:
    at its mean, and how it grows away from it.
    """
    x, y = posterior.data
    scale = (
        posterior.num_examples**2
        / posterior.batch_size
        * (1 - posterior.batch_size / posterior.num_examples)
    )
    gradients = x * (x @ posterior.mean - y)[:, None]
    slopes = x[:, :, None] * x[:, None, :]
    slopes = slopes - slopes.mean(0)
    number = posterior.num_examples - 1
    return scale * (
        torch.cov(gradients.T)
        + (slopes @ posterior.covariance @ slopes).sum(0) / number
    )


def test_on_real_minibatches_the_full_rate_with_the_curvature_gives_the_posterior(
    regression,
):
    """A linear regression of 40 examples and minibatches of 4: steps are long, V
    depends on θ, and the covariance is exact all the same.
    """
    posterior = regression(batch_size=4)
    kernel = constant_sgd(noise_of(posterior) + posterior.precision, "full")
    start = posterior.mean.expand(4_000, -1).contiguous()
    draws = sample(kernel, posterior, start, num_samples=20, warm_up=100, thinning=10)
    centred = draws.samples - posterior.mean
    assert_covariance(centred, posterior.covariance)
    assert z_of_mean(centred.mean(0), 0.0).abs().max() < z_bound(3)
    # The negative control: without the curvature it is too wide, as one minus the share
    # of a batch in the data is too little.
    wide = sample(
        constant_sgd(noise_of(posterior), "full"),
        posterior,
        start,
        num_samples=20,
        warm_up=100,
        thinning=10,
    )
    with pytest.raises(AssertionError, match="z ="):
        assert_covariance(wide.samples - posterior.mean, posterior.covariance)


@pytest.mark.parametrize("length", [1, 2, 7, 50])
def test_covariance_of_an_average_by_writing_out_all_its_states(length):
    """The states z₁, …, z_K are linear in z₁ and the noises, so that their mean's
    covariance is read off without any series.
    """
    # F is not symmetric, nor is FΣ
    chain = sghmc_chain(PRECISION, 0.2, 2 * FULL, FULL, 0.1 * FULL, DIAGONAL)
    weight, covariance = (
        torch.zeros(4, 4, dtype=DOUBLE),
        torch.zeros(4, 4, dtype=DOUBLE),
    )
    # what enters at a state is in all the later ones
    for state in reversed(range(length)):
        weight = torch.eye(4, dtype=DOUBLE) + weight @ chain.transition
        entering = (
            chain.stationary_covariance() if state == 0 else chain.noise_covariance
        )
        covariance = covariance + weight @ entering @ weight.T / length**2
    torch.testing.assert_close(
        average_covariance(chain, length), covariance, rtol=1e-11, atol=1e-13
    )


def test_a_long_average_has_the_autocorrelation_time_in_its_variance():
    """K·Var tends to τ times the variance, and for gradient descent to A⁻¹VA⁻¹,
    whatever the step size; the rest falls as 1/K.
    """
    chain, inverse = (
        langevin_chain(PRECISION, 0.3, FULL, temperature=0.0),
        torch.linalg.inv(PRECISION),
    )
    torch.testing.assert_close(
        average_covariance(chain, 1), chain.stationary_covariance()
    )
    errors = [
        (length * average_covariance(chain, length) - inverse @ FULL @ inverse).norm()
        for length in (500, 1_000)
    ]
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=1e-6)
    direction = torch.tensor([1.0, -2.0], dtype=DOUBLE)
    limit = chain.autocorrelation_time(direction) * (
        direction @ chain.stationary_covariance() @ direction
    )
    assert float(direction @ inverse @ FULL @ inverse @ direction) == pytest.approx(
        float(limit), rel=1e-10
    )
