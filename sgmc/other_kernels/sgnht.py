"""Stochastic-gradient Nosé–Hoover thermostat."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from sgmc.checks import check_number
from sgmc.integrators import draw_momentum
from sgmc.kernels.base import WithMass
from sgmc.matrices import MatrixLike, addmv_
from sgmc.randomness import normal_like


class SGNHTState(NamedTuple):
    """A state of the thermostat.

    Example:
        >>> import torch
        >>> from sgmc.targets import Gaussian
        >>> kernel = SGNHT(0.1, diffusion=0.5)
        >>> kernel.init(
        ...     Gaussian.standard(1), torch.ones(2, 1), torch.Generator()
        ... ).friction
        tensor([0.5000, 0.5000])
    """

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    friction: Tensor  #: ξ, (chains,)
    num_gradients: int  #: gradient evaluations of each chain so far


class SGNHTInfo(NamedTuple):
    """Information about a step.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> kernel = SGNHT(0.1, diffusion=0.5)
        >>> draws = sample(kernel, Gaussian.standard(1), torch.ones(2, 1), 3)
        >>> sorted(draws.statistics)
        ['friction', 'num_gradients']
    """

    friction: Tensor  #: ξ, (chains,)
    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True, eq=False)
class SGNHT(WithMass[SGNHTState]):
    """Stochastic-gradient Nosé–Hoover thermostat (Ding et al., 2014, Algorithm 2):
    SGHMC whose friction adapts, in place of an estimate of the gradient noise.

    r ← r − εξM⁻¹r − ε∇Ũ(θ) + N(0, 2Aε), then θ ← θ + εM⁻¹r, both with the new r, and ξ
    ← ξ + ε(rᵀM⁻¹r/dim − 1), which is in balance when the mean kinetic energy is right.
    Gradient noise N(0, V) raises ξ to about A + ½εV. One ξ serves all coordinates: with
    noise that differs from one to another some are too wide and others too narrow.

    The noise of a step alone brings 2Aε·tr(M⁻¹)/dim to the mean of rᵀM⁻¹r/dim. From 1
    on no friction takes out enough, and ξ rises without end: such a step is invalid.

    Args:
        step_size: ε.
        diffusion: A, of the noise that is injected, and ξ at the start.
        mass: M, a number, a tensor ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if a parameter is out of its range, or 2Aε·tr(M⁻¹)/dim not below 1.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> noisy = NoisyGradient(Gaussian.standard(50), 4.0)
        >>> draws = sample(SGNHT(0.1, 1.0), noisy, torch.randn(4, 50), 1_000)
        >>> 1.1 < draws.statistics["friction"].mean() < 1.4  # A + ½εV = 1.2
        tensor(True)
    """

    step_size: float
    diffusion: float
    mass: MatrixLike = 1.0

    def __post_init__(self):
        super().__post_init__()
        check_number("diffusion", self.diffusion, 0)
        inverse = self._mass.inverse
        diagonal = inverse.tensor.diagonal() if inverse.full else inverse.tensor
        heat = 2 * self.diffusion * self.step_size * float(diagonal.mean())
        if heat >= 1:
            raise ValueError(
                f"diffusion times 2·step_size over mass is {heat:.4g}, but must be "
                "below 1, from where on the friction rises without end: lower "
                "diffusion or step_size"
            )

    def init(self, potential, position, generator) -> SGNHTState:
        """Start at positions ``(chains, dim)`` with momenta from N(0, M) and ξ = A."""
        self.check_matrices(position=position)
        momentum = draw_momentum(position, self._mass, generator)
        friction = position.new_full((len(position),), self.diffusion)
        return SGNHTState(position.clone(), momentum, friction, 0)

    def step(self, potential, state, generator) -> tuple[SGNHTState, SGNHTInfo]:
        """Take one step in every chain, in place."""
        position, momentum, friction, done = state
        step_size, inverse_mass = self.step_size, self._mass.inverse  # ε, M⁻¹
        gradient = potential.stochastic_gradient(position, generator, done)
        normal = normal_like(momentum, generator)
        velocity = inverse_mass @ momentum
        momentum -= step_size * (friction[:, None] * velocity + gradient)
        momentum.add_(normal, alpha=math.sqrt(2 * self.diffusion * step_size))
        addmv_(position, inverse_mass, momentum, alpha=step_size)
        kinetic = (momentum * (inverse_mass @ momentum)).mean(-1)
        friction = friction + step_size * (kinetic - 1)
        info = SGNHTInfo(friction, done + 1)
        return SGNHTState(position, momentum, friction, done + 1), info
