"""A posterior that sees one minibatch in place of the data."""

from torch import Tensor

from sgmc.posteriors import DataPotential
from sgmc.posteriors.base import OnBatch


class HeldMinibatch(OnBatch):
    """A posterior that is evaluated on one minibatch held fixed: Ũ(θ) = −log p(θ) −
    (N/n) Σ log p(xᵢ | θ), with its exact gradient.

    Its energy and its gradient belong together, as they do in naive SGHMC and in the
    trees of SGNUTS as its program has it.

    Args:
        posterior: the posterior.
        indices: the examples of every chain, ``(chains, n)`` int64, as from a rule of
            :mod:`sgmc.minibatches`.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> import torch
        >>> held = HeldMinibatch(
        ...     LinearRegression(torch.ones(4, 1), torch.arange(4.0)),
        ...     torch.tensor([[0, 3]]),
        ... )
        >>> held.gradient(torch.zeros(1, 1))
        tensor([[-6.]])
    """

    def __init__(self, posterior: DataPotential, indices: Tensor):
        scale = posterior.num_examples / indices.shape[1]
        super().__init__(posterior, posterior.gather(indices), scale)
