"""Fashion-MNIST with the settings of the report of Adam-Day et al.: samplers and optimisers, and what their noise was.

The network is that of their MNIST experiment, 784–100–10 with rectified linear units and the prior N(0, 1) on every weight; 50,000
clothes for training in batches of 500, 100 rounds of warm-up and 100 more, and no setting is tuned. "SGHMC, as reported" injects the noise
that their program did: it gave the variance 2αη where a standard deviation is asked for, so that the noise had the variance (2αη)², which
is exactly SGHMC at the temperature 2αη, and each of its minibatches was drawn afresh. The small version is on the 5,000 digits.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from sgmc.datasets import Data, digits, fashion_mnist
from sgmc.experiments import comparison
from sgmc.experiments.comparison import LAYERS, Prepared, summary
from sgmc.experiments.runner import Options, Plan
from sgmc.networks import multilayer_perceptron

__all__ = ["SETTINGS", "as_reported", "prepare", "run", "settings", "summary", "without_details"]

# Learning rates times N, the number of training examples: those of the report for N = 50,000.
SETTINGS = [
    Plan("SGHMC", 0.05, 0.01, prior_precision=1.0),
    Plan("SGLD", 0.5, None, prior_precision=1.0),
    Plan("SGD with momentum", 0.05, 0.01, temperature=0.0, prior_precision=1.0),
    Plan("SGD", 0.5, None, temperature=0.0, prior_precision=1.0),
    Plan("SGHMC, as reported", 0.05, 0.01, prior_precision=1.0, minibatches="fresh"),
]


def prepare(options: Options) -> Prepared:
    """Load the data: the first 50,000 clothes for training; the other 10,000 of the training set are for validation, and not used."""
    if options.small:
        train, test = digits()
        parts, name = (train, Data(train.inputs[:0], train.targets[:0]), test), "fashion-small"
    else:
        train, test = fashion_mnist(options.data)
        parts, name = (Data(*(x[:50_000] for x in train)), Data(*(x[50_000:] for x in train)), test), "fashion"
    return Prepared(*parts, options.runs / name, partial(multilayer_perceptron, LAYERS, "relu"))


def settings(prepared: Prepared, small: bool) -> dict[str, list[Plan]]:
    """List the one setting of each method, with the learning rates divided by N."""
    size = {"rounds": 200, "burn_in": 100, "batch_size": 500, "keep_every": 10, "record_every": 4}
    if small:
        size = {"rounds": 60, "burn_in": 30, "batch_size": 100, "keep_every": 10, "record_every": 5}
    total = len(prepared.train.targets)
    plans = [replace(plan, learning_rate=plan.learning_rate / total, **size) for plan in SETTINGS]
    return {plan.method: [as_reported(plan) if "reported" in plan.method else plan] for plan in plans}


def as_reported(plan: Plan) -> Plan:
    """Give SGHMC the temperature at which its injected noise 2αTη has the variance (2αη)²."""
    return replace(plan, temperature=2 * plan.momentum_decay * plan.learning_rate)


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return without_details(comparison.compare(settings(prepared, options.small), prepared, options))


def without_details(results: Iterable[dict]) -> Iterator[dict]:
    """Leave out the lists of examples that a network got wrong, which would make up most of the file."""
    for result in results:
        for content in result["methods"].values():
            for one in content["runs"]:
                one.pop("wrong", None)
        yield result
