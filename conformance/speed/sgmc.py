"""sgmc: through `sample`, eager, and compiled where steps are short."""

import itertools
import warnings

import pyro
import torch
from pyro import distributions
from torch import nn
from torch.nn import functional

from conformance.speed import shared
from sgmc import sample
from sgmc.compiled import CompiledPotential, CompiledSGHMC
from sgmc.kernels import NUTS, SGHMC, SGLD
from sgmc.minibatches import Fresh
from sgmc.models import Posterior
from sgmc.models.pyro_model import PyroPosterior
from sgmc.posteriors import LogisticRegression, NetworkPosterior
from sgmc.targets import DoubleWell, NoisyGradient
from sgmc.tuning import adapt

SEEDS = itertools.count()  # a minibatch that was seen would be found in the cache
SAME = {"batch_size": shared.BATCH, "minibatches": Fresh(replacement=True)}


def turn(kind, job, potential, start, steps):
    """Make a turn of one call of `sample`: SGLD without a kind."""
    inner = shared.INNER if kind else 1
    kernel = kind(*job, num_steps=inner) if kind else SGLD(job)

    def run():
        given = {"seed": next(SEEDS), "progress": False}
        sample(kernel, potential, start, steps // inner, **given)
        return steps

    return run


def nuts(inputs, targets):
    """Adapt and draw; count the gradients."""
    gradients = itertools.count()

    class Counting(LogisticRegression):
        def energy_and_gradient(self, position):
            next(gradients)
            return super().energy_and_gradient(position)

    def run():
        before, given = next(gradients), {"seed": next(SEEDS), "progress": False}
        potential, start = Counting(inputs, targets), torch.zeros(1, 50)
        made, position = adapt(NUTS(1.0), potential, start, 1_000, **given)
        sample(made, potential, position, 1_000, **given)
        return next(gradients) - before - 1

    return run


def program(write):
    """Adapt and draw from a compiled program, in four chains."""
    cast = lambda x, dtype=torch.float32: torch.as_tensor(x).to(dtype)
    model = write(pyro, distributions, torch.exp, torch.log, cast)
    posterior = PyroPosterior(model)
    compiled = CompiledPotential(posterior)

    def run():
        given = {"seed": next(SEEDS), "progress": False}
        generator = torch.Generator().manual_seed(given["seed"])
        start = posterior.initial_position(shared.CHAINS, generator)
        made, start = adapt(NUTS(1.0), compiled, start, shared.HALF, **given)
        draws = sample(made, compiled, start, shared.HALF, **given)
        return draws.samples.transpose(0, 1).numpy()

    return run


def main():
    """Serve its rows."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # these chains are not there to be right
    *data, truth = map(torch.from_numpy, shared.regression())
    built_in = LogisticRegression(*data, **SAME)
    own = Posterior(
        lambda theta: -0.5 * theta.pow(2).sum(-1),
        lambda theta, x, y: (
            y * (z := (x @ theta[:, :, None])[..., 0]) - functional.softplus(z)
        ),
        tuple(data),
        dim=50,
        **SAME,
    )
    noisy, rows, law = NoisyGradient(DoubleWell(), 4.0), {}, "Algorithm 2"
    for which, kind in enumerate((CompiledSGHMC, SGHMC)):
        name = ("sgmc, compiled", "sgmc")[which]
        for row, (chains, *steps) in shared.WELLS.items():
            given = shared.WELL, noisy, torch.zeros(chains, 1), steps[which]
            rows[name, row] = law, turn(kind, *given)
        for row, potential in ((shared.SGHMC, built_in), (shared.OWN, own)):
            given = shared.LOGISTIC, potential, truth[None], shared.STEPS[which]
            rows[name, row] = law, turn(kind, *given)
    run = turn(None, shared.SGLD_STEP, built_in, truth[None], shared.STEPS[1])
    rows[name, shared.SGLD] = "SGLD", run
    layers = nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)
    for row, (chains, _, steps) in shared.NETWORKS.items():
        *parts, start = map(torch.from_numpy, shared.pictures(chains))
        posterior = NetworkPosterior(nn.Sequential(*layers), *parts, **SAME)
        given = shared.NETWORK, posterior, start, steps
        rows[name, row] = law, turn(SGHMC, *given)
    rows[name, shared.NUTS] = "NUTS", nuts(*data)
    for row, write in shared.PROGRAMS.items():
        rows["sgmc, compiled", row] = "NUTS", program(write)
    missing = "it compiles SGHMC alone, and pays where a step is short"
    shared.serve(rows, "torch", missing=missing)


if __name__ == "__main__":
    main()
