"""What is checked once, before a run starts: its parts, and that a model means what it
says.
"""

from typing import Any

import torch
from torch import Generator, Tensor

from sgmc.checks import check_instance, check_seed, check_tensor, shown
from sgmc.kernels.base import Kernel
from sgmc.potentials import ERRORS, Potential, agree, differentiate, evaluate, within
from sgmc.randomness import normal_like


def check_kernel(kernel: Kernel) -> None:
    """Raise a ValueError unless it is a kernel."""
    check_instance("kernel", kernel, Kernel, "SGHMC(0.1, 3.0)")


def check_start(potential: Potential, position: Tensor, seed: int) -> None:
    """Raise a ValueError if chains cannot start at the position ``(chains, dim)``, or
    the potential's stochastic gradient there, its model (:func:`check_model`) or its
    data (its ``check``) are not what they should be.
    """
    check_instance("potential", potential, Potential, "one of sgmc.targets")
    check_seed("seed", seed)
    check_tensor("position", position, "chains", "dim")
    if potential.dim is not None and position.shape[1] != potential.dim:
        raise ValueError(
            f"position has {position.shape[1]} coordinates, but the potential has dim "
            f"= {potential.dim}"
        )
    _check_prior(potential, position)
    # A generator of its own: a look at the gradient must not change the draws.
    generator = Generator(position.device).manual_seed(seed)
    gradient: object = evaluate(
        lambda: potential.stochastic_gradient(position, generator, step=0), position
    )
    if not isinstance(gradient, Tensor) or shown(gradient) != shown(position):
        raise ValueError(
            f"the potential's gradient is {shown(gradient)}, but the position is "
            f"{shown(position)}; they must agree"
        )
    potential.check(position, generator)  # which may know why it is not finite
    if not torch.isfinite(gradient).all():
        chain = int((~torch.isfinite(gradient).all(-1)).nonzero()[0])
        raise ValueError(
            f"the gradient at the start is not finite in chain {chain}; start "
            "elsewhere, or correct the potential"
        )
    few = potential.of_few_examples()
    # of data, the likelihood was looked at in each coordinate
    check_model(few, position, generator, 128 if few is potential else 1)


def _check_prior(potential: Any, position: Tensor) -> None:
    """Raise a ValueError unless a potential's ``log_prior``, if it has one, gives a
    number a chain: what it gives otherwise may broadcast, or fail elsewhere.
    """
    try:
        with torch.no_grad():
            value = evaluate(lambda: potential.log_prior(position), position)
    except (AttributeError, NotImplementedError):
        return
    if getattr(value, "shape", None) != position.shape[:1]:
        raise ValueError(
            f"log_prior must return one number a chain, ({len(position)},), but it "
            f"returned {shown(value)}: add up the coordinates by .sum(-1), and write "
            "0 * position.sum(-1) for a flat prior"
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
        near, found = within(lambda x: [potential.energy(x)], position, generator)
        if not (found and found[0].isfinite().all()):
            return  # at the start itself, which is for the kernel to refuse or not
        (energy,) = found
        if not agree(_energy_or_none(potential, near.clone()), energy):
            raise ValueError(
                "the potential's energy is not the same when it is computed twice at "
                "one position: something in it is drawn at random or changes, such as "
                "dropout in training mode (module.eval() ends that); write it as a "
                "function of the position alone"
            )
        for kept in (0, 1) if len(position) > 1 else ():
            others = near.clone()
            others[1 - kept :: 2] = position[1 - kept :: 2]
            moved = _energy_or_none(potential, others)
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
    except RuntimeError:  # it cannot be differentiated
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
    all coordinates or in a part of them, otherwise than by half of what differentiation
    says.

    Coarse, so that rounding and kinks do not count; what differentiation does not see
    changes the gradient wholly.
    """
    precision = torch.finfo(position.dtype).eps
    size = precision ** (1 / 3) * (1 + position.square().mean(-1, keepdim=True).sqrt())
    usual = gradient.norm(dim=-1) / position.shape[1] ** 0.5
    coordinates = torch.arange(position.shape[1], device=position.device)
    pieces = coordinates.tensor_split(min(parts, len(coordinates))) if parts > 1 else ()
    for piece in (coordinates, *pieces):
        for length in (1.0, 0.25):  # a kink is beyond the second, or in another place
            step = torch.zeros_like(position)
            way = (1 + position.abs()) * normal_like(position, generator)
            step[:, piece] = way[:, piece]
            step *= length * size / step.norm(dim=-1, keepdim=True)
            with torch.no_grad():
                above = _energy_or_none(potential, position + step)
                below = _energy_or_none(potential, position - step)
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


def _energy_or_none(potential: Potential, position: Tensor) -> Tensor | None:
    """Compute the energy at a position that may be no good one."""
    try:
        return potential.energy(position)
    except ERRORS:
        return None
