"""The paper's program as others ran it: their stored numbers, and a small run."""

import json

import pytest

from booklib.data import Data
from booklib.runs.results import RESULTS, read_result
from experiments import bayesnn
from experiments.study import Options, part

# test errors of the first five rounds and of the last, seed 0: yimi97/sghmc,
# applications/Application_on_Real_Data.ipynb
STORED = {
    "SGHMC": (0.1108, 0.0731, 0.0591, 0.0574, 0.0527, 0.0162),
    "SGD with momentum": (0.1108, 0.0720, 0.0570, 0.0808, 0.1256, 0.1474),
    "SGLD": (0.7490, 0.5869, 0.3652, 0.2600, 0.2079, 0.0391),
    "Nesterov, noise on": (0.1069, 0.0720, 0.0563, 0.0512, 0.0502, 0.0169),
}


def stored_run(method: str) -> dict:
    return read_result(RESULTS / "bayesnn.json")["methods"][method]["runs"][0]


@pytest.mark.parametrize("method", STORED)
def test_the_first_rounds_are_those_that_others_stored_digit_by_digit(method):
    """Later rounding parts them, by less than seeds do."""
    run, expected = stored_run(method), STORED[method]
    assert len(run["error"]) == 800 and run["settings"]["seed"] == 0
    assert [f"{error:.4f}" for error in run["error"][:5]] == [
        f"{error:.4f}" for error in expected[:5]
    ]
    assert run["error"][-1] == pytest.approx(expected[-1], rel=0.1)


def test_a_small_version_runs_and_is_not_run_again(tmp_path, monkeypatch):
    options = Options(
        tmp_path / "nowhere", tmp_path, small=True, seeds=1, progress=False
    )
    prepared = bayesnn.prepare(options)
    few = {
        name: part(getattr(prepared, name), slice(None, None, 10))
        for name in ("train", "test")
    }
    assert all(isinstance(data, Data) for data in few.values())
    prepared = prepared._replace(**few)
    *_, result = bayesnn.run(options, prepared)
    assert json.loads(json.dumps(result)) == result
    assert list(result["methods"]) == list(bayesnn.METHODS)
    for content in result["methods"].values():
        [run] = content["runs"]
        assert len(run["error"]) == 30 and run["some"]["round"] == [*range(10), 19, 29]
    monkeypatch.setattr(bayesnn.Timed, "advance", None)
    *_, again = bayesnn.run(options, prepared)
    assert again == result
