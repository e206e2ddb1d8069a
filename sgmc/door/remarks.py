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
from sgmc.potentials import Potential
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
        >>> remark_stuck(torch.zeros(3, 2), end, 100)[0][:27]
        'chains [0, 2] never moved: '
    """
    still = (end == start).all(-1)
    told = f"{name_chains(still)} never moved: their draws are worth nothing. Take a "
    told += "smaller step_size, or another start [never-moves]"
    return [told] * (num_steps >= MANY and bool(still.any()))


def remark_disagreement(samples: dict[str, Tensor]) -> list[str]:
    """Report where chains disagree, in place or in width: R̂ > 1.1, or 1.5 with fewer
    than a hundred samples, and for the halves of one chain alone, which are compared
    from a hundred samples on.

    R̂ is that of the values or, if larger, of their distances from the mean, which sees
    widths that differ (Vehtari et al., 2021, who fold about the median).

    Args:
        samples: draws by name, ``(num_samples, chains, ...)``; the name may be empty.

    Example:
        >>> stay = torch.tensor([0.0, 5.0, 0.0]) + torch.randn(
        ...     200, 3, generator=torch.Generator().manual_seed(0)
        ... )
        >>> remark_disagreement({"": stay})[0][:53]
        'the chains do not agree: R̂ is 2.72 in coordinate 0 o'
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
        if size > limit:
            who = "halves of the chain" if alone else "chains"
            means = values[..., place].mean(0)
            found.append(
                f"the {who} do not agree: R̂ is {size:.2f} in coordinate {place} of "
                f"{name or 'the samples'}, and over {limit} in "
                f"{int((shrink > limit).sum())} of {len(shrink)}. Means there are from "
                f"{float(means.min()):.3g} in chain {int(means.argmin())} to "
                f"{float(means.max()):.3g} in chain {int(means.argmax())}: they have "
                f"not arrived, or stay in modes. {LONGER} [chains-disagree]"
            )
    return found


def name_chains(which: Tensor) -> str:
    """Name the chains that a mask ``(chains,)`` chooses, at most five of them.

    Example:
        >>> name_chains(torch.ones(9, dtype=torch.bool))
        'chains [0, 1, 2, 3, 4] and 4 more'
    """
    names = which.nonzero()[:, 0].tolist()
    if len(names) == 1:
        return f"chain {names[0]}"
    return f"chains {names[:5]}" + f" and {len(names) - 5} more" * (len(names) > 5)


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
        f"the samples are too wide, and grow without end, {grown:.3g}-fold in the "
        "second half of the run, and in each tenth of it: take a smaller step_size; or "
        "the sign may be wrong, or a prior missing [diverges]"
    ]


def remark_target(
    kernel: Kernel, potential: Potential, samples: Tensor, seed: int
) -> list[str]:
    """Report whether the second half of a run's samples ``(num_samples, chains, dim)``
    grows, left the support of its target, or is too wide or too narrow for it, by at
    most two hundred further gradients.

    Example:
        >>> from sgmc.kernels import SGLD
        >>> from sgmc.targets import Gaussian
        >>> growing = torch.arange(1.0, 201).view(200, 1, 1).expand(200, 4, 2) ** 2
        >>> found = remark_target(SGLD(0.1), Gaussian.standard(2), growing, seed=0)
        >>> found[0][:24]
        'the samples are too wide'
    """
    from sgmc.diagnostics import virial_products
    from sgmc.door._models import attempt, on_few_examples

    half = samples[len(samples) // 2 :]
    chosen = half[torch.linspace(0, len(half) - 1, min(len(half), 100)).long()]
    if found := remark_growth(chosen):
        return found
    seed = derived_seed(seed, "fresh minibatches")
    generator = Generator(samples.device).manual_seed(seed)
    few = on_few_examples(potential)
    near = [theta for theta in chosen[::4] if theta.square().sum().isfinite()]
    # The potential may have no energy, or no gradient.
    outside = attempt(lambda: [~few.energy(theta).isfinite() for theta in near]) or []
    if any(each.any() for each in outside):
        share = float(torch.stack(outside).double().mean())
        return [
            f"the energy is not finite in {share:.0%} of the samples: chains left the "
            "support of the density, where no gradient holds them, or it grows without "
            "end, and its sign may be wrong, or a prior missing. Sample a parameter "
            "without bounds, as a logarithm, or take NUTS, which rejects [outside]"
        ]
    temperature = kernel.target_temperature()
    if temperature is None or chosen[..., 0].numel() < LEAST:
        return []
    products = attempt(virial_products, potential, chosen, generator, temperature)
    if products is None:
        return []
    cause = partial(noise_cause, kernel, potential, chosen[-1], generator)
    if found := remark_virial(products, chosen, cause):
        return found
    why, hot = cause(None)
    # the noise of an epoch nearly cancels
    hot = hot and rule_order(potential) != "passes"
    return [f"the samples are too wide: {why} [too-wide]"] * hot


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
    size, remedy = "wide", cause(place)[0] or "Halve the step_size, and compare"
    if mean < 1:
        size, remedy = "narrow", f"{LONGER}; then halve the step_size, and compare"
    if not mean >= -error:  # NaN means that it has grown beyond all numbers
        remedy = "U falls outwards: the sign may be wrong, or a prior missing"
    told = f"the samples are too {size}{where}: the mean of (θ − c)·∂U(θ)/T is "
    told += f"{mean:.3g} ± {error:.1g}, where exp(−U/T) has 1. {remedy}"
    return [f"{told} [too-{size}]"]


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

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> noisy, kernel = NoisyGradient(Gaussian.standard(1), 40.0), SGHMC(0.1, 0.5)
        >>> why, must = noise_cause(kernel, noisy, torch.zeros(4, 1), Generator(), None)
        >>> why[:45]
        '½εV̂, the noise of the gradients, is about 2,'
        >>> must  # ½εV = 2 is more than twice the friction
        True
    """
    step_size, friction = (getattr(kernel, x, None) for x in ("step_size", "friction"))
    if not isinstance(step_size, float) or friction is None:
        return "", False
    kind = "scalar" if place is None else "diagonal"
    from sgmc.door._models import attempt

    given = position, generator, kind
    found = attempt(potential.gradient_and_noise_variance, *given)
    if found is None:  # the potential may not estimate its noise
        return "", False

    def entry(matrix: Any) -> float:
        tensor = Matrix(matrix).tensor
        each = tensor.diagonal() if tensor.ndim == 2 else tensor
        each = each.expand(position.shape[1])
        return float(each.mean() if place is None else each[place])

    noise = 0.5 * step_size * entry(found[1].mean(0))
    # B̂ may be up to TC.
    friction = entry(friction) * getattr(kernel, "temperature", 1.0)
    estimate: Any = getattr(kernel, "noise_estimate", OnlineNoise())
    known = noise if isinstance(estimate, OnlineNoise) else entry(estimate)
    if noise <= friction and noise <= 1.25 * known:
        return "", False
    told = f"½εV̂, the noise of the gradients, is about {noise:.2g}, the noise_estimate "
    told += f"{known:.2g} and the friction {friction:.2g}: give this estimate, or "
    told += "OnlineNoise(), and more friction, or a smaller step_size or larger batch"
    return told, noise > 2 * friction


def remark_order(kernel: Kernel, potential: Potential) -> list[str]:
    """Report whether a kernel subtracts the noise of independent minibatches although
    its rule chooses minibatches by the previous ones.

    Example:
        >>> from sgmc.kernels import SGHMC
        >>> from sgmc.minibatches import Passes
        >>> from sgmc.posteriors import LinearRegression
        >>> data = torch.ones(6, 1), torch.ones(6)
        >>> posterior = LinearRegression(*data, batch_size=2, minibatches=Passes())
        >>> (found,) = remark_order(SGHMC(0.1, 3.0, noise_estimate=1.0), posterior)
        >>> "the samples are too narrow" in found
        True
    """
    kernel = getattr(kernel, "kernel", kernel)  # the kernel may be inside Gibbs
    estimate: Any = getattr(kernel, "noise_estimate", 0.0)
    given = isinstance(estimate, OnlineNoise) or bool(Matrix(estimate).tensor.any())
    told = {
        "passes": "errors within an epoch nearly cancel: the samples are too narrow. "
        "Leave noise_estimate at 0, or take Fresh() [too-narrow]",
        "holds": "the errors of steps with one minibatch add up: the samples are too "
        "wide. Take Fresh() [too-wide]",
    }.get(rule_order(potential) if given else "")
    name = type(getattr(potential, "minibatches", None)).__name__
    subtracts = "noise_estimate subtracts the noise of independent minibatches, but by"
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
