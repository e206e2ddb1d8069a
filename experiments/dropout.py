"""Dropout's two predictions on MNIST: by scaled weights, and by Monte Carlo.

The network is that of ``neighbours``, trained at the setting which was chosen there.
The same weights predict once, times the probability of being kept (Srivastava et al.,
2014), and by an average over drawn masks (Gal and Ghahramani, 2016).
"""

from collections.abc import Iterator

from torch import Tensor

from booklib.rivals.layers import linear_layers
from booklib.runs.results import score
from experiments import mnist
from experiments.fits import Task, compare, predict, tasks
from experiments.neighbours import NETWORKS, ROUNDS, drop
from experiments.study import Experiment, Options, Prepared
from sgmc.door.draws import Draws
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior

CHOSEN = {"rate": 0.01, "dropped": [0.1, 0.1]}


def scaled(draws: Draws, posterior: NetworkPosterior, rates: list[float]) -> Tensor:
    """Multiply the weights of a layer by the probability that its inputs are kept."""
    weights = draws.statistics["weights"][0].clone()
    pieces = posterior.parameters_of(weights)  # the pieces are views
    for name, rate in zip(linear_layers(posterior), rates, strict=True):
        pieces[f"{name}.weight"].mul_(1 - rate)
    return weights


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Train with each seed, and predict twice."""
    rounds, size = (12, 100) if options.small else (ROUNDS, 500)
    rule = {"batch_size": size, "minibatches": Passes()}
    posterior = NetworkPosterior(prepared.network(), *prepared.train, **rule)
    task = tasks(posterior, lambda rounds: min(NETWORKS, rounds // 2), options)

    def look(method: str, draws: Draws, task: Task) -> dict:
        weights = scaled(draws, posterior, CHOSEN["dropped"])
        predicted = predict(posterior, weights, prepared.test.inputs)[0]
        return {"standard": score(predicted, prepared.test.targets)}

    methods = {"dropout": (drop, [CHOSEN])}
    return compare(methods, task, prepared, options, rounds, look=look)


EXPERIMENT = Experiment(lambda options: mnist.prepare(options, name="dropout"), run)
