"""The Gibbs step of the prior's precisions, against its exact law."""

import math

import pytest
import torch
from scipy import stats
from torch import nn

from sgmc.hyperpriors import draw_precisions
from sgmc.posteriors import NetworkPosterior
from tests.conftest import z_bound


def posterior(**settings):
    generator = torch.Generator().manual_seed(1)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    return NetworkPosterior(module, torch.randn(7, 2, generator=generator), torch.arange(7) % 2, **settings)


def draws_of(posterior, position, generator, number, **hyperprior):
    drawn = [draw_precisions(posterior, position, generator, **hyperprior) for _ in range(number)]
    return {name: [draw[name] for draw in drawn] for name in drawn[0]}


def test_precisions_follow_their_full_conditional_law(generator):
    """Kolmogorov-Smirnov for each of four tensors; false alarm 1e-4 for all together."""
    target = posterior()
    position = torch.randn(1, target.dim, generator=generator)
    drawn = draws_of(target, position, generator, 2_000, shape=2.0, rate=0.5)
    for name, weights in target.parameters_of(position).items():
        law = stats.gamma(2.0 + weights.numel() / 2, scale=1 / (0.5 + float(weights.square().sum()) / 2))
        assert stats.kstest(drawn[name], law.cdf).pvalue > 1e-4 / 4, name


def test_weights_and_precisions_drawn_in_turn_keep_their_joint_law(generator):
    """Gibbs between exact draws of w | λ and λ | w, without data, leaves λ ~ Gamma(a, b), with E[λ] = a/b and E[log λ] = ψ(a) − log b."""
    target, chains = posterior(), 1_500
    shape, rate = 3.0, 2.0
    sums = []
    for _ in range(chains):
        # Start from the stationary law, and take three turns.
        precisions = {name: float(torch._standard_gamma(torch.tensor(shape), generator) / rate) for name in target.prior_precision}
        for _ in range(3):
            scales = torch.cat([p.new_full((1, p.shape[1]), precisions[name] ** -0.5) for name, p in parameters(target).items()], 1)
            position = torch.randn(1, target.dim, generator=generator) * scales
            precisions = draw_precisions(target, position, generator, shape, rate)
        sums.append([f for value in precisions.values() for f in (value, math.log(value))])
    sums = torch.tensor(sums, dtype=torch.float64)
    expected = torch.tensor([shape / rate, float(torch.digamma(torch.tensor(shape))) - math.log(rate)] * 4, dtype=torch.float64)
    z = (sums.mean(0) - expected) / (sums.std(0) / chains**0.5)
    assert z.abs().max() < z_bound(len(z))


def parameters(target):
    return target.parameters_of(torch.zeros(1, target.dim))


def test_precisions_that_are_set_are_those_of_a_new_posterior(generator):
    precisions = dict(zip(("0.weight", "0.bias", "2.weight", "2.bias"), (1.0, 4.0, 0.5, 2.0), strict=True))
    changed, new = posterior(), posterior(prior_variance={name: 1 / value for name, value in precisions.items()})
    changed.prior_precision = precisions
    position = torch.randn(3, new.dim, generator=generator)
    assert torch.equal(changed.gradient(position), new.gradient(position))
    assert torch.equal(changed.energy(position), new.energy(position))
    assert changed.prior_precision == precisions


def test_precisions_are_drawn_for_one_chain(generator):
    with pytest.raises(ValueError, match=r"position holds 2 chains, but precisions are drawn for one: \(1, dim\)"):
        draw_precisions(posterior(), torch.zeros(2, 17), generator)


@pytest.mark.parametrize("name", ["shape", "rate"])
def test_hyperpriors_must_be_proper(name, generator):
    with pytest.raises(ValueError, match=f"{name} must be"):
        draw_precisions(posterior(), torch.zeros(1, 17), generator, **{name: 0.0})


@pytest.mark.parametrize("precisions", [{"0.weight": 1.0}, {"0.weight": 1.0, "0.bias": 1.0, "2.weight": 0.0, "2.bias": 1.0}])
def test_bad_precisions_are_refused(precisions):
    with pytest.raises(ValueError, match=r"prior_precision must hold a positive number for each of \['0.weight'"):
        posterior().prior_precision = precisions
