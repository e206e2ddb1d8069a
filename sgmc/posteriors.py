"""From data and a model to a potential with minibatch gradients."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor
from torch.func import functional_call
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map

from sgmc.matrices import add_product_
from sgmc.noise import MEMORY, Kind, Recorder, check_fits, no_noise, simple_layers, sums_of_squares
from sgmc.potentials import Potential, differentiate


class Posterior(Potential):
    """A posterior density, U(θ) = −log p(θ) − Σᵢ log p(xᵢ | θ), with minibatch gradients (Chen et al., 2014, eq. 5).

    The stochastic gradient is ∇Ũ(θ) = −∇log p(θ) − (N/n) Σ ∇log p(xᵢ | θ), the sum running over n examples drawn afresh at every
    call, for every chain its own. It is unbiased, and with all the data (n = N, without replacement) it is the gradient itself.

    Args:
        log_prior: log p(θ) up to a constant, from ``(chains, dim)`` to ``(chains,)``.
        log_likelihood: log p(xᵢ | θ) of each example, from ``(chains, dim)`` and a batch to ``(chains, n)``. The tensors of the batch
            are ``(chains, n, ...)``, or ``(1, N, ...)`` for all the data: write it so that they broadcast.
        data: tensors whose first axis runs over the N examples.
        batch_size: n; all the data by default.
        replacement: whether a minibatch may hold an example twice.
        gradients: formulas to use instead of automatic differentiation: ∇log p(θ), from ``(chains, dim)`` to ``(chains, dim)``, and
            Σ∇log p(xᵢ | θ) over a batch, from ``(chains, dim)`` and the batch to ``(chains, dim)``.
        dim: number of coordinates of θ, where it is known.

    Raises:
        ValueError: if the data tensors differ in length, the batch does not fit them, or the log-likelihood's shape is wrong.

    Example:
        >>> observations = torch.tensor([1.0, 2.0, 3.0])
        >>> posterior = Posterior(
        ...     log_prior=lambda position: -0.5 * position.pow(2).sum(-1),
        ...     log_likelihood=lambda position, x: -0.5 * (x - position).pow(2),
        ...     data=(observations,),
        ...     batch_size=2,
        ... )
        >>> posterior.gradient(torch.zeros(1, 1))
        tensor([[-6.]])
    """

    def __init__(
        self,
        log_prior: Callable[[Tensor], Tensor],
        log_likelihood: Callable[..., Tensor],
        data: Sequence[Tensor],
        batch_size: int | None = None,
        replacement: bool = False,
        gradients: tuple[Callable[[Tensor], Tensor], Callable[..., Tensor]] | None = None,
        dim: int | None = None,
    ):
        lengths = [len(tensor) for tensor in data]
        if not lengths or len(set(lengths)) > 1 or lengths[0] == 0:
            raise ValueError(f"data must be tensors with the same number of examples on their first axis, not {lengths}")
        if batch_size is not None and not (isinstance(batch_size, int) and 1 <= batch_size):
            raise ValueError(f"batch_size must be a whole number of at least 1, but it is {batch_size!r}")
        if batch_size is not None and batch_size > lengths[0] and not replacement:
            raise ValueError(
                f"batch_size is {batch_size}, but there are only {lengths[0]} examples: take a smaller batch, or None for all the data"
            )
        self.log_prior, self.log_likelihood, self.gradients = log_prior, log_likelihood, gradients
        self.data, self.num_examples, self.dim = tuple(data), lengths[0], dim
        self.batch_size, self.replacement = batch_size, replacement

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ) from all the data: ``(chains, dim)`` → ``(chains,)``."""
        return self._energy(position, self._all_data(), 1.0)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U(θ) from all the data: ``(chains, dim)`` → ``(chains, dim)``."""
        return self._gradient(position, self._all_data(), 1.0)

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ) from all the data: → ``(chains,)``, ``(chains, dim)``."""
        if self.gradients is None:
            return differentiate(self.energy, position)
        return self.energy(position), self.gradient(position)

    def stochastic_gradient(self, position: Tensor, generator: Generator) -> Tensor:
        """Draw ∇Ũ(θ) from a fresh minibatch for every chain: ``(chains, dim)`` → ``(chains, dim)``."""
        if self._takes_all_the_data:
            return self.gradient(position)
        batch = self.minibatch(self.draw_indices(position.shape[0], generator))
        return self._gradient(position, batch, self.num_examples / self.batch_size)

    def draw_indices(self, chains: int, generator: Generator) -> Tensor:
        """Draw the examples of a minibatch for every chain, uniformly with or without replacement: ``(chains, n)`` int64."""
        total, size, device = self.num_examples, self.batch_size, generator.device
        if not self.replacement and 4 * size > total:
            return torch.rand(chains, total, generator=generator, device=device).argsort(-1)[:, :size]
        indices = torch.randint(total, (chains, size), generator=generator, device=device)
        while not self.replacement:
            # Redrawing repeated indices treats all examples alike, so every subset of n is equally likely when none is left.
            indices = indices.sort(-1).values
            repeated = functional.pad(indices[:, 1:] == indices[:, :-1], (1, 0))
            num_repeated = int(repeated.sum())
            if num_repeated == 0:
                break
            indices[repeated] = torch.randint(total, (num_repeated,), generator=generator, device=device)
        return indices

    def minibatch(self, indices: Tensor) -> tuple[Tensor, ...]:
        """Gather the examples with the given indices ``(chains, n)``: tensors ``(chains, n, ...)``."""
        return tuple(x.index_select(0, indices.flatten()).unflatten(0, indices.shape) for x in self.data)

    def gradient_and_noise_variance(self, position: Tensor, generator: Generator, kind: Kind) -> tuple[Tensor, Tensor]:
        """Draw ∇Ũ(θ) for every chain and estimate its variance V(θ) from the very minibatch that gave it, without bias.

        With gᵢ = ∇log p(xᵢ | θ), V̂ = (N²/n)·Σ(gᵢ − ḡ)(gᵢ − ḡ)ᵀ/(n − 1) over the minibatch, times 1 − n/N when it is drawn without
        replacement (Cochran, 1977, eq. 2.20). The prior has no part in it. Arguments and results are those of
        :meth:`sgmc.potentials.Potential.gradient_and_noise_variance`.

        Raises:
            ValueError: if the batch has one example, which has no covariance, or a full matrix would not fit into memory.
        """
        if self._takes_all_the_data:
            return self.gradient(position), no_noise(position, kind)
        size, total = self.batch_size, self.num_examples
        if size < 2:
            raise ValueError(
                "batch_size is 1, and one example has no covariance: take a batch of at least 2 to estimate the gradient noise"
            )
        if kind == "full":
            check_fits(len(position), position.shape[1], position.element_size())
        batch = self.minibatch(self.draw_indices(position.shape[0], generator))
        gradient, moment = self._moments(position, batch, kind)
        scale = total**2 / (size * (size - 1)) * (1.0 if self.replacement else 1 - size / total)
        if kind == "full":
            moment.baddbmm_(gradient[:, :, None], gradient[:, None, :], alpha=-1 / size)
        elif kind == "diagonal":  # what rounding leaves below zero is zero
            moment.addcmul_(gradient, gradient, value=-1 / size).clamp_(min=0)
        else:
            moment = moment.sum(-1, keepdim=True).sub_(gradient.square().sum(-1, keepdim=True), alpha=1 / size).clamp_(min=0)
            scale /= position.shape[1]
        return self._with_prior(position, gradient, total / size), moment.mul_(scale)

    def per_example_gradients(self, position: Tensor, batch: tuple[Tensor, ...]) -> Tensor:
        """Compute ∇log p(xᵢ | θ) of every example of a batch, by automatic differentiation.

        Args:
            position: ``(chains, dim)``.
            batch: tensors ``(chains, n, ...)``, as from :meth:`minibatch`, or ``(1, n, ...)``.

        Returns:
            ``(chains, n, dim)``.
        """

        def log_likelihood(position: Tensor, *example: Tensor) -> Tensor:
            return self.log_likelihood(position[None], *(x[None, None] for x in example))[0, 0]

        over_examples = torch.func.vmap(torch.func.grad(log_likelihood), (None, *[0] * len(batch)))
        batch = [x.expand(len(position), *x.shape[1:]) for x in batch]
        return torch.func.vmap(over_examples)(position, *batch)

    @property
    def _takes_all_the_data(self) -> bool:
        return self.batch_size is None or (self.batch_size == self.num_examples and not self.replacement)

    def _all_data(self) -> tuple[Tensor, ...]:
        return tuple(x[None] for x in self.data)

    def _moments(self, position: Tensor, batch: tuple[Tensor, ...], kind: Kind) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients, and their squares, ``(chains, dim)``, or outer products, ``(chains, dim, dim)``.

        For a scalar the squares may be summed over coordinates already, all or some of them.
        """
        gradients = self.per_example_gradients(position, batch)
        return gradients.sum(1), gradients.mT @ gradients if kind == "full" else gradients.square().sum(1)

    def _with_prior(self, position: Tensor, log_likelihood_gradient: Tensor, scale: float) -> Tensor:
        """Put ∇Ũ together from Σ∇log p(xᵢ | θ)."""
        if self.gradients is not None:
            log_prior_gradient = self.gradients[0](position)
        else:
            with torch.enable_grad():
                position = position.detach().requires_grad_()
                log_prior_gradient = torch.autograd.grad(self.log_prior(position).sum(), position)[0]
        return log_likelihood_gradient.mul(-scale).sub_(log_prior_gradient)

    def _energy(self, position: Tensor, batch: tuple[Tensor, ...], scale: float) -> Tensor:
        log_likelihood = self.log_likelihood(position, *batch)
        expected = (position.shape[0], batch[0].shape[1])
        if log_likelihood.shape != expected:
            raise ValueError(
                f"log_likelihood must return one value per chain and example, {expected}, but it returned {tuple(log_likelihood.shape)}"
            )
        return -self.log_prior(position) - scale * log_likelihood.sum(-1)

    def _gradient(self, position: Tensor, batch: tuple[Tensor, ...], scale: float) -> Tensor:
        if self.gradients is not None:
            return self._with_prior(position, self.gradients[1](position, *batch), scale)
        with torch.enable_grad():
            position = position.detach().requires_grad_()
            return torch.autograd.grad(self._energy(position, batch, scale).sum(), position)[0]


class HeldMinibatch(Potential):
    """A posterior seen through one minibatch, which is held: Ũ(θ) = −log p(θ) − (N/n) Σ log p(xᵢ | θ), with its exact gradient.

    Where :class:`Posterior` draws a minibatch for every gradient, this one draws it once, when it is made, for every chain its own.
    Its energy and its gradient belong together, as they do in naive SGHMC and in the trees of SGNUTS as it was reported.

    Args:
        posterior: the posterior, with a batch size.
        generator: the source of the minibatch.
        chains: number of chains.

    Raises:
        ValueError: if the posterior has no batch size.

    Example:
        >>> posterior = LinearRegression(torch.ones(4, 1), torch.arange(4.0), batch_size=2)
        >>> held = HeldMinibatch(posterior, Generator())
        >>> bool(held.gradient(torch.zeros(1, 1)) == held.gradient(torch.zeros(1, 1)))
        True
    """

    def __init__(self, posterior: Posterior, generator: Generator, chains: int = 1):
        if posterior.batch_size is None:
            raise ValueError("posterior has no batch_size, so that there is no minibatch to hold: give it one")
        self.posterior, self.dim = posterior, posterior.dim
        self._scale = posterior.num_examples / posterior.batch_size
        self._batch = posterior.minibatch(posterior.draw_indices(chains, generator))

    def energy(self, position: Tensor) -> Tensor:
        """Compute Ũ(θ): ``(chains, dim)`` → ``(chains,)``."""
        return self.posterior._energy(position, self._batch, self._scale)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇Ũ(θ): ``(chains, dim)`` → ``(chains, dim)``."""
        return self.posterior._gradient(position, self._batch, self._scale)


def control_variates(posterior: Posterior, reference: Tensor) -> Posterior:
    """Rewrite a posterior so that its minibatch gradients have little noise near a reference point θ₀ (Baker et al., 2019, Section 2.2).

    Each example's log p(xᵢ | θ) loses the linear term ∇log p(xᵢ | θ₀)·θ, and the prior gets all of them. The energy is the same; the
    gradients that the minibatch samples are gᵢ(θ) − gᵢ(θ₀), so that their variance grows with the square of the distance from the
    reference, where it is zero.

    Args:
        posterior: the posterior.
        reference: θ₀, ``(dim,)``, near the mode.

    Returns:
        A posterior with the same batches, which keeps one gradient ``(dim,)`` more with each example.

    Raises:
        ValueError: if the reference's shape is wrong, or N gradients do not fit into memory.

    Example:
        >>> posterior = LinearRegression(torch.ones(4, 1), torch.arange(4.0), batch_size=2)
        >>> calm = control_variates(posterior, posterior.mean)
        >>> calm.stochastic_gradient(posterior.mean[None], Generator()).abs().max() < 1e-6
        tensor(True)
    """
    if reference.ndim != 1 or posterior.dim not in (None, len(reference)):
        raise ValueError(f"reference must have shape (dim,) = ({posterior.dim},), but it is {tuple(reference.shape)}")
    size = posterior.num_examples * len(reference) * reference.element_size()
    if size > MEMORY:
        raise ValueError(f"the gradients of {posterior.num_examples:,} examples at the reference take {size / 2**30:,.1f} GiB: use fewer")
    at_reference = posterior.per_example_gradients(reference[None], posterior._all_data())[0]
    total = at_reference.sum(0)
    gradients = posterior.gradients and (
        lambda position: posterior.gradients[0](position) + total,
        lambda position, *batch: posterior.gradients[1](position, *batch[:-1]) - batch[-1].sum(1),
    )
    return Posterior(
        log_prior=lambda position: posterior.log_prior(position) + position @ total,
        log_likelihood=lambda position, *batch: posterior.log_likelihood(position, *batch[:-1]) - _dot(batch[-1], position),
        data=(*posterior.data, at_reference),
        batch_size=posterior.batch_size,
        replacement=posterior.replacement,
        gradients=gradients,
        dim=posterior.dim,
    )


def _check_regression(inputs: Tensor, targets: Tensor, **variances: float) -> None:
    if inputs.ndim != 2 or targets.shape != inputs.shape[:1]:
        raise ValueError(
            f"inputs must be (examples, features) and targets (examples,), but they are {tuple(inputs.shape)} and {tuple(targets.shape)}"
        )
    for name, value in variances.items():
        if value <= 0:
            raise ValueError(f"{name} must be positive, but it is {value}; it is a variance, not a standard deviation")


def _dot(inputs: Tensor, position: Tensor) -> Tensor:
    """Compute xᵢ·θ for every chain: ``(chains or 1, n, dim)`` and ``(chains, dim)`` → ``(chains, n)``."""
    return position @ inputs[0].T if len(inputs) == 1 else (position[:, None, :] @ inputs.mT)[:, 0]


def _weighted_sum(inputs: Tensor, weights: Tensor) -> Tensor:
    """Compute Σᵢ wᵢxᵢ for every chain: ``(chains or 1, n, dim)`` and ``(chains, n)`` → ``(chains, dim)``."""
    return weights @ inputs[0] if len(inputs) == 1 else (weights[:, None, :] @ inputs)[:, 0]


class _LinearModel(Posterior):
    """A posterior whose likelihood sees θ ~ N(0, τ²I) through z = x·θ alone, so that ∇log p(yᵢ | θ) = wᵢxᵢ with wᵢ = ∂log p(yᵢ | zᵢ)/∂z."""

    def __init__(self, inputs, targets, prior_variance, batch_size, replacement, log_density, slope):
        super().__init__(
            lambda position: -0.5 * position.pow(2).sum(-1) / prior_variance,
            lambda position, x, y: log_density(_dot(x, position), y),
            (inputs, targets),
            batch_size,
            replacement,
            gradients=(lambda position: -position / prior_variance, lambda position, x, y: _weighted_sum(x, slope(_dot(x, position), y))),
            dim=inputs.shape[1],
        )
        self._slope = slope

    def _moments(self, position: Tensor, batch: tuple[Tensor, ...], kind: Kind) -> tuple[Tensor, Tensor]:
        inputs, targets = batch
        weights = self._slope(_dot(inputs, position), targets)
        total = _weighted_sum(inputs, weights)
        # In place from here, for the batch is a copy already, and another of its size would cost more than the arithmetic.
        if kind == "full":
            gradients = inputs.mul_(weights[..., None])
            return total, gradients.mT @ gradients
        return total, _weighted_sum(inputs.square_(), weights.square_())


class LinearRegression(_LinearModel):
    """Bayesian linear regression, yᵢ ~ N(xᵢ·θ, σ²) and θ ~ N(0, τ²I), whose posterior is Gaussian (Bishop, 2006, eq. 3.53–3.54).

    Args:
        inputs: x, ``(N, dim)``.
        targets: y, ``(N,)``.
        noise_variance: σ².
        prior_variance: τ².
        batch_size: n; all the data by default.
        replacement: whether a minibatch may hold an example twice.

    Attributes:
        mean: exact posterior mean, ``(dim,)``.
        covariance: exact posterior covariance, ``(dim, dim)``.

    Raises:
        ValueError: if shapes do not match or a variance is not positive.

    Example:
        >>> LinearRegression(torch.ones(3, 1), torch.tensor([1.0, 2.0, 3.0]), 1.0, 1.0).mean
        tensor([1.5000])
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        noise_variance: float = 1.0,
        prior_variance: float = 1.0,
        batch_size: int | None = None,
        replacement: bool = False,
    ):
        _check_regression(inputs, targets, noise_variance=noise_variance, prior_variance=prior_variance)
        super().__init__(
            inputs,
            targets,
            prior_variance,
            batch_size,
            replacement,
            log_density=lambda z, y: -0.5 * (y - z) ** 2 / noise_variance,
            slope=lambda z, y: (y - z) / noise_variance,
        )
        identity = torch.eye(self.dim, dtype=inputs.dtype, device=inputs.device)
        self.precision = inputs.T @ inputs / noise_variance + identity / prior_variance
        self.covariance = torch.linalg.inv(self.precision)
        self.mean = self.covariance @ (inputs.T @ targets) / noise_variance


class LogisticRegression(_LinearModel):
    """Bayesian logistic regression, P(yᵢ = 1) = 1/(1 + exp(−xᵢ·θ)) and θ ~ N(0, τ²I) (Bishop, 2006, Section 4.5).

    Args:
        inputs: x, ``(N, dim)``; add a column of ones for an intercept.
        targets: y, ``(N,)``, zeros and ones of the inputs' dtype.
        prior_variance: τ².
        batch_size: n; all the data by default.
        replacement: whether a minibatch may hold an example twice.

    Raises:
        ValueError: if shapes do not match, targets are not 0 or 1, or the variance is not positive.

    Example:
        >>> LogisticRegression(torch.ones(2, 1), torch.tensor([0.0, 1.0])).gradient(torch.zeros(1, 1))
        tensor([[0.]])
    """

    def __init__(
        self,
        inputs: Tensor,
        targets: Tensor,
        prior_variance: float = 1.0,
        batch_size: int | None = None,
        replacement: bool = False,
    ):
        _check_regression(inputs, targets, prior_variance=prior_variance)
        if targets.dtype != inputs.dtype or not ((targets == 0) | (targets == 1)).all():
            raise ValueError(f"targets must be zeros and ones of the inputs' dtype {inputs.dtype}: use targets.to(inputs)")
        super().__init__(
            inputs,
            targets,
            prior_variance,
            batch_size,
            replacement,
            log_density=lambda z, y: y * z - functional.softplus(z),
            slope=lambda z, y: y - torch.sigmoid(z),
        )
        self._prior_precision = 1 / prior_variance

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) and ∇U(θ) from all the data, with one product x·θ for both: → ``(chains,)``, ``(chains, dim)``."""
        x, y = self.data
        logit = position @ x.T
        loss = functional.softplus(logit).sum(-1) - logit @ y  # −Σ log p(yᵢ | θ)
        energy = loss + 0.5 * self._prior_precision * position.pow(2).sum(-1)
        return energy, torch.addmm(self._prior_precision * position, torch.sigmoid(logit) - y, x)


class NetworkPosterior(Posterior):
    """The posterior of a classifying network's weights: θ ~ N(0, τ²I), P(yᵢ = k) = softmax(f(xᵢ; θ))ₖ (Neal, 1996, Section 1.2).

    A position holds all parameters of the module, one after the other in the order of ``module.named_parameters()``.

    Args:
        module: a network from inputs ``(n, ...)`` to logits ``(n, classes)``. Its own parameters are neither used nor changed.
        inputs: x, ``(N, ...)``.
        targets: y, ``(N,)`` int64 class numbers.
        prior_variance: τ²; a number, or a mapping from parameter names to numbers.
        batch_size: n; all the data by default.
        replacement: whether a minibatch may hold an example twice.

    Raises:
        ValueError: if the data do not match, the variance is not positive, the module has no parameters, or it normalises by the batch.

    Example:
        >>> posterior = NetworkPosterior(torch.nn.Linear(4, 3), torch.randn(20, 4), torch.arange(20) % 3, batch_size=5)
        >>> posterior.dim, posterior.predict(torch.zeros(2, 15), torch.randn(7, 4)).shape
        (15, torch.Size([2, 7, 3]))
    """

    def __init__(
        self,
        module: torch.nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior_variance: float | dict[str, float] = 1.0,
        batch_size: int | None = None,
        replacement: bool = False,
    ):
        parameters = dict(module.named_parameters())
        if not parameters:
            raise ValueError("module has no parameters to sample")
        if targets.dtype != torch.int64 or targets.ndim != 1:
            raise ValueError(f"targets must be class numbers, int64 of shape (N,), not {targets.dtype} {tuple(targets.shape)}")
        mixing = [
            name
            for name, layer in module.named_modules()
            if isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None)
        ]
        if mixing:
            raise ValueError(
                f"module has batch normalisation in {mixing}, which makes an example's likelihood depend on the others of its minibatch: "
                "there is no posterior. Normalise by nn.GroupNorm, or fix the statistics by module.eval()"
            )
        variances = prior_variance if isinstance(prior_variance, dict) else dict.fromkeys(parameters, prior_variance)
        if set(variances) != set(parameters) or not all(0 < value < math.inf for value in variances.values()):
            raise ValueError(f"prior_variance must be a positive number, or one for each of {list(parameters)}, not {prior_variance}")
        self.module = module
        self._names, self._shapes = list(parameters), [p.shape for p in parameters.values()]
        self._sizes = [p.numel() for p in parameters.values()]
        self._like = inputs[:0]  # tells dtype and device
        self.prior_precision = {name: 1 / variance for name, variance in variances.items()}

        super().__init__(
            lambda position: -0.5 * (self._prior_precision * position * position).sum(-1),
            lambda position, x, y: self._log_probabilities(position, x).gather(-1, y.expand(len(position), -1)[..., None])[..., 0],
            (inputs, targets),
            batch_size,
            replacement,
            dim=sum(self._sizes),
        )
        self._find_layers()

    @property
    def prior_precision(self) -> dict[str, float]:
        """The prior's precision λ = 1/τ² of each parameter, by name; it may be set anew between two steps, as a Gibbs step does.

        Raises:
            ValueError: if a precision is missing, or not positive.
        """
        return dict(self._precisions)

    @prior_precision.setter
    def prior_precision(self, precisions: dict[str, float]) -> None:
        if set(precisions) != set(self._names) or not all(0 < value < math.inf for value in precisions.values()):
            raise ValueError(f"prior_precision must hold a positive number for each of {self._names}, not {precisions}")
        self._precisions = {name: float(precisions[name]) for name in self._names}
        values = list(self._precisions.values())
        entries = [self._like.new_full((size,), value) for size, value in zip(self._sizes, values, strict=True)]
        if len(set(values)) == 1:
            self._prior_precision = values[0]
        elif isinstance(getattr(self, "_prior_precision", None), Tensor):
            self._prior_precision.copy_(torch.cat(entries))  # a captured graph reads it where it is
        else:
            self._prior_precision = torch.cat(entries)

    def parameters_of(self, position: Tensor) -> dict[str, Tensor]:
        """Cut a position ``(chains, dim)`` into the parameters of the module, by name: each ``(chains, size)``, a view."""
        return dict(zip(self._names, position.split(self._sizes, -1), strict=True))

    def initial_position(self, chains: int, generator: Generator, scale: float = 1.0) -> Tensor:
        """Draw weights N(0, scale²/fan-in) and zero biases for every chain: ``(chains, dim)``."""
        pieces = []
        for shape, size in zip(self._shapes, self._sizes, strict=True):
            noise = torch.randn(chains, size, generator=generator, dtype=self.data[0].dtype, device=generator.device)
            fan_in = size // shape[0]
            pieces.append(noise * (scale / math.sqrt(fan_in)) if len(shape) > 1 else torch.zeros_like(noise))
        return torch.cat(pieces, -1)

    def predict(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Compute every chain's class probabilities for the inputs ``(n, ...)``: ``(chains, n, classes)``."""
        return self.log_predict(position, inputs).exp()

    def log_predict(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Compute the logarithms of :meth:`predict`, which single precision can hold when a probability is below its least, e⁻¹⁰³."""
        # A few at a time, for what a convolution makes of all inputs at once may not fit into memory.
        return torch.cat([self._log_probabilities(position, few[None]) for few in inputs.split(1_000)], 1)

    def _gradient(self, position: Tensor, batch: tuple[Tensor, ...], scale: float) -> Tensor:
        with torch.enable_grad():
            position = position.detach().requires_grad_()
            loss = self._loss(self._logits(position, batch[0]), batch[1])
            gradient = torch.autograd.grad(loss, position)[0]
        return self._with_prior(position.detach(), gradient, -scale)

    def _moments(self, position: Tensor, batch: tuple[Tensor, ...], kind: Kind) -> tuple[Tensor, Tensor]:
        if kind == "full" or self._layers is None:
            return super()._moments(position, batch, kind)
        chains, examples = batch[0].shape[:2]
        with torch.enable_grad():
            position = position.detach().requires_grad_()
            probes = [position.new_zeros(chains, examples, *shape, requires_grad=True) for shape in self._output_shapes]
            logits, inputs = self._over_chains(self._call_and_record, position, batch[0], *probes)
            gradient, *signals = torch.autograd.grad(self._loss(logits, batch[1]), [position, *probes])
        squares = {}
        for name, activations, signal in zip(self._layers, inputs, signals, strict=True):
            for key, value in sums_of_squares(self._layers[name], activations, signal, kind).items():
                squares[f"{name}.{key}".lstrip(".")] = value
        return gradient.neg_(), torch.cat([squares[name] for name in self._names], -1)

    def _call_and_record(self, position: Tensor, inputs: Tensor, *probes: Tensor) -> tuple[Tensor, list[Tensor]]:
        with Recorder(self._layers, probes) as recorder:
            logits = self._call(position, inputs)
        return logits, recorder.inputs

    def _find_layers(self) -> None:
        """Find the layers in the order of their use, with the shapes of their outputs for one example; None if they are not simple."""
        self._layers = simple_layers(self.module)
        if self._layers is None:
            return
        with torch.no_grad(), Recorder(self._layers) as recorder:
            self.module(self.data[0][:1])
        if sorted(recorder.names) != sorted(self._layers):  # used twice, or not at all
            self._layers = None
            return
        self._layers = {name: self._layers[name] for name in recorder.names}
        self._output_shapes = [shape[1:] for shape in recorder.output_shapes]

    @staticmethod
    def _loss(logits: Tensor, targets: Tensor) -> Tensor:
        targets = targets.expand(logits.shape[:2])
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")

    def _with_prior(self, position: Tensor, log_likelihood_gradient: Tensor, scale: float) -> Tensor:
        # No automatic differentiation, which would pass over all the weights three times more.
        return add_product_(log_likelihood_gradient.mul_(-scale), self._prior_precision, position)

    def _log_probabilities(self, position: Tensor, inputs: Tensor) -> Tensor:
        return functional.log_softmax(self._logits(position, inputs), -1)

    def _logits(self, position: Tensor, inputs: Tensor) -> Tensor:
        """Evaluate the network with every chain's weights: inputs ``(chains or 1, n, ...)`` → ``(chains, n, classes)``."""
        return self._over_chains(self._call, position, inputs)

    @staticmethod
    def _over_chains(function, position: Tensor, inputs: Tensor, *more: Tensor):
        if len(position) == 1:  # vmap costs more than a small network
            return tree_map(lambda result: result[None], function(position[0], inputs[0], *(x[0] for x in more)))
        shared = len(inputs) == 1
        in_dims = (0, None if shared else 0, *[0] * len(more))
        return torch.func.vmap(function, in_dims, randomness="different")(position, inputs[0] if shared else inputs, *more)

    def _call(self, position: Tensor, inputs: Tensor) -> Tensor:
        pieces = position.split(self._sizes)
        parameters = {name: p.view(shape) for name, p, shape in zip(self._names, pieces, self._shapes, strict=True)}
        return functional_call(self.module, parameters, (inputs,))
