"""The algorithms: ``lab/algorithms/*.js`` in Python. A state is a dict, and so are
parameters, with the landscape among them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from lab.reference import core
from lab.reference.core import Noise, Parameters, State
from lab.reference.trees import Point, Vector, grow_tree


class Algorithm(Protocol):
    """How a chain moves."""

    def init(
        self, position: Sequence[float], parameters: Parameters, noise: Noise
    ) -> State:
        """Make the state in which a chain starts."""

    def step(self, state: State, parameters: Parameters, noise: Noise) -> State:
        """Make the next state, and say in its ``info`` what was learned."""


class Leapfrog:
    """One leapfrog step with exact gradients."""

    def init(self, position, parameters, noise):
        """Start with a momentum from N(0, 1)."""
        return {
            "position": list(position),
            "momentum": core.draw_momentum(position, noise),
            "num_gradients": 0,
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Take a step."""

        def gradient(position: Vector) -> Vector:
            return core.gradient(position, parameters)

        position, momentum, _ = core.leapfrog(
            gradient, state["position"], state["momentum"], parameters["step_size"], 1
        )
        return {
            "position": position,
            "momentum": momentum,
            "num_gradients": state["num_gradients"] + 2,
            "info": {},
        }


class RandomWalk:
    """Random-walk Metropolis: propose θ' ~ N(θ, ε²), accept with probability min(1,
    π(θ')/π(θ)).
    """

    def init(self, position, parameters, noise):
        """Start at a position."""
        return {
            "position": list(position),
            "energy": core.energy(position, parameters),
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Propose a move, and accept or reject it."""
        proposal = [
            x + parameters["step_size"] * noise.normal() for x in state["position"]
        ]
        proposed_energy = core.energy(proposal, parameters)
        accepted, acceptance = core.accept(state["energy"], proposed_energy, noise)
        position, energy = (
            (proposal, proposed_energy)
            if accepted
            else (state["position"], state["energy"])
        )
        info = {"accepted": accepted, "acceptance": acceptance, "proposal": proposal}
        return {"position": position, "energy": energy, "info": info}


class HMC:
    """Hamiltonian Monte Carlo: a leapfrog trajectory, accepted or rejected."""

    def init(self, position, parameters, noise):
        """Start at a position with a momentum from N(0, 1)."""
        momentum, energy = (
            core.draw_momentum(position, noise),
            core.energy(position, parameters),
        )
        return {
            "position": list(position),
            "momentum": momentum,
            "energy": energy,
            "num_gradients": 0,
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Draw a momentum, follow a trajectory, accept or reject its end."""
        num_steps = parameters["num_steps"]
        start = core.draw_momentum(state["position"], noise)

        def gradient(position: Vector) -> Vector:
            return core.gradient(position, parameters)

        proposal, momentum, path = core.leapfrog(
            gradient, state["position"], start, parameters["step_size"], num_steps
        )
        position, energy = proposal, core.energy(proposal, parameters)
        before = state["energy"] + core.kinetic_energy(start)
        after = energy + core.kinetic_energy(momentum)
        accepted, acceptance = core.accept(before, after, noise)
        if not accepted:
            position, momentum, energy = (
                state["position"],
                [-r for r in start],
                state["energy"],
            )
        num_gradients = state["num_gradients"] + num_steps + 1
        info = {
            "accepted": accepted,
            "acceptance": acceptance,
            "proposal": proposal,
            "path": path,
        }
        return {
            "position": position,
            "momentum": momentum,
            "energy": energy,
            "num_gradients": num_gradients,
            "info": info,
        }


class NUTS:
    """The no-U-turn sampler with multinomial weights."""

    def init(self, position, parameters, noise):
        """Start at a position."""
        gradient, energy = (
            core.gradient(position, parameters),
            core.energy(position, parameters),
        )
        return {
            "position": list(position),
            "gradient": gradient,
            "energy": energy,
            "num_gradients": 1,
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Draw a momentum, grow a path until it turns, and move to one of its
        states.
        """
        step_size = parameters["step_size"]
        momentum = core.draw_momentum(state["position"], noise)
        start_energy = state["energy"] + core.kinetic_energy(momentum)
        kept = {name: state[name] for name in ("position", "energy", "gradient")}

        def leapfrog(point: Point) -> Point:
            momentum = [
                r - step_size / 2 * slope
                for r, slope in zip(point["momentum"], point["gradient"], strict=True)
            ]
            position = [
                x + step_size * r
                for x, r in zip(point["position"], momentum, strict=True)
            ]
            energy, gradient = (
                core.energy(position, parameters),
                core.gradient(position, parameters),
            )
            momentum = [
                r - step_size / 2 * slope
                for r, slope in zip(momentum, gradient, strict=True)
            ]
            log_weight = start_energy - energy - core.kinetic_energy(momentum)
            return {
                "position": position,
                "momentum": momentum,
                "log_weight": log_weight,
                "energy": energy,
                "gradient": gradient,
            }

        start = kept | {"momentum": momentum, "log_weight": 0.0}
        chosen, num_steps, info = grow_tree(
            start, leapfrog, parameters["max_depth"], noise, 1000.0
        )
        kept = {name: chosen[name] for name in ("position", "energy", "gradient")}
        return kept | {
            "num_gradients": state["num_gradients"] + num_steps,
            "info": info,
        }


class SGLD:
    """Stochastic-gradient Langevin dynamics."""

    def init(self, position, parameters, noise):
        """Start at a position."""
        return {
            "position": list(position),
            "gradient": [0.0 for _ in position],
            "num_gradients": 0,
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Take a step."""
        step_size = parameters["step_size"]
        root = core.injected_root(1, parameters["noise_estimate"], step_size)
        gradient = core.stochastic_gradient(state["position"], parameters, noise)
        position = [
            x - step_size * slope + root * noise.normal()
            for x, slope in zip(state["position"], gradient, strict=True)
        ]
        return {
            "position": position,
            "gradient": gradient,
            "num_gradients": state["num_gradients"] + 1,
            "info": {},
        }


class NaiveSGHMC:
    """Naive stochastic-gradient HMC: leapfrog trajectories with stochastic gradients,
    whose end is taken.
    """

    def init(self, position, parameters, noise):
        """Start at a position."""
        return {
            "position": list(position),
            "momentum": [0.0 for _ in position],
            "num_gradients": 0,
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Follow one noisy trajectory."""
        num_steps = parameters["num_steps"]

        def gradient(position: Vector) -> Vector:
            return core.stochastic_gradient(position, parameters, noise)

        start = core.draw_momentum(state["position"], noise)
        position, momentum, path = core.leapfrog(
            gradient, state["position"], start, parameters["step_size"], num_steps
        )
        num_gradients = state["num_gradients"] + num_steps + 1
        return {
            "position": position,
            "momentum": momentum,
            "num_gradients": num_gradients,
            "info": {"path": path},
        }


class SGHMC:
    """Stochastic-gradient Hamiltonian Monte Carlo (Chen et al., 2014, Algorithm 2)."""

    def init(self, position, parameters, noise):
        """Start at a position with a momentum from N(0, 1)."""
        momentum, gradient = (
            core.draw_momentum(position, noise),
            [0.0 for _ in position],
        )
        return {
            "position": list(position),
            "momentum": momentum,
            "gradient": gradient,
            "num_gradients": 0,
            "info": {},
        }

    def step(self, state, parameters, noise):
        """Drift, then kick with the gradient at the new position."""
        position, momentum, gradient = drift_kick(
            state["position"], state["momentum"], parameters, noise
        )
        num_gradients = state["num_gradients"] + 1
        return {
            "position": position,
            "momentum": momentum,
            "gradient": gradient,
            "num_gradients": num_gradients,
            "info": {},
        }


class SGNUTS:
    """Stochastic-gradient NUTS.

    Args:
        forward: the step to the right, from position and momentum to the next ones.
        weigh: the log-weight of a state.
    """

    def __init__(self, forward: Callable, weigh: Callable):
        self.forward, self.weigh = forward, weigh

    def init(self, position, parameters, noise):
        """Start at a position."""
        return {"position": list(position), "num_gradients": 0, "info": {}}

    def step(self, state, parameters, noise):
        """Draw a momentum, grow a path until it turns, and move to one of its
        states.
        """
        start = {
            "position": state["position"],
            "momentum": core.draw_momentum(state["position"], noise),
            "log_weight": 0.0,
        }

        def step_right(point: Point) -> Point:
            position, momentum, *_ = self.forward(
                point["position"], point["momentum"], parameters, noise
            )
            return {
                "position": position,
                "momentum": momentum,
                "log_weight": self.weigh(position, momentum, start, parameters),
            }

        chosen, num_steps, info = grow_tree(
            start, step_right, parameters["max_depth"], noise, math.inf
        )
        return {
            "position": chosen["position"],
            "num_gradients": state["num_gradients"] + num_steps,
            "info": info,
        }


class Cyclical:
    """SGLD with a step size that falls from η₀ to almost nothing, again and again."""

    def init(self, position, parameters, noise):
        """Start at the beginning of a cycle."""
        return SGLD().init(position, parameters, noise)

    def step(self, state, parameters, noise):
        """Take the next step of a cycle."""
        cycle_length, num_draws = parameters["cycle_length"], parameters["num_draws"]
        cycle, phase = divmod(state["num_gradients"], cycle_length)
        step_size = (
            0.5
            * parameters["step_size"]
            * (1 + core.cos(3.141592653589793 * phase / cycle_length))
        )
        noise_estimate = 0.5 * step_size * parameters["noise_variance"]
        state = SGLD().step(
            state,
            parameters | {"step_size": step_size, "noise_estimate": noise_estimate},
            noise,
        )
        num_exploring = math.ceil(parameters["exploration"] * cycle_length - 1e-9)
        sampling, sampled = cycle_length - num_exploring, phase + 1 - num_exploring
        draw = math.ceil(sampled * num_draws / sampling)
        kept = sampled > 0 and sampling * draw // num_draws == sampled
        info = {
            "cycle": cycle,
            "phase": phase,
            "step_size": step_size,
            "exploring": phase < num_exploring,
            "kept": kept,
        }
        return state | {"info": info}


def drift_kick(
    position: Vector, momentum: Vector, parameters: Parameters, noise: Noise
) -> tuple[Vector, Vector, Vector]:
    """Take the step of SGHMC, θ ← θ + εr, r ← r − εCr − ε∇Ũ(θ) + N(0, 2(C − B̂)ε)."""
    step_size, friction = parameters["step_size"], parameters["friction"]
    root = core.injected_root(friction, parameters["noise_estimate"], step_size)
    position = [x + step_size * r for x, r in zip(position, momentum, strict=True)]
    gradient = core.stochastic_gradient(position, parameters, noise)
    momentum = [
        r - step_size * friction * r - step_size * slope + root * noise.normal()
        for r, slope in zip(momentum, gradient, strict=True)
    ]
    return position, momentum, gradient


def palindromic(
    position: Vector, momentum: Vector, parameters: Parameters, noise: Noise
) -> tuple[Vector, Vector]:
    """Take the repaired step: half a drift, a kick with friction on the mean of the
    momenta before and after, half a drift.
    """
    step_size, friction = parameters["step_size"], parameters["friction"]
    root, half = (
        core.injected_root(friction, parameters["noise_estimate"], step_size),
        step_size / 2,
    )
    position = [x + half * r for x, r in zip(position, momentum, strict=True)]
    gradient = core.stochastic_gradient(position, parameters, noise)
    momentum = [
        ((1 - half * friction) * r - step_size * slope + root * noise.normal())
        / (1 + half * friction)
        for r, slope in zip(momentum, gradient, strict=True)
    ]
    return [x + half * r for x, r in zip(position, momentum, strict=True)], momentum


def by_energy(
    position: Vector, momentum: Vector, start: Point, parameters: Parameters
) -> float:
    """Weigh a state by exp(−H), as NUTS does."""
    gained = core.energy(position, parameters) - core.energy(
        start["position"], parameters
    )
    return -(
        gained + core.kinetic_energy(momentum) - core.kinetic_energy(start["momentum"])
    )


def equally(
    position: Vector, momentum: Vector, start: Point, parameters: Parameters
) -> float:
    """Weigh all finite states alike."""
    return 0.0 if math.isfinite(momentum[0] + momentum[1]) else -math.inf


ALGORITHMS: dict[str, Algorithm] = {
    "leapfrog": Leapfrog(),
    "random_walk": RandomWalk(),
    "hmc": HMC(),
    "nuts": NUTS(),
    "sgld": SGLD(),
    "naive_sghmc": NaiveSGHMC(),
    "sghmc": SGHMC(),
    "sgnuts_energy": SGNUTS(drift_kick, by_energy),
    "sgnuts_repaired": SGNUTS(palindromic, equally),
    "cyclical": Cyclical(),
}
