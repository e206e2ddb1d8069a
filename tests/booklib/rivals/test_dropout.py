"""Monte Carlo dropout, against its closed form in linear regression."""

import itertools

import pytest
import torch

from booklib.rivals import dropout
from booklib.rivals.dropout import _units_of_network, masked_gradient
from sgmc.posteriors import NetworkPosterior
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import z_bound


def best(posterior, rate):
    """Solve for M: ((1 − p)G + p·diag G + (σ²/τ²)I)M = Xᵀy, by the mean over z of
    U(zM), σ² being 1.
    """
    inputs, targets = posterior.data
    gram = inputs.mT @ inputs
    left = (
        (1 - rate) * gram
        + rate * torch.diag(gram.diagonal())
        + posterior.prior_precision * torch.eye(len(gram)).double()
    )
    return torch.linalg.solve(left, inputs.mT @ targets)


@pytest.mark.parametrize(("rate", "batch_size"), [(0.2, None), (0.5, None), (0.2, 10)])
def test_training_ends_at_the_closed_form(regression, rate, batch_size):
    """Chains are trained by themselves, and so their spread is the error's."""
    posterior = regression(batch_size)
    draws = dropout(
        posterior,
        torch.zeros(256, 3).double(),
        1,
        rate=rate,
        num_steps=2000,
        learning_rate=0.02,
    )
    weights = draws.statistics["weights"][0]
    z = z_of_mean(weights, best(posterior, rate))
    assert z.abs().max() < z_bound(3), z
    # it is not the posterior's mode
    assert (z_of_mean(weights, posterior.mean).abs() > 10).any()


def test_draws_are_weights_that_are_there_or_not(regression):
    """Each coordinate of each draw by itself: the mean (1 − p)M, no correlation, and
    nothing but zeros and M.
    """
    posterior, rate = regression(), 0.3
    draws = dropout(
        posterior, torch.zeros(100, 3).double(), 200, rate=rate, num_steps=10
    )
    there = draws.samples != 0
    assert torch.equal(draws.samples, there * draws.statistics["weights"])
    kept = there.double().flatten(0, 1)
    pairs = torch.stack(
        [kept[:, i] * kept[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], -1
    )
    z = torch.cat([z_of_mean(kept, 1 - rate), z_of_mean(pairs, (1 - rate) ** 2)])
    assert z.abs().max() < z_bound(6), z


def network(batch_size=20, **settings):
    """Make the posterior of a network of two layers, the second one without biases, on
    twenty examples of two inputs.
    """
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(20, 2, generator=generator).double()
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2, bias=False)
    )
    return NetworkPosterior(
        module.double(),
        inputs,
        (inputs[:, 0] > 0).long(),
        batch_size=batch_size,
        **settings,
    )


def test_what_enters_a_layer_is_dropped_with_all_its_weights_and_biases_never():
    posterior = network()
    draws = dropout(
        posterior,
        torch.full((2, 15), 0.1).double(),
        200,
        rate=[0.25, 0.5],
        num_steps=20,
    )
    there = draws.samples != 0
    first, biases, second = there.split([6, 3, 6], -1)
    first, second = first.unflatten(-1, (3, 2)), second.unflatten(-1, (2, 3))
    assert biases.all()
    assert (first == first[..., :1, :]).all() and (second == second[..., :1, :]).all()
    units = torch.cat([first[..., 0, :], second[..., 0, :]], -1).double().flatten(0, 1)
    z = z_of_mean(units, torch.tensor([0.75, 0.75, 0.5, 0.5, 0.5]))
    pairs = torch.stack(
        [units[:, i] * units[:, j] for i in range(5) for j in range(i)], -1
    )
    means = units.mean(0)
    expected = torch.stack([means[i] * means[j] for i in range(5) for j in range(i)])
    assert z.abs().max() < z_bound(5), z
    # a covariance of independent zeros and ones
    assert (pairs.mean(0) - expected).abs().max() < 5 * 0.25 / 400**0.5
    assert (first[:, 0] != first[:, 1]).any()  # chains have masks of their own


@pytest.mark.parametrize("prior", ["one", "another for each tensor"])
def test_the_gradient_of_a_network_is_that_of_the_mean_over_all_masks(prior):
    """Enumerated: 2⁵ masks of a draw for all examples have the mean gradient of masks
    for each example, which is what is drawn.
    """
    settings = (
        {}
        if prior == "one"
        else {"prior_variance": {"0.weight": 0.5, "0.bias": 2.0, "2.weight": 3.0}}
    )
    posterior, generator = network(None, **settings), torch.Generator().manual_seed(0)
    weights = torch.randn(1, 15, generator=generator).double()
    units, rates = _units_of_network(posterior, [0.25, 0.5])
    assert rates.tolist() == [0.25, 0.25, 0.5, 0.5, 0.5, 0.0]
    expected = torch.zeros(1, 15).double()
    for kept in itertools.product([0.0, 1.0], repeat=5):
        unit_mask = torch.tensor([*kept, 1.0]).double()
        probability = torch.where(unit_mask[:-1] > 0, 1 - rates[:-1], rates[:-1]).prod()
        mask = unit_mask[units]
        expected += probability * mask * posterior.gradient(mask * weights)
    number = 4000
    masks = (
        torch.rand(number, 1, 20, 6, generator=generator).double() >= rates
    ).double()
    drawn = torch.cat(
        [
            masked_gradient(posterior, weights, mask, rates, units, None)
            for mask in masks
        ]
    )
    z = z_of_mean(drawn, expected[0])
    assert z.abs().max() < z_bound(15), z


def test_minibatches_of_a_network_are_scaled_to_all_the_data():
    """The mean over all pairs of examples is the gradient of all of them."""
    posterior, weights = network(), torch.linspace(-1, 1, 15)[None].double()
    units, rates = _units_of_network(posterior, [0.25, 0.5])
    mask = torch.ones(1, 20, 6).double()
    pairs = torch.combinations(torch.arange(20))[:, None]
    each = torch.stack(
        [
            masked_gradient(posterior, weights, mask[:, :2], rates, units, pair)
            for pair in pairs
        ]
    )
    torch.testing.assert_close(
        each.mean(0), masked_gradient(posterior, weights, mask, rates, units, None)
    )
