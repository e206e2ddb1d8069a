"""The mean-field law of a Nosé–Hoover thermostat (Ding et al., 2014), for many
coordinates.

One friction ξ for all of them moves by the mean of M⁻¹r², and so settles where that
mean is T. With very many coordinates it stands still there, and then every coordinate
is a linear chain with that friction, whose law is known.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sgmc.splittings import linear_chain
from sgmc.splittings.flows import Flow


def mean_field_variance(
    step: Callable[[float], Sequence[Flow]],
    curvature: Tensor,
    temperature: float,
    gradient_variance: float = 0.0,
    mass: float = 1.0,
) -> Tensor:
    """Solve for the friction at which the mean of M⁻¹r² is T, and give the variance of
    each coordinate there.

    Args:
        step: the flows of a step, from the friction ξ; its noise does not depend on ξ.
        curvature: a, ``(dim,)``, each of equally many coordinates.
        temperature: the temperature T.
        gradient_variance: V of each coordinate.
        mass: the mass M.

    Returns:
        Variances ``(dim,)``; infinite where no friction is in balance.

    Example:
        >>> from sgmc.splittings.flows import Drift, Kick, MomentumMap, noise_flow
        >>> from sgmc.matrices import Matrix
        >>> step = lambda xi: [  # Ding et al., Algorithm 2, with A = 0.1
        ...     Kick(0.01),
        ...     MomentumMap(Matrix(1 - 0.01 * xi), Matrix(2 * 0.1 * 0.01)),
        ...     Drift(0.01),
        ... ]
        >>> mean_field_variance(step, torch.tensor([1.0, 2.0]), 1.0)
        tensor([1.0005, 0.5003], dtype=torch.float64)
    """
    precision = torch.diag(curvature.double())
    dim = len(curvature)

    def covariance(friction: float) -> Tensor:
        try:
            chain = linear_chain(step(friction), precision, gradient_variance)
            return chain.stationary_covariance().diagonal()
        except ValueError:  # With too little friction nothing is stationary.
            return torch.full((2 * dim,), torch.inf, dtype=torch.float64)

    low, high = 0.0, 1.0
    while covariance(high)[dim:].mean() / mass > temperature and high < 1e6:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        if covariance(middle)[dim:].mean() / mass > temperature:
            low = middle
        else:
            high = middle
    return covariance(high)[:dim]
