"""Models written as plain functions of named parameters, which may be constrained."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution, Independent, constraints
from torch.distributions.constraint_registry import biject_to
from torch.distributions.constraints import Constraint, is_dependent, real
from torch.distributions.mixture_same_family import MixtureSameFamily
from torch.distributions.transforms import ExpTransform, Transform, identity_transform
from torch.utils._pytree import tree_map

from sgmc.checks import check_count, check_instance, check_positive
from sgmc.minibatches import MinibatchRule
from sgmc.models.functions import _check_examples
from sgmc.posteriors.base import Batch, DataPotential, Vmap, over_chains

_ALONE = RLock()  # all threads share the setting of distributions


class Parameters:
    """Named parameters with shapes and supports, and the map between them and a flat
    unconstrained position.

    A position x holds for each parameter, in the order of the names, the numbers that
    ``torch.distributions.biject_to`` of its support turns into it: φ = g(x). If φ has
    the density p, then x has p(g(x))·abs det g′(x).

    Args:
        shapes: the shape of each parameter, by name; ``()`` for a number.
        supports: where a parameter may lie, by name, one of
            ``torch.distributions.constraints``; anywhere, if it is not named.

    Raises:
        ValueError: if a shape is invalid, a support has no parameter, or PyTorch has no
            one-to-one map onto it.

    Example:
        >>> from torch.distributions import constraints
        >>> parameters = Parameters(
        ...     {"weights": (2,), "shares": (3,)}, {"shares": constraints.simplex}
        ... )
        >>> parameters.dim  # shares have the sum one
        4
        >>> values, log_jacobian = parameters.constrain(torch.zeros(1, 4))
        >>> values["shares"]
        tensor([[0.3333, 0.3333, 0.3333]])
    """

    def __init__(
        self,
        shapes: Mapping[str, Sequence[int]],
        supports: Mapping[str, Constraint] | None = None,
    ):
        supports = {} if supports is None else supports
        check_instance("shapes", shapes, Mapping, '{"slope": (3,), "scale": ()}')
        check_instance("supports", supports, Mapping, '{"scale": constraints.positive}')
        if unknown := sorted(set(supports) - set(shapes)):
            raise ValueError(
                f"supports has {unknown}, but the parameters are {sorted(shapes)}"
            )
        self.shapes, self.transforms, self.free_shapes = {}, {}, {}
        for name, shape in shapes.items():
            if not isinstance(shape, Sequence) or not all(
                isinstance(n, int) and n > 0 for n in shape
            ):
                raise ValueError(
                    "shapes must have a tuple of positive whole numbers, such as "
                    f"(3,) or (), for {name!r}, but has {shape!r}"
                )
            self.shapes[name] = torch.Size(shape)
            onto = _map_onto(supports.get(name, real), repr(name), self.shapes[name])
            self.transforms[name] = onto
            self.free_shapes[name] = torch.Size(onto.inverse_shape(self.shapes[name]))
        self.sizes = [math.prod(shape) for shape in self.free_shapes.values()]
        self.dim = sum(self.sizes)

    def cut(self, position: Tensor) -> dict[str, Tensor]:
        """Cut positions ``(..., dim)`` into each parameter's unconstrained numbers, in
        their shapes: views.
        """
        pieces = zip(self.free_shapes, position.split(self.sizes, -1), strict=True)
        return {
            name: piece.reshape(piece.shape[:-1] + self.free_shapes[name])
            for name, piece in pieces
        }

    def join(self, free: Mapping[str, Tensor]) -> Tensor:
        """Undo :meth:`cut`: by name ``(chains, ...)`` → ``(chains, dim)``; raise a
        ValueError if a number is not finite.
        """
        flat = [free[name].reshape(len(free[name]), -1) for name in self.free_shapes]
        position = torch.cat(flat, -1)
        if not position.isfinite().all():
            raise ValueError(
                f"values of {sorted(free)} must lie inside of their supports, not on "
                "or beyond a border"
            )
        return position

    def constrain(self, position: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Compute φ = g(x) and log abs det g′(x): ``(..., dim)``, with an axis for
        chains or without, → each parameter ``(..., *shape)``, and ``(...)``.
        """
        values, chains = self.cut(position), position.shape[:-1]
        log_jacobian = position.new_zeros(chains)
        for name, free in values.items():
            if (transform := self.transforms[name]) is not identity_transform:
                values[name] = transform(free)
                each = transform.log_abs_det_jacobian(free, values[name])
                log_jacobian = log_jacobian + each.reshape(*chains, -1).sum(-1)
        return values, log_jacobian

    def position(self, values: Mapping[str, Tensor]) -> Tensor:
        """Compute the positions ``(chains, dim)`` of parameters by name, each
        ``(chains, *shape)``.

        Raises:
            ValueError: if a parameter is missing, or has another shape, or lies outside
                of its support.
        """
        _check_values("values", values, self.shapes)
        maps = self.transforms.items()
        return self.join({name: onto.inv(values[name]) for name, onto in maps})


class _OfParameters(DataPotential):
    """The posterior of named parameters."""

    parameters: Parameters
    _like: Tensor  # an example of a position's type and device

    def initial_position(
        self, chains: int, generator: Generator, radius: float = 2.0
    ) -> Tensor:
        """Draw positions with each coordinate from U(−radius, radius), as Stan does
        with 2: ``(chains, dim)``.
        """
        check_count("chains", chains)
        example = "torch.Generator().manual_seed(0)"
        check_instance("generator", generator, Generator, example)
        check_positive("radius", radius)
        place = {"dtype": self._like.dtype, "device": generator.device}
        size = chains, self.parameters.dim
        return radius * (2 * torch.rand(*size, generator=generator, **place) - 1)


class NamedPosterior(_OfParameters):
    """The posterior of a model given by plain functions of named parameters: for one
    set of them, without an axis for chains.

    Samplers see unconstrained positions (:class:`Parameters`), whose Jacobian is added
    here, and not by the functions. All chains run the functions together, by
    ``torch.func.vmap``; functions that branch on values, by ``if`` or ``.item()``, run
    for one chain after another. Validation of distributions is off in a run; before it,
    densities outside of their supports raise an error.

    Args:
        shapes: the shape of each parameter, by name.
        log_prior: log p(φ), a number, from a dictionary of parameters.
        log_likelihood: log p(xᵢ | φ) of each example, ``(n,)``, from a dictionary of
            parameters and a minibatch, whose tensors are ``(n, ...)``.
        data: tensors whose first axis runs over the N examples, in memory or mapped
            from a file.
        supports: where parameters may lie, by name, of
            ``torch.distributions.constraints``; anywhere by default.
        batch_size: n; all the data by default.
        minibatches: the rule by which they are chosen (:mod:`sgmc.minibatches`).

    Attributes:
        parameters: the :class:`Parameters`.

    Raises:
        ValueError: if the parameters or the data are invalid, the functions cannot be
            called with them, or return other shapes.

    Example:
        >>> from torch.distributions import HalfNormal, Normal, constraints
        >>> posterior = NamedPosterior(
        ...     {"mean": (), "scale": ()},
        ...     log_prior=lambda p: (
        ...         Normal(0.0, 5.0).log_prob(p["mean"])
        ...         + HalfNormal(1.0).log_prob(p["scale"])
        ...     ),
        ...     log_likelihood=lambda p, x: Normal(p["mean"], p["scale"]).log_prob(x),
        ...     data=(torch.tensor([1.0, 2.0, 3.0]),),
        ...     supports={"scale": constraints.positive},
        ...     batch_size=2,
        ... )
        >>> posterior.named(torch.zeros(4, 2))["scale"]
        tensor([1., 1., 1., 1.])
    """

    def __init__(
        self,
        shapes: Mapping[str, Sequence[int]],
        log_prior: Callable[[dict[str, Tensor]], Tensor],
        log_likelihood: Callable[..., Tensor],
        data: Sequence[Tensor],
        supports: Mapping[str, Constraint] | None = None,
        batch_size: int | None = None,
        minibatches: MinibatchRule | None = None,
    ):
        self.parameters = Parameters(shapes, supports)
        super().__init__(data, batch_size, minibatches, dim=self.parameters.dim)
        example = "lambda parameters: ..."
        check_instance("log_prior", log_prior, Callable, example)
        check_instance("log_likelihood", log_likelihood, Callable, example)
        self._log_prior_of, self._log_likelihood_of = log_prior, log_likelihood
        types = [x.dtype for x in self.data if x.is_floating_point()]
        self._like = torch.empty(0, dtype=[*types, torch.get_default_dtype()][0])
        generator = Generator(self.data[0].device).manual_seed(0)
        position = self.initial_position(1, generator)
        with torch.no_grad(), _tried("log_prior"):
            self.log_prior(position)
        with torch.no_grad(), _tried("log_likelihood"):
            self.log_likelihoods(position, tuple(x[None, :2] for x in self.data))

    def log_prior(self, position: Tensor) -> Tensor:
        """Compute log p(g(x)) + log abs det g′(x), ``(chains,)``."""
        values, log_jacobian = self.parameters.constrain(position)
        value = _run_model(self._vmaps[0], self._log_prior_of, values)
        if value.shape != log_jacobian.shape:
            raise ValueError(
                "log_prior must return a number, such as the sum of what it adds up, "
                f"but it returned {tuple(value.shape[1:])}: use .sum()"
            )
        return value + log_jacobian

    def log_likelihood(self, position: Tensor, *batch: Tensor) -> Tensor:
        """Compute log p(xᵢ | g(x)): ``(chains, dim)`` and tensors ``(chains or 1, n,
        ...)`` → ``(chains, n)``.
        """
        values = self.named(position)
        return _run_model(self._vmaps[0], self._log_likelihood_of, values, *batch)

    def _energy_of(self, position: Tensor, batch: Batch, scale: float) -> Tensor:
        """Compute the energy of a minibatch."""
        if len(position) > 1:
            return super()._energy_of(position, batch, scale)
        # One chain needs no axis, and its parameters once for both terms.
        with _without_validation():
            values, log_jacobian = self.parameters.constrain(position.squeeze(0))
            examples = (x.squeeze(0) for x in batch)
            total = self._log_likelihood_of(values, *examples).sum()
            log_prior = self._log_prior_of(values) + log_jacobian
            return (-log_prior - scale * total)[None]

    def named(self, position: Tensor) -> dict[str, Tensor]:
        """Compute the parameters by name, each ``(chains, *shape)``, at positions
        ``(chains, dim)``, for ``sample`` to collect.
        """
        return self.parameters.constrain(position)[0]

    def check(self, position: Tensor, generator: Generator) -> None:
        """Check all examples too, for a NaN or an infinity, and the supports of
        distributions: at the position for up to 100,000 examples, and on both sides of
        zero for a thousand.
        """
        _check_examples(self, position)
        other = self.initial_position(1, generator).to(position)
        some = (x[:: self.num_examples // 100_000 + 1].split(1_000) for x in self.data)
        pieces = list(zip(*some, strict=True))
        for place, few in (
            (position[:1], pieces),
            (other, pieces[:1]),
            (-other, pieces[:1]),
        ):
            values = {name: x[0] for name, x in self.named(place.detach()).items()}
            _check_laws("log_prior", self._log_prior_of, values)
            for batch in few:
                _check_laws("log_likelihood", self._log_likelihood_of, values, *batch)


@contextmanager
def _tried(name: str) -> Iterator[None]:
    """Turn an error of a user's function at its first call into a ValueError."""
    try:
        yield
    except (RuntimeError, TypeError, LookupError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ValueError(
            f"{name} cannot be called with its parameters and data: {what}. Parameters "
            "and data need one type, such as targets.float(), where plain numbers "
            f"become {torch.get_default_dtype()}; a plate is to have as many examples "
            "as the data"
        ) from error


def _map_onto(support: Constraint, name: str, shape: torch.Size) -> Transform:
    """Find the one-to-one map from unconstrained numbers onto the support of the
    parameter of this name and shape; raise a ValueError if it is discrete, or has no
    such map.
    """
    example = "torch.distributions.constraints.positive"
    check_instance(f"the support of {name}", support, Constraint, example)
    if support.is_discrete:
        raise ValueError(
            f"{name} is discrete, and gradients do not move it: sum over its values "
            "in the likelihood, by torch.logsumexp"
        )
    if support in (constraints.positive, constraints.nonnegative):
        # biject_to would make it 0 + 1·exp(x).
        return ExpTransform()
    try:
        onto = biject_to(support)
        onto.inverse_shape(shape)
    except (NotImplementedError, ValueError) as error:
        raise ValueError(
            "torch.distributions.biject_to knows no one-to-one map onto the support "
            f"of {name}, {support}, for the shape {tuple(shape)}: write it as a "
            "function of others that it knows, such as a covariance of standard "
            "deviations and corr_cholesky"
        ) from error
    return onto


def _run_model(
    vmap: Vmap, function: Callable, values: dict[str, Tensor], *batch: Tensor
):
    """Call a function of one chain's parameters, and of its minibatch, for all chains,
    as :func:`sgmc.posteriors.base.over_chains`; it may return numbers of Python.
    """
    tensors = lambda *given: tree_map(torch.as_tensor, function(*given))
    with _without_validation():
        return over_chains(tensors, values, *batch, vmap=vmap)


def _check_laws(
    name: str, function: Callable, values: dict[str, Tensor], *batch: Tensor
) -> None:
    """Raise a ValueError if the function of this name, for one chain, evaluates a
    distribution outside its support or with invalid parameters, which PyTorch's
    validation, off in a run, would report.

    Every such density is raised, and the result must not notice. So a density may
    be minus infinity there, as a part of a mixture, or hidden by ``torch.where``, or
    made with ``validate_args=False``; and NaN, a border, and what rounding leaves
    outside do not count.
    """
    found = []

    def raised(law, key):
        ask = object.__getattribute__(law, key)
        if key != "log_prob" or vars(law).get("_validate_args") is False:
            return ask
        if isinstance(law, Independent | MixtureSameFamily):
            return ask  # the parts are checked instead

        def log_prob(value, *more, **settings):
            density = ask(value, *more, **settings)
            for what, support, x in _constrained(law, torch.as_tensor(value)):
                odd = _beyond(support, x)
                if odd.any():
                    found.append((type(law).__name__, what, support, x, odd))
                    density = density + odd * torch.finfo(density.dtype).max ** 0.5
            return density

        return log_prob

    with _without_validation(), torch.no_grad():
        setattr(Distribution, "__getattribute__", raised)  # noqa: B010
        try:
            moved = function(values, *batch)
        finally:
            del Distribution.__getattribute__
        if not found or (function(values, *batch) == moved).all():
            return
    law, what, support, x, odd = found[-1]
    of_all = x.expand(odd.shape + x.shape[x.ndim - support.event_dim :])
    number = float(of_all[odd].flatten()[0])
    equal = (key for key, value in values.items() if torch.equal(value, x))
    of = next(equal, "scale")
    raise ValueError(
        f"{name} asks {law} for a density with {what} {number:g}, outside of its "
        f"support, {support}, where the formula is none. Give a parameter with a "
        f"border its support, such as supports={{{of!r}: constraints.positive}}; data "
        "must lie in the support, such as (targets > 0).float() for -1 and 1. If it is "
        f"meant so, make the distribution by {law}(..., validate_args=False)"
    )


def _constrained(law: Distribution, value: Tensor) -> Iterator[tuple]:
    """List a distribution's value and parameters, each with its constraint."""
    with suppress(NotImplementedError):
        yield "the value", law.support, value
    for name, constraint in law.arg_constraints.items():
        if name in vars(law) and not is_dependent(constraint):
            yield f"{name} =", constraint, getattr(law, name)


def _beyond(support: Constraint, value: Tensor) -> Tensor:
    """Tell which values lie outside a support, by more than rounding; NaN does not
    count.

    Example:
        >>> from torch.distributions import constraints
        >>> _beyond(constraints.positive, torch.tensor([-1.0, 0.0, torch.nan]))
        tensor([ True, False, False])
    """

    odd = ~support.check(value) & ~_in_event(support, value.isnan())
    if odd.any():  # the inverse map returns the same value at a border, up to rounding
        with suppress(NotImplementedError, RuntimeError, ValueError):
            onto, close = biject_to(support), torch.finfo(value.dtype).eps ** 0.5
            near = torch.isclose(onto(onto.inv(value)), value, close, close)
            odd = odd & _in_event(support, ~near)
    return odd


def _in_event(support: Constraint, odd: Tensor) -> Tensor:
    """Tell for each value of a support whether any of its numbers is marked."""
    return (
        odd.flatten(odd.ndim - support.event_dim).any(-1) if support.event_dim else odd
    )


@contextmanager
def _without_validation() -> Iterator[None]:
    """Switch off the checks of PyTorch's distributions, which would branch on values,
    for one thread at a time.
    """
    with _ALONE:
        before = Distribution._validate_args
        Distribution.set_default_validate_args(False)
        try:
            yield
        finally:
            Distribution.set_default_validate_args(before)


def _check_values(
    name: str, values: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]
) -> None:
    """Raise a ValueError unless the argument of this name has a tensor ``(chains,
    *shape)`` for each shape, with one number of chains.
    """
    check_instance(name, values, Mapping, '{"scale": torch.ones(4)}')
    given = {key: tuple(getattr(x, "shape", ())) for key, x in values.items()}
    chains = [shape[0] for shape in given.values() if shape][:1]
    if not chains or given != {key: (*chains, *shapes[key]) for key in shapes}:
        expected = {key: ("chains", *shape) for key, shape in shapes.items()}
        raise ValueError(
            f"{name} must have tensors of the shapes {expected}, but has {given}"
        )
