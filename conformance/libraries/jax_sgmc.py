"""jax-sgmc: its integrators and solvers; it draws minibatches of data itself, so that V
is the variance of a batch of one datum out of all signs. T is the documented "posterior
temperature" of its potentials, which divides U: SGLD with the step size ηT is then the
same chain, and with a momentum ε√T and C/√T.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax import random
from jax_sgmc import alias, data, integrator, potential, scheduler, solver
from jax_sgmc.data.numpy_loader import DeviceNumpyDataLoader, NumpyDataLoader
from sglaws import Adapter, laws, refreshed


@functools.cache
def potentials(curvature, variance, temperature):
    """Give a minibatch's potential, the whole one, and their data."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(curvature))))
    loader = DeviceNumpyDataLoader(x=signs * variance**0.5)
    a, count = jnp.array(curvature), len(signs)

    def likelihood(sample, seen):
        theta = sample["w"]
        return -(a * theta**2 / 2 + seen["x"] * theta).sum() / count

    made = {"prior": lambda sample: jnp.array(0.0), "likelihood": likelihood}
    made |= {"strategy": "vmap", "temperature": temperature}
    small, whole = (
        potential.minibatch_potential(**made),
        potential.full_potential(**made),
    )
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
def solved(maker, corrected, target, extra):
    """Give init and step over copies, compiled."""
    small, batches, whole, data_of_all = potentials(*target)
    curvature = target[0]
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
    samples, temperatures, door = 100_000, (1.0,), ""  # its name in `alias`
    blank = {"schedule": "the scheduler of all samplers is a report of its own"}

    def extra(self, s):
        return ()

    def size(self, s):
        return s.step * s.temperature**0.5

    def arguments(self, s):
        target = (s.curvature, s.variance, s.temperature)
        made = (self.maker, self.corrected, target, self.extra(s))
        return {"made": made, "size": self.size(s), "temperatures": self.temperatures}

    def at_defaults(self, curvature):
        """Variances of 2,000 coordinates in the second half of a run from the mode."""
        loader = NumpyDataLoader(x=np.zeros((50, 1)))
        prior, a = lambda sample: 0.0, curvature[0]
        likelihood = lambda sample, seen: -a * (sample["w"] ** 2).sum() / 100
        made = {"prior": prior, "likelihood": likelihood, "strategy": "vmap"}
        seen = [potential.minibatch_potential(**made)]
        if self.kind == "exact":
            seen.append(potential.full_potential(**made))
        start = {"w": jnp.zeros(2_000)}
        if len(self.temperatures) > 1:
            start = (start, start)
        found = getattr(alias, self.door)(*seen, loader, progress_bar=False)(start)
        found = np.asarray(found[0]["samples"]["variables"]["w"])
        if not (np.isfinite(found) & (found != 0)).any():
            raise ArithmeticError("no sample is finite and differs from the start")
        return np.array([(found[len(found) // 2 :] ** 2).mean()])

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
    offers, door = frozenset({"temperature"}), "sgld"

    def size(self, s):
        return s.step * s.temperature


class Hamiltonian(JaxSGMC):
    """Chen et al. (2014), "the original SGHMC", a call of ten steps with a fresh
    momentum; the noise has the friction squared (integrator.py:653), and at T = ¼ the
    same chain has the friction 2.
    """

    name, kind, door, steps = "sghmc", "sghmc", "sghmc", 10
    maker = "friction_leapfrog"
    documented = staticmethod(refreshed(laws.drift_first, 10))
    offers = frozenset({"temperature", "friction", "mass"})

    def friction(self, s):
        return s.friction

    def extra(self, s):
        friction = self.friction(s) / s.temperature**0.5
        given = {"steps": self.steps, "friction": friction, "const_mass": s.mass}
        return tuple(given.items())


class Obabo(Hamiltonian):
    """OBABO with a friction C/M and two minibatches a step, as documented."""

    name, maker, documented = "obabo", "obabo", staticmethod(laws.obabo)
    steps, door = 1, "obabo"

    def friction(self, s):
        return s.friction / s.mass

    def momentum(self, state):
        return np.asarray(state[0].momentum["w"])


class Reversible(Obabo):
    """Algorithm 2 of Zhang et al. (2020), with ``friction`` = C/2M."""

    name, maker = "reversible_leapfrog", "reversible_leapfrog"
    documented = staticmethod(laws.palindromic)
    blank = JaxSGMC.blank | {"front door": "a part of amagold, not in `alias`"}

    def friction(self, s):
        return s.friction / 2 / s.mass


class Amagold(Reversible):
    """ "Sample from the correct posterior": the target, whatever the step."""

    name, kind, corrected, linear = "amagold", "exact", "amagold", False
    documented, door, blank = "the target", "amagold", JaxSGMC.blank

    def momentum(self, state):
        return None


class Sggmc(Amagold):
    name, corrected, maker, door = "sggmc", "sggmc", "obabo", "sggmc"

    def friction(self, s):
        return s.friction / s.mass


@functools.cache
def exchanged(s, copies=20_000, steps=1_000):
    """Simulate Deng et al. (2020), Algorithm 1: the cold chain's variances."""
    numbers, a = np.random.default_rng(0), np.array(s.curvature)
    heat = s.temperature * np.array([1.0, 10.0])[:, None, None]
    pair = (heat / a) ** 0.5 * numbers.standard_normal((2, copies, len(a)))
    total, kept = 0.0, 0
    for step in range(steps):
        noise = numbers.standard_normal(pair.shape)
        pair = pair - s.step * a * pair + (2 * s.step * heat) ** 0.5 * noise
        energy = (a * pair**2).sum(-1) / 2
        log = (1 / heat[0] - 1 / heat[1]).item() * (energy[0] - energy[1])
        swap = np.log(numbers.random(copies)) < log
        pair = np.where(swap[:, None], pair[::-1], pair)
        if step >= steps // 4 and step % 5 == 0:
            total, kept = total + (pair[0] ** 2).mean(0), kept + 1
    return total / kept


class Exchange(Langevin):
    """Deng et al. (2020), Algorithm 1, of a cold chain and one at ten times its
    temperature; what the cold one's step size adds depends on the exchange, so that its
    law is a simulation of the algorithm.
    """

    name, linear, door = "re_sgld", False, "re_sgld"
    corrected, temperatures = "parallel_tempering", (1.0, 10.0)
    blank = JaxSGMC.blank | {"gradient noise": "the exchange corrects for it, too"}

    def variances(self, s):
        return exchanged(s)


ADAPTERS = [
    Langevin(),
    Hamiltonian(),
    Obabo(),
    Reversible(),
    Amagold(),
    Sggmc(),
    Exchange(),
]
