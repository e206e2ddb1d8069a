"""Naive stochastic-gradient HMC, the failure that friction corrects."""

from dataclasses import dataclass
from itertools import count

import torch

from sgmc.checks import check_count, check_instance
from sgmc.integrators import draw_momentum, kinetic_energy, leapfrog
from sgmc.kernels.base import WithMass
from sgmc.kernels.hmc import HMCInfo, HMCState
from sgmc.kernels.metropolis import Guarded, accept
from sgmc.matrices import MatrixLike


@dataclass(frozen=True, eq=False)
class NaiveSGHMC(WithMass[HMCState]):
    """HMC whose leapfrog steps use stochastic gradients, a **biased** method (Chen et
    al., 2014, Section 3.1).

    Draw r ~ N(0, M), follow L leapfrog steps with ∇Ũ in place of ∇U, and take the end:
    noise pumps energy into the trajectory and nothing takes it out. The correction step
    repairs this at the price of full-data energies and many rejections. Every point of
    a trajectory draws one stochastic gradient, used in both half kicks that meet there.

    Args:
        step_size: ε.
        num_steps: L, the number of leapfrog steps of a trajectory.
        mass: M, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        metropolis: whether to accept or reject by the exact energy of all the data.

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = NaiveSGHMC(step_size=0.1, num_steps=50)
        >>> noisy = NoisyGradient(DoubleWell(), 4.0)
        >>> sample(kernel, noisy, torch.zeros(4, 1), num_samples=10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float
    num_steps: int
    mass: MatrixLike = 1.0
    metropolis: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_count("num_steps", self.num_steps)
        check_instance("metropolis", self.metropolis, bool, "True")

    def init(self, potential, position, generator) -> HMCState:
        """Start at positions ``(chains, dim)``; uncorrected it needs no energy."""
        self.check_matrices(position=position)
        unknown = torch.full_like(position[:, 0], torch.nan)
        start = HMCState(position.clone(), torch.zeros_like(position), unknown, 0)
        return self.retarget(potential, start)

    def step(self, potential, state, generator) -> tuple[HMCState, HMCInfo]:
        """Follow one noisy trajectory in every chain, and accept or reject its end on
        request.
        """
        potential = Guarded(potential, state.position) if self.metropolis else potential
        mass, steps = self._mass, count(state.num_gradients)

        def gradient(position):
            return potential.stochastic_gradient(position, generator, next(steps))

        start = draw_momentum(state.position, mass, generator)
        position, momentum = leapfrog(
            gradient, state.position, start, self.step_size, self.num_steps, mass
        )
        energy, acceptance = state.energy, torch.ones_like(state.energy)
        if self.metropolis:
            energy = potential.energy(position)
            before = state.energy + kinetic_energy(start, mass)
            after = energy + kinetic_energy(momentum, mass)
            accepted, acceptance = accept(before, after, generator)
            position = torch.where(accepted[:, None], position, state.position)
            energy = torch.where(accepted, energy, state.energy)
        num_gradients = state.num_gradients + self.num_steps + 1
        info = HMCInfo(acceptance, energy, num_gradients)
        return HMCState(position, momentum, energy, num_gradients), info

    def retarget(self, potential, state) -> HMCState:
        """Evaluate another potential at the position, if energies are used."""
        if not self.metropolis:
            return state
        return state._replace(energy=potential.energy(state.position))
