"""The settings of the experiment that runs MNIST as the reproduction report did."""

from types import SimpleNamespace

import pytest
import torch

from booklib.runs import predictions as looks
from booklib.scores.prediction import predictive_entropy
from experiments import report
from experiments.study import Options, Prepared
from sgmc.posteriors import NetworkPosterior


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return report.EXPERIMENT.prepare(
        Options(
            tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("runs"), small=True
        )
    )


def measured(reservoir, prepared):
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    return looks.measure(posterior, reservoir)


def test_a_look_measures_spread_and_length(prepared):
    posterior = NetworkPosterior(prepared.network(), *prepared.test)
    start = posterior.initial_position(1, torch.Generator().manual_seed(0))[0]
    apart = torch.cat(
        [
            torch.full((size,), value)
            for size, value in zip(
                (78_400, 100, 1_000, 10), (0.1, 0.2, 0.3, 0.4), strict=True
            )
        ]
    )
    seen = measured([start - apart, start, start + apart], prepared)
    assert list(seen["spread"].values()) == pytest.approx(
        [0.1, 0.2, 0.3, 0.4], rel=1e-4
    )
    assert seen["length"]["0.bias"] == pytest.approx(0.2 * (2 / 3) ** 0.5, rel=1e-4)
    assert seen["networks"] == 3 and sum(seen["histogram"]) == 1_000
    alone = measured([start] * 2, prepared)
    probabilities = posterior.predict(start[None], prepared.test.inputs)[0].double()
    assert alone["entropy"] == pytest.approx(
        float(predictive_entropy(probabilities).mean()), rel=1e-4
    )
    assert set(alone["spread"].values()) == {0.0}


def test_the_entropy_is_that_of_the_average_and_not_the_mean_of_entropies(prepared):
    """Two networks, each sure of another class: their average has the entropy log 2,
    and each of them none.
    """
    one, other = torch.zeros(2, 79_510).unbind()
    one[-10], other[-9] = 50.0, 50.0  # biases of the output
    seen = measured([one, other], prepared)
    assert seen["entropy"] == pytest.approx(
        torch.log(torch.tensor(2.0)).item(), rel=1e-4
    )
    assert (
        sum(seen["histogram"])
        == seen["histogram"][
            int(
                torch.log(torch.tensor(2.0))
                / torch.log(torch.tensor(10.0))
                * looks.BINS
            )
        ]
    )


def test_a_label_that_is_drawn_is_wrong_as_often_as_the_network_says(monkeypatch):
    monkeypatch.setattr(looks, "measure", lambda posterior, reservoir: reservoir)
    monkeypatch.setattr(report, "NetworkPosterior", lambda *given: None)
    last = torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=torch.float64)
    targets = torch.tensor([0, 0])
    run = SimpleNamespace(last=last, targets=targets, reservoir=[1, 2, 3])
    found = report.look(run, Prepared(None, (), lambda: None))
    assert found == {"kept": [1, 2, 3], "drawn": pytest.approx(0.35)}
