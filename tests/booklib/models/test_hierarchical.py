"""Networks whose prior precisions are given, or drawn."""

import math

import pytest
import torch
from torch import nn

from booklib.models.hierarchical import HierarchicalNetwork
from sgmc.minibatches import Passes

DOUBLE = torch.float64
PRECISIONS = {"0.weight": 1.0, "0.bias": 0.25, "2.weight": 2.0, "2.bias": 1.0}


def network(generator, **settings):
    inputs = torch.randn(7, 3, generator=generator, dtype=DOUBLE)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    return HierarchicalNetwork(module, inputs, torch.arange(7) % 2, **settings)


def start(posterior, generator, chains=3):
    return torch.randn(chains, posterior.dim, generator=generator, dtype=DOUBLE)


def variance_of(precisions):
    return {name: 1 / value for name, value in precisions.items()}


def test_given_precisions_make_the_posterior_that_would_be_made_with_them(generator):
    changed, new = (
        network(generator).given(PRECISIONS),
        network(
            torch.Generator().manual_seed(0), prior_variance=variance_of(PRECISIONS)
        ),
    )
    position = start(new, generator)
    assert torch.equal(changed.gradient(position), new.gradient(position))
    assert torch.equal(changed.energy(position), new.energy(position))
    assert torch.equal(changed.grad_log_prior(position), new.grad_log_prior(position))
    assert changed.prior_precision == changed.hyperparameters == PRECISIONS
    likelihood = new.log_likelihood(position, *(x[None] for x in new.data)).sum(-1)
    torch.testing.assert_close(
        changed.log_prior(position), -new.energy(position) - likelihood
    )


def test_precisions_go_by_their_names_in_whatever_order_they_are_given(generator):
    posterior = HierarchicalNetwork(
        torch.nn.Linear(2, 3),
        torch.randn(5, 2, generator=generator),
        torch.arange(5) % 3,
    )
    position = torch.randn(2, posterior.dim, generator=generator)
    expected = -0.5 * (
        9 * position[:, :6].square().sum(-1) + 4 * position[:, 6:].square().sum(-1)
    )
    for precisions in ({"weight": 9.0, "bias": 4.0}, {"bias": 4.0, "weight": 9.0}):
        torch.testing.assert_close(
            posterior.given(precisions).log_prior(position), expected
        )


def test_given_precisions_leave_the_posterior_as_it_was(generator):
    posterior = network(
        generator,
        prior_variance=2.0,
        batch_size=3,
        minibatches=Passes(),
        hyperprior=(2.0, 3.0),
    )
    position = start(posterior, generator)
    before = (
        posterior.energy(position),
        posterior.gradient(position),
        dict(posterior.prior_precision),
        posterior.prior.value,
    )
    changed = posterior.given(
        {name: torch.rand(3, generator=generator) + 0.5 for name in PRECISIONS}
    )
    assert not torch.equal(changed.energy(position), before[0])
    assert torch.equal(posterior.energy(position), before[0]) and torch.equal(
        posterior.gradient(position), before[1]
    )
    assert posterior.prior_precision == before[2] and posterior.prior.value == before[3]
    assert (
        changed.batch_size == 3
        and changed.minibatches == Passes()
        and changed.hyperprior == (2.0, 3.0)
    )
    assert changed.data is posterior.data and changed.module is posterior.module


@pytest.mark.parametrize("batch_size", [None, 3])
def test_every_chain_may_have_precisions_of_its_own(batch_size, generator):
    posterior = network(generator, batch_size=batch_size)
    position = start(posterior, generator)
    values = {
        name: torch.rand(3, generator=generator, dtype=DOUBLE) * 4 + 0.1
        for name in PRECISIONS
    }
    values["2.bias"] = 1.5  # a number is that of all chains
    many = posterior.given(values)
    (indices,) = many.draw_minibatches(position, generator, step=2)
    energy, gradient = many.energy(position), many.gradient_given(position, indices)
    both = many.energy_and_gradient(position)
    for chain in range(3):
        one = posterior.given(
            {
                name: float(value[chain]) if isinstance(value, torch.Tensor) else value
                for name, value in values.items()
            }
        )
        place, few = (
            position[chain : chain + 1],
            None if indices is None else indices[chain : chain + 1],
        )
        torch.testing.assert_close(energy[chain], one.energy(place)[0])
        torch.testing.assert_close(gradient[chain], one.gradient_given(place, few)[0])
        torch.testing.assert_close(both[0][chain], one.energy(place)[0])
        torch.testing.assert_close(both[1][chain], one.gradient(place)[0])
        for kind in ("scalar", "diagonal", "full"):
            noisy, variance = many.gradient_and_variance_given(position, indices, kind)
            expected = one.gradient_and_variance_given(place, few, kind)
            torch.testing.assert_close(noisy[chain], expected[0][0])
            torch.testing.assert_close(variance[chain], expected[1][0])


@pytest.mark.parametrize(
    "change", [{"2.weight": torch.tensor([1.0, -1.0])}, {"0.bias": math.inf}, {"3": 1}]
)
def test_bad_precisions_are_refused(change, generator):
    with pytest.raises(ValueError, match=r"prior_precision.*\['0.weight'"):
        network(generator).given(PRECISIONS | change)


@pytest.mark.parametrize("hyperprior", [1.0, (0.0, 1.0), (1.0, 0.0)])
def test_a_bad_hyperprior_is_refused(hyperprior, generator):
    with pytest.raises(ValueError, match=r"hyperprior.*\b[01]\.0\b"):
        network(generator, hyperprior=hyperprior)
