"""The laws of *posteriors* (Duffield et al., 2025), version 0.1.3."""

import torch

from booklib.conformance.thermostat import mean_field_variance
from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows


def sgld(given: dict, problem: Problem) -> Laws:
    """sgmcmc/sgld.py: the documentation has ``(2 − εβ)T``, the code ``T(2 − Tεβ)``."""
    step, beta = given["lr"], given.get("beta", 0.0)
    temperature = given.get("temperature", 1.0)
    return Laws(
        code=flows.sgld(step, step * temperature**2 * beta / 2, temperature),
        documentation=flows.sgld(step, step * temperature * beta / 2, temperature),
    )


def sghmc(given: dict, problem: Problem) -> Laws:
    """sgmcmc/sghmc.py: explicit Euler, as documented."""
    temperature = given.get("temperature", 1.0)
    estimate = given["lr"] * temperature**2 * given.get("beta", 0.0) / 2
    mass = given.get("sigma", 1.0) ** 2
    step = flows.explicit_euler_sghmc(
        given["lr"], given["alpha"], estimate, mass, temperature
    )
    return Laws(code=step, documentation=step)


def baoa(given: dict, problem: Problem) -> Laws:
    """sgmcmc/baoa.py: the kick at once, then drift, friction and drift."""
    temperature, mass = given.get("temperature", 1.0), given.get("sigma", 1.0) ** 2
    middle = flows.baoab(given["lr"], given["alpha"], mass, temperature)[1:4]
    step = [flows.Kick(given["lr"]), *middle]
    return Laws(code=step, documentation=step)


def sglrw(given: dict, problem: Problem) -> Laws:
    """sgmcmc/sglrw.py: steps of ±√(2εT), whose mean is that of SGLD; the second moment
    obeys s' = (1 − 2εa)s + 2εT, whatever the gradient's noise.
    """
    shrink = (1 - 2 * given["lr"] * problem.curvature).sqrt()
    noise = 2 * given["lr"] * problem.temperature * torch.eye(len(shrink))
    chain = LinearChain(torch.diag(shrink), noise.double())
    return Laws(code=chain, documentation=chain)


def sgnht(given: dict, problem: Problem) -> Laws:
    """sgmcmc/sgnht.py: all from the old state, as documented; a thermostat is right if
    every coordinate has its temperature.
    """
    step, injected = given["lr"], 2 * given["alpha"] * given["lr"] * problem.temperature

    def euler(friction: float) -> list:
        kept = Matrix(1 - step * friction)
        moves = [flows.Kick(step), flows.Drift(step)]
        return [flows.AtOnce([*moves, flows.MomentumMap(kept, Matrix(injected))])]

    law = mean_field_variance(
        euler, problem.curvature, problem.temperature, problem.gradient_variance
    )
    return Laws(code=law, documentation=law)


LAWS = {"sgld": sgld, "sghmc": sghmc, "baoa": baoa, "sglrw": sglrw, "sgnht": sgnht}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["test"]:
        case "front door":
            return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"
        case "two states":
            step = found["step_of_a_new_state"]
            return step == 0, f"a new state begins at step {step}"
        case "schedule":
            seen = found["steps_seen"]
            return seen == [0, 1, 2], f"a schedule sees the steps {seen}"
    difference = found["difference"]
    return difference == 0, f"a state read again goes on, difference {difference:g}"
