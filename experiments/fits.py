"""Experiments whose methods give draws of a network's weights: functions from a task
and settings, which are chosen by shorter fits, to :class:`sgmc.door.draws.Draws`.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor

from booklib.runs.results import checksum, circumstances, score
from booklib.scores.prediction import area_under_roc, predictive_entropy
from experiments.study import Options, Prepared, in_a_name, study
from sgmc.checkpoints import Checkpoint
from sgmc.door.draws import Draws
from sgmc.door.sampling import DivergenceError
from sgmc.posteriors import NetworkPosterior

Method = Callable[..., Draws]  # takes a task, and settings by name
# each comes with the settings to choose from
Methods = dict[str, tuple[Method, list[dict]]]


@dataclass(frozen=True)
class Task:
    """A task that a method is given."""

    posterior: NetworkPosterior  #: the target, with its minibatches
    rounds: int  #: number of epochs that the method may take
    num_networks: int  #: number of networks that predict
    seed: int  #: the seed of everything
    path: Path  #: the file of the fit
    progress: bool = True  #: whether to show progress bars

    @property
    def round_length(self) -> int:
        """The number of minibatches of a round."""
        return self.posterior.num_examples // self.posterior.batch_size

    @property
    def num_steps(self) -> int:
        """The number of minibatches of all rounds."""
        return self.rounds * self.round_length

    def start(self, chains: int = 1) -> Tensor:
        """Draw where to start, ``(chains, dim)``: weights N(0, 1/fan-in), biases 0."""
        generator = Generator().manual_seed(self.seed)
        return self.posterior.initial_position(chains, generator)

    def beside(self, part: str) -> Path:
        """Name a file for one part of the method."""
        return self.path.with_name(f"{self.path.name}{part}")

    def run(self, part: str = "") -> dict:
        """Return the arguments that every fit takes; its file is that of a part."""
        file = Checkpoint(self.beside(f"{part}.pt"))
        return {"seed": self.seed, "checkpoint": file, "progress": self.progress}


def tasks(
    posterior: NetworkPosterior, networks: Callable[[int], int], options: Options
) -> Callable[[int, int, Path], Task]:
    """Make tasks from a number of rounds, a seed and a file."""
    return lambda rounds, *given: Task(
        posterior, rounds, networks(rounds), *given, options.progress
    )


def whole(draws: Draws) -> Draws:
    """Raise a KeyboardInterrupt if someone stopped the draws."""
    if not draws.complete:
        raise KeyboardInterrupt
    return draws


def networks(draws: Draws, number: int) -> Tensor:
    """Take so many networks, or fewer, evenly from all draws: ``(number, dim)``."""
    positions = draws.samples.flatten(0, 1)
    number = min(number, len(positions))
    return positions[torch.linspace(0, len(positions) - 1, number).long()]


def predict(posterior: NetworkPosterior, positions: Tensor, inputs: Tensor) -> Tensor:
    """Predict by each network: class probabilities ``(networks, n, classes)``."""
    each = (posterior.log_predict(one[None], inputs)[0] for one in positions)
    return torch.stack([logarithms.double().exp() for logarithms in each])


def validate(draws: Draws, task: Task, prepared: Prepared) -> dict:
    """Score averaged predictions of all networks on the validation examples."""
    positions, validation = networks(draws, task.num_networks), prepared.validation
    probabilities = predict(task.posterior, positions, validation.inputs)
    return score(probabilities.mean(0), validation.targets)


def assess(draws: Draws, task: Task, prepared: Prepared) -> dict:
    """Score the average of all networks and of a few, and their uncertainty on images
    that are no digits.
    """
    positions, started = networks(draws, task.num_networks), time.process_time()
    probabilities = predict(task.posterior, positions, prepared.test.inputs)
    seconds, targets = time.process_time() - started, prepared.test.targets
    generator = Generator().manual_seed(task.seed)
    shuffled = probabilities[torch.randperm(len(positions), generator=generator)]
    entropy, curve, auroc = predictive_entropy(probabilities.mean(0)), {}, {}
    counts = [factor * 10**power for power in range(6) for factor in (1, 2, 5)]
    for number in sorted({min(count, len(positions)) for count in counts}):
        scores = score(shuffled[:number].mean(0), targets)
        curve[str(number)] = [scores["error"], scores["log_loss"]]
    for name, other in prepared.others.items():
        outside = predict(task.posterior, positions, other.inputs).mean(0)
        auroc[name] = round(area_under_roc(entropy, predictive_entropy(outside)), 6)
    return {
        "networks": len(positions),
        "prediction_seconds": round(seconds, 2),
        "scores": score(probabilities.mean(0), targets),
        "curve": curve,
        "auroc": auroc,
    }


def compare(
    methods: Methods,
    task: Callable[[int, int, Path], Task],
    prepared: Prepared,
    options: Options,
    rounds: int,
    *,
    shorter: int = 3,
    look: Callable[[str, Draws, Task], dict] = lambda method, draws, task: {},
    assess: Callable[[Draws, Task, Prepared], dict] = assess,
    validate: Callable[[Draws, Task, Prepared], dict] = validate,
    **more: object,
) -> Iterator[dict]:
    """Fit all methods, one seed after the other, and yield the result after each fit.

    Args:
        methods: by name, the method and the settings to choose from.
        task: makes the task, as those of :func:`tasks` do.
        prepared: the data.
        options: what the command line says.
        rounds: number of rounds of a fit.
        shorter: by which factor the fits of the tuning are shorter.
        look: what else to put into a result.
        assess: scores a fit on the test examples.
        validate: scores a fit of the tuning on the validation examples.
        more: arguments of :func:`~experiments.study.study`.
    """
    data = prepared.train, prepared.validation, prepared.test
    data, folder = checksum(*data, *prepared.others.values()), prepared.folder

    def tried(name: str, number: int, settings: dict) -> dict:
        path = folder / f"tuning-{number}-{in_a_name(name)}-0"
        given = task(rounds // shorter, 0, path)
        found = {"settings": settings, "rounds": given.rounds}
        try:
            draws = whole(methods[name][0](given, **settings))
        except DivergenceError:
            return found | {"diverged": True}
        return found | validate(draws, given, prepared)

    def ran(name: str, settings: dict, seed: int) -> dict:
        given = task(rounds, seed, folder / f"{in_a_name(name)}-{seed}")
        started = time.process_time()
        draws = whole(methods[name][0](given, **settings))
        return {
            "seed": seed,
            "made": circumstances(),
            "seconds": round(draws.seconds, 1),
            "processor_seconds": round(time.process_time() - started, 1),
            **assess(draws, given, prepared),
            **look(name, draws, given),
        }

    choices = {name: settings for name, (_, settings) in methods.items()}
    more |= {"folder": folder, "rounds": rounds, "data": data}
    for found in study(choices, range(options.seeds), tried, ran, **more):
        yield {"data_checksum": data, "methods": found}
