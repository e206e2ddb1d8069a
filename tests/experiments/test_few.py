"""Few networks: what sets of them are scored by, and a small run of one seed."""

from dataclasses import replace

import pytest
import torch

from booklib.runs.results import score
from booklib.scores.prediction import area_under_roc, predictive_entropy
from experiments import few
from experiments.few import (
    LABELS,
    STUDENTS,
    Judge,
    effective_number,
    one_seed,
)
from experiments.fits import Task, predict
from tests.experiments import test_fits


def prepared(folder):
    return test_fits.prepared(folder, 120, "letters")


def task(folder):
    posterior = test_fits.posterior_of(prepared(folder).train)
    return Task(posterior, 20, 0, 0, folder / "run-0", False)


def probabilities(generator, *shape):
    return torch.rand(*shape, generator=generator, dtype=torch.float64).softmax(-1)


def test_sets_of_networks_are_scored_by_their_average(generator):
    """Against the same by hand."""
    inside, outside = (
        probabilities(generator, 5, 9, 4),
        probabilities(generator, 5, 7, 4),
    )
    own, other = probabilities(generator, 2, 9, 4)
    targets = torch.arange(9) % 4
    found, average = Judge(own, other, targets)(inside, outside), inside.mean(0)
    expected = {
        "distance": float((average - own).abs().sum(-1).mean() / 2),
        "distance_to_other": float((average - other).abs().sum(-1).mean() / 2),
        "agreement": float((average.argmax(-1) == own.argmax(-1)).double().mean()),
        "auroc": area_under_roc(
            predictive_entropy(average), predictive_entropy(outside.mean(0))
        ),
        "disagreement": float(
            (predictive_entropy(average) - predictive_entropy(inside).mean(0)).mean()
        ),
        "disagreement_on_letters": float(
            (
                predictive_entropy(outside.mean(0))
                - predictive_entropy(outside).mean(0)
            ).mean()
        ),
        **score(average, targets),
    }
    assert found == {
        name: pytest.approx(value, rel=1e-4) for name, value in expected.items()
    }
    alone = Judge(own, other, targets)(inside[:1], outside[:1])
    assert alone["disagreement"] == alone["disagreement_on_letters"] == 0


def test_the_effective_number_is_that_of_an_autoregression(generator):
    """S/τ with τ = (1 + ρ)/(1 − ρ) = 3, in a thousand coordinates that share it, so
    that their correlations are known to a per cent.
    """
    place, features = torch.randn(1_000, generator=generator), []
    for _ in range(600):
        features.append(place)
        place = 0.5 * place + 0.75**0.5 * torch.randn(1_000, generator=generator)
    features = torch.stack(features)
    assert effective_number(features @ features.mT) == pytest.approx(200, rel=0.05)


def test_a_seed_is_two_chains_and_what_is_made_of_the_first(tmp_path):
    given, data = task(tmp_path), prepared(tmp_path)
    found = one_seed(given, data, dict.fromkeys([*STUDENTS, LABELS], 0.1))
    # from their files
    draws, again = (
        few.chain(given, "-chain"),
        few.chain(replace(given, seed=few.OTHER_CHAIN), "-other"),
    )
    assert found["networks"] == len(draws.samples) == given.num_steps // 2 // few.EVERY
    positions = draws.samples[:, 0]
    assert not torch.equal(positions, again.samples[:, 0])
    inside, outside = (
        predict(given.posterior, positions, x)
        for x in (data.test.inputs, data.others["letters"].inputs)
    )
    other = predict(given.posterior, again.samples[:, 0], data.test.inputs).mean(0)
    judge = Judge(inside.mean(0), other, data.test.targets)
    assert (
        found["all"] == judge(inside, outside)
        and found["all"]["distance"] == 0
        and found["all"]["distance_to_other"] > 0
    )
    assert found["ways"]["last"]["2"] == judge(inside[-2:], outside[-2:])
    seen = predict(given.posterior, positions, data.validation.inputs).flatten(1)
    best = int((seen - seen.mean(0)).norm(dim=-1).argmin())
    assert found["ways"]["herded"]["1"] == judge(inside[[best]], outside[[best]])
    everything = (inside - inside.mean(0)).square().sum((1, 2)).mean()
    between = float(2 * everything / (inside.mean(0) - other).square().sum())
    assert found["effective_number"]["other_chain"] == pytest.approx(between, abs=0.01)
    assert list(found["students"]) == [*STUDENTS, LABELS] and set(
        found["ways"]["even"]
    ) == {"1", "2", "5"}
