"""Grade a folder of submissions into a gradebook of nbgrader."""

import datetime
import functools
import multiprocessing
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import joblib
import nbformat
from nbgrader.api import Gradebook
from nbgrader.utils import compute_checksum, determine_grade
from tqdm import tqdm

from coursework.engine import confinement, judge
from coursework.engine.blocks import visible
from coursework.engine.confinement import BARE, WHOLE
from coursework.engine.edition import release_notebooks
from coursework.engine.feedback import mathml, rubric
from coursework.engine.judge import Limits, Outcome
from coursework.engine.pairs import PACKAGES, ROOT, Assignment, task_of
from coursework.engine.results import export, read_remarks
from coursework.engine.submissions import Submission, collect

# of this folder, what a pupil's process needs
PUPILS = ("__init__.py", "codec.py", "pupil.py")
# what judges share
IMPORTED = ["coursework.engine.judge", "booklib.page.figures", "scipy.stats"]
# of Markdown: HTML, links and pictures with a text, commands of MathJax that make links
# or change others
TAMED = [
    (r"<(?=[A-Za-z/!?])", "< "),
    (r"\](?=[(\[:])", "] "),
    (r"://", ": //"),
    (
        r"\\(?=(?:href|require|unicode|style|class|cssId|mmlToken|def|let|newcommand)\b)",
        r"\\ ",
    ),
]
# code, which stays as it is, or a formula
FORMULA = re.compile(
    r"(`+).*?\1|\$\$(.+?)\$\$|(?<![\\$\w])\$(?!\s)([^$]+?)(?<!\s)\$(?!\w)", re.S
)
SETTINGS = '''"""Settings of nbgrader for the pages in which one marks by hand."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "sgmc"
c.CourseDirectory.root = "."
# The button of the formgrader; the pages that make grade writes need no network.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
'''


@contextmanager
def library(root: Path) -> Iterator[Path]:
    """Lay out what a pupil's process may import besides Python's packages: the packages
    of the student edition, and its own program; once with ``sgmc`` and once without.
    """
    with tempfile.TemporaryDirectory() as name:
        here, ignored = Path(__file__), shutil.ignore_patterns("__pycache__")
        for place in (Path(name) / WHOLE, Path(name) / BARE):
            engine = place / "coursework" / "engine"
            engine.mkdir(parents=True)
            (engine.parent / "__init__.py").touch()
            for package in PACKAGES:
                shutil.copytree(root / package, place / package, ignore=ignored)
            for file in PUPILS:
                shutil.copy(here.with_name(file), engine)
        for path in (place / "sgmc").rglob("*.py"):
            shutil.copy(here.with_name("absent.py"), path)
        yield Path(name)


def execute(
    submission: Submission,
    imports: Path,
    hidden: list[Path],
    limits: Limits,
    is_confined: bool,
) -> Outcome:
    """Have a submission judged, by a judge in a process of its own.

    Args:
        submission: what was handed in.
        imports: what ``library`` has laid out.
        hidden: folders that the submission must not see, wherever they are.
        limits: of the processor.
        is_confined: whether it may see nothing but what it needs.
    """
    item, outcome = submission.assignment, Outcome()
    cells = judge.read_cells(submission.notebook.cells, item.read().cells)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as name:
        for place in ("judge", "pupil"):
            (Path(name) / place).mkdir()
            for path in item.files():
                shutil.copy(path, Path(name) / place)
        pupil, own = Path(name) / "pupil", str(Path(name) / "judge")
        settings = imports, pupil, hidden, is_confined
        start = functools.partial(confinement.start, *settings)
        given = sender, cells, own, start, limits
        process = context.Process(target=judge.main, args=given)
        process.start()
        sender.close()
        with suppress(EOFError, OSError):  # the second, if it is killed while it sends
            while True:
                outcome = receiver.recv()
        process.join()
        receiver.close()
    if process.exitcode:
        outcome.fault = "its judge had to be stopped: it took too much time or memory"
        outcome.exhausted = True
    return outcome


def attempt(settings: tuple, submission: Submission) -> Outcome:
    """Have a submission judged as ``execute`` does; whatever that raises is a fault,
    because it must not end the class.
    """
    try:
        return execute(submission, *settings)
    except Exception as error:
        return Outcome(fault=f"it could not be judged: {error!r}"[:300])


def rehearse(settings: tuple, item: Assignment) -> None:
    """Execute the model solution where submissions will be executed, but for its tests.

    Raises:
        ConfinementError: if one of its cells fails.
    """
    notebook = item.read()
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code"
        and not cell.metadata.nbgrader.grade
        and "experiment" not in cell.metadata.get("tags", ())
    ]
    now = datetime.datetime.now(datetime.UTC)
    outcome = attempt(settings, Submission("", item, notebook, now, []))
    faults = [outcome.fault] if outcome.fault else []
    for name, outputs in outcome.outputs.items():
        for one in outputs:
            if one["output_type"] == "error":
                why = f"{one['ename']}: {one['evalue']}"[:300]
                faults.append(f"cell {name} of the model solution ended with {why}")
    if faults:
        why = f"{item.name} does not run here even with the right answers: {faults[0]}"
        raise confinement.ConfinementError(f"Nothing was graded or entered: {why}")


def grade(
    folder: Path,
    submissions: Path | None = None,
    root: Path = ROOT,
    workers: int | None = None,
    is_confined: bool = True,
    limits: Limits = Limits(),  # noqa: B008
) -> None:
    """Grade submissions into the gradebook in ``folder``, and write its feedback pages
    and tables.

    The submissions are judged several at a time, each in processes of its own; this
    process alone writes the gradebook. One that runs out of time or memory is judged
    again when all others are done, alone. Marks given by hand stay. The gradebook as it
    was before is kept in ``backups``.

    Args:
        folder: where the gradebook is.
        submissions: a folder with one folder for each student; without it only feedback
            and tables are written again.
        root: the tree whose assignments these are.
        workers: how many submissions are judged at a time; without it, as many as there
            are processors that one may use.
        is_confined: whether students' code is executed where it sees nothing of this
            machine.
        limits: of the processor.

    Raises:
        ConfinementError: if it should be confined, and cannot be, or if the model
            solution does not run here; then nothing is entered.
        ValueError: if the submissions are not as they should be.
    """
    if submissions and is_confined and (why := confinement.obstacle()):
        raise confinement.ConfinementError(confinement.ADVICE.format(why=why))
    folder.mkdir(parents=True, exist_ok=True)
    back_up(folder / "gradebook.db")
    (folder / "nbgrader_config.py").write_text(SETTINGS)
    released = release_notebooks(folder, root)
    remarks = read_remarks(folder / "remarks.csv")
    if submissions:
        pairs = {item: (notebook, item.read()) for item, notebook in released.items()}
        found, empty, strays = collect(submissions, pairs)
        for submission in found if not is_confined else ():
            submission.remarks.insert(0, confinement.UNCONFINED)
        workers = max(1, min(workers or joblib.cpu_count(), len(found)))
        with (
            library(root) as imports,
            ThreadPoolExecutor(workers) as pool,
            Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book,
        ):
            settings = imports, [root, ROOT, folder, submissions], limits, is_confined
            rehearsal = functools.partial(rehearse, settings)
            list(pool.map(rehearsal, {one.assignment: None for one in found}))
            run, again = functools.partial(attempt, settings), []
            outcomes = tqdm(pool.map(run, found), total=len(found), unit="submission")
            for submission, outcome in zip(found, outcomes, strict=True):
                key = submission.student, submission.assignment.name
                if outcome.exhausted and workers > 1:
                    again.append((key, submission))
                else:
                    remarks[key] = record(book, folder, submission, outcome)
            for key, submission in again:
                remarks[key] = record(book, folder, submission, run(submission))
            for student, reasons in empty.items():
                book.update_or_create_student(student)
                remarks[student, ""] = reasons
        remarks["", ""] = strays
    waiting = export(folder, remarks, released)
    print(f"The gradebook, its tables and the feedback pages are in {folder}")
    if submissions and not is_confined:
        print(f"Everything was {confinement.UNCONFINED}.")
    for name in sorted({one["assignment"] for one in waiting}):
        points = [one["max_points"] for one in waiting if one["assignment"] == name]
        what = f"{len(points)} answers in words and figures, {sum(points):g} points,"
        print(f"{name}: {what} wait for a mark by hand (make marking)")


def record(
    book: Gradebook, folder: Path, submission: Submission, outcome: Outcome
) -> list[str]:
    """Enter a submission as ``enter`` does, and say what a lecturer should know; what
    could not be judged or entered is a remark too.
    """
    try:
        if outcome.fault:
            raise judge.EnvironmentFault(outcome.fault)
        enter(book, folder, submission, outcome)
        return [*submission.remarks, *outcome.remarks]
    except Exception as error:
        book.db.rollback()
        why = f"not graded, and no points were entered: {error}"[:300]
        book.update_or_create_student(submission.student)
        return [why, *submission.remarks, *outcome.remarks]


def enter(
    book: Gradebook, folder: Path, submission: Submission, outcome: Outcome
) -> None:
    """Write a submission's points into the gradebook, and the notebook of which
    feedback is made, with the visible tests only.
    """
    item, student = submission.assignment, submission.student
    place, before = Path(student, item.name, f"{item.notebook}.ipynb"), {}
    with suppress(OSError, ValueError):
        old = nbformat.read(folder / "submitted" / place, 4)
        before = {task_of(cell): cell.source for cell in old.cells}
    notebook = graded(submission.notebook, outcome)
    marked = tamed(notebook, item.read())
    for kind, content in (("submitted", notebook), ("autograded", marked)):
        (folder / kind / place).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(content, folder / kind / place)
    book.update_or_create_student(student)
    time = submission.time.replace(tzinfo=None)
    book.update_or_create_submission(item.name, student, timestamp=time)
    for cell in (cell for cell in notebook.cells if task_of(cell)):
        task, settings = task_of(cell), cell.metadata.nbgrader
        if settings.grade:
            mark = book.find_grade(task, item.notebook, item.name, student)
            is_test = cell.cell_type == "code" and not settings.solution
            score, is_new = determine_grade(cell)[0], before.get(task) != cell.source
            if is_test:
                verdicts = outcome.verdicts.get(task, [])
                score, is_new = sum(one.points for one in verdicts), False
            is_new |= score != mark.auto_score
            mark.auto_score, waits = score, mark.needs_manual_grade
            by_hand = mark.manual_score is not None
            mark.needs_manual_grade = (waits or is_new) if by_hand else score is None
        if settings.solution:
            is_stub = settings.get("checksum") == compute_checksum(cell)
            comment = book.find_comment(task, item.notebook, item.name, student)
            comment.auto_comment = "No response." if is_stub else None
    book.db.commit()


def graded(submitted: nbformat.NotebookNode, outcome: Outcome) -> nbformat.NotebookNode:
    """Put the outputs into a notebook, and take the hidden tests out of it; what
    feedback shows of these is that they failed.
    """
    notebook = nbformat.from_dict(submitted)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        name = task_of(cell) or f"{number + 1}"
        outputs = outcome.outputs.get(name, [judge.error_output("not executed")])
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = visible(cell.source)
            seen, verdicts = outcome.seen.get(name, []), outcome.verdicts.get(name, [])
            if len(verdicts) > 1:
                keys = ("title", "points", "max_points")
                cell.metadata.parts = [
                    dict(zip(keys, (block.sentence, points, block.points), strict=True))
                    for block, points, _ in verdicts
                ]
            errors = dict.fromkeys(one.error for one in verdicts if one.error)
            cell.metadata.reason = "; ".join(errors) if verdicts else "not executed"
            for before, after in zip(seen, verdicts, strict=False):
                if after.error and not before.error:
                    part = f": {after.block.sentence}" if after.block.sentence else ""
                    text = f"a hidden test failed{part}\n"
                    outputs = [*outputs, judge.shown("stdout", text)]
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
    return notebook


def tamed(
    graded: nbformat.NotebookNode, source: nbformat.NotebookNode
) -> nbformat.NotebookNode:
    """Make the notebook of nbgrader's pages, which are served by Jupyter: without what
    in a student's words could run or load something, with formulas that need no
    network, and with the instructor's rubrics beside the answers.
    """
    notebook, cells = nbformat.from_dict(graded), []
    for cell in notebook.cells:
        own = not task_of(cell) or cell.metadata.nbgrader.solution
        if cell.cell_type != "code" and own:
            for pattern, harmless in TAMED:
                cell.source = re.sub(pattern, harmless, cell.source)
        cells.append(cell)
        if text := rubric(source, task_of(cell) or ""):
            cells.append(nbformat.v4.new_markdown_cell(f"**Rubric.** {text}"))
    for cell in cells:
        if cell.cell_type != "code":
            cell.source = FORMULA.sub(set_formula, cell.source)
    return nbformat.from_dict({**notebook, "cells": cells})


def set_formula(found: re.Match) -> str:
    """Set a formula as MathML that Markdown leaves alone; code stays as it is.

    Example:
        >>> FORMULA.sub(set_formula, "$x$, and not `$x$`")
        '<math display="inline"><mrow><mi>x</mi></mrow></math>, and not `$x$`'
    """
    if found[1]:
        return found[0]
    made = mathml(found[2] or found[3], display=bool(found[2]))
    return made.replace("*", "&#42;").replace("_", "&#95;")


def back_up(path: Path) -> None:
    """Keep a copy of the gradebook as it is."""
    if not path.exists():
        return
    name = f"gradebook-{datetime.datetime.now():%Y%m%d-%H%M%S-%f}.db"
    copy = path.parent / "backups" / name
    copy.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
