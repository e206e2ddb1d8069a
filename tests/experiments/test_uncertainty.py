"""The measures of uncertainty, against brute force."""

import math

import pytest
import torch

from sgmc.datasets import Data
from sgmc.experiments import uncertainty
from sgmc.experiments.uncertainty import turned
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import area_under_roc, predictive_entropy, rejection_curve


def test_area_under_roc_counts_pairs(generator):
    inside = torch.randint(6, (40,), generator=generator).double()
    outside = torch.randint(2, 9, (50,), generator=generator).double()
    pairs = outside[:, None] - inside
    expected = ((pairs > 0).double() + 0.5 * (pairs == 0)).mean()
    assert abs(area_under_roc(inside, outside) - float(expected)) < 1e-12
    assert area_under_roc(inside, inside) == 0.5


def test_rejection_drops_the_least_sure(generator):
    probabilities = torch.rand(50, 4, generator=generator).softmax(-1)
    targets = torch.randint(4, (50,), generator=generator)
    errors = rejection_curve(probabilities, targets, [0.0, 0.2, 0.5])
    order = sorted(range(50), key=lambda i: float(predictive_entropy(probabilities[i])))
    for error, left in zip(errors, (50, 40, 25), strict=True):
        wrong = [int(probabilities[i].argmax()) != int(targets[i]) for i in order[:left]]
        assert abs(error - sum(wrong) / left) < 1e-12


def test_a_quarter_turn_is_exact(generator):
    digits = Data(torch.rand(3, 784, generator=generator), torch.arange(3))
    expected = digits.inputs.view(3, 28, 28).rot90(1, (1, 2)).flatten(1)
    torch.testing.assert_close(turned(digits, 90).inputs, expected)
    assert torch.equal(turned(digits, 0).inputs, digits.inputs)


def test_a_network_that_is_sure_of_digits_alone_tells_letters_apart():
    digits, blank = (Data(fill(30, 784), torch.zeros(30, dtype=torch.int64)) for fill in (torch.ones, torch.zeros))
    posterior = NetworkPosterior(multilayer_perceptron([784, 10]), *digits)
    position = torch.zeros(2, posterior.dim)
    position[:, :784] = 0.05  # the weights of the first class
    result = uncertainty.look(posterior, position, uncertainty.Prepared(digits, {"letters": blank}, None))
    assert result["entropy"]["letters"]["auroc"] == 1 and result["scores"]["error"] == 0
    assert result["entropy"]["letters"]["mean"] == pytest.approx(math.log(10), abs=1e-6)
    assert sum(result["entropy"]["letters"]["histogram"]) == 30
    assert result["entropy"]["letters"]["disagreement"] == pytest.approx(0, abs=1e-6)  # two equal networks
