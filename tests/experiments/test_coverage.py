"""Letters at equal coverage: the networks are those of the two pages."""

import pytest
import torch

from booklib.data import part
from experiments import coverage
from experiments.study import Options
from tools import book


def source(name):
    return (book.ROOT / "book" / "tutorial" / f"{name}.py").read_text()


def test_the_settings_are_those_of_the_pages():
    first, tenth = coverage.PAGES.values()
    page = source("bayesian_learning")
    for text in (
        f"multilayer_perceptron({first.units})",
        f"prior_variance={first.prior_variance}",
        f"batch_size={first.batch_size}",
        "SGHMC.from_learning_rate(1e-5, 0.1, temperature=0.0)",
        f"posterior, start, 1, warm_up={first.training:_}",
        f"SGHMC.from_learning_rate(1e-5, {first.decay})",
        f"start, {first.looks}, warm_up=2_000, thinning={first.thinning}",
    ):
        assert text in page, text
    assert first.steps == 2_000 + first.looks * first.thinning
    page = source("digits")
    for text in (
        f"multilayer_perceptron({tenth.units})",
        f"prior_variance={tenth.prior_variance}, batch_size={tenth.batch_size}",
        f"from_learning_rate(1.6e-4, {tenth.decay}, noise_estimate=OnlineNoise())",
        "SGHMC.from_learning_rate(1.6e-4, 0.1, temperature=0.0)",
        "sample(kernel, posterior, start, 120, thinning=4, seed=1)",
        f"[{120 - tenth.looks}:]",
    ):
        assert text in page, text
    assert tenth.training == tenth.steps == 120 * tenth.thinning


@pytest.mark.filterwarnings("ignore")
def test_a_seed_scores_averages_for_the_gradients_that_they_took(tmp_path):
    options = Options(tmp_path, tmp_path, small=True, seeds=1, progress=False)
    prepared = coverage.prepare(options)
    few = slice(None, None, 10)
    prepared = prepared._replace(
        train=part(prepared.train, few),
        test=part(prepared.test, few),
        others={"letters": part(prepared.others["letters"], few)},
    )
    found = coverage.one_seed("page 10", 0, prepared, small=True)
    steps = {method: row["steps"] for method, row in found.items()}
    assert steps == {
        "one trained": 24,
        "4 trained": 96,
        "20 trained": 480,
        "sampled": 96,
        "sampled, 5 times as long": 480,
    }
    for row in found.values():
        letters = [
            row["average"][key] for key in ("letters_70", "letters", "letters_90")
        ]
        assert 0 < letters[0] < letters[1] < letters[2] < 1
    wide = coverage.seen(torch.ones(1, 784), coverage.PAGES["page 10"])
    assert wide.shape == (1, 196) and bool((wide == 1).all())
