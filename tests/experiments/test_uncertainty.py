"""The measures of uncertainty, against brute force."""

import math

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs.predictions import turned
from booklib.runs.results import ExperimentError
from experiments import uncertainty
from experiments.comparison import run_file
from sgmc.door.running import drive
from sgmc.posteriors import NetworkPosterior
from tests.booklib.runs.test_runs import PLANS, make


def test_what_predicts_is_the_reservoir_or_the_last_network_of_a_run_that_is_finished(
    tmp_path,
):
    plan, path = PLANS["SGD"], run_file(tmp_path, "SGD", 0)
    part = make(plan, path)
    drive(part, 5, checkpoint=part.checkpoint, progress=False)
    with pytest.raises(ExperimentError, match=r"SGD.*seed 0.*not finished"):
        uncertainty.networks(tmp_path, "SGD", 0, average=True)
    run = make(plan, path)
    run.go(progress=False)
    assert (
        torch.equal(
            uncertainty.networks(tmp_path, "SGD", 0, average=True),
            torch.stack(run.reservoir),
        )
        and len(run.reservoir) == 3
    )
    assert torch.equal(
        uncertainty.networks(tmp_path, "SGD", 0, average=False),
        run.chain.state.position,
    )


def test_a_quarter_turn_is_exact(generator):
    digits = Data(torch.rand(3, 784, generator=generator), torch.arange(3))
    expected = digits.inputs.view(3, 28, 28).rot90(1, (1, 2)).flatten(1)
    torch.testing.assert_close(turned(digits, 90).inputs, expected)
    assert torch.equal(turned(digits, 0).inputs, digits.inputs)


def test_networks_that_disagree_about_letters_alone_tell_them_apart_by_that():
    """Both networks are sure of each digit; on a letter each is sure of another class,
    so that the disagreement is log 2.
    """
    digits, letters = (
        Data(torch.zeros(30, 784), torch.zeros(30, dtype=torch.int64)) for _ in range(2)
    )
    digits.inputs[:, 0] = letters.inputs[:, 1] = 1.0
    position = torch.zeros(2, 7850)
    weights = position[:, :7840].view(2, 10, 784)
    weights[:, 0, 0] = 50.0  # both call a digit a nought
    weights[0, 1, 1] = weights[1, 2, 1] = 50.0
    posterior = NetworkPosterior(multilayer_perceptron([784, 10]), *digits)
    look = uncertainty.look(posterior, position, digits, {"letters": letters})[
        "entropy"
    ]
    assert (
        look["letters"]["disagreement"] == pytest.approx(math.log(2), abs=1e-6)
        and look["digits"]["disagreement"] < 1e-6
    )
    assert look["letters"]["auroc_disagreement"] == 1 == look["letters"]["auroc"]
    # The other way round the same networks know nothing of digits.
    look = uncertainty.look(posterior, position, letters, {"letters": digits})[
        "entropy"
    ]
    assert look["letters"]["auroc_disagreement"] == 0 == look["letters"]["auroc"]
