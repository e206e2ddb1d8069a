"""Eleven posteriors of posteriordb, sampled and compared with their published means and
standard deviations.

usage: python -m benchmarks.posteriordb [--only NAME ...] [--chains 10] [--warm-up 500]
[--draws 1000] [--seed 0]

posteriordb (Magnusson et al., 2024) holds posteriors with 10,000 reference draws each.
``posteriordb.json`` beside this file has data and what the reference draws say: means,
standard deviations, and the Monte Carlo errors of both (ArviZ's, of the draws at the
commit that the file names). Of a Gaussian linear regression only n, XᵀX, Xᵀy and yᵀy
are kept: the density depends on nothing else, and but for the last digit they are
exact. Simulated data are rounded to six decimals.

Each density is written here anew, from the model's description, in coordinates without
constraints. Chains start from U(−2, 2) in these coordinates, as Stan's do, are warmed
up by ``adapt`` and drawn from by ``NUTS``; one of them, ``MovingAverage``, starts from
a smaller box. From two posteriors ``SGHMC`` draws as well. A run of all of them is
written to ``book/results/posteriordb.json``."""

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import arviz
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from booklib.runs.results import RESULTS, circumstances, peak_memory, write_result
from sgmc import sample
from sgmc.kernels import NUTS, SGHMC
from sgmc.models import Posterior
from sgmc.noise import estimate_noise_variance
from sgmc.potentials import Potential
from sgmc.tuning import adapt

FILE = Path(__file__).with_suffix(".json")
STORE = json.loads(FILE.read_text())

# Constraints: from coordinates x, (chains, k), to a parameter, (chains, k), and log|det
# ∂parameter/∂x|, (chains,).


def real(x: Tensor) -> tuple[Tensor, Tensor]:
    """Leave the coordinates as they are."""
    return x, torch.zeros_like(x[:, 0])


def positive(x: Tensor) -> tuple[Tensor, Tensor]:
    """Map to numbers above 0: p = exp x, dp/dx = p."""
    return x.exp(), x.sum(-1)


def unit(x: Tensor) -> tuple[Tensor, Tensor]:
    """Map to numbers between 0 and 1: p = 1/(1 + exp(−x)), dp/dx = p(1 − p)."""
    return x.sigmoid(), (logsigmoid(x) + logsigmoid(-x)).sum(-1)


def ordered(x: Tensor) -> tuple[Tensor, Tensor]:
    """Map to increasing numbers: the first is free, and the logarithms of the gaps
    are.
    """
    return torch.cat([x[:, :1], x[:, 1:].exp()], -1).cumsum(-1), x[:, 1:].sum(-1)


def positive_ordered(x: Tensor) -> tuple[Tensor, Tensor]:
    """Map to increasing numbers above 0."""
    return x.exp().cumsum(-1), x.sum(-1)


def below_one(x: Tensor) -> tuple[Tensor, Tensor]:
    """Map to two positive numbers with a sum below 1: p₁ = u₁, p₂ = (1 − u₁)u₂ with u
    between 0 and 1.
    """
    u, log_jacobian = unit(x)
    return torch.stack(
        [u[:, 0], (1 - u[:, 0]) * u[:, 1]], -1
    ), log_jacobian + logsigmoid(-x[:, 0])


# Log densities, each without what does not depend on the parameters.


def normal(
    value: Tensor, mean: Tensor | float = 0.0, std: Tensor | float = 1.0
) -> Tensor:
    """Compute log N(value | mean, std²), element by element."""
    return -0.5 * ((value - mean) / std) ** 2 - torch.as_tensor(std).log()


def cauchy(value: Tensor, scale: float) -> Tensor:
    """Compute the logarithm of the Cauchy density around 0, element by element."""
    return -torch.log1p((value / scale) ** 2)


def gamma(value: Tensor, shape: float, rate: float) -> Tensor:
    """Compute the logarithm of the gamma density, element by element."""
    return (shape - 1) * value.log() - rate * value


class Model(Potential):
    """A posterior of posteriordb: parameters under constraints, their log density, and
    what is published of it.

    A subclass names the parameters with their constraint and number in ``constraints``,
    and writes ``log_density``; where the reference lists other quantities than the
    parameters, ``quantities`` as well. Each parameter is ``(chains, number)``.

    Example:
        >>> model = EightSchools()
        >>> model.named(torch.zeros(4, model.dim)).shape, model.published["names"][-1]
        (torch.Size([4, 10]), 'tau')
    """

    name: str
    constraints: dict[str, tuple[Callable[[Tensor], tuple[Tensor, Tensor]], int]]
    half_width = 2.0  # of the box in which chains start

    def __init__(self):
        content = STORE["posteriors"][self.name]
        self.data = {
            key: torch.tensor(value, dtype=torch.float64)
            for key, value in content["data"].items()
        }
        self.published = content["published"]
        self.dim = sum(number for _, number in self.constraints.values())

    def parameters(self, position: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Map coordinates ``(chains, dim)`` to the parameters by name, and the
        logarithm of the Jacobian determinant ``(chains,)``.
        """
        pieces = position.split([number for _, number in self.constraints.values()], -1)
        mapped = {
            name: constrain(x)
            for (name, (constrain, _)), x in zip(
                self.constraints.items(), pieces, strict=True
            )
        }
        return {name: value for name, (value, _) in mapped.items()}, sum(
            log_jacobian for _, log_jacobian in mapped.values()
        )

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ), the negative log density of the coordinates: that of the
        parameters, times the Jacobian determinant.
        """
        values, log_jacobian = self.parameters(position)
        return -(self.log_density(**values) + log_jacobian)

    def log_density(self, **parameters: Tensor) -> Tensor:
        """Compute log p(parameters, data) up to a constant, ``(chains,)``."""
        raise NotImplementedError

    def quantities(self, **parameters: Tensor) -> list[Tensor]:
        """List what the reference lists, in its order."""
        return list(parameters.values())

    def named(self, position: Tensor) -> Tensor:
        """Map coordinates ``(chains, dim)`` to the quantities of
        ``published["names"]``, ``(chains, quantities)``.
        """
        return torch.cat(self.quantities(**self.parameters(position)[0]), -1)


class Regression(Model):
    """y ~ N(Xβ, σ²), seen through n, XᵀX, Xᵀy and yᵀy."""

    def log_density(self, beta, sigma):
        """Compute −n log σ − |y − Xβ|²/2σ² + log p(β, σ)."""
        n, xx, xy, yy = (self.data[key] for key in ("n", "xx", "xy", "yy"))
        squares = yy - 2 * beta @ xy + (beta @ xx * beta).sum(-1)
        scale = sigma[:, 0]
        likelihood = -n * scale.log() - squares / (2 * scale**2)
        return likelihood + self.log_prior(beta, sigma)

    def log_prior(self, beta, sigma):
        """Compute log p(β, σ): flat, if nothing else is said."""
        return torch.zeros_like(sigma[:, 0])


class KidScore(Regression):
    """A child's test score on its mother's IQ: σ ~ Cauchy⁺(0, 2.5)."""

    name = "kidiq-kidscore_momiq"
    constraints = {"beta": (real, 2), "sigma": (positive, 1)}

    def log_prior(self, beta, sigma):
        """Compute log p(σ)."""
        return cauchy(sigma, 2.5).sum(-1)


class ElectionStudy(Regression):
    """Party identification of 1,184 voters of 1976 on eight other answers."""

    name = "nes1976-nes"
    constraints = {"beta": (real, 9), "sigma": (positive, 1)}


class Mesquite(Regression):
    """Logarithm of the weight of 46 mesquite bushes on those of their volume, area,
    shape, height and density, and their group.
    """

    name = "mesquite-logmesquite_logvas"
    constraints = {"beta": (real, 7), "sigma": (positive, 1)}


class AutoRegression(Regression):
    """yₜ ~ N(α + Σβₖyₜ₋ₖ, σ²) with five lags: α, βₖ ~ N(0, 10²), σ ~ Cauchy⁺(0,
    2.5).
    """

    name = "arK-arK"
    constraints = {"beta": (real, 6), "sigma": (positive, 1)}

    def log_prior(self, beta, sigma):
        """Compute log p(α, β, σ)."""
        return normal(beta, 0, 10.0).sum(-1) + cauchy(sigma, 2.5).sum(-1)


class EightSchools(Model):
    """Effects of coaching: yⱼ ~ N(θⱼ, σⱼ²), θⱼ = μ + τηⱼ, ηⱼ ~ N(0, 1), μ ~ N(0, 5²), τ
    ~ Cauchy⁺(0, 5).
    """

    name = "eight_schools-eight_schools_noncentered"
    constraints = {"eta": (real, 8), "mu": (real, 1), "tau": (positive, 1)}

    def log_density(self, eta, mu, tau):
        """Compute log p(y, η, μ, τ)."""
        likelihood = normal(self.data["y"], mu + tau * eta, self.data["sigma"]).sum(-1)
        return (
            likelihood
            + normal(eta).sum(-1)
            + normal(mu, 0, 5.0).sum(-1)
            + cauchy(tau, 5.0).sum(-1)
        )

    def quantities(self, eta, mu, tau):
        """List θ, μ and τ."""
        return [mu + tau * eta, mu, tau]


def recursion(decay: Tensor, inputs: Tensor) -> Tensor:
    """Solve hₜ = decay·hₜ₋₁ + inputsₜ from h₀ = 0, by doubling: 1/(1 − aL) = (1 + aL)(1
    + a²L²)(1 + a⁴L⁴)… with the lag L.

    Args:
        decay: ``(chains, 1)``.
        inputs: ``(chains, T)``.

    Returns:
        h, ``(chains, T)``.

    Example:
        >>> recursion(torch.tensor([[0.5]]), torch.ones(1, 4))
        tensor([[1.0000, 1.5000, 1.7500, 1.8750]])
    """
    h, lag = inputs, 1
    while lag < h.shape[1]:
        h = h + decay * pad(h[:, :-lag], (lag, 0))
        decay, lag = decay**2, 2 * lag
    return h


class MovingAverage(Model):
    """ARMA(1, 1): eₜ = yₜ − μ − φyₜ₋₁ − θeₜ₋₁ ~ N(0, σ²), with y₀ = μ, e₀ = 0; μ ~ N(0,
    10²), φ, θ ~ N(0, 2²), σ ~ Cauchy⁺(0, 2.5).

    Where |θ| > 1 the errors grow as |θ|ᵗ over 200 times. Of ten starts from U(−2, 2)
    four had an energy of 10²⁹ to 10⁷⁸, and no step size suits such a chain and the
    others, so that chains start from U(−½, ½)."""

    name = "arma-arma11"
    half_width = 0.5
    constraints = {
        "mu": (real, 1),
        "phi": (real, 1),
        "theta": (real, 1),
        "sigma": (positive, 1),
    }

    def log_density(self, mu, phi, theta, sigma):
        """Compute Σ log N(eₜ | 0, σ²) and the prior."""
        y = self.data["y"]
        before = torch.cat([mu, y[:-1].expand(len(mu), -1)], -1)
        errors = recursion(-theta, y - mu - phi * before)
        prior = (
            normal(mu, 0, 10.0)
            + normal(phi, 0, 2.0)
            + normal(theta, 0, 2.0)
            + cauchy(sigma, 2.5)
        )
        return normal(errors, 0, sigma).sum(-1) + prior.sum(-1)


class Garch(Model):
    """GARCH(1, 1): yₜ ~ N(μ, vₜ), vₜ = α₀ + α₁(yₜ₋₁ − μ)² + β₁vₜ₋₁.

    The variance v₁ is known; priors are flat, with α₁ + β₁ < 1.
    """

    name = "garch-garch11"
    constraints = {
        "mu": (real, 1),
        "alpha0": (positive, 1),
        "alpha1_beta1": (below_one, 2),
    }

    def log_density(self, mu, alpha0, alpha1_beta1):
        """Compute Σ log N(yₜ | μ, vₜ)."""
        y, (alpha1, beta1) = self.data["y"], alpha1_beta1.split(1, -1)
        first = (self.data["sigma1"] ** 2).expand(len(mu), 1)
        driven = alpha0 + alpha1 * (y[:-1] - mu) ** 2
        variance = recursion(beta1, torch.cat([first, driven], -1))
        return normal(y, mu, variance.sqrt()).sum(-1)


class HiddenMarkov(Model):
    """Two hidden states: yₜ ~ N(μ_z, 1), P(z → 1) = θ_z; θ ~ U(0, 1), 0 < μ₁ < μ₂, μ₁ ~
    N(3, 1), μ₂ ~ N(10, 1).

    The first state has weight one either way.
    """

    name = "hmm_example-hmm_example"
    constraints = {"theta": (unit, 2), "mu": (positive_ordered, 2)}

    def log_density(self, theta, mu):
        """Sum over all paths of the states, by a product of matrices."""
        transition = torch.stack([theta, 1 - theta], -1).log()  # (chains, from, to)
        emission = normal(self.data["y"][:, None], mu[:, None])  # (chains, T, state)
        steps = log_product(transition[:, None] + emission[:, 1:, None, :])
        likelihood = (emission[:, 0, :, None] + steps).logsumexp((1, 2))
        return likelihood + normal(mu, torch.tensor([3.0, 10.0], dtype=mu.dtype)).sum(
            -1
        )

    def quantities(self, theta, mu):
        """List the probabilities from either state, and μ."""
        return [torch.stack([theta, 1 - theta], -1).flatten(1), mu]


def log_product(matrices: Tensor) -> Tensor:
    """Multiply a row of matrices that are given by the logarithms of their elements,
    ``(chains, T, K, K)`` → ``(chains, K, K)``, in pairs.

    Example:
        >>> log_product(
        ...     torch.tensor([2.0, 3.0, 4.0]).log().reshape(1, 3, 1, 1)
        ... ).exp().round()
        tensor([[[24.]]])
    """
    while (length := matrices.shape[1]) > 1:
        even = length - length % 2
        pairs = torch.logsumexp(
            matrices[:, :even:2, :, :, None] + matrices[:, 1:even:2, None, :, :], -2
        )
        matrices = torch.cat([pairs, matrices[:, even:]], 1)
    return matrices[:, 0]


class Mixture(Model):
    """yᵢ ~ wN(μ₁, σ₁²) + (1 − w)N(μ₂, σ₂²): μ ~ N(0, 2²) with μ₁ < μ₂, σ ~ N⁺(0, 2²), w
    ~ Beta(5, 5).
    """

    name = "low_dim_gauss_mix-low_dim_gauss_mix"
    constraints = {"mu": (ordered, 2), "sigma": (positive, 2), "weight": (unit, 1)}

    def log_likelihood(self, y, mu, sigma, weight):
        """Compute log p(yᵢ | μ, σ, w) of observations ``(..., n)``, for every chain."""
        first, second = (
            normal(y, mu[:, k : k + 1], sigma[:, k : k + 1]) for k in range(2)
        )
        return torch.logaddexp(weight.log() + first, torch.log1p(-weight) + second)

    def log_prior(self, mu, sigma, weight):
        """Compute log p(μ, σ, w)."""
        weights = 4 * (weight.log() + torch.log1p(-weight))
        return (
            normal(mu, 0, 2.0).sum(-1) + normal(sigma, 0, 2.0).sum(-1) + weights.sum(-1)
        )

    def log_density(self, mu, sigma, weight):
        """Compute log p(y, μ, σ, w)."""
        return self.log_likelihood(self.data["y"], mu, sigma, weight).sum(
            -1
        ) + self.log_prior(mu, sigma, weight)

    def with_minibatches(self, batch_size: int) -> Posterior:
        """Make the same target, seen through minibatches."""

        def log_prior(position):
            values, log_jacobian = self.parameters(position)
            return self.log_prior(**values) + log_jacobian

        def log_likelihood(position, y):
            return self.log_likelihood(y, **self.parameters(position)[0])

        return Posterior(
            log_prior,
            log_likelihood,
            (self.data["y"],),
            batch_size=batch_size,
            dim=self.dim,
        )


def cholesky(
    x: Tensor, alpha: Tensor, rho: Tensor, diagonal: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Factorise the covariance α²exp(−½(xᵢ − xⱼ)²/ρ²) + diagonal: the factor ``(chains,
    n, n)``, and whether rounding let it exist.
    """
    squares = (x[:, None] - x) ** 2
    covariance = (alpha**2)[..., None] * torch.exp(-0.5 * squares / (rho**2)[..., None])
    factor, failed = torch.linalg.cholesky_ex(
        covariance + diagonal * torch.eye(len(x), dtype=x.dtype)
    )
    return factor, failed == 0


class GaussianProcess(Model):
    """y ~ N(0, K + σI), K of a squared-exponential kernel: ρ ~ Gamma(25, 4), α ~ N⁺(0,
    2²), σ ~ N⁺(0, 1), a variance by its place.
    """

    name = "gp_pois_regr-gp_regr"
    constraints = {"rho": (positive, 1), "alpha": (positive, 1), "sigma": (positive, 1)}

    def log_density(self, rho, alpha, sigma):
        """Compute log p(y, ρ, α, σ)."""
        factor, exists = cholesky(self.data["x"], alpha, rho, sigma[..., None])
        whitened = torch.linalg.solve_triangular(
            factor, self.data["y"][:, None], upper=False
        )[..., 0]
        likelihood = (normal(whitened) - factor.diagonal(dim1=-2, dim2=-1).log()).sum(
            -1
        )
        prior = gamma(rho, 25.0, 4.0) + normal(alpha, 0, 2.0) + normal(sigma)
        return torch.where(exists, likelihood + prior.sum(-1), -torch.inf)


class PoissonProcess(Model):
    """kᵢ ~ Poisson(exp fᵢ), f = Lz with LLᵀ = K + 10⁻¹⁰I, z ~ N(0, 1); the same kernel
    and priors.
    """

    name = "gp_pois_regr-gp_pois_regr"
    constraints = {"rho": (positive, 1), "alpha": (positive, 1), "z": (real, 11)}

    def log_density(self, rho, alpha, z):
        """Compute log p(k, ρ, α, z)."""
        factor, exists = cholesky(self.data["x"], alpha, rho, 1e-10)
        f = (factor @ z[..., None])[..., 0]
        prior = gamma(rho, 25.0, 4.0) + normal(alpha, 0, 2.0)
        log_density = (
            (self.data["k"] * f - f.exp()).sum(-1) + normal(z).sum(-1) + prior.sum(-1)
        )
        return torch.where(exists, log_density, -torch.inf)

    def quantities(self, rho, alpha, z):
        """List ρ, α and f."""
        return [
            rho,
            alpha,
            (cholesky(self.data["x"], alpha, rho, 1e-10)[0] @ z[..., None])[..., 0],
        ]


MODELS = {
    model.name: model
    for model in (
        KidScore,
        ElectionStudy,
        Mesquite,
        EightSchools,
        AutoRegression,
        MovingAverage,
        Garch,
        HiddenMarkov,
        Mixture,
        GaussianProcess,
        PoissonProcess,
    )
}


def starts(model: Model, chains: int, seed: int) -> Tensor:
    """Draw starting points ``(chains, dim)`` from U(−2, 2), or the box of the model."""
    generator = torch.Generator().manual_seed(seed)
    return model.half_width * (
        2 * torch.rand(chains, model.dim, generator=generator, dtype=torch.float64) - 1
    )


def compare(samples: Tensor, published: dict) -> dict:
    """Compare draws ``(draws, chains, quantities)`` with what is published, in Monte
    Carlo standard errors of both.

    Returns:
        Means and standard deviations of the draws with their standard errors, z of
        each, R̂, and whether every chain moved.
    """
    data = arviz.from_dict(posterior={"x": samples.transpose(0, 1).numpy()})
    pooled = samples.flatten(0, 1)
    found = {"mean": pooled.mean(0), "sd": pooled.std(0)}
    result = {
        "names": published["names"],
        "published": {key: value for key, value in published.items() if key != "names"},
    }
    for what, value in found.items():
        error = torch.as_tensor(arviz.mcse(data, method=what)["x"].values)
        both = (
            error**2
            + torch.tensor(published[f"{what}_error"], dtype=torch.float64) ** 2
        ).sqrt()
        z = (value - torch.tensor(published[what], dtype=torch.float64)) / both
        result |= {
            what: rounded(value),
            f"{what}_error": rounded(error),
            f"{what}_z": rounded(z),
        }
    result["r_hat"] = rounded(torch.as_tensor(arviz.rhat(data)["x"].values))
    result["chains_moved"] = int((samples.std(0) > 0).all(-1).sum())
    return result


def rounded(values: Tensor) -> list[float]:
    """Keep six significant digits."""
    return [float(f"{value:.6g}") for value in values.tolist()]


def run_nuts(model: Model, arguments: argparse.Namespace) -> tuple[dict, NUTS, Tensor]:
    """Warm up and draw; return the comparison, the tuned kernel and where the chains
    were after the warm-up.
    """
    start = starts(model, arguments.chains, arguments.seed)
    begun = time.perf_counter()
    kernel, position = adapt(
        NUTS(1.0),
        model,
        start,
        arguments.warm_up,
        seed=arguments.seed,
        target_acceptance=0.9,
        progress=False,
    )
    draws = sample(
        kernel,
        model,
        position,
        arguments.draws,
        seed=arguments.seed,
        collect=model.named,
        progress=False,
    )
    seconds = time.perf_counter() - begun
    costs = {
        "step_size": float(f"{kernel.step_size:.4g}"),
        "start_half_width": model.half_width,
        "start_height": float(
            f"{float(model.energy(start).max() - draws.statistics['energy'].mean()):.4g}"  # noqa: E501
        ),
        "divergences": int(draws.statistics["diverged"].sum()),
        "gradients_per_draw": round(
            float(draws.statistics["num_gradients"][-1].double().mean())
            / arguments.draws,
            1,
        ),
        "seconds": round(seconds, 1),
    }
    return compare(draws.samples, model.published) | costs, kernel, position


BATCH_SIZE = 200  # of the 1,000 observations of the mixture
SGHMC_STEP = 0.05  # in units of the scales that the warm-up found


def run_sghmc(
    model: Model, kernel: NUTS, position: Tensor, arguments: argparse.Namespace
) -> dict:
    """Draw by SGHMC with the mass that NUTS was tuned to, friction C = M, and 20 small
    steps a draw; the mixture through minibatches.

    The gradient noise is estimated once, at the start, and that much less is injected.
    """
    begun = time.perf_counter()
    potential, noise_estimate = model, 0.0
    if isinstance(model, Mixture):
        potential = model.with_minibatches(BATCH_SIZE)
        variance = estimate_noise_variance(
            potential,
            position,
            torch.Generator().manual_seed(arguments.seed),
            "full",
            num_batches=10,
        )
        noise_estimate = 0.5 * SGHMC_STEP * variance
    sghmc = SGHMC(SGHMC_STEP, kernel.mass, noise_estimate, kernel.mass, num_steps=20)
    draws = sample(
        sghmc,
        potential,
        position,
        arguments.draws,
        warm_up=20,
        seed=arguments.seed,
        collect=model.named,
        progress=False,
    )
    costs = {
        "step_size": SGHMC_STEP,
        "batch_size": BATCH_SIZE if isinstance(model, Mixture) else None,
        "gradients_per_draw": sghmc.num_steps,
        "seconds": round(time.perf_counter() - begun, 1),
    }
    return compare(draws.samples, model.published) | costs


def line(name: str, dim: int, chains: int, result: dict) -> str:
    """Write a row of the table."""
    worst = [max(map(abs, result[key])) for key in ("mean_z", "sd_z")]
    moved = f"{result['chains_moved']}/{chains}"
    return (
        f"{name:46} {dim:3} {worst[0]:10.2f} {worst[1]:8.2f} "
        f"{max(result['r_hat']):6.3f} {moved:>6} "
        f"{result.get('divergences', '-'):>5} {result['gradients_per_draw']:10.1f} "
        f"{result['seconds']:8.1f}"
    )


def main():
    """Run, print the table, and store the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=MODELS,
        metavar="NAME",
        help=f"some of {', '.join(MODELS)}",
    )
    for option, default in (
        ("--chains", 10),
        ("--warm-up", 500),
        ("--draws", 1000),
        ("--seed", 0),
    ):
        parser.add_argument(option, type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # divergences and trees that are cut short stand in the table
    warnings.simplefilter("ignore")
    results = {}
    print(
        f"{'posterior':46} dim |z| of mean    of sd  R-hat  moved   div  gradients  "
        "seconds"
    )
    for name in arguments.only or MODELS:
        model = MODELS[name]()
        nuts, kernel, position = run_nuts(model, arguments)
        results[name] = {"dim": model.dim, "NUTS": nuts}
        print(line(name, model.dim, arguments.chains, nuts), flush=True)
        if isinstance(model, EightSchools | Mixture):
            results[name]["SGHMC"] = run_sghmc(model, kernel, position, arguments)
            print(
                line("  by SGHMC", model.dim, arguments.chains, results[name]["SGHMC"]),
                flush=True,
            )
    if not arguments.only:
        options = {
            name: value for name, value in vars(arguments).items() if name != "only"
        }
        command = "python -m benchmarks.posteriordb " + " ".join(
            f"--{name.replace('_', '-')} {value}" for name, value in options.items()
        )
        provenance = {
            "command": command,
            **circumstances("cpu"),
            "peak_memory_megabytes": peak_memory("cpu"),
        }
        checksum = hashlib.sha256(FILE.read_bytes()).hexdigest()[:32]
        origin = {
            "source": STORE["source"],
            "commit": STORE["commit"],
            "data_checksum": checksum,
        }
        write_result(
            RESULTS / "posteriordb.json",
            {
                "provenance": provenance,
                **origin,
                "settings": options,
                "posteriors": results,
            },
        )


if __name__ == "__main__":
    main()
