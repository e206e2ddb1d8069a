"""Few networks on MNIST: which of 300 sampled ones to keep, and what a student learns.

Network, posterior and SGHMC are those of the experiment neighbours, but a network is
kept every ten minibatches of the second half. Of the 300 are kept the last, evenly
spaced, random (the mean of 20 choices), or herded ones, by what they predict for the
validation digits. Students learn what all predict on average for the training digits
and a noisy copy, in as many minibatches as the chain took; one sees no copy, and one
network learns the labels. All are compared with the average over the 300, and with that
of another chain, whose own distance is the floor.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from booklib.models.networks import multilayer_perceptron
from booklib.rivals.distillation import SoftTargets, lessons
from booklib.rivals.thinning import herd, thin
from booklib.runs.results import checksum, circumstances, score
from booklib.scores.fidelity import agreement, predictive_distance
from booklib.scores.prediction import area_under_roc, log_score, predictive_entropy
from experiments import neighbours
from experiments.fits import Task, predict, whole
from experiments.study import Experiment, Options, Prepared, in_a_name, once
from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import SGHMC
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior

RATE, DECAY = 0.4, 0.1  # SGHMC's settings, as the experiment neighbours found them
ROUNDS, BATCH = 60, 500
EVERY = 10  # minibatches from one network to the next
COUNTS = (1, 2, 5, 10, 20, 50, 100)  # the numbers of networks to keep
REPEATS = 20  # the number of random choices
OTHER_CHAIN = 1_000  # is added to the seed
NOISE_STD = 0.2  # the noise in the students' copies
STUDENTS = {
    "student 30": (30, 1),
    "student 100": (100, 1),
    "student 400": (400, 1),
    "student 100, no copy": (100, 0),
}
STUDENT_RATES, LABEL_RATES = (0.15, 0.5, 1.5), (0.05, 0.15, 0.5)
LABELS = "labels 100"  # names the network that learns the labels


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment neighbours, with letters as the images that are
    no digits.
    """
    prepared = neighbours.prepare(options)
    others = {"letters": prepared.others["letters"]}
    return prepared._replace(folder=options.folder("few"), others=others)


def chain(task: Task, part: str) -> Draws:
    """Sample, half of it burn-in, and keep a network every few minibatches."""
    kernel = SGHMC.from_learning_rate(RATE / task.posterior.num_examples, DECAY)
    half, given = task.num_steps // 2, task.run(part)
    size = {"warm_up": half, "thinning": EVERY}
    start = task.start()
    return whole(sample(kernel, task.posterior, start, half // EVERY, **size, **given))


def teach(task: Task, draws: Draws, prepared: Prepared) -> tuple[Tensor, ...]:
    """Combine the training digits and a noisy copy of them with the networks'
    predictions.
    """
    inputs, copies = prepared.train.inputs, {"copies": 1, "noise_std": NOISE_STD}
    return lessons(task.posterior, draws, inputs, **copies, seed=task.seed)


def effective_number(gram: Tensor) -> float:
    """Estimate how many independent draws a chain is worth for averages of features φ.

    n/(1 + 2Σρₖ), ρₖ being the mean of ⟨φₜ − μ, φₜ₊ₖ − μ⟩ over that of its square norm,
    up to the first pair of lags whose sum is negative (Geyer, 1992). ``gram`` has the
    inner products ``(n, n)``.
    """
    centred = gram.double() - gram.double().mean(0)
    centred = centred - centred.mean(1, keepdim=True)
    total, variance = len(gram), centred.diagonal().mean()
    correlation = lambda lag: float(centred.diagonal(lag).mean() / variance)
    length = 1.0
    for lag in range(1, total - 1, 2):
        pair = correlation(lag) + correlation(lag + 1)
        if pair < 0:
            break
        length += 2 * pair
    return round(total / length, 2)


class Judge(NamedTuple):
    """A judge that scores sets of networks by their probabilities ``(networks, n,
    classes)``.
    """

    own: Tensor  #: the average over the chain on the test digits, ``(n, classes)``
    other: Tensor  #: that of another chain
    targets: Tensor  #: classes of the test digits

    def __call__(self, inside: Tensor, outside: Tensor) -> dict[str, float]:
        """Score a set on digits and letters: distances, scores and disagreement."""
        entropies = [predictive_entropy(each.mean(0)) for each in (inside, outside)]
        alone = [predictive_entropy(each).mean(0) for each in (inside, outside)]
        pairs = zip(entropies, alone, strict=True)
        spread = [max(0.0, float((both - single).mean())) for both, single in pairs]
        average = inside.mean(0)
        found = {
            "distance": predictive_distance(average, self.own),
            "agreement": agreement(average, self.own),
            "distance_to_other": predictive_distance(average, self.other),
            **score(average, self.targets),
            "auroc": area_under_roc(*entropies),
            "disagreement": spread[0],
            "disagreement_on_letters": spread[1],
        }
        return {name: float(f"{value:.5g}") for name, value in found.items()}


def choices(draws: Draws, gram: Tensor, seed: int) -> dict[str, Callable]:
    """List the ways to keep so many networks, each giving sets of their places."""
    total = len(gram)
    herded = herd(draws, min(COUNTS[-1], total), gram).statistics["index"][:, 0]
    generator = Generator().manual_seed(seed)
    orders = [torch.randperm(total, generator=generator) for _ in range(REPEATS)]
    return {
        "last": lambda number: [torch.arange(total - number, total)],
        "even": lambda number: [thin(draws, number).statistics["index"][:, 0]],
        "random": lambda number: [order[:number] for order in orders],
        "herded": lambda number: [herded[:number]],
    }


def seconds() -> Iterator[float]:
    """Yield the processor's seconds since the previous ones."""
    before = time.process_time()
    while True:
        now = time.process_time()
        yield now - before
        before = now


def one_seed(task: Task, prepared: Prepared, rates: dict[str, float]) -> dict:
    """Sample two chains, keep few of the first, teach the students, and score all."""
    posterior, letters = task.posterior, prepared.others["letters"].inputs
    test, spent, clock = prepared.test, {}, seconds()
    draws = chain(task, "-chain")
    spent["chain"] = next(clock)
    again = chain(replace(task, seed=task.seed + OTHER_CHAIN), "-other")
    positions = draws.samples[:, 0]
    next(clock)
    inside = predict(posterior, positions, test.inputs)
    spent["prediction"] = next(clock) / len(inside)
    outside = predict(posterior, positions, letters)
    other = predict(posterior, again.samples[:, 0], test.inputs).mean(0)
    next(clock)
    features = predict(posterior, positions, prepared.validation.inputs).flatten(1)
    gram = features @ features.mT
    sets = choices(draws, gram, task.seed)
    spent["herding"] = next(clock)
    spread = float((inside - inside.mean(0)).square().sum((1, 2)).mean())
    between = 2 * spread / float((inside.mean(0) - other).square().sum())
    judge = Judge(inside.mean(0), other, test.targets)
    ways: dict[str, dict] = {name: {} for name in sets}
    for name, number in itertools.product(sets, COUNTS):
        if number < len(inside):
            rows = [judge(inside[at], outside[at]) for at in sets[name](number)]
            ways[name][str(number)] = {
                key: float(f"{sum(row[key] for row in rows) / len(rows):.5g}")
                for key in rows[0]
            }
    next(clock)
    taught = teach(task, draws, prepared)
    spent["lessons"] = next(clock)
    students = {}
    for name, rate in rates.items():
        given = learner(name, task, taught, "")
        next(clock)
        position = whole(neighbours.descend(given, rate)).samples[-1]
        training = next(clock)
        alone = predict(given.posterior, position, test.inputs)
        predicting = next(clock)
        students[name] = judge(alone, predict(given.posterior, position, letters)) | {
            "training_seconds": round(training, 1),
            "prediction_seconds": round(predicting, 4),
        }
    worth = {"autocorrelation": effective_number(gram)}
    worth["other_chain"] = round(between, 2)
    return {
        "seed": task.seed,
        "made": circumstances(),
        "networks": len(inside),
        "steps": task.num_steps,
        "seconds": {name: round(value, 4) for name, value in spent.items()},
        "effective_number": worth,
        "all": judge(inside, outside),
        "ways": ways,
        "students": students,
    }


def learner(name: str, task: Task, taught: tuple[Tensor, ...], part: str) -> Task:
    """Make the task of a student, or of the network that learns the labels."""
    data, size = task.posterior.data, task.posterior.batch_size
    path = task.beside(f"-{in_a_name(name)}{part}")
    if name == LABELS:
        return replace(task, path=path)
    units, copies = STUDENTS[name]
    widths = [data[0].shape[1], units, taught[1].shape[1]]
    posterior = NetworkPosterior(
        multilayer_perceptron(widths, "relu"),
        *(values[: (1 + copies) * len(data[0])] for values in taught),
        batch_size=size,
        minibatches=Passes(),
        likelihood=SoftTargets(),
    )
    rounds = max(1, task.rounds // (1 + copies))
    return replace(task, posterior=posterior, rounds=rounds, path=path)


def tune(task: Task, prepared: Prepared) -> dict:
    """Choose each learner's rate on validation digits, a student's by its distance."""
    inputs, targets = prepared.validation
    draws = chain(task, "-chain")
    taught = teach(task, draws, prepared)
    teacher = predict(task.posterior, draws.samples[:, 0], inputs).mean(0)
    found, short = {}, replace(task, rounds=max(2, task.rounds // 3))
    for name in [*STUDENTS, LABELS]:
        tried = {}
        for rate in LABEL_RATES if name == LABELS else STUDENT_RATES:
            given = learner(name, short, taught, f"-tuning-{rate}")
            position = whole(neighbours.descend(given, rate)).samples[-1]
            predicted = predict(given.posterior, position, inputs).mean(0)
            if name == LABELS:
                value = log_score(predicted, targets)
            else:
                value = predictive_distance(predicted, teacher)
            tried[str(rate)] = float(f"{value:.5g}")
        best = float(min(tried, key=lambda rate: tried[rate]))
        found[name] = {"rate": best, "tried": tried}
    return found


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Choose the rates of the students, and run the seeds one after the other."""
    rounds, size = (40, 100) if options.small else (ROUNDS, BATCH)
    data = checksum(
        prepared.train, prepared.validation, prepared.test, *prepared.others.values()
    )
    prepared.folder.mkdir(parents=True, exist_ok=True)
    units = {"network": 100} | {name: each for name, (each, _) in STUDENTS.items()}
    sizes = {}
    for name, each in units.items():
        adds = (784 + 10) * each
        sizes[name] = {"parameters": adds + each + 10, "multiply_adds": adds}
    rule = {"batch_size": size, "minibatches": Passes()}
    posterior = NetworkPosterior(prepared.network(), *prepared.train, **rule)

    def saved(name: str, seed: int, depends: dict, make: Callable, *more) -> dict:
        path = prepared.folder / f"{name}-{seed}"
        given = Task(posterior, rounds, 0, seed, path, options.progress)
        depends, file = (
            {"rounds": rounds, "data": data, **depends},
            given.beside(".json"),
        )
        return once(file, depends, lambda: make(given, prepared, *more))

    tuning = saved("tuning", 0, {}, tune)
    rates = {name: each["rate"] for name, each in tuning.items()}
    result = {"data_checksum": data, "sizes": sizes, "tuning": tuning, "runs": []}
    for seed in range(options.seeds):
        result["runs"].append(saved("run", seed, {"rates": rates}, one_seed, rates))
        yield result


EXPERIMENT = Experiment(prepare, run)
