"""Likelihoods against torch.distributions, and networks and linear models under each,
one of the user's own among them.
"""

import itertools
import math

import pytest
import torch
from torch import distributions, nn

from sgmc.models import control_variates
from sgmc.posteriors import (
    Bernoulli,
    Gaussian,
    Likelihood,
    LinearModel,
    LogisticRegression,
    NetworkPosterior,
    Softmax,
)
from sgmc.potentials import Potential, differentiate

DOUBLE = torch.float64


class Poisson(Likelihood):
    """Counts with mean e^z, as a user would write it."""

    def log_density(self, outputs, targets):
        return targets * outputs - outputs.exp()


class Heteroscedastic(Likelihood):
    """y ~ N(z₁, e^z₂): two outputs for one target."""

    def log_density(self, outputs, targets):
        mean, log_variance = outputs.unbind(-1)
        return -0.5 * (targets - mean) ** 2 / log_variance.exp() - 0.5 * log_variance


def binary(generator, *shape):
    return (torch.rand(*shape, generator=generator) < 0.5).to(DOUBLE)


def counts(generator, *shape):
    return torch.randint(4, shape, generator=generator).to(DOUBLE)


def numbers(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=DOUBLE)


def classes(generator, *shape):
    return torch.randint(3, shape, generator=generator)


def bernoulli(z, y):
    return distributions.Bernoulli(logits=z).log_prob(y)


# A likelihood, its targets for N examples, the number of outputs, and log p(y | z) by
# torch.distributions up to a constant
CASES = {
    "softmax": (
        Softmax(),
        classes,
        (),
        3,
        lambda z, y: distributions.Categorical(logits=z).log_prob(y),
    ),
    "Gaussian": (
        Gaussian(0.3),
        numbers,
        (),
        1,
        lambda z, y: distributions.Normal(z, math.sqrt(0.3)).log_prob(y),
    ),
    "Gaussian of two outputs": (
        Gaussian(0.3),
        numbers,
        (2,),
        2,
        lambda z, y: distributions.Normal(z, math.sqrt(0.3)).log_prob(y).sum(-1),
    ),
    "Bernoulli": (Bernoulli(), binary, (), 1, lambda z, y: bernoulli(z, y)),
    "Bernoulli of two outputs": (
        Bernoulli(),
        binary,
        (2,),
        2,
        lambda z, y: bernoulli(z, y).sum(-1),
    ),
    "Bernoulli of one output with an axis": (
        Bernoulli(),
        binary,
        (1,),
        1,
        lambda z, y: bernoulli(z, y).sum(-1),
    ),
    "Poisson, the user's own": (
        Poisson(),
        counts,
        (),
        1,
        lambda z, y: distributions.Poisson(z.exp()).log_prob(y) + torch.lgamma(y + 1),
    ),
    "two outputs for one target, the user's own": (
        Heteroscedastic(),
        numbers,
        (),
        2,
        lambda z, y: distributions.Normal(z[..., 0], (0.5 * z[..., 1]).exp()).log_prob(
            y
        ),
    ),
}
OF_A_NUMBER = [
    name
    for name, (_, _, shape, outputs, _) in CASES.items()
    if shape == () and outputs == 1
]


def posterior_of(name, simple=True, total=6, **settings):
    """Make a network under a likelihood; one that is not simple has a layer whose
    per-example gradients need differentiation.
    """
    likelihood, draw, shape, outputs, _ = CASES[name]
    generator = torch.Generator().manual_seed(3)
    inputs, targets = numbers(generator, total, 2), draw(generator, total, *shape)
    layers = [
        nn.Linear(2, 3),
        nn.Tanh() if simple else nn.LayerNorm(3),
        nn.Linear(3, outputs),
    ]
    return NetworkPosterior(
        nn.Sequential(*layers).double(),
        inputs,
        targets,
        prior_variance=2.0,
        likelihood=likelihood,
        **settings,
    )


def outputs_by_hand(posterior, position):
    """Evaluate the network with one chain's weights, example by example."""
    torch.nn.utils.vector_to_parameters(position, posterior.module.parameters())
    outputs = posterior.module(posterior.data[0]).detach()
    return (
        outputs[:, 0]
        if outputs.shape[1] == 1 and posterior.data[1].ndim == 1
        else outputs
    )


@pytest.mark.parametrize("name", CASES)
def test_the_energy_of_a_network_is_that_of_torch_distributions(name, generator):
    posterior, reference = posterior_of(name), CASES[name][-1]
    position = numbers(generator, 3, posterior.dim)
    expected = []
    for chain in range(3):
        density = reference(
            outputs_by_hand(posterior, position[chain]), posterior.data[1]
        )
        assert density.shape == (6,)
        expected.append(position[chain].pow(2).sum() / 4 - density.sum())
    energy, expected = posterior.energy(position), torch.stack(expected)
    # up to a constant
    torch.testing.assert_close(energy - energy[0], expected - expected[0])
    densities = posterior.log_likelihood(position, *(x[None] for x in posterior.data))
    assert densities.shape == (3, 6)
    torch.testing.assert_close(-densities.sum(-1) + position.pow(2).sum(-1) / 4, energy)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_energy(name, generator):
    posterior = posterior_of(name, batch_size=3)
    position, indices = (
        numbers(generator, 3, posterior.dim),
        torch.tensor([[0, 1, 2], [3, 3, 5], [5, 4, 0]]),
    )
    torch.testing.assert_close(
        posterior.gradient(position), Potential.gradient(posterior, position)
    )
    expected = differentiate(
        lambda position: posterior.energy_given(position, indices), position
    )[1]
    torch.testing.assert_close(posterior.gradient_given(position, indices), expected)
    energy, gradient = posterior.energy_and_gradient(position)
    torch.testing.assert_close(energy, posterior.energy(position))
    torch.testing.assert_close(gradient, posterior.gradient(position))


@pytest.mark.parametrize("simple", [True, False], ids=["simple layers", "any layer"])
@pytest.mark.parametrize("name", CASES)
def test_over_all_minibatches_the_gradient_is_right_on_average_and_so_is_its_variance(
    name, simple, generator
):
    """What enumeration of C(6, 3) minibatches gives is the covariance that the estimate
    has on average.
    """
    posterior = posterior_of(name, simple, batch_size=3)
    assert (posterior._layers is not None) == simple
    indices = torch.tensor(list(itertools.combinations(range(6), 3)))
    position = (
        numbers(generator, 1, posterior.dim).expand(len(indices), -1).contiguous()
    )
    gradients = posterior.gradient_given(position, indices)
    torch.testing.assert_close(
        gradients.mean(0), posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )
    covariance = gradients.T.cov(correction=0)
    expected = {
        "scalar": covariance.diagonal().mean()[None],
        "diagonal": covariance.diagonal(),
        "full": covariance,
    }
    for kind, variance in expected.items():
        same, estimate = posterior.gradient_and_variance_given(position, indices, kind)
        torch.testing.assert_close(same, gradients, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(
            estimate.mean(0),
            variance,
            rtol=1e-10,
            atol=1e-10 * float(covariance.abs().max()),
        )


@pytest.mark.parametrize("name", CASES)
def test_the_loss_is_the_sum_of_the_densities(name, generator):
    likelihood, draw, shape, outputs, _ = CASES[name]
    z = numbers(generator, 2, 5, *(shape or (() if outputs == 1 else (outputs,))))
    targets = draw(generator, 2, 5, *shape)
    density = likelihood.log_density(z, targets)
    assert density.shape == (2, 5)
    torch.testing.assert_close(likelihood.loss(z, targets), -density.sum())
    # all the data have one axis for all chains
    shared = likelihood.log_density(z, targets[:1])
    torch.testing.assert_close(shared[1], likelihood.log_density(z[1:], targets[:1])[0])
    torch.testing.assert_close(likelihood.loss(z, targets[:1]), -shared.sum())


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_slopes_are_derivatives_of_the_density(name, generator):
    likelihood, draw = CASES[name][:2]
    z, targets = numbers(generator, 2, 5), draw(generator, 2, 5)
    slope = differentiate(lambda z: likelihood.log_density(z, targets).sum(-1), z)[1]
    torch.testing.assert_close(likelihood.slope(z, targets), slope)
    torch.testing.assert_close(Likelihood.slope(likelihood, z, targets), slope)


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_linear_models_take_any_likelihood_of_a_number(name, generator):
    """Formulas of the energy's gradient and of the noise, from the slope alone."""
    likelihood, draw, _, _, reference = CASES[name]
    inputs, targets = numbers(generator, 6, 2), draw(generator, 6)
    model = LinearModel(inputs, targets, likelihood, prior_variance=2.0, batch_size=3)
    position = numbers(generator, 4, 2)
    energy = position.pow(2).sum(-1) / 4 - reference(position @ inputs.T, targets).sum(
        -1
    )
    torch.testing.assert_close(
        model.energy(position) - model.energy(position)[0], energy - energy[0]
    )
    torch.testing.assert_close(
        model.gradient(position), Potential.gradient(model, position)
    )
    indices = torch.tensor(list(itertools.combinations(range(6), 3)))
    at = position[:1].expand(len(indices), -1).contiguous()
    gradients = model.gradient_given(at, indices)
    covariance = gradients.T.cov(correction=0)
    torch.testing.assert_close(
        model.gradient_and_variance_given(at, indices, "full")[1].mean(0),
        covariance,
        rtol=1e-10,
        atol=1e-10,
    )
    calm = control_variates(model, position[0])
    torch.testing.assert_close(calm.gradient(position), model.gradient(position))


def test_a_network_without_hidden_layers_is_a_linear_model(generator):
    """Two ways to the same posterior: by differentiation of a module, and by
    formulas.
    """
    inputs, targets = numbers(generator, 6, 2), binary(generator, 6)
    network = NetworkPosterior(
        nn.Linear(2, 1, bias=False).double(),
        inputs,
        targets,
        2.0,
        batch_size=3,
        likelihood=Bernoulli(),
    )
    linear = LogisticRegression(inputs, targets, 2.0, batch_size=3)
    position, indices = (
        numbers(generator, 3, 2),
        torch.tensor([[0, 1, 2], [3, 4, 5], [5, 4, 0]]),
    )
    torch.testing.assert_close(network.energy(position), linear.energy(position))
    torch.testing.assert_close(
        network.gradient_given(position, indices),
        linear.gradient_given(position, indices),
    )
    for kind in ("scalar", "diagonal", "full"):
        torch.testing.assert_close(
            network.gradient_and_variance_given(position, indices, kind)[1],
            linear.gradient_and_variance_given(position, indices, kind)[1],
        )


def test_predictions(generator):
    z = numbers(generator, 2, 5, 3) * 10
    torch.testing.assert_close(Softmax().predict(z), z.softmax(-1))
    torch.testing.assert_close(Softmax().log_predict(z), z.log_softmax(-1))
    torch.testing.assert_close(
        Bernoulli().predict(z), distributions.Bernoulli(logits=z).probs
    )
    torch.testing.assert_close(
        Bernoulli().log_predict(z),
        distributions.Bernoulli(logits=z).log_prob(torch.ones_like(z)),
    )
    assert torch.equal(Gaussian().predict(z), z) and torch.equal(
        Poisson().predict(z), z
    )
    assert (
        Bernoulli().log_predict(torch.tensor(-2000.0)) == -2000
        and Softmax().log_predict(torch.tensor([0.0, -2000.0]))[1] == -2000
    )
    for likelihood in (Gaussian(), Poisson()):
        with pytest.raises(
            NotImplementedError,
            match=rf"{type(likelihood).__name__}.*probabilities",
        ):
            likelihood.log_predict(z)


@pytest.mark.parametrize("name", CASES)
def test_networks_predict_what_their_likelihood_says(name, generator):
    posterior = posterior_of(name)
    position = numbers(generator, 2, posterior.dim)
    predicted = posterior.predict(position, posterior.data[0])
    for chain in range(2):
        expected = posterior.likelihood.predict(
            outputs_by_hand(posterior, position[chain])
        )
        torch.testing.assert_close(predicted[chain], expected)


@pytest.mark.parametrize(
    ("likelihood", "targets", "outputs", "message"),
    [
        (Softmax(), torch.zeros(4, 1).long(), 2, r"int64.*\(N,\).*\(4, 1\)"),
        # as many outputs as examples would be compared with them crosswise
        (Gaussian(), torch.zeros(4), 4, r"\(4,\).*targets"),
        (Bernoulli(), torch.zeros(4), 4, r"\(4,\).*targets"),
        (Gaussian(), torch.zeros(4, 2), 1, r"\(1,\).*targets.*\(2,\)"),
    ],
)
def test_targets_and_outputs_that_do_not_suit_are_refused(
    likelihood, targets, outputs, message
):
    module, inputs = nn.Linear(2, outputs), torch.zeros(4, 2)
    with pytest.raises(ValueError, match=message):
        NetworkPosterior(module, inputs, targets, likelihood=likelihood)


def test_a_slope_is_not_inherited_by_another_density(generator):
    """That of a subclass which writes both may build on the one it inherits."""
    weight = torch.tensor([1.0, 8.0, 3.0], dtype=DOUBLE)

    class Heavy:
        def log_density(self, outputs, targets):
            return weight[targets] * super().log_density(outputs, targets)

    class Mixed(Heavy, Softmax):
        pass

    class Written(Mixed):
        def slope(self, outputs, targets):
            return weight[targets][..., None] * super().slope(outputs, targets)

    class Heavier(Written):
        def log_density(self, outputs, targets):
            return 2 * super().log_density(outputs, targets)

    outputs = torch.randn(2, 4, 3, generator=generator, dtype=DOUBLE)
    targets = torch.tensor([[0, 1, 2, 1]])
    for kind, factor in ((Mixed, 1), (Written, 1), (Heavier, 2)):
        found = kind().slope(outputs, targets)
        expected = (
            factor * weight[targets][..., None] * Softmax().slope(outputs, targets)
        )
        torch.testing.assert_close(found, expected)


def test_with_its_constant_a_density_is_a_whole_one(generator):
    """Of one output and of several; the slope of a density of one's own is its own."""
    for shape in ((5,), (5, 3), (5, 3, 2)):
        outputs = torch.randn(2, *shape, generator=generator, dtype=torch.float64)
        targets = torch.randn(*shape, generator=generator, dtype=torch.float64)
        signs = (targets > 0).double()
        for ours, theirs, y in (
            (Gaussian(0.7), torch.distributions.Normal(outputs, 0.7**0.5), targets),
            (Bernoulli(), torch.distributions.Bernoulli(logits=outputs), signs),
        ):
            expected = theirs.log_prob(y).reshape(2, 5, -1).sum(-1)
            found = ours.log_density(outputs, y) + ours.log_constant(y)
            torch.testing.assert_close(found, expected)
            assert float(ours.loss(outputs, y)) == pytest.approx(
                -float(ours.log_density(outputs, y).sum())
            )
    logits, classes = torch.randn(2, 5, 3, generator=generator), torch.arange(5) % 3
    found = Softmax().log_density(logits, classes) + Softmax().log_constant(classes)
    law = torch.distributions.Categorical(logits=logits)
    torch.testing.assert_close(found, law.log_prob(classes))


def test_classes_have_an_output_each_and_no_more_is_asked():
    logits = torch.tensor([[[0.2, 0.3, 0.4]]])
    check = lambda outputs, *classes: Softmax().check(outputs, torch.tensor(classes))
    check(logits, 0, 2, 1)
    check(torch.ones(1, 2, 1), 0, 0)  # of one class no softmax is told
    for classes in ((0, 3), (-1, 2)):
        with pytest.raises(ValueError, match=rf"from {classes[0]} to {classes[1]}"):
            check(logits, *classes)
    for sums, told in ((1.0, True), (1.0009, True), (1.002, False), (0.998, False)):
        outputs = torch.tensor([[[0.5, 0.25, sums - 0.75]] * 2])
        if not told:
            check(outputs, 0, 2)
            continue
        with pytest.raises(ValueError, match="end in a softmax"):
            check(outputs, 0, 2)
    # one example of two sums to another number
    check(torch.tensor([[[0.5, 0.25, 0.25], [1.0, 0.25, 0.25]]]), 0, 2)
    Bernoulli().check(torch.tensor([[0.5, 0.4]]), torch.tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match="from 0 to 2: use"):
        Bernoulli().check(torch.tensor([[0.1, 0.4]]), torch.tensor([0.0, 2.0]))
