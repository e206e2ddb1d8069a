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
from nbgrader.apps import NbGraderAPI
from nbgrader.utils import compute_checksum, determine_grade
from tqdm import tqdm

from tools.coursework import confinement, judge
from tools.coursework.blocks import visible
from tools.coursework.edition import course, succeed
from tools.coursework.judge import Limits, Outcome
from tools.coursework.pairs import PACKAGES, ROOT, assignments, task_of
from tools.coursework.results import export, read_remarks
from tools.coursework.roster import enrol
from tools.coursework.submissions import Submission, collect

LIMITS = Limits()
# of this folder, what a pupil's process needs
PUPILS = ("__init__.py", "codec.py", "pupil.py")
# what judges share
IMPORTED = [
    "tools.coursework.judge",
    "matplotlib.pyplot",
    "scipy.stats",
    "booklib.figures",
]
# of Markdown: HTML, links and pictures with a text, commands of MathJax that make links
# or change others
TAMED = [
    (r"<(?=[A-Za-z/!?])", "< "),
    (r"\](?=[(\[:])", "] "),
    (
        r"\\(?=(?:href|require|unicode|style|class|cssId|mmlToken|def|let|newcommand)\b)",
        r"\\ ",
    ),
]
SETTINGS = '''"""Settings of nbgrader for this course, written by make grade; for the pages in which one marks by hand (make marking)."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "sgmc"
c.CourseDirectory.root = "."
# The button of the formgrader; the pages that make grade writes are better, for they need no network.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
'''


@contextmanager
def library(root: Path) -> Iterator[Path]:
    """Lay out what a pupil's process may import besides Python's packages: the student
    edition of ``sgmc``, and its own program.
    """
    with tempfile.TemporaryDirectory() as name:
        tools = Path(name) / "tools" / "coursework"
        tools.mkdir(parents=True)
        for package in PACKAGES:
            shutil.copytree(
                root / package,
                Path(name) / package,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        (tools.parent / "__init__.py").touch()
        for file in PUPILS:
            shutil.copy(Path(__file__).with_name(file), tools)
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
        start = functools.partial(
            confinement.start, imports, Path(name) / "pupil", hidden, is_confined
        )
        process = context.Process(
            target=judge.main,
            args=(sender, cells, str(Path(name) / "judge"), start, limits),
        )
        process.start()
        sender.close()
        with suppress(EOFError, OSError):  # the second, if it is killed while it sends
            while True:
                outcome = receiver.recv()
        process.join()
        receiver.close()
    if process.exitcode:
        outcome.remarks.append(
            "its judge had to be stopped, for it took too much time or memory"
        )
        outcome.exhausted = True
    return outcome


def attempt(submission: Submission, **settings) -> Outcome:
    """Have a submission judged as ``execute`` does; whatever that raises is a remark,
    for it must not end the class.
    """
    try:
        return execute(submission, **settings)
    except Exception as error:
        return Outcome(
            remarks=[f"it could not be judged: {type(error).__name__}: {error}"[:300]]
        )


def grade(
    folder: Path,
    submissions: Path | None = None,
    root: Path = ROOT,
    workers: int | None = None,
    is_confined: bool = True,
    limits: Limits = LIMITS,
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
        is_confined: whether what students wrote is executed where it sees nothing of
            this machine.
        limits: of the processor.

    Raises:
        ConfinementError: if it should be confined, and cannot be.
        ValueError: if the submissions, the roster or the dates are not as they should
            be.
    """
    if submissions is not None and is_confined and (why := confinement.obstacle()):
        raise confinement.ConfinementError(confinement.ADVICE.format(why=why))
    sources = {item: (None, item.read()) for item in assignments(root)}
    folder.mkdir(parents=True, exist_ok=True)
    back_up(folder / "gradebook.db")
    (folder / "nbgrader_config.py").write_text(SETTINGS)
    api = NbGraderAPI(config=course(folder, root))
    for item in sources:
        succeed(api.generate_assignment(item.name, force=True))
        released = nbformat.read(
            folder / "release" / item.name / f"{item.notebook}.ipynb", 4
        )
        sources[item] = released, sources[item][1]
    enrol(folder)
    remarks = read_remarks(folder / "remarks.csv")
    if submissions is not None:
        found, empty, strays = collect(submissions, sources)
        workers = min(workers or joblib.cpu_count(), len(found)) or 1
        with (
            library(root) as imports,
            Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book,
        ):
            run = functools.partial(
                attempt,
                imports=imports,
                hidden=[root, ROOT, folder, submissions],
                limits=limits,
                is_confined=is_confined,
            )
            again = []
            with ThreadPoolExecutor(workers) as pool:
                for submission, outcome in zip(
                    found,
                    tqdm(pool.map(run, found), total=len(found), unit="submission"),
                    strict=True,
                ):
                    if outcome.exhausted and workers > 1:
                        again.append(submission)
                    else:
                        remarks[submission.student, submission.assignment.name] = (
                            record(book, folder, submission, outcome)
                        )
            for submission in again:
                remarks[submission.student, submission.assignment.name] = record(
                    book, folder, submission, run(submission)
                )
            if not is_confined:
                for submission in found:
                    remarks[submission.student, submission.assignment.name].insert(
                        0, confinement.UNCONFINED
                    )
            for student, reasons in empty.items():
                book.update_or_create_student(student)
                remarks[student, ""] = reasons
        remarks["", ""] = strays
    export(folder, remarks, root)
    print(f"The gradebook, its tables and the feedback pages are in {folder}")
    if submissions is not None and not is_confined:
        print(confinement.UNCONFINED)


def record(
    book: Gradebook, folder: Path, submission: Submission, outcome: Outcome
) -> list[str]:
    """Enter a submission as ``enter`` does, and say what a lecturer should know;
    whatever that raises is a remark too.
    """
    try:
        enter(book, folder, submission, outcome)
        return [*submission.remarks, *outcome.remarks]
    except Exception as error:
        book.db.rollback()
        return [
            *submission.remarks,
            f"its points could not be entered: {type(error).__name__}: {error}"[:300],
        ]


def enter(
    book: Gradebook, folder: Path, submission: Submission, outcome: Outcome
) -> None:
    """Write a submission's points into the gradebook, and the notebook of which
    feedback is made, with the visible tests only.
    """
    item = submission.assignment
    place = Path(submission.student, item.name, f"{item.notebook}.ipynb")
    before = {}
    with suppress(OSError, ValueError):
        before = {
            task_of(cell): cell.source
            for cell in nbformat.read(folder / "submitted" / place, 4).cells
        }
    notebook = graded(submission.notebook, outcome)
    for kind, content in (("submitted", notebook), ("autograded", tamed(notebook))):
        (folder / kind / place).parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(content, folder / kind / place)
    book.update_or_create_student(submission.student)
    book.update_or_create_submission(
        item.name, submission.student, timestamp=submission.time.replace(tzinfo=None)
    )
    for cell in (cell for cell in notebook.cells if task_of(cell)):
        task, settings = task_of(cell), cell.metadata.nbgrader
        if settings.grade:
            mark = book.find_grade(task, item.notebook, item.name, submission.student)
            is_test = cell.cell_type == "code" and not settings.solution
            score = (
                sum(verdict.points for verdict in outcome.verdicts.get(task, []))
                if is_test
                else determine_grade(cell)[0]
            )
            is_new = score != mark.auto_score or (
                not is_test and before.get(task) != cell.source
            )
            mark.auto_score = score
            mark.needs_manual_grade = (
                (mark.needs_manual_grade or is_new)
                if mark.manual_score is not None
                else score is None
            )
        if settings.solution:
            is_stub = settings.get("checksum") == compute_checksum(cell)
            book.find_comment(
                task, item.notebook, item.name, submission.student
            ).auto_comment = "No response." if is_stub else None
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
                cell.metadata.parts = [
                    {
                        "title": one.block.sentence,
                        "points": one.points,
                        "max_points": one.block.points,
                    }
                    for one in verdicts
                ]
            cell.metadata.reason = (
                "; ".join(dict.fromkeys(one.error for one in verdicts if one.error))
                if verdicts
                else "not executed"
            )
            for before, after in zip(seen, verdicts, strict=False):
                if after.error and not before.error:
                    of = f" of {after.block.sentence}" if after.block.sentence else ""
                    outputs = [
                        *outputs,
                        {
                            "output_type": "stream",
                            "name": "stdout",
                            "text": f"a hidden test{of} failed\n",
                        },
                    ]
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
    return notebook


def tamed(graded: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take out of what a student wrote in words all that could run or load something in
    nbgrader's pages, which are served by Jupyter.
    """
    notebook = nbformat.from_dict(graded)
    for cell in notebook.cells:
        if cell.cell_type != "code" and (
            not task_of(cell) or cell.metadata.nbgrader.solution
        ):
            for pattern, harmless in TAMED:
                cell.source = re.sub(pattern, harmless, cell.source)
    return notebook


def back_up(path: Path) -> None:
    """Keep a copy of the gradebook as it is."""
    if not path.exists():
        return
    copy = (
        path.parent
        / "backups"
        / f"gradebook-{datetime.datetime.now():%Y%m%d-%H%M%S-%f}.db"
    )
    copy.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
