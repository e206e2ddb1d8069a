"""Hyperpriors: the precisions of a network's prior, drawn along with its weights."""

import torch
from torch import Generator, Tensor

from sgmc.kernels.metropolis import check_positive
from sgmc.posteriors import NetworkPosterior


def draw_precisions(
    posterior: NetworkPosterior, position: Tensor, generator: Generator, shape: float = 1.0, rate: float = 1.0
) -> dict[str, float]:
    """Draw the precision of each tensor of weights from its full conditional law, a Gibbs step (Chen et al., 2014, Section 4.2).

    With w ~ N(0, λ⁻¹I) of n entries and λ ~ Gamma(a, b), a the shape and b the rate, λ | w ~ Gamma(a + ½n, b + ½Σw²), whatever the data.

    Args:
        posterior: the posterior whose parameters the position holds; it is not changed.
        position: θ, ``(1, dim)``.
        generator: the source of randomness, on the position's device.
        shape: the number a.
        rate: the number b.

    Returns:
        λ by the name of the parameter, to be set as ``posterior.prior_precision``.

    Raises:
        ValueError: if there is more than one chain, for the chains share one prior; or shape or rate is not positive.

    Example:
        >>> posterior = NetworkPosterior(torch.nn.Linear(100, 50), torch.zeros(2, 100), torch.tensor([0, 1]))
        >>> posterior.prior_precision = draw_precisions(posterior, torch.full((1, posterior.dim), 0.1), Generator().manual_seed(0))
        >>> 80 < posterior.prior_precision["weight"] < 120
        True
    """
    check_positive("shape", shape)
    check_positive("rate", rate)
    if len(position) != 1:
        raise ValueError(f"position holds {len(position)} chains, but precisions are drawn for one: (1, dim)")
    draws = {}
    for name, weights in posterior.parameters_of(position).items():
        weights = weights.double()
        standard = torch._standard_gamma(weights.new_tensor(shape + 0.5 * weights.numel()), generator)
        draws[name] = float(standard / (rate + 0.5 * weights.square().sum()))
    return draws
