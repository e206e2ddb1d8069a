"""Checks of a model before a run starts: of its energy and its gradients near the
start, the minibatches of its rule, and the densities of some examples of its data.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor
from torch.utils._pytree import tree_all

from sgmc.checks import agree, evaluate, shown, versions
from sgmc.minibatches import Fresh, Held, MinibatchRule, Passes
from sgmc.posteriors.base import Batch, DataPotential, OnBatch
from sgmc.potentials import ERRORS, Potential, differentiate
from sgmc.randomness import counter_based, normal_like

Result = TypeVar("Result")
_COUNTED = 3  # the purpose of a stream of random numbers
# Examples are chosen by so many numbers of a tensor; larger tensors have no tenths.
_LOOKED_AT, _MANY = 2**16, 2**24
_SCALE = 2.0  # of some examples, because at 1 a model that omits N/n looks right


def check_methods(potential: Potential) -> None:
    """Raise a ValueError if a potential writes a method that kernels do not call, so
    that its noise would be lost without notice.

    Example:
        >>> class Late(Potential):
        ...     def stochastic_gradient(self, position, generator, step=0):
        ...         return position
        >>> check_methods(Late())
        Traceback (most recent call last):
        ValueError: Late defines stochastic_gradient, which kernels never call: ...
    """
    for name in ("stochastic_gradient", "gradient_and_noise_variance"):
        if getattr(type(potential), name) is not getattr(Potential, name):
            raise ValueError(
                f"{type(potential).__name__} defines {name}, which kernels never call: "
                "write draw_minibatches, gradient_given and gradient_and_variance_given"
            )


def check_model(potential: Potential, position: Tensor, generator: Generator) -> None:
    """Raise a ValueError if a potential contradicts itself near a position ``(chains,
    dim)``.

    Its energy must be one number a chain, the same when it is computed twice, and not
    depend on where the other chains are; its gradients must be what differentiation of
    the energy gives, and of a posterior on some examples what −log p(θ) − scale·Σ log
    p(xᵢ | θ) gives. All are compared near the position and not at it, where a symmetry
    may hide a difference. A potential without an energy is left alone, and so is the
    gradient where the energy cannot be differentiated.

    Example:
        >>> class Wrong(Potential):
        ...     def energy(self, position):
        ...         return position.square().sum(-1)
        ...
        ...     def gradient(self, position):
        ...         return position  # half of what it is
        >>> check_model(Wrong(), torch.ones(2, 1), Generator())
        Traceback (most recent call last):
        ValueError: the potential's energy is ..., and its gradient is ...
    """
    with torch.no_grad():
        try:
            energy = evaluate(lambda: potential.energy(position), position)
        except NotImplementedError:
            return
        _check_one_number("the potential's energy", energy, position)
        near, energy = within(potential.energy, position, generator)
    if energy is None or not energy.isfinite().all():
        return  # the kernel judges the start itself
    if not agree(attempt(potential.energy, near.clone()), energy):
        raise ValueError(
            "the potential's energy is not the same when it is computed twice: it is "
            "random, such as dropout in training mode (use module.eval())"
        )
    for kept in (0, 1) if len(near) > 1 else ():
        others = near.clone()
        others[1 - kept :: 2] = position[1 - kept :: 2]
        moved = attempt(potential.energy, others)
        if moved is None or not agree(moved[kept::2], energy[kept::2]):
            raise ValueError(
                "the potential's energy of one chain depends on where the other chains "
                "are: sum and average over the last axis alone, never over the first"
            )
    reference = potential.energy
    if isinstance(potential, OnBatch):
        owner, given = potential.posterior, potential._given
        reference = lambda x: DataPotential._energy_of(owner, x, *given)
    else:
        of_one = lambda x: potential.energy(x)[:, None]
        _check_slope("energy", of_one, near, generator)
    own = lambda x: (potential.energy(x), potential.gradient(x))
    _check_pair(own, reference, near)
    _check_pair(potential.energy_and_gradient, potential.energy, near)


def _check_one_number(name: str, value: Any, position: Tensor) -> None:
    floating = isinstance(value, Tensor) and value.is_floating_point()
    if not floating or value.shape != position.shape[:1]:
        raise ValueError(
            f"{name} must be one number a chain, ({len(position)},), but it is "
            f"{shown(value)}: add up the coordinates by .sum(-1), and write "
            "0 * position.sum(-1) for a constant"
        )


def _check_pair(
    pair: Callable[[Tensor], tuple[Tensor, Tensor]],
    reference: Callable[[Tensor], Tensor],
    position: Tensor,
    scale: float = _SCALE,
) -> None:
    """Raise a ValueError unless an energy and a gradient are those of another energy,
    up to the square root and the third root of the precision, where that can be
    differentiated.
    """
    values = attempt(lambda: (*pair(position), *differentiate(reference, position)))
    if values is None or not all(value.isfinite().all() for value in values[2:]):
        return
    energy, gradient, right, expected = values
    if not (agree(energy, right) and agree(gradient, expected, root=3)):
        error = (gradient - expected).abs().nan_to_num(math.inf)
        chain, place = divmod(int(error.argmax()), position.shape[1])
        raise ValueError(
            f"the potential's energy is {float(energy[chain]):.6g} in chain {chain}, "
            f"and its gradient is {float(gradient[chain, place]):.6g} in coordinate "
            f"{place}, but differentiation of its energy, with N/n = {scale:.6g} times "
            f"the likelihood of data, gives {float(right[chain]):.6g} and "
            f"{float(expected[chain, place]):.6g}: look at sign, factors and shapes, "
            "and multiply the likelihood by the scale, and not the prior"
        )


def _check_slope(
    what: str,
    function: Callable[[Tensor], Tensor],
    position: Tensor,
    generator: Generator,
    pieces: Mapping[Any, Tensor] | None = None,
) -> None:
    """Raise a ValueError with the names of the pieces of a position ``(chains, dim)``,
    by default 128 parts of it, in which a function changes otherwise than
    differentiation says, by more than half, in most chains and two directions.

    Coarse, so that rounding does not count; what differentiation does not see changes
    the gradient wholly. The change may lie between what it says at both ends of the
    way, because there a kink, such as of a unit that is switched off, may lie between.
    """
    dim, precision = position.shape[1], torch.finfo(position.dtype).eps
    if pieces is None:
        parts = torch.arange(dim, device=position.device).tensor_split(min(128, dim))
        pieces = {int(x[0]) if len(x) == 1 else f"from {int(x[0])}": x for x in parts}
    slope = lambda x: differentiate(lambda y: function(y).sum(-1) + 0 * y.sum(-1), x)[1]
    gradient = attempt(slope, position)
    if gradient is None or not gradient.isfinite().all():
        return
    size = precision ** (1 / 3) * (1 + position.abs())

    def differs(piece: Tensor) -> bool:
        way = size * normal_like(position, generator).sign()
        step = torch.zeros_like(way).index_copy_(1, piece, way[:, piece])
        ends = position + step, position - step
        above, below = (attempt(function, end) for end in ends)
        if above is None or below is None:
            return False
        change, rounding = (above - below) / 2, precision * (1 + above.abs())
        total, blind = change.sum(-1), (change.abs() > 16 * rounding).any(-1)

        def off(*gradients: Tensor) -> bool:
            said = torch.stack([(each * step).sum(-1) for each in gradients])
            limit = 0.5 * said.abs().amax(0) + 100 * rounding.sum(-1)
            beyond = (total < said.amin(0) - limit) | (total > said.amax(0) + limit)
            unseen = torch.where((said == 0).all(0), blind, beyond)
            return bool((unseen & total.isfinite()).float().mean() > 0.5)

        return off(gradient) and off(gradient, *map(slope, ends))

    odd = [name for name, x in pieces.items() if differs(x) and differs(x)]
    if odd:
        raise ValueError(
            f"parameters {odd[:20]} change the {what} otherwise than its gradient "
            "says: they are cut off, as by .detach(), .data, .item() or no_grad(): "
            "freeze them, by requires_grad_(False), or leave the cut away; or inputs "
            "differ so much in scale that rounding hides them: standardise them"
        )


def attempt(function: Callable[..., Result], *given: Any) -> Result | None:
    """Call a function, without gradients, at a position that may be invalid; return
    None if it fails there.

    Example:
        >>> attempt(torch.linalg.cholesky, -torch.eye(2)) is None
        True
    """
    try:
        with torch.no_grad():
            return function(*given)
    except (LookupError, *ERRORS):
        return None


def within(
    function: Callable[[Tensor], Any], position: Tensor, generator: Generator
) -> tuple[Tensor, Any]:
    """Search near a position ``(chains, dim)`` for a place where a function gives only
    finite numbers, not beyond the end of a support: return the place, in the end the
    position itself, and what the function gave there, or None if it failed.

    Example:
        >>> small = lambda x: 1 / (x.abs() < 0.01)
        >>> near, _ = within(small, torch.zeros(1, 1), Generator())
        >>> 0 < near.abs() < 0.01
        tensor([[True]])
    """
    direction = (1 + position.abs()) * normal_like(position, generator)
    near, found = position, None
    for near in [position + x * direction for x in (0.1, 0.001, 0.0)]:
        found = attempt(function, near)
        if found is not None and tree_all(lambda x: x.isfinite().all(), found):
            break
    return near, found


def check_minibatches(
    potential: Potential, position: Tensor, generator: Generator
) -> None:
    """Raise a ValueError if ∇Ũ(θ; ω) is not ∇U(θ) on average over 64 minibatches near a
    position ``(chains, dim)``, along ∇U(θ), where that is long.

    It must be off by a quarter and by eight standard errors, that is by a standard
    deviation, which chance does less than once in a million times, unless examples that
    none of them has hold so much.

    Example:
        >>> class Unscaled(Potential):
        ...     def energy(self, position):
        ...         return 50 * position.square().sum(-1)
        ...
        ...     def gradient_given(self, position, minibatch):
        ...         return position  # of one example in a hundred
        >>> check_minibatches(Unscaled(), torch.ones(2, 1), Generator())
        Traceback (most recent call last):
        ValueError: the gradients of minibatches are on average 0.01 times the gradient
            ...
    """

    def ratios(place: Tensor) -> Tensor:
        exact, found = potential.gradient(place), []
        for _ in range(64):
            minibatch = potential.fresh_minibatch(place, generator)
            product = (potential.gradient_given(place, minibatch) * exact).sum(-1)
            found.append((product / exact.square().sum(-1)).mean())
        return torch.stack(found)

    own = type(potential).gradient_given is not Potential.gradient_given
    direction = (1 + position.abs()) * normal_like(position, generator)
    for distance in (10.0, 0.1) if own else ():
        found = attempt(ratios, position + distance * direction)
        if found is None:  # beyond a support, or without an energy
            continue
        deviation, mean = map(float, torch.std_mean(found))
        if max(0.25, deviation) < abs(mean - 1) < math.inf:
            raise ValueError(
                f"the gradients of minibatches are on average {mean:.3g} times the "
                "gradient of all the data, along it, where they should be it: a sum "
                "over n of N examples is multiplied by N/n, a prior is not"
            )


def check_posterior(
    posterior: DataPotential, position: Tensor, generator: Generator
) -> None:
    """Check the data, the rule and a minibatch, and the densities of some examples from
    all over the data.

    Raises:
        ValueError: if the data were changed since the posterior was made, a density is
            zero at the position ``(chains, dim)``, where gradients alone would not lead
            back into the support, an example's likelihood depends on the others of its
            minibatch or on their order, the gradient of a minibatch is not that of
            log p(θ) and N/n times the log likelihood, parameters that change the
            likelihood have no gradient, or the minibatch rule is invalid, or not
            uniform.

    Example:
        >>> from sgmc.models import Posterior
        >>> posterior = Posterior(
        ...     lambda position: -position.square().sum(-1),
        ...     lambda position, y: -((y - y.mean()) ** 2) * position,
        ...     (torch.arange(4.0),),
        ...     dim=1,
        ... )
        >>> check_posterior(posterior, torch.ones(2, 1), Generator())
        Traceback (most recent call last):
        ValueError: the log-likelihood of an example depends on the others of its
            minibatch: ...
    """
    if posterior.versions not in (None, versions(posterior.data)):
        raise ValueError(
            "data were changed in place after the posterior was made of them: make "
            "it anew, and change data first, or a clone() of them"
        )
    own = type(posterior).draw_minibatches is not DataPotential.draw_minibatches
    if own:  # its gradients may weight its examples
        check_minibatches(posterior, position, generator)
    elif not posterior.takes_all_data:
        seed, total = generator.initial_seed(), posterior.num_examples
        size = posterior.batch_size or total
        check_rule(posterior.minibatches, total, size, seed, posterior.data)
    few = few_examples(posterior)

    def densities(position: Tensor) -> tuple[Tensor, Tensor]:
        return posterior.log_prior(position), posterior.log_likelihoods(position, few)

    with torch.no_grad():
        try:
            prior, likelihood = evaluate(lambda: densities(position), position)
        except NotImplementedError:
            return
    _check_one_number("log_prior", prior, position)
    for name, value in (("log_prior", prior), ("log_likelihood", likelihood)):
        if len(odd := value[~value.isfinite()]):
            raise ValueError(
                f"{name} is not finite at the start, but {float(odd[0])}: has each "
                "parameter with a border, such as a scale, the support of its prior, "
                "and is no example on a border? If they are right, start elsewhere"
            )
    near, found = within(densities, position, generator)
    again = attempt(densities, near)
    if not (again and found and all(map(agree, again, found))):
        return  # the energy's own check reports randomness
    _check_order(posterior, near[:1], few)
    if not (own or posterior.takes_all_data):
        indices: Any = posterior.draw_minibatches(near, generator, 0)[0]
        of = posterior.energy_given, posterior.gradient_given
        scale = posterior.num_examples / indices.shape[1]
        # This keeps one copy of the minibatch at a time.
        given = lambda: (posterior.gather(indices), scale)
        parts = lambda x: DataPotential._energy_of(posterior, x, *given())
        _check_pair(
            lambda x: (of[0](x, indices), of[1](x, indices)), parts, near, scale
        )
    # A model with names cuts its parameters by name.
    cut = getattr(posterior, "parameters_of", None)
    cut = cut or getattr(getattr(posterior, "parameters", None), "cut", None)
    places = torch.arange(position.shape[1], device=position.device)
    pieces = {name: x.flatten() for name, x in cut(places).items()} if cut else None
    # With weights the gradients of examples do not cancel exactly, as of a bias where
    # as many are wrong one way as the other way round.
    weights = torch.arange(1, few[0].shape[1] + 1, device=position.device).sqrt()
    each = lambda x: posterior.log_likelihoods(x, few) * weights
    _check_slope("likelihood", each, near, generator, pieces)
    prior = lambda x: posterior.log_prior(x)[:, None]
    _check_slope("prior", prior, near, generator, pieces)


def _check_order(posterior: DataPotential, position: Tensor, few: Batch) -> None:
    """Raise a ValueError if log p(xᵢ | θ) at a position ``(1, dim)`` depends on the
    order of the examples, or on their number.
    """

    def of(change: Callable[[Tensor], Tensor]) -> Tensor:
        return posterior.log_likelihoods(position, tuple(map(change, few)))[0]

    half = few[0].shape[1] // 2
    cuts = (slice(half), slice(half, None))[half == 0 :]
    with torch.no_grad():
        among = of(lambda x: x)
        turned = of(lambda x: x.flip(1)).flip(0)
        halves = torch.cat([of(lambda x, cut=cut: x[:, cut]) for cut in cuts])
    for other in (turned, halves):
        if not agree(other, among):
            place = int((other - among).abs().argmax())
            raise ValueError(
                "the log-likelihood of an example depends on the others of its "
                f"minibatch: one is {float(among[place]):.6g} among {len(among)}, and "
                f"{float(other[place]):.6g} in another order or among half as many. "
                "Compute it from that example alone: no mean over the batch, no "
                "example before or behind it (a lag is a column of the data), and no "
                "targets (n, 1) beside outputs (n,), which broadcast"
            )


def check_rule(
    rule: MinibatchRule,
    num_examples: int,
    batch_size: int,
    seed: int,
    data: Sequence[Tensor] = (),
) -> None:
    """Raise a ValueError if a rule gives minibatches of another shape, or the same
    minibatch to all chains where chance does not, or chooses some examples more often
    than others (:func:`check_uniform`); the rules of :mod:`sgmc.minibatches` need no
    check.

    Example:
        >>> class Same(MinibatchRule):
        ...     def indices(self, num_examples, batch_size, chains, seed, step):
        ...         return torch.arange(batch_size).expand(chains, -1)
        >>> check_rule(Same(), 1_000, 10, seed=0)
        Traceback (most recent call last):
        ValueError: minibatches: Same.indices gives all chains the same minibatch, ...
    """
    name = f"minibatches: {type(rule).__name__}.indices"
    drawn = rule.indices(num_examples, batch_size, 2, seed, 0)
    if drawn.shape != (2, batch_size):
        raise ValueError(
            f"{name} must return (chains, n), here (2, {batch_size}), but it returned "
            f"{tuple(drawn.shape)}"
        )
    if torch.equal(*drawn) and math.comb(num_examples, batch_size) > 10**6:
        raise ValueError(
            f"{name} gives all chains the same minibatch, so that they are not "
            "independent: choose another one for each"
        )
    while type(rule) is Held:
        rule = rule.rule
    if type(rule) not in (Fresh, Passes):
        check_uniform(rule, num_examples, batch_size, seed, data)


def check_uniform(
    rule: MinibatchRule,
    num_examples: int,
    batch_size: int,
    seed: int,
    data: Sequence[Tensor] = (),
) -> None:
    """Raise a ValueError if of some 400 minibatches of a rule, at random steps, an
    example is in too many or too few, or the share of a tenth of the data, by place or
    by the values of a tensor, is off by more than a tenth.

    Minibatches need be independent, and not the examples in one. By chance that happens
    to a uniform rule less than once in a million times.

    Example:
        >>> class Early(MinibatchRule):
        ...     def indices(self, num_examples, batch_size, chains, seed, step):
        ...         return Fresh().indices(
        ...             num_examples // 2, batch_size, chains, seed, step
        ...         )
        >>> check_uniform(Early(), 100, 10, seed=0)
        Traceback (most recent call last):
        ValueError: minibatches: Early.indices does not choose the examples ...
    """
    number = min(2_000, max(400, 40 * num_examples // batch_size))
    # The steps are far apart, because neighbours may have the same minibatch, or belong
    # to one epoch.
    steps = counter_based(seed, _COUNTED, 0).integers(2**31, size=number).tolist()
    given = num_examples, batch_size, 2, seed
    try:
        drawn = torch.stack([rule.indices(*given, step)[0] for step in steps])
    except LookupError:  # the rule may be for fewer steps
        return
    odd = ""
    expected = drawn.numel() / num_examples  # the count of each example
    counts = drawn.flatten().bincount(minlength=num_examples).double()
    # Chernoff's inequality bounds a count's tail, for a sum of independent variables 0
    # and 1.
    tail = torch.special.xlogy(counts, counts / expected) - counts + expected
    if tail.max() > math.log(1e7 * num_examples):
        place = int(tail.argmax())
        odd = f"example {place} came {int(counts[place])} times in {number} "
        odd += f"minibatches, where {expected:.3g} are expected"
    keys = {"their place": torch.arange(num_examples)}
    small = [k for k, x in enumerate(data) if x.numel() <= _MANY]
    keys |= {f"tensor {k} of the data": _keys(data[k]) for k in small}
    for name, key in keys.items():
        tenths = torch.empty_like(key, dtype=torch.int64)
        tenths[key.argsort()] = torch.arange(num_examples) * 10 // num_examples
        sizes = tenths.bincount(minlength=10) / num_examples * batch_size
        cells = tenths[drawn] + 10 * torch.arange(number)[:, None]
        came = cells.flatten().bincount(minlength=10 * number).view(-1, 10).double()
        # the variance is at least that of chance
        mean, variance = came.mean(0), came.var(0) + sizes
        off = (mean - sizes).abs() / sizes
        far = (off > 0.1) & (off * sizes > 7 * (variance / number).sqrt())
        if far.any():
            place = int((off * far).argmax())
            ratio = float(mean[place] / sizes[place])
            odd = f"tenth {place + 1} of the examples by {name}, from the least, comes "
            odd += f"{ratio:.2f} times as often as it should"
    if odd:
        raise ValueError(
            f"minibatches: {type(rule).__name__}.indices does not choose the examples "
            f"uniformly, and N/n is no right scale then: {odd}. "
            "What shall weigh more gets a weight in the likelihood"
        )


def few_examples(posterior: Any) -> Batch:
    """Gather some examples from all over the data, tensors ``(1, m, ...)``, on which a
    check of the model costs little (:func:`spread`); None without data.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> posterior = LinearRegression(torch.ones(100, 2), torch.arange(100.0))
        >>> inputs, targets = few_examples(posterior)
        >>> inputs.shape[-1], float(targets.max())
        (2, 99.0)
    """
    if not isinstance(posterior, DataPotential):
        return ()
    most = max(4, min(32, posterior.batch_size or posterior.num_examples))
    chosen = spread(posterior.data, most).to(posterior.data[0].device)
    return tuple(x.index_select(0, chosen)[None] for x in posterior.data)


def on_few_examples(potential: Any) -> Potential:
    """Return a potential of the same form on which a check of the model costs little:
    if it has data, with some examples from all over them.

    Example:
        >>> from sgmc.posteriors import LinearRegression
        >>> posterior = LinearRegression(torch.ones(100, 2), torch.arange(100.0))
        >>> on_few_examples(posterior).gradient(torch.zeros(3, 2)).shape
        torch.Size([3, 2])
    """
    few = few_examples(potential)
    return OnBatch(potential, few, _SCALE) if few else potential


def spread(data: Sequence[Tensor], most: int) -> Tensor:
    """Choose examples from all over the data, at most so many, by their place and by
    the values of each tensor, the last one first: for each the rarest value, the least,
    the largest, and some between: ``(m,)`` int64, in their order.

    Example:
        >>> rare = torch.zeros(1_000)
        >>> rare[123] = 1.0
        >>> spread([rare], most=4)
        tensor([  0, 123, 499, 999])
    """
    number = len(data[0])
    every = torch.tensor([0.0, 1.0, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875])
    lists = [(every * (number - 1)).long().tolist()]
    for x in data:
        stride = x.numel() // _LOOKED_AT + 1
        values, order = _keys(x[::stride]).sort(stable=True)
        counts = values.unique_consecutive(return_counts=True)[1]
        first = order[counts.cumsum(0) - counts] * stride
        between = first[(every * (len(first) - 1)).long()]
        lists.insert(0, [int(first[counts.argmin()]), *between.tolist()])
    chosen = dict.fromkeys(x for each in zip_longest(*lists) for x in each)
    chosen.pop(None, None)
    return torch.tensor(sorted(list(chosen)[:most]))


def _keys(x: Tensor) -> Tensor:
    """Give each example of a tensor a number that distinguishes it: ``(N,)``."""
    x = x.detach()[:, None].flatten(1).float()
    weights = torch.arange(1.0, x.shape[1] + 1, device=x.device).sqrt()
    return (x * weights).sum(1).nan_to_num().cpu()
