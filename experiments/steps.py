"""Steps per sample on MNIST: m = 1, 3 and 5 steps with εm fixed, at equal numbers of
samples and at equal numbers of gradients.

With the friction C fixed, ε/m is the learning rate η/m² and the momentum decay α/m:
every sample is then the same stretch εm of the same dynamics, in steps that are m times
finer. The network is 784–100–10 with rectified linear units and the prior N(0, 1); η =
2·10⁻⁶ and α = 0.01 at m = 1. With 50,000 digits and fresh minibatches of 500, a round
is 100 samples. At equal samples the burn-in is 100 rounds for every m, and a larger m
costs m times more; at equal gradients all have what m = 1 has, and average as many
networks. The momentum is not drawn afresh. The small version is on the 5,000 digits.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from booklib.datasets import Data, digits, mnist
from booklib.networks import multilayer_perceptron
from experiments.comparison import Methods, compare, named, summary
from experiments.mnist import LAYERS
from experiments.options import Options, Prepared
from experiments.plan import Plan

__all__ = ["STEPS", "prepare", "run", "settings", "summary"]

STEPS = (1, 3, 5)


def prepare(options: Options) -> Prepared:
    """Load the digits; there is nothing to validate."""
    train, test = digits() if options.small else mnist(options.data)
    train = Data(*(x[:50_000] for x in train))
    return Prepared(
        train,
        test,
        partial(multilayer_perceptron, LAYERS, "relu"),
        options.folder("steps"),
    )


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method."""
    size = {"rounds": 120, "burn_in": 100, "record_every": 4}
    if small:
        size = {"rounds": 30, "burn_in": 15, "batch_size": 100, "record_every": 3}
    one = Plan(
        0.1 / len(prepared.train.targets),
        0.01,
        prior_precision=1.0,
        minibatches="fresh",
        **size,
    )
    finer = {m: one.finer(m) for m in STEPS[1:]}
    return named(
        {
            "m = 1": [one],
            # Without fresh momentum m steps a sample are m samples of one step: we may
            # look at the chain as often as at that of m = 1.
            **{
                f"m = {m}, equal gradients": [replace(plan, num_steps=1)]
                for m, plan in finer.items()
            },
            **{f"m = {m}, equal samples": [plan] for m, plan in finer.items()},
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return compare(settings(prepared, options.small), prepared, options)
