"""Grading a small course: a submission that misbehaves costs its own points, and the
gradebook keeps everything else.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbgrader.api import Gradebook

from coursework.engine import grading, judge, submissions
from coursework.engine.confinement import UNCONFINED, obstacle
from coursework.engine.judge import Limits
from coursework.tests.planted import ALONE, SUBMISSIONS, answers, longer
from coursework.tests.small import (
    answered,
    grade,
    judged,
    remarks_on,
    table,
    without,
)

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


def dies_while_it_sends(sender, cells, *others):
    """Judge, but be killed over a submission that asks for it."""
    if any("kills its judge" in cell.source for cell in cells):
        os.write(sender.fileno(), b"\0\1\0\0begun")
        os.kill(os.getpid(), signal.SIGKILL)
    judge.main(sender, cells, *others)


WHOLE = SUBMISSIONS
SUBMISSIONS = WHOLE | ALONE
NAMES = {"Zoë, renamed": "Copy of my work (2).ipynb", "half": "deep/down/small.ipynb"}
# what goes wrong with these is planted
PLANTED = {
    "judging raises": (answered, "OSError('got end of file during message')"),
    "its judge is killed": (
        answers("return 'kills its judge'"),
        "its judge had to be stopped",
    ),
    "entering raises": (answered, "too deep"),
    "reading raises": (answered, "it could not be read: MemoryError('no room')"),
    "no notebook": (lambda course: "rubbish", "is no notebook"),
    "no ids": (lambda course: nbformat.v4.new_notebook(), "has an nbgrader id"),
}


class Graded(NamedTuple):
    """The folder of the gradebook, and the students in the order in which they were
    judged, some of them twice.
    """

    folder: Path
    tries: list[str]


@pytest.fixture(scope="module")
def graded_with_tries(course, tmp_path_factory):
    """Grade all of these submissions, an empty folder, one that cannot be read and one
    that cannot be entered, in one go.
    """
    folder, tries, execute, enter, files_in = (
        tmp_path_factory.mktemp("small"),
        [],
        grading.execute,
        grading.enter,
        submissions.files_in,
    )
    (folder / "submissions" / "handed in nothing").mkdir(parents=True)

    def execute_most(submission, *settings):
        tries.append(submission.student)
        if submission.student == "judging raises":
            raise OSError("got end of file during message")
        return execute(submission, *settings)

    def enter_most(book, folder, submission, outcome):
        if submission.student == "entering raises":
            raise RecursionError("too deep")
        enter(book, folder, submission, outcome)

    def read_most(place, *others):
        if place.name == "reading raises":
            raise MemoryError("no room")
        return files_in(place, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grading, "execute", execute_most)
        patch.setattr(grading, "enter", enter_most)
        patch.setattr(submissions, "files_in", read_most)
        patch.setattr(grading.judge, "main", dies_while_it_sends)
        grades = grade(course, folder, WHOLE | PLANTED, names=NAMES)
    return Graded(grades, tries)


@pytest.fixture
def graded(graded_with_tries):
    return graded_with_tries.folder


@pytest.fixture
def busy_machine():
    """Have other processes work beside the test, twice as many as a small machine has
    processors.
    """
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)
    ]
    yield
    for other in others:
        other.kill()
        other.wait()


def check(graded, student, double, triple, remarks):
    """Compare a submission's points and remarks with what they should be."""
    name = student.replace(",", "_")
    rows = {
        row["task"]: row
        for row in table(graded / "tasks.csv")
        if row["student_id"] == name
    }
    assert {task: float(row["points"]) for task, row in rows.items()} == {
        "double": double,
        "triple": triple,
        "why": 0,
    }
    assert {row["max_points"] for row in rows.values()} == {"5.0", "7.0", "8.0"}
    said = remarks_on(graded, name)
    assert all(any(word in line for line in said) for word in remarks), said
    assert bool(said) == bool(remarks), said
    assert (graded / "feedback" / name / "assignment_1" / "small.html").exists()


@pytest.mark.parametrize("student", WHOLE)
def test_a_submission_costs_its_own_points_only(graded, student):
    check(graded, student, *SUBMISSIONS[student][1:])


@pytest.mark.parametrize("student", sorted(ALONE))
def test_what_is_judged_costs_its_own_points_only(course, student):
    make, double, triple, remarks = SUBMISSIONS[student]
    notebook, points, said = judged(course, make)
    assert points == {"double": double, "triple": triple}
    assert len(nbformat.writes(notebook)) < 3e6 and bool(said) == bool(remarks), said
    assert all(any(word in line for line in said) for word in remarks), said


def test_what_runs_out_of_time_is_judged_again_alone_and_nothing_else_is(
    graded_with_tries,
):
    twice = ["its judge is killed", "loops for ever"]
    names = [student.replace(",", "_") for student in WHOLE]
    names += ["judging raises", "its judge is killed", "entering raises"]
    tries = [name for name in graded_with_tries.tries if name]  # but for the rehearsal
    assert sorted(tries) == sorted([*names, *twice])
    assert sorted(tries[-2:]) == twice


@pytest.mark.parametrize("student", PLANTED)
def test_what_could_not_be_graded_is_a_remark_and_not_a_zero(graded, student):
    assert any(PLANTED[student][1] in line for line in remarks_on(graded, student))
    rows = [row for row in table(graded / "tasks.csv") if row["student_id"] == student]
    [row] = [r for r in table(graded / "grades.csv") if r["student_id"] == student]
    assert rows == [] and row["timestamp"] == ""


def test_who_was_graded_unconfined_has_a_remark_that_stays(course, tmp_path):
    place = tmp_path / "submissions" / "ann" / "small.ipynb"
    place.parent.mkdir(parents=True)
    nbformat.write(answered(course), place)
    for handed_in in (tmp_path / "submissions", None):
        grading.grade(tmp_path / "grades", handed_in, course, is_confined=False)
        assert [
            row["remark"] for row in table(tmp_path / "grades" / "remarks.csv")
        ] == [UNCONFINED]


@pytest.mark.parametrize("student", ["right", "loops for ever"])
def test_a_busy_machine_gives_the_same_verdicts(course, student, busy_machine):
    make, double, triple, remarks = SUBMISSIONS[student]
    _, points, said = judged(course, make, Limits(cell=1))
    assert points == {"double": double, "triple": triple} and bool(said) == bool(
        remarks
    ), said


LEAVES = """import os, signal, time
signal.setitimer(signal.ITIMER_PROF, 0)
HIDES
os.kill(os.getppid(), signal.SIGKILL)
while True:
    pass"""


@pytest.mark.parametrize(
    "hides",
    [
        "",
        "os.setsid()",
        "parent = os.getppid()\nif os.fork() == 0:\n    os.setsid()\n    "
        "os.kill(parent, 9)\n    time.sleep(20)\n    os._exit(0)",
    ],
    ids=[
        "kills its parent",
        "in a group of its own",
        "and a descendant holds the border",
    ],
)
def test_a_pupil_that_kills_its_parent_costs_its_test_and_nothing_hangs(course, hides):
    _, points, said = judged(
        course,
        lambda course: answered(course, double=LEAVES.replace("HIDES", hides)),
        Limits(cell=20),
    )
    assert points == {"double": 0, "triple": 7}
    assert any("double-test ended its process" in line for line in said), said


ENDLESS = {
    "adds endless cells": (longer("while True: pass", 4), 5, "were not executed"),
    "sleeps for ever": (answers("import time\ntime.sleep(10**6)"), 0, "slept for too"),
}


@pytest.mark.parametrize(("make", "double", "remark"), ENDLESS.values(), ids=ENDLESS)
def test_time_is_kept_for_what_was_handed_out(course, make, double, remark):
    _, points, said = judged(course, make, Limits(cell=0.5, added=0.75))
    assert points == {"double": double, "triple": 7}
    assert any(remark in line for line in said), said


def test_every_student_is_in_the_gradebook(graded):
    rows = [r for r in table(graded / "grades.csv") if r["student_id"] not in PLANTED]
    scores = {row["student_id"]: float(row["score"]) for row in rows}
    assert scores == {"handed in nothing": 0} | {
        student.replace(",", "_"): double + triple
        for student, (_, double, triple, _) in WHOLE.items()
    }
    assert remarks_on(graded, "handed in nothing")


def test_only_answers_wait_for_a_mark_by_hand(graded):
    rows = table(graded / "tasks.csv")
    waits = {r["student_id"]: r["needs_marking"] for r in rows if r["task"] == "why"}
    assert waits["right"] == "1" and waits["nothing"] == "0"
    assert {r["needs_marking"] for r in rows if r["kind"] == "auto"} == {"0"}


def test_feedback_is_small_and_shows_no_hidden_test(graded):
    pages = {path.parts[-3]: path for path in (graded / "feedback").glob("*/*/*.html")}
    assert "it should be 3, but it is 4" in pages["half"].read_text()
    for student, path in pages.items():
        page = path.read_text()
        assert len(page) < 3e6, student
        for secret in ("HIDDEN TESTS", "7919", "thrice five"):
            assert secret not in page, student


def test_marks_by_hand_survive_and_the_old_gradebook_is_kept(graded, course, tmp_path):
    def points():
        rows = table(graded / "tasks.csv")
        return {(row["student_id"], row["task"]): row["points"] for row in rows}

    before, why = points(), ("why", "small", "assignment_1", "right")
    with Gradebook(f"sqlite:///{graded / 'gradebook.db'}", "sgmc") as book:
        grade = book.find_grade(*why)
        grade.manual_score, grade.needs_manual_grade = 6, False
        book.find_comment(*why).manual_comment = "Nearly."
        book.db.commit()
    empty = without(answered(course), "double", "triple", "why")
    changed = answered(course, triple="raise SystemExit")
    for student, notebook in (("right", changed), ("late", empty)):
        (tmp_path / student).mkdir()
        nbformat.write(notebook, tmp_path / student / "small.ipynb")
    grading.grade(graded, tmp_path, course, workers=2, is_confined=not obstacle())
    new = {key: value for key, value in points().items() if before.get(key) != value}
    assert new == {("right", "why"): "6.0", ("right", "triple"): "0.0"} | {
        ("late", task): "0.0" for task in ("double", "triple", "why")
    }
    page = graded / "feedback" / "right" / "assignment_1" / "small.html"
    assert "Nearly." in page.read_text()
    backups = sorted((graded / "backups").glob("gradebook-*.db"))
    with Gradebook(f"sqlite:///{backups[-1]}", "sgmc") as book:
        assert book.find_grade(*why).manual_score == 6


def test_without_submissions_the_tables_are_written_again(graded, course):
    (graded / "grades.csv").unlink()
    rows = len(table(graded / "tasks.csv"))
    grading.grade(graded, None, course)
    assert len(table(graded / "tasks.csv")) == rows and (graded / "grades.csv").exists()


WILD = r"""A reason $a<b$, see `x<y`. <img src=x onerror="alert(1)"> <script>alert(0)</script> <http://127.0.0.1/auto> \<img src=x onerror=alert(2)\>
[here](javascript:alert(3)) ![a picture](http://127.0.0.1/beacon) ![b][r] [c][r] [r] $\href{javascript:alert(4)}{x}$ $<img src=x onerror=alert(5)>$

[r]: javascript:alert(6)

$$\begin{array}{c}<b>\end{array}$$ \begin{equation}<img src=x onerror=alert(7)>\end{equation}
"""


def test_nothing_that_a_student_writes_in_words_runs_in_the_pages_of_nbgrader():
    """Jupyter serves them: a script in one could do all that the lecturer can."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(WILD)])
    before, after = (
        HTMLExporter(template_name="classic").from_notebook_node(one)[0]
        for one in (notebook, grading.tamed(notebook, notebook))
    )
    live = re.compile(r"<img|<script|href=\"(?!#)|\\href", re.I)
    body = [page[page.index("A reason") :] for page in (before, after)]
    assert live.search(body[0]) and not live.search(body[1]), live.findall(body[1])
    assert "<mo>&lt;</mo>" in body[1] and notebook.cells[0].source == WILD
