"""How close predictions are: against sums over all events, quadrature, ArviZ, and the
law of a difference of averages.
"""

import itertools
import math

import pytest
import scipy.integrate
import torch

from booklib.scores.fidelity import (
    NotMixedError,
    agreement,
    bin_mixtures,
    check_mixed,
    error_floor,
    predictive_distance,
)
from sgmc.predictions import function_space_rhat


@pytest.fixture
def pair(generator):
    return [
        torch.randn(40, 5, generator=generator, dtype=torch.float64).softmax(-1)
        for _ in range(2)
    ]


def test_the_distance_is_the_largest_difference_of_any_event(pair):
    """Total variation by its definition, over all 32 sets of classes."""
    first, second = pair
    events = torch.tensor(
        list(itertools.product([0.0, 1.0], repeat=5)), dtype=torch.float64
    )
    largest = ((first - second) @ events.T).abs().max(-1).values
    assert predictive_distance(first, second) == pytest.approx(
        float(largest.mean()), rel=1e-12
    )


def test_agreement_counts_classes(pair):
    first, second = pair
    by_hand = sum(
        max(range(5), key=p.__getitem__) == max(range(5), key=q.__getitem__)
        for p, q in zip(first.tolist(), second.tolist(), strict=True)
    )
    assert agreement(first, second) == by_hand / 40


def test_binned_mixtures_have_the_distance_of_the_densities(generator):
    """Against adaptive quadrature of ½∫|p − q|; coarse bins can only lose some of
    it.
    """
    variance, outputs = (
        0.3,
        [
            torch.randn(7, 3, generator=generator),
            0.5 + 2 * torch.randn(4, 3, generator=generator),
        ],
    )

    def density(y, means):
        return sum(math.exp(-0.5 * (y - m) ** 2 / variance) for m in means) / (
            len(means) * math.sqrt(2 * math.pi * variance)
        )

    exact = []
    for column in range(3):
        means = [values[:, column].tolist() for values in outputs]
        difference = lambda y, means=means: abs(
            density(y, means[0]) - density(y, means[1])
        )
        exact.append(
            0.5 * scipy.integrate.quad(difference, -12, 12, limit=2_000, epsabs=1e-9)[0]
        )
    exact = sum(exact) / 3
    found = {
        number: predictive_distance(
            *(
                bin_mixtures(values, variance, torch.linspace(-12, 12, number))
                for values in outputs
            )
        )
        for number in (7, 25, 4_801)
    }
    assert found[7] < found[25] < found[4_801] <= exact + 1e-9
    # bins of 0.005, of which only those with a crossing lose anything
    assert found[4_801] == pytest.approx(exact, rel=1e-4)


def test_bins_without_an_end_hold_what_is_far_out():
    binned = bin_mixtures(
        torch.tensor([[-50.0], [50.0]]), 1.0, torch.linspace(-1, 1, 3)
    )
    assert binned.tolist() == [[0.5, 0.0, 0.0, 0.5]]
    many = torch.linspace(-2, 2, 250)[:, None]  # in several pieces
    torch.testing.assert_close(
        bin_mixtures(many, 1.0, torch.tensor([0.0, 1.0])),
        torch.stack(
            [bin_mixtures(one[None], 1.0, torch.tensor([0.0, 1.0])) for one in many]
        ).mean(0),
    )


def test_chains_that_differ_only_by_names_of_units_have_mixed(generator):
    """One chain has its two hidden units the other way round: weights do not agree,
    functions do.
    """
    weights = torch.randn(200, 4, 2, generator=generator) * 0.1 + torch.tensor(
        [1.0, 3.0]
    )
    weights[:, 0] = weights[:, 0].flip(-1)
    inputs = torch.linspace(-1, 1, 5)
    functions = torch.tanh(weights[..., None] * inputs).sum(-2)
    with pytest.raises(
        NotMixedError,
        match=r"R̂ .*prediction.*\d.*1\.05",
    ):
        check_mixed(function_space_rhat(weights), at_most=1.05)
    check_mixed(function_space_rhat(functions[..., [0, 1, 3, 4]]), at_most=1.05)


def test_draws_that_never_differ_are_no_reason_to_refuse():
    """A probability that is 1 in single precision everywhere has no R̂."""
    values = torch.ones(20, 4, 2)
    found = function_space_rhat(values)
    assert found.isnan().all()
    check_mixed(found)


def test_the_floor_is_of_every_way_to_halve(generator):
    predictions = torch.randn(8, 6, 3, generator=generator).softmax(-1)
    distances, agreements = error_floor(predictions)
    assert len(distances) == len(agreements) == 35
    halves = {
        frozenset([frozenset(half), frozenset(range(8)) - frozenset(half)])
        for half in itertools.combinations(range(8), 4)
    }
    expected = sorted(
        predictive_distance(*(predictions[list(half)].mean(0) for half in pair))
        for pair in halves
    )
    assert sorted(distances.tolist()) == pytest.approx(expected, rel=1e-6)
    assert float(distances[0]) == predictive_distance(
        predictions[:4].mean(0), predictions[4:].mean(0)
    )
    assert float(agreements[0]) == agreement(
        predictions[:4].mean(0), predictions[4:].mean(0)
    )


def test_halves_need_an_even_number():
    with pytest.raises(ValueError, match=r"even.*chains.*\b3\b"):
        error_floor(torch.ones(3, 1, 2) / 2)
