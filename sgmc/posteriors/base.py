"""From data and a model to a potential with minibatch gradients."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_leaves, tree_map

from sgmc import checks
from sgmc.matrices import Matrix, addmv_
from sgmc.minibatches import Fresh, MinibatchRule
from sgmc.potentials import Kind, Potential, differentiate, no_noise

Batch = tuple[Tensor, ...]
_TOGETHER = 2**26  # the numbers of the examples' gradients that are computed at once


class DataPotential(Potential):
    """A sum over data, U(θ) = −log p(θ) − Σᵢ log p(xᵢ | θ), with minibatch gradients
    (Chen et al., 2014, eq. 5).

    The stochastic gradient is ∇Ũ(θ; S) = −∇log p(θ) − (N/n) Σ ∇log p(xᵢ | θ), the sum
    running over a minibatch S of n examples, each chain's own. A subclass writes
    ``log_prior`` and ``log_likelihood``. Where there is a faster way it overrides
    ``_energy_of``, ``_gradient_of``, ``_gradient_moments`` or ``_with_prior``, through
    which all energies and gradients pass.

    Args:
        data: tensors whose first axis runs over the N examples.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`); fresh
            ones without replacement by default.
        dim: number of coordinates of θ, where it is known.

    Raises:
        ValueError: if the data are no tensors or differ in length, or the minibatch
            does not fit them.

    Example:
        >>> class Mean(DataPotential):
        ...     def log_prior(self, position):
        ...         return -0.5 * position.square().sum(-1)
        ...
        ...     def log_likelihood(self, position, y):
        ...         return -0.5 * (y - position).square()
        >>> posterior = Mean((torch.tensor([1.0, 2.0, 6.0]),), batch_size=1, dim=1)
        >>> posterior.gradient(torch.zeros(1, 1))
        tensor([[-9.]])
        >>> omega = torch.tensor([[2]])  # the last example stands for all three
        >>> posterior.gradient_given(torch.zeros(1, 1), omega)
        tensor([[-18.]])
    """

    #: ∇log p(θ), from ``(chains, dim)`` to ``(chains, dim)``
    grad_log_prior: Callable[[Tensor], Tensor] | None = None
    #: Σ∇log p(xᵢ | θ) over a minibatch, from ``(chains, dim)`` and the minibatch
    grad_log_likelihood: Callable[..., Tensor] | None = None

    def __init__(
        self,
        data: Sequence[Tensor],
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
        dim: int | None = None,
    ):
        rule = Fresh() if minibatches is None else minibatches
        checks.check_instance("minibatches", rule, MinibatchRule, "Passes()")
        for name, number in (("batch_size", batch_size), ("dim", dim)):
            if number is not None:
                checks.check_count(name, number)
        self.num_examples, self.dim = checks.check_data(data), dim
        if (batch_size or 0) > self.num_examples and not rule.replacement:
            raise ValueError(
                f"batch_size is {batch_size}, but there are only {self.num_examples} "
                "examples: take a smaller batch, or None for all the data"
            )
        if batch_size is None and not isinstance(rule, Fresh):
            raise ValueError(
                f"batch_size is None, so that every step takes all the data, but "
                f"minibatches is {rule!r}: give a batch_size, or leave minibatches out"
            )
        self.data = tuple(data)
        self.batch_size, self.minibatches = batch_size, rule
        self.versions = checks.versions(self.data)

    #: one for chains, one for examples; derived, so a choice makes no other posterior
    _vmaps = cached_property(lambda self: (Vmap(), Vmap()))

    def __getstate__(self):
        # A copy's tensors count their changes anew.
        return vars(self) | {"versions": None}

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute log p(θ) up to a constant: ``(chains, dim)`` → ``(chains,)``."""
        raise NotImplementedError

    def log_likelihood(self, position: Tensor, *batch: Tensor) -> Tensor:
        """Compute log p(xᵢ | θ): ``(chains, dim)`` and tensors ``(chains, n, ...)`` or
        ``(1, N, ...)`` → ``(chains, n)``.
        """
        raise NotImplementedError

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ) from all the data: ``(chains, dim)`` → ``(chains,)``."""
        return self.energy_given(position, None)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U(θ) from all the data: ``(chains, dim)`` → ``(chains, dim)``."""
        return self.gradient_given(position, None)

    def energy_and_gradient(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Compute U(θ) ``(chains,)`` and ∇U(θ) ``(chains, dim)`` from all the data."""
        if self.grad_log_likelihood is None:
            return differentiate(self.energy, position)
        return self.energy(position), self.gradient(position)

    @property
    def takes_all_data(self) -> bool:
        """Whether every minibatch is all the data, so that the gradient is exact."""
        return self.batch_size is None or (
            self.batch_size == self.num_examples and not self.minibatches.replacement
        )

    def draw_minibatches(
        self, position: Tensor, generator: Generator, step: int, num_steps: int = 1
    ) -> Sequence[Tensor | None]:
        """Choose the minibatches of some steps by the rule: the examples' indices
        ``(chains, n)`` for each, or None for all the data.
        """
        if self.takes_all_data:
            return (None,) * num_steps
        size = self.batch_size or self.num_examples
        given = self.num_examples, size, len(position)
        seed, indices = generator.initial_seed(), self.minibatches.indices
        steps = range(step, step + num_steps)
        return [indices(*given, seed, each).to(position.device) for each in steps]

    def fresh_minibatch(self, position: Tensor, generator: Generator) -> Tensor | None:
        """Draw the indices of a minibatch ``(chains, n)`` with replacement, whatever
        the rule of the run; None for all the data.
        """
        if self.takes_all_data:
            return None
        shape = (len(position), self.batch_size or self.num_examples)
        return torch.randint(
            self.num_examples, shape, generator=generator, device=position.device
        )

    def gather(self, indices: Tensor | None) -> Batch:
        """Gather the examples with the given indices ``(chains, n)``, tensors
        ``(chains, n, ...)``; or all of them, ``(1, N, ...)``.
        """
        if indices is None:
            return tuple(x[None] for x in self.data)
        return tuple(
            x.index_select(0, indices.flatten()).unflatten(0, indices.shape)
            for x in self.data
        )

    def energy_given(self, position: Tensor, minibatch: Tensor | None) -> Tensor:
        """Compute Ũ(θ; S) of the minibatch with the given indices ``(chains, n)``, or
        of all the data: → ``(chains,)``.
        """
        batch = self.gather(minibatch)
        return self._energy_of(position, batch, self.num_examples / batch[0].shape[1])

    def gradient_given(self, position: Tensor, minibatch: Tensor | None) -> Tensor:
        """Compute ∇Ũ(θ; S) of the minibatch with the given indices ``(chains, n)``, or
        of all the data: → ``(chains, dim)``.
        """
        batch = self.gather(minibatch)
        return self._gradient_of(position, batch, self.num_examples / batch[0].shape[1])

    def gradient_and_variance_given(
        self, position: Tensor, minibatch: Tensor | None, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Compute ∇Ũ(θ; S), and estimate its variance V(θ) from the same minibatch
        without bias (:meth:`sgmc.potentials.Potential.gradient_and_variance_given`).

        With gᵢ = ∇log p(xᵢ | θ), V̂ = (N²/n)·Σ(gᵢ − ḡ)(gᵢ − ḡ)ᵀ/(n − 1) over the
        minibatch, times 1 − n/N when it is drawn without replacement (Cochran, 1977,
        eq. 2.20).

        Raises:
            ValueError: if the minibatch has one example, which has no covariance, or a
                full matrix would not fit into memory.
        """
        if minibatch is None:
            return self.gradient(position), no_noise(position, kind)
        size, total = minibatch.shape[1], self.num_examples
        if size < 2:
            raise ValueError(
                "batch_size is 1, and one example has no covariance: take a batch of "
                "at least 2 to estimate the gradient noise"
            )
        if kind == "full":
            checks.check_fits(len(position), position.shape[1], position.element_size())
        batch = self.gather(minibatch)
        gradient, moment = self._gradient_moments(position, batch, kind)
        scale = total**2 / (size * (size - 1))
        if not self.minibatches.replacement:
            scale *= 1 - size / total
        if kind == "full":
            moment.baddbmm_(gradient[:, :, None], gradient[:, None, :], alpha=-1 / size)
        else:  # rounding may leave it below zero
            square = gradient.square()
            if kind == "scalar":
                scale /= position.shape[1]
                moment, square = moment.sum(-1, True), square.sum(-1, True)
            moment.sub_(square, alpha=1 / size).clamp_(min=0)
        return self._with_prior(position, gradient, total / size), moment.mul_(scale)

    def log_likelihoods(self, position: Tensor, batch: Batch) -> Tensor:
        """Compute ``log_likelihood`` of a minibatch, ``(chains, n)``; check its
        shape.
        """
        found = self.log_likelihood(position, *batch)
        expected = (len(position), batch[0].shape[1])
        if found.shape != expected:
            raise ValueError(
                "log_likelihood must return one number for each example, that is one "
                f"value per chain and example, {expected}, but it returned "
                f"{tuple(found.shape)}: do not sum over examples"
            )
        return found

    def pointwise_log_likelihoods(self, position: Tensor) -> Tensor:
        """Compute log p(xᵢ | θ) of all the data, with the constants that the energy
        leaves out: ``(chains, dim)`` → ``(chains, N)``.
        """
        return self.log_likelihoods(position, self.gather(None))

    def _energy_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute −log p(θ) − scale·Σ log p(xᵢ | θ) over a minibatch: →
        ``(chains,)``.
        """
        total = self.log_likelihoods(position, batch).sum(-1)
        return -self.log_prior(position) - scale * total

    def _gradient_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute the gradient of the same energy: → ``(chains, dim)``."""
        if self.grad_log_likelihood is not None:
            slope = self.grad_log_likelihood(position, *batch)
        elif self.grad_log_prior is None:  # one backward pass gives both parts
            energy = lambda x: self._energy_of(x, batch, scale)
            return differentiate(energy, position)[1]
        else:
            total = lambda x: self.log_likelihoods(x, batch).sum(-1)
            slope = differentiate(total, position)[1]
        return self._with_prior(position, slope, scale)

    def _with_prior(self, position: Tensor, slope: Tensor, scale: float) -> Tensor:
        """Combine −∇log p(θ) − scale·Σ∇log p(xᵢ | θ).

        Args:
            position: ``(chains, dim)``.
            slope: Σ∇log p(xᵢ | θ), ``(chains, dim)``, overwritten.
            scale: N/n.
        """
        if self.grad_log_prior is None:
            return slope.mul_(-scale).sub_(differentiate(self.log_prior, position)[1])
        return slope.mul_(-scale).sub_(self.grad_log_prior(position))

    def _gradient_moments(
        self, position: Tensor, batch: Batch, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients ``(chains, dim)``, and their squares, of the same
        shape, or for ``"full"`` outer products ``(chains, dim, dim)``. For ``"scalar"``
        squares may be summed over all or some coordinates already.
        """
        few = max(1, _TOGETHER // position.numel())
        total, moment = torch.zeros_like(position), position.new_zeros(())
        for piece in zip(*(x.split(few, 1) for x in batch), strict=True):
            each = self.per_example_gradients(position, piece)
            total += each.sum(1)
            more = each.mT @ each if kind == "full" else each.square().sum(1)
            moment = moment + more
        return total, moment

    def per_example_gradients(self, position: Tensor, batch: Batch) -> Tensor:
        """Compute ∇log p(xᵢ | θ) of every example of a minibatch ``(chains or 1, n,
        ...)``, by automatic differentiation: → ``(chains, n, dim)``.
        """

        def log_likelihood(position: Tensor, *example: Tensor) -> Tensor:
            batch = [x[None, None] for x in example]
            return self.log_likelihood(position[None], *batch)[0, 0]

        in_dims, vmap = (None, *[0] * len(batch)), self._vmaps[1]
        of_one = vmap(torch.func.grad(log_likelihood), in_dims)
        return over_chains(of_one, position, *batch, vmap=vmap)


class OnBatch(Potential):
    """A posterior on one minibatch of examples, U(θ) = −log p(θ) − scale·Σ log p(xᵢ |
    θ), and its exact gradient; with the scale N/n, one minibatch in place of the data.

    Args:
        posterior: the posterior.
        batch: tensors ``(chains or 1, n, ...)``, as from its ``gather``.
        scale: what multiplies the sum.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> posterior = LinearRegression(
        ...     torch.ones(3, 1), torch.tensor([1.0, 2.0, 6.0])
        ... )
        >>> last = posterior.gather(torch.tensor([[2]]))
        >>> OnBatch(posterior, last, scale=3.0).gradient(torch.zeros(1, 1))
        tensor([[-18.]])
    """

    def __init__(self, posterior: DataPotential, batch: Batch, scale: float):
        self.posterior, self.dim = posterior, posterior.dim
        self._given = batch, scale

    def energy(self, position: Tensor) -> Tensor:
        """Compute U(θ): ``(chains, dim)`` → ``(chains,)``."""
        return self.posterior._energy_of(position, *self._given)

    def gradient(self, position: Tensor) -> Tensor:
        """Compute ∇U(θ): ``(chains, dim)`` → ``(chains, dim)``."""
        return self.posterior._gradient_of(position, *self._given)


class GaussianPrior(DataPotential):
    """A posterior whose prior is θ ~ N(0, Λ⁻¹); a subclass sets ``prior``.

    Attributes:
        prior: Λ, a :class:`sgmc.matrices.Matrix`.

    Example:
        >>> class Coin(GaussianPrior):
        ...     prior = Matrix(2.0)
        ...
        ...     def log_likelihood(self, position, y):
        ...         return y * position - torch.nn.functional.softplus(position)
        >>> coin = Coin((torch.tensor([1.0, 0.0]),), dim=1)
        >>> coin.log_prior(torch.ones(1, 1)), coin.gradient(torch.zeros(1, 1))
        (tensor([-1.]), tensor([[0.]]))
    """

    prior: Matrix

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute −½θᵀΛθ: ``(chains, dim)`` → ``(chains,)``."""
        return -0.5 * (position * (self.prior @ position)).sum(-1)

    def grad_log_prior(self, position: Tensor) -> Tensor:
        """Compute −Λθ."""
        return -(self.prior @ position)

    def _with_prior(self, position: Tensor, slope: Tensor, scale: float) -> Tensor:
        """Add the prior's gradient."""
        return addmv_(slope.mul_(-scale), self.prior, position)


class Vmap:
    """``torch.func.vmap`` of a function, or a loop for one that it cannot run, with the
    same results up to rounding: chosen at the first failure, which is remembered, with
    a warning.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     Vmap()(lambda x: x if x > 0 else -x, (0,))(torch.tensor([1.0, -2.0]))
        tensor([1., 2.])
    """

    def __init__(self):
        self.apart: set[tuple] = set()  # the in_dims with which it failed

    def __call__(self, function: Callable[..., Any], in_dims: tuple) -> Callable:
        """Call the function on tensors with an axis in front, where in_dims are 0, as
        ``vmap`` does.
        """

        # The checks of a model find randomness, so it may stay as in one chain.
        together = torch.func.vmap(function, in_dims, randomness="different")

        def mapped(*arguments):
            reason = ""
            if in_dims not in self.apart:
                try:
                    return together(*arguments)
                except Exception as error:  # either vmap's own error or the function's
                    reason = str(error).partition("\n")[0]
            pairs = list(zip(arguments, in_dims, strict=True))
            size = next(len(tree_leaves(x)[0]) for x, dim in pairs if dim == 0)
            cut = lambda x, i: tree_map(lambda leaf: leaf[i], x)
            own = lambda i: [x if dim is None else cut(x, i) for x, dim in pairs]
            results = [function(*own(i)) for i in range(size)]
            if reason and not self.apart:
                checks.warn(
                    "torch.func.vmap cannot run this model for all chains or examples "
                    f"at once ({reason}), so they are computed one after another: the "
                    "samples are right, but take as many times longer. In functions of "
                    "your own write torch.where in place of `if`, and no .item(); for "
                    "others take few chains, and a noise estimate by few of them [vmap]"
                )
            self.apart.add(in_dims)
            return tree_map(lambda *each: torch.stack(each), *results)

        return mapped


def over_chains(
    function: Callable[..., Any], own: Any, *batch: Tensor, vmap: Callable | None = None
) -> Any:
    """Call a function of one chain's numbers, and of its minibatch, for all chains.

    Args:
        function: the function.
        own: a tensor ``(chains, ...)``, or several by name.
        batch: tensors ``(chains, n, ...)``, or ``(1, n, ...)`` for all chains.
        vmap: a :class:`Vmap` that knows whether the chains run at once.

    Returns:
        What it returns, with an axis for chains in front.

    Example:
        >>> over_chains(torch.dot, torch.eye(2), torch.tensor([[3.0, 4.0]]))
        tensor([3., 4.])
    """
    with _without_fast_attention():
        if len(tree_leaves(own)[0]) == 1:  # vmap costs more than a small model
            # The gradient of squeeze is a view; that of x[0] fills a tensor with zeros.
            alone = tree_map(lambda x: x.squeeze(0), (own, *batch))
            return tree_map(lambda result: result[None], function(*alone))
        in_dims = (0, *(None if len(x) == 1 else 0 for x in batch))
        batch = tuple(x[0] if len(x) == 1 else x for x in batch)
        return (vmap or Vmap())(function, in_dims)(own, *batch)


_SLOW = {"lock": Lock(), "calls": 0, "before": True}


@contextmanager
def _without_fast_attention() -> Iterator[None]:
    """Switch off PyTorch's fast path of transformers, which has no derivative under
    vmap, until the last call of all threads ends.
    """
    with _SLOW["lock"]:
        if _SLOW["calls"] == 0:
            _SLOW["before"] = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)
        _SLOW["calls"] += 1
    try:
        yield
    finally:
        with _SLOW["lock"]:
            _SLOW["calls"] -= 1
            if _SLOW["calls"] == 0:
                torch.backends.mha.set_fastpath_enabled(_SLOW["before"])
