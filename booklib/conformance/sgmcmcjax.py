"""The laws of *SGMCMCJax* (Coullon and Nemeth, 2022), version 0.2.13.

``dt`` is a step's learning rate η in SGLD, twice it where there is a preconditioner, ε²
in SGHMC and SGNHT, and ε in the splittings. Formulas "of the guide" are those of
``docs/all_samplers.rst``.
"""

from functools import cache

import torch
from torch import Tensor

from booklib.conformance.thermostat import mean_field_variance
from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows, linear_chain

CHAINS = 2_000  # the number of chains by which a law is simulated here
ERROR = (2 / CHAINS) ** 0.5  # the relative error of its variances
ERROR = (2 / CHAINS) ** 0.5  # the relative error of its variances


def sgld(given: dict, problem: Problem) -> Laws:
    """diffusions.py:66-68, as in the guide: x + dt g + N(0, 2 dt). Right; the gradient
    is that of the sum over the data, estimated from a batch drawn with replacement.
    """
    chain = flows.sgld(given["dt"])
    if "spread" in given:  # half of the data have the curvature a(1 + δ), half a(1 − δ)
        chain = _multiplicative(given, problem.curvature)
    return Laws(code=chain, documentation=chain)


def sgld_cv(given: dict, problem: Problem) -> Laws:
    """gradient_estimation.py:82-86: a noise that does not depend on θ cancels; the
    centre is 0, the mode. Right.
    """
    if "spread" in given:
        return sgld(given, problem)
    return _quiet(flows.sgld(given["dt"]), problem)


def sgld_svrg(given: dict, problem: Problem) -> Laws:
    """gradient_estimation.py:131-151: as with control variates, around the position of
    the last multiple of ``update_rate``. Right.
    """
    return sgld_cv(given, problem)


def _multiplicative(given: dict, curvature: Tensor) -> Tensor:
    """Give E θ² of SGLD from N(0, 1) where the gradient at θ is aθ ± δa(θ − c), with c
    = 0, or the position after the first step and then every ``update_rate`` of them.
    """
    drift, rate = given["dt"] * curvature, given.get("update_rate", 0)
    square = torch.ones_like(curvature)  # E θ²
    joint, centre = torch.zeros_like(square), torch.zeros_like(square)  # E θc, E c²
    for i in range(given["steps"]):
        # The gradient at the start has the index before, and SVRG's is exact.
        if rate and (i == 0 or (i - 1) % rate == 0):
            joint, centre = square, square
        noise = (drift * given["spread"]) ** 2 * (square - 2 * joint + centre)
        square = (1 - drift) ** 2 * square + noise + 2 * given["dt"]
        joint = (1 - drift) * joint
    return square


def _quiet(
    steps: list, problem: Problem, documented: list | None = None, **more
) -> Laws:
    """Give the chain without the noise of the gradient."""
    precision = torch.diag(problem.curvature)
    chains = [
        linear_chain(each, precision, 0.0) for each in (steps, documented or steps)
    ]
    return Laws(code=chains[0], documentation=chains[1], **more)


def sghmc(given: dict, problem: Problem) -> Laws:
    """diffusions.py:181-191, ``x = x + v``, then the gradient of the old x: explicit
    Euler, as the guide says ("Euler discretisation"), whose formula has the gradient at
    the new position. The momentum is drawn anew before ``L`` steps (kernels.py:115),
    and every step has a minibatch of its own, both as documented.
    """
    step = given["dt"] ** 0.5
    friction, estimate = (given.get(name, 0.0) / step for name in ("alpha", "beta"))
    first = [flows.refresh_flow()] if "L" in given else []
    once = flows.explicit_euler_sghmc(step, friction, estimate)
    moves = [*first, *once * given.get("L", 1)]
    return Laws(code=moves, documentation=moves, momentum=1 / step)


def sghmc_cv(given: dict, problem: Problem) -> Laws:
    """As :func:`sghmc`; a noise that does not depend on θ cancels."""
    laws = sghmc(given, problem)
    return _quiet(laws.code, problem, laws.documentation, momentum=laws.momentum)


def baoab(given: dict, problem: Problem) -> Laws:
    """kernels.py:383 binds ``(update_diff1, update_diff1)``, so the second half of a
    kick stands for the whole step too, and positions stay where they are.
    """
    documented = _splitting(given, given.get("tau", 1.0), problem)
    return Laws(code=_unmoved(problem), documentation=documented)


def baoab_diffusion(given: dict, problem: Problem) -> Laws:
    """diffusions.py:232: the noise is ``tau * c2``, which makes the temperature τ²; the
    guide has √τ c₂, and the docstring calls τ the temperature. Right at τ = 1.
    """
    tau = given.get("tau", 1.0)
    code, documented = (_splitting(given, each, problem) for each in (tau**2, tau))
    return Laws(code=code, documentation=documented)


def _splitting(given: dict, temperature: float, problem: Problem) -> list | Tensor:
    """List BAOAB, or give its E θ² from N(0, 1) where the last half kick of a step and
    the first of the next one have the same minibatch.
    """
    splitting = flows.baoab(given["dt"], given["gamma"], temperature=temperature)
    if not problem.gradient_variance:
        return splitting
    dim, precision = len(problem.curvature), torch.diag(problem.curvature)
    middle, one = linear_chain(splitting[1:4], precision), torch.eye(dim).double()
    # acts on (θ, r, ζ), where the gradient is Aθ + ζ
    kick = torch.eye(3 * dim).double()
    kick[dim : 2 * dim, :dim] = -given["dt"] / 2 * precision
    kick[dim : 2 * dim, 2 * dim :] = -given["dt"] / 2 * one
    transition = kick @ torch.block_diag(middle.transition, 0 * one) @ kick
    fresh = problem.gradient_variance * one
    noise = kick @ torch.block_diag(middle.noise_covariance, fresh) @ kick.T
    covariance = torch.block_diag(one, 0 * one, fresh)
    for _ in range(given["steps"]):
        covariance = transition @ covariance @ transition.T + noise
    return covariance.diagonal()[:dim]


def _unmoved(problem: Problem) -> LinearChain:
    one = torch.eye(len(problem.curvature), dtype=torch.float64)
    return LinearChain(one, 0 * one)


def sgnht(given: dict, problem: Problem) -> Laws:
    """diffusions.py:279-286, as in the guide and Ding et al. (2014), Algorithm 2: the
    kick, then the position by the new v, then the friction. Right.
    """
    step, curvature = given["dt"] ** 0.5, problem.curvature
    injected = Matrix(2 * given["a"])  # 2Aε, with a = εA

    def moves(friction: float) -> list:
        kept = flows.MomentumMap(Matrix(1 - step * friction), injected)
        return [kept, flows.Kick(step), flows.Drift(step)]

    law = mean_field_variance(moves, curvature, 1.0, problem.gradient_variance)
    return Laws(code=law, documentation=law)


def sgnht_cv(given: dict, problem: Problem) -> Laws:
    """As :func:`sgnht`; a noise that does not depend on θ cancels."""
    return sgnht(given, problem._replace(gradient_variance=0.0))


def badodab(given: dict, problem: Problem) -> Laws:
    """kernels.py:419 and :457: as with :func:`baoab`, positions never move."""
    documented = _thermostatted(given["dt"], given["steps"], _key(given, problem), 2)
    return Laws(code=_unmoved(problem), documentation=documented, error=ERROR)


def badodab_cv(given: dict, problem: Problem) -> Laws:
    """As :func:`badodab`; a noise that does not depend on θ would cancel."""
    return badodab(given, problem._replace(gradient_variance=0.0))


def badodab_diffusion(given: dict, problem: Problem) -> Laws:
    """diffusions.py:326 and :334 move the friction by ``norm(v) - v.size``, |v| − D;
    the guide and Leimkuhler and Shang (2016) have vᵀv − D. So |v| settles at D in place
    of about √D: in one dimension the temperature is about π/2, in many about D.
    """
    settings = given["dt"], given["steps"], _key(given, problem)
    code, documented = (_thermostatted(*settings, power) for power in (1, 2))
    return Laws(code=code, documentation=documented, error=ERROR)


def _key(given: dict, problem: Problem) -> tuple:
    friction = given.get("a", 0.01)
    return (*problem.curvature.tolist(), problem.gradient_variance, friction)


@cache
def _thermostatted(step: float, steps: int, problem: tuple, power: int) -> Tensor:
    """Simulate E θ² of BADODAB from N(0, 1), with one noise for the two half kicks."""
    *curvature, variance, friction = problem
    generator = torch.Generator().manual_seed(0)
    a = torch.tensor(curvature, dtype=torch.float64)
    shape, half = (CHAINS, len(a)), step / 2

    def normal() -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    def gradient() -> Tensor:
        return a * x + variance**0.5 * normal()

    x, v = normal(), torch.zeros(shape, dtype=torch.float64)
    alpha = torch.full((CHAINS, 1), friction, dtype=torch.float64)
    g = gradient()
    for _ in range(steps):
        v = v - half * g
        x = x + half * v
        alpha = alpha + half * (v.norm(dim=1, keepdim=True) ** power - len(a))
        kept = torch.exp(-alpha * step)
        v = kept * v + ((1 - kept**2) / (2 * alpha)).abs().sqrt() * normal()
        alpha = alpha + half * (v.norm(dim=1, keepdim=True) ** power - len(a))
        x = x + half * v
        g = gradient()
        v = v - half * g
    return (x**2).mean(0)


def psgld(given: dict, problem: Problem) -> Laws:
    """diffusions.py:97-106, as in the guide, which leaves out Γ and says so. ``dt`` is
    2η. With ``alpha`` = 1 the preconditioner stays 1/eps: a mass.
    """
    if given.get("alpha") == 1.0:
        law = flows.sgld(given["dt"] / 2, mass=given["eps"])
    else:
        law = _preconditioned(
            "psgld", given["dt"], given["steps"], given["eps"], *_of(problem)
        )
    return Laws(code=law, documentation=law, error=ERROR)


def sgld_adam(given: dict, problem: Problem) -> Laws:
    """diffusions.py:137-151: the noise of :func:`psgld`, along Adam's mean gradient;
    the docstring refers to the appendix of a paper and has no formula.
    """
    law = _preconditioned(
        "adam", given["dt"], given["steps"], given["eps"], *_of(problem)
    )
    return Laws(code=law, documentation=law, error=ERROR)


def _of(problem: Problem) -> tuple:
    return tuple(problem.curvature.tolist()), problem.gradient_variance


@cache
def _preconditioned(
    kind: str, dt: float, steps: int, eps: float, curvature: tuple, variance: float
) -> Tensor:
    """Simulate E θ² of pSGLD or SGLD-Adam from N(0, 1), at their default decays."""
    generator = torch.Generator().manual_seed(0)
    a, shape = torch.tensor(curvature, dtype=torch.float64), (CHAINS, len(curvature))

    def normal() -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    x, first, second = normal(), 0.0, 0.0
    for i in range(steps):
        # The noise of one datum is ±√V in every coordinate.
        g = -a * x + variance**0.5 * normal().sign()
        if kind == "adam":
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            direction, size = (
                first / (1 - 0.9 ** (i + 1)),
                second / (1 - 0.999 ** (i + 1)),
            )
        else:
            second = 0.99 * second + 0.01 * g**2
            direction, size = g, second
        rate = dt / (size.sqrt() + eps)
        x = x + rate / 2 * direction + rate.sqrt() * normal()
    return (x**2).mean(0)


LAWS = {
    "sgld": sgld,
    "sgldCV": sgld_cv,
    "sgld_SVRG": sgld_svrg,
    "psgld": psgld,
    "sgldAdam": sgld_adam,
    "sghmc": sghmc,
    "sghmcCV": sghmc_cv,
    "sghmc_SVRG": sghmc_cv,
    "baoab": baoab,
    "sgnht": sgnht,
    "sgnhtCV": sgnht_cv,
    "badodab": badodab,
    "badodabCV": badodab_cv,
    "diffusions.sghmc": sghmc,
    "diffusions.baoab": baoab_diffusion,
    "diffusions.badodab": badodab_diffusion,
}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["test"]:
        case "front door":
            if not found["moved"]:
                return False, "positions never move"
            return bool(found["finite"]), "finite, and moves"
        case "two states":
            repeated = found["difference_of_a_repeated_run"]
            apart = found["difference_of_two_keys"]
            return repeated == 0, (
                f"a run repeats itself, difference {repeated:g}; two keys give runs "
                f"{apart:.2g} apart"
            )
        case "schedule" if "step_sizes" in found:
            sizes = found["step_sizes"]
            return sizes[0] == max(sizes), (
                f"its cyclical schedule begins at {sizes[0]:.2f}, a cycle's last step, "
                "since iterations count from 0"
            )
        case "schedule":
            seen = found["steps_seen"]
            return seen == [0, 1, 2], f"a schedule sees the steps {seen}"
    difference = found["difference"]
    return difference == 0, f"a state read again goes on, difference {difference:g}"
