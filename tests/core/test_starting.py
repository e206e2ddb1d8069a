"""Odd models, caught at the door: each mistake that a user may make gets a sentence
that says which it is, and no right model gets one.
"""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from booklib.models.hierarchical import HierarchicalNetwork
from booklib.runs.held import HeldMinibatch
from sgmc import sample
from sgmc.checks import agree
from sgmc.door import _models as models
from sgmc.door.starting import check_start
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD
from sgmc.models import Posterior
from sgmc.posteriors import (
    LinearRegression,
    LogisticRegression,
    NetworkPosterior,
)
from sgmc.potentials import Potential, differentiate
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture, NoisyGradient
from sgmc.tuning import adapt
from tests.fakes import Banana, Funnel, WithoutFloat64

GENERATOR = torch.Generator().manual_seed(0)
FEATURES, TARGETS = (
    torch.randn(20, 3, generator=GENERATOR),
    torch.randn(20, generator=GENERATOR),
)


def potential(energy, gradient=None, dim=2):
    """A user's potential."""
    members = {"energy": lambda self, position: energy(position), "dim": dim}
    if gradient is not None:
        members["gradient"] = lambda self, position: gradient(position)
    return type("Users", (Potential,), members)()


def formula(posterior, **formulas):
    """Give a posterior formulas for its gradients."""
    vars(posterior).update(formulas)
    return posterior


def posterior(log_likelihood, dim=3, data=(FEATURES, TARGETS), **settings):
    return Posterior(
        lambda position: -0.5 * position.pow(2).sum(-1),
        log_likelihood,
        data,
        dim,
        **settings,
    )


def squares(position, x, y):
    return -0.5 * (y - (x @ position[..., None])[..., 0]) ** 2


def dropping(position):
    return nn.functional.dropout(position, 0.5, training=True).pow(2).sum(-1)


def by_calls(calls=[]):  # noqa: B006
    calls.append(None)
    return len(calls)


class Ours(Posterior):
    """A posterior whose subclasses have a mistake in a method."""

    def __init__(self, dtype=torch.float32, times=1):
        data = FEATURES.to(dtype).repeat(times, 1), TARGETS.to(dtype).repeat(times)
        super().__init__(
            lambda p: -5 * p.square().sum(-1),
            squares,
            data,
            3,
            5 if times == 1 else 10 * times,
        )


def scaled(method, name="_gradient_of", times=1):
    return type("Scaled", (Ours,), {name: method})(times=times)


def drawn(scale, prior=1.0):
    """A potential that draws 5 of the 20 examples itself."""

    def gradient(self, position, chosen):
        ours = Ours(position.dtype)
        slope = ours._gradient_of(position, ours.gather(chosen), scale)
        return slope + (prior - 1) * 10 * position

    members = {
        "energy": lambda self, position: Ours(position.dtype).energy(position),
        "draw_minibatches": lambda self, position, generator, step, num_steps=1: (
            [torch.randint(20, (len(position), 5), generator=generator)] * num_steps
        ),
        "gradient_given": gradient,
        "dim": 3,
    }
    return type("Drawn", (Potential,), members)()


ODD = {  # a potential, how many coordinates, and what is said
    "energies in a column": (
        potential(lambda p: p.pow(2).sum(-1, keepdim=True)),
        r"energy .*one number a chain, \(3,\).*\(3, 1\)",
    ),
    "one energy for each coordinate": (
        potential(lambda p: p.pow(2)),
        r"energy .*\(3, 2\).*\.sum\(-1\)",
    ),
    "an energy that is whole": (
        potential(lambda p: p.sum(-1).long(), lambda p: p),
        r"energy .*\(3,\) of torch.int64",
    ),
    "chains that are mixed": (
        potential(lambda p: (p - p.mean(0)).pow(2).sum(-1)),
        "one chain depends on where the other chains are",
    ),
    "dropout": (
        potential(dropping, dim=50),
        "not the same when it is computed twice.*dropout in training mode",
    ),
    "a gradient with the wrong sign": (
        potential(lambda p: p.pow(2).sum(-1) / 2, lambda p: -p),
        "gradient is .*sign, factors",
    ),
    "a coordinate in a hundred without a gradient": (
        potential(
            lambda p: (p[:, :99].pow(2).sum(-1) + 3 * (1 + p[:, 99].detach()) ** 2) / 2,
            dim=100,
        ),
        r"\[99\].*cut off",
    ),
    "a gradient that lacks one coordinate": (
        potential(
            lambda p: p.pow(2).sum(-1) / 2, lambda p: p * torch.tensor([1.0, 0.0])
        ),
        "gradient is -?0 in coordinate 1,",
    ),
    "an energy changed, and not what goes with it": (
        type(
            "Tilted",
            (Gaussian,),
            {"energy": lambda self, p: super(type(self), self).energy(p) + p[:, 0]},
        )(torch.eye(2)),
        "energy is .*differentiation of its energy",
    ),
    "a log-likelihood transposed": (
        posterior(lambda p, x, y: squares(p, x, y).mT, batch_size=3),
        r"one number for each example, .*\(3, 4\), but it returned \(4, 3\)",
    ),
    "a log-likelihood summed": (
        posterior(lambda p, x, y: squares(p, x, y).sum(-1)),
        r"one value per chain and example, \(3, 16\), but it .*\(3,\)",
    ),
    "targets that broadcast": (
        posterior(
            lambda p, x, y: (
                -0.5 * ((y[..., None] - (x @ p[..., None]).mT) ** 2).sum(-1)
            ),
            batch_size=5,
        ),
        "depends on the others of its minibatch",
    ),
    "a lag that is taken in the batch": (
        posterior(lambda p, x, y: squares(p, x, y - y.roll(1, -1) * (y != y[:, :1]))),
        "depends on the others of its minibatch.*a lag is a column of the data",
    ),
    "an example that reads all before it": (
        posterior(lambda p, x, y: squares(p, x, y.cumsum(-1)), batch_size=5),
        "depends on the others of its minibatch",
    ),
    "a formula that is wrong for one example of a class of its own": (
        formula(
            posterior(
                lambda p, x, k: k * squares(p, x, k),
                data=(FEATURES.repeat(50, 1), 1.0 + (torch.arange(1_000) == 777)),
            ),
            grad_log_likelihood=lambda p, x, k: (
                x * (k - (x @ p[..., None])[..., 0])[..., None]
            ).sum(1),
        ),
        "gradient is .*sign, factors",
    ),
    "a coordinate in a hundred that is cut off": (
        posterior(
            lambda p, x, y: squares(p[:, :3] + p[:, 99:].detach(), x, y), dim=100
        ),
        r"\[99\].*likelihood.*cut off",
    ),
    "a formula that scales the prior": (
        scaled(
            lambda self, p, batch, scale: scale * Ours._gradient_of(self, p, batch, 1)
        ),
        "multiply the likelihood by the scale, and not the prior",
    ),
    "a formula that scales a prior which minibatches of thousands hide": (
        scaled(
            lambda self, p, batch, scale: scale * Ours._gradient_of(self, p, batch, 1),
            times=1_000,
        ),
        "N/n = 2 .* and not the prior",
    ),
    "an example that is weighed by its place": (
        posterior(
            lambda p, x, y: squares(p, x, y) * (1 + torch.arange(y.shape[1]) % 2),
            batch_size=8,
        ),
        "depends on the others of its minibatch.* in another order",
    ),
    "an energy that scales the prior": (
        scaled(
            lambda self, p, b, scale: scale * Ours._energy_of(self, p, b, 1),
            "_energy_of",
        ),
        "multiply the likelihood by the scale, and not the prior",
    ),
    "an energy that forgets N/n, beside a right gradient": (
        type(
            "Unscaled",
            (Ours,),
            {
                "_energy_of": lambda self, p, b, scale: Ours._energy_of(
                    self, p, b, 1.0
                ),
                "_gradient_of": lambda self, p, b, scale: differentiate(
                    lambda x: Ours._energy_of(self, x, b, scale), p
                )[1],
            },
        )(),
        "energy is .*N/n = .*multiply the likelihood by the scale",
    ),
    "a minibatch's gradient that forgets N/n": (
        scaled(
            lambda self, p, i: Ours._gradient_of(self, p, self.gather(i), 1.0),
            "gradient_given",
        ),
        "N/n = 4 .* multiply the likelihood by the scale",
    ),
    "a minibatch's energy that forgets N/n": (
        scaled(
            lambda self, p, i: Ours._energy_of(self, p, self.gather(i), 1.0),
            "energy_given",
        ),
        "N/n = 4 .* multiply the likelihood by the scale",
    ),
    "a potential's own minibatches without N/n": (
        drawn(1.0),
        r"on average 0\.5\d* times the gradient of all the data",
    ),
    "a potential's own minibatches that scale the prior": (
        drawn(4.0, 4.0),
        r"on average [23]\.\d* times the gradient of all the data",
    ),
    "a start where the prior is zero": (
        Posterior(
            lambda p: torch.where(p[:, 0] > 9, 0.0, -math.inf),
            squares,
            (FEATURES, TARGETS),
            3,
        ),
        "log_prior is not finite at the start, but -inf: has each parameter with a "
        "border",
    ),
    "a start where the likelihood is zero": (
        posterior(
            lambda p, x, y: torch.where(p[:, :1] > 9, squares(p, x, y), -math.inf)
        ),
        "log_likelihood is not finite at the start, but -inf",
    ),
    "a likelihood that is cut off": (
        posterior(lambda p, x, y: squares(p.detach(), x, y)),
        r"\[0, 1, 2\].*likelihood.*cut off",
    ),
    "a formula for the prior's gradient that lacks a factor": (
        formula(
            Posterior(
                lambda p: -500 * p.pow(2).sum(-1), squares, (FEATURES, TARGETS), 3
            ),
            grad_log_prior=lambda p: -500 * p,
        ),
        "gradient is .*sign, factors",
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    "run",
    [lambda *of: sample(SGLD(1e-3), *of, 2), lambda *of: adapt(NUTS(1.0), *of, 20)],
    ids=["sample", "adapt"],
)
def test_an_odd_model_is_caught_at_the_door(name, run):
    odd, message = ODD[name]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        run(odd, torch.zeros(3, odd.dim))  # where a wrong sign makes no difference


def network(dtype=torch.float32, make=NetworkPosterior, **settings):
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return make(module, FEATURES.to(dtype), (TARGETS > 0).long(), **settings)


def regression(dtype, **settings):
    return LinearRegression(FEATURES.to(dtype), TARGETS.to(dtype), **settings)


POSTERIOR = regression(torch.float32, batch_size=5)
OF_EACH_CHAIN = {
    name: torch.tensor([1.0, 2.0, 3.0, 4.0])
    for name in ("0.weight", "0.bias", "2.weight", "2.bias")
}


class Weighed(LinearRegression):
    """Minibatches that are not uniform, and gradients that allow for it."""

    def __init__(self, dtype):
        super().__init__(FEATURES.to(dtype), TARGETS.to(dtype), batch_size=5)
        self.chance = torch.linspace(0.5, 1.5, 20, dtype=dtype) / 20

    def draw_minibatches(self, position, generator, step, num_steps=1):
        chances = self.chance.expand(num_steps * len(position), -1)
        chosen = torch.multinomial(chances, 5, True, generator=generator)
        return chosen.view(num_steps, len(position), 5)

    def gradient_given(self, position, minibatch):
        if minibatch is None:
            return super().gradient_given(position, minibatch)
        x, y = self.gather(minibatch)
        residuals = y - (x * position[:, None]).sum(-1)
        weights = residuals / self.chance[minibatch] / 5
        return position - (weights[..., None] * x).sum(1)


RIGHT = {  # a potential of a dtype, and how many coordinates
    "double well": (lambda dtype: DoubleWell(), 1),
    "Gaussian": (
        lambda dtype: Gaussian(torch.diag(torch.logspace(-6, 6, 5, dtype=dtype))),
        5,
    ),
    "banana": (lambda dtype: Banana(), 2),
    "funnel": (lambda dtype: Funnel(dim=3), 3),
    "25 modes": (lambda dtype: GaussianMixture(GaussianMixture().means.to(dtype)), 2),
    "noisy": (lambda dtype: NoisyGradient(DoubleWell(), 4.0), 1),
    "linear regression": (lambda dtype: regression(dtype, batch_size=5), 3),
    "network": (lambda dtype: network(dtype, batch_size=4), 26),
    "a network whose chains have priors of their own": (
        lambda dtype: network(dtype, HierarchicalNetwork).given(OF_EACH_CHAIN),
        26,
    ),
    "a minibatch for each chain": (
        lambda dtype: HeldMinibatch(regression(dtype), torch.arange(12).reshape(4, 3)),
        3,
    ),
    "functions": (
        lambda dtype: posterior(
            squares, data=(FEATURES.to(dtype), TARGETS.to(dtype)), batch_size=5
        ),
        3,
    ),
    "examples that are drawn by their weight": (lambda dtype: Weighed(dtype), 3),
    "minibatches of its own": (lambda dtype: drawn(4.0), 3),
    "a model without an energy": (
        lambda dtype: type(
            "Blind", (Potential,), {"gradient": lambda self, position: position}
        )(),
        2,
    ),
    "an energy that cannot be differentiated": (
        lambda dtype: potential(
            lambda p: torch.from_numpy((p.numpy() ** 2).sum(-1)) / 2, lambda p: p
        ),
        2,
    ),
    "an end of the support": (
        lambda dtype: potential(
            lambda p: torch.where(p[:, 0] > 0, math.inf, p.pow(2).sum(-1)),
            lambda p: 2 * p,
        ),
        2,
    ),
    "a density that raises beyond its support": (
        lambda dtype: potential(
            lambda p: -torch.distributions.Exponential(1.0).log_prob(-p).sum(-1)
        ),
        2,
    ),
}


# Parameters that are cut off, and such as only seem so


class Body(nn.Module):
    """A network of which some is out of sight of the gradient."""

    def __init__(self, hide):
        super().__init__()
        self.words, self.body = nn.Embedding(300, 2), nn.Linear(2, 6)
        self.unused, self.head, self.hide = nn.Linear(2, 2), nn.Linear(6, 2), hide
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, words):
        hidden = torch.relu(self.body(self.words(words).mean(-2)))
        if self.hide == "detach":
            hidden = hidden.detach()
        if self.hide == "item":
            return self.scale.detach() * self.head(hidden)
        with torch.set_grad_enabled(self.hide != "no_grad"):
            hidden = hidden + 1
        return self.scale * self.head(hidden)


WORDS = torch.randint(200, (40, 5), generator=GENERATOR)


@pytest.mark.parametrize(
    ("hide", "names"),
    [
        ("detach", "'words.weight', 'body.weight', 'body.bias'"),
        ("no_grad", "'words.weight', 'body.weight', 'body.bias'"),
        ("item", "'scale'"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("chains", [1, 4])
def test_parameters_that_the_gradient_does_not_see_are_named(hide, names, chains):
    """And no others: rows of words that no example has, layers that are not used."""
    module = Body(hide)
    posterior = NetworkPosterior(module, WORDS, WORDS[:, 0] % 2, batch_size=20)
    start = posterior.initial_position(chains, torch.Generator().manual_seed(1))
    if not names:
        check_start(posterior, start, seed=0)
        return
    with pytest.raises(ValueError, match=rf"\[{names}\] .* requires_grad_\(False\)"):
        check_start(posterior, start, seed=0)


@pytest.mark.parametrize("chains", [1, 4])
def test_units_that_are_off_are_not_cut_off(chains):
    """Most of the units are beyond their kink for all examples, some only just."""
    module = nn.Sequential(nn.Linear(3, 200), nn.ReLU(), nn.Linear(200, 2))
    posterior = NetworkPosterior(module, FEATURES, (TARGETS > 0).long(), batch_size=10)
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        start = posterior.initial_position(chains, generator)
        start[:, 600:800] = -3 * torch.rand(200, generator=generator)
        check_start(posterior, start, seed)


def test_units_at_their_kink_are_not_cut_off():
    """The shortest way, too, switches half of those on that are off."""
    module = nn.Sequential(nn.Linear(3, 50), nn.ReLU(), nn.Linear(50, 2))
    posterior = NetworkPosterior(module, FEATURES, (TARGETS > 0).long(), batch_size=10)
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        start = posterior.initial_position(1, generator)
        start[:, :150], start[:, 150:200] = 0.0, -1e-6
        with torch.no_grad():
            few = models.few_examples(posterior)
            each = lambda x, few=few: posterior.log_likelihoods(x, few)
            pieces = posterior.parameters_of(torch.arange(posterior.dim))
            models._check_slope("likelihood", each, start, generator, pieces)


def test_gradients_that_cancel_are_not_cut_off():
    """One example of each class is surely taken for the other: at inputs in the
    thousands probabilities are 0 and 1 exactly, and slopes whole numbers.
    """
    inputs = 1_000 * torch.tensor([[-2.0], [-1.0], [1.0], [2.0]], dtype=torch.float64)
    module = nn.Linear(1, 2, dtype=torch.float64)
    posterior = NetworkPosterior(module, inputs, torch.arange(4) % 2)
    start = torch.tensor([[-1.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    slope = posterior._gradient_of(start, models.few_examples(posterior), 1.0)
    assert (slope[0, 2:] == 0).all()
    for seed in range(5):
        check_start(posterior, start, seed)


def test_minibatches_are_compared_close_to_the_start_where_far_away_is_no_density():
    class Bounded(type(drawn(1.0))):
        def energy(self, position):
            if (position.abs() > 2).any():
                raise ValueError("beyond the support")
            return super().energy(position)

    with pytest.raises(ValueError, match=r"on average 0\.\d+ times the gradient"):
        check_start(Bounded(), torch.full((3, 3), 0.5), seed=0)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_right_model_is_let_through(name, dtype):
    """With one chain and with many, from a place of symmetry and from anywhere."""
    make, dim = RIGHT[name]
    for chains in (
        (4,)
        if name
        in (
            "a network whose chains have priors of their own",
            "a minibatch for each chain",
        )
        else (1, 2, 4)
    ):
        for scale in (0.0, 1.0):
            start = scale * torch.randn(
                chains, dim, generator=torch.Generator().manual_seed(1), dtype=dtype
            )
            start = -start.abs() if "support" in name else start
            check_start(make(dtype), start, seed=0)


def test_the_door_neither_reads_nor_moves_the_global_generator():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    check_start(POSTERIOR, torch.zeros(4, 3), seed=0)
    assert torch.equal(torch.get_rng_state(), before)


# Data


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_example_that_is_no_number_is_named_before_a_minibatch_finds_it(value):
    features = FEATURES.repeat(500, 1)
    features[7_123, 1] = features[9_000, 0] = value
    odd = posterior(squares, data=(features, TARGETS.repeat(500)), batch_size=10)
    with pytest.raises(
        ValueError,
        match=r"NaN.*7123.*1 more",
    ):
        sample(SGHMC(1e-3, 1.0), odd, torch.zeros(2, 3), 2)


@pytest.mark.parametrize("seen_by_torch", [True, False])
def test_data_that_were_changed_in_place_are_noticed_before_a_run(seen_by_torch):
    features = FEATURES.numpy().copy()
    data = torch.from_numpy(features), TARGETS.clone()
    changed = LinearRegression(*data, batch_size=5)
    run = lambda potential: sample(SGLD(1e-3), potential, torch.zeros(2, 3), 2)
    assert run(changed).complete
    if seen_by_torch:
        data[1][7] += 1.0
    else:  # behind the back of PyTorch
        features[:] -= 5.0
    with pytest.raises(ValueError, match="data were changed in place"):
        run(changed)
    assert run(LinearRegression(*data, batch_size=5)).complete
    # tensors of a copy count their changes anew, as those that travelled do
    for copied in (copy.copy(changed), pickle.loads(pickle.dumps(changed))):
        assert run(copied).complete


@pytest.mark.parametrize("change", ["one", "sign", "swap"])
def test_one_row_of_much_data_that_numpy_changed_is_noticed_whichever_it_is(change):
    """In the last bit, or two rows exchanged; of a transposed array, too."""
    numbers = np.random.default_rng(0).normal(size=(7, 20_011)).astype(np.float32)
    features, targets = numbers.T, np.arange(20_011) % 2
    data = torch.from_numpy(features), torch.from_numpy(targets.astype(np.float32))
    changed = LogisticRegression(*data, batch_size=5)
    start = torch.zeros(1, 7)
    check_start(changed, start, 0)
    for row in (0, 1, 777, 20_009, 20_010):
        before = features.copy()
        if change == "one":
            features[row, 3] = np.nextafter(features[row, 3], np.float32(9))
        elif change == "sign":
            features[row] *= -1
        else:
            features[[row, 5_000]] = features[[5_000, row]]
        with pytest.raises(ValueError, match="data were changed in place"):
            check_start(changed, start, 0)
        features[:] = before
        check_start(changed, start, 0)


def test_of_data_larger_than_memory_evenly_chosen_examples_are_looked_at(monkeypatch):
    monkeypatch.setattr("sgmc.checks.MEMORY", 1_000)
    features = np.ones((1_000, 1), np.float32)  # four times as much
    changed = LinearRegression(torch.from_numpy(features), torch.ones(1_000))
    seen = []
    for row in range(12):
        features[row] = 2.0
        try:
            check_start(changed, torch.zeros(1, 1), 0)
        except ValueError:
            seen.append(row)
        features[row] = 1.0
    assert seen == [0, 4, 8]


def test_no_float64_is_made_on_a_device_without_it():
    for make in (
        lambda: network(batch_size=4),
        lambda: regression(torch.float32, batch_size=5),
        lambda: posterior(squares, batch_size=5),
        lambda: NoisyGradient(Gaussian.standard(3), 4.0),
    ):
        potential = make()
        with WithoutFloat64():
            check_start(potential, torch.zeros(2, potential.dim or 3), seed=0)


def test_a_model_may_know_what_to_do_with_missing_numbers():
    observed = TARGETS.clone()
    observed[3] = math.nan
    missing = posterior(
        lambda p, x, y: torch.where(y.isnan(), 0.0, squares(p, x, y.nan_to_num())),
        data=(FEATURES, observed),
        batch_size=4,
    )
    assert sample(SGHMC(1e-3, 1.0), missing, torch.zeros(2, 3), 2).complete


# Errors on wild trajectories


class Scale(Potential):
    """A Gaussian, with an object in it that refuses a scale that has underflown to zero
    or overflown.
    """

    dim = 1

    def energy(self, position):
        torch.distributions.Normal(0.0, (40 * position.detach()).exp())
        return 0.5 * position.pow(2).sum(-1)


@pytest.mark.filterwarnings("ignore:.*trees .* diverged")
@pytest.mark.parametrize("kernel", [NUTS(1.0), HMC(0.7, 3)], ids=["NUTS", "HMC"])
def test_an_error_on_a_wild_trajectory_is_a_divergence_of_that_chain_alone(kernel):
    """The scale is 0 below θ = −2.6, where no chain ever is."""
    start = torch.linspace(-1, 1, 8)[:, None]
    with pytest.warns(
        UserWarning,
        match=r"ValueError.*trajectory.*Expected parameter scale",
    ):
        draws = sample(kernel, Scale(), start, 200)
    assert draws.complete and draws.samples.min() > -2.6
    assert (draws.samples[0] != draws.samples[-1]).all()
    if isinstance(kernel, NUTS):
        assert 0 < draws.statistics["diverged"].double().mean() < 1


def test_an_error_that_every_chain_has_is_raised_as_it_is():
    """It is not where a chain went that made it."""

    class Broken(DoubleWell):
        left = 30

        def energy(self, position):
            self.left -= 1
            if self.left < 0:
                raise ValueError("broken")
            return super().energy(position)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="ValueError: broken"):
            sample(HMC(0.1, 3), Broken(), torch.zeros(4, 1), 100)


def test_a_likelihood_that_raises_beyond_its_support_is_let_through():
    """And one whose support ends at its data, near which the chains start."""
    exponential = torch.distributions.Exponential
    raises = posterior(
        lambda p, x, y: exponential(p).log_prob(y.abs()), dim=1, batch_size=5
    )
    for start in (1e-4, 1.0):
        check_start(raises, torch.full((2, 1), start), seed=0)
    ends = posterior(
        lambda p, x, y: torch.where(y.abs() < p, -p.log(), -math.inf),
        dim=1,
        batch_size=5,
    )
    check_start(ends, TARGETS.abs().max() + torch.full((2, 1), 1e-3), seed=0)


# Limits of what is let through, where the right ones are known


def test_energy_and_gradient_together_give_the_gradient_too():
    class Twice(DoubleWell):
        def energy_and_gradient(self, position):
            energy, gradient = super().energy_and_gradient(position)
            return energy, 2 * gradient

    with pytest.raises(ValueError, match=r"gradient is .*differentiation"):
        check_start(Twice(), torch.zeros(2, 1), seed=0)


class Factor(Gaussian):
    """Minibatches with which the gradient of each chain has a factor of its own."""

    def __init__(self, factors):
        super().__init__(torch.diag(torch.tensor([1.0, 9.0])))
        self.factors, self.drawn = factors, 0

    def draw_minibatches(self, position, generator, step, num_steps=1):
        self.drawn += num_steps
        return [self.factors(self.drawn - 1)] * num_steps

    def gradient_given(self, position, minibatch):
        along = position / torch.tensor([1.0, 9.0])
        # what is across is no matter
        across = along.flip(-1) * torch.tensor([1.0, -1.0])
        return torch.as_tensor(minibatch)[..., None] * along + 7 * across


def minibatches(factors):
    potential = Factor(factors)
    generator = torch.Generator().manual_seed(0)
    models.check_minibatches(potential, torch.zeros(2, 2), generator)
    return potential


@pytest.mark.parametrize("factor", [0.74, 1.26, 40.0, -1.0])
def test_a_factor_of_minibatches_is_told_from_a_quarter_on(factor):
    with pytest.raises(ValueError, match=f"on average {factor:.3g} times the gradient"):
        minibatches(lambda k: factor)
    # the mean over chains
    with pytest.raises(ValueError, match=f"on average {factor:.3g} times the gradient"):
        minibatches(lambda k: [factor - 0.5, factor + 0.5])
    right = 1 + 0.24 * math.copysign(1, factor - 1)
    assert minibatches(lambda k: right).drawn == 2 * 64  # at both distances
    minibatches(lambda k: [right - 3, right + 3])


def test_a_factor_of_minibatches_is_told_from_eight_errors_of_64_on():
    """That is from a standard deviation on, here of 1.3 ± s by turns."""
    of_many = 0.3 * (63 / 64) ** 0.5
    with pytest.raises(ValueError, match=r"on average 1\.3 times"):
        minibatches(lambda k: 1.3 + 0.98 * of_many * (-1) ** k)
    minibatches(lambda k: 1.3 + 1.02 * of_many * (-1) ** k)


def test_minibatches_that_a_posterior_draws_itself_are_looked_at():
    class Forgotten(Weighed):
        def gradient_given(self, position, minibatch):
            found = super().gradient_given(position, minibatch)
            return found if minibatch is None else (found - position) / 4 + position

    with pytest.raises(ValueError, match=r"on average 0\.\d+ times the gradient"):
        check_start(Forgotten(torch.float32), torch.zeros(2, 3), seed=0)


@pytest.mark.parametrize(
    ("size", "number"), [(None, 32), (1, 4), (4, 4), (10, 10), (60, 32)]
)
def test_a_model_is_looked_at_on_as_many_examples_as_a_minibatch_has(size, number):
    """From four to 32, all of them different."""
    data = torch.randn(4, 60, generator=torch.Generator().manual_seed(0)).unbind()
    made = posterior(lambda p, *x: None, data=data, batch_size=size)
    found = models.few_examples(made)
    assert {x.shape for x in found} == {(1, number)}
    assert all(len(x.unique()) == number for x in found)
    assert {float(data[-1].min()), float(data[-2].min())} <= {
        *found[-1][0].tolist(),
        *found[-2][0].tolist(),
    }


def test_one_example_alone_may_be_all_the_data():
    for number in (1, 2, 3):
        data = FEATURES[:number], TARGETS[:number]
        check_start(posterior(squares, data=data), torch.zeros(2, 3), seed=0)


def test_results_agree_up_to_a_root_of_the_precision():
    """Relative to one more than a number of a chain, or to the number and the largest."""
    for dtype in (torch.float32, torch.float64):
        eps = torch.finfo(dtype).eps
        for root in (2, 3):
            for far, same in ((0.98, True), (1.02, False)):
                off = far * eps ** (1 / root)
                for sign in (1, -1):
                    one = torch.tensor([0.0, 9.0], dtype=dtype)
                    change = torch.tensor([0.0, sign * 10 * off], dtype=dtype)
                    assert agree(one + change, one, root) == same
                    wide = torch.tensor([[0.0, 1.0], [-4.0, 3.0]], dtype=dtype)
                    change = torch.zeros(2, 2, dtype=dtype)
                    change[1, 1] = sign * 7 * off
                    assert agree(wide + change, wide, root) == same
    x = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    assert agree(x, x.clone()) and not agree(x, x.flip(0)) and not agree(-x, x)
    assert not agree(x.nan_to_num(nan=0.0), x) and not agree(x, x.nan_to_num(nan=0.0))
    assert agree(None, None) and not agree(x, None) and not agree(None, x)
    assert agree(torch.tensor([1.0 + 3e-4]), torch.tensor([1.0]))
    assert not agree(torch.tensor([1.0 + 8e-4]), torch.tensor([1.0]))


def test_a_place_near_the_start_is_nearer_where_that_is_not_finite():
    start = torch.tensor([[0.0, -9.0], [1.0, 0.0]])
    direction = (1 + start.abs()) * torch.randn(
        2, 2, generator=torch.Generator().manual_seed(5)
    )

    def visited(bad, how):
        places = []

        def function(place):
            places.append(place)
            if len(places) <= bad and how == "raises":
                raise ValueError("beyond the support")
            wrong = torch.tensor([0.0, how]) if len(places) <= bad else place
            return [place, wrong]

        generator = torch.Generator().manual_seed(5)
        near, found = models.within(function, start, generator)
        for place, distance in zip(places, (0.1, 0.001, 0.0), strict=False):
            torch.testing.assert_close(place, start + distance * direction)
        assert near is places[-1]
        return len(places), found

    for how in (math.nan, math.inf, "raises"):
        for bad in (0, 1, 2):
            number, found = visited(bad, how)
            assert number == bad + 1 and len(found) == 2
    assert visited(3, "raises") == (3, None)
    with pytest.raises(TypeError, match="no density"):
        models.within(
            lambda place: (_ for _ in ()).throw(TypeError("no density")),
            start,
            torch.Generator(),
        )


def test_any_chain_may_depend_on_any_neighbour():
    for one in range(4):
        for other in range(4):
            if (one + other) % 2:
                to = torch.zeros(4, 4).index_put(
                    (torch.tensor(one), torch.tensor(other)), torch.tensor(1.0)
                )
                odd = potential(
                    lambda p, to=to: (torch.eye(4) + to) @ p.square().sum(-1)
                )
                with pytest.raises(ValueError, match="where the other chains are"):
                    check_start(odd, torch.zeros(4, 2), seed=0)

    def waits(p):
        if (p[0] == 0).all() != (p[1] == 0).all():
            raise ValueError("chains must move together")
        return p.square().sum(-1)

    with pytest.raises(ValueError, match="where the other chains are"):
        check_start(potential(waits), torch.zeros(2, 2), seed=0)
    for number in (3, 5):
        check_start(POSTERIOR, torch.zeros(number, 3), seed=0)


def test_an_energy_without_end_at_the_start_is_left_to_the_kernel():
    inside = lambda p: torch.where(p[:, 0] > 5, p.square().sum(-1), math.inf)
    for start in (torch.zeros(2, 2), torch.tensor([[0.0, 0], [9, 0]])):
        check_start(potential(inside, lambda p: 2 * p), start, seed=0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((POSTERIOR, torch.zeros(1, 2)), "position .*2 coordinates.*dim = 3"),
        (
            (potential(lambda p: p.sum(-1), lambda p: p.double()), torch.zeros(1, 2)),
            r"gradient is \(1, 2\) of torch.float64.*position is \(1, 2\)",
        ),
        (
            (
                potential(lambda p: p.sum(-1), lambda p: 1 / p, 1),
                torch.tensor([[1.0], [1], [0], [0]]),
            ),
            "not finite in chain 2",
        ),
    ],
)
def test_what_is_no_start_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        check_start(*given, 0)


@pytest.mark.parametrize("name", ["stochastic_gradient", "gradient_and_noise_variance"])
def test_a_method_that_kernels_never_call_is_named_with_those_that_they_do(name):
    noisy = type("Noisy", (DoubleWell,), {name: lambda self, *_: None})
    told = (
        f"Noisy defines {name}, which .*: write draw_minibatches, gradient_given and "
        "gradient_and_variance_given$"
    )
    with pytest.raises(ValueError, match=told):
        check_start(noisy(), torch.zeros(2, 1), 0)
