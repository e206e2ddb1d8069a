"""Posteriors, level 1 of the ladder: enumeration of all minibatches, given gradients against automatic ones, uniform subsets."""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from sgmc.networks import convolutional_network
from sgmc.posteriors import HeldMinibatch, LinearRegression, LogisticRegression, NetworkPosterior, Posterior
from sgmc.potentials import Potential, differentiate
from tests.conftest import z_bound

DOUBLE = torch.float64


@pytest.fixture
def data(generator):
    inputs = torch.randn(7, 3, generator=generator, dtype=DOUBLE)
    return inputs, (torch.rand(7, generator=generator) < 0.5).to(DOUBLE)


def network(generator, **settings):
    inputs = torch.randn(7, 3, generator=generator, dtype=DOUBLE)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    return NetworkPosterior(module, inputs, torch.arange(7) % 2, **settings)


MAKERS = {
    "linear": lambda data, **settings: LinearRegression(*data, noise_variance=0.5, prior_variance=2.0, **settings),
    "logistic": lambda data, **settings: LogisticRegression(*data, prior_variance=2.0, **settings),
    "network": lambda data, **settings: network(torch.Generator().manual_seed(1), prior_variance=2.0, **settings),
}


def start(posterior, generator, chains=3):
    return torch.randn(chains, posterior.dim, generator=generator, dtype=DOUBLE)


@pytest.mark.parametrize("name", MAKERS)
def test_gradient_is_that_of_the_energy(name, data, generator):
    posterior = MAKERS[name](data)
    position = start(posterior, generator)
    torch.testing.assert_close(posterior.gradient(position), Potential.gradient(posterior, position))


@pytest.mark.parametrize("name", MAKERS)
def test_energy_and_gradient_together_are_those_apart(name, data, generator):
    posterior = MAKERS[name](data)
    position = torch.cat([start(posterior, generator), 300 * start(posterior, generator)])  # far out too, where logits are large
    energy, gradient = posterior.energy_and_gradient(position)
    torch.testing.assert_close(energy, posterior.energy(position))
    torch.testing.assert_close(gradient, posterior.gradient(position))
    assert not energy.requires_grad and not gradient.requires_grad


@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_of_all_the_data_is_the_gradient_bit_for_bit(name, data, generator):
    position = start(MAKERS[name](data), generator)
    whole, default = MAKERS[name](data, batch_size=7), MAKERS[name](data)
    assert torch.equal(whole.stochastic_gradient(position, generator), default.gradient(position))
    assert torch.equal(default.stochastic_gradient(position, generator), default.gradient(position))


class Enumerated:
    """Hand out all minibatches, one a chain, in place of drawing them."""

    def __init__(self, total, size, replacement):
        choose = itertools.product(range(total), repeat=size) if replacement else itertools.combinations(range(total), size)
        self.indices = torch.tensor(list(choose))

    def __call__(self, chains, generator):
        return self.indices


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_the_mean_over_all_minibatches_is_the_gradient(name, replacement, data, generator):
    posterior = MAKERS[name](data, batch_size=3, replacement=replacement)
    posterior.draw_indices = Enumerated(7, 3, replacement)
    position = start(posterior, generator, 1).expand(len(posterior.draw_indices.indices), -1).contiguous()
    mean = posterior.stochastic_gradient(position, generator).mean(0)
    torch.testing.assert_close(mean, posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("settings", [{}, {"batch_size": 3}, {"batch_size": 3, "replacement": True}], ids=str)
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_automatic_gradients_are_those_of_the_formulas(kind, settings, generator):
    """The prior counts once and the likelihood N/n times."""
    data = torch.randn(9, 2, generator=generator, dtype=DOUBLE), (torch.arange(9) % 2).double()
    formulas, automatic = (kind(*data, prior_variance=0.2, **settings) for _ in range(2))
    automatic.gradients = None
    position = torch.randn(4, 2, generator=generator, dtype=DOUBLE)
    gradients = [x.stochastic_gradient(position, torch.Generator().manual_seed(1)) for x in (formulas, automatic)]
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(formulas.gradient(position), automatic.gradient(position))


def test_a_forgotten_scale_is_caught_by_enumeration(data, generator):
    """Level 5: without N/n the mean over all minibatches is another gradient."""

    class Forgetful(LogisticRegression):
        def _gradient(self, position, batch, scale):
            return super()._gradient(position, batch, 1.0)

    posterior = Forgetful(*data, batch_size=3)
    posterior.draw_indices = Enumerated(7, 3, False)
    position = start(posterior, generator, 1).expand(35, -1).contiguous()
    assert (posterior.stochastic_gradient(position, generator).mean(0) - posterior.gradient(position[:1])[0]).abs().max() > 0.1


@pytest.mark.parametrize("total, size", [(5, 3), (9, 2)], ids=["by sorting", "by redrawing"])
def test_subsets_are_uniform(total, size, generator):
    posterior = Posterior(lambda p: p.sum(-1), lambda p, x: x + p, (torch.zeros(total),), batch_size=size)
    number = 40_000
    drawn = posterior.draw_indices(number, generator).sort(-1).values
    assert (drawn[:, 1:] > drawn[:, :-1]).all()
    codes, counts = (drawn * total ** torch.arange(size)).sum(-1).unique(return_counts=True)
    subsets = math.comb(total, size)
    assert len(codes) == subsets
    z = (counts - number / subsets) / math.sqrt(number / subsets * (1 - 1 / subsets))
    assert z.abs().max() < z_bound(subsets)


def test_draws_with_replacement_are_uniform_and_every_chain_draws_its_own(generator):
    posterior = Posterior(lambda p: p.sum(-1), lambda p, x: x + p, (torch.zeros(6),), batch_size=20, replacement=True)
    indices = posterior.draw_indices(2_000, generator)
    counts = indices.flatten().bincount()
    z = (counts - 40_000 / 6) / math.sqrt(40_000 * 5 / 36)
    assert z.abs().max() < z_bound(6) and not torch.equal(indices[0], indices[1])


def test_linear_regression_knows_its_posterior(data):
    posterior = MAKERS["linear"](data)
    torch.testing.assert_close(posterior.gradient(posterior.mean[None]), torch.zeros(1, 3, dtype=DOUBLE), rtol=0, atol=1e-10)
    hessian = torch.autograd.functional.hessian(lambda p: posterior.energy(p[None])[0], posterior.mean)
    torch.testing.assert_close(torch.linalg.inv(hessian), posterior.covariance)


def test_logistic_likelihood_is_that_of_bernoulli_trials(data, generator):
    posterior = MAKERS["logistic"](data)
    position = start(posterior, generator)
    prior = torch.distributions.Normal(0, math.sqrt(2.0)).log_prob(position).sum(-1)
    likelihood = torch.distributions.Bernoulli(logits=position @ data[0].T).log_prob(data[1]).sum(-1)
    energy = -(prior + likelihood)
    torch.testing.assert_close(posterior.energy(position) - posterior.energy(position)[0], energy - energy[0])


def test_network_energy_is_that_of_the_module(generator):
    posterior = network(generator, prior_variance={"0.weight": 1.0, "0.bias": 4.0, "2.weight": 0.5, "2.bias": 1.0})
    inputs, targets = posterior.data
    position = torch.nn.utils.parameters_to_vector(posterior.module.parameters()).detach()[None]
    prior = sum(
        0.5 * parameter.pow(2).sum() / variance
        for parameter, variance in zip(posterior.module.parameters(), (1.0, 4.0, 0.5, 1.0), strict=True)
    )
    energy = prior + functional.cross_entropy(posterior.module(inputs), targets, reduction="sum")
    torch.testing.assert_close(posterior.energy(position)[0], energy.detach())
    torch.testing.assert_close(posterior.predict(position, inputs)[0], posterior.module(inputs).softmax(-1).detach())


@pytest.mark.parametrize("batch_size", [None, 3])
def test_many_networks_at_once_are_the_single_ones(batch_size, generator):
    posterior = network(generator, batch_size=batch_size)
    position = start(posterior, generator)
    indices = posterior.draw_indices(3, generator) if batch_size else None
    if batch_size:
        posterior.draw_indices = lambda chains, generator: indices
    together = posterior.stochastic_gradient(position, generator)
    for chain in range(3):
        if batch_size:
            posterior.draw_indices = lambda chains, generator, chain=chain: indices[chain : chain + 1]
        torch.testing.assert_close(together[chain], posterior.stochastic_gradient(position[chain : chain + 1], generator)[0])
    torch.testing.assert_close(posterior.energy(position)[1], posterior.energy(position[1:2])[0])


def convolutional(generator, normalisation=None, **settings):
    inputs = torch.randn(5, 32, generator=generator, dtype=DOUBLE)
    module = convolutional_network((2, 4, 4), (3, 2), hidden=3, normalisation=normalisation, classes=2).double()
    return NetworkPosterior(module, inputs, torch.arange(5) % 2, **settings)


@pytest.mark.parametrize("normalisation", [None, "group"])
def test_the_mean_over_all_minibatches_of_convolutions_is_the_gradient(normalisation, generator):
    """Many chains of convolutions at once, and each example by itself: what normalisation by the batch would break."""
    posterior = convolutional(generator, normalisation, batch_size=3)
    posterior.draw_indices = Enumerated(5, 3, False)
    position = start(posterior, generator, 1).expand(10, -1).contiguous()
    mean = posterior.stochastic_gradient(position, generator).mean(0)
    torch.testing.assert_close(mean, posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10)


def test_normalisation_by_the_batch_is_refused_while_it_mixes_examples(generator):
    with pytest.raises(
        ValueError, match=r"module has batch normalisation in \['2', '6'\], .* there is no posterior. Normalise by nn.GroupNorm"
    ):
        convolutional(generator, "batch")
    inputs, targets = torch.randn(5, 32, generator=generator), torch.arange(5) % 2
    module = convolutional_network((2, 4, 4), (3, 2), normalisation="batch", classes=2).eval()
    posterior = NetworkPosterior(module, inputs, targets)
    position = posterior.initial_position(1, generator)
    torch.testing.assert_close(posterior.predict(position, inputs)[:, 1:2], posterior.predict(position, inputs[1:2]))
    module[2].running_mean = module[2].running_var = None  # without fixed statistics, evaluation mixes too
    with pytest.raises(ValueError, match=r"batch normalisation in \['2'\]"):
        NetworkPosterior(module, inputs, targets)


def test_predictions_for_many_inputs_are_those_one_by_one(generator):
    posterior = network(generator)
    inputs = torch.randn(2_003, 3, generator=generator, dtype=DOUBLE)
    position = start(posterior, generator, 2)
    together = posterior.predict(position, inputs)
    assert together.shape == (2, 2_003, 2)
    apart = torch.stack([posterior.predict(position, inputs[i : i + 1])[:, 0] for i in (0, 999, 1000, 2_002)], 1)
    torch.testing.assert_close(together[:, [0, 999, 1000, 2_002]], apart)


def test_a_network_posterior_leaves_its_module_alone(generator):
    posterior = network(generator)
    before = [parameter.clone() for parameter in posterior.module.parameters()]
    posterior.gradient(start(posterior, generator))
    for parameter, old in zip(posterior.module.parameters(), before, strict=True):
        assert torch.equal(parameter, old) and parameter.grad is None


def test_initial_positions_have_the_scale_of_the_fan_in(generator):
    posterior = NetworkPosterior(nn.Linear(100, 3), torch.zeros(2, 100), torch.tensor([0, 1]))
    position = posterior.initial_position(2_000, generator, scale=2.0)
    weights, biases = position[:, :300], position[:, 300:]
    assert torch.equal(biases, torch.zeros(2_000, 3))
    variance = weights.pow(2).mean()
    assert abs(variance / 0.04 - 1) < z_bound(1) * math.sqrt(2 / weights.numel())


def simple(**settings):
    return Posterior(lambda p: -0.5 * p.pow(2).sum(-1), lambda p, x: -0.5 * (x - p) ** 2, (torch.arange(4.0),), **settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simple(batch_size=5), "batch_size is 5, but there are only 4 examples: take a smaller batch"),
        (lambda: simple(batch_size=0), "batch_size must be a whole number of at least 1, but it is 0"),
        (lambda: simple(batch_size=2.0), "batch_size must be a whole number"),
        (lambda: Posterior(None, None, (torch.zeros(3), torch.zeros(4))), r"same number of examples on their first axis, not \[3, 4\]"),
        (lambda: Posterior(None, None, ()), "data must be tensors"),
        (lambda: LinearRegression(torch.zeros(3, 2), torch.zeros(4)), r"inputs must be \(examples, features\) and targets"),
        (lambda: LinearRegression(torch.zeros(3, 2), torch.zeros(3), noise_variance=-1.0), "noise_variance must be positive, but it is -1"),
        (lambda: LogisticRegression(torch.zeros(3, 2), torch.tensor([0.0, 1.0, 2.0])), "targets must be zeros and ones"),
        (lambda: LogisticRegression(torch.zeros(3, 2), torch.zeros(3, dtype=DOUBLE)), "of the inputs' dtype torch.float32"),
        (lambda: LogisticRegression(torch.zeros(3, 2), torch.zeros(3), prior_variance=0.0), "it is a variance, not a standard deviation"),
        (lambda: NetworkPosterior(nn.ReLU(), torch.zeros(3, 2), torch.zeros(3).long()), "module has no parameters"),
        (lambda: NetworkPosterior(nn.Linear(2, 2), torch.zeros(3, 2), torch.zeros(3)), "targets must be class numbers, int64"),
        (
            lambda: NetworkPosterior(nn.Linear(2, 2), torch.zeros(3, 2), torch.zeros(3).long(), 0.0),
            "prior_variance must be a positive number",
        ),
        (
            lambda: NetworkPosterior(nn.Linear(2, 2), torch.zeros(3, 2), torch.zeros(3).long(), {"weight": 1.0}),
            r"one for each of \['weight', 'bias'\]",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_likelihood_of_the_wrong_shape_is_refused():
    posterior = Posterior(lambda p: p.sum(-1), lambda p, x: (x - p).sum(-1), (torch.zeros(4),))
    with pytest.raises(ValueError, match=r"one value per chain and example, \(2, 4\), but it returned \(2,\)"):
        posterior.gradient(torch.zeros(2, 1))


def test_a_held_minibatch_is_an_energy_with_its_gradient(data, generator):
    posterior = LogisticRegression(*data, batch_size=4)
    position = torch.randn(3, 3, generator=generator, dtype=DOUBLE)
    held = HeldMinibatch(posterior, generator, chains=3)
    torch.testing.assert_close(held.gradient(position), differentiate(held.energy, position)[1])
    assert torch.equal(held.gradient(position), held.stochastic_gradient(position, generator))  # every time the same
    assert not torch.equal(held.gradient(position), HeldMinibatch(posterior, generator, chains=3).gradient(position))


def test_the_mean_over_held_minibatches_is_the_posterior(data, generator, monkeypatch):
    posterior = LogisticRegression(*data, batch_size=2)
    position = torch.randn(1, 3, generator=generator, dtype=DOUBLE)
    seen = []
    for pair in itertools.combinations(range(7), 2):
        monkeypatch.setattr(posterior, "draw_indices", lambda chains, generator, pair=pair: torch.tensor([pair]))
        seen.append(HeldMinibatch(posterior, generator))
    torch.testing.assert_close(sum(held.energy(position) for held in seen) / 21, posterior.energy(position))
    torch.testing.assert_close(sum(held.gradient(position) for held in seen) / 21, posterior.gradient(position))


def test_a_minibatch_that_is_not_there_cannot_be_held(data, generator):
    with pytest.raises(ValueError, match="posterior has no batch_size, so that there is no minibatch to hold: give it one"):
        HeldMinibatch(LogisticRegression(*data), generator)
