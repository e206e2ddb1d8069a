"""Few networks: what is kept, what it is compared with, what students are given, and
what a resume does.
"""

from dataclasses import replace

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.rivals.thinning import herd, thin
from booklib.runs.results import score
from booklib.scores.prediction import area_under_roc, predictive_entropy
from experiments import few
from experiments.few import (
    LABELS,
    STUDENTS,
    Judge,
    choices,
    effective_number,
    one_seed,
    tune,
)
from experiments.fits import Task, predict
from experiments.study import Prepared
from sgmc.door.draws import Draws
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior


def prepared(folder):
    generator = torch.Generator().manual_seed(0)

    def data(examples):
        targets = torch.randint(4, (examples,), generator=generator)
        return Data(
            torch.nn.functional.one_hot(targets, 6).float()
            + 0.1 * torch.randn(examples, 6, generator=generator),
            targets,
        )

    train, validation, test, other = data(120), data(20), data(30), data(25)
    return Prepared(
        train,
        test,
        lambda: multilayer_perceptron([6, 5, 4]),
        folder,
        validation,
        others={"letters": other},
    )


def task(folder, rounds=20, batch_size=20):
    posterior = NetworkPosterior(
        multilayer_perceptron([6, 5, 4]),
        *prepared(folder).train,
        batch_size=batch_size,
        minibatches=Passes(),
    )
    return Task(posterior, rounds, 0, 0, folder / "run-0", False)


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


def test_what_is_kept_is_what_its_name_says(generator):
    features = torch.randn(30, 3, generator=generator)
    draws, gram = Draws(features[:, None]), features @ features.mT
    ways = choices(draws, gram, 0)
    assert ways["last"](4)[0].tolist() == [26, 27, 28, 29]
    assert torch.equal(features[ways["even"](4)[0]], thin(draws, 4).samples[:, 0])
    assert torch.equal(
        features[ways["herded"](4)[0]], herd(draws, 4, gram).samples[:, 0]
    )
    several = ways["random"](4)
    assert len(several) == few.REPEATS and all(
        len(set(each.tolist())) == 4 for each in several
    )
    assert torch.equal(
        choices(draws, gram, 0)["random"](4)[3], several[3]
    ) and not torch.equal(choices(draws, gram, 1)["random"](4)[3], several[3])


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


def test_rates_are_chosen_by_what_a_learner_is_for(tmp_path, monkeypatch):
    """A student's by its distance from the chain on validation examples; that of the
    labels by its log loss.
    """
    monkeypatch.setattr(few, "STUDENTS", {"student 30": (30, 1)})
    monkeypatch.setattr(few, "STUDENT_RATES", (1e-5, 0.2))
    monkeypatch.setattr(few, "LABEL_RATES", (0.2, 1e-5))
    found = tune(task(tmp_path / "one"), prepared(tmp_path))
    assert {name: each["rate"] for name, each in found.items()} == {
        "student 30": 0.2,
        LABELS: 0.2,
    }
    measured = few.predictive_distance
    # the farther the better
    monkeypatch.setattr(few, "predictive_distance", lambda *given: -measured(*given))
    found = tune(task(tmp_path / "two"), prepared(tmp_path))
    assert {name: each["rate"] for name, each in found.items()} == {
        "student 30": 1e-5,
        LABELS: 0.2,
    }
