"""From the draws of parts to the posterior: exact laws by linear algebra, draws against
them by z-tests, biases where they belong.
"""

import math

import numpy as np
import pytest
import torch
from torch import Generator

from booklib.rivals.consensus import (
    candidates,
    effective_share,
    energies,
    gaussian_product,
    inverse_covariance_weights,
    moments,
    reweight,
    serialized_size,
    weighted_average,
    weighted_mean,
)
from booklib.rivals.shards import shards
from sgmc.door.draws import Draws
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.targets import Gaussian
from tests.checks import z_bound

DOUBLE = torch.float64
NUMBERS = [1, 2, 8, 32]


def regression():
    """A prior that matters, inputs with correlations, and shards that differ."""
    generator = Generator().manual_seed(0)
    x = torch.randn(96, 3, generator=generator, dtype=DOUBLE) @ torch.tensor(
        [[1.0, 0.8, 0.0], [0.0, 0.5, 0.3], [0.0, 0.0, 2.0]], dtype=DOUBLE
    )
    y = x @ torch.tensor([1.0, -1.0, 0.5], dtype=DOUBLE) + torch.randn(
        96, generator=generator, dtype=DOUBLE
    )
    return LinearRegression(x, y, noise_variance=1.0, prior_variance=0.1)


def exact(part) -> Gaussian:
    """The law of a shard of the regression: its precision has a J-th of the prior's."""
    x, y = part.data
    precision = x.T @ x + torch.eye(3, dtype=DOUBLE) / (0.1 * part.num_shards)
    covariance = torch.linalg.inv(precision)
    return Gaussian((covariance + covariance.T) / 2, covariance @ x.T @ y)


def laws(number):
    parts = [exact(part) for part in shards(regression(), number)]
    return torch.stack([law.mean for law in parts]), torch.stack(
        [law.covariance for law in parts]
    )


def average_law(weights, means, covariances):
    """The exact law of ΣWⱼθⱼ for independent Gaussian θⱼ."""
    mean = (weights @ means[..., None]).sum(0)[:, 0]
    return mean, (weights @ covariances @ weights.mT).sum(0)


@pytest.mark.parametrize("number", NUMBERS)
def test_on_gaussians_both_formulas_are_exact(number):
    """By linear algebra, up to rounding: there is no Monte Carlo in this."""
    posterior, (means, covariances) = regression(), laws(number)
    mean, covariance = average_law(
        inverse_covariance_weights(covariances), means, covariances
    )
    product = gaussian_product(means, covariances)
    for found in (mean, product.mean):
        torch.testing.assert_close(found, posterior.mean, rtol=1e-10, atol=1e-12)
    for found in (covariance, product.covariance):
        torch.testing.assert_close(found, posterior.covariance, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("number", NUMBERS)
def test_weights_with_the_prior_once_more_count_it_twice(number):
    """Σⱼ⁻¹ has its share of the prior; Σ(Σ₀⁻¹/J + Σⱼ⁻¹) with Σ = (Σ₀⁻¹ + ΣΣⱼ⁻¹)⁻¹ adds
    up to I and gives another law, unless J = 1.
    """
    posterior, (means, covariances) = regression(), laws(number)
    prior = torch.eye(3, dtype=DOUBLE) / 0.1
    precisions = torch.linalg.inv(covariances)
    twice = torch.linalg.inv(prior + precisions.sum(0)) @ (prior / number + precisions)
    mean, _ = average_law(twice, means, covariances)
    torch.testing.assert_close(twice.sum(0), torch.eye(3, dtype=DOUBLE))
    far = (
        mean - posterior.mean
    ).abs().max() > 0.01 * posterior.covariance.diagonal().sqrt().max()
    assert bool(far) == (number > 1)
    # The same with the likelihood's own precision, Σⱼ⁻¹ − Σ₀⁻¹/J, in place of Σⱼ⁻¹ is
    # right.
    once = torch.linalg.inv(prior + (precisions - prior / number).sum(0)) @ precisions
    torch.testing.assert_close(once, inverse_covariance_weights(covariances))


@pytest.mark.parametrize("number", NUMBERS)
def test_draws_give_the_posterior_within_their_error(number):
    """z-tests of means and second moments of 200 independent chains, whose weights are
    their own, for all four ways to combine.
    """
    posterior = regression()
    parts = shards(posterior, number)
    chains, length = 200, 400
    drawn = [
        Draws(
            exact(part)
            .exact_samples(chains * length, Generator().manual_seed(seed))
            .view(length, chains, 3)
        )
        for seed, part in enumerate(parts)
    ]
    root = torch.linalg.cholesky(posterior.precision)

    def check(averages, bias):
        """Averages of a chain (chains, ...) that have the expectation zero, up to a
        bias that falls with the length.
        """
        error = averages.std(0) / chains**0.5
        z = (averages.mean(0).abs() - bias).clamp(min=0) / error
        assert z.max() < z_bound(z.numel()), z

    def whitened(samples):
        white = (samples - posterior.mean) @ root
        return white, white[..., :, None] * white[..., None, :] - torch.eye(
            3, dtype=DOUBLE
        )

    white, square = whitened(weighted_average(drawn).samples)
    # Weights from L draws have a second-order bias of about dim/L times the spread of
    # the parts, a posterior deviation or two here.
    check(white.mean(0), bias=2 * 3 / length)
    check(square.mean(0), bias=4 * 3 / length)
    white, square = whitened(
        weighted_average(drawn, inverse_covariance_weights(laws(number)[1])).samples
    )
    check(white.mean(0), bias=0.0)
    check(square.mean(0), bias=0.0)
    products = [
        gaussian_product(*moments([Draws(each.samples[:, [chain]]) for each in drawn]))
        for chain in range(chains)
    ]
    check(torch.stack([whitened(law.mean)[0] for law in products]), bias=2 * 3 / length)
    proposed = candidates(gaussian_product(*moments(drawn)), length, chains)
    weighed = reweight(proposed, [energies(part, proposed.samples) for part in parts])
    white, square = whitened(weighed.samples)
    weight = weighed.statistics["weight"]
    mean = (weight[..., None] * white).mean(0) / weight.mean(0)[:, None]
    check(mean, bias=2 / length)
    check(
        (weight[..., None, None] * square).mean(0) / weight.mean(0)[:, None, None],
        bias=4 / length,
    )
    assert effective_share(weighed) > 0.5


class LogRate(Potential):
    """The logarithm x of a rate λ ~ Gamma(a, b): U(x) = −ax + beˣ."""

    dim = 1

    def __init__(self, shape, rate):
        self.shape, self.rate = shape, rate

    def energy(self, position):
        return (self.rate * position.exp() - self.shape * position).sum(-1)


def rates(number, chains=100, length=500):
    """Twelve events in all, dealt unequally: the parts' exact draws, their shapes, and
    the exact posterior Gamma(Σa, Σb).
    """
    shapes = 0.5 / number + torch.tensor(
        [12.0 * (j + 1) for j in range(number)], dtype=DOUBLE
    ) / sum(range(1, number + 1))
    rate = 1.0 / number + 10.0 / number
    generator = Generator().manual_seed(number)
    drawn = [
        Draws(
            (
                torch._standard_gamma(
                    torch.full((length, chains, 1), float(shape), dtype=DOUBLE),
                    generator,
                )
                / rate
            ).log()
        )
        for shape in shapes
    ]
    return shapes, rate, drawn


@pytest.mark.parametrize("number", [2, 8])
def test_on_skewed_parts_averages_are_biased_as_their_exact_law_says_and_weights_are_not(
    number,
):
    """x = log λ has mean ψ(a) − log b and variance ψ′(a) in a part: both sides are
    known, the bias and the truth.
    """
    shapes, rate, drawn = rates(number)
    truth = float(torch.digamma(shapes.sum())) - math.log(rate * number)
    variances = torch.polygamma(1, shapes)
    weights = inverse_covariance_weights(variances[:, None, None])
    expected = float(
        (weights.flatten() * (torch.digamma(shapes) - math.log(rate))).sum()
    )
    mean, error = weighted_average(drawn, weights).mean_and_standard_error()
    assert abs(float(mean) - expected) < z_bound(1) * float(error)
    posterior_deviation = float(torch.polygamma(1, shapes.sum())) ** 0.5
    assert abs(expected - truth) > (0.1 if number == 8 else 0.003) * posterior_deviation
    proposed = candidates(gaussian_product(*moments(drawn)), 500, 100)
    weighed = reweight(
        proposed,
        [energies(LogRate(float(shape), rate), proposed.samples) for shape in shapes],
    )
    averages = weighted_mean(weighed)[:, 0]
    assert abs(float(averages.mean()) - truth) < z_bound(1) * float(averages.std()) / 10


def test_a_weighted_mean_is_that_of_numpy():
    weighed = Draws(torch.randn(6, 4, 3), {"weight": torch.rand(6, 4)})
    for function in (None, torch.exp):
        values = weighed.samples if function is None else function(weighed.samples)
        found = weighted_mean(weighed, function)
        for chain, weights in enumerate(weighed.statistics["weight"].T):
            expected = np.average(values[:, chain], axis=0, weights=weights)
            np.testing.assert_allclose(found[chain], expected, rtol=1e-5)


def test_weights_do_not_mind_what_constants_energies_lack():
    target = Gaussian.standard(2, DOUBLE)
    drawn = candidates(target, 50, 4)
    one, other = (
        reweight(drawn, [energies(target, drawn.samples) + constant])
        for constant in (0.0, 1e4)
    )
    torch.testing.assert_close(
        one.statistics["weight"], other.statistics["weight"], rtol=1e-9, atol=0
    )
    assert math.isclose(float(one.statistics["weight"].mean()), 1.0)


def test_candidates_have_the_law_they_claim():
    """Their log density against that of torch, up to a constant; weights of q against
    itself are one.
    """
    law = gaussian_product(
        torch.tensor([[1.0, 2.0]], dtype=DOUBLE),
        torch.tensor([[[2.0, 0.6], [0.6, 0.5]]], dtype=DOUBLE),
    )
    drawn = candidates(law, 200, 50, degrees=7.0)
    root = torch.linalg.cholesky(law.covariance)
    white = torch.linalg.solve_triangular(
        root, (drawn.samples - law.mean).flatten(0, 1).T, upper=False
    ).T
    expected = -(7 + 2) / 2 * torch.log1p(white.square().sum(-1) / 7)
    torch.testing.assert_close(drawn.statistics["log_density"].flatten(), expected)
    # |z|²/2 of a bivariate t with ν degrees of freedom is F(2, ν): its distribution
    # function at 1 is 1 − (1 + 2/ν)^(−ν/2).
    inside = (white.square().sum(-1) / 2 < 1).double()
    probability = 1 - (1 + 2 / 7) ** (-7 / 2)
    assert abs(float(inside.mean()) - probability) < z_bound(1) * math.sqrt(
        probability * (1 - probability) / len(inside)
    )


def test_an_energy_that_is_infinite_has_no_weight():
    drawn = candidates(Gaussian.standard(1, DOUBLE), 100, 2)
    wall = torch.where(drawn.samples[..., 0] > 0, 0.0, math.inf)
    weight = reweight(
        drawn, [energies(Gaussian.standard(1, DOUBLE), drawn.samples), wall]
    ).statistics["weight"]
    assert (weight[wall > 0] == 0).all() and (weight[wall == 0] > 0).all()


def test_the_bytes_of_a_shard_are_those_of_its_examples():
    """Of 3 inputs and a target in double precision, and what describes them."""
    x = torch.ones(4_000, 3, dtype=DOUBLE)
    parts = shards(LinearRegression(x, x[:, 0]), 8)
    assert 500 * 4 * 8 < serialized_size(parts[0]) < 500 * 4 * 8 + 8_000


def test_what_does_not_belong_together_is_refused():
    parts = [Draws(torch.randn(10, 2, 3)) for _ in range(2)]
    with pytest.raises(ValueError, match=r"3 draws.*3 coordinates"):
        weighted_average([Draws(torch.randn(3, 2, 3)) for _ in range(2)])
    with pytest.raises(ValueError, match=r"part 1 .*invert"):
        moments([parts[0], Draws(torch.zeros(10, 2, 3))])
    with pytest.raises(ValueError, match=r"one shape.*part 1.*\(9, 2, 3\)"):
        weighted_average([parts[0], Draws(torch.randn(9, 2, 3))])
    with pytest.raises(ValueError, match=r"sum I.*2\.0"):  # the posterior twice
        weighted_average(parts, torch.eye(3).repeat(2, 1, 1))
    for wrong in (torch.tensor([[[1.0, 0.5], [0.0, 1.0]]]), -torch.eye(2)[None]):
        with pytest.raises(ValueError, match=r"covariances must be symmetric"):
            gaussian_product(torch.zeros(1, 2), wrong)
    drawn = candidates(Gaussian.standard(1), 5, 2)
    with pytest.raises(ValueError, match=r"seed.*'0'"):
        candidates(Gaussian.standard(1), 5, 2, seed="0")
    with pytest.raises(ValueError, match=r"drawn.*log_density"):
        reweight(parts[0], [torch.zeros(10, 2)])
    with pytest.raises(ValueError, match=r"part 1 of parts.*\(5, 2\).*\(5, 1\)"):
        reweight(drawn, [torch.zeros(5, 2), torch.zeros(5, 1)])
    for wrong, named in ((math.nan, "NaN"), (math.inf, "finite energy")):
        with pytest.raises(ValueError, match=named):
            reweight(drawn, [torch.full((5, 2), wrong)])
