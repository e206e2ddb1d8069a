"""Hyperparameters, drawn along with the parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_instance
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential


@runtime_checkable
class Hierarchical(Protocol):
    """A potential that depends on hyperparameters, numbers or ``(chains,)`` by their
    names, such as prior precisions.
    """

    hyperparameters: Mapping[str, float | Tensor]  #: the present hyperparameters

    def given(self, hyperparameters: Mapping[str, float | Tensor]) -> Potential:
        """Make the potential with other hyperparameters."""
        ...

    def draw_hyperparameters(
        self, position: Tensor, generator: Generator
    ) -> dict[str, Tensor]:
        """Draw the hyperparameters of every chain, each ``(chains,)``, given its
        position.
        """
        ...


class GibbsState(NamedTuple):
    """A state of the parameters and of the hyperparameters."""

    inner: Any  #: the state of the kernel that moves the parameters
    hyperparameters: dict[str, Tensor]  #: by name, each (chains,) float64

    @property
    def position(self) -> Tensor:
        """The parameters ``(chains, dim)``."""
        return self.inner.position


class GibbsInfo(NamedTuple):
    """Information about a step."""

    #: the hyperparameters in their order, (chains, number) float64
    hyperparameters: Tensor
    inner: NamedTuple  #: the info of the kernel that moves the parameters


@dataclass(frozen=True, eq=False)
class Gibbs(Kernel[GibbsState]):
    """Take some steps of another kernel given the hyperparameters, and then draw these
    given the parameters (Geman and Geman, 1984; Chen et al., 2014, Section 4.2).

    Args:
        kernel: the kernel that moves the parameters.
        num_steps: number of its steps from one draw of the hyperparameters to the next.

    Raises:
        ValueError: if the number of steps is less than one, or the potential has no
            hyperparameters.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.kernels import HMC
        >>> class Scale(Potential):  # θ ~ N(0, 1/λ) and λ ~ Gamma(3, 1)
        ...     dim = 1
        ...
        ...     def __init__(self, precision=1.0):
        ...         self.hyperparameters = {"precision": precision}
        ...
        ...     def energy(self, position):
        ...         precision = self.hyperparameters["precision"]
        ...         return 0.5 * precision * position.square().sum(-1)
        ...
        ...     def given(self, hyperparameters):
        ...         return Scale(**hyperparameters)
        ...
        ...     def draw_hyperparameters(self, position, generator):
        ...         shape = torch.full(position.shape[:1], 3.5, dtype=torch.float64)
        ...         gamma = torch._standard_gamma(shape, generator)
        ...         return {"precision": gamma / (1 + 0.5 * position[:, 0] ** 2)}
        >>> kernel = Gibbs(HMC(0.3, 4), num_steps=2)
        >>> draws = sample(kernel, Scale(), torch.zeros(2, 1), num_samples=10)
        >>> draws.statistics["hyperparameters"].shape
        torch.Size([10, 2, 1])
    """

    kernel: Kernel
    num_steps: int = 1

    def __post_init__(self):
        check_instance("kernel", self.kernel, Kernel, "SGHMC(...)")
        check_count("num_steps", self.num_steps)

    def init(
        self, potential: Any, position: Tensor, generator: Generator
    ) -> GibbsState:
        """Start at positions ``(chains, dim)`` with the potential's hyperparameters."""
        check_instance("potential", potential, Hierarchical, "one with hyperparameters")
        ones = torch.ones(len(position), dtype=torch.float64, device=position.device)
        given = {name: ones * x for name, x in potential.hyperparameters.items()}
        return GibbsState(self.kernel.init(potential, position, generator), given)

    def step(
        self, potential: Any, state: GibbsState, generator: Generator
    ) -> tuple[GibbsState, GibbsInfo]:
        """Move the parameters, then draw the hyperparameters."""
        given = potential.given(state.hyperparameters)
        inner = self.kernel.retarget(given, state.inner)
        for _ in range(self.num_steps):
            inner, info = self.kernel.step(given, inner, generator)
        drawn = potential.draw_hyperparameters(inner.position, generator)
        # The state's order counts, whatever the order drawn.
        drawn = {name: drawn[name] for name in state.hyperparameters}
        values = torch.stack(list(drawn.values()), -1)
        return GibbsState(inner, drawn), GibbsInfo(values, info)

    def target_temperature(self) -> float | None:
        """Return None, because the potential changes with the hyperparameters drawn."""
        return None

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report the problems of the kernel that moves the parameters."""
        return self.kernel.diagnose(statistics)
