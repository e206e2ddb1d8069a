"""A kernel that follows any splitting."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from torch import Tensor

from sgmc.checks import check_count, check_dims, check_number
from sgmc.integrators import draw_momentum
from sgmc.kernels.base import Kernel
from sgmc.matrices import Matrix, MatrixLike, as_matrix
from sgmc.splittings.flows import Flow, _check_flows, advance


class SplittingState(NamedTuple):
    """A state of a splitting.

    Example:
        >>> import torch
        >>> from sgmc.splittings import flows
        >>> from sgmc.targets import Gaussian
        >>> kernel, generator = Splitting(flows.baoab(0.5, 1.0)), torch.Generator()
        >>> state = kernel.init(Gaussian.standard(1), torch.ones(2, 1), generator)
        >>> state.position, state.num_gradients
        (tensor([[1.],
                [1.]]), 0)
    """

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far


class SplittingInfo(NamedTuple):
    """Information about a step of a splitting.

    Example:
        >>> import torch
        >>> from sgmc.splittings import flows
        >>> from sgmc.targets import Gaussian
        >>> bowl, generator = Gaussian.standard(1), torch.Generator()
        >>> kernel = Splitting(flows.baoab(0.5, 1.0), num_steps=3)
        >>> state = kernel.init(bowl, torch.ones(2, 1), generator)
        >>> kernel.step(bowl, state, generator)[1]  # two kicks a step
        SplittingInfo(num_gradients=6)
    """

    num_gradients: int  #: gradient evaluations of each chain so far


@dataclass(frozen=True, eq=False)
class Splitting(Kernel[SplittingState]):
    """Follow a list of :mod:`sgmc.splittings.flows`, whose exact law on a Gaussian is
    :func:`sgmc.splittings.linear_chain` of the same list.

    Args:
        flows: the list, such as :func:`sgmc.splittings.flows.baoab`; every kick
            draws a stochastic gradient of its own.
        num_steps: number of times that the list is followed between two draws.
        mass: M, of the momentum at the start: a number, ``(dim,)`` or ``(dim, dim)``.
        temperature: T of the list, for the momentum at the start and for remarks.

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.splittings import flows
        >>> from sgmc.targets import Gaussian
        >>> kernel = Splitting(flows.baoab(step_size=1.0, friction=1.0))
        >>> sample(kernel, Gaussian.standard(2), torch.zeros(4, 2), 50).samples.shape
        torch.Size([50, 4, 2])
    """

    flows: Sequence[Flow]
    num_steps: int = 1
    mass: MatrixLike = 1.0
    temperature: float = 1.0

    def __post_init__(self):
        _check_flows(self.flows)
        check_count("num_steps", self.num_steps)
        as_matrix(self.mass, "mass", positive=True)
        check_number("temperature", self.temperature, 0)

    def init(self, potential, position, generator) -> SplittingState:
        """Start at positions ``(chains, dim)`` with momenta from N(0, TM)."""
        matrices = {
            f"{name} of {type(flow).__name__}": value
            for flow in self.flows
            for name, value in vars(flow).items()
            if isinstance(value, (Matrix, Tensor))
        }
        check_dims(position=position, mass=self.mass, **matrices)
        mass, temperature = Matrix.of(self.mass), self.temperature
        momentum = draw_momentum(position, mass, generator, temperature)
        return SplittingState(position.clone(), momentum, 0)

    def step(self, potential, state, generator) -> tuple[SplittingState, SplittingInfo]:
        """Follow the flows, in place."""
        position, momentum, num_gradients = state
        steps = count(num_gradients)

        def gradient(position: Tensor) -> Tensor:
            return potential.stochastic_gradient(position, generator, next(steps))

        for _ in range(self.num_steps):
            advance(self.flows, position, momentum, gradient, generator)
        done = next(steps)
        return SplittingState(position, momentum, done), SplittingInfo(done)

    def target_temperature(self) -> float | None:
        """Return T; None without noise."""
        return self.temperature or None
