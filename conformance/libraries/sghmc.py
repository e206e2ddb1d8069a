"""sghmc: its one function, whose call draws a momentum and takes steps."""

import numpy as np
from sghmc.sghmc import sghmc
from sglaws import Adapter, laws, refreshed

STEPS = 10


class Hamiltonian(Adapter):
    """p ~ N(0, η), then p ← (1 − α)p − ηg + N(0, 2η(α − ½Vη)), x ← x + p
    (sghmc.py:3-14). The README has its signature, no formula and no paper. It asks for
    a gradient at each of its steps, so that each has a minibatch of its own.
    """

    name, kind = "sghmc", "sghmc"
    documented = staticmethod(refreshed(laws.kick_first, STEPS))
    offers, fresh, own_batches = frozenset({"friction", "estimate"}), True, True

    def arguments(self, s):
        given = {"eta": s.step**2, "alpha": s.step * s.friction}
        return given | {"V": 2 * s.estimate / s.step, "L": STEPS}

    def init(self, theta, seed, **given):
        return theta, given

    def step(self, state, target, seed):
        theta, given = state

        def gradient(x):
            zeta = target.variance**0.5 * np.random.standard_normal(theta.shape)
            return (target.curvature * x.reshape(theta.shape) + zeta).ravel()

        np.random.seed(seed)
        return sghmc(gradient, x=theta.ravel(), **given).reshape(theta.shape), given

    def position(self, state):
        return state[0].copy()


ADAPTERS = [Hamiltonian()]
