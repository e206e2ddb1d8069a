"""Likelihoods: log p(y | z) of a target y given a model's output z."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from sgmc.checks import check_positive
from sgmc.potentials import differentiate


class Likelihood:
    """The distribution of a target y given a model's output z; a subclass writes
    ``log_density``, and the other methods where they make sense.

    Outputs are ``(chains, n)`` or ``(chains, n, k)``, targets ``(chains or 1, n,
    ...)``.

    Example:
        >>> class Poisson(Likelihood):
        ...     def log_density(self, outputs, targets):
        ...         return targets * outputs - outputs.exp()
        ...
        ...     def log_constant(self, targets):
        ...         return -torch.lgamma(targets + 1)
        >>> Poisson().slope(torch.zeros(1, 2), torch.tensor([[1.0, 2.0]]))
        tensor([[0., 1.]])
    """

    def __init_subclass__(cls, **settings):
        super().__init_subclass__(**settings)
        if "log_density" in vars(cls) and "log_constant" not in vars(cls):
            # the constant of another density would be wrong
            cls.log_constant = Likelihood.log_constant
        members = [vars(parent) for parent in cls.__mro__]
        first = next(each for each in members if {"log_density", "slope"} & set(each))
        if "slope" not in first:  # the inherited one belongs to another density
            inherited = cls.slope

            def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
                # A subclass's slope may build on the inherited one.
                used = Likelihood.slope if type(self).slope is slope else inherited
                return used(self, outputs, targets)

            cls.slope = slope

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute log p(y | z) of every example without the terms that do not depend on
        z: ``(chains, n)``.
        """
        raise NotImplementedError

    def log_constant(self, targets: Tensor) -> Tensor | float:
        """Compute the terms of log p(y | z) that ``log_density`` leaves out, for
        ``arviz.loo`` and ``arviz.compare``: ``(N,)``, or a number for all examples.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say what its log_density leaves out of "
            "log p(y | z): write its log_constant(targets), which returns 0.0 if that "
            "is nothing"
        )

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute ∂log p(y | z)/∂z of every example, in the outputs' shape."""
        return differentiate(lambda z: self.log_density(z, targets).sum(-1), outputs)[1]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute −Σ log p(y | z) over all chains and examples, a number."""
        return -self.log_density(outputs, targets).sum()

    def predict(self, outputs: Tensor) -> Tensor:
        """Compute the prediction, here the output itself."""
        return outputs

    def log_predict(self, outputs: Tensor) -> Tensor:
        """Compute the logarithm of a predicted probability."""
        raise NotImplementedError(
            f"{type(self).__name__} predicts no probabilities: use predict"
        )

    def check(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets ``(N, ...)`` suit this likelihood, and
        a model's outputs ``(1, n, ...)`` for parameters of zero.
        """


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """The normal distribution y ~ N(z, σ²), for each of the outputs.

    Args:
        noise_variance: σ².

    Example:
        >>> Gaussian(2.0).log_density(torch.zeros(1, 1), torch.ones(1, 1))
        tensor([[-0.2500]])
    """

    noise_variance: float = 1.0

    def __post_init__(self):
        check_positive("noise_variance (no standard deviation)", self.noise_variance)

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute −(y − z)²/2σ², summed over outputs: ``(chains, n)``."""
        return _over_outputs(-0.5 * (targets - outputs) ** 2 / self.noise_variance)

    def log_constant(self, targets: Tensor) -> float:
        """Compute −½ log 2πσ² for each of the outputs."""
        outputs = targets[0].numel()
        return -0.5 * outputs * math.log(2 * math.pi * self.noise_variance)

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute (y − z)/σ²."""
        return (targets - outputs) / self.noise_variance

    def check(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless targets are numbers like the model's outputs."""
        _check_numbers(outputs, targets, "numbers")


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """The distribution P(y = 1) = 1/(1 + e^−z), for y in {0, 1} and each of the
    outputs.

    Example:
        >>> Bernoulli().slope(torch.zeros(1, 1), torch.ones(1, 1))
        tensor([[0.5000]])
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute yz − log(1 + e^z), summed over outputs: ``(chains, n)``."""
        return _over_outputs(targets * outputs - functional.softplus(outputs))

    def log_constant(self, targets: Tensor) -> float:
        """Return 0, because nothing is left out."""
        return 0.0

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute y − 1/(1 + e^−z)."""
        return targets - torch.sigmoid(outputs)

    def predict(self, outputs: Tensor) -> Tensor:
        """Compute P(y = 1)."""
        return torch.sigmoid(outputs)

    def log_predict(self, outputs: Tensor) -> Tensor:
        """Compute log P(y = 1)."""
        return functional.logsigmoid(outputs)

    def check(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless targets are zeros and ones like the outputs, and
        the outputs for parameters of zero are not a sigmoid's ½.
        """
        if not ((targets == 0) | (targets == 1)).all():
            low, high = (float(extreme) for extreme in targets.aminmax())
            raise ValueError(
                f"targets must be zeros and ones, but go from {low:g} to {high:g}: use "
                "(targets > 0), if these are two classes"
            )
        _check_numbers(outputs, targets, "zeros and ones")
        _check_logits(bool((outputs == 0.5).all()), "sigmoid")


@dataclass(frozen=True)
class Softmax(Likelihood):
    """The distribution P(y = k) = e^{zₖ} / Σⱼe^{zⱼ}, for class numbers y and outputs
    ``(chains, n, classes)``.

    Example:
        >>> Softmax().predict(torch.zeros(1, 1, 4))
        tensor([[[0.2500, 0.2500, 0.2500, 0.2500]]])
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute z_y − log Σⱼe^{zⱼ}."""
        chosen = targets.expand(outputs.shape[:2])[..., None]
        return self.log_predict(outputs).gather(-1, chosen)[..., 0]

    def log_constant(self, targets: Tensor) -> float:
        """Return 0, because nothing is left out."""
        return 0.0

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute 1 − P(k) for the class k = y, and −P(k) for the others."""
        chosen = targets.expand(outputs.shape[:2])[..., None]
        # With few classes this takes a fifth of the time of torch.softmax.
        odds = (outputs - outputs.amax(-1, keepdim=True)).exp_()
        slope = odds.div_(-odds.sum(-1, keepdim=True))
        return slope.scatter_add_(-1, chosen, outputs.new_ones(1).expand(chosen.shape))

    def predict(self, outputs: Tensor) -> Tensor:
        """Compute the probabilities of the classes."""
        return self.log_predict(outputs).exp()

    def log_predict(self, outputs: Tensor) -> Tensor:
        """Compute the logarithms of the probabilities of the classes."""
        return functional.log_softmax(outputs, -1)

    def check(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless targets are class numbers, each with an output, and
        the outputs for parameters of zero are not a softmax's 1/k.
        """
        if targets.dtype != torch.int64 or targets.ndim != 1:
            raise ValueError(
                "targets must be class numbers, int64 of shape (N,), not "
                f"{targets.dtype} {tuple(targets.shape)}; for others take "
                "likelihood=Gaussian(noise_variance=...) or Bernoulli(), and for a "
                "class of each token a Likelihood that sums log_softmax of its logits"
            )
        low, high = (int(extreme) for extreme in targets.aminmax())
        if outputs.ndim != 3 or low < 0 or high >= outputs.shape[-1]:
            raise ValueError(
                "the module must give an output for each class, but gives "
                f"{tuple(outputs.shape[2:])} of an example, and the targets are from "
                f"{low} to {high}; for one output and two classes take "
                "likelihood=Bernoulli(), with float targets of the outputs' shape"
            )
        sums_to_one = bool((outputs.sum(-1) - 1).abs().max() < 1e-3)
        _check_logits(sums_to_one and outputs.shape[-1] > 1, "softmax")


def _over_outputs(density: Tensor) -> Tensor:
    """Sum over the outputs of an example, if it has several: ``(chains, n, ...)`` →
    ``(chains, n)``.
    """
    return density if density.ndim == 2 else density.flatten(2).sum(-1)


def _check_numbers(outputs: Tensor, targets: Tensor, what: str) -> None:
    if targets.dtype != outputs.dtype:
        raise ValueError(
            f"targets must be {what} of the inputs' dtype {outputs.dtype}, not "
            f"{targets.dtype}: use targets.to(inputs)"
        )
    if outputs.shape[2:] != targets.shape[1:]:
        raise ValueError(
            "the module must give an output for each target, but gives "
            f"{tuple(outputs.shape[2:])} of an example whose targets are "
            f"{tuple(targets.shape[1:])}"
        )


def _check_logits(ends_in_it: bool, name: str) -> None:
    if ends_in_it:
        raise ValueError(
            f"the module seems to end in a {name}, which the likelihood has already: "
            "leave it out, so that it gives logits"
        )
