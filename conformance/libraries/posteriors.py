"""posteriors: its stochastic-gradient samplers, at the default ``inplace=False``."""

import warnings

import torch

warnings.simplefilter("ignore")
from posteriors.sgmcmc import baoa, sghmc, sgld, sglrw, sgnht
from sglaws import Adapter, Setting, laws

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class Posteriors(Adapter):
    """A module of ``posteriors.sgmcmc``; a state is the library's, with arguments."""

    module, start = None, {}

    def init(self, theta, seed, **given):
        torch.manual_seed(seed)
        return self.module.init(torch.tensor(theta), **self.start), given

    def step(self, state, target, seed):
        a, zeta = torch.tensor(target.curvature), torch.tensor(target.noise)
        torch.manual_seed(seed)

        def log_posterior(params, batch):
            energy = (a * params**2).sum() / 2 + (zeta * params).sum()
            return -energy, torch.tensor([])

        new, _ = self.module.update(state[0], None, log_posterior, **state[1])
        return new, state[1]

    def position(self, state):
        return state[0].params.numpy()

    def scheduled(self, theta, seed, sizes):
        given = self.arguments(Setting())
        given["lr"] = lambda step: sizes[int(step)]
        return self.init(theta, seed, **given)


class Langevin(Posteriors):
    """Documented (sgmcmc/sgld.py:22): N(0, ε(2 − εβ)T), so B̂ = ½εβT."""

    name, kind, documented, module = "sgld", "sgld", staticmethod(laws.sgld), sgld
    offers = frozenset({"temperature", "estimate"})

    def arguments(self, s):
        beta = 2 * s.estimate / s.step / s.temperature
        return {"lr": s.step, "beta": beta, "temperature": s.temperature}


class RandomWalk(Langevin):
    """Steps of ±√(2εT), whose mean is SGLD's where no probability is clipped."""

    name, module, linear, documented = "sglrw", sglrw, False, None
    blank = {"schedule": "a step has one size, whatever the gradient"}
    offers = frozenset({"temperature"})

    def arguments(self, s):
        return {"lr": s.step, "temperature": s.temperature}


class Hamiltonian(Posteriors):
    """Explicit Euler, as documented (sgmcmc/sghmc.py:30-36); B̂ = ½εT²β."""

    name, kind, documented, module = "sghmc", "sghmc", staticmethod(laws.euler), sghmc
    offers = frozenset({"temperature", "friction", "mass", "estimate"})

    def arguments(self, s):
        return {
            "lr": s.step,
            "alpha": s.friction,
            "beta": 2 * s.estimate / s.step / s.temperature**2,
            "sigma": s.mass**0.5,
            "temperature": s.temperature,
        }

    def momentum(self, state):
        return state[0].momenta.numpy()


class Baoa(Hamiltonian):
    """A kick, half a drift, friction, half a drift, as documented."""

    name, documented, module = "baoa", staticmethod(laws.baoa), baoa
    offers = frozenset({"temperature", "friction", "mass"})

    def arguments(self, s):
        return {key: x for key, x in super().arguments(s).items() if key != "beta"}


class Thermostat(Hamiltonian):
    """All from the old state (sgmcmc/sgnht.py:36-42), documented; alpha = A."""

    name, kind, documented, module = (
        "sgnht",
        "thermostat",
        staticmethod(laws.euler),
        sgnht,
    )
    linear, start = False, {"xi": 1.0}
    offers = frozenset({"temperature", "friction"})

    def arguments(self, s):
        return {"lr": s.step, "alpha": s.friction, "temperature": s.temperature}


ADAPTERS = [Langevin(), RandomWalk(), Hamiltonian(), Baoa(), Thermostat()]
