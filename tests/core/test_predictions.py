"""Averages against their sums, and R̂ against ArviZ for one prediction at a time."""

import itertools

import arviz
import pytest
import torch

from sgmc.predictions import average_predictions, function_space_rhat


def test_the_average_is_of_each_chain_in_double_precision(generator):
    samples = torch.randn(5, 3, 7, generator=generator)
    seen = []

    def predict(position):
        seen.append(position)
        return position[:, None] * torch.ones(2, 1)

    average = average_predictions(predict, samples)
    expected = samples.double().mean(0)[:, None].expand(3, 2, 7)
    torch.testing.assert_close(average, expected, rtol=1e-12, atol=1e-12)
    assert all(map(torch.equal, seen, samples))  # one after the other
    with pytest.raises(ValueError, match=r"samples.*empty"):
        average_predictions(predict, samples[:0])


def test_rhat_is_that_of_arviz_for_each_prediction(generator):
    values = torch.randn(50, 4, 3, 2, generator=generator)
    values[:, 1, 2, 1] += 1.0
    found = function_space_rhat(values)
    for place in itertools.product(range(3), range(2)):
        expected = arviz.rhat(values[:, :, place[0], place[1]].T.double().numpy())
        assert float(found[place]) == pytest.approx(float(expected), rel=1e-12)
    assert function_space_rhat(values[..., 0, 0]).shape == ()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (torch.zeros(9, 1, 3), r"2 chains.*\(9, 1, 3\)"),
        (torch.zeros(3, 2, 3), r"4 samples.*\(3, 2, 3\)"),
        (torch.full((9, 2), torch.nan), r"values must be finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        function_space_rhat(values)
