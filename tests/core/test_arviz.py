"""Draws in ArviZ, of which two versions have other functions: make test runs this file
with both.
"""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import MultivariateNormal, Normal, Poisson

from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import HMC, NUTS, SGHMC
from sgmc.models import NamedPosterior, control_variates
from sgmc.posteriors import Gaussian as GaussianLikelihood
from sgmc.posteriors import (
    Likelihood,
    LinearModel,
    LinearRegression,
    LogisticRegression,
    NetworkPosterior,
    Softmax,
)
from sgmc.targets import Gaussian

arviz = pytest.importorskip("arviz")


def groups(data):
    """The names of the groups, in both versions."""
    return list(data.groups() if callable(data.groups) else data.children)


def test_to_arviz_and_back():
    draws = sample(HMC(0.5, 3), Gaussian.standard(2), torch.zeros(4, 2), num_samples=50)
    data = draws.to_arviz("weights")
    assert data.posterior["weights"].dims[:2] == ("chain", "draw") and data.posterior[
        "weights"
    ].shape == (4, 50, 2)
    assert torch.equal(
        torch.from_numpy(data.posterior["weights"].values).transpose(0, 1),
        draws.samples,
    )
    assert set(data.sample_stats) == {"energy", "acceptance_rate", "num_gradients"}
    assert set(draws.statistics) == {"energy", "acceptance", "num_gradients"}
    for key in ("kernel", "seed", "seconds"):
        assert data.posterior.attrs[key] == str(getattr(draws, key))
    assert data.posterior.attrs["inference_library"] == "sgmc"
    for name, values in draws.statistics.items():
        name = {"acceptance": "acceptance_rate"}.get(name, name)
        assert torch.equal(torch.from_numpy(data.sample_stats[name].values).T, values)
    assert list(draws.to_arviz().posterior) == ["position"]
    assert float(arviz.rhat(data)["weights"].max()) < 1.5
    scalars = Draws(draws.samples[..., 0])
    assert scalars.to_arviz().posterior["position"].shape == (4, 50)


def test_arviz_gets_the_likelihood_of_every_example_and_the_names_of_the_parameters():
    """And says that the model that made the data is the better one."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 1, generator=generator)
    targets = 2 * inputs[:, 0] + 0.5 * torch.randn(200, generator=generator)

    def fit(inputs):
        posterior = NamedPosterior(
            {"slope": ()},
            lambda p: Normal(0.0, 10.0).log_prob(p["slope"]),
            lambda p, x, y: Normal(p["slope"] * x[:, 0], 0.5).log_prob(y),
            (inputs, targets),
        )
        draws = sample(NUTS(0.02), posterior, torch.ones(4, 1), 100, warm_up=20)
        return draws, posterior

    models = {}
    for name, x in {"right": inputs, "wrong": inputs.exp()}.items():
        draws, posterior = fit(x)
        models[name] = draws.to_arviz(posterior=posterior)
        assert list(models[name].posterior) == ["slope"]
        expected = posterior.log_likelihoods(draws.samples[7], posterior.gather(None))
        found = models[name].log_likelihood["log_likelihood"].values[:, 7]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert "diverging" in models[name].sample_stats
    assert arviz.compare(models).index[0] == "right"


def test_arviz_gets_no_likelihood_of_a_single_example():
    """It would take it for one observation, and compare models by that."""
    posterior = LogisticRegression(torch.ones(1, 2), torch.ones(1), 1.0)
    draws = Draws(torch.zeros(10, 2, 2), {})
    with pytest.warns(UserWarning, match="one example.*subsample_size"):
        data = draws.to_arviz(posterior=posterior)
    assert "log_likelihood" not in groups(data)


def test_arviz_gets_predictions_by_name():
    draws = Draws(torch.arange(24.0).reshape(4, 3, 2))
    functions = {"total": lambda x: x.sum(-1), "each": lambda x: x[:, :, None] + 1}
    data = draws.to_arviz(predictive=functions, dims={"each": ["feature", "one"]})
    assert groups(data) == ["posterior", "posterior_predictive"]
    found = data.posterior_predictive
    assert found["each"].dims == ("chain", "draw", "feature", "one")
    for name, expected in (
        ("total", draws.samples.sum(-1)),
        ("each", draws.samples[..., None] + 1),
    ):
        values = torch.from_numpy(found[name].values)
        assert torch.equal(values.transpose(0, 1), expected)
    with pytest.raises(ValueError, match=r"predictive.*\[1\]|predictive.*a list"):
        draws.to_arviz(predictive=[1])


# Whole densities


DOUBLE = torch.float64


class Counts(Likelihood):
    """As a user writes it who knows what the energy needs."""

    def log_density(self, outputs, targets):
        return targets * outputs - outputs.exp()

    def log_constant(self, targets):
        return -torch.lgamma(targets + 1)


class Unsaid(Likelihood):
    def log_density(self, outputs, targets):
        return targets * outputs - outputs.exp()


class Weighted(Softmax):
    """Of a density that says all, but this is another one."""

    def log_density(self, outputs, targets):
        return 2 * super().log_density(outputs, targets)


class Halved(GaussianLikelihood):
    """With a constant of its own."""

    def log_density(self, outputs, targets):
        return super().log_density(outputs, targets) / 2

    def log_constant(self, targets):
        return 7.0


def log_likelihood(draws, posterior):
    """(chains, draws, N)"""
    data = draws.to_arviz(posterior=posterior)
    return torch.from_numpy(data.log_likelihood["log_likelihood"].values)


def regression(noise_variance=1.0, **settings):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(60, 3, generator=generator, dtype=DOUBLE)
    targets = inputs.sum(1) + torch.randn(60, generator=generator, dtype=DOUBLE)
    return LinearRegression(inputs, targets, noise_variance, **settings)


def exact_draws(posterior, number=500):
    """Independent draws of a Gaussian posterior, in four chains."""
    generator = torch.Generator().manual_seed(0)
    root = torch.linalg.cholesky(posterior.covariance)
    normal = torch.randn(number, 4, posterior.dim, generator=generator, dtype=DOUBLE)
    return Draws(posterior.mean + normal @ root.T)


def exact_elpd(posterior):
    """The sum of log p(yᵢ | all others), each a Gaussian."""
    (x, y), variance = posterior.data, posterior.likelihood.noise_variance
    total = 0.0
    for i in range(len(y)):
        rest = torch.arange(len(y)) != i
        one = LinearRegression(x[rest], y[rest], variance)
        spread = variance + x[i] @ one.covariance @ x[i]
        total += float(Normal(x[i] @ one.mean, spread.sqrt()).log_prob(y[i]))
    return total


def elpd(data):
    found = arviz.loo(data)
    return float(getattr(found, "elpd_loo", None) or found.elpd)


@pytest.mark.parametrize("variance", [0.25, 1.0, 100.0])
def test_leave_one_out_of_a_regression_is_the_exact_one(variance):
    """Also by control variates, whose functions lack a linear term, wherever they are
    taken. The Monte Carlo error of 2,000 draws is below 0.1 here.
    """
    posterior = regression(variance)
    draws, exact = exact_draws(posterior), exact_elpd(posterior)
    far = posterior.mean + 3 * posterior.covariance.diagonal().sqrt()
    for each in (posterior, control_variates(posterior, far)):
        assert elpd(draws.to_arviz(posterior=each)) == pytest.approx(exact, abs=0.2)


def test_densities_of_the_examples_are_those_of_torch():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(20, 2, generator=generator, dtype=DOUBLE)
    theta = torch.randn(2, 3, 2, generator=generator, dtype=DOUBLE)
    draws, z = Draws(theta), (theta @ x.T).transpose(0, 1)
    y, counts = z[0, 0] + 1, torch.arange(20.0, dtype=DOUBLE)
    classes = torch.arange(20) % 3
    regression, network = LinearRegression(x, y, 4.0), nn.Linear(2, 1, bias=False)
    cases = {
        "regression": (regression, Normal(z, 2.0).log_prob(y)),
        "network": (
            NetworkPosterior(network, x, y, likelihood=GaussianLikelihood(4.0)),
            Normal(z, 2.0).log_prob(y),
        ),
        "logistic": (
            LogisticRegression(x, (y > 0).to(y)),
            torch.distributions.Bernoulli(logits=z).log_prob((y > 0).to(y)),
        ),
        "counts": (LinearModel(x, counts, Counts()), Poisson(z.exp()).log_prob(counts)),
        "own constant": (LinearModel(x, y, Halved(1.0)), -0.25 * (y - z) ** 2 + 7),
    }
    for name, (posterior, expected) in cases.items():
        torch.testing.assert_close(log_likelihood(draws, posterior), expected, msg=name)
    wide, both = (
        nn.Linear(2, 3),
        torch.randn(2, 3, 9, generator=generator, dtype=DOUBLE),
    )
    weight, bias = both[..., :6].unflatten(-1, (3, 2)), both[..., 6:]
    out = (x @ weight.mT + bias[..., None, :]).transpose(0, 1)
    several = NetworkPosterior(
        wide, x, out[0, 0] + 1, likelihood=GaussianLikelihood(4.0)
    )
    softmax = NetworkPosterior(wide, x, classes)
    for posterior, expected in (
        (
            several,
            MultivariateNormal(out, 4 * torch.eye(3, dtype=DOUBLE)).log_prob(
                out[0, 0] + 1
            ),
        ),
        (softmax, torch.distributions.Categorical(logits=out).log_prob(classes)),
    ):
        torch.testing.assert_close(log_likelihood(Draws(both), posterior), expected)


@pytest.mark.parametrize("likelihood", [Unsaid(), Weighted()], ids=["own", "inherited"])
def test_a_density_that_does_not_say_what_it_leaves_out_does_not_leave(likelihood):
    x, targets = torch.ones(6, 2), torch.arange(6) % 3
    posterior = NetworkPosterior(nn.Linear(2, 3), x, targets, likelihood=likelihood)
    if isinstance(likelihood, Unsaid):
        posterior = LinearModel(x, targets, likelihood)
    draws = Draws(torch.zeros(5, 2, posterior.dim))
    with pytest.warns(UserWarning, match=r"log_likelihood is left out.*log_constant"):
        data = draws.to_arviz(posterior=posterior)
    assert groups(data) == ["posterior"]


def test_a_model_with_drawn_hyperparameters_is_given_those_of_each_draw():
    from booklib.models.factorisation import MatrixFactorisation

    zero, ratings = torch.tensor([0, 0]), torch.tensor([1.0, 2.0])
    posterior = MatrixFactorisation(zero, torch.tensor([0, 1]), ratings, 1, mean=0.0)
    drawn = torch.ones(2, 3, 5, dtype=DOUBLE)
    drawn[1, 2, 4] = 4.0  # the precision of the noise, in one chain at one draw
    draws = Draws(torch.zeros(2, 3, posterior.dim), {"hyperparameters": drawn})
    expected = Normal(0.0, 1.0).log_prob(ratings).expand(3, 2, 2).clone()
    expected[2, 1] = Normal(0.0, 0.5).log_prob(ratings)
    torch.testing.assert_close(log_likelihood(draws, posterior), expected)


def test_draws_of_another_temperature_are_told():
    posterior = regression()
    cold = sample(
        SGHMC(0.01, 1.0, temperature=0.5), posterior, posterior.mean.repeat(2, 1), 5
    )
    with pytest.warns(UserWarning, match=r"temperature 0\.5"):
        cold.to_arviz(posterior=posterior)
    for temperature, told in ((1.5, 1), (10.0, 1), (11, 1), (1.0, 0), (1, 0)):
        kernel = str(SGHMC(0.01, 1.0, temperature=temperature))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dataclasses.replace(cold, kernel=kernel).to_arviz(posterior=posterior)
        found = [each for each in caught if "are of temp" in str(each.message)]
        assert len(found) == told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"posterior": 7}, "posterior.*DataPotential.*but it is 7"),
        ({"posterior": Gaussian.standard(3)}, "posterior.*but it is a Gaussian"),
        (
            {"posterior": LogisticRegression(torch.ones(4, 2), torch.ones(4))},
            "samples has 3, posterior has 2",
        ),
        ({"posterior": regression()}, r"cannot take a position .* torch.float32"),
        ({"predictive": {"y": 7}}, r"predictive\['y'\].*but it is 7"),
        (
            {"predictive": {"y": lambda x: 1.0}},
            r"y must be .*\(4, \.\.\.\).* but it is 1.0",
        ),
        (
            {"predictive": {"y": lambda x: x.sum(0)}},
            r"y must be .*\(4, \.\.\.\).* but it is \(3,\)",
        ),
    ],
)
def test_what_arviz_cannot_be_given(arguments, message):
    with pytest.raises(ValueError, match=message):
        Draws(torch.zeros(5, 4, 3)).to_arviz(**arguments)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (torch.zeros(5, 4), r"samples must be positions"),
        ({"a": torch.zeros(5, 4, 3)}, "samples must be positions.*sample without"),
        (torch.zeros(0, 4, 3), r"one draw at least, but they are \(0, 4, 3\)"),
    ],
    ids=["numbers", "names", "none"],
)
def test_what_are_no_positions_has_no_likelihood(samples, message):
    for arguments in ({"posterior": regression()}, {"predictive": {"y": torch.abs}}):
        with pytest.raises(ValueError, match=message):
            Draws(samples).to_arviz(**arguments)
