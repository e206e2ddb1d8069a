"""Libraries that take turns: the command with made-up workers, and what is stored."""

import sys

import pytest

from booklib.runs.results import RESULTS, read_result
from conformance import __main__ as command
from conformance import turns
from conformance.speed import shared

WORKER = """
import numpy as np

from conformance.speed import shared

taken = []


def run(steps):
    taken.append(steps)
    sum(range(200_000))
    print("a library prints, which is no answer")
    return steps


rows = {
    ("%s", "short"): ("a law", lambda: run(1_000)),
    ("%s", "long"): ("none", lambda: run(len(taken))),
    ("%s", "draws"): ("none", lambda: np.random.default_rng(0).normal(size=(4, 99, 2))),
}
shared.serve(rows, "numpy", missing="nothing")
"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Make two workers, in an environment that is the one that runs the tests."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(WORKER % (name, name, name))
    monkeypatch.setattr(turns, "WORKERS", {"one": "here", "two": "here"})
    monkeypatch.setattr(turns, "RESULTS", tmp_path)
    alone = turns.ALONE | {"PYTHONPATH": f"{turns.ROOT}:{tmp_path}"}
    monkeypatch.setattr(turns, "ALONE", alone)
    monkeypatch.setattr(turns, "MODULE", "")
    monkeypatch.setattr(command, "interpreter_of", lambda *_: sys.executable)
    return tmp_path / "speed_of_libraries.json"


def test_workers_take_turns_and_their_times_are_stored(made_up, capsys):
    assert command.main(["speed", "--turns", "3"]) == 0
    result = read_result(made_up)
    assert result["provenance"]["command"] == "python -m conformance speed"
    assert set(result["workers"]) == {"one", "two"}
    assert result["workers"]["one"]["versions"].keys() == {"numpy"}
    told = [(row["row"], row["entry"], row["law"]) for row in result["rows"]]
    assert told == [
        ("short", "one", "a law"),
        ("short", "two", "a law"),
        ("long", "one", "none"),
        ("long", "two", "none"),
        ("draws", "one", "none"),
        ("draws", "two", "none"),
    ]
    for row in result["rows"]:
        cost = row["microseconds_a_step"]
        assert 0 < cost["spread"][0] <= cost["median"] <= cost["spread"][1]
        assert row["turns"] == 3 and row["first_turn_seconds"] >= 0
    # two first turns, and three of the other row, came before its own 5, 6 and 7
    assert result["rows"][2]["steps_a_turn"] == 6
    # of draws, the effective size of 396 independent ones
    assert 250 < result["rows"][4]["steps_a_turn"] < 500
    assert "µs a step" in capsys.readouterr().out


def test_some_rows_of_some_workers_take_the_place_of_stored_ones(made_up):
    command.main(["speed", "--turns", "1"])
    old = read_result(made_up)
    asked = "speed --turns 1 --workers two --rows short"
    command.main(asked.split())
    new = read_result(made_up)
    *kept, row = new["rows"]
    assert kept == [
        x for x in old["rows"] if (x["row"], x["entry"]) != ("short", "two")
    ]
    assert (row["row"], row["entry"], list(row["about"])) == ("short", "two", ["two"])
    again = 'python -m conformance speed --rows "short" --workers two'
    assert row["provenance"]["command"] == again
    assert new["provenance"] == old["provenance"]


def test_a_worker_that_ends_is_named(made_up):
    (made_up.parent / "two.py").write_text("raise SystemExit(1)")
    with pytest.raises(RuntimeError, match=r"a worker has ended: .* two"):
        command.main(["speed", "--turns", "1"])


def test_every_stored_time_has_a_law_and_its_spread():
    result = read_result(RESULTS / "speed_of_libraries.json")
    assert set(result["workers"]) == set(turns.WORKERS)
    for row in result["rows"]:
        cost = row["microseconds_a_step"]
        assert row["law"] and cost["spread"][0] <= cost["median"] <= cost["spread"][1]
    names = {*shared.WELLS, *shared.NETWORKS, shared.SGLD, shared.SGHMC, shared.OWN}
    assert {row["row"] for row in result["rows"]} - {*shared.PROGRAMS} == names | {
        shared.NUTS
    }
