"""Steps per sample with held minibatches: the settings are those of the report, and the
small version runs.
"""

from dataclasses import replace

import pytest

from booklib.datasets import Data
from experiments import held, steps
from experiments.options import Options, Prepared


@pytest.fixture
def options(tmp_path):
    return Options(
        data=tmp_path / "nowhere", runs=tmp_path, small=True, seeds=1, progress=False
    )


def test_the_settings_are_those_of_the_report():
    """η = 2·10⁻⁶, α = 0.01, minibatches of 500 of 50,000, 100 rounds of warm-up, N(0,
    1), uniform start; one minibatch a sample.
    """
    numbers = Data(range(50_000), range(50_000))
    plans = {
        name: choices[0]
        for name, choices in held.settings(
            Prepared(numbers, numbers), small=False
        ).items()
    }
    assert list(plans) == [
        "m = 1",
        "m = 3, held",
        "m = 5, held",
        "m = 3, held, α fixed",
        "m = 5, held, α fixed",
    ]
    for m, decay, plan in zip(
        (1, 3, 5, 3, 5),
        (0.01, 0.01 / 3, 0.01 / 5, 0.01, 0.01),
        plans.values(),
        strict=True,
    ):
        assert plan.learning_rate == pytest.approx(
            2e-6 / m**2
        ) and plan.momentum_decay == pytest.approx(decay)
        assert (
            plan.num_steps,
            plan.batch_size,
            plan.burn_in,
            plan.prior_precision,
            plan.start,
        ) == (m, 500, 100, 1.0, "uniform")
        assert (
            plan.minibatches == ("fresh" if m == 1 else "held")
            and plan.rounds == 150
            and plan.temperature == 1
        )


def test_small_runs_end_to_end(options, monkeypatch):
    settings = held.settings
    size = {"rounds": 2, "burn_in": 1, "batch_size": 2000, "record_every": 1}
    monkeypatch.setattr(
        held,
        "settings",
        lambda *given: {
            k: [replace(p, **size) for p in v] for k, v in settings(*given).items()
        },
    )
    prepared = held.prepare(options)
    assert prepared.folder.name == "held-small" != steps.prepare(options).folder.name
    result = list(held.run(options, prepared))[-1]
    assert [
        content["runs"][0]["gradient_evaluations"]
        for content in result["methods"].values()
    ] == [4, 12, 20, 12, 20]
    assert len(held.summary(result)) == 6
