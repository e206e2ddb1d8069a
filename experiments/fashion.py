"""Fashion-MNIST with the settings of the report of Adam-Day et al.: samplers and
optimisers, and what their noise was.

The network is that of their MNIST experiment, 784–100–10 with rectified linear units
and the prior N(0, 1) on every weight; 50,000 clothes for training in batches of 500,
100 rounds of warm-up and 100 more, and no setting is tuned. "SGHMC, as reported"
injects the noise that their program did: it gave the variance 2αη where a standard
deviation is asked for, so that the noise had the variance (2αη)², which is exactly
SGHMC at the temperature 2αη, and each of its minibatches was drawn afresh. The small
version is on the 5,000 digits."""

from collections.abc import Iterator
from functools import partial

from booklib.datasets import Data, digits, fashion_mnist
from booklib.networks import multilayer_perceptron
from experiments.comparison import Methods, compare, named, summary
from experiments.mnist import LAYERS
from experiments.options import Options, Prepared
from experiments.plan import Plan

__all__ = ["prepare", "run", "settings", "summary"]


def prepare(options: Options) -> Prepared:
    """Load the data: the first 50,000 clothes for training; the other 10,000 of the
    training set are for validation, and not used.
    """
    network, folder = (
        partial(multilayer_perceptron, LAYERS, "relu"),
        options.folder("fashion"),
    )
    if options.small:
        return Prepared(*digits(), network, folder)
    train, test = fashion_mnist(options.data)
    return Prepared(
        Data(*(x[:50_000] for x in train)),
        test,
        network,
        folder,
        Data(*(x[50_000:] for x in train)),
    )


def settings(prepared: Prepared, small: bool) -> Methods:
    """List the one setting of each method; learning rates times N are those of the
    report for N = 50,000.
    """
    size = {"rounds": 200, "burn_in": 100, "keep_every": 10, "record_every": 4}
    if small:
        size = {
            "rounds": 60,
            "burn_in": 30,
            "batch_size": 100,
            "keep_every": 10,
            "record_every": 5,
        }
    total = len(prepared.train.targets)

    def plan(rate: float, decay: float | None = None, **more) -> Plan:
        return Plan(rate / total, decay, prior_precision=1.0, **size, **more)

    return named(
        {
            "SGHMC": [plan(0.05, 0.01)],
            "SGLD": [plan(0.5)],
            "SGD with momentum": [plan(0.05, 0.01, temperature=0.0)],
            "SGD": [plan(0.5, temperature=0.0)],
            "SGHMC, as reported": [
                plan(0.05, 0.01, minibatches="fresh").variance_as_scale()
            ],
        }
    )


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    return compare(settings(prepared, options.small), prepared, options)
