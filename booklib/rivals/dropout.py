"""Monte Carlo dropout: weights that are dropped or kept at random."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from booklib.rivals.descent import Settings, check_task, descend
from booklib.rivals.layers import linear_layers, outputs_of_masked
from sgmc.checks import is_number
from sgmc.door.draws import Draws
from sgmc.door.running import Store
from sgmc.posteriors import NetworkPosterior
from sgmc.potentials import Potential


def dropout(
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    rate: float | Sequence[float],
    num_steps: int,
    learning_rate: float = 0.01,
    seed: int = 0,
    checkpoint: Store | None = None,
    progress: bool = True,
) -> Draws:
    """Train by dropout and draw weights θ = z·M, z being zeros with the probability p
    and ones else (Gal and Ghahramani, 2016, Section 3).

    Adam minimises the mean over z of U(zM), of which the prior's part is ½(1 −
    p)|M|²/τ². In a network what enters a linear layer is dropped, with all the weights
    that it meets there, for every example by itself as it is trained, and for all of
    them in a draw; biases stay. Elsewhere every coordinate is dropped by itself.

    Args:
        potential: the target.
        position: where M starts, ``(chains, dim)``; each chain is trained by itself.
        num_samples: number of independent draws from each chain.
        rate: p, more than 0 and less than 1; for a network also a list, one for each of
            its linear layers, 0 where nothing is dropped.
        num_steps: number of Adam's steps.
        learning_rate: of Adam in the first step; it falls to zero.
        seed: seed of the run's generator.
        checkpoint: where to save the training, and from where to go on.
        progress: whether to show a progress bar.

    Returns:
        Draws with the statistic ``weights``, M of the chain, of the samples' shape.

    Raises:
        ValueError: if an argument is out of its range.
        DivergenceError: if M stops being finite.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> posterior = LinearRegression(torch.ones(10, 1), torch.ones(10))
        >>> draws = dropout(posterior, torch.zeros(1, 1), 6, rate=0.5, num_steps=1000)
        >>> sorted({round(value, 2) for value in draws.samples.flatten().tolist()})
        [0.0, 0.91]
    """
    rates = list(rate) if isinstance(rate, Sequence) else [rate]
    if not all(is_number(each) and 0 <= each < 1 for each in rates) or not any(rates):
        raise ValueError(
            "rate must be more than 0 and less than 1, at which all weights are "
            f"dropped, but it is {rate!r}"
        )
    check_task(potential, position, num_samples, seed)
    if isinstance(potential, NetworkPosterior):
        units, dropped = _units_of_network(potential, rates)
    elif len(rates) == 1:
        units = torch.arange(position.shape[1], device=position.device)
        dropped = torch.full(units.shape, rates[0], device=position.device)
    else:
        raise ValueError(
            "rate must be one number for a potential that is no network with layers, "
            f"but it is {rates}"
        )
    generator = Generator(position.device).manual_seed(seed)
    weights = position.detach().clone()

    def masks(*shape: int) -> Tensor:
        like = {"generator": generator, "device": weights.device}
        return (torch.rand(*shape, len(dropped), **like) >= dropped).to(weights)

    def gradients(minibatch: Any) -> tuple[Tensor]:
        if isinstance(potential, NetworkPosterior):
            number = potential.num_examples if minibatch is None else minibatch.shape[1]
            given = masks(len(weights), number), dropped, units, minibatch
            return (masked_gradient(potential, weights, *given),)
        mask = masks(len(weights))[:, units]
        return (mask * potential.gradient_given(mask * weights, minibatch),)

    settings = Settings(num_steps, learning_rate)
    way = descend(
        potential, [weights], gradients, generator, settings, progress, checkpoint, rate
    )
    samples = masks(num_samples, len(weights))[..., units] * weights
    name = f"dropout(rate={rate}, num_steps={num_steps}, learning_rate={learning_rate})"
    return way.draws(samples, name, seed, weights=weights.expand_as(samples))


def masked_gradient(
    posterior: NetworkPosterior,
    weights: Tensor,
    masks: Tensor,
    rates: Tensor,
    units: Tensor,
    minibatch: Tensor | None,
) -> Tensor:
    """Estimate the gradient in M of the mean over z of U(zM), with masks for each
    example: a pure function.

    Args:
        posterior: the target.
        weights: M, ``(chains, dim)``.
        masks: z, for each example and each unit, layer after layer: ``(chains, n,
            units)``, of which the last is no unit.
        rates: p of each unit, ``(units,)``.
        units: the unit of each coordinate, ``(dim,)``.
        minibatch: the indices of a minibatch ``(chains, n)``, or None for all the data.
    """
    batch = posterior.gather(minibatch)
    sizes = [layer.in_features for layer in linear_layers(posterior).values()]
    with torch.enable_grad():
        variable = weights.detach().requires_grad_()
        outputs = outputs_of_masked(
            posterior, variable, batch[0], masks.split([*sizes, 1], -1)[:-1]
        )
        loss = posterior.likelihood.loss(outputs, batch[1])
        (slope,) = torch.autograd.grad(loss, variable)
    kept, scale = 1 - rates[units], posterior.num_examples / batch[0].shape[1]
    return slope.mul_(scale) - kept * posterior.grad_log_prior(weights)


def _units_of_network(
    posterior: NetworkPosterior, rates: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Number the inputs of linear layers, with the rate of each, and tell which number
    each coordinate has; the last number is for all other coordinates.
    """
    layers = linear_layers(posterior)
    sizes = [layer.in_features for layer in layers.values()]
    rates = [*rates] * len(layers) if len(rates) == 1 else rates
    if len(rates) != len(layers):
        raise ValueError(
            f"rate must be a number, or one for each of the {len(layers)} linear "
            f"layers, but it is {rates}"
        )
    units, begin = torch.full((1, posterior.dim or 0), sum(sizes)), 0
    for name, layer in layers.items():
        # the tensor is a view
        weight = posterior.parameters_of(units)[f"{name}.weight".lstrip(".")]
        own = torch.arange(begin, begin := begin + layer.in_features)
        weight.view(layer.out_features, layer.in_features)[:] = own
    device = posterior.data[0].device
    each = torch.tensor([*rates, 0.0]).repeat_interleave(torch.tensor([*sizes, 1]))
    return units[0].to(device), each.to(device)
