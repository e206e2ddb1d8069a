"""Monte Carlo dropout: weights that are there or not."""

import time
from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.approximations.descent import check_task, descend
from sgmc.checks import check_tensor, is_number
from sgmc.draws import Draws
from sgmc.potentials import Potential


def dropout(
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    rate: float,
    num_steps: int,
    learning_rate: float = 0.01,
    units: Tensor | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Draws:
    """Train by dropout and draw weights θ = z·M, z being zeros with the probability p and ones else (Gal and Ghahramani, 2016, Section 3).

    Adam minimises the mean over z of U(zM), of which the prior's part is ½(1 − p)|M|²/τ²; this is variational inference with the law of θ
    as q, whose entropy is taken to be constant. In linear regression with noise variance σ² and G = XᵀX the best M is
    ((1 − p)G + p·diag G + (σ²/τ²)I)⁻¹Xᵀy, and a prediction xᵀθ has the variance p(1 − p)Σxⱼ²Mⱼ², which more data do not shrink.

    Args:
        potential: the target.
        position: where M starts, ``(chains, dim)``; each chain is trained by itself.
        num_samples: number of draws from each chain's law, which are independent.
        rate: p, more than 0 and less than 1.
        num_steps: number of Adam's steps.
        learning_rate: of Adam in the first step; it falls to zero.
        units: the number of the unit that each coordinate belongs to, ``(dim,)`` int64, and −1 where it is never dropped, such as a bias;
            coordinates of one unit are dropped together. Each is a unit of its own by default, as in a linear model.
        seed: seed of the run's generator, the only source of randomness.
        progress: whether to show a progress bar, as :func:`sgmc.sampling.sample` does.

    Returns:
        Draws with the statistic ``weights``, M of the chain, ``(num_samples, chains, dim)``.

    Raises:
        ValueError: if an argument is out of its range, or the potential contradicts itself.
        DivergenceError: if M stops being finite.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> posterior = LinearRegression(torch.ones(10, 1), torch.ones(10))
        >>> draws = dropout(posterior, torch.zeros(1, 1), 6, rate=0.5, num_steps=1000)
        >>> sorted({round(value, 2) for value in draws.samples.flatten().tolist()})
        [0.0, 0.91]
    """
    if not (is_number(rate) and 0 < rate < 1):
        raise ValueError(f"rate must be more than 0 and less than 1, at which all weights are dropped, but it is {rate!r}")
    started = time.monotonic()
    check_task(potential, position, num_samples, seed, progress)
    units, generator = _units(position, units), Generator(position.device).manual_seed(seed)
    weights = position.detach().clone()

    def masks(number: int) -> Tensor:
        uniform = torch.rand(number, len(weights), int(units.max()) + 2, generator=generator, device=weights.device)
        uniform[..., -1] = 1.0  # at −1, the last place
        return (uniform >= rate)[..., units].to(weights)

    def gradients(noise: Any) -> tuple[Tensor]:
        mask = masks(1)[0]
        return (mask * potential.gradient_given(mask * weights, noise),)

    complete = descend(potential, [weights], gradients, generator, num_steps, learning_rate, progress)
    samples = masks(num_samples) * weights
    name = f"dropout(rate={rate}, num_steps={num_steps}, learning_rate={learning_rate})"
    statistics = {"weights": weights.expand_as(samples)}
    return Draws(samples, statistics, kernel=name, seed=seed, seconds=time.monotonic() - started, complete=complete)


def _units(position: Tensor, units: Tensor | None) -> Tensor:
    dim = position.shape[1]
    if units is None:
        return torch.arange(dim, device=position.device)
    check_tensor("units", units, "dim", floating=False)
    if units.dtype != torch.int64 or units.shape != (dim,) or int(units.min()) < -1 or int(units.max()) >= dim:
        raise ValueError(
            f"units must be the numbers of {dim} coordinates' units, int64 from -1 to {dim - 1}, but are {tuple(units.shape)} "
            f"{units.dtype} from {int(units.min())} to {int(units.max())}"
        )
    if int(units.max()) == -1:
        raise ValueError("units are all -1, so that no coordinate is ever dropped: number those that may be")
    return units.to(position.device)
