"""Grade a folder of submissions into a gradebook of nbgrader."""

import datetime
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import joblib
import nbformat
import psutil
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from tqdm import tqdm

from tools.coursework.clock import Clock
from tools.coursework.edition import course, succeed
from tools.coursework.journal import outcome
from tools.coursework.pairs import ROOT, assignments
from tools.coursework.results import export, read_remarks
from tools.coursework.roster import enrol
from tools.coursework.submissions import Submission, collect

SECONDS_A_CELL, SECONDS_ADDED = 60, 300  # of the processor: each cell, and all cells together that a student added
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


def execute(submission: Submission, course_folder: Path, root: Path = ROOT) -> nbformat.NotebookNode:
    """Execute a submission in a process of its own, within limits; return it executed, with an error in every cell that failed."""
    item = submission.assignment
    with tempfile.TemporaryDirectory() as name:
        folder, journal = Path(name) / "work", Path(name) / "journal"
        shutil.copytree(course_folder / "source" / item.name, folder)
        notebook = folder / f"{item.notebook}.ipynb"
        nbformat.write(submission.notebook, notebook)
        journal.touch()
        command = [sys.executable, "-m", "tools.coursework.execution", notebook, journal, SECONDS_A_CELL, SECONDS_ADDED]
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{root}", "IPYTHONDIR": name, "TMPDIR": name},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        written, clock = 0, Clock(process.pid)
        while process.poll() is None:
            if written != journal.stat().st_size:
                written, clock = journal.stat().st_size, Clock(process.pid)
            if clock.seconds() > SECONDS_A_CELL + 60:  # it should have gone on by itself
                for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                    with suppress(psutil.NoSuchProcess):
                        one.kill()
            time.sleep(0.1)
        return outcome(submission.notebook, journal)


def grade(folder: Path, submissions: Path | None = None, root: Path = ROOT, workers: int | None = None) -> None:
    """Grade submissions into the gradebook in ``folder``, and write its feedback pages and tables.

    The submissions are executed several at a time, each in its own process; then one process, this one, writes the gradebook.
    Marks given by hand stay. The gradebook as it was before is kept in ``backups``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    back_up(folder / "gradebook.db")
    config = course(folder, root)
    (folder / "nbgrader_config.py").write_text(SETTINGS)
    api = NbGraderAPI(config=config)
    sources = {}
    for item in assignments(root):
        succeed(api.generate_assignment(item.name, force=True))
        sources[item] = (nbformat.read(folder / "release" / item.name / f"{item.notebook}.ipynb", 4), item.read())
    enrol(folder)
    remarks = read_remarks(folder / "remarks.csv")
    if submissions is not None:
        found, empty, strays = collect(submissions, sources)
        with ThreadPoolExecutor(workers or joblib.cpu_count()) as pool:
            executions = pool.map(lambda submission: execute(submission, folder, root), found)
            for submission, notebook in zip(found, tqdm(executions, total=len(found), unit="submission"), strict=True):
                failure = enter(api, folder, submission, notebook)
                key = submission.student, submission.assignment.name
                remarks[key] = [*submission.remarks, *notebook.metadata.get("remarks", []), *failure]
        with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book:
            for student, reasons in empty.items():
                book.update_or_create_student(student)
                remarks[student, ""] = reasons
        remarks["", ""] = strays
    export(folder, remarks, root)
    print(f"The gradebook, its tables and the feedback pages are in {folder}")


def enter(api: NbGraderAPI, folder: Path, submission: Submission, notebook: nbformat.NotebookNode) -> list[str]:
    """Have nbgrader keep the score of an executed submission; say what went wrong, which is then no other submission's trouble."""
    item = submission.assignment
    place = folder / "submitted" / submission.student / item.name
    place.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place / f"{item.notebook}.ipynb")
    (place / "timestamp.txt").write_text(submission.time.strftime("%Y-%m-%d %H:%M:%S UTC"))
    result = api.autograde(item.name, submission.student, force=True, create=True)
    return [] if result["success"] else [f"nbgrader could not grade it: {(result.get('error') or result['log'])[-500:]}"]


def back_up(path: Path) -> None:
    """Keep a copy of the gradebook as it is."""
    if not path.exists():
        return
    copy = path.parent / "backups" / f"gradebook-{datetime.datetime.now():%Y%m%d-%H%M%S-%f}.db"
    copy.parent.mkdir(exist_ok=True)
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
