"""Checks of a model before a run starts: of its energy and its gradients near the
start, the minibatches of its rule, and the densities of some examples of its data.
"""

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor

from sgmc.checks import agree, evaluate, shown, versions
from sgmc.minibatches import Fresh, Held, MinibatchRule, Passes
from sgmc.posteriors.base import Batch, DataPotential, OnBatch
from sgmc.potentials import ERRORS, Potential, differentiate
from sgmc.randomness import counter_based, normal_like

Result = TypeVar("Result")
_COUNTED = 3  # the purpose of a stream of random numbers
# Examples are chosen by so many numbers of a tensor; larger tensors have no tenths.
_LOOKED_AT, _MANY = 2**16, 2**24


def check_methods(potential: Potential) -> None:
    """Raise a ValueError if a potential writes a method that kernels do not call, so
    that its noise would be lost without notice.
    """
    for name in ("stochastic_gradient", "gradient_and_noise_variance"):
        if getattr(type(potential), name) is not getattr(Potential, name):
            raise ValueError(
                f"{type(potential).__name__} defines {name}, which kernels do not "
                "call: write draw_minibatches, and gradient_given or "
                "gradient_and_variance_given, from which it follows"
            )


def check_model(
    potential: Potential, position: Tensor, generator: Generator, parts: int = 1
) -> None:
    """Raise a ValueError if a potential contradicts itself near a position ``(chains,
    dim)``.

    Its energy must be one number a chain, the same when it is computed twice, and not
    depend on where the other chains are; its gradient must be what differentiation of
    the energy gives. Energies are compared up to the square root of the precision,
    gradients up to its third root, near the position and not at it, where a symmetry
    may hide a difference. A potential without an energy is left alone, and so is the
    gradient where the energy cannot be differentiated."""
    with torch.no_grad():
        try:
            energy = evaluate(lambda: potential.energy(position), position)
        except NotImplementedError:
            return
        floating = isinstance(energy, Tensor) and energy.is_floating_point()
        if not floating or energy.shape != (len(position),):
            raise ValueError(
                f"the potential's energy is {shown(energy)} for a position "
                f"{tuple(position.shape)}, but must be one number a chain, "
                f"({len(position)},): add up the coordinates by .sum(-1)"
            )
        near, energy = within(potential.energy, position, generator)
        if energy is None or not energy.isfinite().all():
            return  # the kernel judges the start itself
        if not agree(attempt(potential.energy, near.clone()), energy):
            raise ValueError(
                "the potential's energy is not the same when it is computed twice at "
                "one position: something in it is drawn at random or changes, such as "
                "dropout in training mode (module.eval() ends that); write it as a "
                "function of the position alone"
            )
        for kept in (0, 1) if len(position) > 1 else ():
            others = near.clone()
            others[1 - kept :: 2] = position[1 - kept :: 2]
            moved = attempt(potential.energy, others)
            if moved is None or not agree(moved[kept::2], energy[kept::2]):
                raise ValueError(
                    "the potential's energy of one chain depends on where the other "
                    "chains are: sum and average over the last axis alone, never over "
                    "the first, which runs over chains"
                )
        gradient = potential.gradient(near)
        both = potential.energy_and_gradient(near)
        if not (agree(both[0], energy) and agree(both[1], gradient)):
            raise ValueError(
                "the potential's energy_and_gradient does not give what its energy "
                "and its gradient give: correct it, or leave it out"
            )
    try:
        expected = differentiate(potential.energy, near)[1]
    except RuntimeError:  # the energy cannot be differentiated
        return
    if not expected.isfinite().all():
        return
    if gradient.isfinite().all() and not agree(gradient, expected, root=3):
        chain, place = divmod(int((gradient - expected).abs().argmax()), near.shape[1])
        raise ValueError(
            f"the potential's gradient is {float(gradient[chain, place]):.6g} in "
            f"coordinate {place} of chain {chain}, but differentiation of its energy "
            f"gives {float(expected[chain, place]):.6g}: look at the formula's sign, "
            "factors and shapes, or leave it out"
        )
    _check_slope(potential, near, expected, generator, parts)


def _check_slope(
    potential: Potential,
    position: Tensor,
    gradient: Tensor,
    generator: Generator,
    parts: int,
) -> None:
    """Raise a ValueError if in most chains the energy changes along two directions, in
    all coordinates or in a part of them, otherwise than differentiation says, by more
    than half.

    Coarse, so that rounding and kinks do not count; what differentiation does not see
    changes the gradient wholly.
    """
    precision = torch.finfo(position.dtype).eps
    size = precision ** (1 / 3) * (1 + position.square().mean(-1, keepdim=True).sqrt())
    usual = gradient.norm(dim=-1) / position.shape[1] ** 0.5
    coordinates = torch.arange(position.shape[1], device=position.device)
    pieces = coordinates.tensor_split(min(parts, len(coordinates))) if parts > 1 else ()
    for piece in (coordinates, *pieces):
        for length in (1.0, 0.25):  # a kink lies beyond the second length, or elsewhere
            step = torch.zeros_like(position)
            way = (1 + position.abs()) * normal_like(position, generator)
            step[:, piece] = way[:, piece]
            step *= length * size / step.norm(dim=-1, keepdim=True)
            above = attempt(potential.energy, position + step)
            below = attempt(potential.energy, position - step)
            if above is None or below is None:
                return
            found, said = (above - below) / 2, (gradient * step).sum(-1)
            scale = torch.maximum(usual * step.norm(dim=-1), said.abs())
            rounding = 100 * precision * (1 + above.abs())
            odd = ((found - said).abs() > 0.5 * scale + rounding) & found.isfinite()
            if odd.float().mean() <= 0.5:
                break
        else:
            raise ValueError(
                "the potential's energy does not change as its differentiation says, "
                f"in coordinates {int(piece[0])} to {int(piece[-1])}: part of it is "
                "cut off from the position, by .detach(), .data, .item() or "
                "torch.no_grad(), or inputs differ so much in scale that rounding "
                "hides it: standardise them, and use float64"
            )


def attempt(function: Callable[..., Result], *given: Any) -> Result | None:
    """Call a function, without gradients, at a position that may be invalid; return
    None if it fails there.
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
    for distance in (0.1, 0.001, 0.0):
        near = position + distance * direction
        found = attempt(function, near)
        if found is not None and all(value.isfinite().all() for value in found):
            break
    return near, found


def check_minibatches(
    potential: Potential, position: Tensor, generator: Generator
) -> None:
    """Raise a ValueError if ∇Ũ(θ; ω) is not ∇U(θ) on average near a position ``(chains,
    dim)``, along ∇U(θ), where that is long: eight minibatches are averaged, and 64 if
    these are three standard errors off.

    It must be off by a quarter and by eight standard errors, which chance does less
    than once in a million times, unless examples that none of them has hold so much.
    """
    if type(potential).gradient_given is Potential.gradient_given:
        return
    direction = (1 + position.abs()) * normal_like(position, generator)
    for distance in (10.0, 0.1):
        place = position + distance * direction
        # The result is None beyond a support, or without an energy, too.
        error = attempt(_minibatch_error, potential, place, generator)
        if error is not None:
            raise ValueError(
                f"the gradients of minibatches are on average {error:.3g} times "
                "the gradient of all the data, along it, where they should be it: "
                "a sum over n of N examples is multiplied by N/n, a prior is not"
            )


def _minibatch_error(
    potential: Potential, place: Tensor, generator: Generator
) -> float | None:
    """Compute the mean of ∇Ũ·∇U/|∇U|² at a place; None if it may be one."""
    exact, ratios = potential.gradient(place), []
    mean = math.nan
    for number, limit in ((8, 3.0), (64, 8.0)):
        while len(ratios) < number:
            minibatch = potential.fresh_minibatch(place, generator)
            product = (potential.gradient_given(place, minibatch) * exact).sum(-1)
            ratios.append((product / exact.square().sum(-1)).mean())
        error, mean = map(float, torch.std_mean(torch.stack(ratios)))
        off = abs(mean - 1)
        if not (0.25 < off < math.inf and off > limit * error / number**0.5):
            return None
    return mean


def check_posterior(
    posterior: DataPotential, position: Tensor, generator: Generator
) -> None:
    """Check the data, the rule and a minibatch, and the densities of some examples from
    all over the data.

    Raises:
        ValueError: if the data were changed since the posterior was made, a density is
            zero at the position ``(chains, dim)``, where gradients alone would not lead
            back into the support, an example's likelihood depends on the others of its
            minibatch or on their order, a gradient is not that of log p(θ) and N/n
            times the log likelihood, parameters that change the likelihood have no
            gradient, or the minibatch rule is invalid, or not uniform.
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
    if getattr(prior, "shape", None) != position.shape[:1]:
        raise ValueError(
            f"log_prior must return one number a chain, ({len(position)},), but it "
            f"returned {shown(prior)}: add up the coordinates by .sum(-1), and write "
            "0 * position.sum(-1) for a flat prior"
        )
    for name, value in (("log_prior", prior), ("log_likelihood", likelihood)):
        if len(odd := value[~value.isfinite()]):
            raise ValueError(
                f"{name} is not finite at the start, but {float(odd[0])}: has each "
                "parameter with a border, such as a scale, its support, and no "
                "wider one than its prior, and is no example on a border, such as "
                "0 under a logarithm? If they are right, start elsewhere"
            )
    near, found = within(densities, position, generator)
    again = attempt(densities, near)
    if not (again and found and all(map(agree, again, found))):
        return  # the energy's own check reports randomness
    _check_order(posterior, near[:1], few)
    _check_scale(posterior, near, few, None)
    if not (own or posterior.takes_all_data):
        minibatch = posterior.draw_minibatches(near, generator, 0)[0]
        _check_scale(posterior, near, few, minibatch)
    # The result is None beyond a support, too.
    names = attempt(_blind, posterior, near, few, generator)
    if names is not None:
        raise ValueError(
            f"parameters {names[:20]} change the likelihood, but its gradient is "
            "zero in them, so that their samples would be those of the prior: they "
            "are cut off, as by .detach(), .data, .item() or torch.no_grad(). "
            "Freeze them, by requires_grad_(False), or leave the cut away"
        )


def _check_order(posterior: DataPotential, position: Tensor, few: Batch) -> None:
    """Raise a ValueError if log p(xᵢ | θ) at a position ``(1, dim)`` depends on the
    order of the examples.
    """

    def of(change: Callable[[Tensor], Tensor]) -> Tensor:
        return posterior.log_likelihoods(position, tuple(map(change, few)))[0]

    half = few[0].shape[1] // 2
    cuts = (slice(half), slice(half, None))[half == 0 :]
    with torch.no_grad():
        among = of(lambda x: x)
        turned = of(lambda x: x.flip(1)).flip(0)
        halves = torch.cat([of(lambda x, cut=cut: x[:, cut]) for cut in cuts])
    hows = ("in another order", turned), ("among half as many", halves)
    for where, other in hows:
        # With fewer examples a module may use other arithmetic, and round otherwise.
        if not agree(other, among):
            place = int((other - among).abs().argmax())
            raise ValueError(
                "the log-likelihood of an example depends on the others of its "
                f"minibatch: one is {float(among[place]):.6g} among {len(among)} "
                f"and {float(other[place]):.6g} {where}. Compute it from that "
                "example alone: no sum, mean or normalisation over the batch, no "
                "example before or behind it (a lag is a column of the data), and "
                "no targets (n, 1) beside outputs (n,), which broadcast to (n, n)"
            )


def _check_scale(
    posterior: DataPotential, position: Tensor, few: Batch, minibatch: Tensor | None
) -> None:
    """Raise a ValueError unless energy and gradient of a minibatch, or of a few
    examples at the scale 2, are those of −log p(θ) − scale·Σ log p(xᵢ | θ): at the
    scale 1 a model that omits it looks right.
    """
    number = (few[0] if minibatch is None else minibatch).shape[1]
    scale = 2.0 if minibatch is None else posterior.num_examples / number
    of: Any = (posterior.energy_given, posterior.gradient_given)
    given: Any = (position, minibatch)
    if minibatch is None:
        of, given = (
            (posterior._energy_of, posterior._gradient_of),
            (position, few, scale),
        )

    def both() -> tuple[Tensor, ...]:
        found = [each(*given) for each in of]
        # This keeps one copy of the minibatch at a time.
        batch = few if minibatch is None else posterior.gather(minibatch)
        by_parts = lambda x: DataPotential._energy_of(posterior, x, batch, scale)
        return *found, *differentiate(by_parts, position)

    values = attempt(both)
    if values is None:  # the place is beyond a support, or has no derivative
        return
    energy, gradient, right, expected = values
    same = agree(energy, right) and agree(gradient, expected, root=3)
    if not same and right.isfinite().all() and expected.isfinite().all():
        error = (gradient - expected).abs()
        chain, place = divmod(int(error.argmax()), position.shape[1])
        raise ValueError(
            f"with the scale {scale:.6g}, N/n, the energy of {number} examples is "
            f"{float(energy[chain]):.6g} in chain {chain}, and its gradient is "
            f"{float(gradient[chain, place]):.6g} in coordinate {place}, but those of "
            f"log p(θ) and N/n·Σ log p(xᵢ | θ) are {float(right[chain]):.6g} and "
            f"{float(expected[chain, place]):.6g}: look at the formula's sign, factors "
            "and shapes, and multiply the likelihood by the scale, and not the prior"
        )


def _blind(
    posterior: DataPotential, position: Tensor, few: Batch, generator: Generator
) -> list[Any] | None:
    """Name the parameters along which in most chains the likelihood changes, although
    their gradient has no likelihood in it at both ends of the way; None if there are
    none.

    At the shortest way a unit that a rectifier has switched off, or a threshold,
    stays on its side, but for one chain alone in 10⁴; what is switched on has a
    gradient.
    """

    def blind(position: Tensor) -> Tensor:
        one, many = (posterior._gradient_of(position, few, x) for x in (1.0, 2.0**20))
        # The examples' gradients may cancel exactly, as of a bias where as many are
        # wrong one way as the other way round, so they are added with weights, too.
        apart = lambda x: (
            (posterior.log_likelihoods(x, few) * weights).sum(-1) + 0 * x.sum(-1)
        )
        return ((one == many) & (differentiate(apart, position)[1] == 0)).all(0)

    def moved(coordinates: Tensor, distance: float) -> tuple[bool, Tensor]:
        way = (1 + position.abs()) * normal_like(position, generator)
        to = position + distance * way * coordinates
        change = (posterior.log_likelihoods(to, few) - before).abs()
        large = change > 16 * torch.finfo(change.dtype).eps * (1 + before.abs())
        return bool(large.any(-1).float().mean() > 0.5), to

    before = posterior.log_likelihoods(position, few)
    weights = torch.arange(1, before.shape[1] + 1, device=before.device).sqrt()
    unseen = blind(position)
    for distance in (1e-3, torch.finfo(position.dtype).eps ** 0.5):
        for _ in range(10):
            changed, to = moved(unseen, distance)
            still = unseen & blind(to)
            if not changed or torch.equal(still, unseen):
                break
            unseen = still
        if not changed:
            return None
    # A model with names cuts its parameters by name.
    cut = getattr(posterior, "parameters_of", None)
    cut = cut or getattr(getattr(posterior, "parameters", None), "cut", None)
    places = torch.arange(len(unseen), device=unseen.device)
    pieces = cut(places) if cut else {int(i): i for i in unseen.nonzero()[:1000]}
    masks = {name: torch.isin(places, piece) for name, piece in pieces.items()}
    return [name for name, mask in masks.items() if moved(mask & unseen, 1e-3)[0]]


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
            f"{name} gives all chains the same minibatch, so that chains are not "
            "independent and standard errors too small: choose another one for each"
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
    found: dict[float, str] = {}  # sorted by the size of the error
    keys = {"their place": torch.arange(num_examples)} | {
        f"tensor {number} of the data": _keys(x)
        for number, x in enumerate(data)
        if x.numel() <= _MANY
    }
    for name, key in keys.items():
        tenths = torch.empty_like(key, dtype=torch.int64)
        tenths[key.argsort()] = torch.arange(num_examples) * 10 // num_examples
        sizes = tenths.bincount(minlength=10) / num_examples * batch_size
        cells = tenths[drawn] + 10 * torch.arange(number)[:, None]
        came = cells.flatten().bincount(minlength=10 * number).view(-1, 10).double()
        # the variance is at least that of chance
        mean, variance = came.mean(0), came.var(0) + sizes
        off = (mean - sizes).abs()
        odd = (off > 0.1 * sizes) & (off > 7 * (variance / number).sqrt())
        for place in odd.nonzero().flatten().tolist():
            ratio = float(mean[place] / sizes[place])
            found[abs(ratio - 1)] = (
                f"of the tenths of the examples by {name}, from the least, number "
                f"{place + 1} comes {ratio:.2f} times as often as it should"
            )
    expected = drawn.numel() / num_examples  # the count of each example
    counts = drawn.flatten().bincount(minlength=num_examples).double()
    # Chernoff's inequality bounds a count's tail, for a sum of independent variables 0
    # and 1.
    tail = torch.special.xlogy(counts, counts / expected) - counts + expected
    place = int(tail.argmax())
    if tail.max() > math.log(1e7 * num_examples):
        found[0.0] = (
            f"example {place} came {int(counts[place])} times in {number} minibatches, "
            f"where {expected:.3g} are expected"
        )
    if found:
        raise ValueError(
            f"minibatches: {type(rule).__name__}.indices does not choose the examples "
            f"uniformly, and N/n is no right scale then: {found[max(found)]}. Choose "
            "each equally often; what shall weigh more gets a weight in the likelihood"
        )


def few_examples(posterior: Any) -> Batch:
    """Gather some examples from all over the data, tensors ``(1, m, ...)``, on which a
    check of the model costs little (:func:`spread`); None without data.
    """
    if not isinstance(posterior, DataPotential):
        return ()
    most = max(4, min(32, posterior.batch_size or posterior.num_examples))
    chosen = spread(posterior.data, most).to(posterior.data[0].device)
    return tuple(x.index_select(0, chosen)[None] for x in posterior.data)


def on_few_examples(potential: Any) -> Potential:
    """Return a potential of the same form on which a check of the model costs little:
    if it has data, with some examples from all over them.
    """
    few = few_examples(potential)
    return OnBatch(potential, few, 1.0) if few else potential


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
