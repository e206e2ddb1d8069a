"""The interface of a kernel."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Generator, Tensor

from sgmc import checks
from sgmc.matrices import Matrix, MatrixLike, as_matrix
from sgmc.potentials import Potential


class _HasPosition(Protocol):
    @property
    def position(self) -> Tensor: ...


State = TypeVar("State", bound=_HasPosition)
StepSize = float | Callable[[int], float]  # may be a schedule


@runtime_checkable
class Kernel(Protocol[State]):
    """A kernel that moves chains: a frozen dataclass of tuning parameters with three
    methods, which many chains follow at once.

    A *state* describes a chain: a NamedTuple of tensors and numbers, with the
    ``position`` ``(chains, dim)`` among them, all that a run needs to go on. An *info*
    is what a step learned: a NamedTuple, whose fields become the statistics of the
    draws, each ``(chains,)`` or one number for all chains; a field that is None is left
    out.

    Example:
        >>> import torch
        >>> class Here(NamedTuple):
        ...     position: Tensor
        >>> class Step(NamedTuple):
        ...     length: Tensor
        >>> class GradientDescent(Kernel):
        ...     def init(self, potential, position, generator):
        ...         return Here(position.clone())
        ...
        ...     def step(self, potential, state, generator):
        ...         step = -0.1 * potential.gradient(state.position)
        ...         return Here(state.position + step), Step(step.norm(dim=-1))
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell
        >>> start = torch.full((3, 1), 0.5)
        >>> draws = sample(GradientDescent(), DoubleWell(), start, num_samples=50)
        >>> draws.samples[-1, 0].round(decimals=2), draws.statistics["length"].shape
        (tensor([1.]), torch.Size([50, 3]))
    """

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> State:
        """Make the state of chains that start at a position ``(chains, dim)``, which is
        not changed.
        """
        ...

    def step(
        self, potential: Potential, state: State, generator: Generator
    ) -> tuple[State, NamedTuple]:
        """Make the next state, which may overwrite the old one; return it with
        information about the step.
        """
        ...

    def retarget(self, potential: Potential, state: State) -> State:
        """Renew the parts of a state that depend on its potential when another
        potential takes its place.
        """
        return state

    def target_temperature(self) -> float | None:
        """Return T of the density exp(−U/T) that the samples should have, 1 by default;
        None if they should have none, such as while step sizes fall.
        """
        return 1.0

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report problems of a run by its statistics, a sentence each."""
        return []


class WithMass(Kernel[State]):
    """A kernel with ε and M, which are checked here, with C and B̂ if it has them.

    Example:
        >>> import torch
        >>> from sgmc.kernels import HMC
        >>> isinstance(HMC(0.1, 10), WithMass)
        True
        >>> HMC(0.1, 10, mass=torch.ones(2)).check_matrices(position=torch.zeros(4, 3))
        Traceback (most recent call last):
        ValueError: the numbers of coordinates do not agree: position has 3, mass has 2
    """

    step_size: Any
    mass: MatrixLike

    def __post_init__(self):
        checks.check_positive("step_size", self.step_size)
        self.check_matrices()

    @cached_property
    def _mass(self) -> Matrix:  # M
        return as_matrix(self.mass, "mass", positive=True)

    def check_matrices(self, **others: Tensor) -> None:
        """Raise a ValueError unless the matrices are valid and have one number of
        coordinates, which the others, such as positions ``(chains, dim)``, share.
        """
        self._mass
        names = ("friction", "noise_estimate", "mass")
        given = {name: getattr(self, name) for name in names if hasattr(self, name)}
        checks.check_dims(**others, **given)


class WithFriction(WithMass[State]):
    """A kernel with a mass and the friction C.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> isinstance(SGHMC(0.1, friction=3.0), WithFriction)
        True
        >>> SGHMC(1.0, friction=3.0)
        Traceback (most recent call last):
        ValueError: friction times step_size over mass is 3 ...
    """

    friction: MatrixLike

    @cached_property
    def _friction(self) -> Matrix:  # C
        return as_matrix(self.friction, "friction")

    def check_decay(self, step_size: float) -> None:
        """Raise a ValueError unless all eigenvalues of εM⁻¹C are below 2, above which
        no step of Algorithm 2 is stable: r ← (1 − εCM⁻¹)r reverses r and does not
        shorten it, and a force adds to that. On U = ½θᵀAθ a step is stable if and only
        if M − ½εC − ¼ε²A is positive definite.
        """
        root = self._mass.inverse.root
        decay = step_size * max((root @ self._friction @ root).eigenvalues)
        if decay >= 2:
            raise ValueError(
                f"friction times step_size over mass is {decay:.4g} (in the learning-"
                "rate form the momentum_decay), but must be below 2, from where on "
                "momenta grow at any target: lower friction or step_size, or take "
                "flows.baoab of sgmc.splittings, which is stable at any friction"
            )


class WithTemperature(WithMass[State]):
    """A kernel with a mass and a temperature, whose step sizes may follow a
    schedule.

    Example:
        >>> from sgmc.kernels import SGLD
        >>> kernel = SGLD(lambda step: 0.5 / (1 + step))
        >>> isinstance(kernel, WithTemperature), kernel.step_size_at(4)
        (True, 0.1)
        >>> SGLD(0.1, temperature=0.5).target_temperature()
        0.5
    """

    step_size: StepSize
    temperature: float

    def __post_init__(self):
        checks.check_step_size("step_size", self.step_size, "draws")
        checks.check_number("temperature", self.temperature, 0)
        self.check_matrices()

    def step_size_at(self, time: int) -> float:
        """Return the step size, or the schedule's step size at a time."""
        if not callable(self.step_size):
            return self.step_size
        step_size = self.step_size(time)
        checks.check_number("step_size", step_size, 0)
        return step_size

    def target_temperature(self) -> float | None:
        """Return T; None with a schedule of step sizes, or without noise."""
        fixed = not callable(self.step_size) and self.temperature > 0
        return self.temperature if fixed else None
