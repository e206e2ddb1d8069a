"""The assignments of the course through the whole of nbgrader: the model solutions
score in full, what was handed out scores nothing.
"""

import csv
import shutil

import nbformat
import pytest

from coursework.engine import confinement, edition, grading, pairs

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    edition.release(folder / "edition")
    for item in pairs.assignments():
        for student in ("model", "nothing"):
            (folder / "submissions" / student).mkdir(parents=True, exist_ok=True)
        released = folder / "edition" / item.name / f"{item.notebook}.ipynb"
        shutil.copy(released, folder / "submissions" / "nothing")
        nbformat.write(
            solved(nbformat.read(released, 4), item),
            folder / "submissions" / "model" / released.name,
        )
    # The model solutions are ours, so they are judged also where none can be confined.
    grading.grade(
        folder / "grades",
        folder / "submissions",
        workers=2,
        is_confined=not confinement.obstacle(),
    )
    return folder / "grades"


def solved(notebook, item):
    """Put the model answers into the student edition of an assignment."""
    answers = {
        pairs.task_of(cell): cell.source
        for cell in item.read().cells
        if pairs.task_of(cell)
    }
    for cell in notebook.cells:
        if pairs.task_of(cell) and cell.metadata.nbgrader.solution:
            cell.source = answers[pairs.task_of(cell)]
    return notebook


def rows(path, student):
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if row["student_id"] == student]


def test_the_model_solutions_score_in_full(graded):
    auto = [row for row in rows(graded / "tasks.csv", "model") if row["kind"] == "auto"]
    assert [row for row in auto if row["points"] != row["max_points"]] == []
    assert {row["assignment"] for row in auto} == {
        item.name for item in pairs.assignments()
    }
    remarks = {row["remark"] for row in rows(graded / "remarks.csv", "model")}
    assert remarks - {confinement.UNCONFINED} == set()


def test_the_model_answers_wait_for_a_mark_by_hand(graded):
    manual = [
        row for row in rows(graded / "tasks.csv", "model") if row["kind"] == "manual"
    ]
    assert {row["needs_marking"] for row in manual} == {"1"}


def test_no_cell_of_a_model_solution_fails(graded):
    for item in pairs.assignments():
        notebook = nbformat.read(
            graded / "autograded" / "model" / item.name / f"{item.notebook}.ipynb", 4
        )
        errors = [
            (pairs.task_of(cell), output.ename)
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if output.output_type == "error"
        ]
        assert errors == []


def test_an_empty_submission_scores_nothing(graded):
    found = rows(graded / "tasks.csv", "nothing")
    assert {row["assignment"] for row in found} == {
        item.name for item in pairs.assignments()
    }
    assert {(row["points"], row["needs_marking"]) for row in found} == {("0.0", "0")}
