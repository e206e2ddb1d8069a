# ruff: noqa: D102 (the methods of Descent are those of a Job)
"""The descent by noisy gradients that the approximations share."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_positive
from sgmc.door.draws import Draws
from sgmc.door.running import Store, drive
from sgmc.door.sampling import DivergenceError
from sgmc.door.starting import check_start
from sgmc.potentials import Potential

_CHECK_EVERY = 32  # the number of steps between two checks that parameters are finite
_LARGEST_RATE = 1e30  # an optimiser's product with anything larger overflows


def check_task(
    potential: Potential, position: Tensor, num_samples: int, seed: int
) -> None:
    """Raise a ValueError unless the potential can be followed from a position
    ``(chains, dim)``, as :func:`sgmc.door.sampling.sample` would.
    """
    check_count("num_samples", num_samples)
    check_start(potential, position, seed)


class Settings(NamedTuple):
    """The settings of a descent.

    With ``momentum_decay`` α it is by stochastic gradient descent with momentum, v ← (1
    − α)v + ∇Ũ(θ) and θ ← θ − ηv; without, by Adam (Kingma and Ba, 2015, Algorithm 1),
    whose steps do not grow with the scale of the energy.
    """

    num_steps: int  #: number of steps
    learning_rate: float  #: η at the start
    momentum_decay: float | None = None  #: α, at most 1, which is no momentum
    #: steps from one return to the first learning rate to the next; None for never
    cycle_length: int | None = None

    def check(self) -> None:
        """Raise a ValueError if a setting is out of its range."""
        check_count("num_steps", self.num_steps)
        check_positive("learning_rate", self.learning_rate, at_most=_LARGEST_RATE)
        if self.momentum_decay is not None:
            check_positive("momentum_decay", self.momentum_decay, at_most=1)

    def rate(self, step: int) -> float:
        """Compute the learning rate after so many steps: it falls to zero in a straight
        line or, with cycles, in half a wave of a cosine each, so that parameters
        settle.

        Example:
            >>> Settings(10, 1.0).rate(5), Settings(10, 1.0, cycle_length=4).rate(6)
            (0.5, 0.5)
        """
        if self.cycle_length is None:
            return self.learning_rate * (1 - step / self.num_steps)
        phase = math.pi * (step % self.cycle_length) / self.cycle_length
        return 0.5 * self.learning_rate * (1 + math.cos(phase))

    def optimiser(self, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
        """Make the optimiser of some parameters."""
        if self.momentum_decay is None:
            return torch.optim.Adam(parameters, lr=self.learning_rate)
        return torch.optim.SGD(
            parameters, lr=self.learning_rate, momentum=1 - self.momentum_decay
        )


def descend(
    potential: Potential,
    parameters: Sequence[Tensor],
    gradients: Callable[[Any], Sequence[Tensor]],
    generator: Generator,
    settings: Settings,
    progress: bool = True,
    checkpoint: Store | None = None,
    what: object = None,
) -> "Descent":
    """Follow stochastic gradients downhill, in place.

    Args:
        potential: what the minibatches are drawn from.
        parameters: what to move, in place; the first is ``(chains, ...)``, as many
            chains as there are minibatches.
        gradients: from one step's minibatch ω to the gradient of each parameter.
        generator: the source of the minibatches.
        settings: how to go down.
        progress: whether to show a progress bar.
        checkpoint: where to save the way, and from where to go on.
        what: all that the gradients depend on besides potential and parameters.

    Returns:
        What came of it; Ctrl-C stops after the present step, with a warning.

    Raises:
        ValueError: if a setting is out of its range.
        DivergenceError: if a parameter stops being finite.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> well, position = DoubleWell(), torch.tensor([[0.5]])
        >>> gradients = lambda ω: [well.gradient_given(position, ω)]
        >>> settings = Settings(300, learning_rate=0.1)
        >>> descend(well, [position], gradients, Generator(), settings).complete
        True
        >>> position
        tensor([[1.0000]])
    """
    settings.check()
    job = Descent(potential, parameters, gradients, generator, settings, what)
    kept = "what was reached so far is used"
    drive(job, settings.num_steps, checkpoint=checkpoint, kept=kept, progress=progress)
    return job


class Descent:
    """A descent, as a job of :func:`sgmc.door.running.drive`."""

    kept: list[Tensor]  #: the first parameter at the end of each cycle

    def __init__(self, potential, parameters, gradients, generator, way, what):
        self.potential, self.parameters = potential, parameters
        self.gradients, self.generator = gradients, generator
        self.way, self.optimiser = way, way.optimiser(parameters)
        self.what, self.done, self.kept = what, 0, []
        self.started = time.monotonic()

    @property
    def complete(self) -> bool:
        """Whether all steps were taken."""
        return self.done == self.way.num_steps

    @property
    def seconds(self) -> float:
        """Wall-clock time so far, including the time before a stop."""
        return time.monotonic() - self.started

    def draws(
        self, samples: Tensor, kernel: str, seed: int, **statistics: Tensor
    ) -> Draws:
        """Return the draws made at the end, with how they were found."""
        how: Any = dict(seed=seed, seconds=self.seconds, complete=self.complete)
        return Draws(samples, statistics, kernel=kernel, **how)

    def settings(self) -> dict[str, object]:
        return {
            "potential": self.potential,
            "start": [parameter.clone() for parameter in self.parameters],
            "settings": tuple(self.way),
            "seed": self.generator.initial_seed(),
            "what": self.what,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "seconds": self.seconds,
            "parameters": list(self.parameters),
            "optimiser": self.optimiser.state_dict()["state"],
            "generator": self.generator.get_state(),
            "kept": self.kept,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.done = saved["done"]
        self.started = time.monotonic() - saved["seconds"]
        for parameter, value in zip(self.parameters, saved["parameters"], strict=True):
            parameter.copy_(value)
        optimiser = self.optimiser.state_dict()
        self.optimiser.load_state_dict({**optimiser, "state": saved["optimiser"]})
        self.generator.set_state(saved["generator"].cpu())
        self.kept = [x.to(self.parameters[0].device) for x in saved["kept"]]

    def advance(self) -> None:
        first, every = self.parameters[0], self.way.cycle_length
        (minibatch,) = self.potential.draw_minibatches(first, self.generator, self.done)
        gradients = self.gradients(minibatch)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimiser.param_groups[0]["lr"] = self.way.rate(self.done)
        self.optimiser.step()
        self.done += 1
        if every is not None and self.done % every == 0:
            self.kept.append(first.clone())
        if self.done % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        if not all(parameter.isfinite().all() for parameter in self.parameters):
            raise DivergenceError(
                "a parameter stopped being finite, at or shortly before step "
                f"{self.done}: the learning_rate is too large for this potential, or "
                "the potential's gradient is not finite on the way",
                None,
            )
