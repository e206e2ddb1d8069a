"""Settings that results share: burn-ins, lengths, and those of another experiment."""

import itertools

from booklib.runs import trees as tree_runs
from booklib.runs.results import RESULTS, read_result
from experiments import (
    few,
    renyi,
    sgnuts,
)


def test_the_table_of_sgnuts_has_the_burn_ins_of_the_report_and_the_lengths_of_the_stored_runs():
    assert tree_runs.BURN_INS == [0, 1, 2, 5, 10, 25]  # the report, p. 16
    stored = read_result(RESULTS / "sgnuts.json")
    assert (stored["averaged"], stored["head_start"]) == (
        tree_runs.AVERAGED,
        sgnuts.HEAD_START,
    )
    for methods in stored["runs"].values():
        # in the oldest file a burn-in is called a warm-up
        for run in itertools.chain(*methods.values()):
            assert [
                line.get("burn_in", line.get("warm_up")) for line in run["after"]
            ] == tree_runs.BURN_INS


def test_settings_that_an_experiment_takes_from_another_are_those():
    chosen = read_result(RESULTS / "neighbours.json")["methods"]["SGHMC"]["settings"]
    assert chosen == {"rate": few.RATE, "decay": few.DECAY}
    # Rényi's bound and the evidence bound differ in nothing but their order.
    assert renyi.METHODS["Rényi's bound"].keywords == renyi.METHODS[
        "evidence bound"
    ].keywords | {"alpha": renyi.ALPHA}
