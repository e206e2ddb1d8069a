"""What the approximations share: a way down a noisy gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_positive
from sgmc.kernels import SGLD
from sgmc.potentials import Potential
from sgmc.sampling import DivergenceError, drive
from sgmc.starting import check_start

_CHECK_EVERY = 32  # steps between two looks for parameters that are not finite


def check_task(potential: Potential, position: Tensor, num_samples: int, seed: int, progress: bool) -> None:
    """Raise a ValueError unless the potential can be followed from a position ``(chains, dim)``, as :func:`sgmc.sampling.sample` would."""
    check_count("num_samples", num_samples)
    if not isinstance(progress, bool):
        raise ValueError(f"progress must be True or False, but it is {progress!r}")
    check_start(SGLD(1.0), potential, position, seed)  # which stands for all that follows gradients


def descend(
    potential: Potential,
    parameters: Sequence[Tensor],
    gradients: Callable[[Any], Sequence[Tensor]],
    generator: Generator,
    num_steps: int,
    learning_rate: float,
    progress: bool = True,
) -> bool:
    """Follow stochastic gradients by Adam (Kingma and Ba, 2015, Algorithm 1), with a learning rate that falls in a line to zero.

    A learning rate that stays leaves parameters in a cloud about the optimum; one that falls lets them settle.

    Args:
        potential: what the gradients' noise is drawn from.
        parameters: what to move, in place; the first is ``(chains, ...)``, as many chains as there are minibatches.
        gradients: from one step's noise ω to the gradient of each parameter, downhill being its negative.
        generator: the source of the noise.
        num_steps: number of steps.
        learning_rate: at the start.
        progress: whether to show a progress bar, as :func:`sgmc.sampling.sample` does.

    Returns:
        Whether all the steps were taken; Ctrl-C stops after the present one, with a warning.

    Raises:
        ValueError: if a setting is out of its range.
        DivergenceError: if a parameter stops being finite.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> well, position = DoubleWell(), torch.tensor([[0.5]])
        >>> descend(well, [position], lambda noise: [well.gradient_given(position, noise)], Generator(), 300, 0.1)
        True
        >>> position
        tensor([[1.0000]])
    """
    check_count("num_steps", num_steps)
    check_positive("learning_rate", learning_rate)
    job = _Descent(potential, parameters, gradients, generator, num_steps, learning_rate)
    drive(job, num_steps, kept="what was reached so far is used", progress=progress)
    return job.done == num_steps


class _Descent:
    """A job of :func:`sgmc.sampling.drive`, without a checkpoint."""

    def __init__(self, potential, parameters, gradients, generator, num_steps, learning_rate):
        self.potential, self.parameters, self.gradients, self.generator, self.done = potential, parameters, gradients, generator, 0
        self.adam = torch.optim.Adam(parameters, lr=learning_rate)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adam, lambda step: 1 - step / num_steps)

    def advance(self) -> None:
        (noise,) = self.potential.draw_noise(self.parameters[0], self.generator, self.done)
        for parameter, gradient in zip(self.parameters, self.gradients(noise), strict=True):
            parameter.grad = gradient
        self.adam.step()
        self.schedule.step()
        self.done += 1
        if self.done % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        if not all(parameter.isfinite().all() for parameter in self.parameters):
            raise DivergenceError(
                f"a parameter stopped being finite, at or shortly before step {self.done}: the learning_rate is too large for this "
                "potential, or the potential's gradient is not finite on the way",
                None,
            )
