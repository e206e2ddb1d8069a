"""A small course: two sums and a question, and what students make of them."""

import contextlib
import csv

import nbformat

from coursework.engine import grading, judge, pairs
from coursework.engine.confinement import UNCONFINED, obstacle
from coursework.engine.judge import Limits
from coursework.engine.submissions import rebuild
from coursework.tests.running import ForkedPupil

SECONDS = 3  # of the processor for a cell
LIMITS = Limits(SECONDS)
SMALL = """# %% [markdown]
# # Two sums and a question

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
from pathlib import Path

assert Path("data.csv").read_text() == "1,2\\n"

def check(value, expected):
    assert value == expected, f"it should be {expected}, but it is {value}"

# %% nbgrader={"grade": false, "grade_id": "double", "locked": false, "schema_version": 3, "solution": true, "task": false}
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "double-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check(double(1), 2)  # twice one
### BEGIN HIDDEN TESTS
check(double(7919), 15838)  # twice a prime
### END HIDDEN TESTS

# %% nbgrader={"grade": false, "grade_id": "triple", "locked": false, "schema_version": 3, "solution": true, "task": false}
def triple(x):
    ### BEGIN SOLUTION
    return 3 * x
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "triple-test", "locked": true, "points": 7, "schema_version": 3, "solution": false, "task": false}
check(triple(1), 3)  # thrice one
### BEGIN HIDDEN TESTS
check(triple(5), 15)  # thrice five
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why", "locked": false, "points": 8, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Because.
# ### END SOLUTION
"""


def answered(course, double="return 2 * x", triple="return 3 * x", why="A reason."):
    """Fill in the student edition."""
    notebook = nbformat.read(course / "student" / "assignment_1" / "small.ipynb", 4)
    stub = "# YOUR CODE HERE\n    raise NotImplementedError()"
    for cell in notebook.cells:
        answer = {"double": double, "triple": triple}.get(pairs.task_of(cell))
        if answer is not None:
            cell.source = cell.source.replace(stub, answer.replace("\n", "\n    "))
        if pairs.task_of(cell) == "why":
            cell.source = why
    return notebook


def without(notebook, *tasks):
    notebook.cells = [
        cell for cell in notebook.cells if pairs.task_of(cell) not in tasks
    ]
    return notebook


def doubled(notebook):
    """Copy a test cell and a solution cell, with their ids; the copies hold
    nonsense.
    """
    for task in ("double", "double-test"):
        index = next(
            i for i, cell in enumerate(notebook.cells) if pairs.task_of(cell) == task
        )
        copy = nbformat.from_dict(notebook.cells[index])
        copy.source, copy["id"] = "raise ValueError('a copy')", f"copy-{task}"
        notebook.cells.insert(index + 1, copy)
    return notebook


def cheated(notebook):
    """Empty the test cells and promise more points."""
    for cell in notebook.cells:
        if (pairs.task_of(cell) or "").endswith("-test"):
            cell.source, cell.metadata.nbgrader.points = "pass", 100
    return notebook


def helped(notebook):
    """Let an answer call a function in a cell that the student added, and let a right
    answer warn.
    """
    index = next(
        i for i, cell in enumerate(notebook.cells) if pairs.task_of(cell) == "double"
    )
    notebook.cells.insert(
        index,
        nbformat.v4.new_code_cell(
            "import warnings\n\ndef helper(x):\n    warnings.warn('careful')\n    "
            "return x + x"
        ),
    )
    return notebook


def extended(notebook, source, number):
    """Add cells behind the given ones."""
    index = next(
        i for i, cell in enumerate(notebook.cells) if pairs.task_of(cell) == "double"
    )
    notebook.cells[index:index] = [
        nbformat.v4.new_code_cell(f"{source}  # {i}") for i in range(number)
    ]
    return notebook


def grade(course, folder, students, seconds=SECONDS, workers=2, names={}):  # noqa: B006
    """Hand in and grade; the gradebook is in ``folder / "grades"``."""
    for student, (make, *_) in students.items():
        path = folder / "submissions" / student / names.get(student, "small.ipynb")
        path.parent.mkdir(parents=True)
        made = make(course)
        path.write_text(made if isinstance(made, str) else nbformat.writes(made))
    grading.grade(
        folder / "grades",
        folder / "submissions",
        course,
        workers=workers,
        is_confined=not obstacle(),
        limits=Limits(seconds),
    )
    return folder / "grades"


def judged(course, make, limits=LIMITS):
    """Judge a submission here, by a pupil that is forked and not confined, which is
    fast; give the graded notebook and the remarks.
    """
    [item] = pairs.assignments(course)
    released = nbformat.read(
        course / "student" / item.name / f"{item.notebook}.ipynb", 4
    )
    notebook, remarks = rebuild(released, item.read(), make(course).cells)
    cells = judge.read_cells(notebook.cells, item.read().cells)
    with contextlib.chdir(item.source.parent):
        *_, outcome = judge.judge(cells, ForkedPupil, limits)
    points = {
        task.removesuffix("-test"): sum(one.points for one in verdicts)
        for task, verdicts in outcome.verdicts.items()
    }
    return grading.graded(notebook, outcome), points, [*remarks, *outcome.remarks]


def remarks_on(grades, student):
    """List the remarks on a student, but for the one that an unconfined run makes on
    everybody.
    """
    return [
        row["remark"]
        for row in table(grades / "remarks.csv")
        if row["student_id"] == student and row["remark"] != UNCONFINED
    ]


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
