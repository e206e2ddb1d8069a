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
        ({"inputs": with_nan(INPUTS, (2, 1))}, r"inputs.*nan.*\(2, 1\)"),
        ({"inputs": INPUTS / 0}, r"inputs.*-inf.*\(0, 0\)"),
        ({"targets": with_nan(TARGETS, 3)}, r"targets.*nan.*\(3,\)"),
        ({"targets": TARGETS.double()}, r"targets.*inputs.*\bdtype.*torch.float32"),
        ({"targets": TARGETS[:, None]}, r"inputs.*targets"),
        ({"prior_variance": math.nan}, r"prior_variance.*nan"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_bad_input_is_refused(model, change, message):
    with pytest.raises(ValueError, match=message):
        MODELS[model](**({"inputs": INPUTS, "targets": TARGETS} | change))


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
    ("reference", "message"),
    [
        (torch.tensor([0.0, math.nan]), r"reference.*nan.*\(1,\)"),
        (torch.zeros(3), "reference has 3"),
        (torch.zeros(2).double(), r"position.*float64"),
    ],
)
def test_bad_references_of_control_variates_are_refused(reference, message):
    posterior = LinearRegression(INPUTS, TARGETS, batch_size=2)
    with pytest.raises(ValueError, match=message):
        control_variates(posterior, reference)
