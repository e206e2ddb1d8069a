"""What was handed in, put into the instructor's notebook: which cells count, which notebook counts, and what an execution told."""

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools.coursework.pairs import Assignment
from tools.coursework.submissions import collect, rebuild

ITEM = Assignment("assignment_1", Path("assignment_1/small.py"))


def cell(source, task=None, solution=False):
    return new_code_cell(source, metadata={"nbgrader": {"grade_id": task, "solution": solution}} if task else {})


def notebook(answer, test="assert answer == 42", *more):
    return new_notebook(cells=[cell("answer = 0", "given"), cell(answer, "answer", solution=True), *more, cell(test, "answer-test")])


RELEASED, SOURCE = notebook("raise NotImplementedError()", "pass"), notebook("answer = 42")


def rebuilt(*cells):
    made, remarks = rebuild(RELEASED, SOURCE, list(cells))
    return [each.source for each in made.cells], remarks


def test_an_answer_is_put_among_the_cells_of_the_instructor():
    assert rebuilt(*notebook("answer = 6 * 7").cells) == (["answer = 0", "answer = 6 * 7", "assert answer == 42"], [])


def test_tests_and_given_cells_are_those_of_the_instructor_whatever_a_student_makes_of_them():
    handed_in = notebook("answer = 6 * 7", "pass")
    handed_in.cells[0].source = "answer = 42"
    assert rebuilt(*handed_in.cells)[0] == ["answer = 0", "answer = 6 * 7", "assert answer == 42"]


def test_of_an_answer_that_is_there_twice_the_first_one_counts():
    sources, remarks = rebuilt(*notebook("answer = 1", "pass", cell("answer = 2", "answer", solution=True)).cells)
    assert sources[1:] == ["answer = 1", "assert answer == 42"] and remarks == ["cell answer is there more than once: the first one counts"]


def test_an_answer_that_is_missing_is_the_stub():
    sources, remarks = rebuilt(cell("answer = 0", "given"), cell("pass", "answer-test"))
    assert sources[1] == "raise NotImplementedError()" and remarks == ["cell answer is missing"]


def test_cells_that_were_added_stay_behind_the_cell_that_they_followed():
    first, *others = notebook("answer = double(21)", "pass", cell("shown = answer")).cells
    sources, _ = rebuilt(cell("import math"), first, cell("def double(x):\n    return 2 * x"), *others)
    expected = [
        "import math",
        "answer = 0",
        "def double(x):\n    return 2 * x",
        "answer = double(21)",
        "shown = answer",
        "assert answer == 42",
    ]
    assert sources == expected


@pytest.mark.parametrize("newest", ["small.ipynb", "copy of small.ipynb"])
def test_of_two_notebooks_the_newest_counts(newest, tmp_path):
    for number, name in enumerate(("small.ipynb", "copy of small.ipynb")):
        path = tmp_path / "ann" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(nbformat.writes(notebook(f"answer = {number}")))
        os.utime(path, (10, 2_000_000_000 if name == newest else 1_000_000_000))
    [submission] = collect(tmp_path, {ITEM: (RELEASED, SOURCE)}).submissions
    assert submission.student == "ann" and submission.time.year == 2033
    assert submission.notebook.cells[1].source == f"answer = {int(newest.startswith('copy'))}"
    assert submission.remarks == [f"2 notebooks: only the newest counts, ann/{newest}"]
