"""blackjax: its stochastic-gradient samplers, whose minibatch is (a, ζ)."""

import functools

import blackjax
import jax
import numpy as np
from sglaws import Adapter, laws, refreshed

jax.config.update("jax_enable_x64", True)


def gradient(position, minibatch):
    """Of log p: its gradient estimators are functions of position and minibatch."""
    a, zeta = minibatch
    return -(a * position + zeta)


def density(position, minibatch):
    a, zeta = minibatch
    return -(a * position**2 / 2 + zeta * position).sum()


@functools.cache
def made(name, built):
    """Give a sampler's init, and its step, compiled."""
    estimators = (density, gradient) if name == "csgld" else (gradient,)
    sampler = getattr(blackjax, name)(*estimators, **dict(built))
    return sampler.init, jax.jit(sampler.step)


class Blackjax(Adapter):
    """A state is the library's, and how it was made; the caller passes step sizes."""

    sampler, built, late = "", (), {}
    offers = frozenset({"temperature"})

    def arguments(self, s):
        return {"built": self.built, "late": (s.step, s.temperature)}

    def begin(self, init, theta, key):
        return init(theta)

    def init(self, theta, seed, built, late):
        init, _ = made(self.sampler, built)
        theta = jax.numpy.array(theta)
        return self.begin(init, theta, jax.random.key(seed)), built, late

    def step(self, state, target, seed):
        now, built, (size, temperature) = state
        _, step = made(self.sampler, built)
        key, batch = jax.random.key(seed), (target.curvature, target.noise)
        late = self.late | {"temperature": temperature}
        return step(key, now, batch, size, **late), built, state[2]

    def position(self, state):
        return np.asarray(getattr(state[0], "position", state[0]))


class Langevin(Blackjax):
    name, sampler, kind, documented = "sgld", "sgld", "sgld", staticmethod(laws.sgld)


class Contour(Langevin):
    """With ``zeta`` 0 "the function reduces to the SGLD step function"; with others its
    density is flat in the energy on purpose, and no law here.
    """

    name, sampler, built = "csgld, zeta=0", "csgld", (("zeta", 0.0),)
    late = {"step_size_stoch": 1e-3}


class Hamiltonian(Blackjax):
    """Ten steps of a call, with one minibatch and a fresh momentum: an "Euler solver",
    ported from SGMCMCJax (sgmcmc/diffusions.py:56-59), which is Euler's, too. Neither
    says what a temperature does here; pull request #540 of its authors doubts it.
    """

    name, sampler, kind = "sghmc", "sghmc", "sghmc"
    documented = staticmethod(refreshed(laws.euler, 10))
    offers = frozenset({"temperature", "friction", "estimate"})
    undocumented = frozenset({"temperature", "noise estimate", "mean of the loss"})

    def arguments(self, s):
        beta = 2 * s.estimate / s.step / s.temperature**2
        built = (("alpha", s.friction), ("beta", beta))
        return {"built": built, "late": (s.step, s.temperature)}


class Thermostat(Blackjax):
    """Position and momentum from the old state: an "Euler solver"
    (sgmcmc/diffusions.py:90). It says that it was ported from SGMCMCJax, where the
    position moves by the new momentum; one of two statements holds.
    """

    name, sampler, kind, linear = "sgnht", "sgnht", "thermostat", False
    documented = staticmethod(laws.euler)
    offers = frozenset({"temperature", "friction"})

    def arguments(self, s):
        built = (("alpha", s.friction),)
        return {"built": built, "late": (s.step, s.temperature)}

    def begin(self, init, theta, key):
        return init(theta, key, init_xi=1.0)


ADAPTERS = [Langevin(), Contour(), Hamiltonian(), Thermostat()]
