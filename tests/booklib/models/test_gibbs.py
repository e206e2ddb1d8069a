"""The Gibbs step of a network's prior precisions, and the kernel that takes it in turn
with another, against exact joint laws.
"""

import math
import signal

import pytest
import torch
from scipy import stats
from torch import nn

from booklib.models.gibbs import Gibbs
from booklib.models.hierarchical import HierarchicalNetwork
from sgmc import sample
from sgmc.checkpoints import Checkpoint
from sgmc.kernels import HMC, NUTS, SGHMC, NaiveSGHMC
from sgmc.minibatches import Passes
from sgmc.other_kernels import RandomWalkMetropolis
from sgmc.posteriors import Gaussian
from sgmc.potentials import Potential
from sgmc.targets import DoubleWell
from tests.checks import z_bound

DOUBLE = torch.float64
NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]


def posterior(**settings):
    generator = torch.Generator().manual_seed(1)
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
    return HierarchicalNetwork(
        module, torch.randn(7, 2, generator=generator), torch.arange(7) % 2, **settings
    )


def assert_normal(z):
    """Compare statistics with their expectations: false alarm 1e-4 for all of them
    together.
    """
    assert z.abs().max() < z_bound(z.numel()), f"z = {z}"


def z_of(values, expected):
    """Standardise the mean over chains of ``(chains, ...)`` by its standard error."""
    return (values.mean(0) - expected) / (values.std(0) / len(values) ** 0.5)


# The draw of the precisions


def test_precisions_follow_their_full_conditional_law(generator):
    """Kolmogorov-Smirnov for each of four tensors; false alarm 1e-4 for all
    together.
    """
    target = posterior(hyperprior=(2.0, 0.5))
    position = torch.randn(1, target.dim, generator=generator)
    drawn = target.draw_hyperparameters(position.expand(2_000, -1), generator)
    assert list(drawn) == NAMES and all(
        x.shape == (2_000,) and x.dtype == DOUBLE for x in drawn.values()
    )
    for name, weights in target.parameters_of(position).items():
        law = stats.gamma(
            2.0 + weights.numel() / 2,
            scale=1 / (0.5 + float(weights.square().sum()) / 2),
        )
        assert stats.kstest(drawn[name], law.cdf).pvalue > 1e-4 / 4, name


def test_every_chain_draws_from_the_law_given_its_own_weights(generator):
    """Chains of different scales: each precision, standardised by its own law, is
    uniform.
    """
    target = posterior()
    scales = torch.logspace(-2, 2, 2_000)[:, None]
    position = torch.randn(2_000, target.dim, generator=generator) * scales
    drawn = target.draw_hyperparameters(position, generator)
    for name, weights in target.parameters_of(position.double()).items():
        rate = 1 + weights.square().sum(-1) / 2
        uniform = stats.gamma(1 + weights.shape[1] / 2).cdf(drawn[name] * rate)
        assert stats.kstest(uniform, "uniform").pvalue > 1e-4 / 4, name
        # neighbours
        assert (
            abs(
                float(
                    torch.corrcoef(torch.tensor(uniform).unflatten(0, (-1, 2)).T)[0, 1]
                )
            )
            < z_bound(4) / 1_000**0.5
        )


# The kernel


KERNELS = {
    "HMC": HMC(0.5, 3),
    "NUTS": NUTS(0.5),
    "random walk": RandomWalkMetropolis(0.7),
    "naive SGHMC with correction": NaiveSGHMC(0.5, 3, metropolis=True),
    "several steps": HMC(0.5, 2, jitter=0.5, refreshment=0.7),
}


def one_weight(hyperprior=(2.0, 1.0)):
    """Make yᵢ ~ N(θxᵢ, σ²), θ ~ N(0, 1/λ) and λ ~ Gamma(a, b), and exact draws of (θ,
    λ) given y.
    """
    x, variance = torch.tensor([0.5, -1.0, 1.5], dtype=DOUBLE), 0.5
    y = torch.tensor([0.8, -0.3, 1.9], dtype=DOUBLE)
    module = nn.Linear(1, 1, bias=False).double()
    target = HierarchicalNetwork(
        module, x[:, None], y, likelihood=Gaussian(variance), hyperprior=hyperprior
    )

    def exact_draws(chains, generator):
        """Invert the distribution function of λ | y, whose density is that of N(y; 0,
        σ²I + xxᵀ/λ) times the hyperprior's.
        """
        grid = torch.linspace(1e-4, 40, 400_001, dtype=DOUBLE)
        data_precision, score = (x * x).sum() / variance, (x * y).sum() / variance
        log_density = 0.5 * (grid / (grid + data_precision)).log() + 0.5 * score**2 / (
            grid + data_precision
        )
        log_density = (
            log_density + (hyperprior[0] - 1) * grid.log() - hyperprior[1] * grid
        )
        distribution = torch.cumulative_trapezoid(
            (log_density - log_density.max()).exp(), grid
        )
        uniform = (
            torch.rand(chains, generator=generator, dtype=DOUBLE) * distribution[-1]
        )
        precision = grid[torch.searchsorted(distribution, uniform)]
        total = precision + data_precision
        return score / total + torch.randn(
            chains, generator=generator, dtype=DOUBLE
        ) * total**-0.5, precision

    return target, exact_draws


def change_of_moments(kernel, generator, chains=5_000, steps=4):
    """Start chains in exact draws of the joint posterior and compare moments before and
    after, in pairs: a z for each.
    """
    target, exact_draws = one_weight()
    position, precision = exact_draws(chains, generator)
    start = target.given({"weight": precision})
    draws = sample(
        kernel, start, position[:, None], num_samples=1, warm_up=steps - 1, seed=4
    )
    after = draws.samples[0, :, 0], draws.statistics["hyperparameters"][0, :, 0]
    moments = lambda theta, rate: torch.stack(
        [theta, theta**2, rate, rate.log(), theta * rate, theta**2 * rate], -1
    )
    return z_of(moments(*after) - moments(position, precision), 0.0)


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_keeps_the_joint_posterior_given_data(name, generator):
    assert_normal(change_of_moments(Gibbs(KERNELS[name]), generator))


class Stale(HMC):
    """HMC that goes on with the energy under the precisions before: the fault that the
    test above has to see.
    """

    def retarget(self, potential, state):
        return state


class Lazy(Gibbs):
    """Draw each precision from the law given the weights before the step."""

    def step(self, potential, state, generator):
        new, info = super().step(potential, state, generator)
        drawn = (
            potential.draw_hyperparameters(self.before, generator)
            if hasattr(self, "before")
            else new.hyperparameters
        )
        object.__setattr__(self, "before", new.position)
        return new._replace(hyperparameters=drawn), info._replace(
            hyperparameters=torch.stack(list(drawn.values()), -1)
        )


@pytest.mark.parametrize(
    "kernel",
    [Gibbs(Stale(0.5, 3)), Lazy(HMC(0.5, 3))],
    ids=["stale energies", "weights of before"],
)
def test_a_kernel_with_a_fault_does_not_keep_it(kernel, generator):
    z = change_of_moments(kernel, generator, chains=40_000)
    assert z.abs().max() > z_bound(z.numel())


class Hierarchy(Potential):
    """yᵢ ~ N(θ, 1) and θ ~ N(m, 1/λ), of a user's own: m ~ N(0, 1/λ) and λ ~ Gamma(3,
    2), with the data of each chain its own.
    """

    dim = 1

    def __init__(self, data, mean=0.0, precision=1.0):
        self.data, self.hyperparameters = data, {"mean": mean, "precision": precision}

    def energy(self, position):
        mean, precision = (
            self.hyperparameters["mean"],
            self.hyperparameters["precision"],
        )
        return (
            0.5 * (self.data - position).pow(2).sum(-1)
            + 0.5 * precision * (position[:, 0] - mean) ** 2
        )

    def given(self, hyperparameters):
        return Hierarchy(self.data, **hyperparameters)

    def draw_hyperparameters(self, position, generator):
        """Draw both together from their normal-gamma law, and name them in another
        order than the attribute does.
        """
        theta = position[:, 0]
        precision = torch._standard_gamma(torch.full_like(theta, 3.5), generator) / (
            2 + theta**2 / 4
        )
        noise = torch.randn(len(theta), generator=generator, dtype=DOUBLE)
        return {
            "precision": precision,
            "mean": theta / 2 + noise / (2 * precision).sqrt(),
        }


@pytest.mark.parametrize("name", KERNELS)
def test_parameters_hyperparameters_and_data_drawn_in_turn_keep_the_prior(
    name, generator
):
    """Geweke (2004) with many chains: λ, m, θ and y from the prior, then turns of the
    kernel and of y | θ; all their moments stay.
    """
    chains, number = 30_000, 2
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=DOUBLE)
    precision = (
        torch._standard_gamma(torch.full((chains,), 3.0, dtype=DOUBLE), generator) / 2
    )
    mean = normal(chains) * precision**-0.5
    position = (mean + normal(chains) * precision**-0.5)[:, None]
    kernel = Gibbs(KERNELS[name], num_steps=2)
    potential = Hierarchy(position + normal(chains, number), mean, precision)
    with torch.no_grad():
        state = kernel.init(potential, position, generator)
        for _ in range(5):
            state, _ = kernel.step(potential, state, generator)
            potential = Hierarchy(state.position + normal(chains, number))
    mean, precision = state.hyperparameters["mean"], state.hyperparameters["precision"]
    scaled_mean, scaled = (
        mean * precision**0.5,
        (state.position[:, 0] - mean) * precision**0.5,
    )
    errors = potential.data - state.position
    found = [
        scaled_mean,
        scaled_mean**2,
        scaled,
        scaled**2,
        scaled_mean * scaled,
        precision,
        precision.log(),
        scaled**2 * precision,
    ]
    found += [
        errors.mean(-1),
        errors.square().mean(-1),
        errors.prod(-1),
        errors.mean(-1) * scaled,
    ]
    log_precision = float(torch.digamma(torch.tensor(3.0))) - math.log(2.0)
    expected = torch.tensor(
        [0, 1, 0, 1, 0, 1.5, log_precision, 1.5, 0, 1, 0, 0], dtype=DOUBLE
    )
    assert_normal(z_of(torch.stack(found, -1), expected))


def test_a_step_is_those_of_its_kernel_given_the_precisions_and_then_a_draw_of_these(
    generator,
):
    target = posterior(batch_size=3, minibatches=Passes())
    inner, position = (
        SGHMC(0.05, 1.0, num_steps=2),
        torch.randn(3, target.dim, generator=generator),
    )
    kernel, first, second = (
        Gibbs(inner, num_steps=3),
        torch.Generator().manual_seed(1),
        torch.Generator().manual_seed(1),
    )
    with torch.no_grad():
        state = kernel.init(target, position, first)
        by_hand, precisions = (
            inner.init(target, position, second),
            dict.fromkeys(NAMES, torch.ones(3, dtype=DOUBLE)),
        )
        for _ in range(4):
            state, info = kernel.step(target, state, first)
            given = target.given(precisions)
            for _ in range(3):
                by_hand, inner_info = inner.step(given, by_hand, second)
            precisions = target.draw_hyperparameters(by_hand.position, second)
            assert (
                torch.equal(state.position, by_hand.position)
                and info.inner == inner_info
            )
            assert torch.equal(
                info.hyperparameters,
                torch.stack([precisions[name] for name in NAMES], -1),
            )
            assert {
                name: value.tolist() for name, value in state.hyperparameters.items()
            } == {name: value.tolist() for name, value in precisions.items()}
    # the minibatches go on where they were
    assert info.inner.num_gradients == 4 * 3 * 2
    # the posterior is as it was
    assert target.prior_precision == dict.fromkeys(NAMES, 1.0)


def test_a_run_starts_with_the_precisions_of_its_posterior(generator):
    target = posterior()
    values = {
        name: torch.tensor([1.0, 2.0, 3.0]) * (k + 1) for k, name in enumerate(NAMES)
    }
    state = Gibbs(SGHMC(0.05, 1.0)).init(
        target.given(values | {"2.bias": 7.0}), torch.zeros(3, target.dim), generator
    )
    assert {name: value.tolist() for name, value in state.hyperparameters.items()} == {
        "0.weight": [1, 2, 3],
        "0.bias": [2, 4, 6],
        "2.weight": [3, 6, 9],
        "2.bias": [7, 7, 7],
    }
    assert all(value.dtype == DOUBLE for value in state.hyperparameters.values())


@pytest.mark.usefixtures("known_by_name")
def test_hyperparameters_keep_their_names_when_they_are_drawn_in_another_order(
    tmp_path, monkeypatch
):
    """In the statistics, and in a run that is resumed."""
    target, start, kernel = (
        Hierarchy(torch.ones(3, 2, dtype=DOUBLE) * 5),
        torch.full((3, 1), 5.0, dtype=DOUBLE),
        Gibbs(HMC(0.3, 2)),
    )
    whole = sample(kernel, target, start, num_samples=20)
    mean, precision = whole.statistics["hyperparameters"].unbind(-1)
    assert mean.mean() > 1.5 > precision.mean()  # near 5/2 and 3.5/(2 + 25/4)
    step, steps = Gibbs.step, []

    def stopping(self, *arguments):
        steps.append(None)
        if len(steps) == 7:
            signal.raise_signal(signal.SIGINT)
        return step(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Gibbs, "step", stopping)
        with pytest.warns(UserWarning, match="interrupted after 7"):
            sample(
                kernel,
                target,
                start,
                num_samples=20,
                checkpoint=Checkpoint(tmp_path / "run.pt"),
            )
    resumed = sample(
        kernel,
        target,
        start,
        num_samples=20,
        checkpoint=Checkpoint(tmp_path / "run.pt"),
    )
    assert torch.equal(resumed.samples, whole.samples)
    assert torch.equal(
        resumed.statistics["hyperparameters"], whole.statistics["hyperparameters"]
    )


def test_what_is_wrong_with_the_inner_kernel_is_told():
    target = one_weight()[0]
    with pytest.warns(UserWarning, match=r"6 of 6.*max_depth = 2"):
        sample(
            Gibbs(NUTS(1e-3, max_depth=2)),
            target,
            torch.zeros(2, 1, dtype=DOUBLE),
            num_samples=3,
        )


def test_a_potential_without_hyperparameters_is_refused():
    with pytest.raises(
        ValueError,
        match=r"potential.*Hierarchical.*DoubleWell",
    ):
        sample(Gibbs(SGHMC(0.1, 1.0)), DoubleWell(), torch.zeros(2, 1), num_samples=3)
