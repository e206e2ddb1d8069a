"""The tuning of SGHMC from curvature and noise: exact covariances on Gaussians, by the
laws of the chains that it makes.
"""

import math
import warnings

import pytest
import torch

from sgmc import sample
from sgmc.posteriors import LinearRegression, LogisticRegression
from sgmc.potentials import Potential
from sgmc.splittings import sghmc_chain
from sgmc.targets import DoubleWell, Gaussian, NoisyGradient
from sgmc.tuning import (
    default_kernel,
    defaults,
    find_mode,
    matched_noise_estimate,
    tune,
)
from sgmc.tuning.defaults import FULL, MOST_STEPS
from tests.checks import assert_covariance

DOUBLE = torch.float64


def covariance(dim, generator, condition=100.0):
    """Make a covariance with random directions and variances from 1 to the condition
    number.
    """
    directions = torch.linalg.qr(
        torch.randn(dim, dim, generator=generator, dtype=DOUBLE)
    ).Q
    return (
        directions
        * torch.logspace(0, math.log10(condition), dim, dtype=DOUBLE)
        @ directions.T
    )


def law(kernel, precision, noise_variance):
    """The exact law of the chain that a kernel makes on a Gaussian."""
    return sghmc_chain(
        precision,
        kernel.step_size,
        kernel.friction,
        noise_variance,
        kernel.noise_estimate,
        kernel.mass,
    )


def test_with_a_matched_estimate_the_covariance_is_the_target_s_for_matrices_that_do_not_commute(
    generator,
):
    """The theorem: Cov(θ) = A⁻¹, Cov(r) = MKM, Cov(θ, r) = −½εKM; either half of B̂
    left out breaks it by far more than rounding.
    """
    for step_size in (0.05, 0.3, 0.6):
        a, v, m = (covariance(4, generator, 3.0) for _ in range(3))
        c = 2 * covariance(4, generator, 1.5)
        v = 0.5 * v
        estimate = matched_noise_estimate(a, v, step_size, c, m + torch.eye(4))
        chain = sghmc_chain(a, step_size, c, v, estimate, m + torch.eye(4))
        k = torch.linalg.inv(m + torch.eye(4) - 0.5 * step_size * c)
        mass = m + torch.eye(4)
        expected = torch.cat(
            [
                torch.cat([torch.linalg.inv(a), -0.5 * step_size * k @ mass], 1),
                torch.cat([-0.5 * step_size * mass @ k, mass @ k @ mass], 1),
            ]
        )
        torch.testing.assert_close(
            chain.stationary_covariance(), expected, rtol=1e-8, atol=1e-8
        )
        half = sghmc_chain(
            a, step_size, c, v, 0.5 * step_size * v, mass
        ).stationary_covariance()[:4, :4]
        assert (half - torch.linalg.inv(a)).abs().max() > 1e-5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1.0, 0.0, 2.0, 1.0), "no stationary law exists"),  # ¼ε²A = M
        ((1.0, 0.0, 0.9, 2.0), "no stationary law exists"),
        # ½εV = 2.5
        ((1.0, 50.0, 0.1, 2.0), r"friction.*noise_estimate"),
        ((-1.0, 0.0, 0.1, 2.0), r"curvature.*positive"),
        ((1.0, 0.0, 0.0, 2.0), r"step_size.*positive"),
    ],
)
def test_what_has_no_law_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        matched_noise_estimate(*arguments)


@pytest.mark.parametrize("noise", [0.0, 3.0, 10.0])
def test_the_default_has_the_covariance_of_any_gaussian_exactly(noise, generator):
    """To 1e-8, although A comes from differences of gradients; and with half the step
    too, whose B̂ is another one.
    """
    target = Gaussian(
        covariance(5, generator), torch.randn(5, generator=generator, dtype=DOUBLE)
    )
    noisy = NoisyGradient(target, noise * covariance(5, generator, 10.0))
    usual = default_kernel(noisy, target.mean[None])
    for kernel in (
        usual,
        default_kernel(noisy, target.mean[None], step_size=usual.step_size / 2),
    ):
        found = law(
            kernel, target.precision, noisy.noise_variance
        ).stationary_covariance()[:5, :5]
        torch.testing.assert_close(found, target.covariance, rtol=1e-8, atol=1e-8)
    assert "whole matrices of 5 coordinates" in str(kernel)


def test_the_gradient_brings_half_of_the_noise_and_a_draw_is_nearly_independent_of_the_last(
    generator,
):
    """ε = 2/ν, hence B ⪯ C/2 with equality in the loudest direction; where there is no
    noise, ε = ½.
    """
    target = Gaussian(covariance(3, generator))
    noise = 15 * covariance(3, generator, 5.0)
    kernel = default_kernel(NoisyGradient(target, noise), target.mean[None])
    shares = torch.linalg.eigvals(
        torch.linalg.solve(kernel.friction, 0.5 * kernel.step_size * noise)
    ).real
    assert float(shares.max()) == pytest.approx(0.5, rel=1e-6)
    assert default_kernel(target, target.mean[None]).step_size == 0.5
    chain = law(kernel, target.precision, noise).power(kernel.num_steps)
    for direction in torch.eye(6, dtype=DOUBLE)[:3]:
        # (1 + 2)e⁻² of a critically damped oscillator is 0.41
        assert chain.autocorrelation(direction, 2)[1] < 0.45


def test_beyond_some_coordinates_diagonals_do_it_and_on_a_diagonal_gaussian_exactly(
    generator,
):
    """A's entries come from random signs; where there are no others the differences of
    gradients give them to rounding.
    """
    dim = FULL + 1
    precision = torch.logspace(0, 2, dim, dtype=DOUBLE)
    noise = 5 * torch.rand(dim, generator=generator, dtype=DOUBLE)
    target = Gaussian(torch.diag(1 / precision))
    kernel = default_kernel(NoisyGradient(target, noise), target.mean[None])
    assert kernel.mass.shape == (dim,)
    torch.testing.assert_close(kernel.mass, precision, rtol=1e-8, atol=0)
    found = [
        sghmc_chain(
            precision[i].reshape(1, 1),
            kernel.step_size,
            float(kernel.friction[i]),
            float(noise[i]),
            float(kernel.noise_estimate[i]),
            float(kernel.mass[i]),
        ).stationary_covariance()[0, 0]
        * precision[i]
        for i in (0, 100, 200)
    ]
    torch.testing.assert_close(
        torch.stack(found), torch.ones(3, dtype=DOUBLE), rtol=1e-8, atol=0
    )


def test_the_stiffest_direction_bounds_the_step_where_coordinates_do_not_show_it(
    generator,
):
    """All coordinates alike and correlated: the diagonal is 1 + c, but one direction is
    as stiff as 1 + dim·c.
    """
    dim = FULL + 1
    target = Gaussian(
        torch.linalg.inv(
            torch.eye(dim, dtype=DOUBLE) + 0.5 * torch.ones(dim, dim, dtype=DOUBLE)
        )
    )
    kernel = default_kernel(target, target.mean[None])
    stiffest = float(
        torch.linalg.eigvalsh(
            target.precision / kernel.mass.sqrt() / kernel.mass.sqrt()[:, None]
        )[-1]
    )
    assert stiffest > 5 and kernel.step_size == pytest.approx(
        0.5 / math.sqrt(stiffest), rel=0.01
    )
    # raises if there is none
    law(kernel, target.precision, 0.0).stationary_covariance()


def test_of_coordinates_that_are_loud_the_loudest_bounds_the_step(generator):
    """Beyond whole matrices too; an estimate for a longer step would exceed its
    friction.
    """
    dim = FULL + 1
    noise = torch.ones(dim, dtype=DOUBLE)
    noise[7] = 1_000.0
    kernel = default_kernel(
        NoisyGradient(Gaussian.standard(dim, DOUBLE), noise),
        torch.zeros(1, dim, dtype=DOUBLE),
    )
    assert kernel.step_size == pytest.approx(0.002, rel=1e-6)


def logistic(generator, **settings):
    inputs = torch.randn(400, 3, generator=generator, dtype=DOUBLE) * torch.tensor(
        [1.0, 3.0, 0.3], dtype=DOUBLE
    )
    targets = (
        torch.rand(400, generator=generator, dtype=DOUBLE) < torch.sigmoid(inputs[:, 0])
    ).double()
    return LogisticRegression(inputs, targets, 10.0, **settings)


def mode(posterior):
    position = torch.zeros(1, posterior.dim, dtype=DOUBLE)
    for _ in range(20):
        hessian = torch.func.jacrev(lambda x: posterior.gradient(x[None])[0])(
            position[0]
        )
        position = position - torch.linalg.solve(
            hessian, posterior.gradient(position)[0]
        )
    return position


@pytest.mark.parametrize(
    ("potential", "position", "sentence"),
    [
        (
            Gaussian.standard(2, DOUBLE),
            [[5.0, 5.0]],
            "5 standard deviations",
        ),
        (DoubleWell(2), [[1.0, 0.01]], "1 of 2 directions"),
    ],
)
def test_it_says_in_a_sentence_where_its_assumptions_fail(
    potential, position, sentence
):
    with pytest.warns(UserWarning, match=sentence):
        default_kernel(potential, torch.tensor(position, dtype=DOUBLE))


def test_a_hilltop_is_refused_and_a_good_place_gives_no_warning(generator):
    with pytest.raises(ValueError, match="curves in no direction upwards"):
        default_kernel(DoubleWell(), torch.zeros(1, 1, dtype=DOUBLE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        default_kernel(
            Gaussian.standard(3, DOUBLE),
            torch.randn(4, 3, generator=generator, dtype=DOUBLE).clamp(-1, 1),
        )


class Saddle(Potential):
    """U = ½θᵀHθ for an H of which the direction that is bent most curves downwards."""

    dim = FULL + 1

    def __init__(self):
        up, down = torch.ones(2, self.dim, dtype=DOUBLE)
        down[::2] = -1.0
        down[-1] = 0.0
        up, down = (v / v.norm() for v in (up, down))
        self.hessian = torch.eye(self.dim, dtype=DOUBLE)
        self.hessian += 40 * torch.outer(up, up) - 100 * torch.outer(down, down)

    def energy(self, position):
        return 0.5 * (position @ self.hessian * position).sum(-1)


def test_what_curves_downwards_is_not_the_stiffest_direction():
    """In units of the diagonal the largest eigenvalue of the curvature is negative, and
    the step is that of the largest positive one.
    """
    saddle = Saddle()
    kernel = default_kernel(saddle, torch.zeros(1, saddle.dim, dtype=DOUBLE))
    root = kernel.mass.rsqrt()
    eigenvalues = torch.linalg.eigvalsh(root[:, None] * saddle.hessian * root)
    assert -eigenvalues[0] > 2 * eigenvalues[-1] and eigenvalues[-1] > 4
    assert kernel.step_size == pytest.approx(
        0.5 / float(eigenvalues[-1]) ** 0.5, rel=0.02
    )


@pytest.mark.parametrize("chains", [1, 3, 100])
def test_whole_matrices_of_noise_see_four_hundred_examples_a_coordinate(
    chains, monkeypatch
):
    """Minibatches of five, over all positions: 400·3/5 of them, rounded up a little."""
    seen, look = [], LogisticRegression.gradient_and_variance_given

    def counted(self, position, *arguments):
        seen.append(len(position))
        return look(self, position, *arguments)

    posterior = logistic(torch.Generator().manual_seed(0), batch_size=5)
    start = mode(posterior).expand(chains, -1).contiguous()
    monkeypatch.setattr(LogisticRegression, "gradient_and_variance_given", counted)
    default_kernel(posterior, start)
    assert 240 <= sum(seen) <= 240 + 100


def regression(number=50, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    x, y = (
        torch.randn(number, 3, generator=generator),
        torch.randn(number, generator=generator),
    )
    return LinearRegression(scale * x, y, batch_size=number // 2)


def test_far_from_a_mode_steps_are_capped_and_tuning_is_refused_in_a_sentence():
    """At θ = 10⁴ the noise asks for 10⁹ steps a draw."""
    start = torch.full((1, 3), 1e4)
    with pytest.warns(UserWarning) as said:
        kernel = default_kernel(regression(), start)
    far, many = (str(each.message) for each in said)
    assert kernel.num_steps == MOST_STEPS
    assert "standard deviations" in far and "find_mode" in far
    assert "10,000" in many and "batch_size" in many
    with pytest.raises(ValueError, match=r"position.*standard deviations.*find_mode"):
        tune(regression(), start)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune(regression(), find_mode(regression(), start))


def test_the_tuning_says_how_long_it_takes_and_obeys_a_stop_within_a_draw(monkeypatch):
    target = NoisyGradient(Gaussian.standard(1, DOUBLE), 100.0)
    start = torch.zeros(1, 1, dtype=DOUBLE)
    monkeypatch.setattr(defaults, "MANY", 100)
    with pytest.warns(UserWarning, match=r"8,000 gradients.*20 chains"):
        tune(target, start)

    class Stopped(NoisyGradient):
        """Somebody stops it in the middle of the first draw of the chains."""

        calls = 0

        def gradient_given(self, position, minibatch):
            self.calls += len(position) == 20
            if self.calls == 100:
                raise KeyboardInterrupt
            return super().gradient_given(position, minibatch)

    stopped = Stopped(Gaussian.standard(1, DOUBLE), 100.0)
    with pytest.warns(UserWarning), pytest.raises(KeyboardInterrupt):
        tune(stopped, start)
    assert stopped.calls == 100


def test_both_turns_have_random_numbers_of_their_own():
    target, start = Gaussian.standard(1, DOUBLE), torch.zeros(1, 1, dtype=DOUBLE)
    run, seeds = defaults._Tuning(target, start, seed=7), set()
    for _ in range(20):
        seeds.add(run.generator.initial_seed())
        run.advance()
    assert len(seeds) == 2


class Counted(LogisticRegression):
    """Counts the gradients of twenty chains, of minibatches and of all the data."""

    def gradient_given(self, position, minibatch):
        if len(position) == 20:
            self.counts[minibatch is None] += 1
        return super().gradient_given(position, minibatch)


@pytest.mark.parametrize(("size", "loud"), [(20, False), (3, True)])
def test_where_minibatches_are_loud_the_chains_take_all_the_data(size, loud):
    """N/n is 20 and 133; with all the data it takes 320 gradients, and a few at which
    curvature and noise are looked at. The kernel is one for the minibatches.
    """
    posterior = logistic(torch.Generator().manual_seed(0), batch_size=size)
    start = mode(posterior)
    posterior.__class__, posterior.counts = Counted, [0, 0]
    kernel, place = tune(posterior, start)
    minibatches, whole = posterior.counts
    assert (minibatches < 10) == loud and (320 <= whole < 340) == loud
    assert kernel.step_size == pytest.approx(2 * size / 400, rel=0.3)
    widths = (place - start).std(0) * default_kernel(
        posterior, start
    ).mass.inverse().diagonal().rsqrt()
    assert ((widths > 0.5) & (widths < 1.8)).all()


def test_a_kernel_belongs_to_a_number_of_examples():
    small, large = regression(), regression(500)
    kernel = default_kernel(small, find_mode(small, torch.zeros(1, 3)))
    with pytest.raises(ValueError, match=r"\b50 examples.*\b500\b"):
        sample(kernel, large, torch.zeros(4, 3), 5)
    sample(kernel, small, torch.zeros(4, 3), 5)
    ours, theirs = (
        default_kernel(each, find_mode(each, torch.zeros(1, 3)))
        for each in (small, large)
    )
    assert float(theirs.mass[0, 0] / ours.mass[0, 0]) == pytest.approx(10, rel=0.3)


@pytest.mark.parametrize("noise", [0.0, 30.0])
def test_halving_matches_the_estimate(noise, generator):
    for dim in (3, FULL + 1):
        target = Gaussian(
            torch.diag(1 + torch.rand(dim, generator=generator, dtype=DOUBLE))
        )
        noisy = NoisyGradient(target, noise)
        kernel = default_kernel(noisy, target.mean[None])
        half = default_kernel(noisy, target.mean[None], step_size=kernel.step_size / 2)
        found = kernel.halved()
        for name in ("step_size", "friction", "noise_estimate", "mass"):
            torch.testing.assert_close(
                *(torch.as_tensor(getattr(each, name)) for each in (found, half)),
                rtol=1e-9,
                atol=1e-9,
            )
        assert found.num_steps == 2 * kernel.num_steps


def test_curvature_and_noise_are_averaged_over_positions():
    """Of the double well at ±x: the mean of 12x² − 4."""
    kernel = default_kernel(DoubleWell(), torch.tensor([[1.0], [1.1]], dtype=DOUBLE))
    assert float(kernel.mass) == pytest.approx((8 + 12 * 1.21 - 4) / 2, rel=1e-8)


def test_where_the_curvature_is_the_same_everywhere_draws_tune_as_a_mode_does(
    generator,
):
    """On a Gaussian, to rounding; and the draws are from it, or as many as were given
    to start from.
    """
    target = Gaussian(covariance(3, generator))
    noisy = NoisyGradient(target, 30 * target.precision)
    usual = default_kernel(noisy, target.mean[None])
    kernel, start = tune(noisy, target.mean[None])
    for name in ("step_size", "friction", "noise_estimate", "mass"):
        torch.testing.assert_close(
            *(torch.as_tensor(getattr(each, name)) for each in (kernel, usual)),
            rtol=1e-6,
            atol=1e-6,
        )
    _, many = tune(noisy, target.mean.expand(400, -1).contiguous())
    assert start.shape == (20, 3) and many.shape == (400, 3)
    # the last of twenty draws with a quarter of the step
    assert_covariance(many[None], target.covariance)


def test_positions_are_far_from_a_mode_from_so_many_standard_deviations_on():
    """Of one, 0.3 on average; of several, that may be draws, 2; and in one of a hundred
    coordinates √(2 log 100) + 4 = 7.03.
    """
    for chains, limit in ((1, 0.3), (2, 2.0), (4, 2.0)):
        for far in (0.99 * limit, 1.01 * limit):
            slopes = far * torch.ones(chains, 100) * (-1) ** torch.arange(100)
            expected = far if far > limit else 0.0
            assert defaults._distance(slopes) == pytest.approx(expected)
    for far, expected in ((7.0, 0.0), (7.1, 7.1), (-7.1, 7.1)):
        slopes = torch.zeros(4, 100)
        slopes[2, 31] = 2 * far  # of one of four positions
        assert defaults._distance(slopes) == pytest.approx(expected)


def test_rounding_below_zero_is_taken_out_from_a_share_of_the_largest_on():
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
    for times, kept in ((0.5, True), (2.0, False)):
        low = -times * 9 * defaults.FLAT
        given = turn @ torch.diag(torch.tensor([low, 9.0]).double()) @ turn.mT
        found = defaults._without_negative(given)
        assert (found is given) == kept
        expected = turn @ torch.diag(torch.tensor([0.0, 9.0]).double()) @ turn.mT
        if not kept:
            torch.testing.assert_close(found, expected)
            assert torch.equal(found, found.mT)


def test_what_is_in_large_units_is_named(generator):
    """The column of the largest root mean square, or the coordinate; of what is flat in
    its own units, or curves downwards, nothing is said.
    """
    tensor = lambda rows: torch.tensor(rows, dtype=torch.float64)
    say = lambda hessian, potential=None: defaults._of_units(
        potential, tensor(hessian), "1 of 2 directions"
    )
    told = say([[1.0, 0.5e5], [0.5e5, 1e10]])
    assert (
        told.startswith("1 of 2 directions look flat beside")
        and "coordinate 1 is" in told
    )
    assert "coordinate 0 is" in say([[1e10, 0.0], [0.0, 1.0]])
    assert say([[1.0, 1e5], [1e5, 1e10]]) == say([[-1.0, 0.0], [0.0, 1.0]]) == ""
    flat = defaults.FLAT
    assert say([[1.0, 1 - 2 * flat], [1 - 2 * flat, 1.0]]) != ""
    assert say([[1.0, 1 - flat / 2], [1 - flat / 2, 1.0]]) == ""
    inputs = torch.tensor([1.0, 40.0]) * torch.ones(9, 2)
    inputs[::2] *= -1
    for size, expected in (
        (3.0, "column 1 of tensor 0 of the data, of some 40, is"),
        (700.0, "column 0 of tensor 1 of the data, of some 7e+02, is"),
    ):
        model = LinearRegression(inputs, size * torch.ones(9))
        assert expected in say([[1.0, 0.0], [0.0, 1.0]], model)
