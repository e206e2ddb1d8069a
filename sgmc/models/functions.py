"""Models written as plain functions of the flat vector θ."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_instance
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors import DataPotential


class Posterior(DataPotential):
    """The posterior of a model whose densities are given as functions; a formula for a
    gradient is written in a subclass of :class:`sgmc.posteriors.DataPotential`.

    Args:
        log_prior: log p(θ) up to a constant, from ``(chains, dim)`` to ``(chains,)``.
        log_likelihood: log p(xᵢ | θ) of each example, from ``(chains, dim)`` and a
            batch, tensors ``(chains, n, ...)`` or, for all the data, ``(1, N, ...)``,
            to ``(chains, n)``; with its constants, if ``arviz.loo`` is to see it.
        data: tensors whose first axis runs over the N examples.
        dim: number of coordinates of θ.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).

    Raises:
        ValueError: if the data tensors differ in length, the batch does not fit them,
            or the log likelihood's shape is wrong.

    Example:
        >>> posterior = Posterior(
        ...     log_prior=lambda position: -0.5 * position.pow(2).sum(-1),
        ...     log_likelihood=lambda position, x: -0.5 * (x - position).pow(2),
        ...     data=(torch.tensor([1.0, 2.0, 3.0]),),
        ...     dim=1,
        ...     batch_size=2,
        ... )
        >>> posterior.gradient_given(torch.zeros(1, 1), torch.tensor([[0, 2]]))
        tensor([[-6.]])
    """

    def __init__(
        self,
        log_prior: Callable[[Tensor], Tensor],
        log_likelihood: Callable[..., Tensor],
        data: Sequence[Tensor],
        dim: int,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
    ):
        check_count("dim", dim)
        super().__init__(data, batch_size, minibatches, dim)
        example = "lambda position: ..."
        functions = dict(log_prior=log_prior, log_likelihood=log_likelihood)
        for name, function in functions.items():
            check_instance(name, function, Callable, example)
            setattr(self, name, function)  # as if a subclass had written it

    def check(self, position: Tensor, generator: Generator) -> None:
        """Check all examples too, for a NaN or an infinity."""
        _check_examples(self, position)


def _check_examples(posterior: DataPotential, position: Tensor) -> None:
    """Raise a ValueError if an example has a NaN or an infinity, and its log likelihood
    at the position ``(chains, dim)``, too: a model may handle missing numbers.
    """
    odd = torch.zeros(posterior.num_examples, dtype=torch.bool)
    for x in (x for x in posterior.data if x.is_floating_point()):
        odd |= ~x[:, None].flatten(1).sum(-1).isfinite().cpu()
    odd = odd.nonzero().to(posterior.data[0].device)
    if len(odd) == 0:
        return
    rows = odd[:100].mT
    values = posterior.log_likelihoods(position[:1], posterior.gather(rows))
    if not values.isfinite().all():
        raise ValueError(
            "data have a NaN or an infinity in example "
            f"{int(rows[~values.isfinite()][0])} (and in {len(odd) - 1} more), whose "
            "log-likelihood at the start is not finite: leave such examples out, or "
            "have log_likelihood take care of them"
        )
