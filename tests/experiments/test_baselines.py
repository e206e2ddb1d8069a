"""After training: a temperature with the least loss, and scores of strange inputs."""

import json
import math

import pytest
import torch

from experiments import baselines
from experiments.study import Options


def test_the_temperature_undoes_a_factor_on_the_logits(generator):
    logits = torch.randn(20_000, 3, generator=generator, dtype=torch.float64)
    targets = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    one = baselines.fitted_temperature(logits.log_softmax(-1), targets)
    five = baselines.fitted_temperature((5 * logits).log_softmax(-1), targets)
    assert one == pytest.approx(1, abs=0.05)
    assert five == pytest.approx(5 * one, rel=1e-3)


def test_scores_are_those_of_two_networks_worked_by_hand():
    sure, unsure = [0.0, 2.0], [0.0, 0.0]
    logits = torch.tensor([[sure, sure], [sure, unsure]], dtype=torch.float64)
    found = baselines.strangeness(logits)
    p = 1 / (1 + math.exp(-2))
    assert found["max softmax"].tolist() == pytest.approx([-p, -(p + 0.5) / 2])
    assert found["max logit"].tolist() == [-2, -1]
    sums = [math.log(math.exp(a) + math.exp(b)) for a, b in (sure, unsure)]
    energy = [-sums[0], -(sums[0] + sums[1]) / 2]
    assert found["energy"].tolist() == pytest.approx(energy)
    assert found["disagreement"][0] == pytest.approx(0, abs=1e-12)
    assert found["disagreement"][1] > 0.05
    assert "disagreement" not in baselines.strangeness(logits[:1])


def test_the_tenth_neighbour_is_measured_at_length_one():
    angles = torch.arange(12) * 0.01
    known = torch.stack([angles.cos(), angles.sin()], 1) * torch.arange(1, 13)[:, None]
    found = baselines.distance_to_neighbours(known, torch.tensor([[5.0, 0.0]]))
    assert float(found) == pytest.approx(2 * math.sin(0.045), rel=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_small_version_scores_every_method(tmp_path):
    options = Options(tmp_path, tmp_path, small=True, seeds=1, progress=False)
    [*_, result] = baselines.run(options, baselines.prepare(options))
    methods = result["methods"]
    assert set(methods) == {f"digits, {name}" for name in baselines.methods("digits")}
    for name, content in methods.items():
        [run] = content["runs"]
        assert run["after"]["error"] == run["before"]["error"] < 0.15
        letters = run["areas"]["letters"]
        assert 0.5 < letters["entropy"] <= 1
        assert ("neighbours" in letters) == (name == "digits, one trained")
        assert ("disagreement" in letters) == (name != "digits, one trained")
    assert 0.5 < result["pixels"]["letters"]["neighbours"] < 1
    json.dumps(result)
