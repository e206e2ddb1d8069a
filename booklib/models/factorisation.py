"""Ratings by users of items: Bayesian matrix factorisation."""

import copy
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Generator, Tensor

from booklib.models.hierarchical import check_hyperprior, draw_precision
from sgmc.checks import (
    check_count,
    check_number,
    check_tensor,
)
from sgmc.matrices import Matrix
from sgmc.minibatches import MinibatchRule
from sgmc.posteriors import GaussianPrior
from sgmc.potentials import Kind
from sgmc.randomness import normal_like

_TOGETHER = 2**16  # the number of ratings whose rows are gathered at once


class MatrixFactorisation(GaussianPrior):
    """The posterior of factors and biases, yᵢⱼ ~ N(μ + aᵢ + bⱼ + uᵢ·wⱼ, 1/τ) for the
    observed ratings (Salakhutdinov and Mnih, 2008).

    The priors are uᵢ ~ N(0, I/λ₁), wⱼ ~ N(0, I/λ₂), aᵢ ~ N(0, 1/λ₃), bⱼ ~ N(0, 1/λ₄),
    and every precision, τ too, has a Gamma prior where it is drawn
    (:class:`booklib.models.gibbs.Gibbs`). This is the model of Chen et al. (2014,
    Section 4.3), simpler than that of Salakhutdinov and Mnih, whose users and items
    have means and full covariances of their own.

    Args:
        users: i of each rating, ``(N,)`` int64 from 0.
        items: j of each rating, ``(N,)`` int64 from 0.
        ratings: y, ``(N,)``.
        rank: length of uᵢ and wⱼ.
        mean: μ; the mean of the ratings by default.
        precisions: λ by the names ``user_factors``, ``item_factors``, ``user_biases``,
            ``item_biases``, and τ by ``noise``; 1 by default.
        num_users: number of users; one more than the largest i by default.
        num_items: number of items; one more than the largest j by default.
        batch_size: n; all the ratings by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).
        hyperprior: a and b of the Gamma(a, b) prior of each precision, by shape and
            rate.

    Attributes:
        counts: number of known ratings of each user and then of each item, ``(num_users
            + num_items,)``.

    Raises:
        ValueError: if users, items and ratings do not match, or a number is out of its
            range.

    Example:
        >>> users, items = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
        >>> posterior = MatrixFactorisation(
        ...     users, items, torch.tensor([1.0, 2.0, 3.0]), rank=2
        ... )
        >>> posterior.dim, posterior.predict(torch.zeros(1, 12), users, items)
        (12, tensor([[2., 2., 2.]]))
    """

    names = ("user_factors", "item_factors", "user_biases", "item_biases", "noise")

    def __init__(
        self,
        users: Tensor,
        items: Tensor,
        ratings: Tensor,
        rank: int,
        mean: float | None = None,
        precisions: Mapping[str, float | Tensor] | None = None,
        num_users: int | None = None,
        num_items: int | None = None,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
        hyperprior: tuple[float, float] = (1.0, 1.0),
    ):
        check_tensor("ratings", ratings, "N")
        check_count("rank", rank)
        numbers = {"users": num_users, "items": num_items}
        for name, which in (("users", users), ("items", items)):
            check_tensor(name, which, "N", floating=False)
            if (
                which.dtype != torch.int64
                or int(which.min()) < 0
                or which.shape != ratings.shape
            ):
                raise ValueError(
                    f"{name} must be int64 numbers from 0, one for each of the "
                    f"{len(ratings)} ratings, but they are {tuple(which.shape)} "
                    f"of {which.dtype} from {int(which.min())}"
                )
            least = int(which.max()) + 1
            if numbers[name] is None:
                numbers[name] = least
            check_count(f"num_{name}", numbers[name], at_least=least)
        if mean is not None:
            check_number("mean", mean)
        check_hyperprior(hyperprior)
        self.num_users, self.num_items, self.rank, self.hyperprior = (
            numbers["users"],
            numbers["items"],
            rank,
            hyperprior,
        )
        self.mean = float(ratings.double().mean()) if mean is None else mean
        # A rating finds the rows of its user and of its item in one place.
        rows = torch.stack([users, self.num_users + items], -1)
        super().__init__(
            (rows, ratings),
            batch_size,
            minibatches,
            dim=(self.num_users + self.num_items) * (rank + 1),
        )
        self.counts = torch.bincount(
            rows.flatten(), minlength=self.num_users + self.num_items
        )
        self._set_precisions(
            dict.fromkeys(self.names, 1.0) if precisions is None else precisions
        )

    def given(self, precisions: Mapping[str, float | Tensor]) -> "MatrixFactorisation":
        """Make the posterior with other precisions, each given by its name as a number
        or as ``(chains,)``, one a chain.

        Raises:
            ValueError: if a precision is missing, or not positive.

        Example:
            >>> zero = torch.tensor([0])
            >>> posterior = MatrixFactorisation(zero, zero, torch.tensor([1.0]), rank=1)
            >>> precisions = {
            ...     **posterior.hyperparameters,
            ...     "item_factors": torch.tensor([1.0, 9.0]),
            ... }
            >>> posterior.given(precisions).log_prior(torch.ones(2, 4))
            tensor([-2., -6.])
        """
        changed = copy.copy(self)
        changed._set_precisions(precisions)
        return changed

    def _set_precisions(self, precisions: Mapping[str, float | Tensor]) -> None:
        values = {
            name: torch.as_tensor(value).to(self.data[1])
            for name, value in precisions.items()
        }
        if set(values) != set(self.names) or not all(
            (0 < x).all() and x.isfinite().all() for x in values.values()
        ):
            raise ValueError(
                "precisions must hold a positive number for each of "
                f"{list(self.names)}, not {dict(precisions)}: if some are nan and "
                "were "
                "drawn, their chain has left the finite numbers, and a smaller "
                "step_size may help"
            )
        self.hyperparameters = {name: precisions[name] for name in self.names}
        entries = self._entries([values[name] for name in self.names[:-1]])
        self.prior = Matrix.of_chains(entries) if entries.ndim == 2 else Matrix(entries)
        self.noise_precision = values["noise"][..., None]  # (1,) or (chains, 1)

    def _entries(
        self, blocks: Sequence[Tensor], counts: Tensor | None = None
    ) -> Tensor:
        """Give every coordinate the number of its block, ``()`` or ``(chains,)`` each,
        times the count of its row: ``(dim,)`` or more.
        """
        chains = torch.broadcast_shapes(*(block.shape for block in blocks))
        user_factors, item_factors, user_biases, item_biases = (
            block.expand(chains)[..., None, None] for block in blocks
        )
        users = torch.cat(
            [user_factors.expand(*chains, 1, self.rank), user_biases], -1
        ).expand(*chains, self.num_users, -1)
        items = torch.cat(
            [item_factors.expand(*chains, 1, self.rank), item_biases], -1
        ).expand(*chains, self.num_items, -1)
        entries = torch.cat([users, items], -2)
        return (entries if counts is None else entries * counts[:, None]).flatten(-2)

    def information(self) -> Tensor:
        """Compute the diagonal of τΣE[zzᵀ], the information that ratings carry about a
        row when partners are drawn from their prior: ``(dim,)``.

        Of a user with n ratings that is nτ/λ₂ for each factor and nτ for the bias. With
        the prior's precision it is the curvature to expect, and V ≈ (N/n − 1) times it
        is the variance of the minibatch gradient: in every row it is as noisy, in
        proportion to its information.

        Example:
            >>> zero = torch.tensor([0, 0])
            >>> MatrixFactorisation(
            ...     zero, torch.tensor([0, 1]), torch.tensor([1.0, 2.0]), rank=1
            ... ).information()
            tensor([2., 2., 1., 1., 1., 1.])
        """
        values = {
            name: torch.as_tensor(value).to(self.data[1])
            for name, value in self.hyperparameters.items()
        }
        noise = values["noise"]
        return self._entries(
            [
                noise / values["item_factors"],
                noise / values["user_factors"],
                noise,
                noise,
            ],
            self.counts,
        )

    def named(self, position: Tensor) -> dict[str, Tensor]:
        """Cut positions ``(chains, dim)`` into views by name: factors ``(chains, users,
        rank)`` and biases ``(chains, users)``.

        Example:
            >>> zero = torch.tensor([0])
            >>> posterior = MatrixFactorisation(zero, zero, torch.tensor([1.0]), rank=2)
            >>> {
            ...     name: piece.tolist()
            ...     for name, piece in posterior.named(torch.arange(6.0)[None]).items()
            ... }
            {'user_factors': [[[0.0, 1.0]]], 'item_factors': [[[3.0, 4.0]]],
            'user_biases': [[2.0]], 'item_biases': [[5.0]]}
        """
        users, items = self._rows(position).split([self.num_users, self.num_items], 1)
        pieces = (users[..., :-1], items[..., :-1], users[..., -1], items[..., -1])
        return dict(zip(self.names[:-1], pieces, strict=True))

    def initial_position(
        self, chains: int, generator: Generator, scale: float = 0.1
    ) -> Tensor:
        """Draw factors N(0, scale²), for at zero they have no gradient, and biases of
        zero: ``(chains, dim)``.
        """
        position = scale * torch.randn(
            chains,
            self.dim,
            generator=generator,
            dtype=self.data[1].dtype,
            device=generator.device,
        )
        self._rows(position)[..., -1] = 0
        return position

    def log_likelihood(self, position: Tensor, rows: Tensor, ratings: Tensor) -> Tensor:
        """Compute log N(y; ŷ, 1/τ) of ratings whose rows are ``(chains or 1, n, 2)``:
        ``(chains, n)``.
        """
        precision = self.noise_precision
        residuals = ratings - self._predict(position, rows)
        return (
            -0.5 * precision * residuals.square()
            + 0.5 * (precision / (2 * torch.pi)).log()
        )

    def grad_log_likelihood(
        self, position: Tensor, rows: Tensor, ratings: Tensor
    ) -> Tensor:
        """Compute Σ∇log p(yᵢⱼ | θ): τ(y − ŷ)wⱼ and τ(y − ŷ) in the row of user i, τ(y −
        ŷ)uᵢ and τ(y − ŷ) in that of item j.
        """
        return self._sums(position, rows, ratings)[0]

    def per_example_gradients(
        self, position: Tensor, batch: tuple[Tensor, ...]
    ) -> Tensor:
        """Compute ∇log p(yᵢⱼ | θ) of every rating of a minibatch, of which all but two
        rows are zero: ``(chains, n, dim)``.
        """
        rows, ratings = batch
        rows = rows.expand(len(position), -1, -1)
        each = self._gradients(
            position, rows + self._offsets(position)[..., None], ratings
        )
        zeros = each.new_zeros(*rows.shape[:2], self.counts.numel(), self.rank + 1)
        return zeros.scatter_(2, rows[..., None].expand_as(each), each).flatten(2)

    def predict(self, position: Tensor, users: Tensor, items: Tensor) -> Tensor:
        """Compute the mean rating ŷ = μ + a + b + u·w of pairs ``(n,)`` by every chain:
        ``(chains, n)``.

        Raises:
            ValueError: if there is no such user or item.
        """
        for name, which, number in (
            ("users", users, self.num_users),
            ("items", items, self.num_items),
        ):
            if len(which) and not 0 <= int(which.min()) <= int(which.max()) < number:
                raise ValueError(
                    f"{name} must be from 0 to {number - 1}, but they go from "
                    f"{int(which.min())} to {int(which.max())}"
                )
        return self._predict(
            position, torch.stack([users, self.num_users + items], -1)[None]
        )

    def draw_hyperparameters(
        self, position: Tensor, generator: Generator
    ) -> dict[str, Tensor]:
        """Draw every precision from its full conditional distribution, for every chain
        (Chen et al., 2014, Section 4.3).

        λ | θ ~ Gamma(a + ½n, b + ½Σθ²) over the n entries of a block, and τ | θ, y ~
        Gamma(a + ½N, b + ½Σ(y − ŷ)²) over all the ratings.

        Args:
            position: θ, ``(chains, dim)``.
            generator: the source of randomness, on the position's device.

        Returns:
            Precisions by name, each ``(chains,)`` float64, for :meth:`given`.
        """
        rows, ratings = self.gather(None)
        blocks = {
            name: piece.flatten(1) for name, piece in self.named(position).items()
        }
        blocks["noise"] = ratings - self._predict(position, rows)
        return {
            name: draw_precision(block, self.hyperprior, generator)
            for name, block in blocks.items()
        }

    def draw_rows(self, position: Tensor, side: str, generator: Generator) -> Tensor:
        """Draw all rows of the users, or of the items, from their exact conditional
        distribution given the others (Salakhutdinov and Mnih, 2008).

        With z = (wⱼ, 1) for its ratings, the row of user i is N(P⁻¹τΣz(y − μ − bⱼ),
        P⁻¹), where P = Λ + τΣzzᵀ: the rows are independent. Done in turn for users and
        items it is a Gibbs sampler, with nothing to tune; a draw takes N·(rank + 1)²
        operations.

        Args:
            position: θ, ``(chains, dim)``; it is not changed.
            side: ``"users"`` or ``"items"``.
            generator: the source of randomness.

        Returns:
            The new position, ``(chains, dim)``.
        """
        chains, width, own = (
            len(position),
            self.rank + 1,
            ("users", "items").index(side),
        )
        table, number = self._rows(position), self.num_users + self.num_items
        shift = torch.zeros(
            chains * number, width, dtype=position.dtype, device=position.device
        )
        precision = (
            self._rows(self.prior.value.expand(chains, -1))
            .diag_embed()
            .reshape(-1, width**2)
        )
        for place, ratings in self._pieces(
            position, *self.gather(None), together=_TOGETHER // width
        ):
            mine, theirs = place[..., own], place[..., 1 - own]
            partner = table.reshape(-1, width).index_select(0, theirs.flatten())
            target = (
                (ratings - self.mean).expand(chains, -1).flatten() - partner[:, -1]
            )[:, None]
            partner[:, -1] = 1
            weighted = (
                self.noise_precision.expand(chains, mine.shape[1]).reshape(-1, 1)
                * partner
            )
            shift.index_add_(0, mine.flatten(), weighted * target)
            precision.index_add_(
                0,
                mine.flatten(),
                (weighted[:, :, None] * partner[:, None, :]).flatten(1),
            )
        root = torch.linalg.cholesky(
            precision.view(chains, number, width, width)[:, self._side(own)]
        )
        mean = torch.cholesky_solve(
            shift.view(chains, number, width, 1)[:, self._side(own)], root
        )
        noise = normal_like(mean[..., 0], generator)[..., None]
        moved = position.clone()
        self._rows(moved)[:, self._side(own)] = (
            mean + torch.linalg.solve_triangular(root.mT, noise, upper=True)
        )[..., 0]
        return moved

    def _side(self, which: int) -> slice:
        return slice(0, self.num_users) if which == 0 else slice(self.num_users, None)

    def _rows(self, position: Tensor) -> Tensor:
        """View positions ``(chains, dim)`` as rows, ``(chains, num_users + num_items,
        rank + 1)``.
        """
        return position.unflatten(-1, (self.num_users + self.num_items, self.rank + 1))

    def _offsets(self, position: Tensor) -> Tensor:
        """Give the place of each chain's first row among the rows of all chains,
        ``(chains, 1)``.
        """
        number = len(self.counts)
        return torch.arange(0, len(position) * number, number, device=position.device)[
            :, None
        ]

    def _pieces(
        self, position: Tensor, rows: Tensor, ratings: Tensor, together: int = _TOGETHER
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Cut a minibatch into slices whose gathered rows fit into memory: places among
        the rows of all chains, and ratings.
        """
        few, offsets = (
            max(1, together // len(position)),
            self._offsets(position)[..., None],
        )
        for piece, some in zip(rows.split(few, 1), ratings.split(few, 1), strict=True):
            yield piece + offsets, some

    def _predict(self, position: Tensor, rows: Tensor) -> Tensor:
        table = self._rows(position).reshape(-1, self.rank + 1)
        predicted = []
        for place, _ in self._pieces(position, rows, rows[..., 0]):
            predicted.append(
                self._mean_of(
                    table.index_select(0, place.flatten()).view(*place.shape, -1)
                )
            )
        return torch.cat(predicted, 1)

    def _mean_of(self, both: Tensor) -> Tensor:
        """Compute ŷ of rows of users and items, ``(chains, n, 2, rank + 1)`` →
        ``(chains, n)``.
        """
        one, other = both.unbind(2)
        return (
            (one[..., :-1] * other[..., :-1]).sum(-1).add_(self.mean)
            + one[..., -1]
            + other[..., -1]
        )

    def _gradients(self, position: Tensor, place: Tensor, ratings: Tensor) -> Tensor:
        """Compute ∇log p(yᵢⱼ | θ) in the two rows of each rating, whose places are
        ``(chains, n, 2)``: ``(chains, n, 2, rank + 1)``.
        """
        table = self._rows(position).reshape(-1, self.rank + 1)
        # Gathering crosswise fetches at once what a gradient needs: the item's row for
        # the user and the user's row for the item.
        both = table.index_select(0, place.flip(-1).flatten()).view(*place.shape, -1)
        slope = self.noise_precision * (ratings - self._mean_of(both))
        both[..., -1] = 1
        return both.mul_(slope[..., None, None])

    def _sums(
        self, position: Tensor, rows: Tensor, ratings: Tensor, squares: bool = False
    ) -> tuple[Tensor, ...]:
        """Sum the ratings' gradients, and on request their squares, each ``(chains,
        dim)``.
        """
        sums = tuple(
            torch.zeros_like(position).view(-1, self.rank + 1)
            for _ in range(1 + squares)
        )
        for place, some in self._pieces(position, rows, ratings):
            each, place = (
                self._gradients(position, place, some).flatten(0, 2),
                place.flatten(),
            )
            sums[0].index_add_(0, place, each)
            if squares:
                sums[1].index_add_(0, place, each.square_())
        return tuple(each.view_as(position) for each in sums)

    def _gradient_moments(
        self, position: Tensor, batch: tuple[Tensor, ...], kind: Kind
    ) -> tuple[Tensor, Tensor]:
        """Sum the examples' gradients and their squares."""
        if kind == "full":
            return super()._gradient_moments(position, batch, kind)
        return self._sums(position, *batch, squares=True)
