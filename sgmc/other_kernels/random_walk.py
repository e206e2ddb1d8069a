"""Random-walk Metropolis."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from sgmc.checks import check_positive
from sgmc.kernels.base import Kernel
from sgmc.kernels.metropolis import Guarded, accept, remark_rejections, remark_rounding
from sgmc.randomness import normal_like


class RandomWalkState(NamedTuple):
    """A state of random-walk Metropolis.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> walk, bowl = RandomWalkMetropolis(0.5), Gaussian.standard(1)
        >>> walk.init(bowl, torch.ones(2, 1), torch.Generator())
        RandomWalkState(position=tensor([[1.],
                [1.]]), energy=tensor([0.5000, 0.5000]))
    """

    position: Tensor  #: (chains, dim)
    energy: Tensor  #: U at the position, (chains,)


class MetropolisInfo(NamedTuple):
    """Information about a step of random-walk Metropolis.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> walk, bowl = RandomWalkMetropolis(0.5), Gaussian.standard(1)
        >>> draws = sample(walk, bowl, torch.ones(2, 1), 3)
        >>> sorted(draws.statistics)
        ['acceptance', 'energy']
    """

    acceptance: Tensor  #: probability with which the proposal was accepted, (chains,)
    energy: Tensor  #: U at the position, (chains,)


@dataclass(frozen=True)
class RandomWalkMetropolis(Kernel[RandomWalkState]):
    """Random-walk Metropolis: propose θ' ~ N(θ, ε²I), accept with probability min(1,
    π(θ')/π(θ)) (Metropolis et al., 1953).

    Args:
        step_size: ε, the **standard deviation** of a proposal in each coordinate,
            positive; else a ValueError.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell
        >>> kernel = RandomWalkMetropolis(step_size=1.0)
        >>> sample(kernel, DoubleWell(), torch.zeros(4, 1), 10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float

    def __post_init__(self):
        check_positive("step_size", self.step_size)

    def init(self, potential, position, generator) -> RandomWalkState:
        """Start at the given position ``(chains, dim)``."""
        return RandomWalkState(position.clone(), potential.energy(position))

    def step(
        self, potential, state, generator
    ) -> tuple[RandomWalkState, MetropolisInfo]:
        """Propose a move for every chain, and accept or reject it."""
        noise = normal_like(state.position, generator)
        proposal = state.position + self.step_size * noise
        proposed_energy = Guarded(potential, state.position).energy(proposal)
        accepted, acceptance = accept(state.energy, proposed_energy, generator)
        position = torch.where(accepted[:, None], proposal, state.position)
        energy = torch.where(accepted, proposed_energy, state.energy)
        return RandomWalkState(position, energy), MetropolisInfo(acceptance, energy)

    def retarget(self, potential, state) -> RandomWalkState:
        """Evaluate another potential at the position."""
        return RandomWalkState(state.position, potential.energy(state.position))

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report a run in which hardly any proposal was accepted, or rounding
        decided.
        """
        return remark_rejections(statistics) + remark_rounding(statistics["energy"])
