"""Laplace's approximation: a Gaussian with the curvature of the energy at a mode."""

import math
import time

import torch
from torch import Generator, Tensor

from booklib.rivals.descent import check_task
from booklib.scores.checks import check_indices
from sgmc.checks import MEMORY
from sgmc.door.draws import Draws
from sgmc.potentials import Potential
from sgmc.randomness import normal_block


def laplace(
    potential: Potential,
    position: Tensor,
    num_samples: int,
    *,
    coordinates: Tensor | None = None,
    seed: int = 0,
) -> Draws:
    """Draw from N(θ̂, H⁻¹) at a mode θ̂, H being the Hessian of U there (MacKay, 1992;
    Bishop, 2006, eq. 4.134).

    It is exact where the posterior is Gaussian, and the chains, each with a mode of its
    own, make a mixture of Gaussians. With the coordinates of a network's last layer the
    other weights stay where they are (Daxberger et al., 2021); H is then positive for
    the usual likelihoods, as that of all weights need not be.

    Args:
        potential: the target.
        position: the modes, ``(chains, dim)``, such as ``ensemble(...).samples[0]``.
        num_samples: number of draws from each chain's Gaussian, which are independent.
        coordinates: which of them to draw, different whole numbers ``(k,)``; all by
            default. H takes k gradients of U over all the data.
        seed: seed of the run's generator.

    Returns:
        Draws with the statistic ``log_density``, of what was drawn, ``(num_samples,
        chains)``.

    Raises:
        ValueError: if a position is no mode, because H is not positive there or the
            quadratic's minimum is too far away; or if H does not fit into memory.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> target = Gaussian(torch.diag(torch.tensor([4.0, 0.01])))
        >>> draws = laplace(target, torch.zeros(1, 2), 1000)
        >>> draws.samples.std((0, 1)).round(decimals=1)
        tensor([2.0000, 0.1000])
    """
    started = time.monotonic()
    check_task(potential, position, num_samples, seed)
    position = position.detach()
    chains, dim = position.shape
    chosen = torch.arange(dim) if coordinates is None else coordinates
    check_indices("coordinates", chosen, dim)
    chosen = chosen.to(position.device)
    size = chains * len(chosen) ** 2 * 8
    if size > MEMORY:
        raise ValueError(
            f"the Hessians of {len(chosen):,} coordinates in {chains} chains "
            f"take {size / 2**30:,.1f} GiB, more than "
            f"{MEMORY / 2**30:g} GiB: give coordinates, such as those of a network's "
            "last layer, or fewer chains"
        )
    each = (_root_of_hessian(potential, position, chosen, c) for c in range(chains))
    roots = torch.stack(list(each))
    gradient = potential.gradient(position)[:, chosen].double()
    shift = torch.linalg.solve_triangular(roots, gradient[..., None], upper=False)
    shift = shift[..., 0].square().mean(-1).sqrt()
    if shift.max() > 1:
        chain = int(shift.argmax())
        raise ValueError(
            f"position of chain {chain} is no mode: the minimum of its quadratic is "
            f"{float(shift[chain]):.3g} standard deviations away, in "
            "root mean square over the coordinates; go further down first, such as by "
            "ensemble"
        )
    generator = Generator(position.device).manual_seed(seed)
    normal = normal_block(position[:, chosen].double(), num_samples, generator)
    drawn = torch.linalg.solve_triangular(roots.mT, normal[..., None], upper=True)
    samples = position.repeat(num_samples, 1, 1)
    samples[..., chosen] += drawn[..., 0].to(position)
    log_normaliser = roots.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_normaliser -= 0.5 * len(chosen) * math.log(2 * math.pi)
    log_density = (log_normaliser - 0.5 * normal.square().sum(-1)).to(position)
    name = "laplace()" if coordinates is None else f"laplace({len(chosen)} coordinates)"
    return Draws(
        samples,
        {"log_density": log_density},
        kernel=name,
        seed=seed,
        seconds=time.monotonic() - started,
    )


def _root_of_hessian(
    potential: Potential, position: Tensor, chosen: Tensor, chain: int
) -> Tensor:
    """Factorise the Hessian at one chain's position into LLᵀ: ``(k, k)`` float64."""

    place = torch.tensor(chain, device=position.device), chosen

    def energy(values: Tensor) -> Tensor:
        # The potential may insist on all chains, so the others stand beside this one.
        return potential.energy(position.index_put(place, values))[chain]

    hessian = torch.autograd.functional.hessian(energy, position[place]).double()
    hessian = 0.5 * (hessian + hessian.mT)
    root, failed = torch.linalg.cholesky_ex(hessian)
    finite = hessian.isfinite().all()
    if failed or not finite:
        smallest = float(torch.linalg.eigvalsh(hessian)[0]) if finite else math.nan
        raise ValueError(
            f"position of chain {chain} is no mode, for the Hessian of the energy has "
            f"an eigenvalue of {smallest:.4g} there: go further "
            "down first, such as by ensemble, or draw fewer coordinates, such as "
            "those of a network's last layer"
        )
    return root
