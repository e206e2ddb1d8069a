"""MNIST as the reproduction report ran it: rectified linear units, N(0, 1) priors, its grids of settings, and its noise.

Adam-Day et al. tried η in {1, 2, 4, 8}·10⁻⁶ with α in {0.1, 0.01, 0.001} for the methods with momentum, and η in {1, 2, 4, 6}·10⁻⁵ for
those without; a prior N(0, 1) for the samplers and a regularisation in {0.1, 1, 10} for the optimisers; B̂ = 0, fresh minibatches, and
50 + 800 rounds. We choose by 42 rounds of each setting on the validation digits, which takes a twentieth of the time of full runs.

Their code passes the noise's variance 2αη where a standard deviation is asked for. The variance that it injects, (2αη)², is that of
SGHMC at the temperature 2αη: the third method. The fifth has their falling step size, from η to η/4, with weighted averages.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from experiments import mnist
from experiments.comparison import Methods, compare, named, summary
from experiments.options import Options, Prepared
from experiments.plan import Plan
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import predictive_entropy

__all__ = ["BINS", "look", "prepare", "run", "settings", "summary"]

BINS = 23  # of the histograms of entropy, from 0 to log 10
SHORTER = 20  # a run of the tuning has 42 rounds


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment mnist, for a network with rectified linear units."""
    network = partial(multilayer_perceptron, mnist.LAYERS, "relu")
    return mnist.prepare(options)._replace(folder=options.folder("report"), network=network)


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the settings to choose from; learning rates times N are those of the report for N = 50,000."""
    size = {"rounds": 102, "batch_size": 100, "burn_in": 20, "keep_every": 10, "record_every": 5} if small else {"rounds": 850}
    total = len(prepared.train.targets)

    def sampler(rate: float, decay: float | None = None) -> Plan:
        return Plan(rate / total, decay, prior_precision=1.0, minibatches="fresh", **size)

    def optimisers(plans: list[Plan]) -> list[Plan]:
        return [replace(plan, temperature=0.0, prior_precision=precision) for plan in plans for precision in (0.1, 1.0, 10.0)]

    def annealed(plan: Plan) -> Plan:  # (1 + t/b)^−½ falls from 1 to 1/4 in 15b steps
        return replace(plan, annealing=(plan.rounds * (total // plan.batch_size) / 15, 0.5))

    momentum = [sampler(rate, decay) for rate in (0.05, 0.1, 0.2, 0.4) for decay in (0.1, 0.01, 0.001)]
    no_momentum = [sampler(rate) for rate in (0.5, 1.0, 2.0, 3.0)]
    return named(
        {
            "SGHMC": momentum,
            "SGD with momentum": optimisers(momentum),
            "SGHMC, variance as scale": [plan.variance_as_scale() for plan in momentum],
            "SGLD": no_momentum,
            "SGLD, annealed": [annealed(plan) for plan in no_momentum],
            "SGD": optimisers(no_momentum),
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods, and look at the networks that each run kept."""
    methods = settings(prepared, options.small)
    return compare(methods, prepared, options, SHORTER, look=lambda run: {"kept": look(run.reservoir, prepared)})


def look(reservoir: list[Tensor], prepared: Prepared) -> dict:
    """Measure the networks kept ``(dim,)``: spread and length of each tensor of weights, and the entropies of their averaged predictions.

    The spread is the root mean square over the tensor's entries of their standard deviation over the networks, and so is the length that
    of the entries themselves.
    """
    positions = torch.stack(reservoir)
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    average = sum(posterior.log_predict(position[None], prepared.test.inputs)[0].double().exp() for position in positions) / len(positions)
    entropy = predictive_entropy(average)
    pieces = posterior.parameters_of(positions)
    return {
        "networks": len(positions),
        "spread": {name: _rounded(piece.var(0).mean().sqrt()) for name, piece in pieces.items()},
        "length": {name: _rounded(piece.square().mean().sqrt()) for name, piece in pieces.items()},
        "entropy": _rounded(entropy.mean()),
        "histogram": [int(count) for count in torch.histc(entropy.clamp(max=math.log(10)), BINS, 0, math.log(10))],
    }


def _rounded(value: Tensor) -> float:
    return float(f"{float(value):.5g}")
