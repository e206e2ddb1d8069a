"""SGHMC, compiled."""

from dataclasses import dataclass
from functools import cached_property

from sgmc.compiled.in_place import CompiledInPlace
from sgmc.kernels.sghmc import SGHMC
from sgmc.noise import OnlineNoise


@dataclass(frozen=True, eq=False)
class CompiledSGHMC(SGHMC):
    """:class:`~sgmc.kernels.SGHMC`, with its arguments, whose m steps are compiled to
    one function (Chen et al., 2014, Algorithm 2).

    Its samples are those of SGHMC of the same seed, up to rounding. Compiling takes
    from seconds to a minute, once, and needs a C++ compiler, and a potential whose
    gradient has no Python that depends on values. It pays where a step takes less than
    about 0.1 ms.

    Raises:
        ValueError: if a parameter is out of its range, the step size a schedule, or the
            noise estimate an online one.

    Example:
        >>> CompiledSGHMC(step_size=0.1, friction=3.0, num_steps=50).num_steps
        50
    """

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.noise_estimate, OnlineNoise):
            raise ValueError(
                "noise_estimate is an OnlineNoise, whose clipping depends on values, "
                "which cannot be compiled: take a fixed estimate, or SGHMC"
            )
        if callable(self.step_size):
            raise ValueError(
                "step_size is a schedule, which would have to be compiled anew for "
                "every draw: take a number, or SGHMC"
            )

    @cached_property
    def _compiled(self) -> CompiledInPlace:
        noise = self.injected_noise()
        _ = self._mass.inverse, self._damping  # numbers, before tensors are traced
        return CompiledInPlace(
            lambda *given: SGHMC.trajectory(self, *given, noise=noise)
        )

    def trajectory(self, potential, position, momentum, minibatches, normals, noise):
        """Take steps of Algorithm 2 on given random numbers, compiled; position and
        momentum are overwritten.
        """
        self._compiled(potential, position, momentum, minibatches, normals)
