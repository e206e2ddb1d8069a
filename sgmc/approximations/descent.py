"""What the approximations share: a way down a noisy gradient."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_positive
from sgmc.potentials import Potential
from sgmc.running import Store, drive
from sgmc.sampling import DivergenceError
from sgmc.starting import check_start

_CHECK_EVERY = 32  # steps between two looks for parameters that are not finite


def check_task(
    potential: Potential, position: Tensor, num_samples: int, seed: int, progress: bool
) -> None:
    """Raise a ValueError unless the potential can be followed from a position
    ``(chains, dim)``, as :func:`sgmc.sampling.sample` would.
    """
    check_count("num_samples", num_samples)
    if not isinstance(progress, bool):
        raise ValueError(f"progress must be True or False, but it is {progress!r}")
    check_start(potential, position, seed)


class Settings(NamedTuple):
    """How to go down.

    With ``momentum_decay`` α it is by stochastic gradient descent with momentum, v ← (1
    − α)v + ∇Ũ(θ) and θ ← θ − ηv, which at α = 1 has none; without, by Adam (Kingma and
    Ba, 2015, Algorithm 1), whose steps do not grow with the scale of the energy."""

    num_steps: int  #: number of steps
    learning_rate: float  #: η at the start
    momentum_decay: float | None = None  #: α
    #: steps from one return to the first learning rate to the next; by default there is
    #: none
    cycle_length: int | None = None

    def check(self) -> None:
        """Raise a ValueError if a setting is out of its range."""
        check_count("num_steps", self.num_steps)
        check_positive("learning_rate", self.learning_rate)
        if self.momentum_decay is not None:
            check_positive("momentum_decay", self.momentum_decay)
            if self.momentum_decay > 1:
                raise ValueError(
                    "momentum_decay must be at most 1, which is no momentum at all, "
                    f"but it is {self.momentum_decay}"
                )
        if self.cycle_length is not None:
            check_count("cycle_length", self.cycle_length)

    def rate(self, step: int) -> float:
        """Compute the learning rate after so many steps, on its way to zero in a line;
        with cycles, in half a wave of a cosine each.

        A rate that stays leaves parameters in a cloud about the optimum; one that falls
        lets them settle.

        Example:
            >>> (
            ...     Settings(10, 1.0).rate(5),
            ...     round(Settings(10, 1.0, cycle_length=5).rate(6), 4),
            ... )
            (0.5, 0.9045)
        """
        if self.cycle_length is None:
            return self.learning_rate * (1 - step / self.num_steps)
        return (
            0.5
            * self.learning_rate
            * (1 + math.cos(math.pi * (step % self.cycle_length) / self.cycle_length))
        )

    def optimiser(self, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
        """Make the optimiser of some parameters."""
        if self.momentum_decay is None:
            return torch.optim.Adam(parameters, lr=self.learning_rate)
        return torch.optim.SGD(
            parameters, lr=self.learning_rate, momentum=1 - self.momentum_decay
        )


class Descent(NamedTuple):
    """What came of going down."""

    complete: bool  #: whether all the steps were taken
    seconds: float  #: wall-clock time
    kept: list[Tensor]  #: the first parameter at the end of each cycle


def descend(
    potential: Potential,
    parameters: Sequence[Tensor],
    gradients: Callable[[Any], Sequence[Tensor]],
    generator: Generator,
    settings: Settings,
    *,
    checkpoint: Store | None = None,
    what: object = None,
    progress: bool = True,
) -> Descent:
    """Follow stochastic gradients down, in place.

    Args:
        potential: what the minibatches are drawn from.
        parameters: what to move, in place; the first is ``(chains, ...)``, as many
            chains as there are minibatches.
        gradients: from one step's minibatch ω to the gradient of each parameter,
            downhill being its negative.
        generator: the source of the minibatches.
        settings: how to go down.
        checkpoint: where to save the way, as :func:`sgmc.sampling.sample` does,
            and from which to go on.
        what: all that the gradients depend on besides the potential and the parameters;
            another makes it another way.
        progress: whether to show a progress bar, as :func:`sgmc.sampling.sample` does.

    Returns:
        Whether all the steps were taken; Ctrl-C stops after the present one, with a
        warning.

    Raises:
        ValueError: if a setting is out of its range.
        DivergenceError: if a parameter stops being finite.
        CheckpointError: if the checkpoint is corrupt or of another way.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> well, position = DoubleWell(), torch.tensor([[0.5]])
        >>> way = descend(
        ...     well,
        ...     [position],
        ...     lambda minibatch: [well.gradient_given(position, minibatch)],
        ...     Generator(),
        ...     Settings(300, 0.1),
        ... )
        >>> way.complete, position
        (True, tensor([[1.0000]]))
    """
    settings.check()
    job = _Descent(potential, parameters, gradients, generator, settings, what)
    drive(
        job,
        settings.num_steps,
        checkpoint=checkpoint,
        kept="what was reached so far is used",
        progress=progress,
    )
    return Descent(job.done == settings.num_steps, job.elapsed(), job.kept)


class _Descent:
    """A job of :func:`sgmc.sampling.drive`."""

    def __init__(self, potential, parameters, gradients, generator, settings, what):
        self.what = what
        self.potential, self.parameters, self.gradients, self.generator = (
            potential,
            parameters,
            gradients,
            generator,
        )
        self.way, self.optimiser = settings, settings.optimiser(parameters)
        self.done, self.kept, self.seconds, self.started = 0, [], 0.0, time.monotonic()

    def settings(self) -> dict[str, object]:
        return {
            "potential": self.potential,
            "start": [parameter.clone() for parameter in self.parameters],
            "settings": tuple(self.way),
            "seed": self.generator.initial_seed(),
            "what": self.what,
        }

    def advance(self) -> None:
        (minibatch,) = self.potential.draw_minibatches(
            self.parameters[0], self.generator, self.done
        )
        for parameter, gradient in zip(
            self.parameters, self.gradients(minibatch), strict=True
        ):
            parameter.grad = gradient
        self.optimiser.param_groups[0]["lr"] = self.way.rate(self.done)
        self.optimiser.step()
        self.done += 1
        if self.way.cycle_length is not None and self.done % self.way.cycle_length == 0:
            self.kept.append(self.parameters[0].clone())
        if self.done % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        if not all(parameter.isfinite().all() for parameter in self.parameters):
            raise DivergenceError(
                "a parameter stopped being finite, at or shortly before step "
                f"{self.done}: the learning_rate is too large for this "
                "potential, or the potential's gradient is not finite on the way",
                None,
            )

    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self.started

    def state_dict(self) -> dict:
        return {
            "done": self.done,
            "seconds": self.elapsed(),
            "parameters": list(self.parameters),
            "optimiser": self.optimiser.state_dict()["state"],
            "generator": self.generator.get_state(),
            "kept": self.kept,
        }

    def load_state_dict(self, saved: dict) -> None:
        device = self.parameters[0].device
        self.done, self.seconds, self.started = (
            saved["done"],
            saved["seconds"],
            time.monotonic(),
        )
        for parameter, value in zip(self.parameters, saved["parameters"], strict=True):
            parameter.copy_(value)
        self.optimiser.load_state_dict(
            {**self.optimiser.state_dict(), "state": saved["optimiser"]}
        )
        self.generator.set_state(saved["generator"].cpu())
        self.kept = [position.to(device) for position in saved["kept"]]
