"""Posteriors without formulas: automatic differentiation gives, minibatch by minibatch, what the formulas give."""

import pytest
import torch

from sgmc.posteriors import LinearRegression, LogisticRegression


@pytest.mark.parametrize("settings", [{}, {"batch_size": 3}, {"batch_size": 3, "replacement": True}], ids=str)
@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_automatic_gradients_are_those_of_the_formulas(kind, settings, generator):
    """The prior counts once and the likelihood N/n times."""
    data = torch.randn(9, 2, generator=generator, dtype=torch.float64), (torch.arange(9) % 2).double()
    formulas, automatic = (kind(*data, prior_variance=0.2, **settings) for _ in range(2))
    automatic.gradients = None
    position = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    gradients = [x.stochastic_gradient(position, torch.Generator().manual_seed(1)) for x in (formulas, automatic)]
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(formulas.gradient(position), automatic.gradient(position))
