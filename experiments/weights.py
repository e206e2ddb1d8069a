"""Bayes by Backprop on MNIST, as in Blundell et al. (2015), and networks after pruning.

Two hidden layers of 400 rectified linear units, on pixels from 0 to 2.02, minibatches
of 250, rates that fall to zero; the rate of Bayes by Backprop and its first spread are
the best on the validation digits of a dozen that were tried with fewer rounds. Its
weights are pruned by their signal-to-noise, others by their size; predictions average
30 draws. The small version has layers of 50 units.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.rivals.pruning import prune
from booklib.runs.results import score
from experiments import mnist
from experiments.fits import Methods, Task, compare, networks, predict, tasks
from experiments.neighbours import descend, drop, vary
from experiments.scale_mixture import ScaleMixtureNetwork
from experiments.study import Experiment, Options, Prepared, grid
from sgmc.door.draws import Draws
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior

ROUNDS, NETWORKS = 50, 30
SHARES = [0.0, 0.5, 0.75, 0.95, 0.98]  # the shares that are pruned
BRIGHTEST = 255 / 126  # the brightest pixel of Blundell et al.


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment mnist, in the paper's units."""
    units = 50 if options.small else 400
    network = partial(multilayer_perceptron, [784, units, units, 10], "relu")
    prepared = mnist.prepare(options, name="weights")._replace(network=network)
    brighter = {
        part: Data(BRIGHTEST * data.inputs, data.targets)
        for part, data in prepared._asdict().items()
        if isinstance(data, Data)
    }
    return prepared._replace(**brighter)


def mixture(task: Task, share: float, narrow: float, **settings) -> Draws:
    """Fit a Gaussian when the prior is a mixture πN(0, 1) + (1 − π)N(0, σ²)."""
    given, stds = task.posterior, (1.0, narrow)
    size = {"batch_size": given.batch_size, "minibatches": given.minibatches}
    posterior = ScaleMixtureNetwork(given.module, *given.data, share, stds, **size)
    return vary(replace(task, posterior=posterior), **settings)


def methods() -> Methods:
    """List the methods, each with the settings to choose from."""
    fit = {"rate": 1e-3, "initial_std": 0.003}
    mixed = {"share": 0.5, "narrow": 0.0025, **fit}
    return {
        "SGD with momentum": (descend, grid(rate=(0.02, 0.05, 0.1))),
        "dropout": (drop, grid(rate=(5e-4, 1e-3, 2e-3), dropped=[0.2, 0.5, 0.5])),
        "Bayes by Backprop": (vary, [{**fit, "rate": 5e-4}]),
        "Bayes by Backprop, scale mixture": (mixture, [mixed]),
    }


def look(method: str, draws: Draws, task: Task, prepared: Prepared) -> dict:
    """Prune, and measure the standard deviations of the weights."""
    found: dict = {"pruned": {}}
    if "std" in draws.statistics:
        found["median_std"] = float(f"{float(draws.statistics['std'][0].median()):.4g}")
    else:  # the smallest weights go first
        weights = draws.statistics.get("weights", draws.samples)
        about = {"mean": weights, "std": torch.ones_like(weights)}
        draws = replace(draws, statistics=about)
    for share in SHARES:
        positions = networks(prune(draws, share), task.num_networks)
        predicted = predict(task.posterior, positions, prepared.test.inputs)
        scores = score(predicted.mean(0), prepared.test.targets)
        found["pruned"][str(share)] = [scores["error"], scores["log_loss"]]
    return found


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Compare the methods."""
    rounds, size = (12, 50) if options.small else (ROUNDS, 250)
    rule = {"batch_size": size, "minibatches": Passes()}
    posterior = NetworkPosterior(prepared.network(), *prepared.train, **rule)
    task = tasks(posterior, lambda rounds: NETWORKS, options)
    more = {"shorter": 5, "look": partial(look, prepared=prepared)}
    return compare(methods(), task, prepared, options, rounds, **more)


EXPERIMENT = Experiment(prepare, run)
