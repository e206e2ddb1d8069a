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

from sgmc.experiments import comparison, mnist
from sgmc.experiments.comparison import LAYERS, Prepared, summary
from sgmc.experiments.runner import Options, Plan, read_checkpoint
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import NetworkPosterior
from sgmc.prediction import predictive_entropy

__all__ = ["BINS", "SETTINGS", "look", "prepare", "run", "settings", "summary"]

BINS = 23  # of the histograms of entropy, from 0 to log 10
SHORTER = 20  # a run of the tuning has 42 rounds
PLAN = Plan("", 1.0, None, prior_precision=1.0, rounds=850, burn_in=50, minibatches="fresh")
# Learning rates times N = 50,000, as in mnist.
MOMENTUM = [replace(PLAN, learning_rate=rate, momentum_decay=decay) for rate in (0.05, 0.1, 0.2, 0.4) for decay in (0.1, 0.01, 0.001)]
NO_MOMENTUM = [replace(PLAN, learning_rate=rate) for rate in (0.5, 1.0, 2.0, 3.0)]
PRECISIONS = (0.1, 1.0, 10.0)
SETTINGS = {
    "SGHMC": MOMENTUM,
    "SGD with momentum": [replace(plan, temperature=0.0, prior_precision=value) for plan in MOMENTUM for value in PRECISIONS],
    "SGHMC, variance as scale": MOMENTUM,
    "SGLD": NO_MOMENTUM,
    "SGLD, annealed": NO_MOMENTUM,
    "SGD": [replace(plan, temperature=0.0, prior_precision=value) for plan in NO_MOMENTUM for value in PRECISIONS],
}


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment mnist, for a network with rectified linear units."""
    folder = options.runs / ("report-small" if options.small else "report")
    return mnist.prepare(options)._replace(folder=folder, network=partial(multilayer_perceptron, LAYERS, "relu"))


def settings(prepared: Prepared, small: bool) -> dict[str, list[Plan]]:
    """List the settings to choose from, for each method, with the learning rates divided by N."""
    total = len(prepared.train.targets)
    size = {"rounds": 102, "burn_in": 20, "batch_size": 100, "keep_every": 10, "record_every": 5} if small else {}
    return {method: [_complete(method, plan, total, size) for plan in plans] for method, plans in SETTINGS.items()}


def _complete(method: str, plan: Plan, total: int, size: dict) -> Plan:
    plan = replace(plan, method=method, learning_rate=plan.learning_rate / total, **size)
    if method == "SGHMC, variance as scale":
        return replace(plan, temperature=2 * plan.momentum_decay * plan.learning_rate)
    if method == "SGLD, annealed":  # (1 + t/b)^−½ falls from 1 to 1/4 in 15b steps
        return replace(plan, annealing=(plan.rounds * (total // plan.batch_size) / 15, 0.5))
    return plan


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods, and look at the networks that each run kept."""
    for result in comparison.compare(settings(prepared, options.small), prepared, options, SHORTER):
        method, content = next((name, each) for name, each in result["methods"].items() if "kept" not in each["runs"][-1])
        path = comparison.checkpoint(prepared.folder, method, content["runs"][-1]["plan"]["seed"])
        content["runs"][-1]["kept"] = look(read_checkpoint(path)["reservoir"], prepared)
        yield result


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
