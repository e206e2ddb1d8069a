"""Runs side by side: alone each is a run bit for bit, and together each is its own."""

import pytest
import torch

from booklib.models.networks import multilayer_perceptron
from booklib.runs.plans import Plan
from booklib.runs.results import score
from booklib.runs.together import Together
from tests.booklib.runs.test_runs import PLANS, data, make

CLOCKS = ("seconds", "processor_seconds", "side_by_side")


def together(number: int, plan: Plan, path=None) -> Together:
    network = multilayer_perceptron([6, 4, 10], "sigmoid")
    return Together(number, plan, network, data(40), data(30, 1), "cpu", path)


def told(result: dict) -> dict:
    """What a result says, but for its times."""
    curve = {name: x for name, x in result["curve"].items() if name != "seconds"}
    rest = {name: x for name, x in result.items() if name not in CLOCKS}
    return {**rest, "curve": curve}


@pytest.mark.parametrize("name", PLANS)
def test_one_alone_is_a_run(name):
    plan = PLANS[name].but(record_every=3)
    alone, run = make(plan), together(1, plan)
    expected = alone.go(progress=False)
    [found] = run.go(progress=False)["runs"]
    assert told(found) == told(expected)
    [one] = run.ones()
    assert torch.equal(one.position, alone.chain.state.position)
    assert torch.equal(one.last, alone.last)
    assert torch.equal(one.average, alone.average)
    assert all(map(torch.equal, one.reservoir, alone.reservoir))


def test_each_of_several_has_its_own_start_minibatches_scores_and_precisions():
    run = together(3, PLANS["SGHMC, precisions drawn"])
    results = run.go(progress=False)["runs"]
    assert [each["plan"]["seed"] for each in results] == [3, 4, 5]
    assert {each["side_by_side"] for each in results} == {3}
    drawn = [tuple(each["curve"]["precisions"][-1]) for each in results]
    assert len(set(drawn)) == 3 and all(len(each) == 4 for each in drawn)
    posterior, inputs = run.chain.posterior, data(30, 1).inputs
    for one, found in zip(run.ones(), results, strict=True):
        last = posterior.log_predict(one.position, inputs)[0].double().exp()
        assert torch.allclose(last, one.last, atol=1e-6)
        assert found["last"] == score(one.last, run.targets)
        assert found["average"] == score(one.average, run.targets)
        assert found["curve"]["average"][-1][0] == found["average"]["error"]
        assert torch.equal(one.reservoir[-1], one.position[0])


def test_a_resume_goes_on_bit_for_bit(tmp_path):
    plan, path = PLANS["Nesterov"], tmp_path / "run.pt"
    whole = together(2, plan)
    expected = whole.go(progress=False)
    broken = together(2, plan, path)
    advance = Together.advance

    def stop(self):
        if self.done == 4:
            raise KeyboardInterrupt
        advance(self)

    broken.advance = stop.__get__(broken)
    with pytest.raises(KeyboardInterrupt):
        broken.go(progress=False)
    resumed = together(2, plan, path)
    found = resumed.go(progress=False)
    for one, other in zip(expected["runs"], found["runs"], strict=True):
        assert told(one) | {"made": 0} == told(other) | {"made": 0}
    assert torch.equal(whole.chain.state.position, resumed.chain.state.position)
