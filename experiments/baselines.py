"""What can be done after training: temperature scaling, and simple scores of strange
inputs, beside ensembles and samples of the same network.

One network, 784–100–10, and 60 epochs of minibatches of 500 for every method, on MNIST
and on Fashion-MNIST; five short trainings share them. A temperature is fitted to the
predictions for the 10,000 validation examples. On MNIST, letters and clothes are told
from digits by scores of the logits and, of one trained network, by the distance to the
tenth neighbour among 10,000 digits of the training data, in the hidden units
(Sun et al., 2022) or in pixels.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy, normalize

from booklib import rivals
from booklib.data import fashion_mnist
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import checksum, score
from booklib.scores.prediction import area_under_roc, predictive_entropy
from experiments import neighbours
from experiments.fits import Methods, Task, compare, networks, tasks
from experiments.study import Experiment, Options, Prepared, grid, once, split
from sgmc.door.draws import Draws
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior

ROUNDS, BATCH, NETWORKS, MEMBERS = 60, 500, 30, 5
NEIGHBOUR, NEIGHBOURS = 10, 10_000  # the tenth of so many


def prepare(options: Options) -> dict[str, Prepared]:
    """Load digits, with letters and clothes as strange inputs, and clothes."""
    digits = neighbours.prepare(options)
    if options.small:
        return {"digits": digits}
    network = partial(multilayer_perceptron, [784, 100, 10])
    return {
        "digits": digits,
        "clothes": split(options, fashion_mnist, network, "baselines"),
    }


def several(task: Task, rate: float) -> Draws:
    """Train five networks for a fifth of the epochs each, at a rate that falls to
    zero.
    """
    size = {"cycle_length": task.num_steps // MEMBERS}
    rate = rate / task.posterior.num_examples
    start, given = task.start(MEMBERS), task.run()
    return rivals.snapshots(
        task.posterior, start, 1, learning_rate=rate, **size, **given
    )


def methods(name: str) -> Methods:
    """List the methods for the data of this name, with the settings to choose from."""
    found: Methods = {
        "one trained": (neighbours.descend, grid(rate=(0.15, 0.5))),
        "five trained": (several, grid(rate=(0.15, 0.5))),
        "SGHMC": (neighbours.sghmc, grid(rate=(0.1, 0.4), decay=0.1)),
    }
    if name == "digits":
        found["cyclical SGHMC"] = neighbours.cyclical, grid(rate=0.15, decay=0.1)
        vary = grid(rate=3e-3, initial_std=0.01)
        found["Bayes by Backprop"] = neighbours.vary, vary
    return found


def fitted_temperature(log_probabilities: Tensor, targets: Tensor) -> float:
    """Fit the T at which softmax(log p/T) has the least log loss (Guo et al., 2017).

    Example:
        >>> p = torch.tensor([[0.9, 0.1]]).repeat(4, 1)  # right in three of four
        >>> round(fitted_temperature(p.log(), torch.tensor([0, 0, 0, 1])), 3)
        2.0
    """
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_temperature], max_iter=100)

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = cross_entropy(log_probabilities / log_temperature.exp(), targets)
        value.backward()
        return value

    optimiser.step(loss)
    return float(log_temperature.detach().exp())


def strangeness(logits: Tensor) -> dict[str, Tensor]:
    """Score inputs by the logits of some networks, ``(networks, n, classes)``: large
    where they look unlike the training data.
    """
    each = logits.softmax(-1)
    average = each.mean(0)
    found = {
        "max softmax": -average.max(-1).values,
        "entropy": predictive_entropy(average),
        "max logit": -logits.max(-1).values.mean(0),
        "energy": -logits.logsumexp(-1).mean(0),
    }
    if len(logits) > 1:
        inner = predictive_entropy(each).mean(0)
        found["disagreement"] = found["entropy"] - inner
    return found


def distance_to_neighbours(known: Tensor, inputs: Tensor) -> Tensor:
    """Compute the distance of each input to its tenth neighbour among known ones, all
    of length one.
    """
    known = normalize(known[:: max(1, len(known) // NEIGHBOURS)])
    pieces = normalize(inputs).split(1_000)
    near = [
        torch.cdist(piece, known).topk(NEIGHBOUR, largest=False) for piece in pieces
    ]
    return torch.cat([each.values[:, -1] for each in near])


def areas(scores: Callable[[Tensor], dict[str, Tensor]], prepared: Prepared) -> dict:
    """Compute the area under the ROC curve of every score, for every strange data."""
    inside = scores(prepared.test.inputs)
    found = {}
    for what, data in prepared.others.items():
        outside = scores(data.inputs)
        found[what] = {
            name.replace(" ", "_"): round(area_under_roc(x, outside[name]), 6)
            for name, x in inside.items()
        }
    return found


def assess(draws: Draws, task: Task, prepared: Prepared) -> dict:
    """Score the average prediction before and after temperature scaling, and the ways
    to recognise strange inputs.
    """
    positions, posterior = networks(draws, task.num_networks), task.posterior

    def logits(inputs: Tensor) -> Tensor:
        every = [posterior.outputs(one[None], inputs[None])[0] for one in positions]
        return torch.stack(every).double()

    def average(inputs: Tensor) -> Tensor:
        return logits(inputs).log_softmax(-1).exp().mean(0).log()

    def scores(inputs: Tensor) -> dict[str, Tensor]:
        found = strangeness(logits(inputs))
        if len(positions) == 1:
            near = distance_to_neighbours(hidden(posterior.data[0]), hidden(inputs))
            found["neighbours"] = near
        return found

    def hidden(inputs: Tensor) -> Tensor:
        body, named = posterior.module[:-1], posterior.named(positions[0])
        values = {name: named[name] for name, _ in body.named_parameters()}
        return functional_call(body, values, (inputs,))

    test, validation = prepared.test, prepared.validation
    temperature = fitted_temperature(average(validation.inputs), validation.targets)
    before = average(test.inputs)
    return {
        "networks": len(positions),
        "temperature": round(temperature, 6),
        "before": score(before.exp(), test.targets),
        "after": score((before / temperature).softmax(-1), test.targets),
        "areas": areas(scores, prepared),
    }


def run(options: Options, prepared: dict[str, Prepared]) -> Iterator[dict]:
    """Compare the methods on each of the data, and look for neighbours in pixels."""
    folder = options.folder("baselines")
    rounds, size = (12, 100) if options.small else (ROUNDS, BATCH)
    found, data = {}, {}
    for name, each in prepared.items():
        each = each._replace(folder=folder / name)
        rule = {"batch_size": size, "minibatches": Passes()}
        posterior = NetworkPosterior(each.network(), *each.train, **rule)
        task = tasks(posterior, lambda rounds: min(NETWORKS, rounds // 2), options)
        for part in compare(methods(name), task, each, options, rounds, assess=assess):
            data[name] = part["data_checksum"]
            for method, content in part["methods"].items():
                found[f"{name}, {method}"] = content
            yield {"data_checksum": data, "methods": found}
    digits = prepared["digits"]
    near = partial(distance_to_neighbours, digits.train.inputs)
    depends = {"data": checksum(digits.train, digits.test, *digits.others.values())}
    look = partial(areas, lambda inputs: {"neighbours": near(inputs)}, digits)
    pixels = once(folder / "pixels.json", depends, look)
    yield {"data_checksum": data, "methods": found, "pixels": pixels}


EXPERIMENT = Experiment(prepare, run)
