"""Samplers of numpy with one fault each: what the tool of `conformance` must see."""

import numpy as np

from conformance.sglaws import Adapter, Setting, laws


class SGLD(Adapter):
    """Welling and Teh's, with faults by name."""

    name, kind, documented = "SGLD", "sgld", staticmethod(laws.sgld)
    offers = frozenset({"temperature", "mass", "estimate"})
    at_defaults = Setting(step=1e-3)
    fault = ""

    def arguments(self, s):
        return {"lr": s.step, "T": s.temperature, "M": s.mass, "B": s.estimate}

    def init(self, theta, seed, lr=1e-3, T=1.0, M=1.0, B=0.0):
        SGLD.last = [lr, T, M, B]
        return [theta, [lr, T, M, B]]

    def step(self, state, target, seed):
        theta, (lr, T, M, B) = state
        if self.fault == "two states share their arguments":
            lr, T, M, B = SGLD.last
        if self.fault == "no temperature":
            T = 1.0
        if self.fault == "half of the estimate":
            B = B / 2
        if self.fault == "the mass is not read":
            M = 1.0
        noise = 2 * lr * (T - B) / M
        if self.fault == "a variance for a standard deviation":
            scale = noise
        else:
            scale = noise**0.5
        seed = 0 if self.fault == "one seed" else seed
        numbers = np.random.default_rng(seed)
        xi = numbers.standard_normal(theta.shape)
        return [theta - lr / M * target.gradient(theta) + scale * xi, state[1]]

    def position(self, state):
        return state[0]

    def save(self, state):
        if self.fault == "a saved state has another step size":
            state = [state[0], [1e-3, *state[1][1:]]]
        return super().save(state)


class SGHMC(Adapter):
    """Chen et al.'s, kick first, with faults by name; the momentum has another unit."""

    name, kind, documented = "SGHMC", "sghmc", staticmethod(laws.kick_first)
    offers = frozenset({"temperature", "friction", "mass", "estimate"})
    fault = ""

    def arguments(self, s):
        return {"setting": s}

    def init(self, theta, seed, setting):
        return theta, 0 * theta, setting

    def step(self, state, target, seed):
        x, r, s = state
        xi = np.random.default_rng(seed).standard_normal(x.shape)
        if self.fault == "no temperature":
            s = s._replace(temperature=1.0)
        if self.fault == "half of the estimate":
            s = s._replace(estimate=s.estimate / 2)
        if self.fault == "the friction squared in the noise":
            s = s._replace(estimate=s.temperature * (s.friction - s.friction**2))
        if self.fault == "a variance for a standard deviation":
            scale = 2 * s.step * s.friction
            s = s._replace(estimate=s.temperature * s.friction - scale**2 / 2 / s.step)
        if self.fault == "no friction":
            s = s._replace(friction=0.0, estimate=-s.temperature * s.friction)
        law = laws.euler if self.fault == "order" else laws.kick_first
        x, r = law(x, 3.0 * r, target.gradient, lambda: xi, s)
        return x, r / 3.0, state[2]

    def position(self, state):
        return state[0]

    def momentum(self, state):
        return state[1]


def planted(kind, fault):
    """Make a sampler with a fault."""
    made = kind()
    made.fault = fault
    return made


ADAPTERS = [SGLD(), SGHMC()]
