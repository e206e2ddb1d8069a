"""Two experiments that change one thing: dropout's prediction, and the reported fit."""

from types import SimpleNamespace

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from experiments import dropout, neighbours, renyi, renyi_differences
from experiments.fits import Task
from experiments.study import Options
from tests.experiments.test_fits import prepared, task


def of_unscaled(folder, seed=0):
    data = prepared(folder).train
    posterior = renyi.Unscaled(multilayer_perceptron([6, 5, 4]), *data, batch_size=20)
    return Task(posterior, 6, 5, seed, folder / "fit", False)


def test_without_a_difference_the_fit_is_the_reported_one(tmp_path):
    given = of_unscaled(tmp_path)
    found = renyi_differences.fit(given, ())
    given.path.with_name("fit.pt").unlink()
    expected = renyi.as_reported(given).samples[:, 0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["start", "rate", "decay", "clipping"])
def test_a_difference_changes_the_fit(name, tmp_path, monkeypatch):
    """Slopes of 5 in μ and ρ are clipped to 1; the decay adds 0.001 of the value."""
    seen = {}

    def descend(posterior, parameters, gradients, generator, settings, *more):
        seen.update(slopes=gradients(None), at=parameters, rate=settings.rate(17))
        return SimpleNamespace(complete=True)

    def slopes(posterior, mean, std, *more):
        rho = std.expm1().log()
        return torch.full_like(mean, 5.0), 5.0 / rho.sigmoid()

    monkeypatch.setattr(renyi_differences, "descend", descend)
    monkeypatch.setattr(renyi_differences, "bound_gradient", slopes)
    given = of_unscaled(tmp_path)
    renyi_differences.fit(given, (name,))
    most = 1.0 if name == "clipping" else 5.0
    pull = 1e-3 if name == "decay" else 0.0
    for slope, value in zip(seen["slopes"], seen["at"], strict=True):
        torch.testing.assert_close(slope, most + pull * value, rtol=1e-5, atol=1e-5)
    assert torch.equal(seen["at"][0], given.start()) == (name != "start")
    assert seen["rate"] == pytest.approx(1e-3 if name == "rate" else 1e-3 / 18)


def test_standard_dropout_multiplies_weights_by_what_is_kept(tmp_path):
    given, rates = task(tmp_path), [0.25, 0.5]
    draws = neighbours.drop(given, rate=0.01, dropped=rates)
    weights = draws.statistics["weights"][0]
    pieces = given.posterior.parameters_of(
        dropout.scaled(draws, given.posterior, rates) / weights
    )
    found = [float(pieces[name].mean()) for name in pieces]
    assert found == pytest.approx([0.75, 1, 0.5, 1])


def test_votes_and_probabilities_are_scored_of_every_fit(tmp_path, monkeypatch):
    alone = {"as reported": (), "all": renyi_differences.DIFFERENCES}
    monkeypatch.setattr(renyi_differences, "METHODS", alone)
    given = Options(tmp_path, tmp_path, small=True, seeds=1, progress=False)
    data = prepared(tmp_path)
    twice = Data(*(part.repeat_interleave(2, 0) for part in data.train))
    *_, found = renyi_differences.run(given, data._replace(train=twice))
    for name, content in found["methods"].items():
        (run,) = content["runs"]
        assert 0 <= run["voted"] <= 1 and 0 <= run["scores"]["error"] <= 1, name
