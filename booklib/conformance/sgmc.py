"""The laws of *sgmc*, ours: ``code`` is that of the flows of which it is made, and
``documentation`` that of the algorithm as its paper writes it, written down here again
and taken apart into F and Q, so that no line of the package decides about itself.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from booklib.conformance.thermostat import mean_field_variance
from booklib.conformance.verdicts import Laws, Problem
from sgmc.matrices import Matrix
from sgmc.splittings import LinearChain, flows, linear_chain

Gradient = Callable[[Tensor], Tensor]
Normal = Callable[[], Tensor]


def _written(algorithm: Callable, problem: Problem, momentum: bool = True):
    """Give the chain of an algorithm on the problem. Positions, momenta and random
    numbers are linear forms, ``(dim, columns)``: of the start, and of fresh numbers.
    """
    dim = len(problem.curvature)
    forms: Iterator[Tensor] = iter(torch.eye(64 * dim, dtype=torch.float64).split(dim))
    start = [next(forms) for _ in range(1 + momentum)]

    def gradient(position: Tensor) -> Tensor:
        fresh = math.sqrt(problem.gradient_variance) * next(forms)
        return problem.curvature[:, None] * position + fresh

    found = algorithm(*start, gradient, lambda: next(forms))
    found = torch.cat(found if momentum else [found])
    transition, noise = found[:, : len(found)], found[:, len(found) :]
    return LinearChain(transition, noise @ noise.T)


def _column(given: dict, name: str, default: float = 0.0) -> Any:
    """Turn a number or a diagonal into a column."""
    value = given.get(name, default)
    if isinstance(value, list):
        return torch.tensor(value, dtype=torch.float64)[:, None]
    return value


def _matrix(value: Any) -> Any:
    return value[:, 0] if isinstance(value, Tensor) else value


def sgld(given: dict, problem: Problem) -> Laws:
    """kernels/langevin.py; Welling and Teh (2011), eq. 4, with ε = 2η and a
    preconditioner M⁻¹. A schedule has the step size η₀/(1 + t) here.
    """
    step, mass = (
        given["step_size"] / (1 + given.get("at", 0)),
        _column(given, "mass", 1),
    )
    estimate, temperature = given.get("noise_estimate", 0.0), problem.temperature
    if "held" in given:
        law = _held(flows.sgld(step), given["held"], problem)
        return Laws(code=law, documentation=law)

    def algorithm(position: Tensor, gradient: Gradient, normal: Normal) -> Tensor:
        spread = 2 * step * (temperature / mass - estimate / mass**2)
        return position - step * gradient(position) / mass + spread**0.5 * normal()

    return Laws(
        code=flows.sgld(step, estimate, temperature, _matrix(mass)),
        documentation=_written(algorithm, problem, momentum=False),
    )


def sghmc(given: dict, problem: Problem) -> Laws:
    """kernels/sghmc.py; Chen et al. (2014), Algorithm 2: the position first,
    then the gradient at the new one. With a learning rate η, α and β̂ (eq. 15),
    ε = √η, C = α/ε and B̂ = β̂/ε; an online estimate of a known V is ½εV.
    """
    dim, temperature = len(problem.curvature), problem.temperature
    mass, estimate = given.get("mass", 1.0), given.get("noise_estimate", 0.0)
    if "learning_rate" in given:
        step = math.sqrt(given["learning_rate"])
        friction = given["momentum_decay"] / step
        estimate = estimate if estimate == "online" else estimate / step
    else:
        step = given["step_size"] / (1 + given.get("at", 0))
        friction = given["friction"]
    if estimate == "online":
        estimate = step * problem.gradient_variance / 2
    if "held" in given:
        law = _held(flows.sghmc(step, friction), given["held"], problem)
        return Laws(code=law, documentation=law)
    refreshed, times = "resample_every" in given, given.get("num_steps", 1)
    m, c, b = (_dense(each, dim) for each in (mass, friction, estimate))
    root = torch.linalg.cholesky(2 * step * (temperature * c - b))

    def algorithm(position, momentum, gradient, normal):
        if refreshed:
            momentum = torch.linalg.cholesky(temperature * m) @ normal()
        for _ in range(times):
            position = position + step * torch.linalg.solve(m, momentum)
            momentum = momentum - step * c @ torch.linalg.solve(m, momentum)
            momentum = momentum - step * gradient(position) + root @ normal()
        return [position, momentum]

    mass, friction = (
        torch.tensor(x, dtype=torch.float64) if isinstance(x, list) else x
        for x in (mass, friction)
    )
    parts = friction, estimate, mass, temperature
    first = [flows.refresh_flow(temperature * mass)] if refreshed else []
    return Laws(
        code=first + flows.sghmc(step, *parts) * times,
        documentation=_written(algorithm, problem),
    )


def _dense(value: Any, dim: int) -> Tensor:
    """Make a matrix from a number, a diagonal or a matrix."""
    given = torch.tensor(value, dtype=torch.float64)
    return given if given.ndim == 2 else given * torch.eye(dim, dtype=torch.float64)


def _held(step: list[flows.Flow], period: int, problem: Problem) -> Tensor:
    """Give the variance at the end of each minibatch that is held for several steps:
    its noise ζ enters all of them, z' = Fᵏz + Σ Fʲ(gζ + ξⱼ).
    """
    precision, dim = torch.diag(problem.curvature), len(problem.curvature)
    alone = linear_chain(step, precision)
    noisy = linear_chain(step, precision, problem.gradient_variance)
    shared = noisy.noise_covariance - alone.noise_covariance  # the shared part is gVgᵀ
    powers, total, injected = torch.eye(len(shared)).double(), 0.0, 0.0
    for _ in range(period):
        total = total + powers
        injected = injected + powers @ alone.noise_covariance @ powers.T
        powers = alone.transition @ powers
    whole = LinearChain(powers, injected + total @ shared @ total.T)
    return whole.stationary_covariance().diagonal()[:dim]


def _splitting(name: str) -> Callable[[dict, Problem], Laws]:
    def law(given: dict, problem: Problem) -> Laws:
        maker = {
            "BAOAB": flows.baoab,
            "OBABO": flows.obabo,
            "UBU": flows.ubu,
            "palindromic": flows.palindromic,
            "explicit Euler": flows.explicit_euler_sghmc,
        }[name]
        known = {key: _matrix(_column(given, key)) for key in given}
        algorithm = {
            "BAOAB": _baoab,
            "OBABO": _obabo,
            "UBU": _ubu,
            "palindromic": _palindromic,
            "explicit Euler": _explicit_euler,
        }[name](
            given["step_size"],
            given["friction"],
            _column(given, "mass", 1.0),
            problem.temperature,
            given.get("noise_estimate", 0.0),
        )
        return Laws(code=maker(**known), documentation=_written(algorithm, problem))

    law.__doc__ = f"""splittings/flows.py and splittings/kernel.py: {name}."""
    return law


def _exponential(rate: Any) -> Any:
    return rate.neg().exp() if isinstance(rate, Tensor) else math.exp(-rate)


def _baoab(step, friction, mass, temperature, _):
    """Leimkuhler and Matthews (2013)."""
    kept = _exponential(friction * step / mass)

    def algorithm(position, momentum, gradient, normal):
        momentum = momentum - step / 2 * gradient(position)
        position = position + step / 2 * momentum / mass
        spread = temperature * mass * (1 - kept**2)
        momentum = kept * momentum + spread**0.5 * normal()
        position = position + step / 2 * momentum / mass
        return [position, momentum - step / 2 * gradient(position)]

    return algorithm


def _obabo(step, friction, mass, temperature, _):
    """Bussi and Parrinello (2007): half a thermostat on either side of velocity
    Verlet.
    """
    kept = _exponential(friction * step / 2 / mass)
    spread = temperature * mass * (1 - kept**2)

    def algorithm(position, momentum, gradient, normal):
        momentum = kept * momentum + spread**0.5 * normal()
        momentum = momentum - step / 2 * gradient(position)
        position = position + step * momentum / mass
        momentum = momentum - step / 2 * gradient(position)
        return [position, kept * momentum + spread**0.5 * normal()]

    return algorithm


def _ubu(step, friction, mass, temperature, _):
    """Sanz-Serna and Zygalakis (2021), in velocities, whose free flow with the rate γ =
    C/M has the covariances of Chandrasekhar (1943), eq. 174–177.
    """
    rate, time = friction / mass, step / 2
    kept = _exponential(rate * time)
    of_velocity = temperature / mass * (1 - kept**2)
    of_position = (
        temperature / mass / rate**2 * (2 * rate * time - 3 + 4 * kept - kept**2)
    )
    both = temperature / mass / rate * (1 - kept) ** 2

    def free(position, velocity, normal):
        one, other = normal(), normal()
        position = position + (1 - kept) / rate * velocity
        position = position + of_position**0.5 * one
        left = (of_velocity - both**2 / of_position) ** 0.5
        velocity = kept * velocity + both / of_position**0.5 * one + left * other
        return position, velocity

    def algorithm(position, momentum, gradient, normal):
        position, velocity = free(position, momentum / mass, normal)
        velocity = velocity - step * gradient(position) / mass
        position, velocity = free(position, velocity, normal)
        return [position, mass * velocity]

    return algorithm


def _palindromic(step, friction, mass, temperature, estimate):
    """Between half drifts r' = r − ε∇Ũ − ½εCM⁻¹(r + r') + N(0, 2(C − B̂)ε), solved for
    r'.
    """
    half = step * friction / mass / 2

    def algorithm(position, momentum, gradient, normal):
        position = position + step / 2 * momentum / mass
        noise = (2 * step * (temperature * friction - estimate)) ** 0.5 * normal()
        kicked = (1 - half) * momentum - step * gradient(position) + noise
        momentum = kicked / (1 + half)
        return [position + step / 2 * momentum / mass, momentum]

    return algorithm


def _explicit_euler(step, friction, mass, temperature, estimate):
    """All from the old state."""

    def algorithm(position, momentum, gradient, normal):
        noise = (2 * step * (temperature * friction - estimate)) ** 0.5 * normal()
        kick = step * gradient(position) + step * friction * momentum / mass
        return [position + step * momentum / mass, momentum - kick + noise]

    return algorithm


def _leapfrog(step, num_steps, mass):
    """Neal (2011), eq. 5.18–5.20, from a fresh momentum; neighbouring half kicks share
    a gradient.
    """

    def algorithm(position, momentum, gradient, normal):
        momentum = mass**0.5 * normal()
        slope = gradient(position)
        for _ in range(num_steps):
            momentum = momentum - step / 2 * slope
            position = position + step * momentum / mass
            slope = gradient(position)
            momentum = momentum - step / 2 * slope
        return [position, momentum]

    return algorithm


def naive_sghmc(given: dict, problem: Problem) -> Laws:
    """kernels/naive_sghmc.py; Chen et al. (2014), Section 3.1, whose bias is
    documented. With its correction step the target's law is exact, since a trajectory
    and its reversal have the same noise.
    """
    if given.get("metropolis"):
        return _exact(given, problem)
    step, num_steps = given["step_size"], given["num_steps"]
    mass = _column(given, "mass", 1.0)
    return Laws(
        code=flows.naive_sghmc(step, num_steps, _matrix(mass)),
        documentation=_written(_leapfrog(step, num_steps, mass), problem),
    )


def hmc(given: dict, problem: Problem) -> Laws:
    """kernels/hmc.py; Neal (2011): exact, but for ``metropolis=False``."""
    return (
        _exact(given, problem)
        if given.get("metropolis", True)
        else naive_sghmc(given, problem)
    )


def _exact(given: dict, problem: Problem) -> Laws:
    """Correcting kernels have the target's law."""
    law = problem.temperature / problem.curvature
    return Laws(code=law, documentation=law)


def sgnuts(given: dict, problem: Problem) -> Laws:
    """kernels/sgnuts.py. A tree of depth one is one step from a fresh momentum,
    to the right or to the left, which have one law. With weights "work" every tree is
    exact. Deep trees with uniform weights have no known law.
    """
    if given.get("weights") == "work":
        return _exact(given, problem)
    mass = _column(given, "mass", 1.0)
    arguments = (
        given["step_size"],
        given["friction"],
        mass,
        1.0,
        given.get("noise_estimate", 0.0),
    )
    step, friction, _, _, estimate = arguments
    whole = given.get("integrator") == "drift_kick"
    make = flows.sghmc if whole else flows.palindromic
    dim = len(problem.curvature)

    def algorithm(position, gradient, normal):
        momentum = mass**0.5 * normal()
        if whole:  # the position of SGHMC moves first
            return position + step * momentum / mass
        return _palindromic(*arguments)(position, momentum, gradient, normal)[0]

    path = [flows.refresh_flow(_matrix(mass))]
    chain = problem.chain(path + make(step, friction, estimate, _matrix(mass)))
    code = LinearChain(*(x[:dim, :dim] for x in chain))
    return Laws(code=code, documentation=_written(algorithm, problem, momentum=False))


def sgnht(given: dict, problem: Problem) -> Laws:
    """other_kernels/sgnht.py; Ding et al. (2014), Algorithm 2: kick and friction,
    then the position by the new momentum. In the limit of many coordinates.
    """
    step, mass = given["step_size"], given.get("mass", 1.0)

    def moves(xi: float) -> list[flows.Flow]:
        noise = flows.noise_flow(Matrix(2 * given["diffusion"] * step))
        friction = flows.friction_flow(step, xi, mass)
        return [friction, flows.Kick(step), noise, flows.Drift(step, mass)]

    law = mean_field_variance(
        moves,
        problem.curvature,
        problem.temperature,
        problem.gradient_variance,
        mass,
    )
    return Laws(code=law, documentation=law)


def cyclical(given: dict, problem: Problem) -> Laws:
    """other_kernels/cyclical.py; Zhang et al. (2020), Algorithm 1: η = ½η₀(cos
    πj/ℓ + 1), here of SGLD; a call goes from one draw to the next. An exploration
    that is cold has the temperature 0.
    """
    length, draws = given["cycle_length"], given["num_draws"]
    exploring = math.ceil(round(given["exploration"] * length, 9))
    number, first = given.get("at", 0) % draws, 0
    places = [exploring + (length - exploring) * n // draws for n in range(draws + 1)]
    first, last = places[number] if number else 0, places[number + 1]
    rates = [
        given["step_size"] / 2 * (math.cos(math.pi * j / length) + 1)
        for j in range(first, last)
    ]
    temperatures = [
        0.0 if "explorer" in given and j < exploring else problem.temperature
        for j in range(first, last)
    ]

    def algorithm(position, gradient, normal):
        for rate, temperature in zip(rates, temperatures, strict=True):
            noise = (2 * rate * temperature) ** 0.5 * normal()
            position = position - rate * gradient(position) + noise
        return position

    steps = [
        flow
        for rate, temperature in zip(rates, temperatures, strict=True)
        for flow in flows.sgld(rate, temperature=temperature)
    ]
    documentation = _written(algorithm, problem, momentum=False)
    return Laws(code=steps, documentation=documentation)


LAWS = {name: _splitting(name) for name in ("BAOAB", "OBABO", "UBU")}
LAWS |= {name: _splitting(name) for name in ("palindromic", "explicit Euler")}
LAWS |= {"SGLD": sgld, "SGHMC": sghmc, "CompiledSGHMC": sghmc, "SGNHT": sgnht}
LAWS |= {"NaiveSGHMC": naive_sghmc, "HMC": hmc, "NUTS": _exact, "SGNUTS": sgnuts}
LAWS |= {"RandomWalkMetropolis": _exact, "Cyclical": cyclical}


def observed(cell: dict) -> tuple[bool, str]:
    """Judge the cells that have no exact law. ``Splitting`` has a temperature, by
    which ``sample`` judges the width of the samples; and a warning reports trees that
    reach their largest depth (kernels/trees.py, ``diagnose``), without a word on
    whether the draws are right.
    """
    found = cell["observed"]
    if "target_temperature" in found:
        given, known = cell["given"]["temperature"], found["target_temperature"]
        text = f"sample takes {known:g} for the temperature {given:g} of the flows"
        return known == given and not found["warned"], text
    if "told" in found:
        text = "a warning tells that trees reach max_depth, at"
        return found["told"], f"{text} {found['ratio']:.3g} times the variance"
    if cell["test"] == "front door":
        return bool(found["finite"]) and found["moved"] > 0, "finite, and moves"
    text = "a run after another one is the same, difference"
    if cell["test"] == "resume":
        text = "a run that was saved and resumed is the same, difference"
    return found["difference"] == 0, f"{text} {found['difference']:g}"
