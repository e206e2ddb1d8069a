"""Cyclical step sizes: large ones to find modes, small ones to sample them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor

from sgmc.checks import check_count, check_instance, check_number, check_positive
from sgmc.kernels.base import Kernel

_LONGEST = 10**8  # steps of a cycle: the last step size of a longer one rounds to zero


class CyclicalState(NamedTuple):
    """A state of the kernel whose step size goes in cycles.

    Example:
        >>> import torch
        >>> from sgmc.kernels import SGLD
        >>> from sgmc.targets import Gaussian
        >>> kernel = Cyclical(SGLD, step_size=0.1, cycle_length=10, num_draws=2)
        >>> state = kernel.init(
        ...     Gaussian.standard(1), torch.ones(2, 1), torch.Generator()
        ... )
        >>> state.position, state.num_draws
        (tensor([[1.],
                [1.]]), 0)
    """

    inner: Any  #: the state of that kernel
    num_draws: int  #: draws so far

    @property
    def position(self) -> Tensor:
        """The position ``(chains, dim)``."""
        return self.inner.position


class CyclicalInfo(NamedTuple):
    """Information about the steps up to a draw.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.kernels import SGLD
        >>> from sgmc.targets import Gaussian
        >>> kernel = Cyclical(SGLD, step_size=0.1, cycle_length=10, num_draws=2)
        >>> draws = sample(kernel, Gaussian.standard(1), torch.ones(2, 1), 4)
        >>> draws.statistics["cycle"][:, 0], draws.statistics["draw"][:, 0]
        (tensor([0, 0, 1, 1]), tensor([0, 1, 0, 1]))
    """

    cycle: int  #: number of the cycle, from 0
    draw: int  #: number of the draw within its cycle, from 0
    inner: Any  #: the info of the last step


@dataclass(frozen=True, eq=False)
class Cyclical(Kernel[CyclicalState]):
    """Another kernel with a step size that falls from η₀ to almost nothing, again and
    again (Zhang et al., 2020, Algorithm 1).

    In a cycle of ℓ steps the one after j others has the step size η = ½η₀(cos(πj/ℓ) +
    1). The first βℓ steps of a cycle explore: nothing of them is kept. The others
    sample: draws are taken at equal distances among them, the last one at the end of
    the cycle. One call of ``step`` goes from one draw to the next.

    A state is handed on as it is. With :meth:`sgmc.kernels.SGHMC.from_learning_rate`
    that is θ and r, whose density exp(−U(θ) − ½r²) no step size enters, as it would
    enter that of the velocity v = εr.

    Args:
        kernel: from a step size to the kernel that samples, such as ``SGLD`` or
            ``lambda rate: SGHMC.from_learning_rate(rate, 0.1)``.
        step_size: η₀, the largest step size.
        cycle_length: ℓ, number of steps of a cycle; with M cycles in K steps, ⌈K/M⌉.
        num_draws: number of draws of each cycle.
        exploration: β, the share of a cycle that explores.
        cold: whether the exploration has the temperature 0, and so no noise.

    Raises:
        ValueError: if a parameter is out of its range, fewer steps are left to sample
            than there are draws, or the function returns no kernel, or one without a
            temperature that is to be 0.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.kernels import SGLD
        >>> from sgmc.targets import GaussianMixture
        >>> kernel = Cyclical(SGLD, 0.07, 100, num_draws=5, exploration=0.25)
        >>> draws = sample(kernel, GaussianMixture(), torch.zeros(1, 2), num_samples=20)
        >>> draws.samples.shape, draws.statistics["cycle"][:, 0].unique()
        (torch.Size([20, 1, 2]), tensor([0, 1, 2, 3]))
    """

    kernel: Callable[[float], Kernel]
    step_size: float
    cycle_length: int
    num_draws: int = 1
    exploration: float = 0.0
    cold: bool = field(default=False, kw_only=True)

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        check_count("cycle_length", self.cycle_length)
        check_positive("cycle_length", self.cycle_length, at_most=_LONGEST)
        check_count("num_draws", self.num_draws)
        check_number("exploration", self.exploration, 0)
        sampling = max(self.cycle_length - self._num_exploring, 0)
        if self.num_draws > sampling:
            raise ValueError(
                f"num_draws is {self.num_draws}, but an exploration of "
                f"{self.exploration} leaves {sampling} of the {self.cycle_length} "
                "steps of a cycle to sample: ask for fewer draws, a smaller share, or "
                "a longer cycle"
            )
        check_instance("cold", self.cold, bool, "True")
        # These are the largest step sizes of both stages, and the smallest.
        for phase in {0, self._num_exploring, self.cycle_length - 1}:
            self._kernel_of(phase)

    @property
    def _num_exploring(self) -> int:
        # The product is rounded, or 0.28 of 25 steps would be eight.
        return math.ceil(round(self.exploration * self.cycle_length, 9))

    @cached_property
    def _kernels(self) -> dict[int, Kernel]:
        return {}  # the kernels made so far, by their place in the cycle

    def _kernel_of(self, phase: int) -> Kernel:
        """Make the kernel of the step after so many others of a cycle."""
        if phase in self._kernels:
            return self._kernels[phase]
        wave = 1 + math.cos(math.pi * phase / self.cycle_length)
        try:
            made: Any = self.kernel(0.5 * self.step_size * wave)
            if self.cold and phase < self._num_exploring:
                made = replace(made, temperature=0.0)
        except TypeError as error:
            raise ValueError(
                "kernel must be a function from a step size to a kernel, such as SGLD, "
                f"which has a temperature if cold, but it is {self.kernel!r}: {error}"
            ) from error
        check_instance("what kernel makes", made, Kernel, "SGLD(0.1)")
        return self._kernels.setdefault(phase, made)

    def init(self, potential, position, generator) -> CyclicalState:
        """Start at positions ``(chains, dim)``, at the beginning of a cycle."""
        return CyclicalState(self._kernel_of(0).init(potential, position, generator), 0)

    def step(self, potential, state, generator) -> tuple[CyclicalState, CyclicalInfo]:
        """Take all steps up to the next draw, in every chain."""
        cycle, number = divmod(state.num_draws, self.num_draws)
        exploring, inner, info = self._num_exploring, state.inner, None
        sampling = self.cycle_length - exploring
        # These are the places in the cycle of this draw and of the one before.
        before, last = (
            exploring + sampling * n // self.num_draws for n in (number, number + 1)
        )
        for phase in range(before if number else 0, last):
            inner, info = self._kernel_of(phase).step(potential, inner, generator)
        info = CyclicalInfo(cycle, number, info)
        return CyclicalState(inner, state.num_draws + 1), info

    def retarget(self, potential, state) -> CyclicalState:
        """Renew the inner state for another potential."""
        return state._replace(inner=self._kernel_of(0).retarget(potential, state.inner))

    def target_temperature(self) -> float | None:
        """Return None, because the steps get smaller in every cycle."""
        return None

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report a run that ended within its first cycle, and the inner kernel's own
        problems.
        """
        found = self._kernel_of(self.cycle_length - 1).diagnose(statistics)
        cycle, draw = (int(statistics[name][-1, 0]) for name in ("cycle", "draw"))
        if cycle == 0 and draw < self.num_draws - 1:
            found.append(
                f"the run ended after {draw + 1} of the {self.num_draws} draws of its "
                "first cycle, before the step size was small: "
                "take a shorter cycle, or a longer run [too-wide]"
            )
        return found
