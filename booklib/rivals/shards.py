# ruff: noqa: D102 (of DataPotential)
"""Subposteriors, one for each machine: some of the data, and a share of the prior."""

import copy

import torch
from torch import Generator, Tensor

from booklib.scores.checks import check_indices
from sgmc.checks import check_count, check_instance, check_seed
from sgmc.posteriors.base import Batch, DataPotential

_OF_EXAMPLES = (
    *("log_likelihood", "grad_log_likelihood", "pointwise_log_likelihoods"),
    *("per_example_gradients", "_gradient_moments"),
)


class Shard(DataPotential):
    """The posterior of some of the data under the J-th root of the prior: Uⱼ(θ) =
    −(1/J) log p(θ) − Σᵢ log p(xᵢ | θ), i in the shard.

    The energies of J shards that have each example once add up to that of the
    posterior: its density is the product of theirs (Scott et al., 2016). A shard is a
    posterior of its own, with minibatches of n of its own examples, and holds these
    alone. What a model keeps elsewhere, such as in the program of a
    :class:`~sgmc.models.pyro_model.PyroPosterior`, is not cut.

    Args:
        posterior: the whole.
        indices: the numbers of the examples, int64 ``(size,)``.
        num_shards: the number J of shards.

    Raises:
        ValueError: if the indices are not numbers of examples, or an index occurs
            twice, the shard has fewer examples than a minibatch, or a function of the
            posterior holds another posterior, as control variates do.

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
        check_indices("indices", indices, posterior.num_examples)
        for name, function in vars(posterior).items():
            cells = getattr(function, "__closure__", None) or ()
            if any(isinstance(cell.cell_contents, DataPotential) for cell in cells):
                raise ValueError(
                    f"posterior has a {name} that holds another posterior with all its "
                    "data, as control_variates makes it, of which no shard can be "
                    "made: make shards of that one, and control_variates of each"
                )
        data = [x.index_select(0, indices.to(x.device)) for x in posterior.data]
        rule, size = posterior.minibatches, posterior.batch_size
        super().__init__(data, size, rule, posterior.dim)
        # This is the model, with these examples in place of all.
        self._part = copy.copy(posterior)
        self._part.data, self._part.num_examples = self.data, self.num_examples
        self.num_shards = num_shards
        # These do not depend on the prior.
        for name in _OF_EXAMPLES:
            setattr(self, name, getattr(self._part, name))

    def log_prior(self, position: Tensor) -> Tensor:
        return self._part.log_prior(position) / self.num_shards

    # The model's own ways to its energy and gradients are the fast ones. With the
    # likelihood J times as heavy they give J times the result.

    def _energy_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        number = self.num_shards
        return self._part._energy_of(position, batch, number * scale) / number

    def _gradient_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        number = self.num_shards
        return self._part._gradient_of(position, batch, number * scale) / number

    def _with_prior(self, position: Tensor, slope: Tensor, scale: float) -> Tensor:
        number = self.num_shards
        return self._part._with_prior(position, slope, number * scale) / number


def shards(posterior: DataPotential, number: int, seed: int = 0) -> list[Shard]:
    """Deal the examples of a posterior, shuffled by a seed, to so many shards, whose
    sizes differ by one at most.

    Raises:
        ValueError: if there are fewer examples than shards, or as :class:`Shard` does.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> whole = LinearRegression(torch.ones(7, 1), torch.arange(7.0))
        >>> [part.num_examples for part in shards(whole, 3)]
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
    generator = Generator().manual_seed(seed)
    order = torch.randperm(posterior.num_examples, generator=generator)
    return [Shard(posterior, indices, number) for indices in order.tensor_split(number)]
