"""Parts of a posterior, one for each machine: some of the data, and a share of the
prior.
"""

import copy

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_instance, check_seed, check_tensor
from sgmc.posteriors.base import Batch, DataPotential
from sgmc.potentials import Kind


class Shard(DataPotential):
    """The posterior of some of the data under the J-th root of the prior: Uⱼ(θ) =
    −(1/J) log p(θ) − Σᵢ log p(xᵢ | θ), i in the shard.

    The energies of J shards that have each example once add up to that of the
    posterior: its density is the product of theirs (Scott et al., 2016). A shard is a
    posterior of its own, with minibatches of n of its own examples, which every kernel
    can sample. It holds its own examples alone. What a model keeps elsewhere, such as
    in the program of a :class:`~sgmc.models.pyro_model.PyroPosterior` or in the
    functions of :func:`~sgmc.models.control_variates`, is not cut: write control
    variates for a shard, not shards of control variates.

    Args:
        posterior: the whole.
        indices: the numbers of the examples, int64 ``(size,)``.
        num_shards: the number J of shards.

    Raises:
        ValueError: if the indices are no numbers of examples, or have one twice, or the
            shard has fewer examples than a minibatch.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> whole = LinearRegression(torch.ones(4, 1), torch.arange(4.0))
        >>> parts = [
        ...     Shard(whole, torch.tensor(rows), num_shards=2)
        ...     for rows in ([0, 1], [2, 3])
        ... ]
        >>> theta = torch.tensor([[0.5]])
        >>> sum(part.energy(theta) for part in parts) == whole.energy(theta)
        tensor([True])
    """

    def __init__(self, posterior: DataPotential, indices: Tensor, num_shards: int):
        check_instance("posterior", posterior, DataPotential, "LinearRegression(...)")
        check_count("num_shards", num_shards)
        check_tensor("indices", indices, "size", floating=False)
        last = posterior.num_examples - 1
        if (
            indices.dtype != torch.int64
            or len(indices.unique()) < len(indices)
            or not 0 <= int(indices.min()) <= int(indices.max()) <= last
        ):
            raise ValueError(
                f"indices must be different int64 numbers from 0 to {last}, but are "
                f"{indices.dtype} with {indices.tolist()}"
            )
        data = [
            tensor.index_select(0, indices.to(tensor.device))
            for tensor in posterior.data
        ]
        super().__init__(
            data, posterior.batch_size, posterior.minibatches, posterior.dim
        )
        # the model, with these examples in place of all
        self._part = copy.copy(posterior)
        self._part.data, self._part.num_examples = self.data, self.num_examples
        self.num_shards = num_shards
        self.grad_log_likelihood = self._part.grad_log_likelihood

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute (1/J) log p(θ): ``(chains, dim)`` → ``(chains,)``."""
        return self._part.log_prior(position) / self.num_shards

    def log_likelihood(self, position: Tensor, *batch: Tensor) -> Tensor:
        """Compute log p(xᵢ | θ): ``(chains, dim)`` and tensors ``(chains or 1, n,
        ...)`` → ``(chains, n)``.
        """
        return self._part.log_likelihood(position, *batch)

    # The model's own ways to its energy and gradients are the fast ones. With the
    # likelihood J times as heavy they give J times what is wanted.

    def energy_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute the energy of a batch."""
        number = self.num_shards
        return self._part.energy_of(position, batch, number * scale) / number

    def gradient_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute its gradient."""
        number = self.num_shards
        return self._part.gradient_of(position, batch, number * scale) / number

    def with_prior(self, position: Tensor, slope: Tensor, scale: float) -> Tensor:
        """Add the prior's gradient."""
        number = self.num_shards
        return self._part.with_prior(position, slope, number * scale) / number

    def gradient_moments(
        self, position: Tensor, batch: Batch, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        return self._part.gradient_moments(position, batch, kind)

    def per_example_gradients(self, position: Tensor, batch: Batch) -> Tensor:
        """Compute ∇log p(xᵢ | θ) of every example of a batch: ``(chains, n, dim)``."""
        return self._part.per_example_gradients(position, batch)


def shards(posterior: DataPotential, number: int, seed: int = 0) -> list[Shard]:
    """Deal the examples of a posterior, shuffled, to so many shards, whose sizes differ
    by one at most.

    Args:
        posterior: the whole.
        number: the number J of shards.
        seed: of the order in which the examples are dealt.

    Raises:
        ValueError: if there are fewer examples than shards, or a shard has fewer than a
            minibatch.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> [
        ...     part.num_examples
        ...     for part in shards(
        ...         LinearRegression(torch.ones(7, 1), torch.arange(7.0)), 3
        ...     )
        ... ]
        [3, 2, 2]
    """
    check_instance("posterior", posterior, DataPotential, "LinearRegression(...)")
    check_count("number", number)
    check_seed("seed", seed)
    if number > posterior.num_examples:
        raise ValueError(
            f"number is {number}, but there are only {posterior.num_examples} "
            "examples: ask for fewer shards"
        )
    order = torch.randperm(
        posterior.num_examples, generator=Generator().manual_seed(seed)
    )
    return [Shard(posterior, indices, number) for indices in order.tensor_split(number)]
