"""The laws of *lightning-uq-box* (Lehmann et al., 2025), version 0.2.0."""

import torch

from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import flows


def sgld(given: dict, problem: Problem) -> Laws:
    """uq_methods/sgld.py:79–87: θ ← θ − ηg + N(0, 2ηs²) with η = ``lr`` and s =
    ``noise_factor``, "how much noise to inject": SGLD at the temperature s², with a
    weight decay that is a prior's. Of a mean over N examples the posterior has the
    temperature 1/N, so s = N^−½.
    """
    step, factor = given["lr"], given["noise_factor"]
    noise = Matrix(2 * step * torch.tensor(factor**2).double())
    return Laws(
        code=[flows.Descent(step, noise)],
        documentation=flows.sgld(step, temperature=problem.temperature),
    )


LAWS = {"SGLD": sgld}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["test"]:
        case "schedule":
            pairs = zip(found["used"], found["asked"], strict=True)
            right = all(abs(used / asked - 1) < 1e-6 for used, asked in pairs)
            return right, "each step has the lr that a scheduler wrote"
        case "resume":
            difference = found["difference"]
            return difference == 0, f"what was saved goes on, difference {difference:g}"
    if "difference" in found:
        difference = found["difference"]
        return (
            difference == 0,
            f"an earlier optimiser changes nothing, difference {difference:g}",
        )
    kept = found.get("samples", cell["given"].get("n_sgld_samples"))
    right = bool(found["finite"]) and found["moved"] > 0
    return right and kept == cell["given"].get("n_sgld_samples"), "finite, and moves"
