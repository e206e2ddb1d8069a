"""The laws of *Fortuna* (Detommaso et al., 2023), version 0.2.0 of ``aws-fortuna``.

Files are in ``prob_model/posterior/sgmcmc``. Momenta have the book's unit, with the
step ε = √η where η is Fortuna's step size. Gradients are of log p, and are added; the
front door hands in that of the sum over all data and of the prior, from a minibatch.
"""

import math

import torch

from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows


def sghmc(given: dict, problem: Problem) -> Laws:
    """sghmc/sghmc_integrator.py:77–86: m ← βm + √η∇log p + N(0, 2(1 − β)M), then θ ←
    θ + √ηM⁻¹m, where β is ``momentum_decay``: eq. 15 of Chen et al. (2014) with α = 1 −
    β, their Algorithm 2 with the position last. The mass is right, too. The docstring
    of ``momentum_decay`` (sghmc/sghmc_approximator.py:45) calls it the friction, and
    goes on that zero gives overdamped Langevin dynamics: this is the code's meaning, so
    no deviation is counted.

    ``momentum_resample_steps``, which has no docstring, sets the momentum to zero
    (:70–75), where Chen et al. draw it from N(0, M).
    """
    step = given.get("step_size", given.get("step_schedule"))
    root, mass = math.sqrt(step), given.get("eps", 1.0)
    friction = (1 - given["momentum_decay"]) * mass / root
    drift, decay, kick, noise = flows.sghmc(root, friction, mass=mass)
    one = problem.chain([decay, kick, noise, drift])
    if "momentum_resample_steps" not in given:
        law = _steps([one] * given.get("steps", 1))
        return Laws(code=law, documentation=law)
    after = [one] * given["steps"]
    # The probe starts at a count that is a multiple of momentum_resample_steps.
    code, documentation = (
        _steps([problem.chain([flows.MomentumMap(Matrix(0.0), drawn)]), *after])
        for drawn in (None, Matrix(mass))
    )
    return Laws(code=code, documentation=documentation)


def _steps(chains: list[LinearChain]) -> LinearChain:
    """Compose chains, the first one first."""
    size = len(chains[0].transition)
    transition = torch.eye(size, dtype=torch.float64)
    noise = torch.zeros_like(transition)
    for each in chains:
        transition = each.transition @ transition
        noise = each.transition @ noise @ each.transition.T + each.noise_covariance
    return LinearChain(transition, noise)


def cosine(given: dict, late: int) -> list[float]:
    """List the step sizes of two cycles: eq. 1 of Zhang et al. (2020), with the first
    step's count 0; the code's are a step late.
    """
    size, length = given["init_step_size"], given["cycle_length"]
    parts = [max(count - late, 0) % length / length for count in range(2 * length)]
    return [size * (1 + math.cos(math.pi * part)) / 2 for part in parts]


def cyclical_sgld(given: dict, problem: Problem) -> Laws:
    """cyclical_sgld/cyclical_sgld_integrator.py:49–92: SGLD by the integrator above
    with β = 0, θ ← θ + ηM⁻¹∇log p + N(0, 2ηM⁻¹), and in a cycle's first part the same
    without noise, as in Zhang et al. (2020), Algorithm 1. Each step is right for its
    step size.

    The step sizes, sgmcmc_step_schedule.py:144–147, are those of their eq. 1 a step
    late, ``step - burnin_steps - 1`` with a count from 0: see the test of the schedule.
    """
    mass = given.get("eps", 1.0)
    if "n_thinning" not in given:  # at count 0 both take the whole step
        law = flows.sgld(given["init_step_size"], mass=mass)
        return Laws(code=law, documentation=law)
    of = []
    for late in (1, 0):
        variance = torch.zeros_like(problem.curvature)
        for size in cosine(given, late)[: given["n_thinning"]]:
            shrink = (1 - size * problem.curvature).square()
            variance = shrink * variance + 2 * size
        of.append(variance)
    return Laws(code=of[0], documentation=of[1])


LAWS = {"sghmc": sghmc, "cyclical_sgld": cyclical_sgld}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found, given = cell["observed"], cell["given"]
    match cell["test"]:
        case "front door":
            return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"
        case "two states":
            # ../../base.py:55: all calls of train share a FitConfig, which fit changes.
            before, after = found["before"], found["after"]
            text = f"a MAP fit finds {before:.2g} before and {after:.2g} after it"
            return abs(after - before) <= 0.05 * abs(before), text
        case "schedule" if "collected" in found:
            return _cycles(found, given)
        case "schedule":
            # sgmcmc_step_schedule.py:112 divides by burnin_steps, which may be 0
            # (:108).
            return all(found["finite"]), f"a burn-in of {given['burnin_steps']} steps"
    if "files" in found:
        # sgmcmc_posterior.py:78–80 does not read the folder that it is given.
        return found["files"] > 0, f"save_state writes {found['files']} files"
    # sghmc_posterior.py:143–147 gives the integrator a new state.
    first, second = found["counts"]
    text = f"sampled at count {first}, and after going on at count {second}"
    return second > first, text


def _cycles(found: dict, given: dict) -> tuple[bool, str]:
    """Compare the sizes with the paper's, and what is collected with what has noise."""
    asked = cosine(given, 0)
    worst = max(abs(x - y) for x, y in zip(found["sizes"], asked, strict=True))
    without = sum(
        taken and not noisy
        for taken, noisy in zip(found["collected"], found["noisy"], strict=True)
    )
    last = found["collected"][given["cycle_length"] - 1]
    text = (
        f"step sizes off by up to {worst / given['init_step_size']:.2g} of the first; "
        f"{without} states without noise collected, the cycle's last "
        f"{'too' if last else 'not'}"
    )
    return worst < 1e-6 and not without, text
