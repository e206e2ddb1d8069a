"""Bayesian neural networks."""

import copy
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils._pytree import tree_map

from sgmc.checks import (
    check_count,
    check_instance,
    check_non_negative,
    check_positive,
    check_tensor,
)
from sgmc.matrices import Matrix, addmv_
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors.base import DataPotential, draw_precision
from sgmc.posteriors.likelihoods import Likelihood, Softmax
from sgmc.posteriors.per_example import Recorder, simple_layers, sums_of_squares
from sgmc.potentials import Kind


class NetworkPosterior(DataPotential):
    """The posterior of a network's weights: θ ~ N(0, τ²I) and yᵢ ~ p(y | f(xᵢ; θ))
    (Neal, 1996, Section 1.2).

    A position holds all parameters of the module, one after the other in the order of
    ``module.named_parameters()``.

    Args:
        module: a network f from inputs ``(n, ...)`` to outputs ``(n, k)``, such as
            logits. Its own parameters are neither used nor changed.
        inputs: x, ``(N, ...)``.
        targets: y, ``(N, ...)``; ``(N,)`` int64 class numbers for softmax.
        prior_variance: τ²; a number, or a mapping from parameter names to numbers.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).
        likelihood: p(y | f); classes by softmax by default
            (:mod:`sgmc.posteriors.likelihoods`).
        hyperprior: a and b of the Gamma(a, b) law, by shape and rate, of each
            parameter's precision 1/τ² where it is drawn too
            (:class:`sgmc.other_kernels.Gibbs`).

    Raises:
        ValueError: if the data do not match, a variance or the hyperprior is not
            positive, the module has no parameters, or it normalises by the batch.

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

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior_variance: float | Mapping[str, float] = 1.0,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
        likelihood: Likelihood | None = None,
        hyperprior: tuple[float, float] = (1.0, 1.0),
    ):
        check_instance("module", module, torch.nn.Module, "torch.nn.Linear(784, 10)")
        parameters = dict(module.named_parameters())
        if not parameters:
            raise ValueError("module has no parameters to sample")
        check_tensor("inputs", inputs, "...", floating=False)
        self.likelihood = Softmax() if likelihood is None else likelihood
        check_instance("likelihood", self.likelihood, Likelihood, "Softmax()")
        self.likelihood.check_targets(inputs, targets)
        mixing = [
            name
            for name, layer in module.named_modules()
            if isinstance(layer, _BatchNorm)
            and (layer.training or layer.running_mean is None)
        ]
        if mixing:
            raise ValueError(
                f"module has batch normalisation in {mixing}, which makes an "
                "example's likelihood depend on the others of its minibatch: "
                "there is no posterior. Normalise by nn.GroupNorm, or fix the "
                "statistics by module.eval()"
            )
        if dropped := [
            name
            for name, layer in module.named_modules()
            if isinstance(layer, _DropoutNd) and layer.training and layer.p > 0
        ]:
            raise ValueError(
                f"module has dropout in {dropped}, in training mode, which makes the "
                "energy random: there is no posterior. Leave it out, "
                "or turn it off by module.eval()"
            )
        variances = (
            prior_variance
            if isinstance(prior_variance, Mapping)
            else dict.fromkeys(parameters, prior_variance)
        )
        if set(variances) != set(parameters):
            raise ValueError(
                "prior_variance must be a positive number, or one for each of "
                f"{list(parameters)}, not {prior_variance}"
            )
        for name, variance in variances.items():
            check_positive(
                "prior_variance" + f" of {name}" * isinstance(prior_variance, Mapping),
                variance,
            )
        if not isinstance(hyperprior, tuple) or len(hyperprior) != 2:
            raise ValueError(
                "hyperprior must be two positive numbers, its shape and its rate, "
                f"but it is {hyperprior!r}"
            )
        for name, value in zip(("shape", "rate"), hyperprior, strict=True):
            check_positive(f"hyperprior's {name}", value)
        self.module, self.hyperprior = copy.deepcopy(module), hyperprior
        # they say nothing, and a checkpoint must not tell posteriors apart by them
        for parameter in self.module.parameters():
            parameter.detach().zero_()
        self._names, self._shapes = (
            list(parameters),
            [p.shape for p in parameters.values()],
        )
        self._sizes = [p.numel() for p in parameters.values()]
        super().__init__(
            (inputs, targets), batch_size, minibatches, dim=sum(self._sizes)
        )
        self._set_prior({name: 1 / variance for name, variance in variances.items()})
        zero = (
            inputs if inputs.is_floating_point() else next(iter(parameters.values()))
        ).new_zeros(1, self.dim)
        try:
            with torch.no_grad():
                outputs = self.outputs(zero, inputs[None, :1])
            self._find_layers(zero[0])
        except RuntimeError as error:
            raise ValueError(
                "the module cannot take inputs of shape (n, "
                f"{', '.join(map(str, inputs.shape[1:]))}) and {inputs.dtype}: {error}"
            ) from error
        self.likelihood.check_outputs(outputs, targets)

    def given(
        self, prior_precision: Mapping[str, float | Tensor]
    ) -> "NetworkPosterior":
        """Make the posterior with other prior precisions λ = 1/τ², by the parameters'
        names: numbers, or ``(chains,)``, one a chain.

        Raises:
            ValueError: if a precision is missing, or not positive.

        Example:
            >>> posterior = NetworkPosterior(
            ...     torch.nn.Linear(4, 3), torch.randn(20, 4), torch.arange(20) % 3
            ... )
            >>> posterior.given(
            ...     {"weight": torch.tensor([1.0, 9.0]), "bias": 1.0}
            ... ).log_prior(torch.ones(2, 15))
            tensor([ -7.5000, -55.5000])
        """
        changed = copy.copy(self)
        changed._set_prior(prior_precision)
        return changed

    def _set_prior(self, precisions: Mapping[str, float | Tensor]) -> None:
        values = {name: torch.as_tensor(value) for name, value in precisions.items()}
        if set(values) != set(self._names) or not all(
            (0 < x).all() and x.isfinite().all() for x in values.values()
        ):
            raise ValueError(
                "prior_precision must hold a positive number for each of "
                f"{self._names}, not {dict(precisions)}"
            )
        self.prior_precision = {name: precisions[name] for name in self._names}
        if (
            all(x.ndim == 0 for x in values.values())
            and len({float(x) for x in values.values()}) == 1
        ):
            self.prior = Matrix(values[self._names[0]])
            return
        like = self.data[0]
        pieces = [values[name].to(like)[..., None] for name in self._names]
        chains = torch.broadcast_shapes(*(piece.shape for piece in pieces))[:-1]
        entries = [
            piece.expand(*chains, size)
            for piece, size in zip(pieces, self._sizes, strict=True)
        ]
        self.prior = (
            Matrix.of_chains(torch.cat(entries, -1))
            if chains
            else Matrix(torch.cat(entries))
        )

    @property
    def hyperparameters(self) -> dict[str, float | Tensor]:
        """The prior precisions."""
        return self.prior_precision

    def draw_hyperparameters(
        self, position: Tensor, generator: Generator
    ) -> dict[str, Tensor]:
        """Draw the precision of each tensor of weights from its full conditional law,
        for every chain (Chen et al., 2014, Section 4.2).

        With w ~ N(0, λ⁻¹I) of n entries and λ ~ Gamma(a, b), λ | w ~ Gamma(a + ½n, b +
        ½Σw²), whatever the data.

        Args:
            position: θ, ``(chains, dim)``.
            generator: the source of randomness, on the position's device.

        Returns:
            λ by the name of the parameter, each ``(chains,)`` float64, for
            :meth:`given`.

        Example:
            >>> posterior = NetworkPosterior(
            ...     torch.nn.Linear(100, 50), torch.zeros(2, 100), torch.tensor([0, 1])
            ... )
            >>> drawn = posterior.draw_hyperparameters(
            ...     torch.full((3, posterior.dim), 0.1), Generator().manual_seed(0)
            ... )
            >>> bool(((drawn["weight"] > 80) & (drawn["weight"] < 120)).all())
            True
        """
        return {
            name: draw_precision(weights, self.hyperprior, generator)
            for name, weights in self.parameters_of(position).items()
        }

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute −½Σλθ²: ``(chains, dim)`` → ``(chains,)``."""
        return -0.5 * (position * (self.prior @ position)).sum(-1)

    def log_likelihood(
        self, position: Tensor, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        """Compute log p(yᵢ | f(xᵢ; θ)): ``(chains, n)``."""
        return self.likelihood.log_density(self.outputs(position, inputs), targets)

    def grad_log_prior(self, position: Tensor) -> Tensor:
        """Compute −λθ."""
        return -(self.prior @ position)

    def outputs(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Evaluate the network with every chain's weights: inputs ``(chains or 1, n,
        ...)`` → ``(chains, n, k)``, or ``(chains, n)``.

        A single output is without an axis of its own where the targets are.
        """
        return self._over_chains(self._call, position, inputs)

    def linear_layers(self) -> dict[str, nn.Linear]:
        """Name the linear layers of the network in the order of their use.

        Raises:
            ValueError: if it has parameters that belong to no layer, or layers that are
                used twice or with several inputs an example.
        """
        if self._layers is None or any(
            len(shape) != 1
            for name, shape in self._output_shapes.items()
            if self._is_linear(name)
        ):
            raise ValueError(
                "module must be made of linear layers and convolutions, each used "
                "once, and the linear ones on one vector of each example, "
                f"but it is {type(self.module).__name__} with {', '.join(self._names)}"
            )
        return {
            name: layer for name, layer in self._layers.items() if self._is_linear(name)
        }

    def outputs_of_masked(
        self, position: Tensor, inputs: Tensor, masks: Sequence[Tensor]
    ) -> Tensor:
        """Evaluate the network as :meth:`outputs` does, what enters a linear layer
        being multiplied by a mask.

        Args:
            position: ``(chains, dim)``.
            inputs: ``(chains, n, ...)``.
            masks: for each of the linear layers, ``(chains, n, features)``.
        """
        return self._over_chains(self._call_masked, position, inputs, *masks)

    def outputs_of_law(
        self, mean: Tensor, std: Tensor, inputs: Tensor, normals: Sequence[Tensor]
    ) -> Tensor:
        """Draw outputs of weights N(μ, diag σ²), other weights for each example, layer
        by layer (Kingma et al., 2015).

        What leaves a linear layer with the input x is N(x·μ, x²·σ²), of which one
        number an output is drawn, not one a weight.

        Args:
            mean: μ, ``(chains, dim)``.
            std: σ, ``(chains, dim)``.
            inputs: ``(chains, n, ...)``.
            normals: standard normal numbers for each of the linear layers, ``(chains,
                n, outputs)``.

        Example:
            >>> posterior = NetworkPosterior(
            ...     nn.Linear(4, 3), torch.ones(20, 4), torch.arange(20) % 3
            ... )
            >>> zero, one = torch.zeros(1, 15), torch.ones(1, 15)
            >>> posterior.outputs_of_law(
            ...     zero, one, torch.ones(1, 1, 4), [torch.ones(1, 1, 3)]
            ... )  # √5, with the bias
            tensor([[[2.2361, 2.2361, 2.2361]]])
        """
        return self._over_chains(self._call_law, mean, inputs, std, *normals)

    def parameters_of(self, position: Tensor) -> dict[str, Tensor]:
        """Cut a position ``(chains, dim)`` into the parameters of the module, by name:
        each ``(chains, size)``, a view.
        """
        return dict(zip(self._names, position.split(self._sizes, -1), strict=True))

    def named(self, position: Tensor) -> dict[str, Tensor]:
        """Cut positions ``(chains, dim)`` into the module's parameters by name, each
        ``(chains, *shape)``: for ``sample`` to collect.
        """
        pieces = self.parameters_of(position).items()
        return {
            name: piece.unflatten(-1, shape) if shape else piece[:, 0]
            for (name, piece), shape in zip(pieces, self._shapes, strict=True)
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
        pieces = []
        for shape, size in zip(self._shapes, self._sizes, strict=True):
            noise = torch.randn(
                chains,
                size,
                generator=generator,
                dtype=self.data[0].dtype,
                device=generator.device,
            )
            fan_in = size // shape[0]
            pieces.append(
                noise * (scale / math.sqrt(fan_in))
                if len(shape) > 1
                else torch.zeros_like(noise)
            )
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
        if (
            not isinstance(position, Tensor)
            or position.ndim != 2
            or position.shape[1] != self.dim
        ):
            given = (
                tuple(position.shape)
                if isinstance(position, Tensor)
                else f"a {type(position).__name__}"
            )
            raise ValueError(
                f"position must be a tensor (chains, {self.dim}), but it is {given}: "
                "draws are one by draws.flatten(0, 1)"
            )
        check_tensor("inputs", inputs, "...", floating=False)
        # A few at a time, for what a convolution makes of all inputs at once may not
        # fit into memory.
        return torch.cat(
            [predict(self.outputs(position, few[None])) for few in inputs.split(1_000)],
            1,
        )

    def gradient_of(
        self, position: Tensor, batch: tuple[Tensor, ...], scale: float
    ) -> Tensor:
        """Compute its gradient."""
        with torch.enable_grad():
            position = position.detach().requires_grad_()
            loss = self.likelihood.loss(self.outputs(position, batch[0]), batch[1])
            gradient = torch.autograd.grad(loss, position)[0]
        return self.with_prior(position.detach(), gradient, -scale)

    def with_prior(
        self, position: Tensor, log_likelihood_gradient: Tensor, scale: float
    ) -> Tensor:
        """Add the prior's gradient."""
        return addmv_(log_likelihood_gradient.mul_(-scale), self.prior, position)

    def gradient_moments(
        self, position: Tensor, batch: tuple[Tensor, ...], kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        if kind == "full" or self._layers is None:
            return super().gradient_moments(position, batch, kind)
        chains, examples = batch[0].shape[:2]
        with torch.enable_grad():
            position = position.detach().requires_grad_()
            probes = [
                position.new_zeros(chains, examples, *shape, requires_grad=True)
                for shape in self._output_shapes.values()
            ]
            outputs, inputs = self._over_chains(
                self._call_and_record, position, batch[0], *probes
            )
            gradient, *signals = torch.autograd.grad(
                self.likelihood.loss(outputs, batch[1]), [position, *probes]
            )
        squares = {}
        for name, activations, signal in zip(
            self._layers, inputs, signals, strict=True
        ):
            for key, value in sums_of_squares(
                self._layers[name], activations, signal, kind
            ).items():
                squares[f"{name}.{key}".lstrip(".")] = value
        return gradient.neg_(), torch.cat([squares[name] for name in self._names], -1)

    def _call_and_record(
        self, position: Tensor, inputs: Tensor, *probes: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        with Recorder(self._layers, probes) as recorder:
            outputs = self._call(position, inputs)
        return outputs, recorder.inputs

    def _find_layers(self, zero: Tensor) -> None:
        """Find the layers in the order of their use, with the shapes of their outputs
        for one example; None if they are not simple.
        """
        self._layers = simple_layers(self.module)
        if self._layers is None:
            return
        with torch.no_grad(), Recorder(self._layers) as recorder:
            self._call(zero, self.data[0][:1])
        if sorted(recorder.names) != sorted(self._layers):  # used twice, or not at all
            self._layers = None
            return
        self._layers = {name: self._layers[name] for name in recorder.names}
        self._output_shapes = {
            name: shape[1:]
            for name, shape in zip(recorder.names, recorder.output_shapes, strict=True)
        }

    def _is_linear(self, name: str) -> bool:
        return isinstance(self._layers[name], nn.Linear)

    def _call_masked(self, position: Tensor, inputs: Tensor, *masks: Tensor) -> Tensor:
        def hide(mask: Tensor):
            return lambda layer, arguments: (arguments[0] * mask,)

        handles = [
            layer.register_forward_pre_hook(hide(mask))
            for layer, mask in zip(self.linear_layers().values(), masks, strict=True)
        ]
        return self._call_and_remove(handles, position, inputs)

    def _call_law(
        self, mean: Tensor, inputs: Tensor, std: Tensor, *normals: Tensor
    ) -> Tensor:
        variance = self._named(std.square())

        def blur(name: str, normal: Tensor):
            weight, bias = (
                variance.get(f"{name}.{key}".lstrip(".")) for key in ("weight", "bias")
            )

            def hook(
                layer: nn.Module, arguments: tuple[Tensor], output: Tensor
            ) -> Tensor:
                spread = (
                    functional.linear(arguments[0].square(), weight, bias)
                    + torch.finfo(output.dtype).tiny
                )  # a root has no slope at zero
                return torch.addcmul(output, spread.sqrt(), normal)

            return hook

        layers = self.linear_layers()
        handles = [
            layer.register_forward_hook(blur(name, z))
            for (name, layer), z in zip(layers.items(), normals, strict=True)
        ]
        return self._call_and_remove(handles, mean, inputs)

    def _call_and_remove(
        self, handles: list, position: Tensor, inputs: Tensor
    ) -> Tensor:
        try:
            return self._call(position, inputs)
        finally:
            for handle in handles:
                handle.remove()

    @staticmethod
    def _over_chains(function, position: Tensor, inputs: Tensor, *more: Tensor):
        if len(position) == 1:  # vmap costs more than a small network
            # whose way back is a view; that of x[0] fills a tensor with zeros
            alone = (x.squeeze(0) for x in (position, inputs, *more))
            return tree_map(lambda result: result[None], function(*alone))
        shared = len(inputs) == 1
        in_dims = (0, None if shared else 0, *[0] * len(more))
        return torch.func.vmap(function, in_dims, randomness="different")(
            position, inputs[0] if shared else inputs, *more
        )

    def _call(self, position: Tensor, inputs: Tensor) -> Tensor:
        outputs = functional_call(self.module, self._named(position), (inputs,))
        return (
            outputs[..., 0]
            if outputs.shape[-1] == 1 and self.data[1].ndim == 1
            else outputs
        )

    def _named(self, position: Tensor) -> dict[str, Tensor]:
        """Cut the position ``(dim,)`` of a chain into the parameters of the module, in
        their shapes.
        """
        pieces = position.split(self._sizes)
        return {
            name: piece.view(shape)
            for name, piece, shape in zip(
                self._names, pieces, self._shapes, strict=True
            )
        }
