"""The laws of *torch-sgld* (Kapoor, 2023), version 0.1.0."""

import math

from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import flows


def sgld(given: dict, problem: Problem) -> Laws:
    """sgld.py:42–46: θ ← θ − ηg + N(0, 2ηT) with η = ``lr``, as documented, and a
    weight decay that is a prior's (:29–30). ``maximize``, which the parent
    ``torch.optim.SGD`` documents, is accepted and not read: the step climbs U.
    """
    step, temperature = given["lr"], given.get("temperature", 1.0)
    noise = Matrix(2 * step * temperature)
    sign = -1 if given.get("maximize") else 1
    return Laws(
        code=[flows.Descent(sign * step, noise)],
        documentation=flows.sgld(step, temperature=temperature),
    )


def sghmc(given: dict, problem: Problem) -> Laws:
    """sgld.py:32–40: v ← (1 − m)v − ηg + N(0, 2ηmT), then θ ← θ + v, where m is
    ``momentum``: eq. 15 of Chen et al. (2014) with α = m. With ε = √η and M = 1 this is
    their Algorithm 2, the position last.

    The class is an SGD of PyTorch, where ``momentum`` is the share of the velocity that
    a step keeps, 1 − α, and the README says no other ("momentum=.9 to make it SG-HMC").
    Both have the target's law for small steps; at 0.5 they are the same.
    """
    step, temperature = given["lr"], given.get("temperature", 1.0)
    root, momentum = math.sqrt(step), given["momentum"]
    sign = -1 if given.get("maximize") else 1

    def kick_first(decay: float, sign: int = 1) -> list[flows.Flow]:
        drift, friction, _, noise = flows.sghmc(
            root, decay / root, temperature=temperature
        )
        return [friction, flows.Kick(sign * root), noise, drift]

    return Laws(
        code=kick_first(momentum, sign),
        documentation=kick_first(1 - momentum),
        momentum=1 / root,
    )


LAWS = {"SGLD": sgld, "SGHMC": sghmc}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found, given = cell["observed"], cell["given"]
    if "asked" in found:
        return _schedule(found, given)
    if "difference" in found:
        text = "an earlier optimiser changes nothing, difference"
        if cell["test"] == "resume":
            text = f"what {given['how']} kept goes on, difference"
        return found["difference"] == 0, f"{text} {found['difference']:g}"
    if "names" in found:
        return True, f"it exports {', '.join(found['names'])}"
    if given.get("group"):
        return found["moved"] > 0, "parameters that are added later move"
    return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"


def _schedule(found: dict, given: dict) -> tuple[bool, str]:
    """lr_scheduler.py:38–41: b = T / ((η₀/η₁)e^(1/γ) − 1), where (η₀/η₁)^(1/γ) ends at
    η₁; :90–95: cosine cycles, as in Zhang et al. (2020), eq. 1.
    """
    asked, used = found["asked"], found["used"]
    read = all(abs(x / y - 1) < 1e-9 for x, y in zip(used, asked, strict=True) if y)
    if "final_lr" in given:
        right = abs(asked[-1] / given["final_lr"] - 1) < 0.01
        text = f"it ends at {asked[-1]:.3g}, where final_lr = {given['final_lr']:g}"
        return read and right, text
    if "n_cycles" in given:
        length = math.ceil(given["T_max"] / given["n_cycles"])
        theirs = [
            math.cos(math.pi * (k % length) / length) + 1 for k in range(len(asked))
        ]
        right = all(
            abs(x - asked[0] * y / 2) < 1e-12
            for x, y in zip(asked, theirs, strict=True)
        )
        text = f"cosine cycles, {found['kept']} samples of {given['n_samples']}"
        return read and right and found["kept"] == given["n_samples"], text
    return read, "each step has the lr that a scheduler wrote"
