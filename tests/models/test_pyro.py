"""Pyro programs as potentials: against Pyro's own density, against enumeration, against
the same model without Pyro.
"""

import importlib
import itertools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pyro
import pyro.distributions as dist
import pytest
import torch
from pyro.infer.mcmc.util import initialize_model
from pyro.nn import PyroModule, PyroSample
from pyro.poutine.subsample_messenger import SubsampleMessenger
from torch import nn
from torch.distributions import biject_to, constraints
from torch.func import functional_call

from sgmc import models, sample
from sgmc.checkpoints import fingerprint
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD
from sgmc.minibatches import Passes
from sgmc.models.pyro_model import PyroPosterior
from sgmc.posteriors import NetworkPosterior
from sgmc.tuning import adapt
from tests.checks import z_bound

DOUBLE = torch.float64


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(DOUBLE)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def data(generator):
    inputs = torch.randn(7, 2, generator=generator, dtype=DOUBLE)
    return (
        inputs,
        torch.tensor([0, 1, 2, 0, 1, 2, 0]),
        torch.randn(7, generator=generator, dtype=DOUBLE),
    )


def hierarchy(inputs, group, targets, n=3):
    """A regression with an intercept for each of three groups; every kind of site."""
    slope = pyro.sample("slope", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    mean, spread = (
        pyro.sample("mean", dist.Normal(0.0, 5.0)),
        pyro.sample("spread", dist.HalfCauchy(5.0)),
    )
    with pyro.plate("groups", 3):
        intercept = pyro.sample("intercept", dist.Normal(mean, spread))
    pyro.deterministic("highest", intercept.max())
    shares = pyro.sample("shares", dist.Dirichlet(torch.ones(2)))
    pyro.factor("soft", -(slope.sum() ** 2))
    with pyro.plate("data", len(targets), subsample_size=n) as i:
        pyro.sample(
            "target",
            dist.Normal(inputs[i] @ (slope * shares) + intercept[group[i]], 1.0),
            obs=targets[i],
        )


def free_of(posterior, position):
    return posterior.parameters.cut(position)


def test_the_energy_is_that_of_pyro(data, generator):
    posterior = PyroPosterior(hierarchy, *data, None)  # no subsampling: all the data
    _, potential, _, _ = initialize_model(hierarchy, (*data, None))
    position = posterior.initial_position(4, generator)
    for chain in range(4):
        free = {
            name: value[0]
            for name, value in free_of(posterior, position[chain : chain + 1]).items()
        }
        torch.testing.assert_close(
            posterior.energy(position)[chain], potential(free), rtol=1e-10, atol=1e-10
        )
    torch.testing.assert_close(
        PyroPosterior(hierarchy, *data).full().energy(position),
        posterior.energy(position),
    )


def test_a_minibatch_is_that_of_pyro(data, generator):
    """Pyro with the very minibatch: a plate of N that shows these examples scales them
    by N/n.
    """
    posterior = PyroPosterior(hierarchy, *data)
    position, indices = (
        posterior.initial_position(3, generator),
        torch.tensor([[0, 1, 2], [6, 3, 5], [1, 4, 0]]),
    )
    values = posterior.named(position)
    for chain in range(3):
        sites = {
            name: value[chain] for name, value in values.items() if name != "highest"
        } | {"data": indices[chain]}
        log_density = (
            pyro.poutine.trace(pyro.poutine.condition(hierarchy, data=sites))
            .get_trace(*data)
            .log_prob_sum()
        )
        sticks = posterior.parameters.cut(position)["shares"][chain]
        onto = biject_to(constraints.simplex)
        log_jacobian = values["spread"][chain].log() + onto.log_abs_det_jacobian(
            sticks, onto(sticks)
        )
        torch.testing.assert_close(
            posterior.energy_given(position, indices)[chain],
            -log_density - log_jacobian,
            rtol=1e-10,
            atol=1e-10,
        )


def test_the_mean_over_all_minibatches_is_the_gradient(data, generator):
    posterior = PyroPosterior(hierarchy, *data)
    assert (posterior.num_examples, posterior.batch_size) == (7, 3)
    subsets = torch.tensor(list(itertools.combinations(range(7), 3)))
    position = (
        posterior.initial_position(1, generator).expand(len(subsets), -1).contiguous()
    )
    gradients = posterior.gradient_given(position, subsets)
    assert gradients.std(0).max() > 0.01  # they are noisy
    torch.testing.assert_close(
        gradients.mean(0), posterior.gradient(position[:1])[0], rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(
        posterior.gradient(position[:1]), posterior.full().gradient(position[:1])
    )


def test_chains_together_are_chains_alone_and_see_their_own_minibatches(
    data, generator
):
    posterior = PyroPosterior(hierarchy, *data, minibatches=Passes())
    position = posterior.initial_position(4, generator)
    (indices,) = posterior.draw_minibatches(position, generator, 1)
    assert torch.equal(indices, Passes().indices(7, 3, 4, generator.initial_seed(), 1))
    together = posterior.gradient_given(position, indices)
    alone = [
        posterior.gradient_given(position[c : c + 1], indices[c : c + 1])
        for c in range(4)
    ]
    torch.testing.assert_close(together, torch.cat(alone))
    # nothing in it is random
    assert torch.equal(together, posterior.gradient_given(position, indices))


def test_names_there_and_back(data, generator):
    posterior = PyroPosterior(hierarchy, *data)
    position = posterior.initial_position(5, generator)
    named = posterior.named(position)
    assert {name: tuple(value.shape) for name, value in named.items()} == {
        "slope": (5, 2), "mean": (5,), "spread": (5,), "intercept": (5, 3), "highest": (5,), "shares": (5, 2),
    }  # fmt: skip
    torch.testing.assert_close(named.pop("highest"), named["intercept"].amax(-1))
    torch.testing.assert_close(posterior.position(named), position)
    assert (named["spread"] > 0).all()
    torch.testing.assert_close(named["shares"].sum(-1), torch.ones(5))
    with pytest.raises(ValueError, match=r"inside.*supports"):
        posterior.position(named | {"spread": torch.zeros(5)})
    with pytest.raises(ValueError, match=r"values.*slope"):
        posterior.position({})


def test_a_support_that_depends_on_another_site(generator):
    """A uniform number below another: the map has to be made anew at every position, or
    half of the Jacobian is lost.
    """

    def program():
        high = pyro.sample("high", dist.LogNormal(0.0, 0.5))
        pyro.sample("low", dist.Uniform(0.0, high))

    posterior = PyroPosterior(program)
    draws = sample(
        NUTS(0.8),
        posterior,
        posterior.initial_position(256, generator, 0.5),
        20,
        warm_up=20,
        collect=posterior.named,
    )
    # uniform on (0, 1), and independent of the other
    share = draws.samples["low"] / draws.samples["high"]
    for values, expected in (
        (share, 1 / 2),
        (share.square(), 1 / 3),
        (draws.samples["high"].log(), 0.0),
    ):
        averages = values.mean(0)
        assert abs(
            float((averages.mean() - expected) / (averages.std() / 16))
        ) < z_bound(3)


LAWS = {
    "normal": dist.Normal(0.0, 1.0),
    "half-normal": dist.HalfNormal(1.0),
    "beta": dist.Beta(2.0, 3.0),
    "gamma, many": dist.Gamma(2.0, 3.0).expand([2, 3]).to_event(2),
    "uniform": dist.Uniform(-1.0, 2.0),
    "pareto": dist.Pareto(1.0, 3.0),
    "dirichlet": dist.Dirichlet(torch.ones(3, dtype=DOUBLE)),
    "correlations": dist.LKJCholesky(3, 2.0),
    "vector": dist.MultivariateNormal(
        torch.zeros(2, dtype=DOUBLE), torch.eye(2, dtype=DOUBLE)
    ),
    "ordered": dist.TransformedDistribution(
        dist.Normal(0.0, 1.0).expand([3]).to_event(1),
        [dist.transforms.OrderedTransform()],
    ),
    "truncated": dist.TruncatedPolyaGamma(torch.tensor(1.0, dtype=DOUBLE)),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_have_pyros_density(name, generator):
    def program():
        pyro.sample("x", LAWS[name])

    posterior = PyroPosterior(program)
    position = posterior.initial_position(3, generator, 1.0)
    with pyro.validation_enabled(False):
        _, potential, _, _ = initialize_model(program)
        expected = [potential({"x": x}) for x in free_of(posterior, position)["x"]]
    torch.testing.assert_close(
        posterior.energy(position),
        torch.stack(expected).reshape(3),
        rtol=1e-8,
        atol=1e-8,
    )


MODULE = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def network(inputs, classes, n):
    """N(0, 2) on all weights of a module."""
    laws = {
        name: dist.Normal(torch.zeros(value.shape), 2**0.5).to_event(value.ndim)
        for name, value in MODULE.named_parameters()
    }
    weights = {name: pyro.sample(name, law) for name, law in laws.items()}
    with pyro.plate("data", len(classes), subsample_size=n) as i:
        pyro.sample(
            "class",
            dist.Categorical(logits=functional_call(MODULE, weights, (inputs[i],))),
            obs=classes[i],
        )


class Network(PyroModule):
    """The same by Pyro's own means; its weights are drawn where they are first asked
    for, which must not be in the plate.
    """

    def __init__(self):
        super().__init__()
        self.layers = PyroModule[nn.Sequential](
            PyroModule[nn.Linear](3, 4), nn.Tanh(), PyroModule[nn.Linear](4, 2)
        )
        for layer in (self.layers[0], self.layers[2]):
            for name, value in list(layer.named_parameters()):
                setattr(
                    layer,
                    name,
                    PyroSample(
                        dist.Normal(0.0, 2**0.5)
                        .expand(value.shape)
                        .to_event(value.ndim)
                    ),
                )

    def forward(self, inputs, classes, n):
        plate = pyro.plate("data", len(classes), subsample_size=n)
        logits = self.layers(inputs[plate.indices])
        with plate as i:
            pyro.sample("class", dist.Categorical(logits=logits), obs=classes[i])


@pytest.mark.parametrize("n", [3, None])
@pytest.mark.parametrize(
    "make", [lambda: network, Network], ids=["function", "PyroModule"]
)
def test_a_network_is_the_network_without_pyro(make, n, generator):
    """The same minibatches of the same seed, and so the same draws but for rounding."""
    inputs, classes = (
        torch.randn(9, 3, generator=generator, dtype=DOUBLE),
        torch.arange(9) % 2,
    )
    own = PyroPosterior(make(), inputs, classes, n)
    plain = NetworkPosterior(MODULE, inputs, classes, prior_variance=2.0, batch_size=n)
    assert [name.removeprefix("layers.") for name in own.shapes] == [
        name for name, _ in MODULE.named_parameters()
    ]
    start = plain.initial_position(4, generator)
    for kernel in (SGHMC(0.01, friction=1.0), SGLD(0.001)):
        torch.testing.assert_close(
            *(sample(kernel, p, start, 20, seed=1).samples for p in (own, plain)),
            rtol=1e-8,
            atol=1e-8,
        )


def test_three_lines_and_names_in_arviz(data, generator):
    posterior = PyroPosterior(hierarchy, *data)
    start = posterior.initial_position(4, generator, 0.5)
    draws = sample(SGHMC(0.05, 2.0), posterior, start, 10, collect=posterior.named)
    assert draws.to_arviz().posterior["intercept"].shape == (4, 10, 3)


@pytest.mark.parametrize("kernel", [HMC(0.1, 4), NUTS(0.1)], ids=["HMC", "NUTS"])
def test_an_energy_of_minibatches_decides_nothing(kernel, data, generator):
    posterior = PyroPosterior(hierarchy, *data)
    position = posterior.initial_position(2, generator, 0.5)
    for run in (
        lambda: sample(kernel, posterior, position, 5),
        lambda: adapt(kernel, posterior, position, 20),
    ):
        with pytest.raises(ValueError, match=r"'data'.*\b3\b.*\b7\b.*posterior"):
            run()
    sample(kernel, posterior.full(), position, 2)


def test_a_factor_in_the_plate_is_likelihood_and_scales_are_kept(generator):
    """A mixture summed out by hand, half of its examples left out by a mask, and a
    scale of the program's own beside N/n.
    """
    seen = torch.tensor([0.5, -1.0, 2.0, 0.0])
    kept = torch.tensor([True, True, False, True])

    def program(n=2):
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with (
            pyro.plate("data", 4, subsample_size=n) as i,
            pyro.poutine.mask(mask=kept[i]),
            pyro.poutine.scale(scale=0.5),
        ):
            both = torch.stack(
                [
                    dist.Normal(mean, 1.0).log_prob(seen[i]),
                    dist.Normal(mean + 3, 1.0).log_prob(seen[i]),
                ]
            )
            pyro.factor("either", both.logsumexp(0))

    posterior, position = PyroPosterior(program), torch.tensor([[0.3], [-1.2]])
    both = [dist.Normal(position + shift, 1.0).log_prob(seen) for shift in (0, 3)]
    likelihood = 0.5 * torch.where(kept, torch.logaddexp(*both), 0.0)
    prior = dist.Normal(0.0, 1.0).log_prob(position[:, 0])
    torch.testing.assert_close(
        posterior.full().energy(position), -prior - likelihood.sum(-1)
    )
    indices = torch.tensor([[0, 2], [3, 1]])
    torch.testing.assert_close(
        posterior.energy_given(position, indices),
        -prior - 2 * likelihood.gather(1, indices).sum(-1),
    )


def test_nested_plates_and_pyro_subsample(generator):
    """Several observations of an example, in a plate of their own, belong to it;
    pyro.subsample takes the same examples.
    """
    seen = torch.randn(3, 5, generator=generator)

    def program(data, n=2):
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 5, subsample_size=n, dim=-1):
            few = pyro.subsample(data, event_dim=0)
            with pyro.plate("times", 3, dim=-2):
                pyro.sample("x", dist.Normal(mean, 1.0), obs=few)

    posterior, position = PyroPosterior(program, seen), torch.tensor([[0.3], [-1.2]])
    log_likelihood = dist.Normal(position[..., None], 1.0).log_prob(seen).sum(1)
    torch.testing.assert_close(
        posterior.log_likelihood(position, torch.arange(5)[None]), log_likelihood
    )
    indices = torch.tensor([[0, 2], [3, 1]])
    torch.testing.assert_close(
        posterior.log_likelihood(position, indices), log_likelihood.gather(1, indices)
    )


@pytest.mark.parametrize("inner", [True, False])
def test_a_plate_of_the_data_that_is_not_the_last(inner, generator):
    """At dim −2, around a plate of each example's numbers or around nothing, and beside
    a plate that comes first.
    """
    seen = torch.randn(5, 3 if inner else 1, generator=generator)

    def program(data, n=2):
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 5, subsample_size=n, dim=-2) as i:
            if inner:
                with pyro.plate("times", 3, dim=-1):
                    pyro.sample("x", dist.Normal(mean, 1.0), obs=data[i])
            else:
                pyro.sample("x", dist.Normal(mean, 1.0), obs=data[i])

    posterior, position = PyroPosterior(program, seen), torch.tensor([[0.3], [-1.2]])
    expected = dist.Normal(position[..., None], 1.0).log_prob(seen).sum(-1)
    indices = torch.tensor([[0, 2], [3, 1]])
    torch.testing.assert_close(
        posterior.log_likelihood(position, indices), expected.gather(1, indices)
    )


VECTORS = {
    "independent": lambda m: dist.Normal(m, 1.0).to_event(1),
    "multivariate": lambda m: dist.MultivariateNormal(m, torch.eye(3)),
    "student": lambda m: dist.MultivariateStudentT(5.0, m, torch.eye(3)),
    "multinomial": lambda m: dist.Multinomial(5, logits=m),
    "one of three": lambda m: dist.OneHotCategorical(logits=m),
    "dirichlet": lambda m: dist.Dirichlet(m.exp()),
    "ordered": lambda m: dist.TransformedDistribution(
        dist.Normal(m, 1.0).to_event(1), [dist.transforms.OrderedTransform()]
    ),
    "matrix": lambda m: dist.Normal(m[:, None], 1.0).expand([3, 2]).to_event(2),
    "low rank": lambda m: dist.LowRankMultivariateNormal(
        m, torch.ones(3, 1), torch.ones(3)
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors_that_are_observed_have_pyros_density(name, generator):
    """In a plate with minibatches, in one without, and outside of plates, with a NaN
    below a mask, too.
    """
    law = VECTORS[name]
    torch.manual_seed(0)
    seen = law(torch.tensor([0.5, 0.0, -1.0])).sample((7,))

    def program(n=None):
        mean = pyro.sample("mean", dist.Normal(torch.zeros(3), 1.0).to_event(1))
        with pyro.plate("data", 7, subsample_size=n) as i:
            pyro.sample("y", law(mean), obs=seen[i])

    def outside():
        mean = pyro.sample("mean", dist.Normal(torch.zeros(3), 1.0).to_event(1))
        pyro.sample("y", law(mean).expand([7]).to_event(1), obs=seen)

    posterior = PyroPosterior(program, 3)
    position = posterior.initial_position(2, generator)
    _, potential, _, _ = initialize_model(program)
    expected = torch.stack([potential({"mean": x}) for x in position])
    for each in (posterior.full(), PyroPosterior(program), PyroPosterior(outside)):
        torch.testing.assert_close(each.energy(position), expected)
    densities = torch.stack([law(x).log_prob(seen) for x in position])
    rows = torch.tensor([[0, 2, 5], [6, 1, 3]])
    torch.testing.assert_close(
        posterior.log_likelihood(position, rows), densities.gather(1, rows)
    )


def test_a_missing_vector_below_a_mask_and_one_that_cannot_be(generator):
    seen = torch.randn(4, 2, generator=generator)
    seen[1, 0] = torch.nan
    there = ~seen.isnan().any(-1)

    def program(y, there):
        mean = pyro.sample("mean", dist.Normal(torch.zeros(2), 1.0).to_event(1))
        with pyro.plate("data", 4), pyro.poutine.mask(mask=there):
            pyro.sample("y", dist.Normal(mean, 1.0).to_event(1), obs=y)

    position = torch.randn(2, 2, generator=generator)
    found = PyroPosterior(program, seen, there=there).energy(position)
    expected = dist.Normal(position[:, None], 1.0).log_prob(seen[there]).sum((1, 2))
    expected = expected + dist.Normal(0.0, 1.0).log_prob(position).sum(-1)
    torch.testing.assert_close(found, -expected)

    def counts():
        shares = pyro.sample("shares", dist.Dirichlet(torch.ones(2)))
        with pyro.plate("data", 4):
            pyro.sample("y", dist.Multinomial(3, shares), obs=4 * torch.eye(2)[[0] * 4])

    with pytest.raises(ValueError, match=r"'y'.*support"):
        PyroPosterior(counts)


UNBATCHED = {
    "ordered": (
        lambda m: dist.OrderedLogistic(m * torch.linspace(-1, 1, 7), torch.arange(2.0)),
        torch.tensor([0, 1, 2, 0, 1, 2, 0]),
    ),
    "stable": (
        lambda m: dist.StableWithLogProb(1.5, 0.1, 1.0, m).expand([7]),
        torch.linspace(-2, 2, 7),
    ),
}


@pytest.mark.parametrize("name", UNBATCHED)
def test_laws_that_vmap_cannot_run_have_pyros_density(name, generator):
    law, seen = UNBATCHED[name]

    def program():
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 7):
            pyro.sample("y", law(mean), obs=seen)

    posterior = PyroPosterior(program)
    position = posterior.initial_position(2, generator)
    with pytest.warns(UserWarning, match="one after another"):
        found = posterior.gradient(position)
    _, potential, _, _ = initialize_model(program)
    for x, gradient in zip(position, found, strict=True):
        x = x.requires_grad_()
        expected = torch.autograd.grad(potential({"mean": x[0]}), x)[0]
        torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("duration", [None, 6])
def test_a_hidden_markov_model_runs_chain_after_chain(duration, generator):
    seen = torch.randn(6, generator=generator)

    def program():
        mean = pyro.sample("mean", dist.Normal(torch.zeros(2), 1.0).to_event(1))
        stay, law = torch.eye(2), dist.Normal(mean, 1.0)
        law = dist.DiscreteHMM(torch.zeros(2), stay, law, duration=duration)
        pyro.sample("y", law, obs=seen)

    posterior = PyroPosterior(program)
    position = posterior.initial_position(2, generator)
    with warnings.catch_warnings(action="ignore"):
        found = posterior.energy(position)
    _, potential, _, _ = initialize_model(program)
    expected = torch.stack([potential({"mean": x}) for x in position])
    torch.testing.assert_close(found, expected)


def test_data_shorter_than_their_plate_and_keywords():
    def program(x, size, n=None):
        mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
        with pyro.plate("data", size, subsample_size=n) as i:
            pyro.sample("x", dist.Normal(mean, 1.0), obs=x[i])

    for n in (None, 1, 5):  # of 21, the first look at one does not see the last
        for size in (21, 100):
            with pytest.raises(
                ValueError, match=r"IndexError.*plate.*as many examples"
            ):
                PyroPosterior(program, torch.ones(20), size=size, n=n)
    one = PyroPosterior(program, torch.ones(20), size=20, n=5)
    other = PyroPosterior(program, torch.ones(20), 20, 5)
    position = torch.ones(2, 1)
    torch.testing.assert_close(
        one.full().energy(position), other.full().energy(position)
    )
    assert fingerprint(one) != fingerprint(
        PyroPosterior(program, torch.ones(20), n=5, size=19)
    )


def test_global_randomness_and_settings_are_left_alone(data, generator):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    posterior = PyroPosterior(hierarchy, *data)
    posterior.gradient_given(
        posterior.initial_position(2, generator), torch.tensor([[0, 1], [2, 3]])
    )
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(ValueError, match="scale"):
        dist.Normal(0.0, -1.0)
    trace = pyro.poutine.trace(hierarchy).get_trace(*data)
    assert trace.nodes["data"]["value"].shape == (3,)  # plates are Pyro's own again


def test_programs_of_two_threads_do_not_mix_their_minibatches(data, generator):
    """What a plate shows is set for the whole process while a program runs."""
    posterior, ask = PyroPosterior(hierarchy, *data), SubsampleMessenger._subsample
    position = posterior.initial_position(1, generator)
    shown = torch.tensor([[[0, 1]], [[2, 3]]])
    alone = [posterior.gradient_given(position, indices) for indices in shown]
    with ThreadPoolExecutor(2) as threads:
        found = [
            threads.submit(posterior.gradient_given, position, shown[k % 2])
            for k in range(100)
        ]
        assert all(
            torch.equal(each.result(), alone[k % 2]) for k, each in enumerate(found)
        )
    assert (
        SubsampleMessenger._subsample is ask
        and torch.distributions.Distribution._validate_args is not False
    )


def local():
    with pyro.plate("data", 5, subsample_size=2) as i:
        own = pyro.sample("own", dist.Normal(0.0, 1.0))
        pyro.sample("x", dist.Normal(own, 1.0), obs=torch.ones(5)[i])


def discrete():
    which = pyro.sample("which", dist.Bernoulli(0.5))
    pyro.sample("x", dist.Normal(which, 1.0), obs=torch.tensor(1.0))


def nothing():
    pyro.sample("x", dist.Normal(0.0, 1.0), obs=torch.tensor(1.0))


def parameter():
    mean = pyro.param("mean", torch.tensor(0.0))
    pyro.sample("x", dist.Normal(mean, 1.0))


def its_own_minibatch():
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    with pyro.plate("data", 5, subsample=torch.tensor([0, 3])):
        pyro.sample("x", dist.Normal(mean, 1.0), obs=torch.ones(2))


def its_own_minibatch_and_size():
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    with pyro.plate("data", 5, subsample_size=2, subsample=torch.tensor([0, 3])):
        pyro.sample("x", dist.Normal(mean, 1.0), obs=torch.ones(2))


def loop():
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    for i in pyro.plate("data", 5, subsample_size=2):
        pyro.sample(f"x{i}", dist.Normal(mean, 1.0), obs=torch.tensor(1.0))


def two_plates():
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    for name in ("one", "two"):
        with pyro.plate(name, 5, subsample_size=2):
            pyro.sample(name + "x", dist.Normal(mean, 1.0), obs=torch.ones(2))


MADE_BEFORE = pyro.plate("data", 5, subsample_size=2)


def plate_of_another_time():
    mean = pyro.sample("mean", dist.Normal(0.0, 1.0))
    with MADE_BEFORE as i:
        pyro.sample("x", dist.Normal(mean, 1.0), obs=torch.ones(5)[i])


def empty_plate():
    pyro.sample("mean", dist.Normal(0.0, 1.0))
    with pyro.plate("data", 5, subsample_size=2):
        pass


def no_map():
    pyro.sample("matrix", dist.Wishart(torch.tensor(4.0), torch.eye(2)))


REFUSED = [
    (local, r"'own'.*\bplate.*'data'"),
    (discrete, r"'which'.*discrete.*gradients"),
    (nothing, "no sites to sample"),
    (parameter, r"pyro\.param.*'mean'"),
    (its_own_minibatch, "'data'.*subsample=.*subsample_size=n"),
    (its_own_minibatch_and_size, "subsample="),
    (loop, "'data'.*a loop over its examples.*with pyro.plate"),
    (two_plates, r"'one'.*\['one', 'two'\].*One plate"),
    (plate_of_another_time, "'data'.*made before"),
    (empty_plate, r"\bplate.*'data'.*observes nothing"),
    (no_map, r"support.*'matrix'"),
    (3, "program must be .*Callable"),
]


@pytest.mark.parametrize(("program", "reason"), REFUSED)
def test_what_is_refused(program, reason):
    pyro.clear_param_store()
    with pytest.raises(ValueError, match=reason):
        PyroPosterior(program)


def test_sites_that_come_and_go():
    seen = {"y"}

    def program():
        for name in ("x", *seen):
            pyro.sample(name, dist.Normal(0.0, 1.0))

    posterior = PyroPosterior(program)
    seen.clear()
    with pytest.raises(ValueError, match=r"sites \['y'\]"):
        posterior.energy(torch.zeros(1, 2))
    seen.update("yz")
    with pytest.raises(ValueError, match="site 'z'"):
        posterior.energy(torch.zeros(1, 2))


def test_an_if_runs_chain_after_chain_and_sites_do_not_hang_on_it():
    def program():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.factor("kink", x if x > 0 else -2 * x)

    def smooth():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.factor("kink", torch.where(x > 0, x, -2 * x))

    def item():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.factor("cut off", torch.tensor(9 * x.item()))

    def parting():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        if x > 0:
            pyro.sample("y", dist.Normal(0.0, 1.0))

    position, posterior = torch.tensor([[1.0], [-2.0]]), PyroPosterior(program)
    with pytest.warns(UserWarning, match=r"one after another.*torch\.where"):
        found = posterior.gradient(position)
    assert torch.equal(found, PyroPosterior(smooth).gradient(position))
    with pytest.raises(ValueError, match=r"cut off.*\.item\(\)"):
        sample(SGLD(0.01), PyroPosterior(item), position[:1], 1)
    with pytest.raises(ValueError, match=r"sites|site 'y'"):
        PyroPosterior(parting)


def flat(x, y, n=None):
    b = pyro.sample("b", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    with pyro.plate("data", len(x), subsample_size=n) as i:
        pyro.sample("y", dist.Normal(x[i] @ b, 1.0), obs=y[i])


def test_observations_that_broadcast_or_cannot_be_are_refused(data):
    inputs, _, targets = data

    def poisson(y):
        rate = pyro.sample("rate", dist.Gamma(1.0, 1.0))
        with pyro.plate("data", len(y)):
            pyro.sample("y", dist.Poisson(rate), obs=y)

    def event():
        b = pyro.sample("b", dist.Normal(0.0, 1.0))
        with pyro.plate("data", 7, subsample_size=3) as i:
            pyro.sample(
                "y", dist.Normal(b * inputs[i, 0], 1.0).to_event(1), obs=targets[i]
            )

    for n in (None, 3):
        with pytest.raises(
            ValueError,
            match=r"'y'.*\(\d, 1\).*\(\d,\)",
        ):
            PyroPosterior(flat, inputs, targets[:, None], n)
    with pytest.raises(
        ValueError,
        match=r"'y'.*shape.*\.to_event",
    ):
        PyroPosterior(event)
    with pytest.raises(ValueError, match=r"'y'.*support"):
        PyroPosterior(poisson, torch.tensor([1.0, -1.0]))
    PyroPosterior(poisson, torch.tensor([1.0, 3.0]))


def test_data_of_another_type_and_a_plate_that_shows_too_much(data):
    inputs, _, targets = data
    with pytest.raises(
        ValueError,
        match=r"program.*one type.*torch.float64",
    ):
        PyroPosterior(flat, inputs.float(), targets.float())
    with pytest.raises(
        ValueError,
        match=r"subsample_size.*\b70 vs 7\b",
    ):
        PyroPosterior(flat, inputs, targets, 70)


def test_without_pyro_the_room_opens_and_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyro", None)
    monkeypatch.delitem(sys.modules, "sgmc.models.pyro_model")
    importlib.reload(models)
    assert not hasattr(models, "Nobody")
    with pytest.raises(ModuleNotFoundError, match="pip install pyro-ppl"):
        models.PyroPosterior
