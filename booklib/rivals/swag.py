"""SWAG: a Gaussian through the iterates of stochastic gradient descent."""

from torch import Generator, Tensor

from sgmc.checks import check_count, check_instance, check_positive, check_seed
from sgmc.door.draws import Draws
from sgmc.randomness import normal_block


def swag(draws: Draws, num_samples: int, *, rank: int = 20, seed: int = 0) -> Draws:
    """Draw from a Gaussian fitted to a chain's iterates: half their variances, half
    their covariance (Maddox et al., 2019, Section 3).

    θ = θ̄ + S^½z/√2 + Dz′/√(2(K − 1)) with standard normal z and z′, S the iterates'
    variances and D the deviations of the last K of them from the mean θ̄ of all, where
    its authors keep a running one. The iterates are a run of stochastic gradient
    descent at a constant step size: ``sample(SGLD(step_size, temperature=0.0), ...)``,
    or SGHMC at temperature zero for its momentum.

    Args:
        draws: the iterates, whose ``samples`` are ``(T, chains, dim)``.
        num_samples: number of draws from each chain's Gaussian, which are independent.
        rank: K, from 2 to T.
        seed: seed of the run's generator.

    Returns:
        Draws with the statistics ``mean`` and ``std``, θ̄ and S^½ of the chain.

    Raises:
        ValueError: if the draws are not of positions, or the rank is out of its range.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.kernels import SGLD
        >>> from sgmc.targets import Gaussian, NoisyGradient
        >>> target = NoisyGradient(Gaussian.standard(2), 4.0)
        >>> descent = SGLD(0.1, temperature=0.0)
        >>> iterates = sample(descent, target, torch.zeros(3, 2), 500, warm_up=100)
        >>> swag(iterates, 50).samples.shape
        torch.Size([50, 3, 2])
    """
    check_instance("draws", draws, Draws, "those of sample(...)")
    check_seed("seed", seed)
    iterates = draws.samples
    if not isinstance(iterates, Tensor) or iterates.ndim != 3:
        given = iterates.shape if isinstance(iterates, Tensor) else sorted(iterates)
        raise ValueError(
            "draws must be of positions, (T, chains, dim), but their samples are "
            f"{given}: run sample without collect"
        )
    check_count("num_samples", num_samples)
    check_count("rank", rank, at_least=2)
    check_positive("rank", rank, at_most=len(iterates))
    generator = Generator(iterates.device).manual_seed(seed)
    mean, std = iterates.mean(0), iterates.std(0, correction=0)
    deviations = (iterates[-rank:] - mean).transpose(0, 1)  # (chains, K, dim)
    independent = std * normal_block(mean, num_samples, generator)
    factors = normal_block(deviations[..., 0], num_samples, generator)
    shared = (factors[..., None, :] @ deviations)[..., 0, :]
    samples = mean + independent / 2**0.5 + shared / (2 * (rank - 1)) ** 0.5
    return Draws(
        samples,
        {"mean": mean.expand_as(samples), "std": std.expand_as(samples)},
        kernel=f"swag(rank={rank}) of {draws.kernel}",
        seed=seed,
        seconds=draws.seconds,
        complete=draws.complete,
    )
