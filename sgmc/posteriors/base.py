"""From data and a model to a potential with minibatch gradients."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from sgmc.checks import check_count, check_instance
from sgmc.matrices import Matrix, addmv_
from sgmc.minibatches import Fresh, MinibatchRule
from sgmc.potentials import (
    Kind,
    Potential,
    agree,
    check_fits,
    differentiate,
    evaluate,
    no_noise,
)
from sgmc.randomness import normal_like

Batch = tuple[Tensor, ...]
_TOGETHER = 2**26  # numbers in the examples' gradients that are computed at once


class DataPotential(Potential):
    """A sum over data, U(θ) = −log p(θ) − Σᵢ log p(xᵢ | θ), with minibatch gradients
    (Chen et al., 2014, eq. 5).

    The stochastic gradient is ∇Ũ(θ; S) = −∇log p(θ) − (N/n) Σ ∇log p(xᵢ | θ), the sum
    running over a minibatch S of n examples, for every chain its own. With all the data
    (n = N, without replacement) it is the gradient itself. A subclass writes
    ``log_prior`` and ``log_likelihood``, and formulas for their gradients where it has
    them.

    Args:
        data: tensors whose first axis runs over the N examples.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`); fresh
            ones without replacement by default.
        dim: number of coordinates of θ, where it is known.

    Raises:
        ValueError: if the data are no tensors or differ in length, or the batch does
            not fit them.
    """

    grad_log_prior: Callable[[Tensor], Tensor] | None = None  # a formula for ∇log p(θ)
    finite = False  # whether the data were found finite already
    # a formula for Σ∇log p(xᵢ | θ) over a batch
    grad_log_likelihood: Callable[..., Tensor] | None = None

    def __init__(
        self,
        data: Sequence[Tensor],
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
        dim: int | None = None,
    ):
        rule = Fresh() if minibatches is None else minibatches
        check_instance("minibatches", rule, MinibatchRule, "Passes()")
        given = [
            len(x) if isinstance(x, Tensor) and x.ndim > 0 else type(x).__name__
            for x in (data if isinstance(data, Sequence) else ())
        ]
        if not isinstance(data, Sequence):
            given = type(data).__name__
        if len(set(given)) != 1 or not isinstance(given[0], int) or given[0] == 0:
            raise ValueError(
                "data must be a sequence of tensors with the same number of examples "
                f"on their first axis, such as (x, y), not {given}"
            )
        for name, number in (("batch_size", batch_size), ("dim", dim)):
            if number is not None:
                check_count(name, number)
        if (batch_size or 0) > given[0] and not rule.replacement:
            raise ValueError(
                f"batch_size is {batch_size}, but there are only {given[0]} "
                "examples: take a smaller batch, or None for all the data"
            )
        self.data, self.num_examples, self.dim = tuple(data), given[0], dim
        self.batch_size, self.minibatches = batch_size, rule

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
        """Compute U(θ) and ∇U(θ) from all the data: → ``(chains,)``, ``(chains,
        dim)``.
        """
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

    def gather(self, indices: Tensor | None) -> tuple[Tensor, ...]:
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
        return self.energy_of(position, batch, self.num_examples / batch[0].shape[1])

    def gradient_given(self, position: Tensor, minibatch: Tensor | None) -> Tensor:
        """Compute ∇Ũ(θ; S) of the minibatch with the given indices ``(chains, n)``, or
        of all the data: → ``(chains, dim)``.
        """
        batch = self.gather(minibatch)
        return self.gradient_of(position, batch, self.num_examples / batch[0].shape[1])

    def gradient_and_variance_given(
        self, position: Tensor, minibatch: Tensor | None, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Compute ∇Ũ(θ; S) and estimate its variance V(θ) from the very minibatch,
        without bias.

        With gᵢ = ∇log p(xᵢ | θ), V̂ = (N²/n)·Σ(gᵢ − ḡ)(gᵢ − ḡ)ᵀ/(n − 1) over the
        minibatch, times 1 − n/N when it is drawn without replacement (Cochran, 1977,
        eq. 2.20). The prior has no part in it. Arguments and results are those of
        :meth:`sgmc.potentials.Potential.gradient_and_variance_given`.

        Raises:
            ValueError: if the batch has one example, which has no covariance, or a full
                matrix would not fit into memory.
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
            check_fits(len(position), position.shape[1], position.element_size())
        gradient, moment = self.gradient_moments(position, self.gather(minibatch), kind)
        scale = total**2 / (size * (size - 1))
        if not self.minibatches.replacement:
            scale *= 1 - size / total
        if kind == "full":
            moment.baddbmm_(gradient[:, :, None], gradient[:, None, :], alpha=-1 / size)
        else:  # what rounding leaves below zero is zero
            square = gradient.square()
            if kind == "scalar":
                scale /= position.shape[1]
                moment, square = moment.sum(-1, True), square.sum(-1, True)
            moment.sub_(square, alpha=1 / size).clamp_(min=0)
        return self.with_prior(position, gradient, total / size), moment.mul_(scale)

    def log_likelihoods(self, position: Tensor, batch: Batch) -> Tensor:
        """Compute ``log_likelihood`` of a batch, ``(chains, n)``; check its shape."""
        log_likelihoods = self.log_likelihood(position, *batch)
        expected = (position.shape[0], batch[0].shape[1])
        if log_likelihoods.shape != expected:
            raise ValueError(
                "log_likelihood must return one value per chain and example, "
                f"{expected}, but it returned {tuple(log_likelihoods.shape)}"
            )
        return log_likelihoods

    def energy_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute −log p(θ) − scale·Σ log p(xᵢ | θ) over a batch: → ``(chains,)``."""
        total = self.log_likelihoods(position, batch).sum(-1)
        return -self.log_prior(position) - scale * total

    def gradient_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute the gradient of :meth:`energy_of`: → ``(chains, dim)``."""
        if self.grad_log_likelihood is not None:
            slope = self.grad_log_likelihood(position, *batch)
        elif self.grad_log_prior is None:
            # Both parts in one pass backwards: every operation less in it counts where
            # batches are small.
            def log_density(x: Tensor) -> Tensor:
                log_likelihood = self.log_likelihoods(x, batch).sum(-1)
                return torch.add(self.log_prior(x), log_likelihood, alpha=scale)

            return differentiate(log_density, position)[1].neg_()
        else:
            slope = differentiate(
                lambda x: self.log_likelihoods(x, batch).sum(-1), position
            )[1]
        return self.with_prior(position, slope, scale)

    def with_prior(
        self, position: Tensor, log_likelihood_gradient: Tensor, scale: float
    ) -> Tensor:
        """Put ∇Ũ = −∇log p(θ) − scale·Σ∇log p(xᵢ | θ) together.

        Args:
            position: ``(chains, dim)``.
            log_likelihood_gradient: Σ∇log p(xᵢ | θ), ``(chains, dim)``, overwritten.
            scale: N/n.
        """
        if self.grad_log_prior is None:
            log_prior_gradient = differentiate(self.log_prior, position)[1]
        else:
            log_prior_gradient = self.grad_log_prior(position)
        return log_likelihood_gradient.mul_(-scale).sub_(log_prior_gradient)

    def gradient_moments(
        self, position: Tensor, batch: Batch, kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients, and their squares, ``(chains, dim)``, or outer
        products, ``(chains, dim, dim)``.

        For a scalar the squares may be summed over coordinates already, all or some of
        them."""
        few = max(1, _TOGETHER // position.numel())
        total, moment = torch.zeros_like(position), position.new_zeros(())
        for piece in zip(*(x.split(few, 1) for x in batch), strict=True):
            each = self.per_example_gradients(position, piece)
            total += each.sum(1)
            more = each.mT @ each if kind == "full" else each.square().sum(1)
            moment = moment + more
        return total, moment

    def per_example_gradients(self, position: Tensor, batch: Batch) -> Tensor:
        """Compute ∇log p(xᵢ | θ) of every example of a batch, by automatic
        differentiation.

        Args:
            position: ``(chains, dim)``.
            batch: tensors ``(chains, n, ...)``, as from :meth:`gather`, or ``(1, n,
                ...)``.

        Returns:
            ``(chains, n, dim)``.
        """

        def log_likelihood(position: Tensor, *example: Tensor) -> Tensor:
            batch = [x[None, None] for x in example]
            return self.log_likelihood(position[None], *batch)[0, 0]

        over_examples = torch.func.vmap(
            torch.func.grad(log_likelihood), (None, *[0] * len(batch))
        )
        of_chains = [x.expand(len(position), *x.shape[1:]) for x in batch]
        return torch.func.vmap(over_examples)(position, *of_chains)

    def of_few_examples(self) -> Potential:
        """Hold the first three examples, on which a look at the model costs little."""
        posterior, batch = self, tuple(x[None, :3] for x in self.data)

        class Few(Potential):
            def energy(self, position: Tensor) -> Tensor:
                return posterior.energy_of(position, batch, 1.0)

            def gradient(self, position: Tensor) -> Tensor:
                return posterior.gradient_of(position, batch, 1.0)

        return Few()

    def check(self, position: Tensor, generator: Generator) -> None:
        """Look at the data, at the rule, and at the densities of a few examples.

        A density of zero has no gradient, so that a sampler that sees gradients alone
        would walk on outside of a prior's support. Likelihoods are compared near the
        position, as by :func:`sgmc.starting.check_model`.

        Raises:
            ValueError: if an example has a NaN or an infinity and a log-likelihood that
                is not finite, a density is zero at the position, an example's
                likelihood depends on the others of its minibatch, or the rule gives
                minibatches of another shape, or all chains the same.
        """
        if not self.finite:
            self._check_examples(position)
        self._check_minibatches(generator.initial_seed())
        few, start = tuple(x[None, :3] for x in self.data), position[:1]
        near = start + 0.1 * (1 + start.abs()) * normal_like(start, generator)
        # of one alone the arithmetic of a module may be another, and its rounding
        fewer = tuple(x[:, : max(1, x.shape[1] - 1)] for x in few)

        def look() -> tuple[Tensor, ...]:
            more, less = (self.log_likelihoods(near, batch) for batch in (few, fewer))
            here = self.log_prior(position), self.log_likelihoods(position, few)
            return *here, more[0, : less.shape[1]], less[0]

        with torch.no_grad():
            try:
                *here, among_all, among_fewer = evaluate(look, position)
            except NotImplementedError:
                return
        for name, value in zip(("log_prior", "log_likelihood"), here, strict=True):
            if not value.isfinite().all():
                raise ValueError(
                    f"{name} is not finite at the start, but "
                    f"{float(value[~value.isfinite()][0])}: has each parameter with a "
                    "border, such as a scale, its support, and no wider one than its "
                    "prior? If they are right, start elsewhere"
                )
        if not agree(among_fewer, among_all):
            raise ValueError(
                "the log-likelihood of an example depends on the others of its "
                f"minibatch: that of example 0 is {float(among_fewer[0]):.6g} among "
                f"{len(among_fewer)} and {float(among_all[0]):.6g} among "
                f"{few[0].shape[1]}. Compute it from that "
                "example alone: no sum, mean or normalisation over the batch, and no "
                "targets (n, 1) beside outputs (n,), which broadcast to (n, n)"
            )

    def _check_examples(self, position: Tensor) -> None:
        # Data may hold such numbers where the model knows what to do with them.
        odd = torch.zeros(self.num_examples, dtype=torch.bool)
        for tensor in (x for x in self.data if x.is_floating_point()):
            # in pieces, for a file may be larger than the memory
            sums = [few.flatten(1).sum(-1) for few in tensor[:, None].split(2**14)]
            odd |= ~torch.cat(sums).isfinite().cpu()
        rows = odd.nonzero()[:100].to(self.data[0].device).mT
        if (
            not odd.any()
            or (
                values := self.log_likelihoods(
                    position[:1], self.gather(rows)
                ).isfinite()
            ).all()
        ):
            return
        raise ValueError(
            f"data have a NaN or an infinity in example {int(rows[~values][0])} (and "
            f"in {int(odd.sum()) - 1} more), whose log-likelihood at the start is not "
            "finite: leave such examples out, or have log_likelihood take care of them"
        )

    def _check_minibatches(self, seed: int) -> None:
        if self.takes_all_data:
            return
        rule = type(self.minibatches).__name__
        size = self.batch_size or self.num_examples
        drawn = self.minibatches.indices(self.num_examples, size, 2, seed, 0)
        if drawn.shape != (2, size):
            raise ValueError(
                f"minibatches: {rule}.indices must return (chains, n), here (2, "
                f"{size}), but it returned {tuple(drawn.shape)}"
            )
        # where there are few minibatches they may be alike by chance
        if torch.equal(*drawn) and math.comb(self.num_examples, size) > 10**6:
            raise ValueError(
                f"minibatches: {rule}.indices gives all chains the same minibatch, so "
                "that chains are not independent and standard errors too small: choose "
                "another one for each chain"
            )


class GaussianPrior(DataPotential):
    """A posterior whose prior is θ ~ N(0, Λ⁻¹); a subclass sets ``prior``.

    Attributes:
        prior: Λ, a :class:`sgmc.matrices.Matrix`.
    """

    prior: Matrix

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute −½θᵀΛθ: ``(chains, dim)`` → ``(chains,)``."""
        return -0.5 * (position * (self.prior @ position)).sum(-1)

    def grad_log_prior(self, position: Tensor) -> Tensor:
        """Compute −Λθ."""
        return -(self.prior @ position)

    def with_prior(
        self, position: Tensor, log_likelihood_gradient: Tensor, scale: float
    ) -> Tensor:
        """Add the prior's gradient."""
        return addmv_(log_likelihood_gradient.mul_(-scale), self.prior, position)


class Posterior(DataPotential):
    """The posterior of a model that is given as functions.

    Args:
        log_prior: log p(θ) up to a constant, from ``(chains, dim)`` to ``(chains,)``.
        log_likelihood: log p(xᵢ | θ) of each example, from ``(chains, dim)`` and a
            batch to ``(chains, n)``. The tensors of the batch are ``(chains, n, ...)``,
            or ``(1, N, ...)`` for all the data: write it so that they broadcast.
        data: tensors whose first axis runs over the N examples.
        dim: number of coordinates of θ.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).
        grad_log_prior: a formula for ∇log p(θ) in place of automatic differentiation,
            from ``(chains, dim)`` to ``(chains, dim)``.
        grad_log_likelihood: a formula for Σ∇log p(xᵢ | θ) over a batch, from ``(chains,
            dim)`` and the batch to ``(chains, dim)``.

    Raises:
        ValueError: if the data tensors differ in length, the batch does not fit them,
            or the log-likelihood's shape is wrong.

    Example:
        >>> observations = torch.tensor([1.0, 2.0, 3.0])
        >>> posterior = Posterior(
        ...     log_prior=lambda position: -0.5 * position.pow(2).sum(-1),
        ...     log_likelihood=lambda position, x: -0.5 * (x - position).pow(2),
        ...     data=(observations,),
        ...     dim=1,
        ...     batch_size=2,
        ... )
        >>> (
        ...     posterior.gradient(torch.zeros(1, 1)),
        ...     posterior.gradient_given(torch.zeros(1, 1), torch.tensor([[0, 2]])),
        ... )
        (tensor([[-6.]]), tensor([[-6.]]))
    """

    def __init__(
        self,
        log_prior: Callable[[Tensor], Tensor],
        log_likelihood: Callable[..., Tensor],
        data: Sequence[Tensor],
        dim: int,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
        grad_log_prior: Callable[[Tensor], Tensor] | None = None,
        grad_log_likelihood: Callable[..., Tensor] | None = None,
    ):
        check_count("dim", dim)
        super().__init__(data, batch_size, minibatches, dim)
        functions = dict(
            log_prior=log_prior,
            log_likelihood=log_likelihood,
            grad_log_prior=grad_log_prior,
            grad_log_likelihood=grad_log_likelihood,
        )
        for name, function in functions.items():
            missing = function is None and name.startswith("grad")
            if not callable(function) and not missing:
                raise ValueError(f"{name} must be a function, but it is {function!r}")
        vars(self).update(functions)
