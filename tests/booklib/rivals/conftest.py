"""A posterior whose law is known, with correlated weights."""

import pytest
import torch

from sgmc.posteriors import LinearRegression

ROOT = torch.tensor(
    [[1.0, 0.6, 0.2], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]], dtype=torch.float64
)


@pytest.fixture
def regression(generator):
    """Make Bayesian linear regressions with three weights, on the same forty examples
    or another number of them.
    """

    def make(batch_size=None, num_examples=40, **settings):
        generator.manual_seed(1)
        noise = torch.randn(num_examples, 4, generator=generator, dtype=torch.float64)
        inputs = noise[:, :3] @ ROOT
        targets = (
            inputs @ torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64) + noise[:, 3]
        )
        return LinearRegression(
            inputs, targets, 1.0, 2.0, batch_size=batch_size, **settings
        )

    return make
