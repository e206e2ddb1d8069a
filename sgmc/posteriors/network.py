"""Bayesian neural networks."""

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils._pytree import tree_leaves, tree_map

from sgmc.checks import (
    check_count,
    check_instance,
    check_non_negative,
    check_positive,
    check_tensor,
)
from sgmc.matrices import Matrix
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors.base import Batch, GaussianPrior
from sgmc.posteriors.fully_connected import activations_of, moments
from sgmc.posteriors.likelihoods import Likelihood, Softmax
from sgmc.potentials import Kind


class NetworkPosterior(GaussianPrior):
    """The posterior of a network's weights: θ ~ N(0, τ²I) and yᵢ ~ p(y | f(xᵢ; θ))
    (Neal, 1996, Section 1.2).

    A position holds the parameters of the module, one after the other in the order of
    ``module.named_parameters()``. Those that are frozen, ``requires_grad=False``, stay
    what they are and are no part of it.

    Args:
        module: a network f from inputs ``(n, ...)`` to outputs ``(n, k)``, such as
            logits. Its own parameters are neither used, frozen ones apart, nor changed.
        inputs: x, ``(N, ...)``.
        targets: y, ``(N, ...)``; ``(N,)`` int64 class numbers for softmax.
        prior_variance: τ²; a number, or a mapping from parameter names to numbers.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).
        likelihood: p(y | f); classes by softmax by default
            (:mod:`sgmc.posteriors.likelihoods`).

    Raises:
        ValueError: if the data do not match, a variance is not positive, the module has
            no parameters to sample, or it normalises by the batch.

    Example:
        >>> posterior = NetworkPosterior(
        ...     torch.nn.Linear(4, 3),
        ...     torch.randn(20, 4),
        ...     torch.arange(20) % 3,
        ...     batch_size=5,
        ... )
        >>> (
        ...     posterior.dim,
        ...     posterior.predict(torch.zeros(2, 15), torch.randn(7, 4)).shape,
        ... )
        (15, torch.Size([2, 7, 3]))
    """

    dim: int
    finite = True

    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior_variance: float | Mapping[str, float] = 1.0,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
        likelihood: Likelihood | None = None,
    ):
        check_instance("module", module, nn.Module, "torch.nn.Linear(784, 10)")
        free = {name: x for name, x in module.named_parameters() if x.requires_grad}
        self.shapes = {name: x.shape for name, x in free.items()}
        if not self.shapes:
            raise ValueError("module has no parameters to sample, or all are frozen")
        for name, given in (("inputs", inputs), ("targets", targets)):
            check_tensor(name, given, "...", floating=False)
        self.likelihood = Softmax() if likelihood is None else likelihood
        check_instance("likelihood", self.likelihood, Likelihood, "Softmax()")
        if training := [
            name
            for name, layer in module.named_modules()
            if isinstance(layer, (_BatchNorm, _DropoutNd))
            and (layer.training or getattr(layer, "running_mean", 0) is None)
        ]:
            raise ValueError(
                f"module has dropout or batch normalisation in {training}, in training "
                "mode or without fixed statistics, which makes an example's likelihood "
                "random, or depend on the others of its minibatch: there is no "
                "posterior. Turn it off by module.eval(), leave it out, or normalise "
                "by nn.GroupNorm"
            )
        dim = sum(shape.numel() for shape in self.shapes.values())
        super().__init__((inputs, targets), batch_size, minibatches, dim)
        self._set_prior(prior_variance)
        self.module = copy.deepcopy(module)
        # they say nothing, and a checkpoint must not tell posteriors apart by them
        for name in self.shapes:
            self.module.get_parameter(name).detach().zero_()
        whole = len(free) == len(list(module.parameters())) and inputs.ndim == 2
        self._activations = activations_of(module) if whole else None
        like = inputs if inputs.is_floating_point() else next(module.parameters())
        try:
            with torch.no_grad():
                outputs = self.outputs(like.new_zeros(1, dim), inputs[None, :1])
        except RuntimeError as error:
            raise ValueError(
                "the module cannot take inputs of shape (n, "
                f"{', '.join(map(str, inputs.shape[1:]))}) and {inputs.dtype}: {error}"
            ) from error
        self.likelihood.check(outputs, targets)

    def _set_prior(self, variance: float | Mapping[str, float]) -> None:
        if not isinstance(variance, Mapping):
            variance = dict.fromkeys(self.shapes, variance)
        if set(variance) != set(self.shapes):
            raise ValueError(
                "prior_variance must be a positive number, or one for each of "
                f"{list(self.shapes)}, not {variance}"
            )
        for name, value in variance.items():
            check_positive(f"prior_variance of {name}", value)
        self.prior_precision = {name: 1 / variance[name] for name in self.shapes}
        self.prior = self.prior_of(self.prior_precision)

    def prior_of(self, precisions: Mapping[str, float]) -> Matrix:
        """Make Λ of the precision of each parameter, by its name."""
        one, *others = set(precisions.values())
        entries = [
            self.data[0].new_full((shape.numel(),), precisions[name])
            for name, shape in self.shapes.items()
        ]
        return Matrix(torch.cat(entries) if others else one)

    def log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute log p(yᵢ | f(xᵢ; θ)): ``(chains, n)``."""
        return self.likelihood.log_density(self.outputs(position, inputs), targets)

    def outputs(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Evaluate the network with every chain's weights: inputs ``(chains or 1, n,
        ...)`` → ``(chains, n, k)``, or ``(chains, n)``.

        A single output is without an axis of its own where the targets are.
        """
        return over_chains(self.outputs_of_one, position, inputs)

    def parameters_of(self, position: Tensor) -> dict[str, Tensor]:
        """Cut positions ``(..., dim)`` into the parameters of the module, by name: each
        ``(..., size)``, a view.
        """
        sizes = [shape.numel() for shape in self.shapes.values()]
        return dict(zip(self.shapes, position.split(sizes, -1), strict=True))

    def named(self, position: Tensor) -> dict[str, Tensor]:
        """Cut positions ``(..., dim)`` into the module's parameters by name, each
        ``(..., *shape)``: for ``sample`` to collect.
        """
        return {
            name: piece.view(*piece.shape[:-1], *self.shapes[name])
            for name, piece in self.parameters_of(position).items()
        }

    def initial_position(
        self, chains: int, generator: Generator, scale: float = 1.0
    ) -> Tensor:
        """Draw weights N(0, scale²/fan-in) and zero biases for every chain: ``(chains,
        dim)``.
        """
        check_count("chains", chains)
        check_instance(
            "generator", generator, Generator, "torch.Generator().manual_seed(0)"
        )
        check_non_negative("scale", scale)
        like, pieces = self.data[0].new_empty(0, device=generator.device), []
        for shape in self.shapes.values():
            noise = like.new_empty(chains, shape.numel()).normal_(generator=generator)
            fan_in = shape[1:].numel()
            pieces.append(noise * (scale / math.sqrt(fan_in) * (len(shape) > 1)))
        return torch.cat(pieces, -1)

    def predict(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Compute what every chain predicts for the inputs ``(n, ...)``, by softmax the
        class probabilities ``(chains, n, classes)``.
        """
        return self._predict(self.likelihood.predict, position, inputs)

    def log_predict(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Compute the logarithms of :meth:`predict`, which single precision can hold
        when a probability is below its least, e⁻¹⁰³.
        """
        return self._predict(self.likelihood.log_predict, position, inputs)

    def _predict(self, predict, position: Tensor, inputs: Tensor) -> Tensor:
        shape = tuple(getattr(position, "shape", ()))
        if len(shape) != 2 or shape[1] != self.dim:
            raise ValueError(
                f"position must be a tensor (chains, {self.dim}), but it is "
                f"{shape or type(position).__name__}: draws are one by "
                "draws.flatten(0, 1)"
            )
        check_tensor("inputs", inputs, "...", floating=False)
        # A few at a time, for what a convolution makes of all inputs at once may not
        # fit into memory.
        pieces = [self.outputs(position, few[None]) for few in inputs.split(1_000)]
        return torch.cat([predict(piece) for piece in pieces], 1)

    def gradient_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute its gradient."""
        if self._activations is None:
            return super().gradient_of(position, batch, scale)
        return self.with_prior(position, self._moments(position, batch)[0], scale)

    def gradient_moments(
        self, position: Tensor, batch: Batch, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        if self._activations is None or kind == "full":
            return super().gradient_moments(position, batch, kind)
        gradient, squares = self._moments(position, batch, kind)
        return gradient, torch.cat(squares, -1)

    def _moments(self, position: Tensor, batch: Batch, kind: Kind | None = None):
        def slope(outputs: Tensor) -> Tensor:
            slope = self.likelihood.slope(self._squeezed(outputs), batch[1])
            return slope.view_as(outputs)

        gradient, activations = torch.empty_like(position), self._activations or []
        given, sums = (self.named(x.detach()).values() for x in (position, gradient))
        return gradient, moments(given, activations, batch[0], slope, sums, kind)

    def outputs_of_one(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Evaluate the network with one chain's weights ``(dim,)``: inputs ``(n, ...)``
        → ``(n, k)``, or ``(n,)``.
        """
        return self._squeezed(
            functional_call(self.module, self.named(position), (inputs,))
        )

    def _squeezed(self, outputs: Tensor) -> Tensor:
        single = outputs.shape[-1] == 1 and self.data[1].ndim == 1
        return outputs[..., 0] if single else outputs


def over_chains(function: Callable[..., Any], own: Any, *batch: Tensor) -> Any:
    """Call a function of one chain's numbers, and of its batch, for all chains.

    Args:
        function: the function.
        own: a tensor ``(chains, ...)``, or several by name.
        batch: tensors ``(chains, n, ...)``, or ``(1, n, ...)`` for all chains.

    Returns:
        What it returns, with an axis for chains in front.

    Example:
        >>> over_chains(torch.dot, torch.eye(2), torch.tensor([[3.0, 4.0]]))
        tensor([3., 4.])
    """
    if len(tree_leaves(own)[0]) == 1:  # vmap costs more than a small model
        # the way back of squeeze is a view; that of x[0] fills a tensor with zeros
        alone = tree_map(lambda x: x.squeeze(0), (own, *batch))
        return tree_map(lambda result: result[None], function(*alone))
    in_dims = (0, *(None if len(x) == 1 else 0 for x in batch))
    batch = tuple(x[0] if len(x) == 1 else x for x in batch)
    return torch.func.vmap(function, in_dims)(own, *batch)
