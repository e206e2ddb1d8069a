"""The ordering of eight methods and four cold ones: what they run on, and which
temperatures they have.
"""

import math

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from experiments import neighbours, ordering
from experiments.fits import Task
from experiments.study import Options
from sgmc.door.draws import Draws
from sgmc.kernels import SGNUTS
from sgmc.posteriors import NetworkPosterior


@pytest.fixture
def options(tmp_path):
    return Options(data=tmp_path / "nowhere", runs=tmp_path, seeds=1, progress=False)


def posterior(examples=60, batch_size=6):
    generator = torch.Generator().manual_seed(0)
    inputs, targets = (
        torch.randn(examples, 6, generator=generator),
        torch.arange(examples) % 4,
    )
    return NetworkPosterior(
        multilayer_perceptron([6, 5, 4]), inputs, targets, batch_size=batch_size
    )


def task(folder, **settings):
    return Task(
        **{
            "posterior": posterior(),
            "rounds": 30,
            "num_networks": 18,
            "seed": 0,
            "path": folder / "fit",
            "progress": False,
        }
        | settings
    )


def test_rounds_of_trees_end_before_a_tree_that_might_take_too_much(tmp_path):
    """A round's trees would not all fit if one more of the longest kind were grown, and
    no more than is due was ever spent.
    """
    target, kernel = posterior(), SGNUTS(0.01, 1.0, max_depth=2)
    rounds = neighbours.Rounds(kernel, 10)
    generator = torch.Generator().manual_seed(0)
    state = rounds.init(target, torch.zeros(1, target.dim), generator)
    for number in range(1, 9):
        state, info = rounds.step(target, state, generator)
        assert (
            state.rounds == number
            and 10 * number - 4 < int(info.num_gradients) <= 10 * number
        )


def test_the_small_version_runs_and_its_priors_hang_on_the_fan_in(options, monkeypatch):
    options = options._replace(small=True)
    prepared = ordering.prepare(options)
    few = prepared._replace(
        **{
            name: Data(*(x[:200] for x in getattr(prepared, name)))
            for name in ("train", "validation", "test")
        }
    )
    seen = []

    def method(task, rate):
        seen.append(task.posterior)
        return Draws(task.start()[None], seed=task.seed)

    monkeypatch.setattr(
        ordering, "methods", lambda number: {"one": (method, [{"rate": 1.0}])}
    )
    *_, result = ordering.run(options, few)
    (run,) = result["methods"]["one"]["runs"]
    assert 0 <= run["scores"]["error"] <= 1 and run["networks"] == 1
    sizes = {
        name: parameter.shape for name, parameter in few.network().named_parameters()
    }
    for name, precision in seen[0].prior_precision.items():
        expected = 1.0 if name.endswith("bias") else sizes[name][1:].numel()
        assert math.isclose(float(precision), expected), name
