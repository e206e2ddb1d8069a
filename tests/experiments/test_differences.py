"""The fit without a difference is the reported one, and a small run of all."""

import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from experiments import renyi, renyi_differences
from experiments.fits import Task
from experiments.study import Options
from tests.experiments.test_fits import prepared


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
