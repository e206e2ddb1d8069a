"""Bayesian neural networks whose prior is a mixture of a wide and a narrow Gaussian."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from sgmc.posteriors import DataPotential, NetworkPosterior


class ScaleMixtureNetwork(NetworkPosterior):
    """The posterior of weights that are large or small: p(θ) = ∏ [πN(θᵢ; 0, σ₁²) + (1 −
    π)N(θᵢ; 0, σ₂²)] (Blundell et al., 2015, eq. 7).

    Its slope is −λ(θ)θ with λ(θ) = p/σ₁² + (1 − p)/σ₂², p being the probability, given
    θ, that it is of the first part. ``settings`` are those of a NetworkPosterior.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: Tensor,
        targets: Tensor,
        share: float,
        stds: Sequence[float],
        **settings: object,
    ):
        super().__init__(module, inputs, targets, **settings)
        self.share, self.stds = share, tuple(stds)

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute Σ log p(θᵢ) without the factor (2π)^½ of each, ``(chains,)``."""
        (one, other), squares = self.stds, position.square()
        first = math.log(self.share / one) - 0.5 * squares / one**2
        second = math.log((1 - self.share) / other) - 0.5 * squares / other**2
        return torch.logaddexp(first, second).sum(-1)

    def grad_log_prior(self, position: Tensor) -> Tensor:
        """Compute −λ(θ)θ."""
        one, other = self.stds
        odds = math.log(self.share * other / ((1 - self.share) * one))
        precision = position.square().mul_(0.5 / other**2 - 0.5 / one**2)
        precision.add_(odds).sigmoid_()
        precision.mul_(1 / one**2 - 1 / other**2).add_(1 / other**2)
        return precision.mul_(position).neg_()

    _with_prior = DataPotential._with_prior
