"""How data depend on what a model computes for them: log p(y | z), z being an output of
the model.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from sgmc.checks import check_probabilities, check_tensor, is_number
from sgmc.potentials import differentiate


class Likelihood:
    """The law of a target y given a model's output z; a subclass writes
    ``log_density``, and the others where they make sense.

    Outputs are ``(chains, n)`` or ``(chains, n, k)``, targets ``(chains or 1, n,
    ...)``.

    Example:
        >>> class Poisson(Likelihood):
        ...     def log_density(self, outputs, targets):
        ...         return targets * outputs - outputs.exp()
        >>> Poisson().loss(torch.zeros(1, 2), torch.tensor([[1.0, 2.0]]))
        tensor(2.)
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute log p(y | z) of every example, up to a constant: ``(chains, n)``."""
        raise NotImplementedError

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute ∂log p(y | z)/∂z of every example where z is a number, by automatic
        differentiation: ``(chains, n)``.
        """
        return differentiate(
            lambda outputs: self.log_density(outputs, targets).sum(-1), outputs
        )[1]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute −Σ log p(y | z) over all chains and examples, a number."""
        return -self.log_density(outputs, targets).sum()

    def predict(self, outputs: Tensor) -> Tensor:
        """Compute what is predicted: here the output itself."""
        return outputs

    def log_predict(self, outputs: Tensor) -> Tensor:
        """Compute the logarithm of a predicted probability."""
        raise NotImplementedError(
            f"{type(self).__name__} predicts no probabilities: use predict"
        )

    def check_targets(self, inputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets ``(N, ...)`` of the inputs ``(N, ...)``
        are what this likelihood can have.
        """

    def check_outputs(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless a model's outputs ``(1, n, ...)`` for parameters of
        zero suit the targets ``(n, ...)``.
        """


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y ~ N(z, σ²), for each of the outputs.

    Args:
        noise_variance: σ².

    Example:
        >>> Gaussian(2.0).log_density(torch.zeros(1, 1), torch.ones(1, 1))
        tensor([[-0.2500]])
    """

    noise_variance: float = 1.0

    def __post_init__(self):
        if not (is_number(self.noise_variance) and 0 < self.noise_variance < math.inf):
            raise ValueError(
                f"noise_variance must be positive, but it is {self.noise_variance!r}; "
                "it is a variance, not a standard deviation"
            )

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute −(y − z)²/2σ², summed over outputs: ``(chains, n)``."""
        return _over_outputs(-0.5 * (targets - outputs) ** 2 / self.noise_variance)

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute (y − z)/σ²."""
        return (targets - outputs) / self.noise_variance

    def check_targets(self, inputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets are finite numbers of the inputs'
        dtype.
        """
        check_tensor("targets", targets, "...", floating=False)
        if targets.dtype != inputs.dtype:
            raise ValueError(
                f"targets must be numbers of the inputs' dtype {inputs.dtype}, not "
                f"{targets.dtype}: use targets.to(inputs)"
            )

    def check_outputs(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless there is one target for each output."""
        _check_same_shape(outputs, targets)


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """P(y = 1) = 1/(1 + e^−z), for y in {0, 1} and each of the outputs.

    Example:
        >>> Bernoulli().slope(torch.zeros(1, 1), torch.ones(1, 1))
        tensor([[0.5000]])
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute yz − log(1 + e^z), summed over outputs: ``(chains, n)``."""
        return _over_outputs(targets * outputs - functional.softplus(outputs))

    def slope(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute y − 1/(1 + e^−z)."""
        return targets - torch.sigmoid(outputs)

    def predict(self, outputs: Tensor) -> Tensor:
        """Compute P(y = 1)."""
        return torch.sigmoid(outputs)

    def log_predict(self, outputs: Tensor) -> Tensor:
        """Compute log P(y = 1)."""
        return functional.logsigmoid(outputs)

    def check_targets(self, inputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets are zeros and ones of the inputs'
        dtype.
        """
        check_tensor("targets", targets, "...", floating=False)
        if targets.dtype != inputs.dtype or not ((targets == 0) | (targets == 1)).all():
            raise ValueError(
                f"targets must be zeros and ones of the inputs' dtype {inputs.dtype}: "
                "use targets.to(inputs)"
            )

    def check_outputs(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless there is one target for each output, and outputs
        for weights of zero are not a sigmoid's ½.
        """
        _check_same_shape(outputs, targets)
        if (outputs == 0.5).all():
            raise ValueError(
                "the module seems to end in a sigmoid, which the likelihood has "
                "already: leave it out, so that it gives logits"
            )


@dataclass(frozen=True)
class Softmax(Likelihood):
    """P(y = k) = e^{zₖ} / Σⱼe^{zⱼ}, for class numbers y and outputs ``(chains, n,
    classes)``.

    Example:
        >>> Softmax().predict(torch.zeros(1, 1, 4))
        tensor([[[0.2500, 0.2500, 0.2500, 0.2500]]])
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute z_y − log Σⱼe^{zⱼ}."""
        return self.log_predict(outputs).gather(
            -1, targets.expand(outputs.shape[:2])[..., None]
        )[..., 0]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute −Σ log p(y | z) in one pass."""
        return functional.cross_entropy(
            outputs.flatten(0, 1),
            targets.expand(outputs.shape[:2]).flatten(),
            reduction="sum",
        )

    def predict(self, outputs: Tensor) -> Tensor:
        """Compute the probabilities of the classes."""
        return self.log_predict(outputs).exp()

    def log_predict(self, outputs: Tensor) -> Tensor:
        """Compute the logarithms of the probabilities of the classes."""
        return functional.log_softmax(outputs, -1)

    def check_targets(self, inputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets are class numbers."""
        check_tensor("targets", targets, "...", floating=False)
        if targets.dtype != torch.int64 or targets.ndim != 1:
            raise ValueError(
                "targets must be class numbers, int64 of shape (N,), not "
                f"{targets.dtype} {tuple(targets.shape)}"
            )

    def check_outputs(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless there is one output for each class, and outputs for
        weights of zero are not a softmax's 1/k.
        """
        if (
            outputs.ndim != 3
            or not 0 <= int(targets.min()) <= int(targets.max()) < outputs.shape[-1]
        ):
            raise ValueError(
                "the module must give an output for each class, but gives "
                f"{tuple(outputs.shape[2:])} of an example, "
                f"and the targets are from {int(targets.min())} to {int(targets.max())}"
            )
        if outputs.shape[-1] > 1 and (outputs.sum(-1) - 1).abs().max() < 1e-3:
            raise ValueError(
                "the module seems to end in a softmax, which the likelihood has "
                "already: leave it out, so that it gives logits"
            )


@dataclass(frozen=True)
class SoftTargets(Softmax):
    """Σₖ pₖ log P(y = k), P being that of :class:`Softmax`, for targets p that are
    probabilities of the classes (Hinton et al., 2015).

    Up to the entropies of the targets, its loss is Σ KL(p ∥ P): what a network has to
    make small to predict p itself.

    Example:
        >>> SoftTargets().loss(
        ...     torch.zeros(1, 1, 4), torch.tensor([[[0.7, 0.1, 0.1, 0.1]]])
        ... )  # log 4
        tensor(1.3863)
    """

    def log_density(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute Σₖ pₖzₖ − log Σⱼe^{zⱼ}."""
        return (targets * self.log_predict(outputs)).sum(-1)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Compute −ΣΣₖ pₖ log P(k) in one pass."""
        return functional.cross_entropy(
            outputs.flatten(0, 1),
            targets.expand(outputs.shape).flatten(0, 1),
            reduction="sum",
        )

    def check_targets(self, inputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless the targets are probabilities of the inputs'
        dtype.
        """
        check_probabilities("targets", targets, "N", "classes")
        if targets.dtype != inputs.dtype:
            raise ValueError(
                f"targets must be of the inputs' dtype {inputs.dtype}, not "
                f"{targets.dtype}: use targets.to(inputs)"
            )

    def check_outputs(self, outputs: Tensor, targets: Tensor) -> None:
        """Raise a ValueError unless there is one output for each class, and outputs for
        weights of zero are not a softmax's 1/k.
        """
        _check_same_shape(outputs, targets)
        super().check_outputs(outputs, targets.argmax(-1))


def _over_outputs(density: Tensor) -> Tensor:
    """Sum over the outputs of an example, if it has several: ``(chains, n, ...)`` →
    ``(chains, n)``.
    """
    return density if density.ndim == 2 else density.flatten(2).sum(-1)


def _check_same_shape(outputs: Tensor, targets: Tensor) -> None:
    if outputs.shape[2:] != targets.shape[1:]:
        raise ValueError(
            "the module must give an output for each target, but gives "
            f"{tuple(outputs.shape[2:])} of an example whose targets are "
            f"{tuple(targets.shape[1:])}"
        )
