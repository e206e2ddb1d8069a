"""Snapshot ensembles: the modes that one descent finds on its way."""

from typing import Any

import torch
from torch import Generator, Tensor

from booklib.rivals.descent import Settings, check_task, descend
from sgmc.checks import check_count
from sgmc.door.draws import Draws
from sgmc.door.running import Store
from sgmc.potentials import Potential


def snapshots(
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    cycle_length: int,
    learning_rate: float,
    momentum_decay: float = 0.1,
    seed: int = 0,
    checkpoint: Store | None = None,
    progress: bool = True,
) -> Draws:
    """Descend again and again from where the last descent ended, and keep the place at
    the end of each (Huang et al., 2017, Section 3).

    Stochastic gradient descent, v ← (1 − α)v + ∇Ũ(θ) and θ ← θ − ηv, at a learning rate
    that starts every cycle anew and falls by half a wave of a cosine: the high rate
    leaves a mode, and the low one settles. Nothing makes the modes found those of the
    posterior, in number or in weight.

    Args:
        potential: the target.
        position: where to start, ``(chains, dim)``.
        num_samples: number of cycles, and of draws of each chain.
        cycle_length: number of steps of a cycle.
        learning_rate: η in the first step of a cycle, for the energy of all the data.
        momentum_decay: α, more than 0 and at most 1, which is without momentum.
        seed: seed of the minibatches.
        checkpoint: where to save the training, and from where to go on.
        progress: whether to show a progress bar.

    Returns:
        Draws ``(num_samples, chains, dim)``, or those of the cycles before Ctrl-C.

    Raises:
        ValueError: if an argument is out of its range.
        DivergenceError: if a position stops being finite.

    Example:
        >>> from sgmc.targets import DoubleWell
        >>> given = dict(cycle_length=100, learning_rate=0.05)
        >>> draws = snapshots(DoubleWell(), torch.tensor([[0.5]]), 2, **given)
        >>> draws.samples.flatten().round(decimals=2)
        tensor([1., 1.])
    """
    check_task(potential, position, num_samples, seed)
    check_count("cycle_length", cycle_length)
    place = position.detach().clone()

    def gradients(minibatch: Any) -> tuple[Tensor]:
        return (potential.gradient_given(place, minibatch),)

    way = descend(
        potential,
        [place],
        gradients,
        Generator(position.device).manual_seed(seed),
        Settings(
            num_samples * cycle_length, learning_rate, momentum_decay, cycle_length
        ),
        progress,
        checkpoint,
    )
    samples = torch.stack(way.kept) if way.kept else place.new_empty(0, *place.shape)
    name = (
        f"snapshots(cycle_length={cycle_length}, learning_rate={learning_rate}, "
        f"momentum_decay={momentum_decay})"
    )
    return way.draws(samples, name, seed)
