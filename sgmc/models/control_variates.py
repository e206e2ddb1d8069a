"""Minibatch gradients with less noise."""

import torch
from torch import Tensor

from sgmc.checks import MEMORY, check_dims, check_instance, check_tensor, evaluate
from sgmc.models.functions import Posterior
from sgmc.posteriors import DataPotential
from sgmc.posteriors.linear import dot


def control_variates(posterior: DataPotential, reference: Tensor) -> Posterior:
    """Rewrite a posterior so that its minibatch gradients have little noise near a
    reference point θ₀ (Baker et al., 2019, Section 2.2).

    Each example's log p(xᵢ | θ) loses the linear term ∇log p(xᵢ | θ₀)·θ, and the prior
    gets all of them. The energy is the same; a minibatch samples gᵢ(θ) − gᵢ(θ₀), so
    that the variance is zero at θ₀ and grows with the square of the distance from it.

    Args:
        posterior: the posterior.
        reference: θ₀, ``(dim,)``, near the mode.

    Returns:
        A posterior with the same minibatches, which keeps a gradient ``(dim,)`` with
        each example.

    Raises:
        ValueError: if the reference does not suit the posterior, or N gradients do not
            fit into memory.

    Example:
        >>> import torch
        >>> from sgmc.posteriors import LinearRegression
        >>> whole = LinearRegression(torch.ones(4, 1), torch.arange(4.0), batch_size=2)
        >>> calm = control_variates(whole, whole.mean)
        >>> calm.stochastic_gradient(whole.mean[None], torch.Generator()).abs() < 1e-6
        tensor([[True]])
    """
    check_instance("posterior", posterior, DataPotential, "LinearRegression(...)")
    check_tensor("reference", reference, "dim")
    dim = len(reference) if posterior.dim is None else posterior.dim
    check_dims(reference=reference, posterior=torch.empty(dim))
    size = posterior.num_examples * len(reference) * reference.element_size()
    if size > MEMORY:
        raise ValueError(
            f"the gradients of {posterior.num_examples:,} examples at the reference "
            f"take {size / 2**30:,.1f} GiB: use fewer"
        )
    everything = posterior.gather(None)
    of_examples = lambda: posterior.per_example_gradients(reference[None], everything)
    at_reference = evaluate(of_examples, reference[None])[0]
    total = at_reference.sum(0)
    prior, likelihood = posterior.grad_log_prior, posterior.grad_log_likelihood
    calm = Posterior(
        log_prior=lambda position: posterior.log_prior(position) + position @ total,
        log_likelihood=lambda position, *batch: (
            posterior.log_likelihood(position, *batch[:-1]) - dot(batch[-1], position)
        ),
        data=(*posterior.data, at_reference),
        dim=len(reference),
        batch_size=posterior.batch_size,
        minibatches=posterior.minibatches,
    )
    calm.grad_log_prior = prior and (lambda position: prior(position) + total)
    calm.grad_log_likelihood = likelihood and (
        lambda position, *batch: likelihood(position, *batch[:-1]) - batch[-1].sum(1)
    )
    # These are the likelihoods of the data, not of the functions here.
    vars(calm)["pointwise_log_likelihoods"] = posterior.pointwise_log_likelihoods
    return calm
