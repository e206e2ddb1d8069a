"""Models that see their parameters through z = x·θ alone."""

import torch
from torch import Tensor
from torch.nn import functional

from sgmc.checks import check_instance, check_tensor, is_number
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors.base import DataPotential
from sgmc.posteriors.likelihoods import Bernoulli, Gaussian, Likelihood
from sgmc.potentials import Kind


class LinearModel(DataPotential):
    """A generalised linear model, p(yᵢ | xᵢ·θ) and θ ~ N(0, τ²I): ∇log p(yᵢ | θ) = wᵢxᵢ
    with wᵢ = ∂log p(yᵢ | zᵢ)/∂z.

    Args:
        inputs: x, ``(N, dim)``; add a column of ones for an intercept.
        targets: y, ``(N,)``.
        likelihood: p(y | z), with its slope.
        prior_variance: τ².
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).

    Raises:
        ValueError: if shapes do not match, data are not finite, targets do not suit the
            likelihood, or the variance is not positive.

    Example:
        >>> from sgmc.posteriors import Bernoulli
        >>> LinearModel(
        ...     torch.ones(2, 1), torch.tensor([0.0, 1.0]), Bernoulli()
        ... ).gradient(torch.zeros(1, 1))
        tensor([[0.]])
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        likelihood: Likelihood,
        prior_variance: float = 1.0,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
    ):
        check_tensor("inputs", inputs, "...")
        check_tensor("targets", targets, "...", floating=False)
        if inputs.ndim != 2 or targets.shape != inputs.shape[:1]:
            shapes = f"{tuple(inputs.shape)} and {tuple(targets.shape)}"
            raise ValueError(
                "inputs must be (examples, features) and targets (examples,), but "
                f"they are {shapes}"
            )
        if not (is_number(prior_variance) and prior_variance > 0):
            raise ValueError(
                "prior_variance must be a positive number, but it is "
                f"{prior_variance!r}; it is a variance, not a standard deviation"
            )
        check_instance("likelihood", likelihood, Likelihood, "Bernoulli()")
        likelihood.check_targets(inputs, targets)
        super().__init__(
            (inputs, targets), batch_size, minibatches, dim=inputs.shape[1]
        )
        self.likelihood, self.prior_precision = likelihood, 1 / prior_variance
        # one number for an example
        likelihood.check_outputs(inputs[None, :1, 0], targets)

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute −|θ|²/2τ²: ``(chains, dim)`` → ``(chains,)``."""
        return -0.5 * self.prior_precision * position.pow(2).sum(-1)

    def log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute log p(yᵢ | xᵢ·θ): ``(chains, n)``."""
        return self.likelihood.log_density(dot(inputs, position), targets)

    def grad_log_prior(self, position: Tensor) -> Tensor:
        """Compute −θ/τ²."""
        return -self.prior_precision * position

    def grad_log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute Σwᵢxᵢ: ``(chains, dim)``."""
        return weighted_sum(
            inputs, self.likelihood.slope(dot(inputs, position), targets)
        )

    def with_prior(
        self, position: Tensor, log_likelihood_gradient: Tensor, scale: float
    ) -> Tensor:
        """Add the prior's gradient."""
        return torch.add(
            self.prior_precision * position, log_likelihood_gradient, alpha=-scale
        )

    def gradient_moments(
        self, position: Tensor, batch: tuple[Tensor, ...], kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        inputs, targets = batch
        weights = self.likelihood.slope(dot(inputs, position), targets)
        total = weighted_sum(inputs, weights)
        # In place from here, for the batch is a copy already, and another of its size
        # would cost more than the arithmetic.
        if kind == "full":
            gradients = inputs.mul_(weights[..., None])
            return total, gradients.mT @ gradients
        return total, weighted_sum(inputs.square_(), weights.square_())


class LinearRegression(LinearModel):
    """Bayesian linear regression, yᵢ ~ N(xᵢ·θ, σ²) and θ ~ N(0, τ²I), whose posterior
    is Gaussian (Bishop, 2006, eq. 3.53–3.54).

    Args:
        inputs: x, ``(N, dim)``.
        targets: y, ``(N,)``.
        noise_variance: σ².
        prior_variance: τ².
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).

    Attributes:
        mean: exact posterior mean, ``(dim,)``.
        covariance: exact posterior covariance, ``(dim, dim)``.

    Raises:
        ValueError: if shapes do not match or a variance is not positive.

    Example:
        >>> LinearRegression(
        ...     torch.ones(3, 1), torch.tensor([1.0, 2.0, 3.0]), 1.0, 1.0
        ... ).mean
        tensor([1.5000])
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        noise_variance: float = 1.0,
        prior_variance: float = 1.0,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
    ):
        super().__init__(
            inputs,
            targets,
            Gaussian(noise_variance),
            prior_variance,
            batch_size,
            minibatches,
        )
        identity = torch.eye(self.dim, dtype=inputs.dtype, device=inputs.device)
        self.precision = inputs.T @ inputs / noise_variance + identity / prior_variance
        self.covariance = torch.linalg.inv(self.precision)
        self.mean = self.covariance @ (inputs.T @ targets) / noise_variance


class LogisticRegression(LinearModel):
    """Bayesian logistic regression, P(yᵢ = 1) = 1/(1 + exp(−xᵢ·θ)) and θ ~ N(0, τ²I)
    (Bishop, 2006, Section 4.5).

    Args:
        inputs: x, ``(N, dim)``; add a column of ones for an intercept.
        targets: y, ``(N,)``, zeros and ones of the inputs' dtype.
        prior_variance: τ².
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).

    Raises:
        ValueError: if shapes do not match, targets are not 0 or 1, or the variance is
            not positive.

    Example:
        >>> LogisticRegression(torch.ones(2, 1), torch.tensor([0.0, 1.0])).gradient(
        ...     torch.zeros(1, 1)
        ... )
        tensor([[0.]])
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        prior_variance: float = 1.0,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
    ):
        super().__init__(
            inputs, targets, Bernoulli(), prior_variance, batch_size, minibatches
        )

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ) from all the data, with one product x·θ for both: →
        ``(chains,)``, ``(chains, dim)``.
        """
        x, y = self.data
        logit = functional.linear(position, x)
        # log(1 + e^z) = max(z, 0) − log σ(|z|), which takes a tenth of the time of
        # softplus.
        loss = (
            logit.clamp(min=0).sub_(torch.sigmoid(logit.abs()).log_()).sum(-1)
            - functional.linear(logit, y[None])[:, 0]
        )
        energy = loss + 0.5 * self.prior_precision * position.pow(2).sum(-1)
        return energy, torch.addmm(
            position, logit.sigmoid_().sub_(y), x, beta=self.prior_precision
        )


def dot(inputs: Tensor, position: Tensor) -> Tensor:
    """Compute xᵢ·θ for every chain: ``(chains or 1, n, dim)`` and ``(chains, dim)`` →
    ``(chains, n)``.
    """
    return (
        functional.linear(position, inputs[0])
        if len(inputs) == 1
        else (position[:, None, :] @ inputs.mT)[:, 0]
    )


def weighted_sum(inputs: Tensor, weights: Tensor) -> Tensor:
    """Compute Σᵢ wᵢxᵢ for every chain: ``(chains or 1, n, dim)`` and ``(chains, n)`` →
    ``(chains, dim)``.
    """
    return (
        weights @ inputs[0]
        if len(inputs) == 1
        else (weights[:, None, :] @ inputs)[:, 0]
    )
