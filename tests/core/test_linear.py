"""Generalised linear models, control variates: what their data and settings must be."""

import math

import pytest
import torch

from sgmc.models import control_variates
from sgmc.posteriors import (
    Bernoulli,
    Likelihood,
    LinearModel,
    LinearRegression,
    LogisticRegression,
    Softmax,
)
from sgmc.targets import DoubleWell

INPUTS = torch.linspace(-1, 1, 8).reshape(4, 2)
TARGETS = torch.tensor([0.0, 1.0, 1.0, 0.0])
MODELS = {
    "linear": LinearRegression,
    "logistic": LogisticRegression,
    "generalised": lambda inputs, targets, **settings: LinearModel(
        inputs, targets, Bernoulli(), **settings
    ),
}


def with_nan(tensor, place):
    tensor = tensor.clone()
    tensor[place] = math.nan
    return tensor


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"inputs": INPUTS.tolist()},
            r"inputs.*list",
        ),
        (
            {"inputs": INPUTS.numpy()},
            r"inputs.*ndarray",
        ),
        (
            {"inputs": INPUTS.long()},
            r"inputs.*\(4, 2\).*torch.int64",
        ),
        ({"inputs": INPUTS[:0], "targets": TARGETS[:0]}, r"inputs \(0, 2\) is empty"),
        (
            {"inputs": with_nan(INPUTS, (2, 1))},
            r"inputs.*nan.*\(2, 1\)",
        ),
        ({"inputs": INPUTS / 0}, r"inputs.*-inf.*\(0, 0\)"),
        (
            {"targets": TARGETS.tolist()},
            r"targets.*list",
        ),
        ({"targets": TARGETS.numpy()}, r"targets.*ndarray"),
        (
            {"targets": with_nan(TARGETS, 3)},
            r"targets.*nan.*\(3,\)",
        ),
        (
            {"targets": TARGETS.double()},
            r"targets.*inputs.*\bdtype.*torch.float32",
        ),
        (
            {"targets": TARGETS[:, None]},
            r"inputs.*targets",
        ),
        (
            {"prior_variance": "1"},
            r"prior_variance.*'1'",
        ),
        (
            {"prior_variance": torch.ones(2)},
            r"prior_variance.*tensor",
        ),
        (
            {"prior_variance": math.nan},
            r"prior_variance.*nan",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_bad_input_is_refused(model, change, message):
    with pytest.raises(ValueError, match=message):
        MODELS[model](**({"inputs": INPUTS, "targets": TARGETS} | change))


@pytest.mark.parametrize("likelihood", [None, "Bernoulli", Bernoulli], ids=str)
def test_what_is_no_likelihood_is_refused(likelihood):
    with pytest.raises(
        ValueError,
        match=r"likelihood.*Likelihood",
    ):
        LinearModel(INPUTS, TARGETS, likelihood)


def test_a_likelihood_of_several_outputs_is_refused():
    """A linear model has one."""
    with pytest.raises(ValueError, match=r"output.*class"):
        LinearModel(INPUTS, TARGETS.long(), Softmax())


def test_whole_numbers_are_good_targets_of_a_likelihood_of_counts():
    class Poisson(Likelihood):
        def log_density(self, outputs, targets):
            return targets * outputs - outputs.exp()

    gradient = LinearModel(INPUTS, TARGETS.long(), Poisson()).gradient(
        torch.zeros(1, 2)
    )
    torch.testing.assert_close(gradient, -((TARGETS - 1) @ INPUTS)[None])


@pytest.mark.parametrize(
    ("posterior", "reference", "message"),
    [
        (
            DoubleWell(),
            torch.zeros(1),
            r"posterior.*DataPotential.*DoubleWell",
        ),
        (
            None,
            [0.0, 0.0],
            r"reference.*list",
        ),
        (
            None,
            torch.zeros(2, dtype=torch.int64),
            r"reference.*\(2,\).*torch.int64",
        ),
        (
            None,
            torch.tensor([0.0, math.nan]),
            r"reference.*nan.*\(1,\)",
        ),
        (
            None,
            torch.zeros(3),
            r"reference.*\(3,\)",
        ),
        (
            None,
            torch.zeros(2).double(),
            r"reference.*\bdata",
        ),
    ],
)
def test_bad_references_of_control_variates_are_refused(posterior, reference, message):
    posterior = (
        LinearRegression(INPUTS, TARGETS, batch_size=2)
        if posterior is None
        else posterior
    )
    with pytest.raises(ValueError, match=message):
        control_variates(posterior, reference)
