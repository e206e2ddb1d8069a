"""The laws of *blackjax* (Cabezas et al., 2024), version 1.7.1.

Its docstrings have no formulas: they name a paper, and an "Euler solver" of its
diffusion. So explicit Euler is as documented; its arguments mean what they are called.
"""

from functools import cache

import torch
from torch import Tensor

from booklib.conformance.thermostat import mean_field_variance
from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows, linear_chain

CHAINS = 4_000  # the number of chains by which a law is simulated here
ERROR = (3 / CHAINS) ** 0.5  # the least relative error of the variances


def sgld(given: dict, problem: Problem) -> Laws:
    """diffusions.py:41-48: x + ε g + N(0, 2εT). Right; gradients.py:67 is the prior and
    N times the mean over a batch, and its control variates (:128-133) are unbiased.
    """
    step = flows.sgld(given["step_size"], temperature=problem.temperature)
    return Laws(code=step, documentation=step)


def sghmc(given: dict, problem: Problem) -> Laws:
    """sghmc.py:52-54 draws a momentum N(0, 1) at every call, whatever the temperature,
    and takes one minibatch for all ``num_integration_steps``; diffusions.py:72-83 is
    explicit Euler with the noise N(0, εT(2α − εTβ)).

    At T = 1 all of this is as documented (a step takes one minibatch, β is the variance
    of the gradient); at others the momentum of the density is N(0, T), and ½εβ is B̂.
    """
    step, steps = given["step_size"], given["num_integration_steps"]
    temperature, beta = problem.temperature, given.get("beta", 0.0)
    friction = given.get("alpha", 0.01)

    def law(refreshed: float, power: int) -> LinearChain:
        estimate = step * temperature**power * beta / 2
        once = flows.explicit_euler_sghmc(
            step, friction, estimate, temperature=temperature
        )
        return _trajectory(once, steps, refreshed, problem)

    return Laws(code=law(1.0, 2), documentation=law(temperature, 0))


def _trajectory(
    once: list, steps: int, refreshed: float, problem: Problem
) -> LinearChain:
    """Compose a call to a chain of positions: a fresh momentum, then the steps, which
    have one noise ζ of the gradient.
    """
    precision, dim = torch.diag(problem.curvature), len(problem.curvature)
    one = linear_chain(once, precision, 0.0)
    identity = torch.eye(3 * dim, dtype=torch.float64)  # acts on (θ, r, ζ)
    move = torch.block_diag(one.transition, identity[:dim, :dim])
    # The momentum becomes r − ε(Aθ + ζ), with −εA as it is in the transition.
    move[dim : 2 * dim, 2 * dim :] = one.transition[dim:, :dim] / problem.curvature
    noise = torch.block_diag(one.noise_covariance, 0 * identity[:dim, :dim])
    start = torch.zeros(3 * dim, dtype=torch.float64)
    start[dim : 2 * dim], start[2 * dim :] = refreshed, problem.gradient_variance
    transition, covariance = identity, torch.diag(start)
    for _ in range(steps):
        transition = move @ transition
        covariance = move @ covariance @ move.T + noise
    return LinearChain(transition[:dim, :dim], covariance[:dim, :dim])


def sgnht(given: dict, problem: Problem) -> Laws:
    """diffusions.py:107-123: position and momentum from the old state, and the friction
    from the new momentum. Ding et al. (2014, Algorithm 2) move the position by the new
    momentum, so on uneven curvature this is far from the target, but it is an "Euler
    solver" as its docstring says. The friction finds the temperature on average.
    """
    step, temperature = given["step_size"], problem.temperature
    estimate = step * temperature * given.get("beta", 0.0)
    injected = Matrix(step * temperature * (2 * given.get("alpha", 0.01) - estimate))

    def euler(friction: float) -> list:
        kept = flows.MomentumMap(Matrix(1 - step * friction), injected)
        return [flows.AtOnce([flows.Kick(step), flows.Drift(step), kept])]

    law = mean_field_variance(
        euler, problem.curvature, temperature, problem.gradient_variance
    )
    return Laws(code=law, documentation=law)


def csgld(given: dict, problem: Problem) -> Laws:
    """Multiply the gradient by 1 + ζT(log θ(J) − log θ(J − 1))/Δu (csgld.py:136-142),
    where J is at least 1 (:155-161), so that θ(0) is never visited and decays to 0, and
    the factor of the lowest partition grows without bound.

    Deng et al. (2020, Algorithm 1), which it names, have (J − 1) ∨ 1 with J from 1, so
    that this factor is 1. The sampled density is flat in the energy on purpose; with
    ``zeta=0`` it is that of SGLD, as documented.
    """
    if given.get("zeta", 1.0) == 0.0:
        step = flows.sgld(given["step_size_diff"], temperature=problem.temperature)
        return Laws(code=step, documentation=step)
    settings = (
        *problem.curvature.tolist(),
        problem.gradient_variance,
        given["step_size_diff"],
        given["step_size_stoch"],
        given["num_partitions"],
        given["energy_gap"],
        given["min_energy"],
        given["steps"],
    )
    code, documented = (_contour(settings, lowest) for lowest in (0, 1))
    return Laws(code=code, documentation=documented, error=ERROR)


@cache
def _contour(settings: tuple, lowest: int) -> Tensor:
    """Simulate E θ² from N(0, 1/a) with ζ = T = 1; ``lowest`` bounds J − 1."""
    *curvature, variance, step, rate, partitions, gap, minimum, steps = settings
    generator = torch.Generator().manual_seed(0)
    a = torch.tensor(curvature, dtype=torch.float64)

    def normal() -> Tensor:
        shape = (CHAINS, len(a))
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    x = normal() / a.sqrt()
    theta = torch.arange(partitions, 0, -1, dtype=torch.float64).repeat(CHAINS, 1)
    theta = theta / theta[0].sum()
    at = torch.full((CHAINS, 1), partitions - 1)
    for _ in range(steps):
        below = theta.gather(1, (at - 1).clamp(min=lowest))
        factor = 1 + (theta.gather(1, at) / below).log() / gap
        noise = variance**0.5 * normal()
        x = x - step * factor * (a * x + noise) + (2 * step) ** 0.5 * normal()
        energy = (a * x**2 / 2 + noise * x).sum(1, keepdim=True)
        at = ((energy - minimum) / gap + 1).floor().long().clamp(1, partitions - 1)
        pull = rate * theta.gather(1, at)
        theta = (theta * (1 - pull)).scatter_add(1, at, pull)
    return (x**2).mean(0)


LAWS = {"sgld": sgld, "sghmc": sghmc, "sgnht": sgnht, "csgld": csgld}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["sampler"], cell["test"]:
        case _, "front door":
            if "example_raises" in found:
                return False, "finite, and moves; its docstring's init raises TypeError"
            if not found["finite"]:
                return False, f"not finite after {found['steps']:,} steps"
            return found["moved"] > 0, "finite, and moves"
        case "sgld", "arguments":
            bias = found["relative_bias"]
            return bias < 1e-5, "its gradients from minibatches are unbiased"
        case "sgnht", "arguments":
            return found["xi"] == 0, f"init_xi=0.0 becomes {found['xi']:g}"
        case "csgld", "arguments":
            return found["exponent"] < 1.001, (
                "the histogram moves by θ(J), as in Deng et al. (2022), not by θ(J)^ζ"
            )
        case _, "two states":
            return found["difference"] == 0, "two chains in turns do not mix"
    difference = found["difference"]
    return difference == 0, f"a state read again goes on, difference {difference:g}"
