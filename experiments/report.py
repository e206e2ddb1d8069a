"""MNIST as the reproduction report ran it: its grids of settings, and its noise.

Adam-Day et al. tried η in {1, 2, 4, 8}·10⁻⁶ with α in {0.1, 0.01, 0.001} for the
methods with momentum, η in {1, 2, 4, 6}·10⁻⁵ for those without, and regularisations
{0.1, 1, 10}; B̂ = 0, fresh minibatches, 50 + 800 rounds. We choose by 42 rounds of each
setting on the validation digits. Their code takes the noise's variance 2αη for a
standard deviation; its variance (2αη)² is that of SGHMC at the temperature 2αη: the
third method. The fifth has their step size that falls from η to η/4, with weighted
averages.
"""

from booklib.runs import predictions as looks
from booklib.runs.plans import Annealed, Hamiltonian, Langevin, Nesterov, Plan, Prior
from booklib.runs.run import Run
from experiments import mnist
from experiments.comparison import Methods, of_plans
from experiments.study import Experiment, Options, Prepared
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior

SHORTER = 20  # a run of the tuning has 42 rounds
# every so many rounds a network is averaged: 800, 400, ..., 1 networks
GAPS = (1, 2, 4, 8, 16, 40, 80, 160, 400, 800)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings; learning rates times N are the report's for N = 50,000."""
    size = {"rounds": 850}
    if small:
        size = {"rounds": 102, "batch_size": 100, "burn_in": 20}
        size |= {"keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)

    def plan(kernel) -> Plan:
        return Plan(kernel, Prior(1.0), minibatches=Fresh(), **size)

    def optimisers(plans: list[Plan]) -> list[Plan]:
        return [
            plan.but(temperature=0.0, prior=Prior(precision))
            for plan in plans
            for precision in (0.1, 1.0, 10.0)
        ]

    momentum = [
        plan(Hamiltonian(rate / total, decay))
        for rate in (0.05, 0.1, 0.2, 0.4)
        for decay in (0.1, 0.01, 0.001)
    ]
    no_momentum = [plan(Langevin(rate / total)) for rate in (0.5, 1.0, 2.0, 3.0)]
    return {
        "SGHMC": momentum,
        "SGD with momentum": optimisers(momentum),
        "SGHMC, variance as scale": [plan.variance_as_scale() for plan in momentum],
        "SGLD": no_momentum,
        "SGLD, annealed": [annealed(plan, total) for plan in no_momentum],
        "SGD": optimisers(no_momentum),
    }


def annealed(plan: Plan, total: int) -> Plan:
    """Let the steps fall to a quarter, as (1 + t/b)^−½ does in 15b steps."""
    steps = plan.rounds * (total // plan.batch_size)
    return plan.but(schedule=Annealed(steps / 15, 0.5))


def wider(prepared: Prepared, small: bool) -> Methods:
    """List SGHMC's grid, shifted so that the corner that the trials chose lies within;
    each setting is tried by a run of full length.
    """
    plans, total = settings(prepared, small), len(prepared.train.targets)
    grid = [
        plans["SGHMC"][0].but(learning_rate=rate / total, momentum_decay=decay)
        for rate in (0.2, 0.4, 0.8, 1.6)
        for decay in (0.1, 0.3, 1.0)
    ]
    return {"SGHMC": grid}


def wider_momentum(prepared: Prepared, small: bool) -> Methods:
    """List the grid of SGD with momentum, shifted in the same way."""
    return momentum_only(prepared, small, (0.05, 0.1, 0.2), (0.1, 0.3), (0.01, 0.1))


def stronger_momentum(prepared: Prepared, small: bool) -> Methods:
    """List settings of SGD with momentum with priors at least as strong as N(0, 1)."""
    return momentum_only(prepared, small, (0.1,), (0.1, 0.03, 0.01), (1.0, 3.0, 10.0))


def momentum_only(
    prepared: Prepared, small: bool, rates: tuple, decays: tuple, precisions: tuple
) -> Methods:
    """List a grid of SGD with momentum: learning rates times N, α and λ."""
    plans, total = settings(prepared, small), len(prepared.train.targets)
    grid = [
        plans["SGD with momentum"][0].but(
            learning_rate=rate / total, momentum_decay=decay, prior=Prior(precision)
        )
        for rate in rates
        for decay in decays
        for precision in precisions
    ]
    return {"SGD with momentum": grid}


def published(prepared: Prepared, small: bool) -> Methods:
    """List the settings of the report's Figure 5, as written and as programmed.

    All but the last two start uniform on (−2, 2), which is Pyro's choice.
    """
    size = {"rounds": 850, "record_every": 25, "average_every": GAPS}
    if small:
        size = {"rounds": 100, "burn_in": 20, "batch_size": 100, "keep_every": 10}
        size |= {"record_every": 10, "average_every": GAPS[:7]}
    total = len(prepared.train.targets)

    def plan(kernel) -> Plan:
        return Plan(kernel, Prior(1.0), "uniform", Fresh(), **size)

    sghmc, sgld = plan(Hamiltonian(0.1 / total, 0.01)), plan(Langevin(2.0 / total))
    nesterov, sgd = plan(Nesterov(0.05 / total, 0.01)), plan(Langevin(0.5 / total, 0.0))
    return {
        "SGHMC, as programmed": [sghmc.variance_as_scale()],
        "SGD with Nesterov momentum": [nesterov],
        "SGD": [sgd],
        "SGLD, as programmed": [sgld.variance_as_scale()],
        "SGHMC": [sghmc],
        "SGLD": [sgld],
        "SGD with Nesterov momentum, small start": [nesterov.but(start="fan-in")],
        "SGD, small start": [sgd.but(start="fan-in")],
    }


def around(prepared: Prepared, small: bool) -> Methods:
    """List the settings that the report tried around its Figure 5, and SGHMC's own
    small start.

    A number of the regularisation is the standard deviation of a prior in the program:
    0.1, 1 and 10 are the precisions 100, 1 and 0.01. Its weight decay multiplies the
    gradient by η, and once more for the step, so that its learning rate is η², and adds
    to the precision of the prior, whose gradient is in the sum already.
    """
    methods, total = published(prepared, small), len(prepared.train.targets)
    names = ("SGD with Nesterov momentum", "SGD", "SGLD, as programmed")
    [nesterov], [sgd], [sgld] = (methods[name] for name in names)
    sghmc = methods["SGHMC, as programmed"][0].but(start="fan-in")

    def regularised(name: str, plan: Plan) -> Methods:
        return {
            f"{name}, λ = {precision:g}": [plan.but(prior=Prior(precision))]
            for precision in (100.0, 0.01)
        }

    # With a weight decay of 10⁻⁶ their best η is 8·10⁻⁴, whose square times N is 0.032.
    rate = ((0.032 / total) ** 0.5) ** 2
    decayed = nesterov.but(learning_rate=rate, prior=Prior(1.0 + 1e-6))
    return {
        **regularised(names[0], nesterov),
        f"{names[0]}, weight decay": [decayed],
        **regularised("SGD", sgd),
        "SGLD, annealed, as programmed": [annealed(sgld, total)],
        "SGHMC, as programmed, small start": [sghmc],
    }


def compared(name: str, settings=settings, shorter: int = SHORTER) -> Experiment:
    """Make an experiment of the report that scores the networks of each run."""

    def prepare(options: Options) -> Prepared:
        return mnist.prepare(options, name=name)

    def run(options: Options, prepared: Prepared):
        more = {"look": lambda run: look(run, prepared), "shorter": shorter}
        return of_plans(prepare, settings, **more).run(options, prepared)

    return of_plans(prepare, settings)._replace(run=run)


def look(run: Run, prepared: Prepared) -> dict:
    """Score the kept networks, and labels that the last network *draws*."""
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    kept = looks.measure(posterior, run.reservoir)
    return {"kept": kept, "drawn": looks.drawn(run, run.last)}


EXPERIMENT = compared("report")
