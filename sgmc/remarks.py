"""What the samples of a run say against it, whatever the kernel: chains that stand
still, do not agree, left the support, or are too wide or too narrow for their target.
"""

import torch
from scipy.special import stdtrit
from torch import Generator, Tensor

from sgmc.kernels.base import Kernel
from sgmc.matrices import Matrix
from sgmc.noise import OnlineNoise
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed

# steps of a chain that stands still, samples of one alone; samples of one that is
# compared with others, or whose width is looked at
MANY, LEAST = 100, 20
# of R̂ (Gelman and Rubin, 1992), for many samples, and for few or for one chain
LIMIT, COARSE = 1.1, 1.5
# of the virial ratio: how far from 1 it may be; how often chance alone may take it
# further, which is that of five standard deviations; stretches of a chain
OFF, FALSE_ALARMS, PARTS = 0.2, 5.7e-7, 10
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
    if num_steps < MANY or not still.any():
        return []
    return [
        f"{name_chains(still)} never moved: a smaller step_size, or another start, "
        "may help; the draws are worth nothing there"
    ]


def remark_disagreement(
    samples: dict[str, Tensor], start: Tensor | None = None
) -> list[str]:
    """Say where chains disagree, in place or in width, and whether they stay in
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
        >>> remark_disagreement({"": stay})[0][:77]
        'the chains do not agree: R̂ is 2.72 in the samples. Chain 1 stays around 5.05'
    """
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
        place = int(shrink.argmax())
        if not shrink[place] > limit:
            continue
        where = repr(name) if name else "the samples"
        if len(shrink) > 1:
            number = int((shrink > limit).sum())
            where = f"coordinate {place} of {where}"
            where += f", and over {limit} in {number} of {len(shrink)}"
        if alone:
            who, cause = "halves of the chain", f"It has not arrived. {LONGER}"
        else:
            begun = None if start is None else start[:, place]
            who, cause = "chains", _separate(values[..., place], begun)
        size = float(shrink[place])
        found.append(f"the {who} do not agree: R̂ is {size:.2f} in {where}. {cause}")
    return found


def split_r_hat(values: Tensor) -> Tensor:
    """Compute R̂ of chains cut into halves (Gelman et al., 2013, eq. 11.4), for many
    coordinates at once.

    With B/n the variance of the halves' means and W the mean of their variances, n
    draws each, R̂² = (n − 1)/n + (B/n)/W. ArviZ, which has it too, is an extra.

    Args:
        values: ``(num_samples, chains, k)``.

    Returns:
        ``(k,)``; NaN where nothing moves.

    Example:
        >>> split_r_hat(
        ...     torch.tensor([1.0, 3.0, 5.0, 7.0])[:, None, None]
        ... )  # halves 1, 3 and 5, 7: √(1/2 + 8/2)
        tensor([2.1213])
    """
    n = len(values) // 2
    halves = torch.stack([values[:n], values[-n:]])
    within = halves.var(1).mean((0, 1))
    between = halves.mean(1).flatten(0, 1).var(0)
    return ((n - 1) / n + between / within).sqrt()


def _separate(values: Tensor, start: Tensor | None) -> str:
    """Say which chains ``(num_samples, chains)`` stay in one place and which in
    another, if there is a gap between them, and whether they are still near their
    starts ``(chains,)``; else what may help."""
    means = values.mean(0)
    near = start is not None and (means - start).square().mean() < 0.1 * start.var()
    ordered = means.sort().values
    gap, last = ordered.diff().max(0)
    if not gap > 3 * values.var(0).mean().sqrt():
        return "They are still near their starts. " * bool(near) + LONGER
    few = means <= ordered[last]
    few = few if 2 * few.sum() <= len(few) else ~few
    names, stay = name_chains(few), "stays" if few.sum() == 1 else "stay"
    cause = (
        "these are separate modes, whose weights such chains cannot tell, or some have "
        "not arrived"
    )
    if near:
        cause = (
            "all are still near their starts, in modes of their own or because they "
            "move slowly: compare with a longer warm_up and a larger step_size"
        )
    return (
        f"{names.capitalize()} {stay} around {float(means[few].mean()):.3g}, and the "
        f"others around {float(means[~few].mean()):.3g}: {cause}"
    )


def name_chains(which: Tensor) -> str:
    """Name the chains that a mask ``(chains,)`` chooses, at most five of them.

    Example:
        >>> name_chains(torch.ones(9, dtype=torch.bool))
        'chains 0, 1, 2, 3, 4 and 4 others'
    """
    numbers = which.nonzero()[:, 0].tolist()
    names, more = [str(number) for number in numbers[:5]], len(numbers) - 5
    if more > 0:
        names.append(f"{more} other{'s' * (more > 1)}")
    *first, last = names
    return f"chains {', '.join(first)} and {last}" if first else f"chain {last}"


def virial_ratio(
    potential: Potential,
    samples: Tensor,
    generator: Generator,
    temperature: float = 1.0,
) -> Tensor:
    """Compute (θ − c)·∇Ũ(θ)/(T·dim) at samples, whose mean is 1 under exp(−U/T) by the
    virial theorem, for every c.

    An integration by parts gives E[(θ − c)·∇U(θ)] = T·dim wherever ‖θ‖·exp(−U/T)
    vanishes at the border of the support and at infinity, and so for an unbiased
    stochastic gradient that is independent of θ; not for a density that is cut off
    where it is not zero. For a Gaussian it is the mean of the variances, each in units
    of its right value.

    The centre c must not depend on the sample it is used for: it is the mean of the
    other chains, or of the other half of a single one.

    Args:
        potential: the target.
        samples: θ, ``(num_samples, chains, dim)``.
        generator: the source of fresh minibatches, one for each sample.
        temperature: the temperature T.

    Returns:
        ``(num_samples, chains)``.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> generator = Generator().manual_seed(0)
        >>> draws = 2 * torch.randn(100, 4, 50, generator=generator)
        >>> ratio = virial_ratio(Gaussian.standard(50), draws, generator)
        >>> 3.9 < float(ratio.mean()) < 4.1  # their variance is 4
        True
    """
    number, chains, dim = samples.shape
    if chains > 1:
        means = samples.mean(0)
        centres = [(means.sum(0) - means) / (chains - 1)] * number
    else:
        half = number // 2
        first, second = samples[:half].mean(0), samples[half:].mean(0)
        centres = [second] * half + [first] * (number - half)
    products = []
    for theta, centre in zip(samples, centres, strict=True):
        minibatch = potential.fresh_minibatch(theta, generator)
        gradient = potential.gradient_given(theta.clone(), minibatch)
        products.append(((theta - centre) * gradient).sum(-1))
    return torch.stack(products) / (temperature * dim)


def mean_and_error(values: Tensor) -> tuple[float, float, int]:
    """Compute the mean of a statistic ``(num_samples, chains)``, its standard error
    from the means of stretches, some forty in all and at most ten of a chain, and the
    degrees of freedom of this.

    Example:
        >>> mean_and_error(torch.arange(20.0)[:, None])[::2]
        (9.5, 9)
    """
    number, chains = values.shape
    parts = max(1, min(PARTS, 40 // chains))
    length = number // parts
    stretches = values[: parts * length].double().view(parts, length, chains)
    means = stretches.mean(1).flatten()
    return float(means.mean()), float(means.std() / len(means) ** 0.5), len(means) - 1


def remark_target(
    kernel: Kernel, potential: Potential, samples: Tensor, seed: int
) -> list[str]:
    """Say if the second half of a run's samples ``(num_samples, chains, dim)`` left the
    support of its target, or is too wide or too narrow for it, by at most a hundred
    further gradients."""
    half = samples[len(samples) // 2 :]
    chosen = half[torch.linspace(0, len(half) - 1, min(len(half), 100)).long()]
    seed = derived_seed(seed, "fresh minibatches")
    generator = Generator(samples.device).manual_seed(seed)
    with torch.no_grad():
        try:
            few = potential.of_few_examples()
            near = [theta for theta in chosen[::4] if theta.square().sum().isfinite()]
            outside = [~few.energy(theta).isfinite() for theta in near]
        except (ArithmeticError, ValueError, RuntimeError):
            outside = []  # a potential without an energy
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
        if temperature is None or len(half) < LEAST:
            return []
        try:
            ratios = virial_ratio(potential, chosen, generator, temperature)
        except (ArithmeticError, ValueError, RuntimeError):
            return []  # a potential without a gradient
        cause, hot = noise_cause(kernel, potential, chosen[-1], generator)
    return remark_virial(ratios, cause) or [f"the samples are too wide: {cause}"] * hot


def remark_virial(values: Tensor, cause: str = "") -> list[str]:
    """Say if the ratios ``(num_samples, chains)`` of :func:`virial_ratio` are off by
    more than a fifth, and by more than chance explains in one run of two million.

    Example:
        >>> hot = 4 + torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
        >>> print(remark_virial(hot)[0][:67])
        the samples are too wide: the mean of (θ − c)·∇U(θ)/(T·dim) is 4.06
    """
    mean, error, freedom = mean_and_error(values)
    limit = -float(stdtrit(freedom, FALSE_ALARMS / 2)) * error
    if mean == mean and abs(mean - 1) <= max(OFF, limit):
        return []
    size, remedy = "wide", cause or "Halve the step_size, and compare"
    if mean < 1:
        size, remedy = "narrow", f"{LONGER}; then halve the step_size, and compare"
    if not mean >= -error:  # NaN where it has grown beyond all numbers
        remedy = "U falls outwards: the sign may be wrong, or a prior missing"
    return [
        f"the samples are too {size}: the mean of (θ − c)·∇U(θ)/(T·dim) is "
        f"{mean:.3g} ± {error:.1g}, where samples of exp(−U/T) have 1. {remedy}"
    ]


def noise_cause(
    kernel: object, potential: Potential, position: Tensor, generator: Generator
) -> tuple[str, bool]:
    """Say what a minibatch at a position ``(chains, dim)`` tells of a kernel's friction
    and fixed noise estimate, if samples are too wide; and whether they must be, for the
    noise is twice the friction."""
    step_size, friction = (getattr(kernel, x, None) for x in ("step_size", "friction"))
    if not isinstance(step_size, float) or friction is None:
        return "", False
    look = potential.gradient_and_noise_variance
    try:
        variance = look(position, generator, "scalar")[1]
    except (ValueError, RuntimeError):  # a potential that does not know its noise
        return "", False
    noise, friction = 0.5 * step_size * float(variance.mean()), Matrix(friction).mean
    friction *= getattr(kernel, "temperature", 1.0)  # B̂ may be up to TC
    found = f"½εV̂, the noise of the gradients, is about {noise:.2g}, "
    if noise > friction:
        found += f"more than the friction, {friction:.2g}: raise the friction, or take "
        return found + "a smaller step_size or a larger batch", noise > 2 * friction
    estimate = getattr(kernel, "noise_estimate", OnlineNoise())
    known = noise if isinstance(estimate, OnlineNoise) else Matrix(estimate).mean
    if noise <= 1.25 * known:
        return "", False
    found += f"and the noise_estimate {known:.2g}: give this one, which depends on "
    return found + "step_size and batch size, or OnlineNoise()", False
