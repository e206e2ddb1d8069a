"""Monte Carlo dropout, against its closed form in linear regression."""

import math

import pytest
import torch

from sgmc.approximations import dropout
from sgmc.posteriors import NetworkPosterior
from sgmc.sampling import DivergenceError
from sgmc.targets import DoubleWell, Gaussian
from tests.approximations.moments import z_of_mean
from tests.checks import z_bound


def best(posterior, rate):
    """Solve for M: ((1 − p)G + p·diag G + (σ²/τ²)I)M = Xᵀy, by the mean over z of U(zM), σ² being 1."""
    inputs, targets = posterior.data
    gram = inputs.mT @ inputs
    left = (1 - rate) * gram + rate * torch.diag(gram.diagonal()) + posterior.prior_precision * torch.eye(len(gram)).double()
    return torch.linalg.solve(left, inputs.mT @ targets)


@pytest.mark.parametrize(("rate", "batch_size"), [(0.2, None), (0.5, None), (0.2, 10)])
def test_training_ends_at_the_closed_form(regression, rate, batch_size):
    """Chains are trained by themselves, and so their spread is the error's."""
    posterior = regression(batch_size)
    draws = dropout(posterior, torch.zeros(256, 3).double(), 1, rate=rate, num_steps=2000, learning_rate=0.02)
    weights = draws.statistics["weights"][0]
    z = z_of_mean(weights, best(posterior, rate))
    assert z.abs().max() < z_bound(3), z
    assert (z_of_mean(weights, posterior.mean).abs() > 10).any()  # it is not the posterior's mode


def test_draws_are_weights_that_are_there_or_not(regression):
    """Each coordinate of each draw by itself: the mean (1 − p)M, no correlation, and nothing but zeros and M."""
    posterior, rate = regression(), 0.3
    draws = dropout(posterior, torch.zeros(100, 3).double(), 200, rate=rate, num_steps=10)
    there = draws.samples != 0
    assert torch.equal(draws.samples, there * draws.statistics["weights"])
    kept = there.double().flatten(0, 1)
    pairs = torch.stack([kept[:, i] * kept[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], -1)
    z = torch.cat([z_of_mean(kept, 1 - rate), z_of_mean(pairs, (1 - rate) ** 2)])
    assert z.abs().max() < z_bound(6), z


def test_the_variance_of_a_prediction_does_not_shrink_with_the_data(regression):
    """It is p(1 − p)Σxⱼ²Mⱼ², whatever N, while the posterior's falls as 1/N."""
    rate, x = 0.2, torch.tensor([1.0, -1.0, 0.5]).double()
    variances, exact = [], []
    for num_examples in (100, 1600):
        posterior = regression(num_examples=num_examples)
        draws = dropout(posterior, best(posterior, rate).repeat(100, 1), 200, rate=rate, num_steps=1, learning_rate=1e-9)
        formula = rate * (1 - rate) * (x * best(posterior, rate)).square().sum()
        centred = (draws.samples - (1 - rate) * draws.statistics["weights"]) @ x
        z = z_of_mean(centred.square().flatten(), formula)
        assert z.abs() < z_bound(1)
        variances.append(float(formula))
        exact.append(float(x @ posterior.covariance @ x))
    assert variances[1] > 0.7 * variances[0] and exact[1] < 0.1 * exact[0]


def test_units_are_dropped_as_one_and_biases_never(generator):
    inputs = torch.randn(60, 4, generator=generator)
    posterior = NetworkPosterior(torch.nn.Linear(4, 3), inputs, inputs[:, :3].argmax(-1), prior_variance=10.0, batch_size=20)
    units = torch.cat([torch.arange(4).repeat(3), torch.full((3,), -1)])  # a column of the matrix belongs to an input
    draws = dropout(posterior, torch.full((2, 15), 0.1), 50, rate=0.5, num_steps=200, learning_rate=0.05, units=units)
    there = draws.samples != 0
    columns = there[..., :12].unflatten(-1, (3, 4))
    assert there[..., 12:].all() and (columns == columns[..., :1, :]).all() and not columns.all()
    assert 0.3 < columns.double().mean() < 0.7
    assert (columns[:, 0] != columns[:, 1]).any()  # chains have masks of their own


def test_a_divergence_is_told():
    with pytest.raises(DivergenceError, match="the learning_rate is too large"):
        dropout(DoubleWell(), torch.zeros(1, 1) + 0.1, 1, rate=0.1, num_steps=40, learning_rate=1e30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 1}, "rate must be more than 0 and less than 1, at which all weights are dropped, but it is 1"),
        ({"rate": 0.0}, "rate must be more than 0 and less than 1"),
        ({"rate": math.nan}, "rate must be more than 0 and less than 1"),
        ({"num_samples": 0}, "num_samples must be a whole number of at least 1"),
        ({"num_steps": 0}, "num_steps must be a whole number of at least 1"),
        ({"potential": None}, "potential must be a Potential"),
        ({"units": [0, 1]}, r"units must be a tensor \(dim,\), but it is a list"),
        ({"units": torch.tensor([0])}, r"units must be the numbers of 2 coordinates' units, int64 from -1 to 1, but are \(1,\)"),
        ({"units": torch.tensor([0, -2])}, "units must be the numbers .* torch.int64 from -2 to 0"),
        ({"units": torch.tensor([0.0, 1.0])}, "units must be the numbers .* torch.float32"),
        ({"units": torch.tensor([-1, -1])}, "units are all -1, so that no coordinate is ever dropped"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_bad_input_is_refused(change, message):
    arguments = {"potential": Gaussian.standard(2), "position": torch.zeros(1, 2), "num_samples": 1, "rate": 0.5, "num_steps": 1}
    with pytest.raises(ValueError, match=message):
        dropout(**(arguments | change))
