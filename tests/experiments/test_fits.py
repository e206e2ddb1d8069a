"""Experiments with approximations: tuning, seeds, scores, and what each method is
given.
"""

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs.results import ExperimentError, score
from booklib.scores.prediction import area_under_roc, predictive_entropy
from experiments import neighbours, renyi
from experiments.fits import Task, assess, compare, networks, predict
from experiments.study import Options, Prepared
from sgmc.door.draws import Draws
from sgmc.door.sampling import DivergenceError
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior


def prepared(folder, examples=60, other="noise"):
    generator = torch.Generator().manual_seed(0)

    def data(examples):
        targets = torch.randint(4, (examples,), generator=generator)
        return Data(
            torch.nn.functional.one_hot(targets, 6).float()
            + 0.1 * torch.randn(examples, 6, generator=generator),
            targets,
        )

    train, validation, test, more = data(examples), data(20), data(30), data(25)
    return Prepared(
        train,
        test,
        lambda: multilayer_perceptron([6, 5, 4]),
        folder,
        validation,
        others={other: more},
    )


def posterior_of(data, batch_size=20):
    return NetworkPosterior(
        multilayer_perceptron([6, 5, 4]),
        *data,
        batch_size=batch_size,
        minibatches=None if batch_size is None else Passes(),
    )


def task(folder, rounds=6, num_networks=5):
    return Task(
        posterior_of(prepared(folder).train),
        rounds,
        num_networks,
        0,
        folder / "fit",
        False,
    )


def options(folder, **more):
    return Options(folder, folder, progress=False, **more)


@pytest.mark.parametrize("name", neighbours.methods())
def test_every_neighbour_takes_its_rounds_and_no_more(name, tmp_path, monkeypatch):
    """Counted at the minibatches of all chains: what is said of the budget is what is
    taken.
    """
    taken, draw_minibatches = [], NetworkPosterior.draw_minibatches
    monkeypatch.setattr(
        NetworkPosterior,
        "draw_minibatches",
        lambda self, position, generator, step, num_steps=1: (
            taken.append(len(position) * num_steps)
            or draw_minibatches(self, position, generator, step, num_steps)
        ),
    )
    method, settings = neighbours.methods()[name]
    given = task(tmp_path, rounds=12)
    draws = method(given, **settings[0])
    assert (
        draws.complete
        and draws.samples.shape[-1] == given.posterior.dim
        and draws.seconds > 0
    )
    looks = {"constant SGD": 2 + 10, "Laplace, last layer": 2 + 500}.get(
        name, neighbours.MEMBERS if name.startswith("ensemble") else 1
    )  # not at the data's gradients
    budget = given.num_steps * (neighbours.MEMBERS if "five times" in name else 1)
    # The rounds need not divide by the members, nor by the paths of SGNUTS, of at most
    # two states here.
    spare = (
        neighbours.MEMBERS
        if name.startswith("ensemble")
        else 2
        if name == "SGNUTS"
        else 0
    )
    assert budget - spare <= sum(taken) - looks <= budget, (sum(taken), budget)
    again = method(given, **settings[0])  # from its file
    assert torch.equal(again.samples, draws.samples)


def made_up(scores):
    """Make a method whose draws predict the right class with the given logit, so that
    the larger the better.
    """

    def method(task, quality):
        if quality is None:
            raise DivergenceError("made up", None)
        position = torch.zeros(1, 1, task.posterior.dim)
        pieces = task.posterior.parameters_of(position[0])
        pieces["0.weight"].view(5, 6)[:4, :4] = torch.eye(4)
        pieces["2.weight"].view(4, 5)[:, :4] = quality * torch.eye(4)
        return Draws(position, seed=task.seed)

    return method, [{"quality": quality} for quality in scores]


def test_settings_are_chosen_on_validation_examples_and_kept_for_all_seeds(tmp_path):
    data, asked = prepared(tmp_path), []

    def make(rounds, seed, path):
        asked.append((rounds, seed, path.name))
        return Task(posterior_of(data.train), rounds, 3, seed, path, False)

    methods = {"good or bad": made_up([-1.0, None, 2.0, 0.5]), "one": made_up([1.0])}
    *_, result = compare(methods, make, data, options(tmp_path, seeds=2), 9)
    found = result["methods"]["good or bad"]
    assert found["settings"] == {"quality": 2.0} and found["tuning"][1] == {
        "settings": {"quality": None},
        "rounds": 3,
        "diverged": True,
    }
    assert [row["rounds"] for row in found["tuning"]] == [3] * 4 and result["methods"][
        "one"
    ]["tuning"] == []
    assert [run["seed"] for run in found["runs"]] == [0, 1]
    assert asked[-4:] == [
        (9, 0, "good-or-bad-0"),
        (9, 0, "one-0"),
        (9, 1, "good-or-bad-1"),
        (9, 1, "one-1"),
    ]
    best = Task(posterior_of(data.train), 9, 3, 0, tmp_path / "x", False)
    position = methods["one"][0](best, 2.0).samples[0]
    expected = score(
        predict(best.posterior, position, data.validation.inputs).mean(0),
        data.validation.targets,
    )
    assert {key: found["tuning"][2][key] for key in expected} == expected


def test_what_is_finished_is_not_done_again_nor_taken_for_something_else(tmp_path):
    data, fitted = prepared(tmp_path), []
    method, _ = made_up([])

    def counted(task, quality):
        fitted.append((task.rounds, task.seed, quality))
        return method(task, quality)

    def results(qualities, seeds, rounds=9):
        def make(rounds, seed, path):
            return Task(posterior_of(data.train), rounds, 3, seed, path, False)

        *_, result = compare(
            {"one": (counted, [{"quality": q} for q in qualities])},
            make,
            data,
            options(tmp_path, seeds=seeds),
            rounds,
        )
        return result

    first = results([0.5, 2.0], 1)
    assert len(fitted) == 3  # two of the tuning
    again = results([0.5, 2.0], 2)
    assert (
        fitted[3:] == [(9, 1, 2.0)]
        and again["methods"]["one"]["runs"][0] == first["methods"]["one"]["runs"][0]
    )
    for change in (([0.7, 2.0], 1, 9), ([0.5, 2.0], 1, 12)):
        with pytest.raises(ExperimentError, match="is of other settings"):
            results(*change)
    (tmp_path / "one-0.json").write_text("{")
    with pytest.raises(
        ExperimentError,
        match=r"one-0\.json.*corrupt.*delete",
    ):
        results([0.5, 2.0], 1)


def test_assessment_is_by_the_average_of_the_networks(tmp_path):
    """Against the same by hand."""
    data, given = prepared(tmp_path), task(tmp_path, num_networks=4)
    draws = Draws(
        torch.randn(
            8, 1, given.posterior.dim, generator=torch.Generator().manual_seed(1)
        )
    )
    found = assess(draws, given, data)
    chosen = draws.samples[[0, 2, 4, 7], 0]
    assert torch.equal(networks(draws, 4), chosen)
    each = given.posterior.predict(chosen, data.test.inputs).double()
    assert found["networks"] == 4
    assert found["scores"] == pytest.approx(
        score(each.mean(0), data.test.targets), abs=2e-6
    )
    order = torch.randperm(4, generator=torch.Generator().manual_seed(0))
    for number in (1, 2, 4):
        scores = score(each[order[:number]].mean(0), data.test.targets)
        assert found["curve"][str(number)] == pytest.approx(
            [scores["error"], scores["log_loss"]], abs=2e-6
        )
    outside = (
        given.posterior.predict(chosen, data.others["noise"].inputs).double().mean(0)
    )
    expected = area_under_roc(
        predictive_entropy(each.mean(0)), predictive_entropy(outside)
    )
    assert found["auroc"] == {"noise": pytest.approx(expected, abs=2e-6)}


def test_the_reported_posterior_lacks_the_scale_of_a_minibatch(tmp_path):
    """Its minibatch gradient is that of the batch alone, prior and all."""
    data = prepared(tmp_path).train
    wrong = renyi.Unscaled(multilayer_perceptron([6, 5, 4]), *data, batch_size=20)
    position, indices = torch.ones(1, wrong.dim), torch.arange(20)[None]
    few = posterior_of(Data(data.inputs[:20], data.targets[:20]), None)
    torch.testing.assert_close(
        wrong.gradient_given(position, indices), few.gradient(position)
    )
    torch.testing.assert_close(
        wrong.energy_given(position, indices), few.energy(position)
    )
