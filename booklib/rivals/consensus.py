"""Consensus Monte Carlo: from draws of J subposteriors to the posterior, whose density
is the product of theirs.

Parts are those of :func:`booklib.rivals.shards.shards`, each with its share of the
prior; who sampled them, and where, does not matter here.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from booklib.scores.checks import check_draws
from sgmc.checks import (
    check_count,
    check_dims,
    check_instance,
    check_positive,
    check_seed,
    check_tensor,
    shown,
)
from sgmc.door.draws import Draws
from sgmc.potentials import Potential
from sgmc.targets import Gaussian


def moments(parts: Sequence[Draws]) -> tuple[Tensor, Tensor]:
    """Estimate the mean and the covariance of every subposterior from all of its draws.

    Args:
        parts: the draws of the J parts, each ``(num_samples, chains, dim)``.

    Returns:
        Means ``(J, dim)`` and covariances ``(J, dim, dim)``, float64.

    Raises:
        ValueError: if the draws differ in shape, or are too few for a covariance that
            can be inverted.

    Example:
        >>> parts = [Draws(torch.randn(100, 2, 3)) for _ in range(4)]
        >>> [moment.shape for moment in moments(parts)]
        [torch.Size([4, 3]), torch.Size([4, 3, 3])]
    """
    return _moments(_stack(parts).flatten(1, 2))


def inverse_covariance_weights(covariances: Tensor) -> Tensor:
    """Compute Wⱼ = (ΣₖΣₖ⁻¹)⁻¹Σⱼ⁻¹, the weights with which the average of Gaussian
    subposteriors is exact (Scott et al., 2016).

    Args:
        covariances: Σⱼ of the subposteriors, ``(J, dim, dim)``; their share of the
            prior is in them.

    Returns:
        Wⱼ ``(J, dim, dim)``, with the sum I.

    Raises:
        ValueError: if these are no covariances.

    Example:
        >>> inverse_covariance_weights(torch.tensor([[[1.0]], [[3.0]]])).flatten()
        tensor([0.7500, 0.2500])
    """
    _check_covariances(covariances)
    precisions = torch.linalg.inv(covariances)
    return torch.linalg.solve(precisions.sum(0), precisions)


def weighted_average(parts: Sequence[Draws], weights: Tensor | None = None) -> Draws:
    """Average the subposteriors' draws one by one: θ = ΣⱼWⱼθⱼ (Scott et al., 2016).

    Exact if all parts are Gaussian and Wⱼ ∝ Σⱼ⁻¹. Else the mean and the shape are
    wrong, and more draws do not help. By default every chain has weights of its own,
    from its own draws: the error of estimated weights is as large as that of the draws,
    and only so the spread between chains holds it too. Their bias is of order
    dim/num_samples.

    Args:
        parts: the draws of the J parts, each ``(num_samples, chains, dim)``.
        weights: Wⱼ, ``(J, dim, dim)`` with the sum I; by default
            :func:`inverse_covariance_weights` of the covariances of each chain's draws.

    Returns:
        The averages, ``(num_samples, chains, dim)`` of the parts' type.

    Raises:
        ValueError: if the draws differ in shape, or the weights do not suit them or do
            not add up to I.

    Example:
        >>> one, other = Draws(torch.zeros(5, 2, 1)), Draws(torch.ones(5, 2, 1))
        >>> weighted_average([one, other], torch.tensor([[[0.25]], [[0.75]]])).samples[
        ...     0, 0
        ... ]
        tensor([0.7500])
    """
    stacked = _stack(parts)
    if weights is None:
        by_chain = [
            inverse_covariance_weights(_moments(chain)[1])
            for chain in stacked.unbind(2)
        ]
        return _averaged(
            parts, torch.einsum("cjab,jtcb->tca", torch.stack(by_chain), stacked)
        )
    check_tensor("weights", weights, "J", "dim", "dim")
    number, dim = len(stacked), stacked.shape[-1]
    total = weights.double().sum(0)
    if weights.shape != (number, dim, dim) or not torch.allclose(
        total, torch.eye(dim, dtype=total.dtype), atol=1e-4
    ):
        raise ValueError(
            f"weights must be ({number}, {dim}, {dim}) with the sum I, but they are "
            f"{tuple(weights.shape)} with the sum {total.tolist()}"
        )
    return _averaged(parts, torch.einsum("jab,jtcb->tca", weights.to(stacked), stacked))


def gaussian_product(means: Tensor, covariances: Tensor) -> Gaussian:
    """Multiply Gaussian densities: Σ = (ΣⱼΣⱼ⁻¹)⁻¹ and μ = ΣΣⱼΣⱼ⁻¹μⱼ (Neiswanger, Wang
    and Xing, 2014).

    Args:
        means: μⱼ, ``(J, dim)``.
        covariances: Σⱼ, ``(J, dim, dim)``.

    Returns:
        N(μ, Σ), which knows its mean, its covariance and exact draws.

    Raises:
        ValueError: if these are no means and covariances of J Gaussians.

    Example:
        >>> law = gaussian_product(
        ...     torch.tensor([[0.0], [4.0]]), torch.tensor([[[1.0]], [[3.0]]])
        ... )
        >>> law.mean, law.covariance
        (tensor([1.]), tensor([[0.7500]]))
    """
    check_tensor("means", means, "J", "dim")
    _check_covariances(covariances)
    check_dims(means=means, covariances=covariances)
    if len(means) != len(covariances):
        raise ValueError(
            "means and covariances must be (J, dim) and (J, dim, dim), but they are "
            f"{tuple(means.shape)} and {tuple(covariances.shape)}"
        )
    mean = (inverse_covariance_weights(covariances) @ means[..., None]).sum(0)[:, 0]
    covariance = torch.linalg.inv(torch.linalg.inv(covariances).sum(0))
    return Gaussian((covariance + covariance.T) / 2, mean)


def candidates(
    law: Gaussian, num_samples: int, chains: int, seed: int = 0, degrees: float = 5.0
) -> Draws:
    """Draw candidates for the posterior from a distribution with the centre and the
    shape of a Gaussian, but with longer tails.

    It is Student's t: μ + Lz·√(ν/χ²), with Σ = LLᵀ, z standard normal and χ² of ν
    degrees of freedom. Its density falls as a power, so that the weights of
    :func:`reweight` are bounded for every posterior whose density falls at least as
    fast.

    Args:
        law: N(μ, Σ), such as that of :func:`gaussian_product`.
        num_samples: number of draws of each chain.
        chains: number of chains, for error estimates; all draws are independent.
        seed: seed of the draws.
        degrees: ν.

    Returns:
        The candidates ``(num_samples, chains, dim)`` float64, with the statistic
        ``log_density`` ``(num_samples, chains)``, which is known up to a constant.

    Raises:
        ValueError: if an argument is out of its range.

    Example:
        >>> drawn = candidates(
        ...     Gaussian.standard(2, torch.float64), num_samples=10, chains=4
        ... )
        >>> drawn.samples.shape, drawn.statistics["log_density"].shape
        (torch.Size([10, 4, 2]), torch.Size([10, 4]))
    """
    check_instance("law", law, Gaussian, "gaussian_product(means, covariances)")
    check_count("num_samples", num_samples)
    check_count("chains", chains)
    check_seed("seed", seed)
    check_positive("degrees", degrees)
    generator = Generator().manual_seed(seed)
    root = torch.linalg.cholesky(law.covariance.double())
    normal = torch.randn(
        num_samples, chains, law.dim, generator=generator, dtype=torch.float64
    )
    chi_squared = 2 * torch._standard_gamma(
        torch.full((num_samples, chains), degrees / 2, dtype=torch.float64), generator
    )
    standard = normal * (degrees / chi_squared).sqrt()[..., None]
    log_density = (
        -(degrees + law.dim) / 2 * torch.log1p(standard.square().sum(-1) / degrees)
    )
    return Draws(
        law.mean.double() + standard @ root.T,
        {"log_density": log_density},
        kernel=f"Student's t, ν = {degrees:g}",
        seed=seed,
    )


def energies(part: Potential, positions: Tensor) -> Tensor:
    """Compute the energy of a subposterior at candidates, some at a time:
    ``(num_samples, chains, dim)`` → ``(num_samples, chains)`` float64.

    This is the work of a part in the second round: only positions come to it and only
    numbers leave it.

    Example:
        >>> energies(Gaussian.standard(2), torch.zeros(5, 3, 2)).shape
        torch.Size([5, 3])
    """
    check_instance("part", part, Potential, "a part of shards(posterior, 3)")
    check_tensor("positions", positions, "num_samples", "chains", "dim")
    data = getattr(part, "data", ())
    types = [tensor.dtype for tensor in data if tensor.is_floating_point()]
    flat = positions.flatten(0, 1).to(types[0] if types else positions.dtype)
    with torch.no_grad():
        return torch.cat([part.energy(some).double() for some in flat.split(256)]).view(
            positions.shape[:2]
        )


def reweight(drawn: Draws, parts: Sequence[Tensor]) -> Draws:
    """Weigh candidates by w = exp(−ΣⱼUⱼ)/q, so that their weighted averages tend to
    those of the posterior, Gaussian or not.

    Importance sampling with its weights divided by their mean (Geweke, 1989): the sum
    of the parts' energies *is* the energy of the posterior, and q the density of the
    candidates. If the candidates' distribution fits badly, that costs draws, not truth,
    and the weights tell how many: :func:`effective_share`.

    Args:
        drawn: the :func:`candidates`.
        parts: :func:`energies` of the candidates in each of the J parts, each
            ``(num_samples, chains)``.

    Returns:
        The candidates with the statistic ``weight`` ``(num_samples, chains)``, of mean
        one: :func:`weighted_mean` averages each chain by them.

    Raises:
        ValueError: if an energy is NaN, none is finite, or they are not those of the
            candidates.

    Example:
        >>> target = Gaussian.standard(1, torch.float64)
        >>> drawn = candidates(
        ...     Gaussian(
        ...         torch.eye(1, dtype=torch.float64),
        ...         torch.ones(1, dtype=torch.float64),
        ...     ),
        ...     1000,
        ...     100,
        ... )
        >>> weighed = reweight(drawn, [energies(target, drawn.samples)])
        >>> bool(weighted_mean(weighed).mean().abs() < 0.02)
        True
    """
    check_draws("drawn", drawn, "log_density")
    log_density = drawn.statistics["log_density"]
    if isinstance(parts, Tensor) or not isinstance(parts, Sequence) or not parts:
        raise ValueError(
            "parts must be a list of energies, one tensor for each part, but it is "
            f"{shown(parts)}"
        )
    for number, part in enumerate(parts):
        if not isinstance(part, Tensor) or part.shape != log_density.shape:
            raise ValueError(
                f"part {number} of parts must be the energies of the candidates, "
                f"{tuple(log_density.shape)}, but it is {shown(part)}"
            )
    log_weight = -torch.stack([part.double() for part in parts]).sum(0) - log_density
    wrong = int((log_weight.isnan() | log_weight.isposinf()).sum())
    if wrong:
        raise ValueError(
            f"{wrong} of {log_weight.numel()} candidates have an energy that is NaN "
            "or −∞; where there is no density it is +∞"
        )
    if not log_weight.isfinite().any():
        raise ValueError(
            "no candidate has a finite energy: the law that they come from does not "
            "meet the posterior"
        )
    weight = (log_weight - log_weight.max()).exp()
    statistics = {**drawn.statistics, "weight": weight / weight.mean()}
    return dataclasses.replace(drawn, statistics=statistics)


def weighted_mean(
    weighed: Draws, function: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Average each chain's candidates by their weights, Σwf(θ) / Σw.

    Args:
        weighed: the result of :func:`reweight`.
        function: f, from samples ``(num_samples, chains, dim)`` to ``(num_samples,
            chains, ...)``; the identity by default.

    Returns:
        The averages ``(chains, ...)``.

    Example:
        >>> samples, weight = torch.tensor([[[1.0]], [[5.0]]]), torch.eye(2)[:, 1:]
        >>> weighted_mean(Draws(samples, {"weight": weight}))
        tensor([[5.]])
    """
    check_draws("weighed", weighed, "weight")
    values: Any = weighed.samples if function is None else function(weighed.samples)
    weight = weighed.statistics["weight"].to(values)
    weight = weight.reshape(weight.shape + (1,) * (values.ndim - 2))
    return (weight * values).sum(0) / weight.sum(0)


def effective_share(drawn: Draws) -> float:
    """Compute (Σw)²/(n Σw²), the share of candidates that independent draws of the
    posterior would need for the same error (Kong, 1992).

    Near 1 the candidates are draws of the posterior; at 1/n one of them has all the
    weight, and nothing that is averaged means anything.

    Example:
        >>> effective_share(
        ...     Draws(torch.zeros(1, 2, 1), {"weight": torch.tensor([[2.0, 0.0]])})
        ... )
        0.5
    """
    check_draws("drawn", drawn, "weight")
    weight = drawn.statistics["weight"].double()
    return float(weight.sum().square() / (weight.numel() * weight.square().sum()))


def _stack(parts: Sequence[Draws]) -> Tensor:
    """Stack all subposteriors' draws: ``(J, num_samples, chains, dim)`` float64."""
    if isinstance(parts, Draws) or not isinstance(parts, Sequence) or not parts:
        raise ValueError(
            "parts must be a list of Draws, one for each part, such as "
            f"[Draws(samples), ...], but it is {shown(parts)}"
        )
    for number, part in enumerate(parts):
        check_draws(f"part {number} of parts", part)
        if part.samples.shape != parts[0].samples.shape:
            raise ValueError(
                f"parts must have draws of one shape, but part {number} has "
                f"{tuple(part.samples.shape)} and part 0 "
                f"{tuple(parts[0].samples.shape)}"
            )
    return torch.stack([part.samples.double() for part in parts])


def _check_covariances(covariances: Tensor) -> None:
    """Raise a ValueError unless these are covariances ``(J, dim, dim)``."""
    check_tensor("covariances", covariances, "J", "dim", "dim")
    if (
        covariances.shape[1] != covariances.shape[2]
        or (covariances - covariances.mT).abs().max() > 1e-4 * covariances.abs().max()
        or torch.linalg.cholesky_ex(covariances).info.any()
    ):
        raise ValueError(
            "covariances must be symmetric and positive definite (J, dim, dim), but "
            f"they are not, {tuple(covariances.shape)}"
        )


def _moments(draws: Tensor) -> tuple[Tensor, Tensor]:
    """Compute means ``(J, dim)`` and covariances ``(J, dim, dim)`` of draws ``(J,
    number, dim)``.
    """
    number, dim = draws.shape[1:]
    means = draws.mean(1)
    centred = draws - means[:, None]
    covariances = centred.mT @ centred / max(1, number - 1)
    singular = torch.linalg.cholesky_ex(covariances).info.nonzero()
    if number <= dim or len(singular) > 0:
        raise ValueError(
            f"the covariance of part {int(singular[0]) if len(singular) else 0} "
            f"cannot be inverted: {number} draws of {dim} coordinates "
            "are too few, or chains did not move"
        )
    return means, covariances


def _averaged(parts: Sequence[Draws], samples: Tensor) -> Draws:
    return Draws(
        samples.to(parts[0].samples.dtype),
        kernel=parts[0].kernel,
        seed=parts[0].seed,
        complete=all(part.complete for part in parts),
    )


def serialized_size(thing: object) -> int:
    """Measure how many bytes Dask sends for an object.

    Example:
        >>> 8_000 < serialized_size(torch.ones(1_000, dtype=torch.float64)) < 9_000
        True
    """
    from distributed.protocol import serialize_bytelist

    return sum(memoryview(frame).nbytes for frame in serialize_bytelist(thing))
