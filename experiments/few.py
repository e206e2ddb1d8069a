"""Few networks on MNIST: how few of 300 sampled networks predict what all do, which
ones to keep, and one network that is taught instead.

The network, the posterior and SGHMC with its settings are those of the experiment
neighbours: 784–100–10, 60 rounds in minibatches of 500, the second half sampled, but a
network is kept every ten minibatches. Of the 300 are kept the last ones, evenly spaced
ones, random ones (the mean of 20 choices), and ones herded by what they predict for the
validation digits. Students learn what all predict on average for the training digits
and a copy of them with noise, in as many minibatches as the chain took; one sees no
copy, and one network learns the labels instead. Their rates are chosen on the
validation digits. All are compared on the test digits with the average over the 300,
and with that of another chain, whose own distance is the floor. The small version is on
the 5,000 digits."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Generator, Tensor

from booklib.networks import multilayer_perceptron
from booklib.prediction import area_under_roc, log_score, predictive_entropy
from experiments import neighbours
from experiments.fits import Task, predict
from experiments.options import Options, Prepared
from experiments.provenance import checksum, circumstances
from experiments.results import do_once, score
from sgmc import sample
from sgmc.approximations import lessons
from sgmc.draws import Draws
from sgmc.fidelity import agreement, herd, predictive_distance, thin
from sgmc.kernels import SGHMC
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior, SoftTargets

__all__ = ["effective_number", "multiply_adds", "prepare", "run", "summary"]

RATE, DECAY = 0.4, 0.1  # of SGHMC, as the experiment neighbours found them
ROUNDS, BATCH = 60, 500
EVERY = 10  # minibatches from one network to the next
COUNTS = (1, 2, 5, 10, 20, 50, 100)  # networks that are kept
REPEATS = 20  # random choices
OTHER_CHAIN = 1_000  # added to its seed
NOISE_STD = 0.2  # of the students' copies
STUDENTS = {
    "student 30": (30, 1),
    "student 100": (100, 1),
    "student 400": (400, 1),
    "student 100, no copy": (100, 0),
}
STUDENT_RATES, LABEL_RATES = (0.15, 0.5, 1.5), (0.05, 0.15, 0.5)
LABELS = "labels 100"  # the network that learns the labels


def prepare(options: Options) -> Prepared:
    """Load the data of the experiment neighbours; what is no digit are letters."""
    prepared = neighbours.prepare(options)
    return prepared._replace(
        folder=options.folder("few"), others={"letters": prepared.others["letters"]}
    )


def chain(task: Task, part: str) -> Draws:
    """Sample for all rounds, the first half of them burn-in, and keep a network every
    few minibatches.
    """
    kernel = SGHMC.from_learning_rate(RATE / task.posterior.num_examples, DECAY)
    half = task.num_steps // 2
    return _whole(
        sample(
            kernel,
            task.posterior,
            task.start(),
            half // EVERY,
            warm_up=half,
            thinning=EVERY,
            **task.run(part),
        )
    )


def effective_number(gram: Tensor) -> float:
    """Estimate how many independent draws a chain's are worth, for averages of features
    with the given inner products ``(n, n)``.

    n/(1 + 2Σρₖ), the autocorrelation ρₖ being the mean of ⟨φₜ − μ, φₜ₊ₖ − μ⟩ over that
    of |φₜ − μ|², summed up to the first pair of lags whose sum is negative (Geyer,
    1992). What the chain has not seen at all it cannot tell.

    Example:
        >>> effective_number(torch.eye(100))  # no two are related
        100.0
    """
    centred = gram.double() - gram.double().mean(0)
    centred = centred - centred.mean(1, keepdim=True)
    total = len(gram)
    correlations = [
        float(centred.diagonal(lag).mean() / centred.diagonal().mean())
        for lag in range(total)
    ]
    length = 1.0
    for lag in range(1, total - 1, 2):
        pair = correlations[lag] + correlations[lag + 1]
        if pair < 0:
            break
        length += 2 * pair
    return round(total / length, 2)


def multiply_adds(layers: Sequence[int]) -> int:
    """Count the multiplications of a prediction for one input, biases apart.

    Example:
        >>> multiply_adds([784, 100, 10])
        79400
    """
    return sum(before * after for before, after in itertools.pairwise(layers))


class Judge:
    """Scores sets of networks, whose probabilities on test digits and letters are
    ``(networks, n, classes)``.

    Args:
        own: the average over all networks of the chain on the test digits, ``(n,
            classes)``.
        other: that of another chain.
        targets: classes of the test digits.
    """

    def __init__(self, own: Tensor, other: Tensor, targets: Tensor):
        self.own, self.other, self.targets = own, other, targets

    def __call__(self, inside: Tensor, outside: Tensor) -> dict[str, float]:
        """Score a set: distances of its average, the scores of an experiment, what
        letters look like, how much its networks disagree.
        """
        averages = inside.mean(0), outside.mean(0)
        entropies = [predictive_entropy(average) for average in averages]
        alone = [predictive_entropy(each).mean(0) for each in (inside, outside)]
        spread = [
            float((entropy - single).mean())
            for entropy, single in zip(entropies, alone, strict=True)
        ]
        found = {
            "distance": predictive_distance(averages[0], self.own),
            "agreement": agreement(averages[0], self.own),
            "distance_to_other": predictive_distance(averages[0], self.other),
            **score(averages[0], self.targets),
            "auroc": area_under_roc(*entropies),
            "disagreement": max(0.0, spread[0]),
            "disagreement_on_letters": max(0.0, spread[1]),
        }
        return {name: float(f"{value:.5g}") for name, value in found.items()}


def choices(
    draws: Draws, gram: Tensor, seed: int
) -> dict[str, Callable[[int], list[Tensor]]]:
    """List the ways to keep so many of the networks, each giving one or several sets of
    their places.
    """
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


def one_seed(task: Task, prepared: Prepared, rates: dict[str, float]) -> dict:
    """Sample two chains, keep few of the first, teach the students, and score all."""
    posterior, letters = task.posterior, prepared.others["letters"].inputs
    started = time.process_time()
    draws = chain(task, "-chain")
    spent = {"chain": time.process_time() - started}
    again = chain(replace(task, seed=task.seed + OTHER_CHAIN), "-other")
    started = time.process_time()
    inside = predict(posterior, draws.samples[:, 0], prepared.test.inputs)
    spent["prediction"] = (time.process_time() - started) / len(inside)
    outside = predict(posterior, draws.samples[:, 0], letters)
    other = predict(posterior, again.samples[:, 0], prepared.test.inputs).mean(0)
    started = time.process_time()
    features = predict(
        posterior, draws.samples[:, 0], prepared.validation.inputs
    ).flatten(1)
    gram = features @ features.mT
    sets = choices(draws, gram, task.seed)
    spent["herding"] = time.process_time() - started
    spread = float((inside - inside.mean(0)).square().sum((1, 2)).mean())
    between = 2 * spread / float((inside.mean(0) - other).square().sum())
    judge = Judge(inside.mean(0), other, prepared.test.targets)
    ways: dict[str, dict] = {}
    for name, chosen in sets.items():
        ways[name] = {}
        for number in [count for count in COUNTS if count < len(inside)]:
            rows = [judge(inside[places], outside[places]) for places in chosen(number)]
            ways[name][str(number)] = {
                key: float(f"{sum(row[key] for row in rows) / len(rows):.5g}")
                for key in rows[0]
            }
    started = time.process_time()
    taught = lessons(
        posterior,
        draws,
        prepared.train.inputs,
        copies=1,
        noise_std=NOISE_STD,
        seed=task.seed,
    )
    spent["lessons"] = time.process_time() - started
    students = {}
    for name, rate in rates.items():
        given = learner(name, task, taught, "")
        started = time.process_time()
        position = _whole(neighbours.descend(given, rate)).samples[-1]
        training = time.process_time() - started
        started = time.process_time()
        alone = predict(given.posterior, position, prepared.test.inputs)
        seconds = time.process_time() - started
        row = judge(alone, predict(given.posterior, position, letters))
        students[name] = row | {
            "training_seconds": round(training, 1),
            "prediction_seconds": round(seconds, 4),
        }
    return {
        "seed": task.seed,
        "made": circumstances("cpu"),
        "networks": len(inside),
        "steps": task.num_steps,
        "seconds": {name: round(value, 4) for name, value in spent.items()},
        "effective_number": {
            "autocorrelation": effective_number(gram),
            "other_chain": round(between, 2),
        },
        "all": judge(inside, outside),
        "ways": ways,
        "students": students,
    }


def learner(name: str, task: Task, taught: tuple[Tensor, Tensor], part: str) -> Task:
    """Make the task of a student, or of the network that learns the labels, with as
    many minibatches as the given one.
    """
    data, size = task.posterior.data, task.posterior.batch_size
    path = task.path.with_name(
        f"{task.path.name}-{name.replace(',', '').replace(' ', '-')}{part}"
    )
    if name == LABELS:
        return replace(task, path=path)
    units, copies = STUDENTS[name]
    number = (1 + copies) * len(data[0])
    module = multilayer_perceptron(
        [data[0].shape[1], units, taught[1].shape[1]], "relu"
    )
    lesson = [part[:number] for part in taught]
    posterior = NetworkPosterior(
        module, *lesson, batch_size=size, minibatches=Passes(), likelihood=SoftTargets()
    )
    return replace(
        task, posterior=posterior, rounds=max(1, task.rounds // (1 + copies)), path=path
    )


def tune(task: Task, prepared: Prepared) -> dict:
    """Choose the rate of each learner on the validation digits, students by their
    distance from the chain, by shorter descents.
    """
    draws = chain(task, "-chain")
    taught = lessons(
        task.posterior,
        draws,
        prepared.train.inputs,
        copies=1,
        noise_std=NOISE_STD,
        seed=task.seed,
    )
    teacher = predict(
        task.posterior, draws.samples[:, 0], prepared.validation.inputs
    ).mean(0)
    found: dict[str, dict] = {}
    for name in [*STUDENTS, LABELS]:
        tried = {}
        for rate in LABEL_RATES if name == LABELS else STUDENT_RATES:
            given = learner(
                name,
                replace(task, rounds=max(2, task.rounds // 3)),
                taught,
                f"-tuning-{rate}",
            )
            position = _whole(neighbours.descend(given, rate)).samples[-1]
            predicted = predict(
                given.posterior, position, prepared.validation.inputs
            ).mean(0)
            value = (
                log_score(predicted, prepared.validation.targets)
                if name == LABELS
                else predictive_distance(predicted, teacher)
            )
            tried[str(rate)] = float(f"{value:.5g}")
        found[name] = {
            "rate": float(min(tried, key=lambda rate: tried[rate])),
            "tried": tried,
        }
    return found


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Run the seeds one after the other, the rates of the students being chosen before
    the first.
    """
    rounds, size = (40, 100) if options.small else (ROUNDS, BATCH)
    data = checksum(
        prepared.train, prepared.validation, prepared.test, *prepared.others.values()
    )
    prepared.folder.mkdir(parents=True, exist_ok=True)
    layers = {
        name: [784, units, 10]
        for name, units in {
            "network": 100,
            **{name: units for name, (units, _) in STUDENTS.items()},
        }.items()
    }
    sizes = {
        name: {
            "parameters": sum(
                before * after + after for before, after in itertools.pairwise(widths)
            ),
            "multiply_adds": multiply_adds(widths),
        }
        for name, widths in layers.items()
    }
    posterior = NetworkPosterior(
        prepared.network(), *prepared.train, batch_size=size, minibatches=Passes()
    )

    def once(name: str, seed: int, depends: dict, make: Callable[[Task], dict]) -> dict:
        given = Task(
            posterior,
            rounds,
            0,
            seed,
            prepared.folder / f"{name}-{seed}",
            options.progress,
        )
        return do_once(
            given.path.with_name(f"{given.path.name}.json"),
            {"rounds": rounds, "data": data, **depends},
            lambda: make(given),
        )

    tuning = once("tuning", 0, {}, lambda given: tune(given, prepared))
    rates = {name: each["rate"] for name, each in tuning.items()}
    result = {"data_checksum": data, "sizes": sizes, "tuning": tuning, "runs": []}
    for seed in options.each_seed():
        found = once(
            "run",
            seed,
            {"rates": rates},
            lambda given: one_seed(given, prepared, rates),
        )
        result["runs"].append(found)
        yield result


def _whole(draws: Draws) -> Draws:
    if not draws.complete:
        raise KeyboardInterrupt
    return draws


def summary(result: dict) -> list[str]:
    """Write one line for each way and number of networks, averaged over the seeds."""

    def line(name: str, rows: list[dict]) -> str:
        columns = (
            "distance",
            "distance_to_other",
            "agreement",
            "error",
            "log_loss",
            "auroc",
        )
        means = [sum(row[column] for row in rows) / len(rows) for column in columns]
        return (
            f"{name:22} {means[0]:8.4f} {means[1]:8.4f} {means[2]:9.2%} "
            f"{means[3]:7.2%} {means[4]:8.4f} {means[5]:7.4f}"
        )

    runs = result["runs"]
    lines = [
        f"{'kept':22} {'distance':>8} {'to other':>8} {'agreement':>9} {'error':>7} "
        f"{'log loss':>8} {'letters':>7}"
    ]
    lines.append(line("all", [run["all"] for run in runs]))
    for way, numbers in runs[0]["ways"].items():
        lines += [
            line(f"{way} {number}", [run["ways"][way][number] for run in runs])
            for number in numbers
        ]
    lines += [
        line(name, [run["students"][name] for run in runs])
        for name in runs[0]["students"]
    ]
    return lines
