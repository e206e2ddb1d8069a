"""The predictions of networks: for digits and for images of other things, for turned
digits, for networks that were kept, and with labels drawn from a prediction.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import rotate

from booklib.data import Data
from booklib.runs.results import score
from booklib.runs.run import Run
from booklib.scores.prediction import (
    area_under_roc,
    predictive_entropy,
    rejection_curve,
    reliability_curve,
)
from sgmc.posteriors import NetworkPosterior
from sgmc.predictions import average_predictions

ANGLES = [0, 15, 30, 45, 60, 75, 90]  # degrees
# shares of the digits that are rejected
SHARES = [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2]
BINS = 23  # bins of the histograms of entropy, from 0 to log 10


def turned(digits: Data, angle: float) -> Data:
    """Turn the digits by an angle in degrees, anticlockwise."""
    if angle == 0:  # the interpolation would leave a rounding error even here
        return digits
    images = digits.inputs.view(-1, 1, 28, 28)
    images = rotate(images, angle, InterpolationMode.BILINEAR)
    return Data(images.flatten(1), digits.targets)


def predict(
    posterior: NetworkPosterior, positions: Tensor, inputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Average the class probabilities of some networks ``(n, classes)``, and the
    entropies of their predictions ``(n,)``; on the CPU.
    """
    inputs = inputs.to(posterior.data[0].device)

    def both(position: Tensor) -> Tensor:
        position = position.to(inputs.device)
        one = posterior.log_predict(position, inputs)[0].double().exp().cpu()
        return torch.cat([one, predictive_entropy(one)[:, None]], -1)

    averages = average_predictions(both, positions[:, None])
    return averages[:, :-1], averages[:, -1]


def look(
    posterior: NetworkPosterior,
    positions: Tensor,
    digits: Data,
    others: Mapping[str, Data],
) -> dict:
    """Score the averaged predictions of some networks on digits, on images that are no
    digits, and on turned digits.

    The disagreement of the networks about an input is the entropy of their average less
    the average of their entropies.
    """
    targets = digits.targets
    probabilities, expected = predict(posterior, positions, digits.inputs)
    entropy = predictive_entropy(probabilities)
    bins = zip(*reliability_curve(probabilities, targets), strict=True)
    rejected = rejection_curve(probabilities, targets, SHARES)
    result = {
        "scores": score(probabilities, targets),
        "reliability": [[_rounded(c), _rounded(a), int(n)] for c, a, n in bins if n],
        "rejection": [_rounded(error) for error in rejected],
        "entropy": {"digits": _describe(entropy, expected)},
        "turned": [],
    }
    for name, other in others.items():
        averaged, alone = predict(posterior, positions, other.inputs)
        outside = predictive_entropy(averaged)
        disagreement = area_under_roc(entropy - expected, outside - alone)
        result["entropy"][name] = {
            **_describe(outside, alone),
            "auroc": _rounded(area_under_roc(entropy, outside)),
            "auroc_disagreement": _rounded(disagreement),
        }
    for angle in ANGLES:
        probabilities, _ = predict(posterior, positions, turned(digits, angle).inputs)
        mean = _rounded(predictive_entropy(probabilities).mean())
        result["turned"].append({**score(probabilities, targets), "entropy": mean})
    return result


def _describe(entropy: Tensor, expected: Tensor) -> dict:
    return {
        "mean": _rounded(entropy.mean()),
        "disagreement": _rounded((entropy - expected).mean()),
        "histogram": _histogram(entropy),
    }


def _histogram(entropy: Tensor) -> list[int]:
    largest = math.log(10)  # rounding may exceed it
    return torch.histc(entropy.clamp(max=largest), BINS, 0, largest).int().tolist()


def _rounded(value: float | Tensor) -> float:
    return round(float(value), 6)


def measure(posterior: NetworkPosterior, reservoir: list[Tensor]) -> dict:
    """Measure the kept networks ``(dim,)``: spread and length of each tensor of
    weights, and the entropies of their averaged predictions for the posterior's
    examples.

    The spread is the root mean square over the tensor's entries of their standard
    deviation over the networks, and so is the length that of the entries themselves.
    """
    positions, inputs = torch.stack(reservoir), posterior.data[0]
    average, _ = predict(posterior, positions, inputs)
    entropy = predictive_entropy(average)
    pieces = posterior.parameters_of(positions)
    spread = {name: piece.var(0).mean().sqrt() for name, piece in pieces.items()}
    length = {name: piece.square().mean().sqrt() for name, piece in pieces.items()}
    return {
        "networks": len(positions),
        "spread": {name: _short(value) for name, value in spread.items()},
        "length": {name: _short(value) for name, value in length.items()},
        "entropy": _short(entropy.mean()),
        "histogram": _histogram(entropy),
    }


def drawn(run: Run, predicted: Tensor) -> float:
    """Compute the error rate to be expected when a label is *drawn* from a run's
    predictions ``(n, classes)``.
    """
    right = predicted.cpu().gather(-1, run.targets[:, None])
    return round(1 - float(right.mean()), 6)


@torch.no_grad()
def drawn_by_round(run: Run) -> dict[str, list]:
    """Compute the error rates of drawn labels for each network of the reservoir."""
    errors, chain = [], run.chain
    for position in run.reservoir:
        position = position[None].to(chain.device)
        logarithms = chain.posterior.log_predict(position, run.examples)[0]
        errors.append(drawn(run, logarithms.double().cpu().exp()))
    numbers = range(1, len(errors) + 1)
    rounds = [run.plan.burn_in + number * run.plan.keep_every for number in numbers]
    return {"round": rounds, "error": errors}


def _short(value: Tensor) -> float:
    return float(f"{float(value):.5g}")
