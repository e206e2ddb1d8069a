"""What the journal of an execution tells."""

import json

from nbformat.v4 import new_notebook

from tests.assignments.test_submissions import cell
from tools.coursework.journal import outcome


def told(tmp_path, *entries):
    """Write a journal, and read from it what became of two cells; an error is zero points."""
    journal = tmp_path / "journal"
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    made = outcome(new_notebook(cells=[cell("1 + 1", "one"), cell("2 + 2", "two")]), journal)
    return [any(output.output_type == "error" for output in each.outputs) for each in made.cells], made.metadata.remarks


def test_a_cell_that_did_not_come_to_its_end_has_an_error(tmp_path):
    done = {"cell": 0, "outputs": [], "execution_count": 1, "remarks": ["slow"]}
    assert told(tmp_path, {"begun": "cell one"}, done, {"begun": "cell two"}) == (
        [False, True],
        ["slow", "the execution had to be killed in cell two"],
    )
    assert told(tmp_path, {"begun": "cell one"}, done, {**done, "cell": 1, "remarks": []}, {"ended": True}) == ([False, False], ["slow"])
    assert told(tmp_path) == ([True, True], ["the execution had to be killed in its beginning"])
