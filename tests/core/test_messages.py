"""What somebody who errs is told: what was given, what is allowed, and what to do."""

import warnings

import pytest
import torch
from torch.distributions import Bernoulli as Coin
from torch.distributions import Normal
from torch.nn.functional import softplus
from torch.utils.data import DataLoader, TensorDataset

from sgmc import sample
from sgmc.kernels import SGHMC, SGLD
from sgmc.models import NamedPosterior, Posterior
from sgmc.posteriors import (
    Bernoulli,
    LinearRegression,
    LogisticRegression,
    NetworkPosterior,
)
from sgmc.potentials import Potential
from sgmc.tuning import default_kernel
from sgmc.tuning.defaults import _without_negative

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(60, 3, generator=GENERATOR)
Y = (X[:, 0] > 0).float()
LOADER = DataLoader(TensorDataset(X, Y), batch_size=10)
KERNEL = SGHMC(0.01, 3.0)


def log_prior(position):
    return -0.5 * position.square().sum(-1)


def log_likelihood(position, x, y):
    z = (position[:, None, :] @ x.mT)[:, 0]
    return y * z - softplus(z)


def posterior(log_prior=log_prior, data=(X, Y), batch_size=10):
    return Posterior(log_prior, log_likelihood, data, dim=3, batch_size=batch_size)


def named(log_prior=lambda p: Normal(0, 1).log_prob(p["b"]).sum(), data=(X, Y)):
    likelihood = lambda p, x, y: Coin(logits=x @ p["b"]).log_prob(y)
    return NamedPosterior({"b": (3,)}, log_prior, likelihood, data)


def network(outputs=2, **settings):
    return NetworkPosterior(torch.nn.Linear(3, outputs), X, **settings)


def run(potential, start=None, kernel=KERNEL):
    return sample(kernel, potential, torch.zeros(2, 3) if start is None else start, 5)


MISTAKES = {
    "a prior that is not summed": (
        lambda: run(posterior(lambda x: -0.5 * x.square())),
        r"log_prior.*\(2,\).*\(2, 3\).*\.sum\(-1\)",
    ),
    "a prior that is not summed, and all the data": (
        lambda: run(posterior(lambda x: -0.5 * x.square(), batch_size=None)),
        r"log_prior.*\(2,\).*\(2, 3\).*\.sum\(-1\)",
    ),
    "a prior that is not summed, of names": (
        lambda: named(lambda p: Normal(0, 1).log_prob(p["b"])),
        r"log_prior.*number.*\(3,\).*\.sum\(\)",
    ),
    "a flat prior": (
        lambda: run(posterior(lambda x: 0.0)),
        r"log_prior.*0\.0.*0 \* position",
    ),
    "whole numbers as targets, of names": (
        lambda: named(data=(X, Y.long())),
        r"log_likelihood.*Long.*\.float\(\)",
    ),
    "whole numbers as targets": (
        lambda: LogisticRegression(X, Y.long()),
        r"targets.*float32.*int64.*targets\.to\(inputs\)",
    ),
    "another precision of the start": (
        lambda: run(posterior(data=(X.double(), Y.double()))),
        r"\(2, 3\), torch.float32.*one type.*y\.float\(\)",
    ),
    "another precision of the start, logistic": (
        lambda: run(LogisticRegression(X.double(), Y.double())),
        r"\(2, 3\), torch.float32.*one type.*y\.float\(\)",
    ),
    "targets of plus and minus one": (
        lambda: LogisticRegression(X, 2 * Y - 1),
        r"targets.*zeros and ones.*-1 to 1.*targets > 0",
    ),
    "a loader as inputs": (
        lambda: LogisticRegression(LOADER, Y),
        r"inputs.*tensor.*DataLoader.*torch\.stack",
    ),
    "a data set as inputs of a network": (
        lambda: NetworkPosterior(torch.nn.Linear(3, 2), LOADER.dataset, Y.long()),
        r"inputs.*tensor.*TensorDataset.*torch\.stack",
    ),
    "a loader as data": (
        lambda: named(data=LOADER),
        r"^data.*tensors.*DataLoader.*torch\.stack",
    ),
    "a mask without a likelihood": (
        lambda: network(targets=X),
        r"targets.*class numbers.*float32 \(60, 3\).*Gaussian.*Bernoulli\(\)",
    ),
    "one output and two classes": (
        lambda: network(1, targets=Y.long()),
        r"output for each class.*0 to 1.*likelihood=Bernoulli\(\)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_cure(mistake):
    call, sentence = MISTAKES[mistake]
    with pytest.raises(ValueError, match=f"(?s){sentence}") as raised:
        call()
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "call",
    [
        lambda: run(posterior(lambda x: 0 * x.sum(-1))),
        lambda: named(lambda p: torch.zeros(())),
        lambda: run(
            posterior(data=(X.double(), Y.double())), torch.zeros(2, 3).double()
        ),
        lambda: named(data=(X, Y.long().float())),
        lambda: LogisticRegression(X, (2 * Y - 1 > 0).to(X)),
        lambda: LogisticRegression(torch.cat([x for x, _ in LOADER]), Y),
        lambda: named(data=tuple(map(torch.stack, zip(*LOADER.dataset, strict=True)))),
        lambda: network(1, targets=Y[:, None], likelihood=Bernoulli()),
    ],
)
def test_the_cures_work(call):
    call()


def test_a_density_that_grows_is_told():
    """Where the positions have grown so far that no energy is finite."""
    rising = posterior(lambda x: 5 * x.square().sum(-1))
    kernel = SGHMC(0.01, 3.0, num_steps=10)
    with pytest.warns(UserWarning, match="sign .*wrong, or a prior missing"):
        sample(kernel, rising, torch.ones(2, 3), 400)


def test_chains_that_hardly_moved_are_no_separate_modes():
    start = 3 * torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    with pytest.warns(UserWarning) as caught:
        sample(SGLD(1e-9), posterior(), start, 50)
    text = " ".join(str(each.message) for each in caught)
    assert "separate modes" not in text


def test_frozen_weights_are_no_part_of_the_position():
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    module[0].requires_grad_(False)
    assert NetworkPosterior(module, X, Y.long()).dim == 4 * 2 + 2


def test_weights_at_random_are_told_from_a_mode():
    many = 4 * torch.randn(1, 8, generator=torch.Generator().manual_seed(1))
    with pytest.warns(UserWarning, match=r"no mode.*standard deviations.*find_mode"):
        default_kernel(network(targets=Y.long(), batch_size=10), many)


UNITS = torch.stack(  # a constant, a year, an income
    [
        torch.ones(200),
        torch.linspace(1950, 2000, 200),
        30_000 * torch.randn(200, generator=GENERATOR).exp(),
    ],
    1,
).double()


def test_columns_in_large_units_are_named_and_not_called_flat():
    model = LinearRegression(UNITS, torch.randn(200, generator=GENERATOR).double())
    with pytest.warns(UserWarning, match=r"column 2 of tensor 0.*Standardise") as told:
        default_kernel(model, model.mean[None])
    assert len(told) == 1 and "downwards" not in str(told[0].message)
    centred = (UNITS[:, 1:] - UNITS[:, 1:].mean(0)) / UNITS[:, 1:].std(0)
    model = LinearRegression(centred, torch.ones(200).double())
    with warnings.catch_warnings(action="error"):
        default_kernel(model, model.mean[None])
    saddle = type("Saddle", (Potential,), {"energy": lambda self, x: x[:, 0] ** 2})()
    with pytest.warns(UserWarning, match=r"flat.*1 of 2"):
        default_kernel(saddle, torch.zeros(1, 2, dtype=torch.float64))


def test_rounding_below_zero_is_not_called_a_noise_variance():
    below = torch.tensor([[1.0, 1.00001], [1.00001, 1.0]])
    repaired = _without_negative(below)
    assert torch.linalg.eigvalsh(repaired.double()).min() >= -1e-7
    torch.testing.assert_close(repaired, below, atol=1e-5, rtol=0)
    assert _without_negative(torch.eye(2)).equal(torch.eye(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda: LinearRegression(X.bfloat16(), Y.bfloat16()),
        lambda: default_kernel(
            LogisticRegression(X.bfloat16(), Y.bfloat16()), torch.zeros(1, 3).bfloat16()
        ),
        lambda: default_kernel(
            LogisticRegression(X.half(), Y.half()), torch.zeros(1, 3).half()
        ),
    ],
)
def test_half_precision_is_named_where_a_matrix_is_factorised(call):
    with pytest.raises(ValueError, match=r"torch.float32 or torch.float64, .*float16"):
        call()
