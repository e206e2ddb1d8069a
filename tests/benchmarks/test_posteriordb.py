"""The densities of the benchmark of reference posteriors: against plain formulas, and a
sample of the benchmark itself.
"""

import itertools
from argparse import Namespace

import pytest
import torch
from torch.distributions import Cauchy, Gamma, MultivariateNormal, Normal, Poisson

from benchmarks import posteriordb
from benchmarks.posteriordb import MODELS, compare, run_nuts, starts
from tests.checks import z_bound

every_model = pytest.mark.parametrize("name", MODELS)


@every_model
def test_the_jacobian_is_that_of_the_map_to_the_parameters(name):
    model = MODELS[name]()
    position = starts(model, 3, seed=1)
    _, log_jacobian = model.parameters(position)
    for chain in range(3):
        jacobian = torch.autograd.functional.jacobian(
            lambda x: torch.cat([*model.parameters(x[None])[0].values()], -1)[0],
            position[chain],
        )
        torch.testing.assert_close(
            log_jacobian[chain], torch.linalg.slogdet(jacobian).logabsdet
        )


def regression(model, beta, sigma):
    """Give the model data of which we know more than the sums, and look at the examples
    one by one.
    """
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(12, len(beta), generator=generator, dtype=torch.float64)
    targets = torch.randn(12, generator=generator, dtype=torch.float64)
    sums = {
        "xx": inputs.T @ inputs,
        "xy": inputs.T @ targets,
        "yy": targets @ targets,
        "n": torch.tensor(12.0),
    }
    model.data = {key: value.double() for key, value in sums.items()}
    return Normal(inputs @ beta, sigma).log_prob(targets).sum()


def eight_schools(data, eta, mu, tau):
    schools = zip(data["y"], data["sigma"], eta, strict=True)
    likelihood = sum(
        Normal(mu + tau * e, sigma).log_prob(y) + Normal(0, 1).log_prob(e)
        for y, sigma, e in schools
    )
    return likelihood + Normal(0, 5).log_prob(mu) + Cauchy(0, 5).log_prob(tau)


def moving_average(data, mu, phi, theta, sigma):
    total = (
        Normal(0, 10).log_prob(mu)
        + Normal(0, 2).log_prob(phi)
        + Normal(0, 2).log_prob(theta)
        + Cauchy(0, 2.5).log_prob(sigma)
    )
    before, error = mu, 0.0
    for y in data["y"]:
        error = y - (mu + phi * before + theta * error)
        total, before = total + Normal(0, sigma).log_prob(error), y
    return total


def garch(data, mu, alpha0, alpha1_beta1):
    total, std, (alpha1, beta1) = 0.0, data["sigma1"], alpha1_beta1
    for y in data["y"]:
        total = total + Normal(mu, std).log_prob(y)
        std = (alpha0 + alpha1 * (y - mu) ** 2 + beta1 * std**2).sqrt()
    return total


def hidden_markov(data, theta, mu):
    transition = torch.stack([theta, 1 - theta], -1)
    paths = []
    for states in itertools.product((0, 1), repeat=len(data["y"])):
        path = sum(
            Normal(mu[state], 1).log_prob(y)
            for state, y in zip(states, data["y"], strict=True)
        )
        paths.append(
            path + sum(transition[pair].log() for pair in itertools.pairwise(states))
        )
    return (
        torch.stack(paths).logsumexp(0)
        + Normal(3, 1).log_prob(mu[0])
        + Normal(10, 1).log_prob(mu[1])
    )


def mixture(data, mu, sigma, weight):
    density = (
        weight * Normal(mu[0], sigma[0]).log_prob(data["y"]).exp()
        + (1 - weight) * Normal(mu[1], sigma[1]).log_prob(data["y"]).exp()
    )
    prior = (
        Normal(0, 2).log_prob(mu).sum()
        + Normal(0, 2).log_prob(sigma).sum()
        + 4 * (weight * (1 - weight)).log()
    )
    return density.log().sum() + prior


def kernel_matrix(data, rho, alpha):
    x = data["x"].tolist()
    rows = [
        [alpha**2 * torch.exp(-((a - b) ** 2) / (2 * rho**2)) for b in x] for a in x
    ]
    # Gamma rounds its argument to the precision of these
    shape, rate = torch.tensor([25.0, 4.0], dtype=torch.float64)
    return torch.stack([torch.cat(row) for row in rows]), Gamma(shape, rate).log_prob(
        rho
    ) + Normal(0, 2).log_prob(alpha)


def gaussian_process(data, rho, alpha, sigma):
    covariance, prior = kernel_matrix(data, rho, alpha)
    y = data["y"]
    return (
        MultivariateNormal(
            torch.zeros_like(y), covariance + sigma * torch.eye(len(y))
        ).log_prob(y)
        + prior
        + Normal(0, 1).log_prob(sigma)
    )


def poisson_process(data, rho, alpha, z):
    covariance, prior = kernel_matrix(data, rho, alpha)
    f = torch.linalg.cholesky(covariance + 1e-10 * torch.eye(len(z))) @ z
    return (
        Poisson(f.exp()).log_prob(data["k"]).sum()
        + Normal(0, 1).log_prob(z).sum()
        + prior
    )


FORMULAS = {
    "KidScore": lambda model, beta, sigma: (
        regression(model, beta, sigma) + Cauchy(0, 2.5).log_prob(sigma)
    ),
    "ElectionStudy": regression,
    "Mesquite": regression,
    "AutoRegression": lambda model, beta, sigma: (
        regression(model, beta, sigma)
        + Normal(0, 10).log_prob(beta).sum()
        + Cauchy(0, 2.5).log_prob(sigma)
    ),
    "EightSchools": eight_schools,
    "MovingAverage": moving_average,
    "Garch": garch,
    "HiddenMarkov": hidden_markov,
    "Mixture": mixture,
    "GaussianProcess": gaussian_process,
    "PoissonProcess": poisson_process,
}


@every_model
def test_the_density_is_that_of_the_model_written_out(name):
    model = MODELS[name]()
    if name == "hmm_example-hmm_example":
        model.data["y"] = model.data["y"][:9]  # so that all the paths can be listed
    position = starts(model, 2, seed=4)
    values, _ = model.parameters(position)
    given = model if isinstance(model, posteriordb.Regression) else model.data
    formula = FORMULAS[type(model).__name__]
    one, other = (
        formula(given, **{key: value[chain] for key, value in values.items()})
        for chain in range(2)
    )
    density = model.log_density(**values)  # known up to a constant
    torch.testing.assert_close(density[0] - density[1], (one - other).reshape(()))


def test_minibatches_of_all_the_data_are_the_mixture():
    model = MODELS["low_dim_gauss_mix-low_dim_gauss_mix"]()
    position = starts(model, 3, seed=5)
    whole = model.with_minibatches(1000)
    torch.testing.assert_close(whole.energy(position), model.energy(position))
    batched, generator = model.with_minibatches(200), torch.Generator().manual_seed(6)
    position, chains = position[:1].expand(2_000, -1).contiguous(), 2_000
    noisy = batched.stochastic_gradient(position, generator)
    z = (noisy.mean(0) - model.gradient(position[:1])[0]) / (noisy.std(0) / chains**0.5)
    assert z.abs().max() < z_bound(len(z))


@pytest.mark.parametrize("name", MODELS)
def test_the_stored_facts_fit_together(name):
    model = MODELS[name]()
    sizes = {key: len(value) for key, value in model.published.items()}
    assert set(sizes) == {"names", "mean", "mean_error", "sd", "sd_error"} and set(
        sizes.values()
    ) == {len(model.published["names"])}
    assert model.named(starts(model, 2, seed=0)).shape == (2, sizes["names"])
    # The reference has nearly 10,000 independent draws: the errors are a hundredth and
    # a hundred-and-fortieth of the deviation.
    sd, error = (
        torch.tensor(model.published["sd"]),
        torch.tensor(model.published["mean_error"]),
    )
    assert ((error / sd - 0.01).abs() < 0.001).all()
    if isinstance(model, posteriordb.Regression):
        n, xx, xy, yy = (model.data[key] for key in ("n", "xx", "xy", "yy"))
        assert (
            torch.equal(xx, xx.T)
            and torch.linalg.eigvalsh(xx)[0] > 0
            and yy > xy @ torch.linalg.solve(xx, xy)
        )
        assert name == "arK-arK" or xx[0, 0] == n


SHORT = Namespace(chains=10, warm_up=200, draws=300, seed=0)
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*trees .* diverged", "ignore:the chains do not agree"
)


def worst(result):
    return max(abs(z) for what in ("mean_z", "sd_z") for z in result[what])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gp_pois_regr-gp_regr", "eight_schools-eight_schools_noncentered"]
)
def test_a_short_run_agrees_with_the_published_values(name):
    result, _, _ = run_nuts(MODELS[name](), SHORT)
    assert result["chains_moved"] == SHORT.chains and worst(result) < z_bound(
        2 * len(result["names"])
    ), result


def test_the_comparison_counts_standard_errors_and_chains_that_moved():
    draws = (
        torch.randn(
            1000, 10, 2, generator=torch.Generator().manual_seed(8), dtype=torch.float64
        )
        * 3
        + 1
    )
    published = {
        "names": ["a", "b"],
        "mean": [1, 1],
        "sd": [3, 3],
        "mean_error": [0.03, 0.03],
        "sd_error": [0.021, 0.021],
    }
    right = compare(draws, published)
    assert (
        worst(right) < z_bound(4)
        and right["chains_moved"] == 10
        and max(right["r_hat"]) < 1.01
    )
    # ten errors of the reference, and so 10/√2 of both
    for what, shift in (("mean", 10 * 0.03), ("sd", 10 * 0.021)):
        shifted = compare(
            draws, published | {what: [value + shift for value in published[what]]}
        )
        difference = torch.tensor(right[f"{what}_z"]) - torch.tensor(
            shifted[f"{what}_z"]
        )
        assert ((difference - 10 / 2**0.5).abs() < 0.5).all()
    draws[:, 3] = draws[0, 3]
    stuck = compare(draws, published)
    assert stuck["chains_moved"] == 9 and max(stuck["r_hat"]) > 1.01
