"""Variational inference: the nearest of the Gaussians whose coordinates are independent."""

import dataclasses
import time
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional
from torch.utils._pytree import tree_map_only

from sgmc.approximations.descent import check_task, descend
from sgmc.checks import check_count, check_instance, check_number, check_positive, is_number
from sgmc.draws import Draws
from sgmc.posteriors import DataPotential
from sgmc.potentials import Potential
from sgmc.randomness import normal_block


def variational(
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    num_steps: int,
    learning_rate: float = 0.01,
    num_draws: int = 1,
    alpha: float = 1.0,
    initial_std: float = 0.1,
    seed: int = 0,
    progress: bool = True,
) -> Draws:
    """Fit q = N(μ, diag σ²) to the posterior and draw from it: Bayes by Backprop (Blundell et al., 2015, eq. 1–2).

    With θ = μ + σε, ε ~ N(0, I), and σ = log(1 + e^ρ), Adam climbs the bound E_q[−U(θ)] + Σlog σ ≤ log ∫exp(−U) up to a constant, which
    is E_q[log p(D | θ)] − KL(q ‖ p) for a posterior, of any prior; a minibatch's gradient stands for all the data's.
    On a Gaussian posterior of precision A the best μ is the mean, and σᵢ² = 1/Aᵢᵢ, never above the marginal variance (Bishop, 2006,
    Section 10.1.2). With α ≠ 1 it climbs Rényi's bound 1/(1 − α)·log mean((e^−U / q)^(1 − α)) over the draws of a step (Li and Turner,
    2016, Section 4.1): α = 0 is the importance-weighted bound, and the larger α, the closer q holds to a mode.

    Each chain is a fit of its own. Where they end in different places, the bound has several maxima, or ``num_steps`` is too small.

    Args:
        potential: the target.
        position: where μ starts, ``(chains, dim)``.
        num_samples: number of draws from each chain's q, which are independent.
        num_steps: number of Adam's steps.
        learning_rate: of Adam in the first step; it falls to zero.
        num_draws: S, the draws of θ at each step; those of a chain share its minibatch.
        alpha: α; 1 for the ordinary bound.
        initial_std: where σ starts.
        seed: seed of the run's generator, the only source of randomness.
        progress: whether to show a progress bar, as :func:`sgmc.sampling.sample` does.

    Returns:
        Draws with the statistics ``mean`` and ``std``, μ and σ of the chain, ``(num_samples, chains, dim)``, and ``log_density``,
        log q(θ), ``(num_samples, chains)``: the mean of −U(θ) − log q(θ) is the bound.

    Raises:
        ValueError: if an argument is out of its range, the potential contradicts itself, or α ≠ 1 is asked for with one draw a step.
        DivergenceError: if μ or σ stops being finite.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> target = Gaussian.correlated(0.8, torch.float64)  # A has the diagonal 1/(1 − 0.8²)
        >>> draws = variational(target, torch.ones(4, 2).double(), 100, num_steps=2000, num_draws=8)
        >>> draws.samples.shape, bool((draws.statistics["std"] - 0.6).abs().max() < 0.05)
        (torch.Size([100, 4, 2]), True)
    """
    check_count("num_draws", num_draws)
    check_number("alpha", alpha)
    check_positive("initial_std", initial_std)
    if alpha != 1 and num_draws == 1:
        raise ValueError(f"alpha is {alpha}, but num_draws is 1, and with one draw Rényi's bound is the ordinary one: take at least 2")
    started = time.monotonic()
    check_task(potential, position, num_samples, seed, progress)
    generator = Generator(position.device).manual_seed(seed)
    start = torch.full_like(position, initial_std)
    mean, rho = position.detach().clone(), start + (-torch.expm1(-start)).log()  # softplus(ρ) is the start, however large

    def gradients(noise: Any) -> tuple[Tensor, Tensor]:
        std = functional.softplus(rho)
        by_mean, by_std = bound_gradient(potential, mean, std, normal_block(mean, num_draws, generator), noise, alpha)
        return by_mean, by_std * rho.sigmoid()

    complete = descend(potential, [mean, rho], gradients, generator, num_steps, learning_rate, progress)
    std = functional.softplus(rho)
    normal = normal_block(mean, num_samples, generator)
    law = torch.distributions.Normal(mean, std)
    samples = mean + std * normal
    return Draws(
        samples,
        {
            "mean": mean.expand_as(samples),
            "std": std.expand_as(samples),
            "log_density": law.log_prob(samples).sum(-1),
        },
        kernel=f"variational(num_steps={num_steps}, learning_rate={learning_rate}, num_draws={num_draws}, alpha={alpha})",
        seed=seed,
        seconds=time.monotonic() - started,
        complete=complete,
    )


def bound_gradient(
    potential: Potential, mean: Tensor, std: Tensor, normals: Tensor, noise: Any, alpha: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Estimate the gradient of the negative bound in μ and σ, a pure function.

    With θₛ = μ + σεₛ it is Σₛwₛ∇U(θₛ) in μ and Σₛwₛ∇U(θₛ)εₛ − 1/σ in σ (Blundell et al., 2015, Section 3.2, with the entropy of q in
    closed form). The weights wₛ are equal; for Rényi's bound wₛ ∝ (e^−U(θₛ) / q(θₛ))^(1 − α) (Li and Turner, 2016, Section 4.2).

    Args:
        potential: the target.
        mean: μ, ``(chains, dim)``.
        std: σ, ``(chains, dim)``.
        normals: ε, ``(S, chains, dim)``.
        noise: one step's ω of so many chains, which all draws of a chain share.
        alpha: α.

    Returns:
        Both gradients, each ``(chains, dim)``.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> zero, one = torch.zeros(1, 1), torch.ones(1, 1)
        >>> bound_gradient(Gaussian.standard(1), zero, one, torch.tensor([[[1.0]], [[-1.0]]]), None)
        (tensor([[0.]]), tensor([[0.]]))
    """
    drawn = (mean + std * normals).flatten(0, 1)
    noise = tree_map_only(Tensor, lambda omega: torch.cat([omega] * len(normals)), noise)
    slope = potential.gradient_given(drawn, noise).view_as(normals)
    if alpha == 1:
        weights = torch.full_like(slope[..., :1], 1 / len(normals))
    else:
        energy = potential.energy_given(drawn, noise) if isinstance(potential, DataPotential) else potential.energy(drawn)
        log_ratio = 0.5 * normals.square().sum(-1) - energy.view(normals.shape[:2])  # log σ is the same for all draws of a chain
        weights = torch.softmax((1 - alpha) * log_ratio, 0)[..., None]
    slope = weights * slope
    return slope.sum(0), (slope * normals).sum(0) - 1 / std


def prune(draws: Draws, share: float) -> Draws:
    """Set the weights of least signal to noise, ``|μ|/σ``, to zero in all draws of a chain (Blundell et al., 2015, Section 5.1).

    Args:
        draws: from :func:`variational`.
        share: of a chain's weights, from 0 to less than 1; a number of weights that is not whole is rounded down.

    Returns:
        Draws with the same statistics.

    Raises:
        ValueError: if the draws have no ``mean`` and ``std``, or the share would leave no weight.

    Example:
        >>> statistics = {"mean": torch.tensor([[[1.0, -2.0]]]), "std": torch.tensor([[[0.1, 1.0]]])}
        >>> prune(Draws(torch.tensor([[[1.1, -1.5]]]), statistics), 0.5).samples
        tensor([[[1.1000, 0.0000]]])
    """
    check_instance("draws", draws, Draws, "variational(...)")
    if not {"mean", "std"} <= set(draws.statistics):
        raise ValueError(f"draws must have the statistics mean and std, as those of variational do, not {sorted(draws.statistics)}")
    if not (is_number(share) and 0 <= share < 1):
        raise ValueError(f"share must be at least 0 and less than 1, which would prune all weights, but it is {share!r}")
    signal = (draws.statistics["mean"] / draws.statistics["std"])[0].abs()
    pruned = signal.argsort(-1)[:, : int(share * signal.shape[-1])]
    kept = torch.ones_like(signal, dtype=torch.bool).scatter(-1, pruned, False)
    return dataclasses.replace(draws, samples=draws.samples.where(kept, 0.0))
