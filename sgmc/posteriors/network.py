"""Bayesian neural networks."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call

from sgmc import checks
from sgmc.matrices import Matrix
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors.base import Batch, GaussianPrior, over_chains
from sgmc.posteriors.likelihoods import Likelihood, Softmax
from sgmc.potentials import Kind


class NetworkPosterior(GaussianPrior):
    """The posterior of a network's weights: θ ~ N(0, τ²I) and yᵢ ~ p(y | f(xᵢ; θ))
    (Neal, 1996, Section 1.2).

    A position holds the parameters of the module in the order of
    ``module.named_parameters()``; frozen ones, ``requires_grad=False``, stay as they
    are.

    Args:
        module: a network f from inputs ``(n, ...)`` to outputs ``(n, k)``, such as
            logits. It is not changed, and of its parameters only frozen ones are used.
        inputs: x, ``(N, ...)``.
        targets: y, ``(N, ...)``; ``(N,)`` int64 class numbers for softmax.
        prior_variance: τ²; a number, or a mapping from parameter names to numbers.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).
        likelihood: p(y | f); classes by softmax by default
            (:mod:`sgmc.posteriors.likelihoods`).

    Raises:
        ValueError: if the data do not match, a variance is not positive, the module has
            no parameters to sample, or it has dropout or normalises by the batch.

    Example:
        >>> inputs, classes = torch.randn(20, 4), torch.arange(20) % 3
        >>> network = torch.nn.Linear(4, 3)
        >>> posterior = NetworkPosterior(network, inputs, classes, batch_size=5)
        >>> posterior.predict(torch.zeros(2, posterior.dim), torch.randn(7, 4)).shape
        torch.Size([2, 7, 3])
    """

    dim: int

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
        checks.check_module(module, inputs)
        checks.check_tensor("targets", targets, "...", floating=False)
        self.likelihood = Softmax() if likelihood is None else likelihood
        checks.check_instance("likelihood", self.likelihood, Likelihood, "Softmax()")
        parameters = dict(module.named_parameters())
        self.shapes = {k: x.shape for k, x in parameters.items() if x.requires_grad}
        if not self.shapes:
            raise ValueError("module has no parameters to sample, or all are frozen")
        dim = sum(shape.numel() for shape in self.shapes.values())
        super().__init__((inputs, targets), batch_size, minibatches, dim)
        like = inputs if inputs.is_floating_point() else next(module.parameters())
        self._like = like.new_empty(0)  # has the positions' dtype
        if not isinstance(prior_variance, Mapping):
            prior_variance = dict.fromkeys(self.shapes, prior_variance)
        if set(prior_variance) != set(self.shapes):
            raise ValueError(
                "prior_variance must be a positive number, or one for each of "
                f"{list(self.shapes)}, not {prior_variance}"
            )
        for name, value in prior_variance.items():
            checks.check_positive(f"prior_variance of {name}", value)
        self.prior_precision = {name: 1 / prior_variance[name] for name in self.shapes}
        self.prior = self.prior_of(self.prior_precision)
        self.module = checks.copied(module)
        # These carry no information, and a checkpoint must not distinguish posteriors
        # by them.
        for name in self.shapes:
            self.module.get_parameter(name).detach().zero_()
        whole = len(parameters) == len(self.shapes) and inputs.ndim == 2
        self._layers = _layers_of(module) if whole else None
        generator = Generator(self._like.device).manual_seed(0)
        named = self.named(self.initial_position(1, generator)[0])
        # At a scale of zero no mixing would show.
        named = {name: x + (x.ndim < 2) for name, x in named.items()}
        # Every call gets its own copy of these buffers.
        self._changing = checks.check_outputs(self.module, inputs[:100], named)
        with torch.no_grad():
            outputs = self.outputs(like.new_zeros(1, dim), inputs[None, :2])
        self.likelihood.check(outputs, targets)

    def prior_of(self, precisions: Mapping[str, float]) -> Matrix:
        """Make Λ of the precision of each parameter, by its name."""
        if len(set(precisions.values())) == 1:
            return Matrix(next(iter(precisions.values())))
        entries = [
            self._like.new_full((shape.numel(),), precisions[name])
            for name, shape in self.shapes.items()
        ]
        return Matrix(torch.cat(entries))

    def log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute log p(yᵢ | f(xᵢ; θ)): ``(chains, n)``."""
        return self.likelihood.log_density(self.outputs(position, inputs), targets)

    def pointwise_log_likelihoods(self, position: Tensor) -> Tensor:
        """Compute the log likelihoods with the likelihood's constant."""
        found = super().pointwise_log_likelihoods(position)
        return found + self.likelihood.log_constant(self.data[1])

    def outputs(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Evaluate the network with every chain's weights: inputs ``(chains or 1, n,
        ...)`` → ``(chains, n, k)``; ``(chains, n)`` for one output if targets are
        ``(N,)``.
        """
        vmap = self._vmaps[0]
        return over_chains(self.outputs_of_one, position, inputs, vmap=vmap)

    def outputs_of_one(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Evaluate the network with one chain's weights ``(dim,)``: ``(n, ...)`` →
        ``(n, k)`` or ``(n,)``.
        """
        own = {name: x.clone() for name, x in self._changing.items()}
        values = self.named(position) | own
        return self._squeezed(functional_call(self.module, values, (inputs,)))

    def _squeezed(self, outputs: Tensor) -> Tensor:
        single = outputs.shape[-1] == 1 and self.data[1].ndim == 1
        return outputs[..., 0] if single else outputs

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
            name: piece.view(piece.shape[:-1] + self.shapes[name])
            for name, piece in self.parameters_of(position).items()
        }

    def initial_position(
        self, chains: int, generator: Generator, scale: float = 1.0
    ) -> Tensor:
        """Draw weights N(0, scale²/fan-in) and zero biases for every chain: ``(chains,
        dim)``.
        """
        checks.check_count("chains", chains)
        example = "torch.Generator().manual_seed(0)"
        checks.check_instance("generator", generator, Generator, example)
        checks.check_number("scale", scale, 0)
        like, pieces = self._like.to(generator.device), []
        for shape in self.shapes.values():
            noise = like.new_empty(chains, shape.numel()).normal_(generator=generator)
            fan_in = shape[1:].numel()
            pieces.append(noise * (scale / math.sqrt(fan_in) * (len(shape) > 1)))
        return torch.cat(pieces, -1)

    def predict(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Compute every chain's predictions for the inputs ``(n, ...)``, by softmax the
        class probabilities ``(chains, n, classes)``.
        """
        return self.likelihood.predict(self._outputs_of_all(position, inputs))

    def log_predict(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Compute the logarithms of :meth:`predict`, which single precision can hold
        when a probability is below the smallest number, e⁻¹⁰³.
        """
        return self.likelihood.log_predict(self._outputs_of_all(position, inputs))

    def _outputs_of_all(self, position: Tensor, inputs: Tensor) -> Tensor:
        if getattr(position, "ndim", 0) != 2 or position.shape[1] != self.dim:
            raise ValueError(
                f"position must be a tensor (chains, {self.dim}), but it is "
                f"{checks.shown(position)}: draws are one by "
                "draws.samples.flatten(0, 1)"
            )
        checks.check_tensor("inputs", inputs, "...", floating=False)
        # The inputs go a few at a time, because the convolutions of all may not fit
        # into memory.
        few = inputs.split(1_000)
        return torch.cat([self.outputs(position, each[None]) for each in few], 1)

    def _gradient_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute the gradient of the energy."""
        if self._layers is None:
            return super()._gradient_of(position, batch, scale)
        return self._with_prior(position, self._sums(position, batch)[0], scale)

    def _gradient_moments(
        self, position: Tensor, batch: Batch, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        if self._layers is None or kind == "full":
            return super()._gradient_moments(position, batch, kind)
        gradient, squares = self._sums(position, batch, kind)
        return gradient, torch.cat([squares[name] for name in self.shapes], -1)

    def _sums(self, position: Tensor, batch: Batch, kind: Kind | None = None):
        def slope(outputs: Tensor) -> Tensor:
            slope = self.likelihood.slope(self._squeezed(outputs), batch[1])
            return slope.view_as(outputs)

        gradient, layers = torch.empty_like(position), self._layers or []
        given, sums = (self.named(x.detach()) for x in (position, gradient))
        return gradient, _moments(layers, given, batch[0], slope, sums, kind)


# Each activation f has f and f′, as a function of f.
_ACTIVATIONS = {
    nn.ReLU: (torch.relu, torch.sign),
    nn.Sigmoid: (torch.sigmoid, lambda a: a - a.square()),
    nn.Tanh: (torch.tanh, lambda a: 1 - a.square()),
}


class _Layer(NamedTuple):
    """A linear layer, by the names of its parameters."""

    activation: type[nn.Module] | None  #: names what comes before it
    weight: str
    bias: str | None


def _layers_of(module: nn.Module) -> list[_Layer] | None:
    """List the layers of a network; None unless it consists of linear layers and
    supported activations in turn.

    Example:
        >>> _layers_of(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))[1]
        _Layer(activation=<class 'torch.nn.modules.activation.Tanh'>, weight='2.weight',
            bias='2.bias')
    """
    stages = list(module) if type(module) is nn.Sequential else [module]
    linear, between = stages[::2], [type(stage) for stage in stages[1::2]]
    if (
        any(type(layer) is not nn.Linear for layer in linear)
        or not set(between) <= set(_ACTIVATIONS)
        or len(linear) != len(between) + 1
        # No weights may be used twice, and nothing may act beside the layers.
        or len(list(module.parameters())) != sum(len([*x.parameters()]) for x in linear)
        or any(x._forward_hooks or x._forward_pre_hooks for x in module.modules())
    ):
        return None
    names = iter(dict(module.named_parameters()))
    return [
        _Layer(activation, next(names), None if layer.bias is None else next(names))
        for activation, layer in zip([None, *between], linear, strict=True)
    ]


def _moments(
    layers: list[_Layer],
    parameters: Mapping[str, Tensor],
    inputs: Tensor,
    slope: Callable[[Tensor], Tensor],
    sums: Mapping[str, Tensor],
    kind: Kind | None = None,
) -> dict[str, Tensor]:
    """Sum the examples' gradients of a function of the outputs, and their squares, for
    all chains at once.

    The gradient of example i in a layer's weights is δᵢaᵢᵀ, from the activations aᵢ at
    the layer's input and the gradient δᵢ at its output (Bishop, 2006, eq. 5.53). So the
    sum over the examples is a matrix product, and that of the squares another,
    Σᵢδᵢ²(aᵢ²)ᵀ.

    Args:
        layers: the network.
        parameters: by name, weights ``(chains, outputs, inputs)`` and biases ``(chains,
            outputs)``.
        inputs: ``(chains or 1, n, inputs)``.
        slope: the function's gradient, from outputs ``(chains, n, outputs)`` to the
            same shape.
        sums: where the sums of the gradients go, like the parameters.
        kind: ``"diagonal"`` for all the squares; ``"scalar"``, where those of a layer's
            weights are summed; None for none.

    Returns:
        The sums of the squares by name, ``(chains, number)``.
    """
    signal, entering = inputs.expand(len(parameters[layers[0].weight]), -1, -1), []
    for activation, weight, bias in layers:
        if activation is not None:
            signal = _ACTIVATIONS[activation][0](signal)
        entering.append(signal)
        if bias is None:
            signal = signal @ parameters[weight].mT
        else:
            added = parameters[bias][:, None]
            signal = torch.baddbmm(added, signal, parameters[weight].mT)
    signal, squares = slope(signal), {}
    for activation, weight, bias in reversed(layers):
        active = entering.pop()
        torch.bmm(signal.mT, active, out=sums[weight])
        if bias is not None:
            torch.sum(signal, 1, out=sums[bias])
        if kind is not None:
            square, active_square = signal.square(), active.square()
            if kind == "scalar":
                square, active_square = (
                    square.sum(-1, True),
                    active_square.sum(-1, True),
                )
            squares[weight] = (square.mT @ active_square).flatten(1)
            if bias is not None:
                squares[bias] = square.sum(1)
        if activation is not None:
            derivative = _ACTIVATIONS[activation][1](active)
            signal = (signal @ parameters[weight]).mul_(derivative)
    return squares
