"""The laws of *jax-sgmc* (Thaler, Fuchs, Cukarska and Zavadlav, 2024), version 0.1.5.

``potential_temperature`` is the ``temperature`` of ``minibatch_potential`` and of
``full_potential``, which divides the potential; ``temperature`` is the scheduler's.
Momenta have the book's unit.
"""

from functools import cache

import torch
from torch import Tensor

from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows, linear_chain

CHAINS = 10_000  # the number of chains by which a law is simulated here
ERROR = (2 / CHAINS) ** 0.5  # the relative error of its variances


def sgld(given: dict, problem: Problem) -> Laws:
    """integrator.py:871-912: θ − ε∇U + N(0, 2Tε). Right, at either temperature; the
    gradient is that of the sum over the data (potential.py:183).
    """
    temperature = given.get("temperature", 1.0)
    step = flows.sgld(given["step_size"], temperature=temperature)
    chain = _chain(step, given, problem)
    return Laws(code=chain, documentation=chain)


def sgld_rms(given: dict, problem: Problem) -> Laws:
    """adaption.py:271 and :290, integrator.py:903-909: θ − εG∇U + N(0, 2TεG), with v₀ =
    1 and G = 1/(λ + √v). The paper that the docstring names has the term Γ, too, and
    says that it may be left out; the step is half of the paper's. With ``alpha`` = 1
    the preconditioner stays 1/(λ + 1): a mass.
    """
    if given["alpha"] == 1.0:
        step = flows.sgld(given["step_size"], mass=1 + given["lmbd"])
        law = _chain(step, given, problem)
    else:
        names = ("step_size", "alpha", "lmbd", "iterations")
        settings = [given[name] for name in names]
        temperature = given.get("temperature", 1.0)
        law = _adapted(_of(problem), *settings, temperature)
    return Laws(code=law, documentation=law, error=ERROR)


def sghmc(given: dict, problem: Problem) -> Laws:
    """integrator.py:609-655: Algorithm 2 of Chen et al. (2014), with the gradient at
    the new position, but with noise N(0, 2εC²) in place of N(0, 2εC) (:653-654):
    ``friction`` is the friction and, in effect, the temperature. Neither the noise nor
    the fresh momentum (:735-738) reads the scheduler's temperature. Right at C = T = 1,
    also with a mass or the potential's temperature; every step has a minibatch of its
    own.

    With a noise model it is N(0, 2ε(C − B̂)), as it should be, but adaption.py:411 and
    :432 take for V the variance of the gradient of one observation's likelihood; the
    gradient that the step uses has N²/n times that. And :423 subtracts the gradient of
    a potential from one of a likelihood, of another sign, so V has 4 times the square
    of the mean in it.
    """
    step, friction, steps = given["step_size"], given["friction"], given["steps"]
    mass, temperature = given.get("mass", 1.0), given.get("temperature", 1.0)
    if given.get("noise_model"):
        estimate = step * problem.gradient_variance / 2
        documented = flows.sghmc(step, friction, estimate) * steps
        settings = (given["batch_size"], step, friction, steps, given["iterations"])
        return Laws(
            code=_estimated(_of(problem), 2 ** (len(problem.curvature) + 1), *settings),
            documentation=[flows.refresh_flow(), *documented],
            error=ERROR,
        )
    moves = flows.sghmc(step, friction, mass=mass)[:3]
    moves.append(flows.noise_flow(Matrix(2 * step * friction**2)))
    right = flows.sghmc(step, friction, mass=mass, temperature=temperature)
    fresh = flows.MomentumMap(Matrix(0.0), Matrix(temperature * mass))
    return Laws(
        code=_chain([flows.refresh_flow(mass), *moves * steps], given, problem),
        documentation=_chain([fresh, *right * steps], given, problem),
    )


def obabo(given: dict, problem: Problem) -> Laws:
    """integrator.py:192-257, with a friction that is C/M, and two minibatches a step.
    Right, for the mass and both temperatures.
    """
    mass, temperature = given.get("mass", 1.0), given.get("temperature", 1.0)
    friction = given["friction"] * mass
    step = flows.obabo(given["step_size"], friction, mass, temperature)
    chain = _chain(step * given["steps"], given, problem)
    return Laws(code=chain, documentation=chain)


def reversible_leapfrog(given: dict, problem: Problem) -> Laws:
    """integrator.py:402-458: as in Zhang et al. (2020), Algorithm 2, with ``friction``
    their β, which is C/2M. The scheduler's temperature is not read (:419-421). Right at
    T = 1.
    """
    mass = given.get("mass", 1.0)
    friction, temperature = 2 * given["friction"] * mass, given.get("temperature", 1.0)

    def step(temperature: float) -> LinearChain:
        moves = flows.palindromic(given["step_size"], friction, mass=mass)
        injected = 2 * given["step_size"] * friction * temperature
        moves[3] = flows.noise_flow(Matrix(injected))
        return _chain(moves * given["steps"], given, problem)

    return Laws(code=step(1.0), documentation=step(temperature), start_momentum=mass)


def amagold(given: dict, problem: Problem) -> Laws:
    """solver.py:365-424: the target, whatever the noise and the step size, as the
    docstring says, and with the mass and the potential's temperature; the scheduler's
    temperature is not read (:385).
    """
    target = problem.temperature / problem.curvature
    return Laws(code=target / given.get("temperature", 1.0), documentation=target)


def sggmc(given: dict, problem: Problem) -> Laws:
    """solver.py:501-567: after a rejection the momentum is that of before the proposal
    (:541). Balance asks for its negative, as :func:`amagold` has it (solver.py:400), so
    the chain's distribution is near the target only where few proposals are rejected,
    or where little is left of the momentum. The energies and both temperatures are
    right.
    """
    settings = [
        given[name] for name in ("step_size", "steps", "friction", "iterations")
    ]
    temperatures = [given.get(x, 1.0) for x in ("temperature", "potential_temperature")]
    law = _guided(_of(problem), *settings, given.get("mass", 1.0), *temperatures)
    target = problem.temperature / problem.curvature
    return Laws(code=law, documentation=target, error=ERROR)


def re_sgld(given: dict, problem: Problem) -> Laws:
    """solver.py:286-291: the chains are exchanged where the test log u < log s *fails*,
    so the branches of ``lax.cond`` are the wrong way round; the documentation exchanges
    them where it holds (Deng et al., 2020, Algorithm 1). Besides, the energies are
    those before the step (integrator.py:919).
    """
    settings = given["step_size"], given["hot"], given["iterations"]
    code, documented = (_exchanged(_of(problem), *settings, x) for x in (False, True))
    return Laws(code=code, documentation=documented, error=ERROR)


def _chain(moves: list, given: dict, problem: Problem) -> LinearChain:
    scale = given.get("potential_temperature", 1.0)
    precision = torch.diag(problem.curvature) / scale
    return linear_chain(moves, precision, problem.gradient_variance / scale**2)


def _of(problem: Problem) -> tuple:
    return tuple(problem.curvature.tolist()), problem.gradient_variance


class _Normal:
    """Draw normal numbers of one shape, from a seed."""

    def __init__(self, curvature: tuple):
        self.a = torch.tensor(curvature, dtype=torch.float64)
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self) -> Tensor:
        shape, kind = (CHAINS, len(self.a)), torch.float64
        return torch.randn(shape, dtype=kind, generator=self.generator)

    def log_uniform(self) -> Tensor:
        kind = torch.float64
        return torch.rand(CHAINS, 1, dtype=kind, generator=self.generator).log()

    def energy(self, x: Tensor) -> Tensor:
        return (self.a * x**2).sum(1, keepdim=True) / 2


@cache
def _adapted(
    of: tuple, step: float, alpha: float, lmbd: float, steps: int, temperature: float
) -> Tensor:
    """Simulate E θ² of SGLD with RMSprop, from N(0, 1)."""
    curvature, variance = of
    normal = _Normal(curvature)
    x = normal()
    v = torch.ones_like(x)
    for _ in range(steps):
        g = normal.a * x + variance**0.5 * normal().sign()
        v = alpha * v + (1 - alpha) * g**2
        rate = step / (lmbd + v.sqrt())
        x = x - rate * g + (2 * temperature * rate).sqrt() * normal()
    return (x**2).mean(0)


@cache
def _estimated(
    of: tuple,
    count: int,
    size: int,
    step: float,
    friction: float,
    steps: int,
    times: int,
) -> Tensor:
    """Simulate E θ² of SGHMC with its noise model, from N(0, 1), with a minibatch of
    signs times √(nV) out of N data, whose log likelihood is −(½aθ² + xθ)/N.
    """
    curvature, variance = of
    normal = _Normal(curvature)
    x = normal()
    for _ in range(times):
        r = normal()
        for _ in range(steps):
            x = x + step * r
            batch = [(size * variance) ** 0.5 * normal().sign() for _ in range(size)]
            g = normal.a * x + sum(batch) / size
            square = sum((g + normal.a * x + each) ** 2 for each in batch)
            room = friction - step * square / (size - 1) / count**2 / 2
            least = torch.where(room > 0, room, torch.inf).min(1, keepdim=True).values
            room = torch.where(room > 0, room, least)
            noise = (2 * step * room).sqrt() * normal()
            r = r - step * friction * r - step * g + noise
    return (x**2).mean(0)


@cache
def _guided(
    of: tuple,
    step: float,
    steps: int,
    friction: float,
    times: int,
    mass: float,
    temperature: float,
    scale: float,
) -> Tensor:
    """Simulate E θ² of SGGMC from N(0, 1) and no momentum."""
    curvature, variance = of
    normal = _Normal(tuple(each / scale for each in curvature))
    kept = torch.tensor(-friction * step, dtype=torch.float64).exp()

    def refresh(r: Tensor) -> Tensor:
        return kept.sqrt() * r + ((1 - kept) * temperature * mass).sqrt() * normal()

    def kick(x: Tensor, r: Tensor) -> Tensor:
        noise = variance**0.5 / scale * normal().sign()
        return r - step / 2 * (normal.a * x + noise)

    def kinetic(r: Tensor) -> Tensor:
        return (r**2).sum(1, keepdim=True) / 2 / mass

    x = normal()
    r = torch.zeros_like(x)
    for _ in range(times):
        y, s, change = x, r, -normal.energy(x)
        for _ in range(steps):
            s = refresh(s)
            change = change - kinetic(s)
            s = kick(y, s)
            y = y + step / mass * s
            s = kick(y, s)
            change = change + kinetic(s)
            s = refresh(s)
        change = change + normal.energy(y)
        accepted = normal.log_uniform() < -change / temperature
        x, r = torch.where(accepted, y, x), torch.where(accepted, s, r)
    return (x**2).mean(0)


@cache
def _exchanged(of: tuple, step: float, hot: float, steps: int, right: bool) -> Tensor:
    """Simulate E θ² of the cold one of two chains that start from one position, N(0,
    1).
    """
    normal = _Normal(of[0])
    cold = normal()
    warm = cold.clone()
    for _ in range(steps):
        before = normal.energy(cold) - normal.energy(warm)
        cold = cold - step * normal.a * cold + (2 * step) ** 0.5 * normal()
        warm = warm - step * normal.a * warm + (2 * step * hot) ** 0.5 * normal()
        after = normal.energy(cold) - normal.energy(warm)
        ratio = (1 - 1 / hot) * (after if right else before)
        swapped = (normal.log_uniform() < ratio) == right
        cold, warm = torch.where(swapped, warm, cold), torch.where(swapped, cold, warm)
    return (cold**2).mean(0)


LAWS = {
    "sgld": sgld,
    "sgld_rms": sgld_rms,
    "sghmc": sghmc,
    "obabo": obabo,
    "reversible_leapfrog": reversible_leapfrog,
    "amagold": amagold,
    "sggmc": sggmc,
    "re_sgld": re_sgld,
}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law."""
    found = cell["observed"]
    match cell["test"]:
        case "front door":
            if not found["finite"]:
                return False, "not finite: its default step size is 0/0"
            if not found["moved"]:
                return False, "positions never move: its default step size is 0/0"
            return True, "finite, and moves"
        case "two states":
            apart = found["difference_of_two_chains"]
            return apart > 0, (
                f"two chains of one call are {apart:.2g} apart at most"
                + ("" if apart else ": they have the same key")
            )
        case "schedule":
            if not found["finite"]:
                return False, "equal first and last step sizes give 0/0"
            wanted = cell["given"]["first"], cell["given"]["last"]
            ends = found["begins"], found["ends"]
            off = max(abs(x / y - 1) for x, y in zip(ends, wanted, strict=True))
            return off < 1e-3, f"from {ends[0]:.3g} to {ends[1]:.3g}"
    difference = found["difference"]
    return difference == 0, f"a state read again goes on, difference {difference:g}"
