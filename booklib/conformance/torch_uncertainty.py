"""The laws of *torch-uncertainty* (Lafage and Laurent), version 0.13.0.

``noise_factor`` is documented as "a factor to reduce the amount of noise", which the
papers do not have: the temperature is its square, and by default 10⁻⁴.
"""

import torch

from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import flows


def sgld(given: dict, problem: Problem) -> Laws:
    """optim/sgld.py:52–60: θ ← θ − lr g + N(0, 2 lr noise_factor²); a weight decay is
    added to g. As documented.
    """
    temperature = given.get("noise_factor", 1e-2) ** 2
    step = flows.sgld(given["lr"], temperature=temperature)
    return Laws(code=step, documentation=step)


def sghmc(given: dict, problem: Problem) -> Laws:
    """optim/sghmc.py:98–112, with ε = ``lr``, M = √V̂ + 10⁻⁶ and C = M friction/ε: the
    velocity εM⁻¹r first, then the position by the new one. Its noise has the variance
    (2ε²M⁻¹friction − ε⁴) noise_factor², with a floor of 10⁻⁸ after the factor
    (:100). ε⁴ is that of Springenberg et al. (2016), eq. 10, whom the docstring names;
    so it is documented, and so is what it takes from exact gradients. The floor is not:
    it is above what is asked at the defaults.
    """
    step, friction = given.get("lr", 1e-2), given.get("friction", 0.05)
    factor = given.get("noise_factor", 1e-2) ** 2
    one = torch.ones_like(problem.curvature)
    v_hat = one * torch.tensor(given.get("v_hat", 1.0), dtype=torch.float64)

    def splitting(small: float, floor: float) -> list:
        mass = v_hat.sqrt() + small
        drift, rub, kick, _ = flows.sghmc(step, friction * mass / step, 0.0, mass)
        noise = factor * (2 * step**2 * friction / mass - step**4)
        noise = noise.clamp(min=floor) * (mass / step) ** 2
        return [rub, kick, flows.noise_flow(Matrix(noise)), drift]

    momentum = (v_hat.sqrt() + 1e-6) / step
    if bool((momentum == momentum[0]).all()):
        momentum = float(momentum[0])
    return Laws(splitting(1e-6, 1e-8), splitting(0.0, 0.0), momentum=momentum)


LAWS = {"SGLD": sgld, "SGHMC": sghmc}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found, name = cell["observed"], cell["sampler"]
    if name == "CheckpointCollector" and "kept" in found:
        text = f"keeps the epochs {found['kept']}, asked {found['asked']}"
        return found["kept"] == found["asked"], text
    match cell["test"]:
        case "front door":
            return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"
        case "schedule":
            pairs = zip(found["used"], found["asked"], strict=True)
            right = all(abs(used / asked - 1) < 1e-4 for used, asked in pairs)
            return right, "each step has the lr that a scheduler wrote"
        case "arguments" if "steps" in found:
            steps, asked = found["steps"], found["asked"]
            text = f"two parameters adapt for {steps} steps, asked {asked}"
            return all(each == asked for each in steps), text
        case "arguments":
            text = "step(burn_in=True) does what step(burn_in=False) does"
            return found["with_true"] != found["without"], text
        case "two states":
            text = "an earlier optimiser changes nothing, difference"
        case _:
            text = "a state_dict read again goes on, difference"
    return found["difference"] == 0, f"{text} {found['difference']:g}"
