"""Predictions averaged over samples, and whether chains agree about them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgmc.checks import check_tensor


def average_predictions(predict: Callable[[Tensor], Tensor], samples: Tensor) -> Tensor:
    """Average predictions over the samples of each chain, P(y | x) ≈ mean of P(y | x,
    θ) (Bishop, 2006, eq. 3.57), one sample at a time, so that memory does not grow with
    their number.

    Args:
        predict: from positions ``(chains, dim)`` to what they predict, ``(chains,
            ...)``, such as ``lambda x: posterior.predict(x, inputs)``.
        samples: ``(num_samples, chains, dim)``, at least one.

    Returns:
        The average of each chain, ``(chains, ...)`` float64. Their mean is the
        prediction, and their differences show its Monte Carlo error.

    Example:
        >>> average_predictions(torch.sigmoid, torch.tensor([[[0.0]], [[1.0]]]))
        tensor([[0.6155]], dtype=torch.float64)
    """
    check_tensor("samples", samples, "num_samples", "chains", "dim")
    total: Any = sum(predict(x).double() for x in samples)
    return total / len(samples)


def function_space_rhat(values: Tensor) -> Tensor:
    """Compute the rank-normalised split R̂ (Vehtari et al., 2021) of every prediction,
    by ArviZ.

    Weights of a network may be exchanged without a change of what it computes, so that
    their own R̂ says little (Izmailov et al., 2021).

    Args:
        values: predictions of single samples, ``(num_samples, chains, ...)``, four and
            more of two chains and more.

    Returns:
        R̂ of each, in the shape of one sample, float64; NaN where all are the same.

    Raises:
        ValueError: if there is nothing to compare.

    Example:
        >>> values = torch.randn(100, 4, 3, generator=torch.Generator().manual_seed(0))
        >>> values[:, 0, 1] += 9.0
        >>> function_space_rhat(values) > 1.1
        tensor([False,  True, False])
    """
    check_tensor("values", values, "...")
    if values.ndim < 2 or len(values) < 4 or values.shape[1] < 2:
        raise ValueError(
            "values must be of at least 2 chains with 4 samples each, which can be "
            f"compared, but they are {tuple(values.shape)}"
        )
    import arviz  # ArviZ takes a second, and averages need no ArviZ

    data = arviz.convert_to_dataset(values.transpose(0, 1).double().numpy())
    with np.errstate(invalid="ignore"):
        found: Any = arviz.rhat(data)
    return torch.as_tensor(found["x"].values)
