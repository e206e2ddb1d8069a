"""SGNUTS on networks, corrected and as reported, against SGHMC at equal costs.

A round is N/n gradient evaluations, whatever trees they are spent on; an unfinished
tree counts in the next rounds. The students who proposed SGNUTS counted N/n trees, of
up to 1,023 gradients each. Runs start at a draw from the prior, N(0, 1), unless their
name says otherwise, and draw minibatches afresh.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from booklib import data as datasets
from booklib.data import part
from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Hamiltonian, HeadStart, Plan, Prior, Trees
from booklib.runs.results import checksum
from booklib.runs.run import Chain
from booklib.runs.trees import AVERAGED, TreeRun
from experiments.comparison import make_run
from experiments.mnist import LAYERS
from experiments.study import Experiment, Options, Prepared, study
from sgmc.minibatches import Fresh

HEAD_START = 3  # a run that changes its kernel does so after so many rounds
COSTS = ("SGHMC", "SGNUTS", "SGNUTS, our reading")  # the gradients of these are timed


def prepare(options: Options) -> dict[str, Prepared]:
    """Load the data, by name."""
    network, folder = partial(multilayer_perceptron, LAYERS), options.folder("sgnuts")
    if options.small:
        return {"MNIST": Prepared(*datasets.digits(), network, folder)}
    loaders = {"MNIST": datasets.mnist, "Fashion-MNIST": datasets.fashion_mnist}
    data = {name: load(options.data) for name, load in loaders.items()}
    return {
        name: Prepared(part(train, slice(50_000)), test, network, folder)
        for name, (train, test) in data.items()
    }


def settings(small: bool) -> list[Plan]:
    """List the plans for seed 0; the small version has small starts too."""
    size = {"rounds": 70, "burn_in": 20, "record_every": 1}
    if small:
        size |= {"batch_size": 100, "rounds": 30, "burn_in": 5}

    def plans(data: str, rate: float, decay: float) -> list[Plan]:
        plan = Plan(
            Hamiltonian(rate, decay), Prior(1.0), "prior", Fresh(), data=data, **size
        )
        return methods(plan)

    if not small:  # the learning rates are those of SGHMC in the report
        return plans("MNIST", 2e-6, 0.01) + plans("Fashion-MNIST", 1e-6, 0.01)[:3]
    # η is 0.1/N as on all of MNIST, and with this friction the prior's directions are
    # overdamped, as they are there.
    listed = plans("MNIST", 0.1 / 4000, 0.02)
    return listed + [
        plan.but(start="fan-in", method=f"{plan.method}, small start")
        for plan in (listed[0], listed[2])
    ]


def methods(plan: Plan, head_start: int = HEAD_START) -> list[Plan]:
    """Make the plans of the methods from that of SGHMC."""
    sghmc = plan.kernel
    both = sghmc.learning_rate, sghmc.momentum_decay
    fresh_momenta = replace(sghmc, resample_every=10)
    kernels = {
        "SGNUTS": Trees(*both),
        "SGNUTS, our reading": Trees(*both, "energy", "drift_kick", held=True),
        "SGHMC": sghmc,
        "SGNUTS, then SGHMC": HeadStart(Trees(*both), head_start),
        "fresh momenta, then SGHMC": HeadStart(fresh_momenta, head_start),
    }
    return [plan.but(method=name, kernel=each) for name, each in kernels.items()]


def costs(plans: list[Plan], prepared: Prepared, device: str, repetitions: int) -> dict:
    """Measure, in turn, the milliseconds of a gradient alone and in each kernel."""
    given = prepared.network(), prepared.train, device
    chains = {plan.method: Chain(plan.but(start="fan-in"), *given) for plan in plans}
    chain, steps = next(iter(chains.values())), itertools.count()
    position = chain.posterior.initial_position(1, chain.generator)

    def gradient() -> int:
        chain.posterior.stochastic_gradient(position, chain.generator, next(steps))
        return 1

    def step_of(chain: Chain) -> int:
        before = chain.num_gradients
        chain.step()
        return chain.num_gradients - before

    def milliseconds(work: Callable[[], int]) -> float:
        """Repeat work that takes some gradients until it has taken 200 of them."""
        number, started = 0, time.process_time()
        while number < 200:
            number += work()
        return round(1000 * (time.process_time() - started) / number, 4)

    work = {"gradient": gradient}
    work |= {method: partial(step_of, each) for method, each in chains.items()}
    measured = {method: [] for method in work}
    with torch.no_grad():
        for _, method in itertools.product(range(repetitions), work):
            measured[method].append(milliseconds(work[method]))
    return measured


def run(options: Options, prepared: dict[str, Prepared]) -> Iterator[dict]:
    """Run all plans, yield after each run, and at last time a gradient."""
    # The weights of SGNUTS compare energies of the order of 100,000.
    torch.set_float32_matmul_precision("highest")
    plans = {f"{plan.data} {plan.method}": plan for plan in settings(options.small)}

    def ran(name: str, plan: Plan, seed: int) -> dict:
        given = plan.but(seed=seed), prepared[plan.data], options
        return make_run(*given, kind=TreeRun, name=name).go(options.progress)

    data = {name: checksum(each.train, each.test) for name, each in prepared.items()}
    result = {"data_checksum": data}
    result |= {"head_start": HEAD_START, "averaged": AVERAGED}
    choices = {name: [plan] for name, plan in plans.items()}
    for found in study(choices, range(options.seeds), None, ran):
        runs = {data: {} for data in prepared}
        for name, content in found.items():
            runs[plans[name].data][plans[name].method] = content["runs"]
        yield (result := result | {"runs": runs})
    data = next(iter(plans.values())).data
    names = [f"{data} {method}" for method in COSTS]
    timed = [plan for name, plan in plans.items() if name in names]
    times = 2 if options.small else 3
    yield result | {"costs": costs(timed, prepared[data], options.device, times)}


EXPERIMENT = Experiment(prepare, run, plans=True)
