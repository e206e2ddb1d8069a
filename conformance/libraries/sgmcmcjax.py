"""SGMCMCJax: its kernels, at data of all signs, so that V is a batch of one datum's."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
from jax import random
from sglaws import Adapter, laws, refreshed
from sgmcmcjax import diffusions, kernels


def model(curvature, variance):
    signs = itertools.product([-1.0, 1.0], repeat=len(curvature))
    data = jnp.array(list(signs))
    count, a = len(data), jnp.array(curvature)

    def log_likelihood(theta, x):
        return -(a * theta**2 / 2 + variance**0.5 * x * theta).sum() / count

    return {
        "loglikelihood": log_likelihood,
        "logprior": lambda theta: 0.0 * theta.sum(),
        "data": (data,),
        "batch_size": 1 if variance else count,
    }


@functools.cache
def built(name, curvature, variance, given):
    """Give init, step and positions over copies, compiled."""
    settings, given = model(curvature, variance), dict(given)
    if name.endswith("CV"):
        given["centering_value"] = jnp.zeros(len(curvature))
    made = getattr(kernels, f"build_{name}_kernel")(**settings, **given)
    step = jax.jit(jax.vmap(made[1], in_axes=(None, 0, 0)))
    return jax.jit(jax.vmap(made[0])), step, jax.jit(jax.vmap(made[2]))


class Kernel(Adapter):
    """A kernel of `sgmcmcjax.kernels`, a copy a chain."""

    own_batches, fresh, builder, extra = True, True, "", {}

    def given(self, s):
        return {"dt": s.step}

    def arguments(self, s):
        given = tuple((self.given(s) | self.extra).items())
        return {"built_by": (self.builder, s.curvature, s.variance, given)}

    def init(self, theta, seed, built_by):
        keys = random.split(random.PRNGKey(seed), len(theta))
        return built(*built_by)[0](keys, jnp.array(theta)), built_by, 0

    def step(self, state, target, seed):
        now, built_by, count = state
        keys = random.split(random.PRNGKey(seed), len(target.noise))
        return built(*built_by)[1](count, keys, now), built_by, count + 1

    def position(self, state):
        return np.asarray(built(*state[1])[2](state[0]))


def kernel_of(label, builder, kind, documented, given, **more):
    """Make an adapter of a kernel from its table."""
    body = {"name": label, "builder": builder, "kind": kind, "given": given}
    body["documented"] = None if documented is None else staticmethod(documented)
    return type(label.title(), (Kernel,), body | more)()


def sgld(self, s):
    return {"dt": s.step}


def sghmc(self, s):
    """dt = ε², alpha = εC: the guide says "Euler discretisation", and prints ∇log
    π(xₙ₊₁); one of two statements holds, and the subscript is a misprint.
    """
    return {"dt": s.step**2, "alpha": s.step * s.friction, "L": 10}


def baoab(self, s):
    return {"dt": s.step, "gamma": s.friction, "tau": s.temperature}


EULER = refreshed(laws.euler, 10)
HMC = {"offers": frozenset({"friction"})}
PAIR = {
    "offers": frozenset({"friction", "temperature"}),
    "momentum": lambda _, x: packed(x),
}
PAIR["blank"] = {"gradient noise": "two half kicks of two steps share a minibatch"}
SVRG = {"extra": {"update_rate": 5}}
NOISELESS = {"blank": {"gradient noise": "control variates cancel this noise"}}


def packed(state):
    return np.asarray(state[0].diffusion_state.packed_state[0][1])


def badodab(x, r, gradient, normal, s):
    """BAOAB's step with a friction ξ and the noise of σ = 1, A = ½ (Leimkuhler and
    Shang, 2016); in mean field ξ stands still.
    """
    r = r - s.step / 2 * gradient(x)
    x = x + s.step / 2 * r
    kept = np.exp(-s.friction * s.step)
    spread = s.step if s.friction == 0 else (1 - kept**2) / 2 / s.friction
    r = kept * r + spread**0.5 * normal()
    x = x + s.step / 2 * r
    return x, r - s.step / 2 * gradient(x)


class Preconditioned(Kernel):
    """``dt`` = 2η, Li et al. (2016) without Γ, as the guide says; from V = 0."""

    kind, linear, documented = "sgld", False, None

    def arguments(self, s):
        given = (("dt", 2 * s.step),)
        return {"built_by": (self.builder, s.curvature, s.variance, given)}


class Thermostat(Kernel):
    """Ding et al. (2014), Algorithm 2, which its docstring names; the guide prints
    xₙ₊₁ = xₙ₊₁ + vₙ, a misprint. ``dt`` = ε², ``a`` = εA. All coordinates are one
    chain, and each datum is the seed of a noise.
    """

    name, kind, linear = "sgnht", "thermostat", False
    documented, offers = staticmethod(laws.kick_first), frozenset({"friction"})

    def arguments(self, s):
        return {"setting": s}

    @staticmethod
    @functools.cache
    def made(setting, shape):
        count, a = 100_000, jnp.array(setting.curvature)

        def log_likelihood(theta, seed):
            noise = random.normal(random.PRNGKey(seed), shape)
            return -(setting.variance**0.5) * (noise * theta).sum() / count

        built = kernels.build_sgnht_kernel(
            setting.step**2,
            log_likelihood,
            lambda theta: -(a * theta**2).sum() / 2,
            (jnp.arange(count if setting.variance else 1),),
            1,
            a=setting.step * setting.friction,
        )
        return jax.jit(built[0]), jax.jit(built[1]), built[2]

    def init(self, theta, seed, setting):
        init = self.made(setting, theta.shape)[0]
        return init(random.PRNGKey(seed), jnp.array(theta)), (setting, theta.shape), 0

    def step(self, state, target, seed):
        step = self.made(*state[1])[1]
        return step(state[2], random.PRNGKey(seed), state[0]), state[1], state[2] + 1

    def position(self, state):
        return np.asarray(self.made(*state[1])[2](state[0]))


class Badodab(Thermostat):
    """The guide has vᵀv − D in the friction's move."""

    name, documented, offers = "badodab", staticmethod(badodab), frozenset()

    @staticmethod
    @functools.cache
    def made(setting, shape):
        a = jnp.array(setting.curvature)
        built = kernels.build_badodab_kernel(
            setting.step,
            lambda theta, x: 0.0 * theta.sum(),
            lambda theta: -(a * theta**2).sum() / 2,
            (jnp.zeros(1),),
            1,
        )
        return jax.jit(built[0]), jax.jit(built[1]), built[2]

    blank = {"gradient noise": "measured without"}


class Diffusion(Badodab):
    """The diffusion alone, as its guide composes it: two updates a step."""

    name = "diffusions.badodab"
    blank = Badodab.blank | dict.fromkeys(
        ("exact gradient", "uneven curvature"),
        "one friction of thousands of coordinates, which nothing divides by D, runs "
        "away by the guide's formula, too: a report of its own",
    )
    diffusion = staticmethod(lambda s: diffusions.badodab(s.step))

    def init(self, theta, seed, setting):
        init = self.diffusion(setting)[0]
        state = jax.tree_util.tree_map(jnp.asarray, init(jnp.array(theta)))
        return state, setting

    def step(self, state, target, seed):
        now, setting = state
        return self.moved(setting)(now, random.PRNGKey(seed), target.noise), setting

    @classmethod
    @functools.cache
    def moved(cls, setting):
        _, (first, second), get = cls.diffusion(setting)[:3]
        a = jnp.array(setting.curvature)

        def step(state, key, noise):
            one, two = random.split(key)
            gradient = lambda state: -(a * get(state) + noise)
            state = first(0, one, gradient(state), state)
            return second(0, two, gradient(state), state)

        return jax.jit(step)

    def position(self, state):
        return np.asarray(self.diffusion(state[1])[2](state[0]))


class BaoabDiffusion(Diffusion):
    """The guide has √(τ(1 − e^(−2γdt))), and the docstring calls τ the temperature."""

    name, kind, linear, blank = "diffusions.baoab", "sghmc", True, {}
    documented, own_batches, fresh = staticmethod(laws.baoab), False, False
    offers = frozenset({"temperature", "friction"})
    diffusion = staticmethod(
        lambda s: diffusions.baoab(s.step, gamma=s.friction, tau=s.temperature)
    )

    def momentum(self, state):
        return np.asarray(state[0].packed_state[0][1])


class Psgld(Preconditioned):
    name, builder = "psgld", "psgld"


class Adam(Preconditioned):
    name, builder = "sgldAdam", "sgldAdam"


ADAPTERS = [
    kernel_of("sgld", "sgld", "sgld", laws.sgld, sgld),
    kernel_of("sgldCV", "sgldCV", "sgld", laws.sgld, sgld, **NOISELESS),
    kernel_of("sgld_SVRG", "sgld_SVRG", "sgld", laws.sgld, sgld, **NOISELESS, **SVRG),
    Psgld(),
    Adam(),
    kernel_of("sghmc", "sghmc", "sghmc", EULER, sghmc, **HMC),
    kernel_of("sghmcCV", "sghmcCV", "sghmc", EULER, sghmc, **HMC, **NOISELESS),
    kernel_of("baoab", "baoab", "sghmc", laws.baoab, baoab, **PAIR),
    Thermostat(),
    Badodab(),
    Diffusion(),
    BaoabDiffusion(),
]
