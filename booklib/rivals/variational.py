"""Variational inference: the closest Gaussian whose coordinates are independent."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn import functional
from torch.utils._pytree import tree_map_only

from booklib.rivals.descent import Settings, check_task, descend
from booklib.rivals.layers import linear_layers, outputs_of_law
from sgmc.checks import check_count, check_number, check_positive
from sgmc.door.draws import Draws
from sgmc.door.running import Store
from sgmc.posteriors import DataPotential, NetworkPosterior
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
    local: bool = False,
    initial_std: float = 0.1,
    seed: int = 0,
    checkpoint: Store | None = None,
    progress: bool = True,
) -> Draws:
    """Fit q = N(μ, diag σ²) to the posterior and draw from it: Bayes by Backprop
    (Blundell et al., 2015, eq. 1–2).

    With θ = μ + σε, ε ~ N(0, I), and σ = log(1 + e^ρ), Adam climbs the bound E_q[−U(θ)]
    + Σlog σ ≤ log ∫exp(−U) up to a constant, which is E_q[log p(D | θ)] − KL(q ‖ p) for
    a posterior; a minibatch's gradient stands for all the data's. On a Gaussian
    posterior of precision A the best μ is the mean, and σᵢ² = 1/Aᵢᵢ, never above the
    marginal variance (Bishop, 2006, Section 10.1.2). With α ≠ 1 it climbs Rényi's bound
    1/(1 − α)·log mean((e^−U / q)^(1 − α)) over the draws of a step (Li and Turner,
    2016, eq. 5): α = 0 is the importance-weighted bound, and the larger α, the closer q
    holds to a mode. Each chain is a fit of its own.

    Args:
        potential: the target.
        position: where μ starts, ``(chains, dim)``.
        num_samples: number of independent draws from each chain's q.
        num_steps: number of Adam's steps.
        learning_rate: of Adam in the first step; it falls to zero.
        num_draws: S, the draws of θ at each step; those of a chain share its minibatch.
        alpha: α; 1 for the ordinary bound.
        local: whether to draw the outputs of a network's layers and not its weights
            (Kingma et al., 2015), for less noise in the gradient, of a
            :class:`sgmc.posteriors.NetworkPosterior` of linear layers.
        initial_std: where σ starts.
        seed: seed of the run's generator.
        checkpoint: where to save the training, and from where to go on.
        progress: whether to show a progress bar.

    Returns:
        Draws with the statistics ``mean`` and ``std``, μ and σ of the chain, and
        ``log_density``, log q(θ), ``(num_samples, chains)``: the mean of −U(θ) − log
        q(θ) is the bound.

    Raises:
        ValueError: if an argument is out of its range, α ≠ 1 is asked for with one draw
            a step, or the potential has no linear layers to draw the outputs of.
        DivergenceError: if μ or σ stops being finite.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> target = Gaussian.correlated(0.8)  # A has the diagonal 1/(1 − 0.8²)
        >>> fit = dict(num_steps=2000, num_draws=8)
        >>> draws = variational(target, torch.ones(4, 2), 100, **fit)
        >>> bool((draws.statistics["std"] - 0.6).abs().max() < 0.05)
        True
    """
    check_count("num_draws", num_draws)
    check_number("alpha", alpha)
    check_positive("initial_std", initial_std)
    if alpha != 1 and num_draws == 1:
        raise ValueError(
            f"alpha is {alpha}, but num_draws is 1, and with one draw Rényi's bound "
            "is the ordinary one: take at least 2"
        )
    check_task(potential, position, num_samples, seed)
    if local:
        _check_local(potential, num_draws, alpha)
    generator = Generator(position.device).manual_seed(seed)
    start = torch.full_like(position, initial_std)
    # softplus(ρ) is the start, however large it is.
    mean, rho = position.detach().clone(), start + (-torch.expm1(-start)).log()

    def gradients(minibatch: Any) -> tuple[Tensor, Tensor]:
        std = functional.softplus(rho)
        normals = normal_block(mean, num_draws, generator)
        if local and isinstance(potential, NetworkPosterior):
            of_outputs = _normals_of_outputs(potential, mean, minibatch, generator)
            given = potential, mean, std, normals[0], of_outputs, minibatch
            by_mean, by_std = local_bound_gradient(*given)
        else:
            given = potential, mean, std, normals, minibatch, alpha
            by_mean, by_std = bound_gradient(*given)
        return by_mean, by_std * rho.sigmoid()

    way = descend(
        potential,
        [mean, rho],
        gradients,
        generator,
        Settings(num_steps, learning_rate),
        progress,
        checkpoint,
        what=(num_draws, alpha, local),
    )
    std = functional.softplus(rho)
    normal = normal_block(mean, num_samples, generator)
    samples = mean + std * normal
    log_density = torch.distributions.Normal(mean, std).log_prob(samples).sum(-1)
    name = f"variational(num_steps={num_steps}, learning_rate={learning_rate}, "
    name += f"num_draws={num_draws}, alpha={alpha}{', local=True' * local})"
    fit = {"mean": mean.expand_as(samples), "std": std.expand_as(samples)}
    return way.draws(samples, name, seed, **fit, log_density=log_density)


def bound_gradient(
    potential: Potential,
    mean: Tensor,
    std: Tensor,
    normals: Tensor,
    minibatch: Any,
    alpha: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Estimate the gradients of the negative bound in μ and σ, all ``(chains, dim)``,
    from ε ``(S, chains, dim)`` and one step's minibatches: a pure function.

    With θₛ = μ + σεₛ they are Σₛwₛ∇U(θₛ) and Σₛwₛ∇U(θₛ)εₛ − 1/σ (Blundell et al., 2015,
    eq. 3–4, with the entropy of q in closed form). The weights wₛ are equal; for
    Rényi's bound wₛ ∝ (e^−U(θₛ) / q(θₛ))^(1 − α) (Li and Turner, 2016, eq. 8).

    Example:
        >>> from sgmc.targets import Gaussian
        >>> law, normals = (torch.zeros(1, 1), torch.ones(1, 1)), torch.ones(1, 1, 1)
        >>> bound_gradient(Gaussian.standard(1), *law, normals, None)
        (tensor([[1.]]), tensor([[0.]]))
    """
    drawn = (mean + std * normals).flatten(0, 1)
    minibatch = tree_map_only(
        Tensor, lambda omega: torch.cat([omega] * len(normals)), minibatch
    )
    slope = potential.gradient_given(drawn, minibatch).view_as(normals)
    if alpha == 1:
        weights = torch.full_like(slope[..., :1], 1 / len(normals))
    else:
        energy = (
            potential.energy_given(drawn, minibatch)
            if isinstance(potential, DataPotential)
            else potential.energy(drawn)
        )
        # log σ is the same for all draws of a chain.
        log_ratio = 0.5 * normals.square().sum(-1) - energy.view(normals.shape[:2])
        weights = torch.softmax((1 - alpha) * log_ratio, 0)[..., None]
    slope = weights * slope
    return slope.sum(0), (slope * normals).sum(0) - 1 / std


def local_bound_gradient(
    posterior: NetworkPosterior,
    mean: Tensor,
    std: Tensor,
    normals: Tensor,
    normals_of_outputs: Sequence[Tensor],
    minibatch: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Estimate the gradients of the negative bound in μ and σ, all ``(chains, dim)``,
    from drawn outputs (Kingma et al., 2015), a pure function.

    Their mean is that of :func:`bound_gradient`, but every example has a draw of its
    own, of standard normal numbers ``(chains, n, outputs)`` for each layer, so that the
    noise of the draws falls with the minibatch. The prior has one, ε ``(chains, dim)``.

    Example:
        >>> posterior = NetworkPosterior(
        ...     torch.nn.Linear(1, 2), torch.zeros(6, 1), torch.arange(6) % 2
        ... )
        >>> zero, one, normals = (
        ...     torch.zeros(1, 4),
        ...     torch.ones(1, 4),
        ...     torch.zeros(1, 6, 2),
        ... )
        >>> local_bound_gradient(posterior, zero, one, one, [normals], None)
        (tensor([[1., 1., 1., 1.]]), tensor([[0., 0., 0., 0.]]))
    """
    batch = posterior.gather(minibatch)
    with torch.enable_grad():
        mean, std = (parameter.detach().requires_grad_() for parameter in (mean, std))
        outputs = outputs_of_law(posterior, mean, std, batch[0], normals_of_outputs)
        slopes = torch.autograd.grad(
            posterior.likelihood.loss(outputs, batch[1]), (mean, std)
        )
    mean, std = mean.detach(), std.detach()
    scale = posterior.num_examples / batch[0].shape[1]
    pull = -posterior.grad_log_prior(mean + std * normals)
    by_mean, by_std = (scale * slope for slope in slopes)
    return by_mean + pull, by_std + pull * normals - 1 / std


def _normals_of_outputs(
    posterior: NetworkPosterior,
    mean: Tensor,
    noise: Tensor | None,
    generator: Generator,
) -> list[Tensor]:
    number = posterior.num_examples if noise is None else noise.shape[1]
    like = {"generator": generator, "dtype": mean.dtype, "device": mean.device}
    return [
        torch.randn(len(mean), number, layer.out_features, **like)
        for layer in linear_layers(posterior).values()
    ]


def _check_local(potential: Potential, num_draws: int, alpha: float) -> None:
    if not isinstance(potential, NetworkPosterior):
        raise ValueError(
            "local draws the outputs of layers, of a potential that is a "
            f"NetworkPosterior, but it is {type(potential).__name__}: leave it out"
        )
    layers = linear_layers(potential).values()
    owned = sum(p.numel() for layer in layers for p in layer.parameters())
    if owned < (potential.dim or 0):
        raise ValueError(
            "local is for networks of linear layers alone, but this one has others "
            "with parameters: leave it out"
        )
    if num_draws != 1 or alpha != 1:
        raise ValueError(
            "local gives every example a draw of its own, for which num_draws and "
            f"alpha are 1, but they are {num_draws} and {alpha}: "
            "leave one or the other out"
        )
