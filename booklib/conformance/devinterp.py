"""The laws of *devinterp* (Timaeus), version 2.0.1.

``nbeta`` multiplies the loss L that it is given, "inverse temperature nβ": the density
is exp(−nβL), so T = 1/nβ where U = L.
"""

from functools import lru_cache

import torch

from booklib.conformance.thermostat import mean_field_variance
from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import flows

CHAINS = 2_000  # the number of chains by which a law is simulated here


def sgld(given: dict, problem: Problem) -> Laws:
    """optim/sgmcmc.py:478–531 and optim/sgld.py:145–201: θ ← θ − ½lr(nβ∇L + λθ + γ(θ −
    θ₀)) + N(0, lr σ²), as their docstrings have it.
    """
    nbeta = given.get("nbeta", 1.0)
    temperature = given.get("noise_level", 1.0) ** 2 / nbeta
    step = flows.sgld(given["lr"] * nbeta / 2, temperature=temperature)
    return Laws(code=step, documentation=step)


def rmsprop_sgld(given: dict, problem: Problem) -> Laws:
    """optim/preconditioner.py:163–182: SGLD with G = 1/(√V + eps) before gradient and
    prior and √G before the noise, V the running mean of the squared gradient of L, from
    0, as documented, and as Li et al. (2016), Algorithm 1, have it without their term Γ
    ("not implemented" is raised for it). With ``alpha`` 1, V stays what it is, and this
    is SGLD with the mass 1/G.
    """
    if given["alpha"] < 1:
        numbers = problem.gradient_variance, given["lr"], given["alpha"], given["eps"]
        law = torch.tensor(_simulated(*numbers, tuple(problem.curvature.tolist())))
        return Laws(code=law, documentation=law, error=(2 / CHAINS) ** 0.5)
    nbeta, one = given.get("nbeta", 1.0), torch.ones_like(problem.curvature)
    square = one * torch.tensor(given.get("square_avg", 0.0), dtype=torch.float64)
    temperature = given.get("noise_level", 1.0) ** 2 / nbeta
    mass = square.sqrt() + given["eps"]
    step = flows.sgld(given["lr"] * nbeta / 2, mass=mass, temperature=temperature)
    return Laws(code=step, documentation=step)


@lru_cache
def _simulated(
    gradient_variance: float,
    step: float,
    decay: float,
    small: float,
    curvature: tuple[float, ...],
    steps: int = 400,
) -> list[float]:
    """Run Algorithm 1 of Li et al. (2016) from θ = 0 and V = 0, and give the means of
    θ²: with a moving preconditioner no law is known in a formula.
    """
    generator = torch.Generator().manual_seed(5)
    a = torch.tensor(curvature, dtype=torch.float64)[:, None].expand(-1, CHAINS)
    position, square = torch.zeros_like(a), torch.zeros_like(a)

    def draw():
        return torch.randn(a.shape, generator=generator, dtype=torch.float64)

    for _ in range(steps):
        gradient = a * position + gradient_variance**0.5 * draw()
        square = decay * square + (1 - decay) * gradient**2
        scale = step / (square.sqrt() + small)
        position = position - scale * gradient / 2 + scale.sqrt() * draw()
    return position.square().mean(1).tolist()


def thermostat(given: dict, problem: Problem, after: bool):
    """Ding et al. (2014), Algorithm 2, with ε = √lr and U = nβL; ``after``: the
    friction acts on the momentum after the kick. Its temperature is 1.
    """
    nbeta, step = given.get("nbeta", 1.0), given["lr"] ** 0.5
    injected = Matrix(2 * given.get("diffusion_factor", 0.01))

    def splitting(friction: float) -> list:
        # This maps [0, ∞) to [0, 1), because nothing is stationary with ξ ≥ 1.
        kick, kept = flows.Kick(step), Matrix(1 - friction / (1 + friction))
        rub = flows.MomentumMap(kept, injected)
        both = [kick, rub] if after else [rub, kick]
        return [*both, flows.Drift(step)]

    variance = problem.gradient_variance * nbeta**2
    return mean_field_variance(splitting, nbeta * problem.curvature, 1.0, variance)


def sgnht_of_sgmcmc(given: dict, problem: Problem) -> Laws:
    """optim/preconditioner.py:195–222: the thermostat's force is computed (:208) and
    nothing reads it; what moves is SGLD with the noise N(0, 2A lr) (:219), of the
    temperature 2A/nβ.
    The documentation: "with thermostat", "drop-in replacement for SGNHT", Ding et al.
    (optim/sgmcmc.py:110, :134, :682), which has the temperature 1/nβ for every A; as
    the step that nβ and lr are of is not said, here SGLD of that temperature.
    """
    nbeta = given.get("nbeta", 1.0)
    hot = 2 * given.get("diffusion_factor", 0.01) / nbeta
    step = given["lr"] * nbeta / 2
    return Laws(
        code=flows.sgld(step, temperature=hot),
        documentation=flows.sgld(step, temperature=1 / nbeta),
    )


def sgnht(given: dict, problem: Problem) -> Laws:
    """optim/sgnht.py:127–177: v = √lr r; the friction ξ multiplies the momentum after
    the kick (:137–140), v ← (1 − ξ)(v − lr nβ∇L), so that the force is (1 − ξ) of what
    it is in Ding et al. (2014), Algorithm 2, and in its docstring, v ← v − lr nβ∇L −
    ξv. The noise, the drift and ξ ← ξ + mean v² − lr are theirs.
    """
    return Laws(
        code=thermostat(given, problem, after=True),
        documentation=thermostat(given, problem, after=False),
    )


LAWS = {
    "SGMCMC.sgld": sgld,
    "SGLD": sgld,
    "SGMCMC.rmsprop_sgld": rmsprop_sgld,
    "SGMCMC.sgnht": sgnht_of_sgmcmc,
    "SGNHT": sgnht,
}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["test"]:
        case "front door":
            return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"
        case "schedule":
            pairs = zip(found["used"], found["asked"], strict=True)
            right = all(abs(used / asked - 1) < 1e-4 for used, asked in pairs)
            return right, "each step has the lr that a scheduler wrote"
        case "arguments" if "box" in found:
            reached = found["furthest"]
            right = 0 < reached <= found["box"] * (1 + 1e-9)
            return right, f"stays in a box of 0.1, reaches {reached:.3g}"
        case "arguments":
            center, asked = found["center"], found["asked"]
            text = f"a prior of the center {asked:g} pulls to {center:g}"
            return abs(center - asked) < 1e-3, text
        case "two states":
            text = "an earlier optimiser changes nothing, difference"
        case _:
            text = "a state_dict read again goes on, difference"
    return found["difference"] == 0, f"{text} {found['difference']:g}"
