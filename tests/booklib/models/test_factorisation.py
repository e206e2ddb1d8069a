"""Matrix factorisation: its gradient, the noise of its minibatches, and the exact laws
from which rows and precisions are drawn.
"""

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from scipy import stats
from torch import Tensor

from booklib.models import factorisation
from booklib.models.factorisation import MatrixFactorisation
from booklib.models.gibbs import Gibbs
from sgmc import sample
from sgmc.kernels import HMC, Kernel
from sgmc.posteriors import DataPotential
from sgmc.potentials import differentiate
from tests.checks import z_bound

DOUBLE = torch.float64
USERS, ITEMS, RANK = 4, 3, 2
PRECISIONS = {
    "user_factors": 2.0,
    "item_factors": 1.5,
    "user_biases": 3.0,
    "item_biases": 4.0,
    "noise": 2.5,
}
OF_CHAINS = {
    name: value * torch.tensor([1.0, 0.4], dtype=DOUBLE)
    for name, value in PRECISIONS.items()
}


def posterior(number=9, seed=0, **settings):
    """Make ratings of some of the pairs; user 3 and item 2 have few."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS))[:number]
    users, items = places[torch.randperm(number, generator=generator)].T
    ratings = 3 + torch.randn(number, generator=generator, dtype=DOUBLE)
    given = {
        "rank": RANK,
        "precisions": PRECISIONS,
        "num_users": USERS,
        "num_items": ITEMS,
    } | settings
    return MatrixFactorisation(users, items, ratings, **given)


def somewhere(target, chains=2, seed=1):
    return torch.randn(
        chains, target.dim, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE
    )


def energy_by_loops(target, position, precisions):
    """U of one chain, summand by summand."""
    pieces = {name: piece[0] for name, piece in target.named(position[None]).items()}
    energy = sum(
        0.5 * precisions[name] * piece.square().sum() for name, piece in pieces.items()
    )
    for (row, other), rating in zip(*target.data, strict=True):
        i, j = int(row), int(other) - USERS
        mean = target.mean + pieces["user_biases"][i] + pieces["item_biases"][j]
        mean = mean + sum(
            pieces["user_factors"][i, k] * pieces["item_factors"][j, k]
            for k in range(target.rank)
        )
        energy = (
            energy
            + 0.5 * precisions["noise"] * (rating - mean) ** 2
            - 0.5 * math.log(precisions["noise"] / (2 * math.pi))
        )
    return energy


@pytest.mark.parametrize("precisions", [PRECISIONS, OF_CHAINS])
def test_the_energy_is_the_sum_that_the_model_says(precisions):
    target = posterior(precisions=precisions)
    position = somewhere(target)
    for chain, energy in enumerate(target.energy(position)):
        own = {
            name: float(torch.as_tensor(value).expand(2)[chain])
            for name, value in precisions.items()
        }
        assert float(energy) == pytest.approx(
            float(energy_by_loops(target, position[chain], own)), rel=1e-12
        )


@pytest.mark.parametrize("together", [2**16, 4])
@pytest.mark.parametrize("precisions", [PRECISIONS, OF_CHAINS])
def test_the_gradient_is_that_of_the_energy(precisions, together, monkeypatch):
    """The differentiation of the energy is independent of the formula; with pieces of
    two ratings nothing is lost between them.
    """
    monkeypatch.setattr(factorisation, "_TOGETHER", together)
    target = posterior(precisions=precisions)
    position = somewhere(target)
    assert (
        target.gradient(position) - differentiate(target.energy, position)[1]
    ).abs().max() < 1e-10
    indices = torch.tensor([[0, 5, 7], [2, 5, 8]])
    expected = differentiate(lambda x: target.energy_given(x, indices), position)[1]
    assert (target.gradient_given(position, indices) - expected).abs().max() < 1e-10


def all_minibatches(target, size, chains=1):
    return [
        torch.tensor(chosen).expand(chains, -1)
        for chosen in itertools.combinations(range(target.num_examples), size)
    ]


def test_the_mean_over_all_minibatches_is_the_gradient():
    target = posterior(precisions=OF_CHAINS, batch_size=2)
    position = somewhere(target)
    gradients = torch.stack(
        [
            target.gradient_given(position, batch)
            for batch in all_minibatches(target, 2, 2)
        ]
    )
    assert (gradients.mean(0) - target.gradient(position)).abs().max() < 1e-10
    assert torch.equal(
        posterior(batch_size=9).gradient_given(position, None),
        target.given(PRECISIONS).gradient(position),
    )


@pytest.mark.parametrize("kind", ["scalar", "diagonal", "full"])
def test_the_mean_estimate_of_the_noise_is_the_covariance_of_all_minibatches(kind):
    target = posterior(precisions=OF_CHAINS, batch_size=3)
    position = somewhere(target)
    found = [
        target.gradient_and_variance_given(position, batch, kind)
        for batch in all_minibatches(target, 3, 2)
    ]
    gradients, estimate = (
        torch.stack([each for each, _ in found]),
        torch.stack([each for _, each in found]).mean(0),
    )
    errors = gradients - gradients.mean(0)
    covariance = torch.einsum("bci,bcj->cij", errors, errors) / len(found)
    diagonal = covariance.diagonal(dim1=1, dim2=2)
    expected = {
        "full": covariance,
        "diagonal": diagonal,
        "scalar": diagonal.mean(-1, keepdim=True),
    }[kind]
    torch.testing.assert_close(estimate, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        found[7][0], target.gradient_given(position, all_minibatches(target, 3, 2)[7])
    )


def test_the_gradients_of_single_ratings_are_those_of_differentiation():
    target = posterior()
    position, batch = (
        somewhere(target),
        target.gather(torch.tensor([[0, 3, 4], [8, 8, 1]])),
    )
    expected = DataPotential.per_example_gradients(target, position, batch)
    assert (
        target.per_example_gradients(position, batch) - expected
    ).abs().max() < 1e-10


def test_starts_have_no_biases_and_factors_of_the_size_asked_for(generator):
    target = posterior()
    pieces = target.named(target.initial_position(4_000, generator, scale=0.3))
    assert pieces["user_factors"].shape == (4_000, USERS, RANK) and pieces[
        "item_biases"
    ].shape == (4_000, ITEMS)
    assert not pieces["user_biases"].any() and not pieces["item_biases"].any()
    for name in ("user_factors", "item_factors"):
        number = pieces[name].numel()
        assert (
            abs(float(pieces[name].square().mean()) / 0.09 - 1)
            < z_bound(2) * (2 / number) ** 0.5
        ), name


# The exact laws


def conditional(target, position, side, precisions):
    """Mean and covariance of every row of one chain given the other side, from a dense
    regression of its ratings, in loops.
    """
    pieces = {name: piece[0] for name, piece in target.named(position[None]).items()}
    one, other, number = (
        ("user", "item", USERS) if side == "users" else ("item", "user", ITEMS)
    )
    rows, ratings = target.data[0] - torch.tensor([0, USERS]), target.data[1]
    laws = []
    for index in range(number):
        own = rows[:, 0 if side == "users" else 1] == index
        partners = rows[own][:, 1 if side == "users" else 0]
        z = torch.cat(
            [
                pieces[f"{other}_factors"][partners],
                torch.ones(len(partners), 1, dtype=DOUBLE),
            ],
            1,
        )
        y = ratings[own] - target.mean - pieces[f"{other}_biases"][partners]
        prior = torch.diag(
            torch.tensor(
                [precisions[f"{one}_factors"]] * RANK + [precisions[f"{one}_biases"]],
                dtype=DOUBLE,
            )
        )
        covariance = torch.linalg.inv(prior + precisions["noise"] * z.T @ z)
        laws.append((covariance @ z.T @ y * precisions["noise"], covariance))
    return laws


def rows_of(target, position, side):
    table = position.view(len(position), USERS + ITEMS, RANK + 1)
    return table[:, :USERS] if side == "users" else table[:, USERS:]


@pytest.mark.parametrize("side", ["users", "items"])
def test_rows_are_drawn_from_their_conditional_law(side, generator):
    """z-tests of all first and second moments of all rows; the user without ratings and
    the other side too.
    """
    target, chains = posterior(), 20_000
    position = somewhere(target, 1)
    drawn = target.draw_rows(position.expand(chains, -1), side, generator)
    other = "items" if side == "users" else "users"
    assert torch.equal(
        rows_of(target, drawn, other),
        rows_of(target, position, other).expand(chains, -1, -1),
    )
    z = []
    for row, (mean, covariance) in enumerate(
        conditional(target, position[0], side, PRECISIONS)
    ):
        errors = rows_of(target, drawn, side)[:, row] - mean
        z.append(errors.mean(0) / (covariance.diagonal() / chains) ** 0.5)
        products = torch.einsum("ci,cj->cij", errors, errors).flatten(1)
        z.append(
            (products.mean(0) - covariance.flatten()) / (products.std(0) / chains**0.5)
        )
    # Rows are independent: the products of two of them have mean zero.
    first, second = (rows_of(target, drawn, side)[:, row] for row in (0, 1))
    products = (first - first.mean(0)) * (second - second.mean(0))
    z.append(products.mean(0) / (products.std(0) / chains**0.5))
    z = torch.cat(z)
    assert z.abs().max() < z_bound(len(z)), z


@pytest.mark.parametrize("side", ["users", "items"])
@pytest.mark.parametrize("together", [2**16, 6])
def test_every_chain_has_the_law_of_its_own_precisions_and_position(
    side, together, monkeypatch, generator
):
    monkeypatch.setattr(factorisation, "_TOGETHER", together)
    monkeypatch.setattr(
        factorisation, "normal_like", lambda tensor, generator: torch.zeros_like(tensor)
    )
    target = posterior(precisions=OF_CHAINS)
    position = somewhere(target)
    drawn = target.draw_rows(position, side, generator)
    for chain in (0, 1):
        own = {name: float(value[chain]) for name, value in OF_CHAINS.items()}
        for row, (mean, _) in enumerate(
            conditional(target, position[chain], side, own)
        ):
            torch.testing.assert_close(rows_of(target, drawn, side)[chain, row], mean)


def test_precisions_are_drawn_from_their_conditional_law(generator):
    """Kolmogorov-Smirnov for each of five; false alarm 1e-4 for all together."""
    target = posterior(hyperprior=(2.0, 0.5))
    position = somewhere(target, 1)
    drawn = target.draw_hyperparameters(position.expand(4_000, -1), generator)
    blocks = {name: piece[0] for name, piece in target.named(position).items()}
    users, items = (target.data[0] - torch.tensor([0, USERS])).T
    blocks["noise"] = target.data[1] - target.predict(position, users, items)[0]
    assert list(drawn) == list(blocks) and {
        len(each.flatten()) for each in blocks.values()
    } == {8, 6, 4, 3, 9}
    for name, block in blocks.items():
        law = stats.gamma(
            2.0 + block.numel() / 2, scale=1 / (0.5 + float(block.square().sum()) / 2)
        )
        assert stats.kstest(drawn[name], law.cdf).pvalue > 1e-4 / 5, name


class RowsState(NamedTuple):
    position: Tensor


class Nothing(NamedTuple):
    pass


class Rows(Kernel):
    """The plain Gibbs sampler: users given items, items given users."""

    def init(self, potential, position, generator):
        return RowsState(position.clone())

    def step(self, potential, state, generator):
        position = potential.draw_rows(state.position, "users", generator)
        return RowsState(potential.draw_rows(position, "items", generator)), Nothing()


def moments(draws, target):
    """Predictions of all pairs, their squares, and the logarithms of the precisions:
    mean and variance of its error, from the chains.
    """
    values = torch.cat(
        [draws.samples, draws.samples**2, draws.statistics["hyperparameters"].log()], -1
    ).mean(0)
    return values.mean(0), values.var(0) / len(values)


@pytest.mark.filterwarnings("ignore:.*do not agree")
def test_another_exact_sampler_agrees_with_the_gibbs_sampler_on_predictions_and_precisions(
    generator,
):
    """HMC in turn with the precisions, and rows in turn with them, have one joint law:
    z-tests, 300 independent chains each.
    """
    target, chains = posterior(hyperprior=(4.0, 4.0)), 300
    users, items = torch.cartesian_prod(torch.arange(USERS), torch.arange(ITEMS)).T
    start = target.initial_position(chains, generator, scale=0.7)
    kept = {
        "collect": lambda position: target.predict(position, users, items),
        "progress": False,
    }
    exact = moments(
        sample(Gibbs(Rows()), target, start, 60, warm_up=60, seed=1, **kept), target
    )
    other = moments(
        sample(Gibbs(HMC(0.15, 8)), target, start, 60, warm_up=60, seed=2, **kept),
        target,
    )
    z = (exact[0] - other[0]) / (exact[1] + other[1]).sqrt()
    assert z.abs().max() < z_bound(len(z)), z


def test_the_information_is_the_mean_curvature_and_the_noise_in_proportion_to_it(
    generator,
):
    """Over partners and residuals from the model: the curvature that the data give to a
    row, and the variance of its minibatch gradient.
    """
    target, chains = posterior(batch_size=3), 20_000
    blocks = [
        torch.randn(chains, *shape, generator=generator, dtype=DOUBLE)
        * PRECISIONS[name] ** -0.5
        for name, shape in (
            ("user_factors", (USERS, RANK)),
            ("item_factors", (ITEMS, RANK)),
        )
    ]
    rows = target.data[0] - torch.tensor([0, USERS])
    curvature = torch.zeros(chains, USERS + ITEMS, RANK + 1, dtype=DOUBLE)
    for i, j in rows:
        curvature[:, i] += torch.cat(
            [blocks[1][:, j].square(), torch.ones(chains, 1, dtype=DOUBLE)], -1
        )
        curvature[:, USERS + j] += torch.cat(
            [blocks[0][:, i].square(), torch.ones(chains, 1, dtype=DOUBLE)], -1
        )
    curvature = PRECISIONS["noise"] * curvature.flatten(1)
    information, spread = target.information(), curvature.std(0)
    moving = spread > 1e-12
    assert torch.equal(moving, (torch.arange(target.dim) % 3 < 2) & (information > 0))
    torch.testing.assert_close(curvature.mean(0)[~moving], information[~moving])
    z = ((curvature.mean(0) - information) / spread * chains**0.5)[moving]
    assert z.abs().max() < z_bound(len(z)), z
    # Per chain, if the precisions are.
    assert target.given(OF_CHAINS).information().shape == (2, target.dim)
    torch.testing.assert_close(target.given(OF_CHAINS).information()[0], information)


# What is refused
