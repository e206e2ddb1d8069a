"""Statistics that tell whether samples are right: R̂ of chains, and the width that the
virial theorem gives, with its variation by chance.
"""

import math

import torch
from scipy.special import ndtri, stdtrit
from torch import Generator, Tensor

from sgmc.door.remarks import LEAST, LIMIT, PARTS
from sgmc.potentials import Potential

# A virial ratio may be off from 1 by the first; chance alone takes it further with the
# probability of the second, that of five standard deviations.
OFF, FALSE_ALARMS = 0.2, 5.7e-7
FAR = 10.0  # a ratio beyond it is reported whatever its error is


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


def virial_products(
    potential: Potential,
    samples: Tensor,
    generator: Generator,
    temperature: float = 1.0,
) -> Tensor:
    """Compute (θ − c)·∂Ũ(θ)/T of every coordinate at samples; under exp(−U/T) its mean
    is 1 by the virial theorem, for every c.

    An integration by parts gives E[(θ − c)·∂U(θ)] = T wherever θ·exp(−U/T) vanishes at
    the border of the support and at infinity, and so for an unbiased stochastic
    gradient that is independent of θ; not for a density that is cut off where it is not
    zero. For a Gaussian, averaged over coordinates, it is the mean of the variances,
    each in units of its right value.

    The centre c must not depend on the sample it is used for: it is the mean of the
    other chains, or of the other half of a single one. The gradient at c of the same
    minibatch, less its average over all, is a control variate: most of the noise is the
    same at both places, and its average times θ − c is zero.

    Args:
        potential: the target.
        samples: θ, ``(num_samples, chains, dim)``.
        generator: the source of fresh minibatches, one for each sample, which is seen
            at θ and at c.
        temperature: the temperature T.

    Returns:
        ``(num_samples, chains, dim)``.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> samples = torch.tensor([[[-1.0], [1.0]], [[1.0], [-1.0]]])
        >>> products = virial_products(Gaussian.standard(1), samples, Generator())
        >>> products.mean()  # the variance of the samples, in units of the target's
        tensor(1.)
    """

    def about(samples: Tensor, centre: Tensor) -> Tensor:
        products, level = torch.empty_like(samples), torch.zeros_like(centre)
        for k, theta in enumerate(samples):
            minibatch = potential.fresh_minibatch(theta, generator)
            gradient = potential.gradient_given(theta.clone(), minibatch)
            if minibatch is not None:
                there = potential.gradient_given(centre.clone(), minibatch)
                there = torch.where(there.isfinite(), there, 0)
                gradient, level = gradient - there, level + there / len(samples)
            products[k] = (theta - centre) * gradient
        return (products + (samples - centre) * level) / temperature

    if samples.shape[1] > 1:
        means = samples.mean(0)
        return about(samples, (means.sum(0) - means) / (len(means) - 1))
    first, second = samples.tensor_split(2)
    return torch.cat([about(first, second.mean(0)), about(second, first.mean(0))])


def virial_ratio(
    potential: Potential,
    samples: Tensor,
    generator: Generator,
    temperature: float = 1.0,
) -> Tensor:
    """Compute (θ − c)·∇Ũ(θ)/(T·dim) at samples ``(num_samples, chains, dim)``, the mean
    of :func:`virial_products` over coordinates: → ``(num_samples, chains)``.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> generator = Generator().manual_seed(0)
        >>> draws = 2 * torch.randn(100, 4, 50, generator=generator)
        >>> ratio = virial_ratio(Gaussian.standard(50), draws, generator)
        >>> 3.9 < float(ratio.mean()) < 4.1  # their variance is 4
        True
    """
    return virial_products(potential, samples, generator, temperature).mean(-1)


def _stretches(values: Tensor) -> Tensor:
    """Average values ``(num_samples, chains, ...)`` over stretches of the chains, some
    forty in all and at most ten of a chain: → ``(stretches, ...)`` float64.
    """
    number, chains = values.shape[:2]
    parts = max(1, min(PARTS, 40 // chains, number))
    cut = values[: number // parts * parts].unflatten(0, (parts, -1))
    return cut.mean(1).flatten(0, 1).cpu().double()


def mean_and_error(values: Tensor) -> tuple[float, float, int]:
    """Compute the mean of a statistic ``(num_samples, chains)``, its standard error
    from the means of stretches, and the error's degrees of freedom.

    Example:
        >>> mean_and_error(torch.arange(20.0)[:, None])[::2]
        (9.5, 9)
    """
    means = _stretches(values)
    return float(means.mean()), float(means.std() / len(means) ** 0.5), len(means) - 1


def ratios(
    products: Tensor, samples: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the means ``(k,)`` of virial products ``(num_samples, chains, k)``, their
    standard errors, and whether they are off from 1 by more than a fifth, and by more
    than chance explains in one run of two million, whatever their number k.

    The standard error is that of stretches of the chains, or of the chains where
    stretches are not independent, because R̂ of the products, or of the coordinates'
    samples if they are given, is over 1.1; and like that of a variance it is
    proportional to the mean, so that one below 1 is divided by this.
    One value that dominates makes the error as large as the mean. Beyond ±10 it is
    therefore enough that more products lie beyond 10 on the mean's side than on the
    other, where noise, whose signs are equally likely, would put as many.

    Example:
        >>> hot = 4 + torch.randn(100, 4, 1, generator=Generator().manual_seed(0))
        >>> ratios(torch.cat([hot, 0.25 * hot], -1))[2]
        tensor([ True, False])
    """
    number, chains, k = products.shape
    level = FALSE_ALARMS / (2 * k)

    def limited(values: Tensor) -> tuple[Tensor, Tensor]:
        error = values.std(0) / len(values) ** 0.5
        return error, -float(stdtrit(len(values) - 1, level)) * error

    parts = _stretches(products)
    means, (errors, limit) = parts.mean(0), limited(parts)
    off = torch.zeros_like(means, dtype=torch.bool)
    if number >= LEAST:
        slow = (split_r_hat(products) > LIMIT).cpu()
        if samples is not None:
            slow |= (split_r_hat(samples) > LIMIT).cpu()
        alone = products.mean(0).cpu().double()  # each chain stands alone
        independent = limited(alone)[1] if chains > 1 else math.inf
        scale = torch.where(means > 0, means.clamp(max=1), 1)
        usual = torch.where(slow, independent, limit) / scale
        # A chain that is only slow has no negative mean over coordinates.
        grows = (means <= 0) & (samples is None)
        limit = torch.where(grows, limit, usual)
        off = (means - 1).abs() > limit.clamp(min=OFF)
    above, below = ((sign * products > FAR).sum((0, 1)).cpu() for sign in (1, -1))
    surplus = (above - below) * means.sign()
    far = (means.abs() > FAR) & (surplus > -ndtri(level) * (above + below).sqrt())
    return means, errors, off | far | means.isnan()
