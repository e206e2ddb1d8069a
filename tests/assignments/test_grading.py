"""Grading a small course: a submission that misbehaves costs its own points, and the gradebook keeps everything else."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from tools.coursework import edition, grading, pairs

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
ROOT = Path(__file__).resolve().parents[2]

SMALL = """# %% [markdown]
# # Two sums and a question

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
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
check(double(21), 42)  # twice twenty-one
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


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Make a tree with one small assignment."""
    root = tmp_path_factory.mktemp("course")
    folder = root / "book" / "assignments"
    (folder / "assignment_1").mkdir(parents=True)
    (folder / "assignment_1" / "small.py").write_text(SMALL)
    (folder / "assignment_1" / "data.csv").write_text("1,2\n")
    shutil.copy(ROOT / "book" / "assignments" / "checks.py", folder)
    shutil.copytree(ROOT / "book" / "assignments" / "student", folder / "student")
    (root / "sgmc").mkdir()
    for name in ("requirements.txt", "constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, root)
    edition.release(root / "student", root)
    return root


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
    notebook.cells = [cell for cell in notebook.cells if pairs.task_of(cell) not in tasks]
    return notebook


def doubled(notebook):
    """Copy a test cell and a solution cell, with their ids; the copies hold nonsense."""
    for task in ("double", "double-test"):
        index = next(i for i, cell in enumerate(notebook.cells) if pairs.task_of(cell) == task)
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
    """Let an answer call a function in a cell that the student added, and let a right answer warn."""
    index = next(i for i, cell in enumerate(notebook.cells) if pairs.task_of(cell) == "double")
    notebook.cells.insert(
        index, nbformat.v4.new_code_cell("import warnings\n\ndef helper(x):\n    warnings.warn('careful')\n    return x + x")
    )
    return notebook


SECONDS = 3  # of the processor for a cell
PRINT_IN_SPITE = """for _ in range(1_000):
    try:
        print('x' * 10**6)
    except BaseException:
        pass"""


def extended(notebook, source, number):
    """Add cells behind the given ones."""
    index = next(i for i, cell in enumerate(notebook.cells) if pairs.task_of(cell) == "double")
    notebook.cells[index:index] = [nbformat.v4.new_code_cell(f"{source}  # {i}") for i in range(number)]
    return notebook


SUBMISSIONS = {
    # student: (what is handed in, points of double, points of triple, a word of each remark)
    "right": (lambda course: answered(course), 5, 7, []),
    "nothing": (lambda course: nbformat.read(course / "student" / "assignment_1" / "small.ipynb", 4), 0, 0, []),
    "half": (lambda course: answered(course, triple="return 4 * x"), 5, 0, []),
    "loops for ever": (lambda course: answered(course, double="while True:\n    pass"), 0, 7, ["stopped after"]),
    "loops and will not be stopped": (
        lambda course: answered(
            course, triple="while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
        ),
        5,
        0,
        ["triple-test"],
    ),
    "crashes": (lambda course: answered(course, triple="import os\nos.abort()"), 5, 0, ["kernel died"]),
    "says exit": (lambda course: answered(course, double="raise SystemExit"), 0, 7, []),
    "prints a gigabyte": (
        lambda course: answered(course, double="for _ in range(1_000):\n    print('x' * 10**6)\nreturn 2 * x"),
        0,
        7,
        ["printed too much"],
    ),
    "prints for ever": (lambda course: answered(course, double="while True:\n    print(10 ** 1_000)"), 0, 7, ["printed too much"]),
    "prints in spite of all": (
        lambda course: answered(course, double=f"{PRINT_IN_SPITE}\nreturn 2 * x"),
        0,
        7,
        ["printed too much"],
    ),
    "displays a gigabyte": (
        lambda course: answered(course, double="for _ in range(1_000):\n    display('x' * 10**6)\nreturn 2 * x"),
        0,
        7,
        ["printed too much"],
    ),
    "has another process print": (
        lambda course: answered(course, double="import os\nos.system('yes')\nreturn 2 * x"),
        0,
        7,
        ["printed too much"],
    ),
    "gives a long reason": (lambda course: answered(course, double="raise ValueError('x' * 10**7)"), 0, 7, []),
    "sleeps": (lambda course: answered(course, double=f"import time\ntime.sleep({SECONDS})\nreturn 2 * x"), 5, 7, []),
    "adds thousands of cells": (lambda course: extended(answered(course), "1 + 1", 2_000), 5, 7, []),
    "kills what executes it": (
        lambda course: answered(course, triple="import os\nos.kill(os.getppid(), 9)"),
        5,
        0,
        ["had to be killed in cell triple-test"],
    ),
    "prints a gigabyte at once": (lambda course: answered(course, triple="print('x' * 10**9)\nreturn 3 * x"), 5, 0, ["triple-test"]),
    "wants all memory": (lambda course: answered(course, double="return [0] * 10**11"), 0, 7, []),
    "deletes an answer": (lambda course: without(answered(course), "double"), 0, 7, ["double is missing"]),
    "deletes the tests": (
        lambda course: without(answered(course, triple="return 0"), "double-test", "triple-test"),
        5,
        0,
        ["double-test is missing", "triple-test is missing"],
    ),
    "deletes all": (lambda course: nbformat.v4.new_notebook(), 0, 0, ["nbgrader id"]),
    "doubles ids": (lambda course: doubled(answered(course)), 5, 7, ["more than once", "more than once"]),
    "changes the tests": (lambda course: cheated(answered(course, double="return 0")), 0, 7, []),
    "adds a helper, with a warning": (lambda course: helped(answered(course, double="return helper(x)")), 5, 7, []),
    "looks for the tests": (
        lambda course: answered(course, double="import pathlib\nreturn 2 * x if list(pathlib.Path().glob('*.ipynb')) else 0"),
        0,
        7,
        [],
    ),
    "Zoë, renamed": (lambda course: answered(course), 5, 7, []),
    "no notebook": (lambda course: "This is not JSON.", 0, 0, ["not a notebook"]),
    "other JSON": (lambda course: json.dumps({"cells": 3}), 0, 0, ["not a notebook"]),
}
NAMES = {"Zoë, renamed": "Copy of my work (2).ipynb", "half": "deep/down/small.ipynb"}


def grade(course, folder, students, seconds=SECONDS, added=300):
    """Hand in and grade; the gradebook is in ``folder / "grades"``."""
    for student, (make, *_) in students.items():
        path = folder / "submissions" / student / NAMES.get(student, "small.ipynb")
        path.parent.mkdir(parents=True)
        made = make(course)
        path.write_text(made if isinstance(made, str) else nbformat.writes(made))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grading, "SECONDS_A_CELL", seconds)
        patch.setattr(grading, "SECONDS_ADDED", added)
        patch.delenv("PYTEST_CURRENT_TEST")  # which keeps a kernel from reading what other processes print
        grading.grade(folder / "grades", folder / "submissions", course, workers=2)
    return folder / "grades"


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory):
    """Grade all of these submissions, and one empty folder, in one go."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "submissions" / "handed in nothing").mkdir(parents=True)
    return grade(course, folder, SUBMISSIONS)


@pytest.fixture
def busy_machine():
    """Have other processes work beside the test, twice as many as a small machine has processors."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    yield
    for other in others:
        other.kill()
        other.wait()


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def check(graded, student, double, triple, remarks):
    """Compare a submission's points and remarks with what they should be."""
    name = student.replace(",", "_")
    rows = {row["task"]: row for row in table(graded / "tasks.csv") if row["student_id"] == name}
    assert {task: float(row["points"]) for task, row in rows.items()} == {"double": double, "triple": triple, "why": 0}
    assert {row["max_points"] for row in rows.values()} == {"5.0", "7.0", "8.0"}
    said = [row["remark"] for row in table(graded / "remarks.csv") if row["student_id"] == name]
    assert all(any(word in line for line in said) for word in remarks), said
    assert bool(said) == bool(remarks), said
    assert (graded / "feedback" / name / "assignment_1" / "small.html").exists()


@pytest.mark.parametrize("student", SUBMISSIONS)
def test_a_submission_costs_its_own_points_only(graded, student):
    check(graded, student, *SUBMISSIONS[student][1:])


def test_a_busy_machine_gives_the_same_verdicts(course, tmp_path, busy_machine):
    students = {student: SUBMISSIONS[student] for student in ("right", "sleeps", "loops for ever", "prints a gigabyte")}
    graded = grade(course, tmp_path, students)
    for student in students:
        check(graded, student, *students[student][1:])


def test_time_is_kept_for_what_was_handed_out(course, tmp_path):
    endless = {
        "adds endless cells": (lambda course: extended(answered(course), "while True: pass", 4), 5, 7, ["were not executed"]),
        "sleeps for ever": (lambda course: answered(course, double="import time\ntime.sleep(10**6)"), 0, 7, ["stopped after"]),
    }
    graded = grade(course, tmp_path, endless, seconds=1, added=1.5)
    for student in endless:
        check(graded, student, *endless[student][1:])


def test_every_student_is_in_the_gradebook(graded):
    scores = {row["student_id"]: float(row["score"]) for row in table(graded / "grades.csv")}
    assert scores == {student.replace(",", "_"): double + triple for student, (_, double, triple, _) in SUBMISSIONS.items()} | {
        "handed in nothing": 0
    }
    assert [row["remark"] for row in table(graded / "remarks.csv") if row["student_id"] == "handed in nothing"]


def test_only_answers_wait_for_a_mark_by_hand(graded):
    waiting = {row["student_id"]: row["needs_marking"] for row in table(graded / "tasks.csv") if row["task"] == "why"}
    assert waiting["right"] == "1" and waiting["nothing"] == "0"
    assert {row["needs_marking"] for row in table(graded / "tasks.csv") if row["kind"] == "auto"} == {"0"}


def test_feedback_is_small_and_shows_no_hidden_test(graded):
    pages = {path.parts[-3]: path.read_text() for path in (graded / "feedback").glob("*/*/small.html")}
    assert "it should be 3, but it is 4" in pages["half"]
    for student, page in pages.items():
        assert len(page) < 3e6, student
        assert "HIDDEN TESTS" not in page and "twenty-one" not in page and "thrice five" not in page, student


def test_marks_by_hand_survive_and_the_old_gradebook_is_kept(graded, course, tmp_path):
    before = {(row["student_id"], row["task"]): row["points"] for row in table(graded / "tasks.csv")}
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "sgmc") as book:
        grade = book.find_grade("why", "small", "assignment_1", "right")
        grade.manual_score, grade.needs_manual_grade = 6, False
        book.find_comment("why", "small", "assignment_1", "right").manual_comment = "Nearly."
        book.db.commit()
    for student, notebook in (("right", nbformat.writes(answered(course, triple="raise SystemExit"))), ("late", "rubbish")):
        (tmp_path / student).mkdir()
        (tmp_path / student / "small.ipynb").write_text(notebook)
    grading.grade(graded, tmp_path, course, workers=2)
    after = {(row["student_id"], row["task"]): row["points"] for row in table(graded / "tasks.csv")}
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    assert changed == {("right", "why"): "6.0", ("right", "triple"): "0.0"} | {
        ("late", task): "0.0" for task in ("double", "triple", "why")
    }
    assert "Nearly." in (graded / "feedback" / "right" / "assignment_1" / "small.html").read_text()
    backups = sorted((graded / "backups").glob("gradebook-*.db"))
    with Gradebook(f"sqlite:///{backups[-1]}", "sgmc") as book:
        assert book.find_grade("why", "small", "assignment_1", "right").manual_score == 6


def test_without_submissions_the_tables_are_written_again(graded, course):
    (graded / "grades.csv").unlink()
    rows = len(table(graded / "tasks.csv"))
    grading.grade(graded, None, course)
    assert len(table(graded / "tasks.csv")) == rows and (graded / "grades.csv").exists()


def test_the_student_edition_holds_what_a_student_needs_and_no_more(course):
    student = course / "student"
    notebook = (student / "assignment_1" / "small.ipynb").read_text()
    assert "raise NotImplementedError()" in notebook and "YOUR ANSWER HERE" in notebook
    for secret in ("SOLUTION", "HIDDEN", "twenty-one", "2 * x", "Because", "thrice five"):
        assert secret not in notebook
    for name in ("README.md", "Makefile", "requirements.txt", "sgmc", "assignment_1/checks.py", "assignment_1/data.csv"):
        assert (student / name).exists()
