"""Warnings about samples, whatever the kernel: chains that stand still, do not agree,
grow, left the support, or are too wide or too narrow for their target; and before a
run, that a noise estimate does not suit its minibatches.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.kernels.base import Kernel
from sgmc.matrices import Matrix
from sgmc.noise import OnlineNoise
from sgmc.potentials import ERRORS, Potential
from sgmc.randomness import derived_seed

# So many steps show that a chain stands still, and so many samples judge one chain
# alone; so many samples suffice to compare chains, or to measure their width.
MANY, LEAST = 100, 20
# R̂ (Gelman and Rubin, 1992) may be at most the first with many samples, and the
# second with few samples or one chain.
LIMIT, COARSE = 1.1, 1.5
# A run or a chain is cut into so many parts, and its steps may grow so much from the
# first to the last.
PARTS, GROWN = 10, 10.0
_CHAINS = 20  # the number of chains in which a minibatch rule is checked
LONGER = "Take more samples, a longer warm_up, or a kernel that moves further"


def remark_stuck(start: Tensor, end: Tensor, num_steps: int) -> list[str]:
    """Name the chains that after a hundred steps or more ended ``(chains, dim)`` where
    they started.

    Example:
        >>> end = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
        >>> remark_stuck(torch.zeros(3, 2), end, 100)[0][:48]
        'chains 0 and 2 never moved: a smaller step_size,'
    """
    still = (end == start).all(-1)
    told = "never moved: a smaller step_size, or another start, may help; the draws are"
    found = num_steps >= MANY and bool(still.any())
    return [f"{name_chains(still)} {told} worth nothing there"] if found else []


def remark_disagreement(
    samples: dict[str, Tensor], start: Tensor | None = None
) -> list[str]:
    """Report where chains disagree, in place or in width, and whether they stay in
    separate places: R̂ > 1.1, or 1.5 with fewer than a hundred samples, and for the
    halves of one chain alone, which are compared from a hundred samples on.

    R̂ is that of the values or, if larger, of their distances from the mean, which sees
    widths that differ (Vehtari et al., 2021, who fold about the median).

    Args:
        samples: draws by name, ``(num_samples, chains, ...)``; the name may be empty.
        start: where the chains started, ``(chains, dim)``, if the samples are
            positions.

    Example:
        >>> stay = torch.tensor([0.0, 5.0, 0.0]) + torch.randn(
        ...     200, 3, generator=torch.Generator().manual_seed(0)
        ... )
        >>> remark_disagreement({"": stay})[0][:79]
        'the chains do not agree: R̂ is 2.72 in the samples. The mean of chain 1 is 5.05'
    """
    from sgmc.diagnostics import split_r_hat

    found = []
    for name, values in samples.items():
        alone, many = values.shape[1] == 1, len(values) >= MANY
        few = len(values) < LEAST or (alone and not many)
        if few or not values.is_floating_point():
            continue
        limit = LIMIT if many and not alone else COARSE
        values = values.flatten(2) if values.ndim > 2 else values[..., None]
        widths = (values - values.mean((0, 1))).abs_()
        shrink = torch.stack([split_r_hat(values), split_r_hat(widths)])
        shrink = shrink.nan_to_num(nan=1.0, posinf=torch.inf).amax(0)
        size, place = float(shrink.max()), int(shrink.argmax())
        if not size > limit:
            continue
        where = repr(name) if name else "the samples"
        if len(shrink) > 1:
            number = f"{int((shrink > limit).sum())} of {len(shrink)}"
            where = f"coordinate {place} of {where}, and over {limit} in {number}"
        who, cause = "halves of the chain", f"It has not arrived. {LONGER}"
        if not alone:
            begun = None if start is None else start[:, place]
            who, cause = "chains", _separate(values[..., place], begun)
        found.append(f"the {who} do not agree: R̂ is {size:.2f} in {where}. {cause}")
    return found


def _separate(values: Tensor, start: Tensor | None) -> str:
    """Report which chains ``(num_samples, chains)`` stay in one place and which in
    another, if there is a gap between them, whether they are still near their starts
    ``(chains,)``, and what may help.
    """
    means, where = values.mean(0), ""
    gap, last = means.sort().values.diff().max(0)
    if gap > 3 * values.var(0).mean().sqrt():
        few = means <= means.sort().values[last]
        few = few if 2 * few.sum() <= len(few) else ~few
        here, there = (float(means[each].mean()) for each in (few, ~few))
        where = f"The mean of {name_chains(few)} is {here:.3g}, and that of the others "
        where += f"{there:.3g}: "
    if start is not None and (means - start).square().mean() < 0.1 * start.var():
        where += "they are still near their starts, as in modes or with a small "
        where += "step_size. "
    elif where:
        where += "separate modes, whose weights such chains cannot tell, or some have "
        where += "not arrived. "
    return where + LONGER


def name_chains(which: Tensor) -> str:
    """Name the chains that a mask ``(chains,)`` chooses, at most five of them.

    Example:
        >>> name_chains(torch.ones(9, dtype=torch.bool))
        'chains 0, 1, 2, 3, 4 and 4 others'
    """
    names = [str(number) for number in which.nonzero()[:, 0].tolist()]
    if (more := len(names) - 5) > 0:
        names[5:] = [f"{more} other{'s' * (more > 1)}"]
    *first, last = names
    return f"chains {', '.join(first)} and {last}" if first else f"chain {last}"


def remark_growth(samples: Tensor) -> list[str]:
    """Report whether chains ``(num_samples, chains, dim)`` grow without end: the
    distances from one sample to the next are longer in every tenth of the run than in
    the one before, and in the last more than ten times as long as in the first.

    Distances are those of the coordinate and chain that move farthest, on a logarithmic
    scale, so that no value dominates, and of neighbouring samples, whose width does not
    grow where a chain is slow. If tenths are alike, one order of them in 10! = 3.6
    million is this one.

    Example:
        >>> remark_growth(torch.randn(100, 4, 1).cumsum(0))  # a random walk
        []
        >>> steps = 1.1 ** torch.arange(100.0) * torch.randn(4, 1, 100)
        >>> remark_growth(steps.permute(2, 0, 1))[0][:45]
        'the samples are too wide, and grow without en'
    """
    steps = [float((new - old).abs().max()) for old, new in pairwise(samples)]
    if len(steps) < PARTS:
        return []
    tenths = torch.tensor(steps, dtype=torch.float64).log().tensor_split(PARTS)
    sizes = torch.stack([each.mean() for each in tenths])
    grown = float((sizes[-1] - sizes[0]).exp())
    if not (grown > GROWN and (sizes.diff() > 0).all()):
        return []
    return [
        "the samples are too wide, and grow without end: in the second half of the run "
        f"the distance from one to the next grew {grown:.3g}-fold, and in each tenth "
        "of it. Take a smaller step_size; or the sign may be wrong, or a prior missing"
    ]


def remark_target(
    kernel: Kernel, potential: Potential, samples: Tensor, seed: int
) -> list[str]:
    """Report whether the second half of a run's samples ``(num_samples, chains, dim)``
    grows, left the support of its target, or is too wide or too narrow for it, by at
    most two hundred further gradients.
    """
    from sgmc.diagnostics import virial_products

    half = samples[len(samples) // 2 :]
    chosen = half[torch.linspace(0, len(half) - 1, min(len(half), 100)).long()]
    if found := remark_growth(chosen):
        return found
    seed = derived_seed(seed, "fresh minibatches")
    generator = Generator(samples.device).manual_seed(seed)
    from sgmc.door._models import on_few_examples

    with torch.no_grad():
        try:
            few = on_few_examples(potential)
            near = [theta for theta in chosen[::4] if theta.square().sum().isfinite()]
            outside = [~few.energy(theta).isfinite() for theta in near]
        except ERRORS:
            outside = []  # the potential may have no energy
        if any(each.any() for each in outside):
            share = float(torch.stack(outside).double().mean())
            return [
                f"the energy is not finite in {share:.0%} of the samples: the chains "
                "left the support of the density, where no gradient holds them, or "
                "it grows without end, and its sign may be wrong, or a prior missing. "
                "Sample a parameter without bounds, such as a logarithm, or take a "
                "kernel that rejects, such as NUTS"
            ]
        temperature = kernel.target_temperature()
        if temperature is None or chosen[..., 0].numel() < LEAST:
            return []
        try:
            products = virial_products(potential, chosen, generator, temperature)
        except ERRORS:
            return []  # the potential may have no gradient
        cause = partial(noise_cause, kernel, potential, chosen[-1], generator)
        if found := remark_virial(products, chosen, cause):
            return found
        why, hot = cause(None)
    # the noise of an epoch nearly cancels
    hot = hot and rule_order(potential) != "passes"
    return [f"the samples are too wide: {why}"] * hot


def remark_virial(
    products: Tensor,
    samples: Tensor,
    cause: Callable[[int | None], tuple[str, bool]] = lambda place: ("", False),
) -> list[str]:
    """Report whether the means of :func:`sgmc.diagnostics.virial_products`
    ``(num_samples, chains, dim)`` are off, over all coordinates or in some, and name
    the worst.

    Both looks together give a false alarm in one run of a million.

    Args:
        products: of some samples.
        samples: these, of the same shape.
        cause: gives :func:`noise_cause` in a coordinate or, for None, in all.

    Example:
        >>> hot = torch.ones(100, 4, 50) + torch.randn(
        ...     100, 4, 50, generator=Generator().manual_seed(0)
        ... )
        >>> hot[..., 7] += 3
        >>> print(remark_virial(hot, hot)[0][:59])
        the samples are too wide in coordinate 7, as 1 of 50: the m
    """
    from sgmc.diagnostics import ratios

    dim, place, where = products.shape[-1], None, ""
    (mean,), (error,), (off,) = ratios(products.mean(-1, keepdim=True))
    if dim > 1:
        means, errors, each = ratios(products, samples)
        number = int(each.sum())
        if number > 0 and (number <= dim / 2 or not off):
            place = int(torch.where(each, (means - 1).abs(), -1).argmax())
            mean, error, off = means[place], errors[place], True
            where = f" in coordinate {place}, as {number} of {dim}"
    if not off:
        return []
    what = "(θ − c)·∇U(θ)/(T·dim)" if place is None else "(θ − c)·∂U(θ)/T"
    size, remedy = "wide", cause(place)[0] or "Halve the step_size, and compare"
    if mean < 1:
        size, remedy = "narrow", f"{LONGER}; then halve the step_size, and compare"
    if not mean >= -error:  # NaN means that it has grown beyond all numbers
        remedy = "U falls outwards: the sign may be wrong, or a prior missing"
    return [
        f"the samples are too {size}{where}: the mean of {what} is {mean:.3g} ± "
        f"{error:.1g}, where samples of exp(−U/T) have 1. {remedy}"
    ]


def noise_cause(
    kernel: object,
    potential: Potential,
    position: Tensor,
    generator: Generator,
    place: int | None,
) -> tuple[str, bool]:
    """Report what a minibatch at a position ``(chains, dim)`` shows of a kernel's
    friction and fixed noise estimate in a coordinate, or averaged over all, if samples
    are too wide; and whether they must be, because the noise is twice the friction.
    """
    step_size, friction = (getattr(kernel, x, None) for x in ("step_size", "friction"))
    if not isinstance(step_size, float) or friction is None:
        return "", False
    kind = "scalar" if place is None else "diagonal"
    try:
        variance = potential.gradient_and_noise_variance(position, generator, kind)[1]
    except ERRORS:  # the potential may not estimate its noise
        return "", False

    def entry(matrix: Any) -> float:
        tensor = Matrix(matrix).tensor
        diagonal = tensor.diagonal() if tensor.ndim == 2 else tensor
        each = diagonal.expand(position.shape[1])
        return float(diagonal.mean() if place is None else each[place])

    noise = 0.5 * step_size * entry(variance.mean(0))
    # B̂ may be up to TC.
    friction = entry(friction) * getattr(kernel, "temperature", 1.0)
    estimate: Any = getattr(kernel, "noise_estimate", OnlineNoise())
    known = noise if isinstance(estimate, OnlineNoise) else entry(estimate)
    advice = f"and the noise_estimate {known:.2g}: give this one, which depends on "
    advice += "step_size and batch size, or OnlineNoise()"
    if noise > friction:
        advice = f"more than the friction, {friction:.2g}: raise the friction, or take "
        advice += "a smaller step_size or a larger batch"
    elif noise <= 1.25 * known:
        return "", False
    told = f"½εV̂, the noise of the gradients, is about {noise:.2g}, {advice}"
    return told, noise > 2 * friction


def remark_order(kernel: Kernel, potential: Potential) -> list[str]:
    """Report whether a kernel subtracts the noise of independent minibatches although
    its rule chooses minibatches by the previous ones.
    """
    kernel = getattr(kernel, "kernel", kernel)  # the kernel may be inside Gibbs
    estimate: Any = getattr(kernel, "noise_estimate", 0.0)
    given = isinstance(estimate, OnlineNoise) or bool(Matrix(estimate).tensor.any())
    told = {
        "passes": "goes through the data in order, so that errors within an epoch "
        "nearly cancel: the chain is too cold, and the samples are too narrow. Leave "
        "noise_estimate at 0, or take Fresh()",
        "holds": "gives steps the minibatch of the one before, whose error stays and "
        "adds up: the samples are too wide by more than B̂ takes out. Take Fresh()",
    }.get(rule_order(potential) if given else "")
    name = type(getattr(potential, "minibatches", None)).__name__
    subtracts = "noise_estimate subtracts the noise of independent minibatches, but"
    return [f"{subtracts} {name} {told}"] if told else []


def rule_order(potential: Any) -> str:
    """Tell whether a potential's minibatch rule ``"passes"`` through the data, so that
    no example returns for a while, or ``"holds"`` a minibatch for several steps; else,
    or if it has no rule, the word is empty.

    It is seen in the first steps of twenty chains, so many that among independent
    minibatches each chain would have an example twice, on average once or more: chance
    alone makes an order in less than one of a hundred million rules.

    Example:
        >>> from sgmc.minibatches import Held, Passes
        >>> from sgmc.posteriors import LinearRegression
        >>> def regression(rule):
        ...     data = torch.ones(40, 1), torch.ones(40)
        ...     return LinearRegression(*data, batch_size=4, minibatches=rule)
        >>> [rule_order(regression(rule)) for rule in (Passes(), Held(3), None)]
        ['passes', 'holds', '']
    """
    rule: Any = getattr(potential, "minibatches", None)
    if rule is None or getattr(potential, "takes_all_data", True):
        return ""
    number, size = potential.num_examples, potential.batch_size
    steps = min(number // size, math.ceil((2 * number) ** 0.5 / size) + 1)
    drawn = [rule.indices(number, size, _CHAINS, 0, k) for k in range(max(2, steps))]
    ordered = torch.cat(drawn, 1).sort().values
    if (ordered.diff() > 0).all():
        return "passes"
    same = torch.equal(drawn[0].sort().values, drawn[1].sort().values)
    return "holds" if same else ""
