"""One minibatch in place of the data."""

import torch
from torch import Tensor

from sgmc.checks import check_instance, check_tensor
from sgmc.posteriors import DataPotential
from sgmc.posteriors.base import OnBatch


class HeldMinibatch(OnBatch):
    """A posterior seen through one minibatch, which is held: Ũ(θ) = −log p(θ) − (N/n) Σ
    log p(xᵢ | θ), with its exact gradient.

    Its energy and its gradient belong together, as they do in naive SGHMC and in the
    trees of SGNUTS as its program has it.

    Args:
        posterior: the posterior.
        indices: the examples of every chain, ``(chains, n)`` int64, as from a rule of
            :mod:`sgmc.minibatches`.

    Raises:
        ValueError: if there are no indices, because the posterior takes all the data.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> held = HeldMinibatch(
        ...     LinearRegression(torch.ones(4, 1), torch.arange(4.0)),
        ...     torch.tensor([[0, 3]]),
        ... )
        >>> held.gradient(torch.zeros(1, 1))
        tensor([[-6.]])
    """

    def __init__(self, posterior: DataPotential, indices: Tensor):
        check_instance("posterior", posterior, DataPotential, "LinearRegression(...)")
        if indices is None:
            raise ValueError(
                "indices is None: a posterior without a batch_size has no minibatch "
                "to hold, give it one"
            )
        check_tensor("indices", indices, "chains", "n", floating=False)
        low, high = (int(extreme) for extreme in indices.aminmax())
        if indices.dtype != torch.int64 or low < 0 or high >= posterior.num_examples:
            raise ValueError(
                f"indices must be int64 from 0 to {posterior.num_examples - 1}, but "
                f"are {indices.dtype} from {low} to {high}"
            )
        scale = posterior.num_examples / indices.shape[1]
        super().__init__(posterior, posterior.gather(indices), scale)
