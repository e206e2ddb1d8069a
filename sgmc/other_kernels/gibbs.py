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
    names, such as a network's prior precisions.
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
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.models import HierarchicalNetwork
        >>> module, labels = torch.nn.Linear(4, 3), torch.arange(20) % 3
        >>> posterior = HierarchicalNetwork(module, torch.randn(20, 4), labels)
        >>> kernel = Gibbs(SGHMC(0.01, 1.0), num_steps=4)
        >>> draws = sample(kernel, posterior, torch.zeros(2, 15), num_samples=10)
        >>> draws.statistics["hyperparameters"].shape
        torch.Size([10, 2, 2])
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
        check_instance("potential", potential, Hierarchical, "HierarchicalNetwork(...)")
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
