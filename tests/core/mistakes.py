"""Models and calls with a fault, of which the package says what to do: what the table
remedies.txt is written with.
"""
# ruff: noqa: F401

import itertools
from dataclasses import replace
from functools import cache

import pyro
import pyro.distributions as dist
import torch
from torch import nn
from torch.distributions import Normal, constraints
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.nn.utils import parametrizations, parametrize
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from sgmc import NUTS, SGHMC, SGLD, SGNUTS, Draws, NamedPosterior, sample, tune
from sgmc import NetworkPosterior as Network
from sgmc.checkpoints import Checkpoint
from sgmc.compiled import CompiledSGHMC
from sgmc.disk import from_disk, to_disk
from sgmc.kernels import HMC
from sgmc.minibatches import Fresh, Held, Passes
from sgmc.models import Posterior
from sgmc.models.pyro_model import PyroPosterior
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import AMAGOLD, SGNHT, Cyclical
from sgmc.posteriors import (
    Bernoulli,
    Gaussian,
    Likelihood,
    LinearRegression,
    LogisticRegression,
)
from sgmc.potentials import Potential
from sgmc.splittings import Splitting, flows, sghmc_chain
from sgmc.targets import Gaussian as Target
from sgmc.targets import NoisyGradient
from sgmc.tuning import (
    adapt,
    default_kernel,
    find_mode,
    half_step,
    matched_noise_estimate,
)

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(60, 3, generator=GENERATOR)
Y = X[:, 0] + torch.randn(60, generator=GENERATOR)
CLASSES, START = (Y > 0).long(), torch.zeros(4, 3)
LOADER = DataLoader(TensorDataset(X, Y), batch_size=10)
KERNEL = SGHMC(0.02, 3.0)
NORMAL = Target.standard(3)


def run(kernel=KERNEL, potential=None, start=None, number=4, **settings):
    potential = regression() if potential is None else potential
    start = torch.zeros(4, potential.dim) if start is None else start
    return sample(kernel, potential, start, number, progress=False, **settings)


def regression(x=X, y=Y, batch_size=10, **settings):
    return LinearRegression(x, y, batch_size=batch_size, **settings)


def log_prior(p):
    return sum(Normal(0, 1).log_prob(each).sum() for each in p.values())


def named(
    of=lambda p, x, y: Normal(x @ p["b"], 1).log_prob(y), prior=log_prior, **more
):
    given = {"shapes": {"b": (3,)}, "data": (X, Y)} | more
    return NamedPosterior(given.pop("shapes"), prior, of, **given)


def network(module=None, inputs=X, targets=CLASSES, **settings):
    return Network(module or nn.Linear(3, 2), inputs, targets, **settings)


class Energy(Potential):
    """A potential of a function."""

    dim = 3

    def __init__(self, function=lambda x: 0.5 * x.square().sum(-1), **methods):
        self.energy = function
        vars(self).update(methods)


class Layer(nn.Module):
    """A layer with a function for its forward."""

    def __init__(self, forward, module=None, **more):
        super().__init__()
        self.own, self.of = module or nn.Linear(3, 2), forward
        for name, each in more.items():
            setattr(self, name, each)

    def forward(self, *inputs, **keywords):
        return self.of(self, *inputs, **keywords)


def program(subsample_size=None, shape=lambda y: y, law=None):
    """A Pyro program of the regression."""

    def model():
        b = pyro.sample("b", law or dist.Normal(torch.zeros(3), 1.0).to_event(1))
        with pyro.plate("data", 60, subsample_size=subsample_size) as i:
            pyro.sample("y", dist.Normal((X @ b)[i], 1.0), obs=shape(Y[i]))

    return PyroPosterior(model)


def own(name, function):
    """A class of a potential with another method."""
    return type("Mine", (Energy,), {name: function})


@cache
def tuned():
    return again(regression())


def saved(folder, **settings):
    return run(checkpoint=Checkpoint(folder / "run.pt"), **settings)


def at(number):
    return torch.full((4, 3), float(number))


SKEW = torch.tensor([[2.0, 0.1, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
UNIFORM = torch.distributions.Uniform(0.0, 1.0, validate_args=False)
LAG = torch.cat([torch.zeros(1), Y[:-1]])
UNITS = X * torch.tensor([1e4, 1.0, 1.0])


def inside(p):
    return UNIFORM.log_prob(p["b"]).sum()


def of_lag(p, x, y):
    return of_lag_column(p, x, y, torch.cat([torch.zeros(1), y[:-1]]))


def of_lag_column(p, x, y, lag):
    return Normal(p["b"][0] * lag, 1).log_prob(y)


def bounded(x):
    if x.abs().max() > 5:
        raise ValueError("beyond 5")
    return 3 * x.square().sum(-1)


def pole(x):
    return (1 / x.square() + x.square()).sum(-1)


def border(x):
    return torch.where(x > 0, x, torch.inf).sum(-1)


def gamma(x):
    return (x - 2 * x.log()).sum(-1)


def well(x):
    return (x**4 / 4 - x.square() / 2).sum(-1)


def funnel(x):
    v, z = x[:, 0], x[:, 1:]
    return v.square() / 18 + v + (z.square() / v.exp()[:, None]).sum(-1) / 2


def rising(x):
    return -5 * x.square().sum(-1)


def saddle(x):
    return (x**4 / 4).sum(-1) - x[:, 0].square() / 2


def of_log(x):
    return (x.exp() - 2 * x).sum(-1)


def spread():
    return at(5) * torch.tensor([[1.0], [-1.0], [2.0], [-2.0]])


def many(batch_size):
    ones = torch.ones(30_000, 1)
    return LinearRegression(ones, torch.randn(30_000), batch_size=batch_size)


def loud(variance=1e7):
    return NoisyGradient(NORMAL, variance)


def wide():
    zeros = torch.zeros(4, 40_000)
    return LogisticRegression(zeros, zeros[:, 0], batch_size=2)


def dropping(module):
    return Energy(lambda x: module(x).square().sum(-1))


def weighted():
    order = WeightedRandomSampler(torch.rand(60), 60)
    return DataLoader(LOADER.dataset, sampler=order)


def both():
    other = Energy(lambda x: x.square().sum(-1) / 2)
    return run(potential=Energy()), run(potential=other, seed=1)


def again(posterior):
    return default_kernel(
        posterior, find_mode(posterior, START[:1].to(posterior.data[0]))
    )


def both_values(p, x, y):
    """Log densities for an offset that is zero or one."""
    return torch.stack([Normal(x @ p["b"] + k, 1).log_prob(y) for k in (0, 1)])


def coin(p, x, y):
    return dist.Bernoulli(logits=x @ p["b"]).log_prob(y)


def of_scale(supports):
    of = lambda p, x, y: Normal(0, p["b"][0]).log_prob(y)
    return named(of, supports=supports)


def of_module(module):
    shapes = {name: tuple(each.shape) for name, each in module.named_parameters()}

    def of(p, x, z, targets):
        return -cross_entropy(
            functional_call(module, p, (x,), {"z": z}), targets, reduction="none"
        )

    return named(of, shapes=shapes, data=(X, X, CLASSES))


def keeping(detached):
    module = nn.Linear(3, 2)
    module.last = module(X).detach() if detached else module(X)
    return module


def cut_off(frozen=False, kept=False):
    first = nn.Linear(3, 3).requires_grad_(not frozen)
    cut = (lambda x: x) if kept else torch.Tensor.detach
    return network(Layer(lambda self, x: self.own(cut(self.first(x))), first=first))


def changed(then, extra=None):
    x = X.clone()
    posterior = regression(x)
    (x if extra is None else extra).mul_(2)
    return run(potential=then(posterior, x))


def local(subsample_size):
    with pyro.plate("data", 60, subsample_size=subsample_size) as i:
        each = pyro.sample("each", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(each, 1.0), obs=Y[i])


def own_law(**more):
    def log_density(self, outputs, targets):
        return -0.5 * (outputs - targets).square()

    law = type("Mine", (Likelihood,), {"log_density": log_density, **more})
    return Network(nn.Linear(3, 1), X, Y, likelihood=law())


def branch(p, x, y):
    slope = p["b"] if p["b"][0] > 0 else -p["b"]
    return Normal(x @ slope, 1).log_prob(y)


def where(p, x, y):
    slope = torch.where(p["b"][0] > 0, p["b"], -p["b"])
    return Normal(x @ slope, 1).log_prob(y)


def kinked(x):
    return (0.5 * x.square() + 1e5 * x**6).sum(-1)


class Augmented(Dataset):
    """A data set that changes its examples at random."""

    def __len__(self):
        return 20

    def __getitem__(self, i):
        return X[i] + torch.rand(3), Y[i]


class Stream(IterableDataset):
    """A stream of twenty examples."""

    def __iter__(self):
        yield from zip(X[:20], Y[:20], strict=True)


def stream(**settings):
    return DataLoader(Stream(), batch_size=7, **settings)


class Uneven(Fresh):
    """A rule that has half of the examples only."""

    def indices(self, num_examples, *given):
        return super().indices(num_examples // 2, *given)


class Same(Fresh):
    """A rule that gives all chains one minibatch."""

    def indices(self, *given):
        found = super().indices(*given)
        return found[:1].expand(found.shape)


def weighted_density(p, x, y, weights):
    return weights * Normal(x @ p["b"], 1).log_prob(y)


def scaled(factor):
    """A target with gradients of minibatches that have a factor."""
    own = {"gradient_given": lambda self, x, minibatch: factor * self.gradient(x)}
    return type("Scaled", (Target,), own)(torch.eye(3))


def looped():
    b = pyro.sample("b", dist.Normal(0.0, 1.0))
    for i in pyro.plate("data", 60, subsample_size=10):
        pyro.sample(f"y{i}", dist.Normal(b, 1.0), obs=Y[i])


def one_output():
    return network(nn.Linear(3, 1), targets=Y, likelihood=Gaussian(noise_variance=1.0))
