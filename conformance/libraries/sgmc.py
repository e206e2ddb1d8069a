"""sgmc, of this repository: three rows; its own tests have the rest."""

import copy

import torch
from sglaws import Adapter, laws

from sgmc.kernels import SGHMC, SGLD
from sgmc.potentials import Potential
from sgmc.splittings import Splitting, flows

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class Seen(Potential):
    """The energy that a step of this test sees."""

    def __init__(self, target):
        self.a, self.zeta = torch.tensor(target.curvature), torch.tensor(target.noise)

    def energy(self, position):
        return (self.a * position**2 / 2 + self.zeta * position).sum(-1)

    def gradient(self, position):
        return self.a * position + self.zeta


class Kernel(Adapter):
    kind, offers = "sghmc", frozenset({"temperature", "friction", "mass"})

    def make(self, s):
        raise NotImplementedError

    def arguments(self, s):
        return {"setting": s}

    def init(self, theta, seed, setting):
        theta, generator = torch.tensor(theta), torch.Generator().manual_seed(seed)
        kernel = self.make(setting)
        zero = Seen(_Target(torch.ones(theta.shape[1]), torch.zeros(theta.shape)))
        return kernel.init(zero, theta, generator), kernel

    def step(self, state, target, seed):
        generator = torch.Generator().manual_seed(seed)
        now = copy.deepcopy(state[0])  # a step works in place
        return state[1].step(Seen(target), now, generator)[0], state[1]

    def position(self, state):
        return state[0].position.numpy().copy()

    def momentum(self, state):
        return state[0].momentum.numpy().copy()


class _Target:
    def __init__(self, curvature, noise):
        self.curvature, self.noise = curvature.numpy(), noise.numpy()


class Langevin(Kernel):
    name, kind, documented = "SGLD", "sgld", staticmethod(laws.sgld)
    offers = frozenset({"temperature"})

    def make(self, s):
        return SGLD(s.step, temperature=s.temperature)

    def momentum(self, state):
        return None


class Hamiltonian(Kernel):
    """Algorithm 2 of Chen et al. (2014): the position first; B̂ = ``noise_estimate``."""

    name, documented = "SGHMC", staticmethod(laws.drift_first)
    offers = Kernel.offers | {"estimate"}

    def make(self, s):
        return SGHMC(
            s.step,
            num_steps=1,
            friction=s.friction,
            noise_estimate=s.estimate,
            mass=s.mass,
            temperature=s.temperature,
            resample_every=None,
        )


class Baoab(Kernel):
    name, documented = "BAOAB", staticmethod(laws.baoab)

    def make(self, s):
        given = {"mass": s.mass, "temperature": s.temperature}
        return Splitting(flows.baoab(s.step, s.friction, **given), **given)


ADAPTERS = [Langevin(), Hamiltonian(), Baoab()]
