"""MNIST as the reproduction report ran it: rectified linear units, N(0, 1) priors, its
grids of settings, and its noise.

Adam-Day et al. tried η in {1, 2, 4, 8}·10⁻⁶ with α in {0.1, 0.01, 0.001} for the
methods with momentum, and η in {1, 2, 4, 6}·10⁻⁵ for those without; a prior N(0, 1) for
the samplers and a regularisation in {0.1, 1, 10} for the optimisers; B̂ = 0, fresh
minibatches, and 50 + 800 rounds. We choose by 42 rounds of each setting on the
validation digits, which takes a twentieth of the time of full runs.

Their code passes the noise's variance 2αη where a standard deviation is asked for. The
variance that it injects, (2αη)², is that of SGHMC at the temperature 2αη: the third
method. The fifth has their falling step size, from η to η/4, with weighted averages.

Two more experiments rest on this file. In figure5 their Figure 5 is run at its
published settings and from its own start; in figure5_around what they tried around it,
weight decay, annealing and regularisation, as their program has it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from booklib.networks import multilayer_perceptron
from booklib.prediction import predictive_entropy
from experiments import mnist
from experiments.comparison import Methods, compare, named, summary
from experiments.options import Options, Prepared
from experiments.plan import Plan
from experiments.run import Run
from sgmc.posteriors import NetworkPosterior

__all__ = [
    "BINS",
    "around",
    "look",
    "prepare",
    "published",
    "run",
    "settings",
    "summary",
]

BINS = 23  # of the histograms of entropy, from 0 to log 10
SHORTER = 20  # a run of the tuning has 42 rounds
# from one network averaged to the next: 800, 400, ..., 1 of them
GAPS = (1, 2, 4, 8, 16, 40, 80, 160, 400, 800)
SMALL_GAPS = (1, 2, 4, 8, 16, 40, 80)


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment mnist, for a network with rectified linear
    units.
    """
    network = partial(multilayer_perceptron, mnist.LAYERS, "relu")
    return mnist.prepare(options)._replace(
        folder=options.folder("report"), network=network
    )


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings to choose from; learning rates times N are those of the report
    for N = 50,000.
    """
    size = (
        {
            "rounds": 102,
            "batch_size": 100,
            "burn_in": 20,
            "keep_every": 10,
            "record_every": 5,
        }
        if small
        else {"rounds": 850}
    )
    total = len(prepared.train.targets)

    def sampler(rate: float, decay: float | None = None) -> Plan:
        return Plan(
            rate / total, decay, prior_precision=1.0, minibatches="fresh", **size
        )

    def optimisers(plans: list[Plan]) -> list[Plan]:
        return [
            replace(plan, temperature=0.0, prior_precision=precision)
            for plan in plans
            for precision in (0.1, 1.0, 10.0)
        ]

    momentum = [
        sampler(rate, decay)
        for rate in (0.05, 0.1, 0.2, 0.4)
        for decay in (0.1, 0.01, 0.001)
    ]
    no_momentum = [sampler(rate) for rate in (0.5, 1.0, 2.0, 3.0)]
    return named(
        {
            "SGHMC": momentum,
            "SGD with momentum": optimisers(momentum),
            "SGHMC, variance as scale": [plan.variance_as_scale() for plan in momentum],
            "SGLD": no_momentum,
            "SGLD, annealed": [annealed(plan, total) for plan in no_momentum],
            "SGD": optimisers(no_momentum),
        }
    )


def annealed(plan: Plan, total: int) -> Plan:
    """Let the steps fall to a quarter, as (1 + t/b)^−½ does in 15b steps."""
    return replace(plan, annealing=(plan.rounds * (total // plan.batch_size) / 15, 0.5))


def _figure5(
    prepared: Prepared, small: bool, rate: float, decay: float | None = None, **more
) -> Plan:
    """Make a plan of the size of Figure 5, from the program's start, with η = rate/N
    and the precision 1.
    """
    size = {"rounds": 850, "record_every": 25, "average_every": GAPS}
    if small:
        size = {
            "rounds": 100,
            "burn_in": 20,
            "batch_size": 100,
            "keep_every": 10,
            "record_every": 10,
            "average_every": SMALL_GAPS,
        }
    return Plan(
        rate / len(prepared.train.targets),
        decay,
        prior_precision=1.0,
        minibatches="fresh",
        start="uniform",
        **size,
        **more,
    )


def published(prepared: Prepared, small: bool) -> Methods:
    """List the settings of the report's Figure 5, as they are written and as the
    program has them.

    Weights and biases start uniform on (−2, 2), which is Pyro's choice, but for the
    last two."""
    plan = partial(_figure5, prepared, small)
    sghmc, sgld = plan(0.1, 0.01), plan(2.0)
    sgd, nesterov = (
        plan(0.5, temperature=0.0),
        plan(0.05, 0.01, temperature=0.0, nesterov=True),
    )
    return named(
        {
            "SGHMC, as programmed": [sghmc.variance_as_scale()],
            "SGD with Nesterov momentum": [nesterov],
            "SGD": [sgd],
            "SGLD, as programmed": [sgld.variance_as_scale()],
            "SGHMC": [sghmc],
            "SGLD": [sgld],
            "SGD with Nesterov momentum, small start": [
                replace(nesterov, start="fan-in")
            ],
            "SGD, small start": [replace(sgd, start="fan-in")],
        }
    )


def around(prepared: Prepared, small: bool) -> Methods:
    """List what the report tried around its Figure 5: regularisation, weight decay,
    annealing; and SGHMC's own small start.

    A number of the regularisation is the standard deviation of a prior in the program:
    0.1, 1 and 10 are the precisions 100, 1 and 0.01."""
    methods, total = published(prepared, small), len(prepared.train.targets)
    [nesterov], [sgd], [sgld] = (
        methods[name]
        for name in ("SGD with Nesterov momentum", "SGD", "SGLD, as programmed")
    )
    # With a weight decay of 10⁻⁶ their best η is 8·10⁻⁴, whose square times N is 0.032.
    decayed = replace(nesterov, learning_rate=(0.032 / total) ** 0.5).rate_twice(1e-6)
    return named(
        {
            **{
                f"SGD with Nesterov momentum, λ = {precision:g}": [
                    replace(nesterov, prior_precision=precision)
                ]
                for precision in (100.0, 0.01)
            },
            "SGD with Nesterov momentum, weight decay": [decayed],
            **{
                f"SGD, λ = {precision:g}": [replace(sgd, prior_precision=precision)]
                for precision in (100.0, 0.01)
            },
            "SGLD, annealed, as programmed": [annealed(sgld, total)],
            "SGHMC, as programmed, small start": [
                replace(methods["SGHMC, as programmed"][0], start="fan-in")
            ],
        }
    )


def run(
    options: Options,
    prepared: Prepared,
    methods: Callable[[Prepared, bool], Methods] = settings,
) -> Iterator[dict]:
    """Compare the methods, and look at the networks that each run kept."""
    chosen = methods(prepared, options.small)
    return compare(
        chosen,
        prepared,
        options,
        SHORTER,
        look=lambda run: {"kept": look(run.reservoir, prepared), "drawn": drawn(run)},
    )


def drawn(run: Run) -> float:
    """Compute the error rate to be expected when the last network *draws* a label, as
    the report's program has it.
    """
    right = run.last.cpu().gather(-1, run.targets[:, None])
    return round(1 - float(right.mean()), 6)


def look(reservoir: list[Tensor], prepared: Prepared) -> dict:
    """Measure the networks kept ``(dim,)``: spread and length of each tensor of
    weights, and the entropies of their averaged predictions.

    The spread is the root mean square over the tensor's entries of their standard
    deviation over the networks, and so is the length that of the entries themselves.
    """
    positions = torch.stack(reservoir)
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    average = sum(
        posterior.log_predict(position[None], prepared.test.inputs)[0].double().exp()
        for position in positions
    ) / len(positions)
    entropy = predictive_entropy(average)
    pieces = posterior.parameters_of(positions)
    return {
        "networks": len(positions),
        "spread": {
            name: _rounded(piece.var(0).mean().sqrt()) for name, piece in pieces.items()
        },
        "length": {
            name: _rounded(piece.square().mean().sqrt())
            for name, piece in pieces.items()
        },
        "entropy": _rounded(entropy.mean()),
        "histogram": [
            int(count)
            for count in torch.histc(
                entropy.clamp(max=math.log(10)), BINS, 0, math.log(10)
            )
        ],
    }


def _rounded(value: Tensor) -> float:
    return float(f"{float(value):.5g}")
