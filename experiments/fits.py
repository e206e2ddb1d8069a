"""What the experiments with approximations are: methods that give draws of a network's
weights, each fitted and then scored alike.

A method is a function from a task and its settings to :class:`sgmc.draws.Draws`. Its
settings are chosen on validation examples by shorter fits with one seed; then it is
fitted with several seeds, and its averaged predictions are scored on the test examples.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor

from booklib.prediction import area_under_roc, predictive_entropy
from experiments.options import DivergedError, Options, Prepared
from experiments.provenance import checksum, circumstances
from experiments.results import do_once, score
from sgmc.draws import Draws
from sgmc.posteriors import NetworkPosterior
from sgmc.sampling import DivergenceError

Method = Callable[..., Draws]  # of a task and settings by name


@dataclass(frozen=True)
class Task:
    """What a method is given.

    Args:
        posterior: the posterior, with its minibatches.
        rounds: number of passes over the data that it may take.
        num_networks: number of networks to predict with.
        seed: the seed of everything.
        path: where to save the fit.
        progress: whether to show progress bars.
    """

    posterior: NetworkPosterior
    rounds: int
    num_networks: int
    seed: int
    path: Path
    progress: bool = True

    @property
    def round_length(self) -> int:
        """Number of minibatches of a round."""
        return self.posterior.num_examples // self.posterior.batch_size

    @property
    def num_steps(self) -> int:
        """Number of minibatches of all rounds."""
        return self.rounds * self.round_length

    def start(self, chains: int = 1) -> Tensor:
        """Draw where to start, ``(chains, dim)``: weights N(0, 1/fan-in) and no
        biases.
        """
        return self.posterior.initial_position(
            chains, Generator().manual_seed(self.seed)
        )

    def run(self, part: str = "") -> dict:
        """Give the arguments that every fit takes, the file being that of a part of the
        method.
        """
        return {
            "seed": self.seed,
            "checkpoint": self.path.with_name(f"{self.path.name}{part}.pt"),
            "progress": self.progress,
        }


def networks(draws: Draws, number: int) -> Tensor:
    """Take so many networks from draws, or all if there are fewer, evenly from first to
    last and from all chains: ``(number, dim)``.

    Example:
        >>> networks(Draws(torch.arange(10.0).view(10, 1, 1)), 3)[:, 0]
        tensor([0., 4., 9.])
    """
    positions = draws.samples.flatten(0, 1)
    return positions[
        torch.linspace(0, len(positions) - 1, min(number, len(positions))).long()
    ]


def predict(posterior: NetworkPosterior, positions: Tensor, inputs: Tensor) -> Tensor:
    """Compute the class probabilities of networks one by one: ``(networks, n,
    classes)`` float64.
    """
    return torch.stack(
        [
            posterior.log_predict(position[None], inputs)[0].double().exp()
            for position in positions
        ]
    )


def powers(number: int) -> list[int]:
    """List 1, 2, 5, 10, … up to a number, and the number.

    Example:
        >>> powers(30)
        [1, 2, 5, 10, 20, 30]
    """
    counts = [factor * 10**power for power in range(6) for factor in (1, 2, 5)]
    return [count for count in counts if count < number] + [number]


def validate(draws: Draws, task: Task, prepared: Prepared) -> dict:
    """Score averaged predictions of all networks on the validation examples."""
    probabilities = predict(
        task.posterior, networks(draws, task.num_networks), prepared.validation.inputs
    )
    return score(probabilities.mean(0), prepared.validation.targets)


def assess(draws: Draws, task: Task, prepared: Prepared) -> dict:
    """Score averaged predictions, of all networks and of the first few in a shuffled
    order, and how entropy tells what is no digit.
    """
    positions, started = networks(draws, task.num_networks), time.process_time()
    probabilities = predict(task.posterior, positions, prepared.test.inputs)
    seconds = time.process_time() - started
    shuffled = probabilities[
        torch.randperm(len(positions), generator=Generator().manual_seed(task.seed))
    ]
    entropy = predictive_entropy(probabilities.mean(0))
    found = {
        "networks": len(positions),
        "prediction_seconds": round(seconds, 2),
        "scores": score(probabilities.mean(0), prepared.test.targets),
        "curve": {
            str(n): _short(score(shuffled[:n].mean(0), prepared.test.targets))
            for n in powers(len(positions))
        },
        "auroc": {},
    }
    for name, other in prepared.others.items():
        outside = predictive_entropy(
            predict(task.posterior, positions, other.inputs).mean(0)
        )
        found["auroc"][name] = round(area_under_roc(entropy, outside), 6)
    return found


def _short(scores: dict) -> list[float]:
    return [scores["error"], scores["log_loss"]]


def compare(
    methods: Mapping[str, tuple[Method, list[dict]]],
    task: Callable[[int, int, Path], Task],
    prepared: Prepared,
    options: Options,
    rounds: int,
    *,
    shorter: int = 3,
    look: Callable[[str, Draws, Task], dict] = lambda method, draws, task: {},
    assess: Callable[[Draws, Task, Prepared], dict] = assess,
    validate: Callable[[Draws, Task, Prepared], dict] = validate,
    prefer: Callable[[dict], object] = lambda found: (
        found["error"],
        found["log_loss"],
    ),
    depends: Mapping[str, object] = {},
) -> Iterator[dict]:
    """Fit all methods, one seed after the other, and yield the result after each fit; a
    method is tuned before its first.

    Args:
        methods: by name, the method and the settings to choose from.
        task: makes the task from a number of rounds, a seed and a file.
        prepared: the data.
        options: what the command line says.
        rounds: number of rounds of a fit.
        shorter: by which factor the fits of the tuning are shorter.
        look: what else to put into a result.
        assess: scores a fit on the test examples.
        validate: scores a fit of the tuning on the validation examples.
        prefer: from these scores to what is least for the best setting.
        depends: what else a fit that is finished depends on.
    """
    data = checksum(
        prepared.train, prepared.validation, prepared.test, *prepared.others.values()
    )
    result = {"data_checksum": data, "methods": {}}
    prepared.folder.mkdir(parents=True, exist_ok=True)
    chosen = {}

    def once(
        name: str,
        number: int | None,
        settings: dict,
        seed: int,
        rounds: int,
        assessment: Callable[[Task], dict],
    ) -> dict:
        words = (
            "" if number is None else f"tuning-{number}-"
        ) + f"{name.replace(',', '').replace(' ', '-')}-{seed}"
        given = task(rounds, seed, prepared.folder / words)
        return do_once(
            given.path.with_name(f"{given.path.name}.json"),
            {"settings": settings, "rounds": rounds, "data": data, **depends},
            lambda: assessment(given),
        )

    for seed in options.each_seed():
        for name, (method, settings) in methods.items():
            if seed == 0:
                tuning = [
                    once(
                        name,
                        number,
                        each,
                        0,
                        rounds // shorter,
                        lambda given, each=each, method=method: _try(
                            method, each, given, prepared, validate
                        ),
                    )
                    for number, each in enumerate(settings)
                    if len(settings) > 1
                ]
                tried = [i for i, row in enumerate(tuning) if "diverged" not in row]
                if tuning and not tried:
                    raise DivergedError(
                        f"every setting of {name} left the finite numbers: lower its "
                        "learning rates"
                    )
                best = min(tried, key=lambda i: prefer(tuning[i])) if tuning else 0
                chosen[name] = settings[best]
                result["methods"][name] = {
                    "settings": chosen[name],
                    "tuning": tuning,
                    "runs": [],
                }

            def fit(given: Task, name=name, method=method) -> dict:
                started = time.process_time()
                draws = method(given, **chosen[name])
                if not draws.complete:
                    raise KeyboardInterrupt
                spent = {
                    "seconds": round(draws.seconds, 1),
                    "processor_seconds": round(time.process_time() - started, 1),
                }
                found = assess(draws, given, prepared) | look(name, draws, given)
                return {
                    "seed": given.seed,
                    "made": circumstances("cpu"),
                    **spent,
                    **found,
                }

            result["methods"][name]["runs"].append(
                once(name, None, chosen[name], seed, rounds, fit)
            )
            yield result


def _try(
    method: Method,
    settings: dict,
    task: Task,
    prepared: Prepared,
    validate: Callable[[Draws, Task, Prepared], dict],
) -> dict:
    try:
        draws = method(task, **settings)
    except DivergenceError:
        return {"settings": settings, "rounds": task.rounds, "diverged": True}
    if not draws.complete:
        raise KeyboardInterrupt
    return {
        "settings": settings,
        "rounds": task.rounds,
        **validate(draws, task, prepared),
    }


def summary(result: dict) -> list[str]:
    """Write one line for each method, averaged over the seeds."""
    width = max(map(len, result["methods"]))
    lines = [
        f"{'method':{width}} {'error':>8} {'log loss':>9} {'calibration':>12} "
        f"{'seconds':>8}"
    ]
    for name, content in result["methods"].items():
        runs = content["runs"]
        error, loss, calibration = (
            sum(run["scores"][key] for run in runs) / len(runs)
            for key in ("error", "log_loss", "calibration_error")
        )
        seconds = sum(run["processor_seconds"] for run in runs) / len(runs)
        lines.append(
            f"{name:{width}} {error:8.2%} {loss:9.4f} {calibration:12.4f} "
            f"{seconds:8.1f}"
        )
    return lines
