"""Models whose likelihood depends on the parameters only through z = x·θ."""

import torch
from torch import Tensor
from torch.nn import functional

from sgmc.checks import check_instance, check_positive, check_precision, check_tensor
from sgmc.matrices import Matrix
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors.base import Batch, GaussianPrior
from sgmc.posteriors.likelihoods import Bernoulli, Gaussian, Likelihood
from sgmc.potentials import Kind


class LinearModel(GaussianPrior):
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
        >>> model = LinearModel(torch.ones(2, 1), torch.tensor([0.0, 1.0]), Bernoulli())
        >>> model.gradient(torch.zeros(1, 1))
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
            raise ValueError(
                "inputs must be (examples, features) and targets (examples,), but "
                f"they are {tuple(inputs.shape)} and {tuple(targets.shape)}"
            )
        check_positive("prior_variance (no standard deviation)", prior_variance)
        check_instance("likelihood", likelihood, Likelihood, "Bernoulli()")
        likelihood.check(inputs.new_zeros(1, 1), targets)  # one number for an example
        super().__init__((inputs, targets), batch_size, minibatches, inputs.shape[1])
        self.likelihood, self.prior_precision = likelihood, 1 / prior_variance
        self.prior = Matrix(self.prior_precision)

    def log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute log p(yᵢ | xᵢ·θ): ``(chains, n)``."""
        return self.likelihood.log_density(dot(inputs, position), targets)

    def pointwise_log_likelihoods(self, position: Tensor) -> Tensor:
        """Compute the log likelihoods with the likelihood's constant."""
        found = super().pointwise_log_likelihoods(position)
        return found + self.likelihood.log_constant(self.data[1])

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ) from all the data, with xᵢ·θ computed once."""
        inputs, targets = self.gather(None)
        outputs = dot(inputs, position)
        total = self.likelihood.log_density(outputs, targets).sum(-1)
        slope = _weighted_sum(inputs, self.likelihood.slope(outputs, targets))
        return -self.log_prior(position) - total, self._with_prior(position, slope, 1.0)

    def grad_log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute Σwᵢxᵢ: ``(chains, dim)``."""
        slope = self.likelihood.slope(dot(inputs, position), targets)
        return _weighted_sum(inputs, slope)

    def _gradient_moments(
        self, position: Tensor, batch: Batch, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        inputs, targets = batch
        weights = self.likelihood.slope(dot(inputs, position), targets)
        total = _weighted_sum(inputs, weights)
        # The work is in place from here, because the minibatch is a copy already, and
        # another of its size would cost more than the arithmetic.
        if kind == "full":
            gradients = inputs.mul_(weights[..., None])
            return total, gradients.mT @ gradients
        return total, _weighted_sum(inputs.square_(), weights.square_())


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
        >>> LinearRegression(torch.ones(3, 1), torch.tensor([1.0, 2.0, 3.0])).mean
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
        likelihood = Gaussian(noise_variance)
        super().__init__(
            inputs, targets, likelihood, prior_variance, batch_size, minibatches
        )
        check_precision("inputs", inputs)
        identity = torch.eye(inputs.shape[1], dtype=inputs.dtype, device=inputs.device)
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
        >>> model = LogisticRegression(torch.ones(2, 1), torch.tensor([0.0, 1.0]))
        >>> model.gradient(torch.zeros(1, 1))
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


def dot(inputs: Tensor, position: Tensor) -> Tensor:
    """Compute xᵢ·θ for every chain: ``(chains or 1, n, dim)`` and ``(chains, dim)`` →
    ``(chains, n)``.

    Example:
        >>> inputs = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
        >>> dot(inputs, torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
        tensor([[1., 3.],
                [3., 7.]])
    """
    if len(inputs) == 1:
        return functional.linear(position, inputs[0])
    return (position[:, None, :] @ inputs.mT)[:, 0]


def _weighted_sum(inputs: Tensor, weights: Tensor) -> Tensor:
    """Compute Σᵢ wᵢxᵢ for every chain: ``(chains or 1, n, dim)`` and ``(chains, n)`` →
    ``(chains, dim)``.
    """
    if len(inputs) == 1:
        return weights @ inputs[0]
    return (weights[:, None, :] @ inputs)[:, 0]
