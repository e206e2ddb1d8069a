"""The laws of *bayestorch* (Della Libera, 2022), version 0.0.3.

Both samplers keep what they adapt in the optimiser's state; what a burn-in left there
is among the given, and frozen.
"""

from functools import lru_cache

import torch
from torch import Tensor

from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import flows

CHAINS = 4_000  # the number of chains by which a law is simulated here


def sgld(given: dict, problem: Problem) -> Laws:
    """optim/sgld.py:147–166: θ ← θ − ½ηGg + N(0, ηG), where G = (V + λ)^−½ and V is the
    running mean of g², which begins at 1. With the decay rate 1 it stays what it is,
    and this is SGLD with the mass 1/G. Li et al. (2016), Algorithm 1, have G = 1/(λ +
    √V), and leave out the same term Γ, as its Section 4 does. So the bias of a moving V
    is theirs: "should be close to 1 to approximate sampling from the posterior" (:91).
    """
    step, decay = given["lr"], given["precondition_decay_rate"]
    small = given.get("epsilon", 1e-8)
    if decay < 1:
        variances = (
            problem.gradient_variance,
            step,
            decay,
            tuple(problem.curvature.tolist()),
        )
        law = torch.tensor(_simulated(*variances, steps=400), dtype=torch.float64)
        return Laws(code=law, documentation=law, error=(2 / CHAINS) ** 0.5)
    one = torch.ones_like(problem.curvature)
    learned = one * torch.tensor(given.get("preconditioner", 1.0), dtype=torch.float64)
    return Laws(
        code=flows.sgld(step / 2, mass=(learned + small).sqrt()),
        documentation=flows.sgld(step / 2, mass=learned.sqrt() + small),
    )


@lru_cache
def _simulated(
    gradient_variance: float,
    step: float,
    decay: float,
    curvature: tuple[float, ...],
    steps: int,
) -> list[float]:
    """Run Algorithm 1 of Li et al. (2016) from θ = 0 and V = 1, and give the means of
    θ²: with a moving preconditioner no law is known in a formula.
    """
    generator = torch.Generator().manual_seed(5)
    a = torch.tensor(curvature)[:, None].expand(-1, CHAINS)
    position, square = torch.zeros(a.shape), torch.ones(a.shape)
    for _ in range(steps):
        gradient = a * position
        if gradient_variance:
            gradient += gradient_variance**0.5 * torch.randn(
                a.shape, generator=generator
            )
        square = decay * square + (1 - decay) * gradient**2
        scale = step / square.sqrt()
        position -= scale * gradient / 2
        position += scale.sqrt() * torch.randn(a.shape, generator=generator)
    return position.square().mean(1).tolist()


def sghmc(given: dict, problem: Problem) -> Laws:
    """optim/sghmc.py:159–181, with ε = ``lr``, M = √V̂ and C = Mα/ε: the velocity εM⁻¹r
    first, then the position by the new one, which gives the positions of Algorithm 2 of
    Chen et al. (2014), the only reference. Its noise has the variance 2ε²αM⁻¹ −
    2ε³M⁻²B̂ − ε⁴ with B̂ = ``grad_noise``, at least 1e-16.

    The last term is B̂ = ½εV̂, as in Springenberg et al. (2016), who are not named; with
    minibatch noise and an adapted V̂ it brings the variance nearer to the target. It is
    taken away from exact gradients too, without a burn-in (V̂ = 1), and beside
    ``grad_noise``, which the docstring calls the gradient noise used for sampling.
    """
    step, decay = given["lr"], given.get("momentum_decay", 0.05)
    estimate = given.get("grad_noise", 0.0)
    one = torch.ones_like(problem.curvature)
    mass = (one * torch.tensor(given.get("v_hat", 1.0), dtype=torch.float64)).sqrt()
    drift, friction, kick, noise = flows.sghmc(
        step, decay * mass / step, estimate, mass
    )
    velocity_noise = 2 * step**2 * decay / mass - 2 * step**3 * estimate / mass**2
    velocity_noise = (velocity_noise - step**4).clamp(min=given.get("epsilon", 1e-16))
    theirs = flows.noise_flow(Matrix(velocity_noise * (mass / step) ** 2))
    return Laws(
        code=[friction, kick, theirs, drift],
        documentation=[friction, kick, noise, drift],
        momentum=_only(mass / step),
    )


def _only(values: Tensor):
    """Return the common value of numbers that must all be equal."""
    return float(values[0]) if bool((values == values[0]).all()) else values


LAWS = {"SGLD": sgld, "SGHMC": sghmc}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["test"]:
        case "front door":
            text = "finite, and moves after its burn-in"
            return bool(found["finite"]) and found["moved"] > 0, text
        case "schedule":
            pairs = zip(found["used"], found["asked"], strict=True)
            right = all(abs(used / asked - 1) < 1e-6 for used, asked in pairs)
            return right, "each step has the lr that a scheduler wrote"
        case "two states":
            text = "an earlier optimiser changes nothing, difference"
        case _:
            text = "a state_dict read again goes on, difference"
    return found["difference"] == 0, f"{text} {found['difference']:g}"
