"""Stochastic-gradient Langevin dynamics."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from torch import Tensor

from sgmc.kernels.base import StepSize, WithTemperature
from sgmc.matrices import Matrix, MatrixLike, addmv_
from sgmc.noise import spare
from sgmc.randomness import normal_like


class SGLDState(NamedTuple):
    """A state of SGLD.

    Example:
        >>> import torch
        >>> from sgmc.targets import Gaussian
        >>> generator = torch.Generator()
        >>> SGLD(0.1).init(Gaussian.standard(1), torch.ones(2, 1), generator)
        SGLDState(position=tensor([[1.],
                [1.]]), num_gradients=0)
    """

    position: Tensor  #: (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far, one a step


class SGLDInfo(NamedTuple):
    """Information about a step of SGLD.

    Example:
        >>> import torch
        >>> from sgmc.targets import Gaussian
        >>> bowl, generator = Gaussian.standard(1), torch.Generator()
        >>> kernel = SGLD(0.1)
        >>> state = kernel.init(bowl, torch.ones(2, 1), generator)
        >>> kernel.step(bowl, state, generator)[1]
        SGLDInfo(step_size=0.1, num_gradients=1)
    """

    step_size: float  #: η of the step, the weight of its draw when step sizes fall
    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True, eq=False)
class SGLD(WithTemperature[SGLDState]):
    """Stochastic-gradient Langevin dynamics: θ ← θ − ηM⁻¹∇Ũ(θ) + N(0, 2η(TM⁻¹ −
    M⁻¹B̂M⁻¹)) (Welling and Teh, 2011, eq. 4, with M = 1 and ε = 2η).

    With T = 0 it is stochastic gradient descent. A noise estimate B̂ = ½ηV̂ takes the
    gradient's own noise out of what is injected: that has covariance η²M⁻¹VM⁻¹ =
    2ηM⁻¹BM⁻¹ in a step, and both together 2ηTM⁻¹.

    Args:
        step_size: η, a number or a schedule t → η_t of the number of steps taken so
            far, such as ``lambda t: a * (b + t) ** -gamma``.
        temperature: T, of the target exp(−U/T).
        noise_estimate: B̂, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        mass: M, the inverse of a preconditioner; same forms.

    Raises:
        ValueError: if a parameter is out of its range, or the noise estimate exceeds
            temperature times mass.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> noisy = NoisyGradient(DoubleWell(), 4.0)
        >>> sample(SGLD(0.01), noisy, torch.zeros(4, 1), num_samples=10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: StepSize
    temperature: float = 1.0
    noise_estimate: MatrixLike = 0.0
    mass: MatrixLike = 1.0

    def __post_init__(self):
        super().__post_init__()
        self._injected  # raises an error if the estimate exceeds TM

    @cached_property
    def _injected(self) -> Matrix:  # M⁻¹(TM − B̂)M⁻¹
        inverse = self._mass.inverse
        noise = spare(self.temperature, self._mass, self.noise_estimate, "mass")
        return inverse @ noise @ inverse

    def init(self, potential, position, generator) -> SGLDState:
        """Start at positions ``(chains, dim)``."""
        self.check_matrices(position=position)
        return SGLDState(position.clone(), 0)

    def step(self, potential, state, generator) -> tuple[SGLDState, SGLDInfo]:
        """Take one step in every chain, in place."""
        position, done = state
        step_size = self.step_size_at(done)
        gradient = potential.stochastic_gradient(position, generator, done)
        addmv_(position, self._mass.inverse, gradient, alpha=-step_size)
        if self.temperature > 0:  # N(0, 2η(TM⁻¹ − M⁻¹B̂M⁻¹))
            normal = normal_like(position, generator)
            addmv_(position, self._injected.root, normal, alpha=(2 * step_size) ** 0.5)
        return SGLDState(position, done + 1), SGLDInfo(step_size, done + 1)
