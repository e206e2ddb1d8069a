"""Posteriors, level 1 of the ladder: enumeration of all minibatches, given gradients
against automatic ones.
"""

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from booklib.models.networks import convolutional_network
from booklib.runs.held import HeldMinibatch
from sgmc.checkpoints import fingerprint
from sgmc.minibatches import Fresh, Held, Passes
from sgmc.models import Posterior, control_variates
from sgmc.posteriors import (
    LinearRegression,
    LogisticRegression,
    NetworkPosterior,
)
from sgmc.potentials import Potential, differentiate
from tests.checks import z_bound

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
    "linear": lambda data, **settings: LinearRegression(
        *data, noise_variance=0.5, prior_variance=2.0, **settings
    ),
    "logistic": lambda data, **settings: LogisticRegression(
        *data, prior_variance=2.0, **settings
    ),
    "network": lambda data, **settings: network(
        torch.Generator().manual_seed(1), prior_variance=2.0, **settings
    ),
}


def start(posterior, generator, chains=3):
    return torch.randn(chains, posterior.dim, generator=generator, dtype=DOUBLE)


@pytest.mark.parametrize("name", MAKERS)
def test_gradient_is_that_of_the_energy(name, data, generator):
    posterior = MAKERS[name](data)
    position = start(posterior, generator)
    torch.testing.assert_close(
        posterior.gradient(position), Potential.gradient(posterior, position)
    )


@pytest.mark.parametrize("name", MAKERS)
def test_energy_and_gradient_together_are_those_apart(name, data, generator):
    posterior = MAKERS[name](data)
    # far out too, where logits are large
    position = torch.cat(
        [start(posterior, generator), 300 * start(posterior, generator)]
    )
    energy, gradient = posterior.energy_and_gradient(position)
    torch.testing.assert_close(energy, posterior.energy(position))
    torch.testing.assert_close(gradient, posterior.gradient(position))
    assert not energy.requires_grad and not gradient.requires_grad


@pytest.mark.parametrize("rule", [Fresh(), Passes(), Held(3)], ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_of_all_the_data_is_the_gradient_bit_for_bit(
    name, rule, data, generator
):
    position = start(MAKERS[name](data), generator)
    whole, default = (
        MAKERS[name](data, batch_size=7, minibatches=rule),
        MAKERS[name](data),
    )
    assert torch.equal(
        whole.stochastic_gradient(position, generator), default.gradient(position)
    )
    assert torch.equal(
        default.stochastic_gradient(position, generator), default.gradient(position)
    )
    assert (
        whole.draw_minibatches(position, generator, 0, 2)
        == default.draw_minibatches(position, generator, 0, 2)
        == (None, None)
    )


def enumerated(total, size, replacement):
    """List all minibatches."""
    choose = (
        itertools.product(range(total), repeat=size)
        if replacement
        else itertools.combinations(range(total), size)
    )
    return torch.tensor(list(choose))


class Enumeration:
    """A rule that hands out all minibatches, one a chain, in place of drawing them."""

    def __init__(self, total, size, replacement):
        self.all, self.replacement = enumerated(total, size, replacement), replacement

    def indices(self, num_examples, batch_size, chains, seed, step):
        assert chains == len(self.all)
        return self.all


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_the_mean_over_all_minibatches_is_the_gradient(
    name, replacement, data, generator
):
    rule = Enumeration(7, 3, replacement)
    posterior = MAKERS[name](data, batch_size=3, minibatches=rule)
    position = start(posterior, generator, 1).expand(len(rule.all), -1).contiguous()
    mean = posterior.stochastic_gradient(position, generator).mean(0)
    torch.testing.assert_close(
        mean, posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )
    energies = posterior.energy_given(position, rule.all)
    torch.testing.assert_close(
        energies.mean(), posterior.energy(position[:1])[0], rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("kind", ["scalar", "diagonal", "full"])
@pytest.mark.parametrize("name", MAKERS)
def test_as_many_draws_as_there_are_data_are_noisy_with_replacement(
    name, kind, data, generator
):
    """A sequence of n = N examples seldom holds each once: taking all the data in its
    place would lose the noise in silence.
    """
    rule = Enumeration(3, 3, True)
    few = [x[:3] for x in data]
    posterior = MAKERS[name](few, batch_size=3, minibatches=rule)
    if name == "network":
        posterior = NetworkPosterior(
            posterior.module,
            few[0],
            torch.tensor([0, 1, 1]),
            batch_size=3,
            minibatches=rule,
        )
    position = start(posterior, generator, 1).expand(27, -1).contiguous()
    gradients, variance = posterior.gradient_and_noise_variance(
        position, generator, kind
    )
    torch.testing.assert_close(
        gradients.mean(0), posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )
    covariance = gradients.T.cov(correction=0)
    assert covariance.diagonal().max() > 0.01
    expected = {
        "scalar": covariance.diagonal().mean()[None],
        "diagonal": covariance.diagonal(),
        "full": covariance,
    }[kind]
    torch.testing.assert_close(variance.mean(0), expected, rtol=1e-10, atol=1e-10)
    drawn = MAKERS[name](data, batch_size=7, minibatches=Fresh(replacement=True))
    assert drawn.draw_minibatches(
        torch.zeros(2, drawn.dim, dtype=DOUBLE), generator, 0
    )[0].shape == (2, 7)


@pytest.mark.parametrize("name", MAKERS)
def test_the_gradient_and_the_energy_on_given_indices(name, data, generator):
    """Every chain has its own examples, which may come twice; the prior counts once and
    the likelihood N/n times.
    """
    posterior = MAKERS[name](data, batch_size=2)
    position, indices = (
        start(posterior, generator),
        torch.tensor([[0, 1, 2], [6, 6, 3], [5, 4, 0]]),
    )
    gradient, energy = (
        posterior.gradient_given(position, indices),
        posterior.energy_given(position, indices),
    )
    for chain in range(3):
        few = [x[indices[chain]] for x in posterior.data]

        def by_hand(position, few=few):
            likelihood = sum(
                posterior.log_likelihood(position, *(x[None, i : i + 1] for x in few))[
                    :, 0
                ]
                for i in range(3)
            )
            return -posterior.log_prior(position) - 7 / 3 * likelihood

        expected, slope = differentiate(by_hand, position[chain : chain + 1])
        torch.testing.assert_close(energy[chain], expected[0])
        torch.testing.assert_close(gradient[chain], slope[0])
        torch.testing.assert_close(
            posterior.gradient_and_variance_given(position, indices, "diagonal")[0],
            gradient,
        )
    assert torch.equal(
        posterior.gradient_given(position, None), posterior.gradient(position)
    )
    assert torch.equal(
        posterior.energy_given(position, None), posterior.energy(position)
    )
    assert [len(x) for x in posterior.gather(indices)] == [3, 3]


@pytest.mark.parametrize("name", MAKERS)
def test_stochastic_gradients_are_those_of_the_indices_that_were_drawn(
    name, data, generator
):
    posterior = MAKERS[name](data, batch_size=3, minibatches=Passes())
    position = start(posterior, generator)
    for step in (0, 1, 5):
        (indices,) = posterior.draw_minibatches(position, generator, step)
        assert torch.equal(
            indices, Passes().indices(7, 3, 3, generator.initial_seed(), step)
        )
        assert torch.equal(
            posterior.stochastic_gradient(position, generator, step),
            posterior.gradient_given(position, indices),
        )
        for kind in ("scalar", "diagonal", "full"):
            one = posterior.gradient_and_noise_variance(position, generator, kind, step)
            other = posterior.gradient_and_variance_given(position, indices, kind)
            assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])
    unnumbered = [posterior.stochastic_gradient(position, generator) for _ in range(3)]
    assert not torch.equal(unnumbered[0], unnumbered[1]), (
        "without a number every call draws another minibatch"
    )


@pytest.mark.parametrize(
    "rule",
    [Fresh(), Fresh(replacement=True), Passes(), Held(5), Held(2, Passes())],
    ids=str,
)
@pytest.mark.parametrize("name", MAKERS)
def test_chains_at_one_place_have_minibatches_of_their_own(name, rule, data, generator):
    """Otherwise they would move together; with three of seven examples, two of 50
    chains may well share theirs, but not most.
    """
    posterior = MAKERS[name](data, batch_size=3, minibatches=rule)
    position = start(posterior, generator, 1).expand(50, -1).contiguous()
    for gradient in (
        posterior.stochastic_gradient(position, generator, step=4),
        posterior.gradient_and_noise_variance(position, generator, "diagonal", step=4)[
            0
        ],
    ):
        # Of C(7, 3) = 35 subsets or 84 multisets 50 chains see 27 or more on average;
        # fewer than 15 with probability below 1e-6.
        assert len(gradient.round(decimals=9).unique(dim=0)) >= 15
    variances = posterior.gradient_and_noise_variance(
        position, generator, "scalar", step=4
    )[1]
    assert len(variances.round(decimals=9).unique(dim=0)) >= 15


def test_a_fresh_minibatch_is_drawn_by_its_generator_whatever_the_rule(data):
    """With replacement; the global random numbers stay what they are."""
    posterior = LinearRegression(*data, batch_size=3, minibatches=Passes())
    position, before = torch.zeros(5_000, 3, dtype=DOUBLE), torch.get_rng_state()
    drawn = posterior.fresh_minibatch(position, torch.Generator().manual_seed(5))
    assert torch.equal(torch.get_rng_state(), before)
    again, other = (
        posterior.fresh_minibatch(position, torch.Generator().manual_seed(seed))
        for seed in (5, 6)
    )
    assert drawn.shape == (5_000, 3)
    assert torch.equal(drawn, again) and not torch.equal(drawn, other)
    share = drawn.flatten().bincount(minlength=7) / 15_000
    assert (share - 1 / 7).abs().max() < 6 * math.sqrt(6 / 49 / 15_000)
    twice = (drawn[:, 0] == drawn[:, 1]).double().mean()
    assert abs(twice - 1 / 7) < 6 * math.sqrt(6 / 49 / 5_000)
    whole = LinearRegression(*data, batch_size=7)
    assert whole.fresh_minibatch(position, torch.Generator()) is None


@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 3}, {"batch_size": 3, "minibatches": Fresh(replacement=True)}],
    ids=str,
)
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_automatic_gradients_are_those_of_the_formulas(kind, settings, generator):
    """The prior counts once and the likelihood N/n times."""
    data = (
        torch.randn(9, 2, generator=generator, dtype=DOUBLE),
        (torch.arange(9) % 2).double(),
    )
    formulas, automatic = (
        kind(*data, prior_variance=0.2, **settings) for _ in range(2)
    )
    automatic.grad_log_prior = automatic.grad_log_likelihood = None
    position = torch.randn(4, 2, generator=generator, dtype=DOUBLE)
    gradients = [
        x.stochastic_gradient(position, torch.Generator().manual_seed(1), step=3)
        for x in (formulas, automatic)
    ]
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(
        formulas.gradient(position), automatic.gradient(position)
    )


@pytest.mark.parametrize("kind", ["scalar", "diagonal", "full"])
def test_gradients_that_are_computed_in_pieces_are_all_summed(
    kind, data, generator, monkeypatch
):
    """Five examples of three chains, at most two at once."""
    posterior = quartic(data, batch_size=5)
    position = start(posterior, generator)
    (indices,) = posterior.draw_minibatches(position, generator, 0)
    whole = posterior.gradient_and_variance_given(position, indices, kind)
    monkeypatch.setattr("sgmc.posteriors.base._TOGETHER", 2 * position.numel())
    pieces = posterior.gradient_and_variance_given(position, indices, kind)
    for found, expected in zip(pieces, whole, strict=True):
        torch.testing.assert_close(found, expected)


FORMULAS = {
    "grad_log_prior": lambda position: -4 * position**3,
    "grad_log_likelihood": lambda position, x, y: (
        -((x @ position[..., None])[..., 0] - y)[:, None].pow(3).matmul(x)[:, 0]
    ),
}


def quartic(data, names=(), **settings):
    """Make a posterior that is given as functions, with the formulas of these names."""
    posterior = Posterior(
        lambda position: -position.pow(4).sum(-1),
        lambda position, x, y: -0.25 * ((x @ position[..., None])[..., 0] - y) ** 4,
        data,
        dim=3,
        **settings,
    )
    vars(posterior).update({name: FORMULAS[name] for name in names})
    return posterior


@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize(
    "names",
    [(), ("grad_log_prior",), ("grad_log_likelihood",), tuple(FORMULAS)],
    ids=["none", "prior", "data", "both"],
)
def test_the_users_formulas_may_be_given_one_by_one(names, size, data, generator):
    plain, posterior = quartic(data), quartic(data, names, batch_size=size)
    position = start(posterior, generator)
    torch.testing.assert_close(
        posterior.gradient(position), differentiate(plain.energy, position)[1]
    )
    energy, gradient = posterior.energy_and_gradient(position)
    torch.testing.assert_close(energy, plain.energy(position))
    torch.testing.assert_close(gradient, plain.gradient(position))
    indices = torch.tensor([[0, 1, 2], [6, 5, 3], [5, 4, 0]])
    expected = differentiate(
        lambda position: plain.energy_given(position, indices), position
    )[1]
    torch.testing.assert_close(posterior.gradient_given(position, indices), expected)
    for kind in ("scalar", "diagonal", "full"):
        gradient, variance = posterior.gradient_and_variance_given(
            position, indices, kind
        )
        torch.testing.assert_close(gradient, expected)
        torch.testing.assert_close(
            variance, plain.gradient_and_variance_given(position, indices, kind)[1]
        )
    calm = control_variates(posterior, torch.ones(3, dtype=DOUBLE))
    torch.testing.assert_close(calm.gradient(position), plain.gradient(position))


def test_the_users_formulas_are_used_each_in_its_place(data, generator):
    """Where they are wrong the gradient is wrong by as much: the prior's once, the
    data's N/n times.
    """
    position, indices = start(quartic(data), generator, 1), torch.tensor([[0, 1, 2]])
    right = quartic(data).gradient_given(position, indices)
    wrong = lambda name: lambda *arguments: FORMULAS[name](*arguments) + 1000
    for name, weight in (("grad_log_prior", 1.0), ("grad_log_likelihood", 7 / 3)):
        posterior = quartic(data, FORMULAS, batch_size=3)
        setattr(posterior, name, wrong(name))
        torch.testing.assert_close(
            posterior.gradient_given(position, indices), right - 1000 * weight
        )


def test_a_forgotten_scale_is_caught_by_enumeration(data, generator):
    """Level 5: without N/n the mean over all minibatches is another gradient."""

    class Forgetful(LogisticRegression):
        def _gradient_of(self, position, batch, scale):
            return super()._gradient_of(position, batch, 1.0)

    posterior = Forgetful(*data, batch_size=3)
    position = start(posterior, generator, 1).expand(35, -1).contiguous()
    mean = posterior.gradient_given(position, enumerated(7, 3, False)).mean(0)
    assert (mean - posterior.gradient(position[:1])[0]).abs().max() > 0.1


def test_linear_regression_knows_its_posterior(data):
    posterior = MAKERS["linear"](data)
    torch.testing.assert_close(
        posterior.gradient(posterior.mean[None]),
        torch.zeros(1, 3, dtype=DOUBLE),
        rtol=0,
        atol=1e-10,
    )
    hessian = torch.autograd.functional.hessian(
        lambda p: posterior.energy(p[None])[0], posterior.mean
    )
    torch.testing.assert_close(torch.linalg.inv(hessian), posterior.covariance)
    torch.testing.assert_close(posterior.precision, hessian)


def test_logistic_likelihood_is_that_of_bernoulli_trials(data, generator):
    posterior = MAKERS["logistic"](data)
    position = start(posterior, generator)
    prior = torch.distributions.Normal(0, math.sqrt(2.0)).log_prob(position).sum(-1)
    likelihood = (
        torch.distributions.Bernoulli(logits=position @ data[0].T)
        .log_prob(data[1])
        .sum(-1)
    )
    energy = -(prior + likelihood)
    torch.testing.assert_close(
        posterior.energy(position) - posterior.energy(position)[0], energy - energy[0]
    )


PRECISIONS = {"0.weight": 1.0, "0.bias": 0.25, "2.weight": 2.0, "2.bias": 1.0}


def test_network_energy_is_that_of_the_module(generator):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    inputs, targets = (
        torch.randn(7, 3, generator=generator, dtype=DOUBLE),
        torch.arange(7) % 2,
    )
    posterior = NetworkPosterior(
        module,
        inputs,
        targets,
        prior_variance={name: 1 / value for name, value in PRECISIONS.items()},
    )
    position = torch.nn.utils.parameters_to_vector(module.parameters()).detach()[None]
    prior = sum(
        0.5 * precision * parameter.pow(2).sum()
        for parameter, precision in zip(
            module.parameters(), PRECISIONS.values(), strict=True
        )
    )
    energy = prior + functional.cross_entropy(module(inputs), targets, reduction="sum")
    torch.testing.assert_close(posterior.energy(position)[0], energy.detach())
    torch.testing.assert_close(
        posterior.predict(position, inputs)[0], module(inputs).softmax(-1).detach()
    )


@pytest.mark.parametrize("batch_size", [None, 3])
def test_many_networks_at_once_are_the_single_ones(batch_size, generator):
    posterior = network(generator, batch_size=batch_size)
    position = start(posterior, generator)
    (indices,) = posterior.draw_minibatches(position, generator, step=0)
    together = posterior.gradient_given(position, indices)
    assert torch.equal(
        together, posterior.stochastic_gradient(position, generator, step=0)
    )
    for chain in range(3):
        few = None if indices is None else indices[chain : chain + 1]
        torch.testing.assert_close(
            together[chain],
            posterior.gradient_given(position[chain : chain + 1], few)[0],
        )
    torch.testing.assert_close(
        posterior.energy(position)[1], posterior.energy(position[1:2])[0]
    )


def convolutional(generator, normalisation=None, **settings):
    inputs = torch.randn(5, 32, generator=generator, dtype=DOUBLE)
    module = convolutional_network(
        (2, 4, 4), (3, 2), hidden=3, normalisation=normalisation, classes=2
    ).double()
    return NetworkPosterior(module, inputs, torch.arange(5) % 2, **settings)


@pytest.mark.parametrize("normalisation", [None, "group"])
def test_the_mean_over_all_minibatches_of_convolutions_is_the_gradient(
    normalisation, generator
):
    """Many chains of convolutions at once, and each example by itself: what
    normalisation by the batch would break.
    """
    posterior = convolutional(generator, normalisation, batch_size=3)
    position = start(posterior, generator, 1).expand(10, -1).contiguous()
    mean = posterior.gradient_given(position, enumerated(5, 3, False)).mean(0)
    torch.testing.assert_close(
        mean, posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )


def test_normalisation_by_the_batch_is_refused_while_it_mixes_examples(generator):
    with pytest.raises(
        ValueError,
        match=r"module.*\['2', '6'\].*GroupNorm",
    ):
        convolutional(generator, "batch")
    inputs, targets = torch.randn(5, 32, generator=generator), torch.arange(5) % 2
    module = convolutional_network(
        (2, 4, 4), (3, 2), normalisation="batch", classes=2
    ).eval()
    posterior = NetworkPosterior(module, inputs, targets)
    position = posterior.initial_position(1, generator)
    torch.testing.assert_close(
        posterior.predict(position, inputs)[:, 1:2],
        posterior.predict(position, inputs[1:2]),
    )
    # without fixed statistics, evaluation mixes too
    module[2].running_mean = module[2].running_var = None
    with pytest.raises(ValueError, match=r"batch norm.*\['2'\]"):
        NetworkPosterior(module, inputs, targets)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.BatchNorm1d(4), r"module.*batch norm.*\['1'\].*eval\(\).*GroupNorm"),
        (nn.Dropout(), r"module.*random.*dropout.*\['1'\].*eval\(\)"),
    ],
)
def test_one_sentence_names_a_layer_that_mixes_examples_and_the_remedy(layer, message):
    module = nn.Sequential(nn.Linear(3, 4), layer, nn.Linear(4, 2))
    data = torch.randn(5, 3), torch.arange(5) % 2
    with pytest.raises(ValueError, match=message):
        NetworkPosterior(module, *data)
    NetworkPosterior(module.eval(), *data)


def test_predictions_for_many_inputs_are_those_one_by_one(generator):
    posterior = network(generator)
    inputs = torch.randn(2_003, 3, generator=generator, dtype=DOUBLE)
    position = start(posterior, generator, 2)
    together = posterior.predict(position, inputs)
    assert together.shape == (2, 2_003, 2)
    apart = torch.stack(
        [
            posterior.predict(position, inputs[i : i + 1])[:, 0]
            for i in (0, 999, 1000, 2_002)
        ],
        1,
    )
    torch.testing.assert_close(together[:, [0, 999, 1000, 2_002]], apart)
    torch.testing.assert_close(posterior.log_predict(position, inputs), together.log())


def test_a_network_posterior_leaves_its_module_alone(generator):
    module = nn.Linear(3, 2).double()
    before = [parameter.clone() for parameter in module.parameters()]
    posterior = NetworkPosterior(
        module, torch.ones(4, 3, dtype=DOUBLE), torch.arange(4) % 2
    )
    posterior.gradient(start(posterior, generator))
    for parameter, old in zip(module.parameters(), before, strict=True):
        assert torch.equal(parameter, old) and parameter.grad is None and old.any()


def test_what_a_module_happens_to_hold_makes_no_other_posterior(generator):
    """A script that is run again makes its network anew, and its checkpoint is still
    its own.
    """
    one, other = (network(torch.Generator().manual_seed(1)) for _ in range(2))
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(
        network(torch.Generator().manual_seed(1), prior_variance=2.0)
    )


def test_initial_positions_have_the_scale_of_the_fan_in(generator):
    posterior = NetworkPosterior(
        nn.Linear(100, 3), torch.zeros(2, 100), torch.tensor([0, 1])
    )
    position = posterior.initial_position(2_000, generator, scale=2.0)
    weights, biases = position[:, :300], position[:, 300:]
    assert torch.equal(biases, torch.zeros(2_000, 3))
    variance = weights.pow(2).mean()
    assert abs(variance / 0.04 - 1) < z_bound(1) * math.sqrt(2 / weights.numel())


def test_the_fan_in_of_a_convolution_counts_its_channels_and_all_its_pixels(generator):
    """Each output of a kernel of 2 × 5 on 3 channels is a sum of 30 products."""
    module = nn.Sequential(nn.Conv2d(3, 4, (2, 5)), nn.Flatten())
    images, targets = torch.zeros(2, 3, 2, 5), torch.tensor([0, 1])
    posterior = NetworkPosterior(module, images, targets)
    position = posterior.initial_position(1_000, generator)
    weights, biases = position[:, :120], position[:, 120:]
    assert torch.equal(biases, torch.zeros(1_000, 4))
    variance = weights.pow(2).mean()
    assert abs(30 * variance - 1) < z_bound(1) * math.sqrt(2 / weights.numel())


# What is refused


def simple(**settings):
    return Posterior(
        lambda p: -0.5 * p.pow(2).sum(-1),
        lambda p, x: -0.5 * (x - p) ** 2,
        (torch.arange(4.0),),
        1,
        **settings,
    )


EXAMPLES = torch.zeros(3, 2), torch.zeros(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simple(batch_size=5), r"batch_size.*5.*4"),
        (lambda: simple(batch_size=0), r"batch_size.*\b0\b"),
        (
            lambda: Posterior(None, None, (torch.zeros(3), torch.zeros(4)), 1),
            r"\[3, 4\]",
        ),
        (
            lambda: LinearRegression(*EXAMPLES, noise_variance=-1.0),
            r"noise_variance.*-1\b",
        ),
        (
            lambda: LogisticRegression(*EXAMPLES, prior_variance=0.0),
            r"prior_variance.*\b0\.0\b",
        ),
        (lambda: linear_network(EXAMPLES[1].long(), 0.0), r"prior_variance.*positive"),
        (
            lambda: linear_network(EXAMPLES[1].long(), {"weight": 1.0}),
            r"\['weight', 'bias'\]",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def linear_network(targets, prior_variance):
    return NetworkPosterior(nn.Linear(2, 2), EXAMPLES[0], targets, prior_variance)


def test_a_likelihood_of_the_wrong_shape_is_refused():
    posterior = Posterior(
        lambda p: p.sum(-1), lambda p, x: (x - p).sum(-1), (torch.zeros(4),), 1
    )
    with pytest.raises(
        ValueError,
        match=r"\(2, 4\).*\(2,\)",
    ):
        posterior.gradient(torch.zeros(2, 1))


# Minibatches that are held


def test_a_held_minibatch_is_an_energy_with_its_gradient(data, generator):
    posterior = LogisticRegression(*data, batch_size=4)
    position = torch.randn(3, 3, generator=generator, dtype=DOUBLE)
    first, second = (
        posterior.draw_minibatches(position, generator, step)[0] for step in (0, 1)
    )
    held = HeldMinibatch(posterior, first)
    torch.testing.assert_close(
        held.gradient(position), differentiate(held.energy, position)[1]
    )
    # every time the same
    assert torch.equal(
        held.gradient(position), held.stochastic_gradient(position, generator)
    )
    assert torch.equal(
        held.gradient(position), posterior.gradient_given(position, first)
    )
    assert torch.equal(held.energy(position), posterior.energy_given(position, first))
    assert not torch.equal(
        held.gradient(position), HeldMinibatch(posterior, second).gradient(position)
    )


def test_the_minibatches_that_are_held_are_each_chains_own(data):
    posterior = LogisticRegression(*data, batch_size=2)
    position, indices = torch.ones(2, 3, dtype=DOUBLE), torch.tensor([[0, 1], [2, 3]])
    together = HeldMinibatch(posterior, indices)
    for chain in range(2):
        alone = HeldMinibatch(posterior, indices[chain : chain + 1])
        torch.testing.assert_close(
            together.energy(position)[chain], alone.energy(position[:1])[0]
        )
        torch.testing.assert_close(
            together.gradient(position)[chain], alone.gradient(position[:1])[0]
        )
    assert not torch.equal(*together.gradient(position))


def test_frozen_parameters_stay_what_they_are_and_are_not_sampled(generator):
    """A pretrained body below a last layer: the posterior is that of the last layer on
    the body's outputs.
    """
    inputs = torch.randn(30, 4, generator=generator)
    targets = torch.arange(30) % 3
    body, head = nn.Sequential(nn.Linear(4, 6), nn.Tanh()), nn.Linear(6, 3)
    for parameter in body.parameters():
        parameter.requires_grad_(False)
    before = [parameter.clone() for parameter in body.parameters()]
    settings = dict(prior_variance=2.0, batch_size=10)
    posterior = NetworkPosterior(nn.Sequential(body, head), inputs, targets, **settings)
    last = NetworkPosterior(head, body(inputs), targets, **settings)
    assert posterior.dim == last.dim == 21 and list(posterior.shapes) == [
        "1.weight",
        "1.bias",
    ]
    position = torch.randn(5, 21, generator=generator)
    minibatch = posterior.draw_minibatches(position, generator, 0)[0]
    for what in ("energy", "gradient"):
        found, expected = (getattr(one, what)(position) for one in (posterior, last))
        torch.testing.assert_close(found, expected)
    for kind in ("scalar", "diagonal", "full"):
        found, expected = (
            one.gradient_and_variance_given(position, minibatch, kind)
            for one in (posterior, last)
        )
        torch.testing.assert_close(found, expected)
    assert all(map(torch.equal, before, body.parameters()))
    for parameter in head.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(ValueError, match=r"module has no parameters.*frozen"):
        NetworkPosterior(nn.Sequential(body, head), inputs, targets)
