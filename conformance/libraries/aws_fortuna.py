"""Fortuna: its two integrators, which are gradient transformations of optax."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from fortuna.prob_model.posterior.sgmcmc import (
    sgmcmc_preconditioner,
    sgmcmc_step_schedule,
)
from fortuna.prob_model.posterior.sgmcmc.cyclical_sgld import (
    cyclical_sgld_integrator,
)
from fortuna.prob_model.posterior.sgmcmc.sghmc import sghmc_integrator
from sglaws import Adapter, Setting, laws

jax.config.update("jax_enable_x64", True)


class Hamiltonian(Adapter):
    """m ← βm + √η∇log p + N(0, 2(1 − β)M), θ ← θ + √ηM⁻¹m with β = ``momentum_decay``
    (sghmc_integrator.py:77-86): eq. 15 of Chen et al. (2014) with α = 1 − β.
    """

    name, kind, documented = "sghmc", "sghmc", staticmethod(laws.kick_first)
    offers = frozenset({"friction", "mass"})
    # of SGHMCPosteriorApproximator: step_schedule=1e-5, momentum_decay=0.01
    at_defaults = Setting(step=1e-5**0.5, friction=0.99 / 1e-5**0.5)
    required = {"size": 1e-5, "decay": 0.01, "M": 1.0}

    def arguments(self, s):
        return {
            "size": s.step**2,
            "decay": 1 - s.step * s.friction / s.mass,
            "M": s.mass,
        }

    @staticmethod
    @functools.cache
    def made(size, decay, M):
        rms = sgmcmc_preconditioner.rmsprop_preconditioner
        identity = sgmcmc_preconditioner.identity_preconditioner
        metric = identity() if M == 1 else rms(running_average_factor=1.0, eps=M)
        return sghmc_integrator.sghmc_integrator(
            decay,
            None,
            jax.random.PRNGKey(0),
            sgmcmc_step_schedule.constant_schedule(size),
            metric,
        )

    def init(self, theta, seed, **given):
        return jnp.array(theta), self.made(**given).init(jnp.array(theta)), given

    def step(self, state, target, seed):
        theta, now, given = state
        now = self.seeded(now, jax.random.PRNGKey(seed))
        minus = jnp.array(-target.gradient(np.asarray(theta)))
        change, now = self.made(**given).update(minus, now)
        return theta + change, now, given

    def seeded(self, now, key):
        return now._replace(rng_key=key)

    def position(self, state):
        return np.asarray(state[0])

    def momentum(self, state):
        return np.asarray(state[1].momentum)


class Cyclical(Hamiltonian):
    """SGLD in a cycle without exploration, whose first steps have the whole step; its
    cycles have a report of their own.
    """

    name, kind, documented = "cyclical_sgld", "sgld", staticmethod(laws.sgld)
    offers = frozenset()
    blank = {"front door": "the states of a cycle have no one distribution"}

    def arguments(self, s):
        return {"size": s.step}

    @staticmethod
    @functools.cache
    def made(size):
        return cyclical_sgld_integrator.cyclical_sgld_integrator(
            jax.random.PRNGKey(0),
            init_step_size=size,
            cycle_length=10**9,
            exploration_ratio=0.0,
            preconditioner=sgmcmc_preconditioner.identity_preconditioner(),
        )

    def seeded(self, now, key):
        inner = now.sgld_state
        return now._replace(sgld_state=inner._replace(rng_key=key))

    def momentum(self, state):
        return None


ADAPTERS = [Hamiltonian(), Cyclical()]
