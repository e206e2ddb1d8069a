"""jax-sgmc: its integrators and solvers; it draws minibatches of data itself, so that V
is the variance of a batch of one datum out of all signs.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax import random
from jax_sgmc import data, integrator, potential, scheduler, solver
from jax_sgmc.data.numpy_loader import DeviceNumpyDataLoader
from sglaws import Adapter, laws, refreshed


@functools.cache
def potentials(curvature, variance):
    """Give a minibatch's potential, the whole one, and their data."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(curvature))))
    loader = DeviceNumpyDataLoader(x=signs * variance**0.5)
    a, count = jnp.array(curvature), len(signs)

    def likelihood(sample, seen):
        theta = sample["w"]
        return -(a * theta**2 / 2 + seen["x"] * theta).sum() / count

    made = {"prior": lambda sample: jnp.array(0.0), "likelihood": likelihood}
    small = potential.minibatch_potential(**made, strategy="vmap")
    whole = potential.full_potential(**made, strategy="vmap")
    batches = data.random_reference_data(loader, 1, 1)
    return small, batches, whole, data.full_reference_data(loader, 1, count)


def schedule(step, temperature):
    return scheduler.schedule(
        step_size=jnp.array(step),
        temperature=jnp.array(temperature),
        burn_in=jnp.array(1.0),
        accept=jnp.array(True),
    )


@functools.cache
def solved(maker, corrected, curvature, variance, extra):
    """Give init and step over copies, compiled."""
    small, batches, whole, data_of_all = potentials(curvature, variance)
    extra = dict(extra)
    if "const_mass" in extra:
        extra["const_mass"] = {"w": jnp.full(len(curvature), extra["const_mass"])}
    moves = getattr(integrator, maker)(small, batches, **extra)
    if corrected in ("amagold", "sggmc"):
        solve = getattr(solver, corrected)(moves, whole, data_of_all)
    else:
        solve = getattr(solver, corrected)(moves)
    number = 2 if corrected == "parallel_tempering" else 1

    def init(key, theta):
        samples = [{"w": theta}] * number
        keys = random.split(key)
        state = solve[0](*samples, key=keys[0], batch_kwargs={"key": keys[1]})
        return jax.tree_util.tree_map(jnp.asarray, state)

    def step(state, size, temperatures):
        times = [schedule(size, each) for each in temperatures]
        kinds = jax.tree_util.tree_map(lambda x: x.dtype, state)
        return jax.tree_util.tree_map(jnp.asarray, solve[1](state, *times)[0], kinds)

    get = lambda state: solve[2](state)["variables"]["w"]
    mapped = jax.jit(jax.vmap(step, in_axes=(0, None, None)))
    return jax.jit(jax.vmap(init)), mapped, jax.jit(jax.vmap(get))


class JaxSGMC(Adapter):
    """A copy is a chain with a key of its own, which its state holds: the seed of the
    start decides all.
    """

    maker, corrected, own_batches, fresh = "langevin_diffusion", "sgmc", True, True
    samples = 100_000
    blank = {
        "schedule": "the scheduler of all samplers is a report of its own",
        "front door": "at the defaults of `alias` equal step sizes give nan: a report "
        "of its own",
    }

    def extra(self, s):
        return ()

    def temperatures(self, s):
        return (s.temperature,)

    def arguments(self, s):
        made = (self.maker, self.corrected, s.curvature, s.variance, self.extra(s))
        return {"made": made, "size": s.step, "temperatures": self.temperatures(s)}

    def init(self, theta, seed, made, size, temperatures):
        keys = random.split(random.PRNGKey(seed), len(theta))
        return solved(*made)[0](keys, jnp.array(theta)), made, size, temperatures

    def step(self, state, target, seed):
        now, made, size, temperatures = state
        return solved(*made)[1](now, size, temperatures), *state[1:]

    def position(self, state):
        return np.asarray(solved(*state[1])[2](state[0]))


class Langevin(JaxSGMC):
    name, kind, documented = "sgld", "sgld", staticmethod(laws.sgld)
    offers = frozenset({"temperature"})


class Hamiltonian(JaxSGMC):
    """Algorithm 2 of Chen et al. (2014), which its docstring names, a call of ten steps
    with a fresh momentum; the noise has the friction squared (integrator.py:653).
    """

    name, kind, positions_alone = "sghmc", "sghmc", True
    maker = "friction_leapfrog"
    documented = staticmethod(refreshed(laws.drift_first, 10))
    offers = frozenset({"temperature", "friction", "mass"})

    def extra(self, s):
        given = {"steps": 10, "friction": s.friction, "const_mass": s.mass}
        return tuple(given.items())


class Obabo(Hamiltonian):
    """OBABO with a friction C/M and two minibatches a step, as documented."""

    name, maker, documented = "obabo", "obabo", staticmethod(laws.obabo)
    positions_alone = False

    def extra(self, s):
        given = {"steps": 1, "friction": s.friction / s.mass, "const_mass": s.mass}
        return tuple(given.items())

    def momentum(self, state):
        return np.asarray(state[0].momentum["w"])


class Reversible(Obabo):
    """Algorithm 2 of Zhang et al. (2020), with ``friction`` = C/2M."""

    name, maker = "reversible_leapfrog", "reversible_leapfrog"
    documented = staticmethod(laws.palindromic)

    def extra(self, s):
        friction = s.friction / 2 / s.mass
        return tuple({"steps": 1, "friction": friction, "const_mass": s.mass}.items())


class Amagold(Obabo):
    """ "Sample from the correct posterior": the target, whatever the step."""

    name, kind, corrected, linear = "amagold", "exact", "amagold", False
    maker, documented = "reversible_leapfrog", "the target"

    def extra(self, s):
        half = self.maker == "reversible_leapfrog"
        friction = s.friction / s.mass / (2 if half else 1)
        return tuple({"steps": 1, "friction": friction, "const_mass": s.mass}.items())

    def momentum(self, state):
        return None


class Sggmc(Amagold):
    name, corrected, maker = "sggmc", "sggmc", "obabo"


class Exchange(JaxSGMC):
    """Deng et al. (2020), Algorithm 1: the cold chain has SGLD's law, and the hot one,
    at ten times its temperature, must leave it as it is.
    """

    name, kind, linear = "re_sgld", "sgld", False
    documented, corrected = staticmethod(laws.sgld), "parallel_tempering"
    offers = frozenset({"temperature"})
    blank = JaxSGMC.blank | {"gradient noise": "the exchange corrects for it, too"}

    def temperatures(self, s):
        return (s.temperature, 10 * s.temperature)


ADAPTERS = [
    Langevin(),
    Hamiltonian(),
    Obabo(),
    Reversible(),
    Amagold(),
    Sggmc(),
    Exchange(),
]
