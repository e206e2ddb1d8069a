"""Uncertainty on letters, clothes and turned digits: an optimised network against
SGHMC, from the networks that mnist kept.

The point estimate is the last network of SGD with momentum; SGHMC's prediction is the
average over its reservoir, one network every 25 rounds. So that nobody takes for Bayes
what averaging does, the optimiser's reservoir is averaged too. All networks are from
the runs of the experiment mnist, which has to be run before. The small version looks at
letters drawn from fonts."""

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import rotate

from booklib.datasets import Data, fashion_mnist, letters, notmnist
from booklib.prediction import (
    area_under_roc,
    predictive_entropy,
    rejection_curve,
    reliability_curve,
)
from experiments import mnist
from experiments.comparison import run_file
from experiments.options import ExperimentError, Options, Prepared
from experiments.provenance import checksum
from experiments.results import score
from experiments.run import read_run
from sgmc.posteriors import NetworkPosterior

# The run that the networks are from, and whether they are its reservoir or its last
# one.
PREDICTIONS = {
    "SGHMC": ("SGHMC", True),
    "SGD with momentum": ("SGD with momentum", False),
    "SGD with momentum, averaged": ("SGD with momentum", True),
}
ANGLES = [0, 15, 30, 45, 60, 75, 90]  # degrees
SHARES = [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2]  # of the digits rejected
BINS = 23  # of the histograms of entropy, from 0 to log 10


def prepare(options: Options) -> Prepared:
    """Load the digits of the experiment mnist and what is none, and see that its runs
    are there.
    """
    prepared = mnist.prepare(options)
    others = (
        {"letters": letters()}
        if options.small
        else {
            "letters": notmnist(options.data),
            "clothes": fashion_mnist(options.data)[1],
        }
    )
    for seed in range(options.seeds):
        for method, _ in PREDICTIONS.values():
            path = run_file(prepared.folder, method, seed)
            if not path.exists():
                raise ExperimentError(
                    f"{path} is missing: run mnist with {options.seeds} seeds first, "
                    "or give fewer by --seeds"
                )
    return prepared._replace(others=others)


def networks(folder: Path, method: str, seed: int, average: bool) -> Tensor:
    """Read the networks that predict, the reservoir of a run or its last network:
    ``(networks, dim)``.
    """
    content = read_run(run_file(folder, method, seed))
    if content["done"] < content["settings"]["rounds"]:
        raise ExperimentError(
            f"the run of {method} with seed {seed} is not finished: go on with it by "
            "`run mnist --resume`"
        )
    return torch.stack(content["reservoir"]) if average else content["walk"]["position"]


def turned(digits: Data, angle: float) -> Data:
    """Turn the digits by an angle in degrees, anticlockwise."""
    if angle == 0:  # not even a rounding error of the interpolation
        return digits
    images = rotate(
        digits.inputs.view(-1, 1, 28, 28), angle, InterpolationMode.BILINEAR
    )
    return Data(images.flatten(1), digits.targets)


def run(options: Options, prepared: Prepared) -> Iterator[dict]:
    """Predict with each method and seed, and yield the result after each seed."""
    data = checksum(prepared.test, *prepared.others.values())
    methods = {name: [] for name in PREDICTIONS}
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    for seed in range(options.seeds):
        for name, results in methods.items():
            method, average = PREDICTIONS[name]
            positions = networks(prepared.folder, method, seed, average)
            results.append(
                {
                    "seed": seed,
                    "networks": len(positions),
                    **look(posterior, positions, prepared),
                }
            )
        yield {
            "data_checksum": data,
            "angles": ANGLES,
            "shares": SHARES,
            "methods": methods,
        }


def predict(
    posterior: NetworkPosterior, positions: Tensor, inputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Average the class probabilities of some networks ``(n, classes)``, and the
    entropies of their predictions ``(n,)``.
    """
    probabilities, entropy = torch.zeros(()), torch.zeros(())
    # one by one, so that memory does not grow with their number
    for position in positions:
        one = posterior.log_predict(position[None], inputs)[0].double().exp()
        probabilities, entropy = (
            probabilities + one / len(positions),
            entropy + predictive_entropy(one) / len(positions),
        )
    return probabilities, entropy


def look(posterior: NetworkPosterior, positions: Tensor, prepared: Prepared) -> dict:
    """Score the averaged predictions of some networks on everything.

    The disagreement of the networks about an input is the entropy of their average less
    the average of their entropies."""
    digits, targets = prepared.test, prepared.test.targets
    probabilities, expected = predict(posterior, positions, digits.inputs)
    entropy = predictive_entropy(probabilities)
    confidence, accuracy, count = reliability_curve(probabilities, targets)
    result = {
        "scores": score(probabilities, targets),
        "reliability": [
            [_rounded(c), _rounded(a), int(n)]
            for c, a, n in zip(confidence, accuracy, count, strict=True)
            if n
        ],
        "rejection": [
            _rounded(error) for error in rejection_curve(probabilities, targets, SHARES)
        ],
        "entropy": {"digits": _describe(entropy, expected)},
        "turned": [],
    }
    for name, other in prepared.others.items():
        other_probabilities, other_expected = predict(
            posterior, positions, other.inputs
        )
        other_entropy = predictive_entropy(other_probabilities)
        result["entropy"][name] = {
            **_describe(other_entropy, other_expected),
            "auroc": _rounded(area_under_roc(entropy, other_entropy)),
            "auroc_disagreement": _rounded(
                area_under_roc(entropy - expected, other_entropy - other_expected)
            ),
        }
    for angle in ANGLES:
        probabilities, expected = predict(
            posterior, positions, turned(digits, angle).inputs
        )
        entropy = predictive_entropy(probabilities)
        result["turned"].append(
            {**score(probabilities, targets), "entropy": _rounded(entropy.mean())}
        )
    return result


def summary(result: dict) -> list[str]:
    """Write one line for each method, averaged over the seeds."""
    lines = []
    for method, runs in result["methods"].items():
        others = [name for name in runs[0]["entropy"] if name != "digits"]
        words = [
            f"AUROC {name} "
            f"{sum(run['entropy'][name]['auroc'] for run in runs) / len(runs):.4f}"
            for name in others
        ]
        words.append(
            f"log loss {sum(run['scores']['log_loss'] for run in runs) / len(runs):.4f}"
        )
        lines.append(f"{method:28} " + ", ".join(words))
    return lines


def _describe(entropy: Tensor, expected: Tensor) -> dict:
    # rounding may pass the largest
    counts = torch.histc(entropy.clamp(max=math.log(10)), BINS, 0, math.log(10))
    return {
        "mean": _rounded(entropy.mean()),
        "disagreement": _rounded((entropy - expected).mean()),
        "histogram": [int(count) for count in counts],
    }


def _rounded(value) -> float:
    return round(float(value), 6)
