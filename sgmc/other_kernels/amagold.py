"""Stochastic-gradient HMC that is corrected by the work of its own gradients."""

import math
from dataclasses import dataclass

import torch

from sgmc.checks import check_count
from sgmc.integrators import draw_momentum
from sgmc.kernels.base import WithFriction
from sgmc.kernels.hmc import HMCInfo, HMCState
from sgmc.kernels.metropolis import Guarded, accept, remark_rejections, remark_rounding
from sgmc.matrices import Matrix, MatrixLike, addmv_
from sgmc.minibatches import Fresh
from sgmc.randomness import normal_block


@dataclass(frozen=True, eq=False)
class AMAGOLD(WithFriction[HMCState]):
    """Amortized Metropolis-adjusted SGHMC (Zhang et al., 2020, Algorithm 1), exact at
    any step size, without a noise estimate.

    Draw r ~ N(0, M) and repeat L times: half a drift to y = θ + ½εM⁻¹r, the kick with
    midpoint friction r' = r − ε∇Ũ(y) − ½εCM⁻¹(r + r') + N(0, 2Cε), half a drift. Accept
    the end with probability min(1, exp(U(θ₀) − U(θ_L) + Σ∇Ũ(y)ᵀ(θ' − θ))). The sum
    is the work of the same gradients, so that all the data are read for one energy a
    path. In reverse order the minibatches must be equally likely; fresh ones always
    are, and only those are accepted here.

    Args:
        step_size: ε.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        num_steps: L, the number of steps of a path.
        mass: M; same forms.

    Raises:
        ValueError: if a parameter is out of its range, or, at the start, the minibatch
            rule is not :class:`~sgmc.minibatches.Fresh`.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> noisy = NoisyGradient(Gaussian.standard(2), 4.0)
        >>> draws = sample(AMAGOLD(0.1, 0.5, 10), noisy, torch.randn(4, 2), 200)
        >>> 0.4 < draws.statistics["acceptance"].mean() < 0.8
        tensor(True)
    """

    step_size: float
    friction: MatrixLike
    num_steps: int
    mass: MatrixLike = 1.0

    def __post_init__(self):
        super().__post_init__()
        self._friction  # raises an error unless it is a friction
        check_count("num_steps", self.num_steps)

    def init(self, potential, position, generator) -> HMCState:
        """Start at positions ``(chains, dim)``."""
        self.check_matrices(position=position)
        rule = getattr(potential, "minibatches", Fresh())
        if not isinstance(rule, Fresh):
            raise ValueError(
                f"minibatches is {rule!r}, but AMAGOLD needs minibatches that are as "
                "likely in reverse order: leave minibatches at Fresh()"
            )
        energy = potential.energy(position)
        return HMCState(position.clone(), torch.zeros_like(position), energy, 0)

    def step(self, potential, state, generator) -> tuple[HMCState, HMCInfo]:
        """Follow one path in every chain, and accept or reject its end."""
        start, _, energy, done = state
        potential = Guarded(potential, start)
        minibatches = potential.draw_minibatches(start, generator, done, self.num_steps)
        normals = normal_block(start, self.num_steps, generator)
        position, work = start.clone(), torch.zeros_like(energy)
        momentum = draw_momentum(start, self._mass, generator)
        inverse_mass, half = self._mass.inverse, self.step_size / 2  # M⁻¹, ½ε
        damping = half * (self._friction @ inverse_mass)  # ½εCM⁻¹
        keep, implicit = Matrix(1.0) - damping, (Matrix(1.0) + damping).inverse
        root = math.sqrt(2 * self.step_size) * self._friction.root  # √(2Cε)
        for minibatch, normal in zip(minibatches, normals, strict=True):
            addmv_(position, inverse_mass, momentum, alpha=half)  # y = θ + ½εM⁻¹r
            gradient = potential.gradient_given(position, minibatch)  # ∇Ũ(y; ω)
            kicked = keep @ momentum - self.step_size * gradient + root @ normal
            before, momentum = momentum, implicit @ kicked
            moved = half * (inverse_mass @ (before + momentum))  # θ' − θ
            # before the position moves, which the gradient may share its memory with
            work += (gradient * moved).sum(-1)
            addmv_(position, inverse_mass, momentum, alpha=half)  # θ' = y + ½εM⁻¹r'
        proposed = potential.energy(position)
        accepted, acceptance = accept(energy + work, proposed, generator)
        position = torch.where(accepted[:, None], position, start)
        energy = torch.where(accepted, proposed, energy)
        info = HMCInfo(acceptance, energy, done + self.num_steps)
        return HMCState(position, momentum, *info[1:]), info

    def retarget(self, potential, state) -> HMCState:
        """Evaluate another potential at the position."""
        return state._replace(energy=potential.energy(state.position))

    def diagnose(self, statistics) -> list[str]:
        """Report if hardly any path was accepted, or rounding decides."""
        return remark_rejections(statistics) + remark_rounding(statistics["energy"])
