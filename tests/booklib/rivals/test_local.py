"""Drawn outputs in the place of drawn weights: the same law of the outputs, the same
mean of the gradient.
"""

import torch
from torch import nn
from torch.func import vmap

from booklib.rivals.layers import linear_layers, outputs_of_law
from booklib.rivals.variational import bound_gradient, local_bound_gradient
from experiments.scale_mixture import ScaleMixtureNetwork
from sgmc.posteriors import NetworkPosterior
from tests.booklib.rivals.moments import z_of_mean
from tests.checks import z_bound


def two_layers(**settings):
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(10, 2, generator=generator).double()
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    return NetworkPosterior(module, inputs, (inputs[:, 0] > 0).long(), **settings)


def normals_for(posterior, chains, number, generator):
    layers = linear_layers(posterior).values()
    return [
        torch.randn(chains, number, layer.out_features, generator=generator).double()
        for layer in layers
    ]


def test_outputs_of_one_layer_have_the_law_that_drawn_weights_give(generator):
    """Mean x·μ and variance x²·σ² with the bias, and other draws for other examples."""
    posterior = two_layers()
    last = NetworkPosterior(
        nn.Linear(2, 3).double(), posterior.data[0], posterior.data[1]
    )
    mean, std = (
        torch.randn(1, 9, generator=generator).double(),
        torch.rand(1, 9, generator=generator).double(),
    )
    number, x = 4000, posterior.data[0][:2]
    many = mean.expand(number, 9), std.expand(number, 9), x.expand(number, 2, 2)
    drawn = outputs_of_law(last, *many, normals_for(last, number, 2, generator))
    with_one = torch.cat([x, torch.ones(2, 1).double()], 1)
    weights, spreads = (
        torch.cat([value[0, :6].view(3, 2), value[0, 6:, None]], 1)
        for value in (mean, std)
    )
    expected, variance = with_one @ weights.mT, with_one**2 @ (spreads**2).mT
    centred = drawn - expected
    z = torch.cat(
        [
            z_of_mean(drawn, expected),
            z_of_mean(centred.square(), variance),
            z_of_mean(centred[:, 0] * centred[:, 1], 0.0)[None],
        ]
    )
    assert z.abs().max() < z_bound(z.numel()), z


def test_the_gradient_has_the_mean_of_drawn_weights(generator):
    """Two estimates of one gradient, for a network whose layers hang on each other."""
    posterior, number = two_layers(), 20_000
    mean, std = (
        0.5 * torch.randn(1, 17, generator=generator).double(),
        0.3 * torch.rand(1, 17, generator=generator).double() + 0.1,
    )
    many = mean.expand(number, 17), std.expand(number, 17)
    by_weights = bound_gradient(
        posterior, *many, torch.randn(1, number, 17, generator=generator).double(), None
    )
    by_outputs = local_bound_gradient(
        posterior,
        *many,
        torch.randn(number, 17, generator=generator).double(),
        normals_for(posterior, number, 10, generator),
        None,
    )
    for weights, outputs in zip(by_weights, by_outputs, strict=True):
        z = (weights.mean(0) - outputs.mean(0)) / (
            (weights.var(0) + outputs.var(0)) / number
        ).sqrt()
        assert z.abs().max() < z_bound(34), z
        assert outputs.var(0).sum() < 0.6 * weights.var(0).sum()  # what it is for


def test_a_minibatch_stands_for_all_the_data():
    """Without spread the mean over all pairs of examples is the gradient of the
    energy.
    """
    posterior = two_layers(batch_size=2)
    mean = torch.linspace(-1, 1, 17)[None].double()
    std, pairs = (
        torch.full_like(mean, 1e-12),
        torch.combinations(torch.arange(10))[:, None],
    )
    zeros = [
        torch.zeros(1, 2, layer.out_features).double()
        for layer in linear_layers(posterior).values()
    ]
    each = torch.stack(
        [
            local_bound_gradient(
                posterior, mean, std, torch.zeros_like(mean), zeros, pair
            )[0]
            for pair in pairs
        ]
    )
    torch.testing.assert_close(each.mean(0), posterior.gradient(mean))


def test_an_input_of_zeros_has_a_gradient():
    """The root of a variance that is zero has no slope."""
    posterior = NetworkPosterior(
        nn.Linear(2, 2, bias=False), torch.zeros(4, 2), torch.arange(4) % 2
    )
    one = torch.ones(1, 4)
    by_mean, by_std = local_bound_gradient(
        posterior, one, one, one, [torch.ones(1, 4, 2)], None
    )
    assert by_mean.isfinite().all() and by_std.isfinite().all()


def test_a_scale_mixture_is_what_its_formula_says(generator):
    data = torch.randn(6, 2, generator=generator).double(), torch.arange(6) % 2
    posterior = ScaleMixtureNetwork(
        nn.Linear(2, 2).double(), *data, share=0.3, stds=(1.5, 0.2)
    )
    position = (
        torch.randn(5, 6, generator=generator).double()
        * torch.tensor([0.01, 0.1, 0.3, 1.0, 5.0]).double()[:, None]
    )
    parts = [
        torch.distributions.Normal(0.0, std).log_prob(position).exp()
        for std in (1.5, 0.2)
    ]
    constant = 6 * 0.5 * torch.tensor(2 * torch.pi).double().log()
    torch.testing.assert_close(
        posterior.log_prior(position),
        (0.3 * parts[0] + 0.7 * parts[1]).log().sum(-1) + constant,
    )
    slope = vmap(torch.func.grad(lambda place: posterior.log_prior(place[None])[0]))(
        position
    )
    torch.testing.assert_close(posterior.grad_log_prior(position), slope)
    likelihood = NetworkPosterior(nn.Linear(2, 2).double(), *data, prior_variance=1e12)
    torch.testing.assert_close(
        posterior.gradient(position), likelihood.gradient(position) - slope
    )
