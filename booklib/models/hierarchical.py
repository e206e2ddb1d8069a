"""Networks whose prior is learned: its precisions have a distribution of their own."""

import copy
from collections.abc import Mapping

import torch
from torch import Generator, Tensor

from sgmc.checks import check_instance, check_positive
from sgmc.matrices import Matrix
from sgmc.posteriors import NetworkPosterior


class HierarchicalNetwork(NetworkPosterior):
    """The posterior of a network's weights, whose prior precisions λ = 1/τ², one for
    each tensor of weights, are drawn too (Chen et al., 2014, Section 4.2).

    :class:`booklib.models.gibbs.Gibbs` draws weights and precisions in turn.

    Args:
        arguments: those of a NetworkPosterior; the prior variances are where the
            precisions begin.
        hyperprior: a and b of the Gamma(a, b) prior, by shape and rate, of each λ.
        settings: those of a NetworkPosterior.

    Raises:
        ValueError: if the hyperprior is not positive, or for what a NetworkPosterior
            does not take.

    Example:
        >>> posterior = HierarchicalNetwork(
        ...     torch.nn.Linear(100, 50), torch.zeros(2, 100), torch.tensor([0, 1])
        ... )
        >>> drawn = posterior.draw_hyperparameters(
        ...     torch.full((3, posterior.dim), 0.1), Generator().manual_seed(0)
        ... )
        >>> bool(((drawn["weight"] > 80) & (drawn["weight"] < 120)).all())
        True
        >>> given = posterior.given({"weight": drawn["weight"], "bias": 1.0})
        >>> given.prior_precision["bias"]
        1.0
    """

    def __init__(
        self, *arguments, hyperprior: tuple[float, float] = (1.0, 1.0), **settings
    ):
        super().__init__(*arguments, **settings)
        check_hyperprior(hyperprior)
        self.hyperprior = hyperprior

    @property
    def hyperparameters(self) -> Mapping[str, float | Tensor]:
        """The prior precisions."""
        return self.prior_precision

    def given(self, prior_precision: Mapping[str, float | Tensor]):
        """Make the posterior with other prior precisions, each given by its parameter's
        name as a number or as ``(chains,)``, one a chain.

        Raises:
            ValueError: if a precision is missing, or not positive.
        """
        values = {name: torch.as_tensor(x) for name, x in prior_precision.items()}
        if set(values) != set(self.shapes) or not all(
            (0 < x).all() and x.isfinite().all() for x in values.values()
        ):
            raise ValueError(
                "prior_precision must hold a positive number for each of "
                f"{list(self.shapes)}, not {dict(prior_precision)}"
            )
        changed = copy.copy(self)
        changed.prior_precision = {name: prior_precision[name] for name in self.shapes}
        if all(x.ndim == 0 for x in values.values()):
            numbers = {name: float(x) for name, x in values.items()}
            changed.prior = self.prior_of(numbers)
        else:
            ordered = [values[name].to(self._like) for name in self.shapes]
            each = torch.stack(torch.broadcast_tensors(*ordered), -1)
            sizes = [shape.numel() for shape in self.shapes.values()]
            entries = each.repeat_interleave(torch.tensor(sizes).to(each.device), -1)
            changed.prior = Matrix.of_chains(entries)
        return changed

    def draw_hyperparameters(
        self, position: Tensor, generator: Generator
    ) -> dict[str, Tensor]:
        """Draw the precision of each tensor of weights given the position ``(chains,
        dim)``: by the parameter's name, each ``(chains,)`` float64, for :meth:`given`.
        """
        return {
            name: draw_precision(weights, self.hyperprior, generator)
            for name, weights in self.parameters_of(position).items()
        }


def draw_precision(
    weights: Tensor, hyperprior: tuple[float, float], generator: Generator
) -> Tensor:
    """Draw the precision λ of normal numbers w conditional on them: with w ~ N(0, λ⁻¹I)
    and λ ~ Gamma(a, b) it has Gamma(a + ½n, b + ½Σw²).

    Args:
        weights: w, ``(chains, n)``.
        hyperprior: a and b.
        generator: the source of randomness.

    Returns:
        λ, ``(chains,)`` float64.

    Example:
        >>> weights = torch.full((3, 10_000), 0.1)
        >>> drawn = draw_precision(weights, (1.0, 1.0), Generator().manual_seed(0))
        >>> bool(((drawn > 90) & (drawn < 110)).all())
        True
    """
    shape, rate = hyperprior
    squares = weights.double().square().sum(-1)
    concentration = torch.full_like(squares, shape + 0.5 * weights.shape[1])
    return torch.ops.aten._standard_gamma(concentration, generator) / (
        rate + 0.5 * squares
    )


def check_hyperprior(hyperprior: tuple[float, float]) -> None:
    """Raise a ValueError unless the value is a pair of positive numbers, shape and
    rate.
    """
    check_instance("hyperprior", hyperprior, tuple, "(1.0, 1.0)")
    shape, rate = hyperprior
    check_positive("hyperprior's shape", shape)
    check_positive("hyperprior's rate", rate)
