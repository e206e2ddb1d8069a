"""The correction step of Metropolis."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_map

from sgmc.checks import warn
from sgmc.potentials import ERRORS, Potential
from sgmc.randomness import uniform_like


def accept(
    energy: Tensor, proposed_energy: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Make the Metropolis decision min(1, exp(H − H')) for every chain (Metropolis et
    al., 1953); a proposal whose energy is not finite is rejected.

    Args:
        energy: H, ``(chains,)``.
        proposed_energy: H', ``(chains,)``.
        generator: the source of the decisions.

    Returns:
        Which chains accept, ``(chains,)`` bool, and the probability with which they do,
        ``(chains,)``.

    Example:
        >>> accept(torch.zeros(2), torch.tensor([-1.0, math.inf]), Generator())
        (tensor([ True, False]), tensor([1., 0.]))
    """
    proposed_energy = torch.where(proposed_energy.isfinite(), proposed_energy, math.inf)
    probability = torch.exp((energy - proposed_energy).clamp(max=0)).nan_to_num(nan=0.0)
    return uniform_like(energy, generator) < probability, probability


def remark_rejections(statistics: dict[str, Tensor]) -> list[str]:
    """Report, by the statistic ``acceptance`` ``(num_samples, chains)``, if hardly any
    proposal was accepted.

    Example:
        >>> remark_rejections({"acceptance": torch.zeros(9, 2)})[0][:40]
        '0.00% of the proposals were accepted: th'
    """
    mean = float(statistics["acceptance"].mean())
    if mean >= 0.01:
        return []
    return [
        f"{mean:.2%} of the proposals were accepted: the draws are mostly "
        "repetitions. Take a smaller step_size, such as adapt finds [never-moves]"
    ]


def remark_rounding(energies: Tensor) -> list[str]:
    """Report if the last energies ``(num_samples, chains)`` are so large that rounding
    decides about proposals.

    Example:
        >>> remark_rounding(torch.full((1, 1), 1e8))[0][:46]
        'energies are about 1e+08, which torch.float32 '
    """
    size = float(energies[-1].abs().max())
    spacing = torch.finfo(energies.dtype).eps * size
    if not 0.25 < spacing < math.inf:
        return []
    return [
        f"energies are about {size:.1g}, which {energies.dtype} rounds to multiples of "
        f"about {spacing:.1g}: rounding decides about proposals. Use "
        "float64 for positions and data, or leave constants out of the energy [dtype]"
    ]


class Guarded(Potential):
    """A potential on the trajectories of a kernel that rejects: an error, such as where
    a scale underflows to zero or a matrix has no Cholesky factor, becomes NaN, so that
    no chain goes there.

    All chains are evaluated together, hence the chain that is to blame is searched by
    halving, with all others at a place which is known to be good.

    Args:
        potential: the potential.
        good: positions ``(chains, dim)`` at which most chains can be evaluated.

    Example:
        >>> class Bounded(Potential):
        ...     def energy(self, position):
        ...         if position.max() > 1:
        ...             raise ValueError("beyond 1")
        ...         return position.sum(-1)
        >>> guarded = Guarded(Bounded(), torch.zeros(2, 1))
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     guarded.energy(torch.tensor([[1.0], [2.0]]))
        tensor([1., nan])
    """

    def __init__(self, potential: Potential, good: Tensor):
        self.potential, self.good = potential, good

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ), or NaN."""
        return self._guard(self.potential.energy, position)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U(θ), or NaN."""
        return self._guard(self.potential.gradient, position)

    def draw_minibatches(self, *arguments):
        """Draw the minibatches of the potential."""
        return self.potential.draw_minibatches(*arguments)

    def gradient_given(self, position: Tensor, minibatch: Any) -> Tensor:
        """Compute ∇Ũ(θ; ω), or NaN."""
        given = lambda x: self.potential.gradient_given(x, minibatch)
        return self._guard(given, position)

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ), or NaN."""
        return self._guard(self.potential.energy_and_gradient, position)

    def _guard(self, function: Callable, position: Tensor):
        try:
            return function(position)
        except ERRORS as error:
            # This is where a trajectory began; the last drift of a tree may end
            # anywhere.
            places = self.good, *(one.expand_as(self.good) for one in self.good[:9])
            good = next((place for place in places if _works(function, place)), None)
            if good is None:
                raise  # it fails wherever the chains are
            reason = str(error).partition("\n")[0]
            warn(
                f"the potential raised {type(error).__name__} on a trajectory, which "
                f"counts as one that leaves the support: {reason} [outside]"
            )

        def failing(chains: Tensor) -> Tensor:
            """Find the chains among some for which the function fails."""
            if _works(function, good.index_copy(0, chains, position[chains])):
                return chains[:0]
            if len(chains) == 1:
                return chains
            return torch.cat([failing(half) for half in chains.chunk(2)])

        # The chains of a trajectory that failed before need no search.
        lost = ~position.isfinite().all(-1)
        position = torch.where(lost[:, None], good, position)
        lost[failing(torch.arange(len(lost), device=lost.device))] = True
        result = function(torch.where(lost[:, None], good, position))
        chains = lost.nonzero()[:, 0]
        return tree_map(lambda x: x.index_fill(0, chains, math.nan), result)


def _works(function: Callable, position: Tensor) -> bool:
    try:
        function(position)
    except ERRORS:
        return False
    return True
