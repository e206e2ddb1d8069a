"""Hamiltonian Monte Carlo."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_instance, check_number, check_positive
from sgmc.integrators import draw_momentum, kinetic_energy, leapfrog
from sgmc.kernels.base import WithMass
from sgmc.kernels.metropolis import Guarded, accept, remark_rejections, remark_rounding
from sgmc.matrices import MatrixLike


class HMCState(NamedTuple):
    """A state of HMC.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> state = HMC(0.1, 5).init(
        ...     Gaussian.standard(1), torch.ones(2, 1), Generator()
        ... )
        >>> state.energy, state.num_gradients
        (tensor([0.5000, 0.5000]), 0)
    """

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    energy: Tensor  #: U at the position, (chains,)
    num_gradients: int  #: gradient evaluations of each chain so far


class HMCInfo(NamedTuple):
    """Information about a step of HMC.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> draws = sample(HMC(0.1, 5), Gaussian.standard(1), torch.ones(2, 1), 3)
        >>> sorted(draws.statistics) == sorted(HMCInfo._fields)
        True
    """

    acceptance: Tensor  #: probability with which the proposal was accepted, (chains,)
    energy: Tensor  #: U at the position, (chains,)
    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True, eq=False)
class HMC(WithMass[HMCState]):
    """Hamiltonian Monte Carlo with leapfrog steps (Duane et al., 1987; Neal, 2011,
    Section 5.3).

    Refresh the momentum, r ← √(1 − φ²) r + φ N(0, M); follow L leapfrog steps to (θ',
    r'); accept (θ', r') with probability min(1, exp(H(θ, r) − H(θ', r'))), otherwise
    stay at θ and turn round, r ← −r. With φ = 1 this is the usual algorithm, with φ < 1
    partial refreshment (Horowitz, 1991), and with L = 1 the Metropolis-adjusted
    Langevin algorithm.

    Args:
        step_size: ε.
        num_steps: L, the number of leapfrog steps of a trajectory.
        mass: M, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        metropolis: whether to accept or reject; without, every proposal is taken.
        jitter: each trajectory has a random number of steps, uniform on the whole
            numbers between (1 ± jitter)·L.
        refreshment: φ in (0, 1].

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> bowl, kernel = Gaussian.standard(2), HMC(step_size=0.5, num_steps=3)
        >>> draws = sample(kernel, bowl, torch.zeros(4, 2), num_samples=10)
        >>> draws.samples.shape
        torch.Size([10, 4, 2])
    """

    step_size: float
    num_steps: int
    mass: MatrixLike = 1.0
    metropolis: bool = True
    jitter: float = 0.0
    refreshment: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        check_count("num_steps", self.num_steps)
        check_instance("metropolis", self.metropolis, bool, "True")
        check_number("jitter", self.jitter, 0, 1)
        check_positive("refreshment", self.refreshment, at_most=1)

    def init(self, potential, position, generator) -> HMCState:
        """Start at positions ``(chains, dim)`` with momenta from N(0, M)."""
        self.check_matrices(position=position)
        momentum = draw_momentum(position, self._mass, generator)
        return HMCState(position.clone(), momentum, potential.energy(position), 0)

    def step(self, potential, state, generator) -> tuple[HMCState, HMCInfo]:
        """Refresh the momentum, follow a trajectory, accept or reject its end."""
        potential = Guarded(potential, state.position) if self.metropolis else potential
        mass = self._mass
        fresh = draw_momentum(state.position, mass, generator)
        kept = math.sqrt(1 - self.refreshment**2)
        start = kept * state.momentum + self.refreshment * fresh
        num_steps = self.draw_num_steps(generator)
        position, momentum = leapfrog(
            potential.gradient, state.position, start, self.step_size, num_steps, mass
        )
        energy = potential.energy(position)
        before = state.energy + kinetic_energy(start, mass)
        after = energy + kinetic_energy(momentum, mass)
        accepted, acceptance = accept(before, after, generator)
        if self.metropolis:
            position = torch.where(accepted[:, None], position, state.position)
            momentum = torch.where(accepted[:, None], momentum, -start)
            energy = torch.where(accepted, energy, state.energy)
        num_gradients = state.num_gradients + num_steps + 1
        info = HMCInfo(acceptance, energy, num_gradients)
        return HMCState(position, momentum, energy, num_gradients), info

    def retarget(self, potential, state) -> HMCState:
        """Evaluate another potential at the position."""
        return state._replace(energy=potential.energy(state.position))

    def draw_num_steps(self, generator: Generator) -> int:
        """Draw the number of leapfrog steps of a trajectory."""
        # The product is rounded, because 0.29 * 100 falls short of 29.
        spread = math.floor(round(self.jitter * self.num_steps, 9))
        if spread == 0:
            return self.num_steps
        low, high = self.num_steps - spread, self.num_steps + spread
        place = {"generator": generator, "device": generator.device}
        return int(torch.randint(low, high + 1, (), **place))

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report a run in which hardly any proposal was accepted, or rounding
        decided.
        """
        return remark_rejections(statistics) + remark_rounding(statistics["energy"])
