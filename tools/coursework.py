"""Hand out the assignments, and grade what comes back.

usage: python tools/coursework.py sync | check | release FOLDER | grade FOLDER [SUBMISSIONS]

sync      write every assignment's notebook from its percent script
check     say which of these pairs are out of step
release   write the student edition: notebooks without solutions and hidden tests, and what is needed to work on them
grade     grade a folder of submissions, one folder for each student; without submissions, only write feedback and tables again
"""

import csv
import datetime
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import joblib
import jupytext
import nbformat
import psutil
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.plugins.export import CsvExportPlugin
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearHiddenTests,
    DeduplicateIds,
    GetGrades,
    LimitOutput,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from sqlalchemy.exc import SAWarning
from tqdm import tqdm
from traitlets.config import Config

from tools.execution import Clock, outcome

ROOT = Path(__file__).resolve().parent.parent
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where nbgrader looks for its alembic
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
SECONDS_A_CELL, SECONDS_ADDED = 60, 300  # of the processor: each cell, and all cells together that a student added


class Assignment(NamedTuple):
    """An assignment: a folder ``book/assignments/NAME`` with one percent script, and files that its notebook reads."""

    name: str
    source: Path

    @property
    def notebook(self) -> str:
        """Name the notebook as nbgrader does, without its suffix."""
        return self.source.stem

    def read(self) -> nbformat.NotebookNode:
        """Read the instructor's notebook."""
        notebook = jupytext.read(self.source)
        notebook.metadata = nbformat.from_dict({"jupytext": {"formats": "ipynb,py:percent"}, "kernelspec": KERNELSPEC})
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"cell-{number}"
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        return notebook

    def files(self) -> list[Path]:
        """List what goes with the notebook: the checks, and the assignment's data."""
        others = [path for path in sorted(self.source.parent.iterdir()) if path.is_file() and path.stem != self.source.stem]
        return [self.source.parents[1] / "checks.py", *others]


def assignments(root: Path = ROOT) -> list[Assignment]:
    """List the assignments of a tree."""
    return [Assignment(path.parent.name, path) for path in sorted((root / "book" / "assignments").glob("assignment_*/*.py"))]


def pairs(root: Path = ROOT) -> dict[Path, str]:
    """Say what the notebook of every assignment should hold."""
    return {item.source.with_suffix(".ipynb"): nbformat.writes(item.read()) + "\n" for item in assignments(root)}


def problems(root: Path = ROOT) -> list[str]:
    """List the pairs that are out of step."""
    return [
        f"{path.relative_to(root)} and its source are out of step: run make sync"
        for path, text in pairs(root).items()
        if not path.exists() or path.read_text() != text
    ]


# Handing out


def course(folder: Path, root: Path = ROOT) -> Config:
    """Lay out a course directory of nbgrader with the instructor's notebooks in ``source``; return nbgrader's settings for it."""
    for item in assignments(root):
        source = folder / "source" / item.name
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        nbformat.write(item.read(), source / f"{item.notebook}.ipynb")
        for path in item.files():
            shutil.copy(path, source)
    config = Config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.course_id = "sgmc"
    config.Application.log_level = "WARNING"
    # The submission comes executed, see prepare() and tools/execution.py: nbgrader checks its cells and keeps the score.
    config.Autograde.sanitize_preprocessors = [DeduplicateIds, OverwriteKernelspec, OverwriteCells, CheckCellMetadata]
    config.Autograde.autograde_preprocessors = [LimitOutput, SaveAutoGrades, AssignLatePenalties, CheckCellMetadata]
    config.GenerateFeedback.preprocessors = [GetGrades, HideTests, CSSHTMLHeaderPreprocessor]
    return config


def succeed(result: dict) -> None:
    """Raise what nbgrader says went wrong."""
    if not result["success"]:
        raise RuntimeError((result.get("error") or "") + (result.get("log") or ""))


def release(target: Path, root: Path = ROOT) -> None:
    """Write the student edition."""
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        api = NbGraderAPI(config=course(Path(folder), root))
        for item in assignments(root):
            succeed(api.generate_assignment(item.name, force=True))
        shutil.copytree(Path(folder) / "release", target)
    shutil.copytree(root / "book" / "assignments" / "student", target, dirs_exist_ok=True)
    shutil.copytree(root / "sgmc", target / "sgmc", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("requirements.txt", "constraints.txt", "LICENSE"):
        shutil.copy(root / name, target)
    print(f"The student edition is at {target}")


class HideTests(NbGraderPreprocessor):
    """Take the hidden tests out of a feedback page, also where a traceback shows them: of an error only its sentence is left."""

    def preprocess(self, nb, resources):
        """Change a graded notebook."""
        nb, resources = ClearHiddenTests(parent=self).preprocess(nb, resources)
        for cell in nb.cells:
            for output in cell.get("outputs", []) if cell.metadata.get("nbgrader", {}).get("grade") else []:
                if output.output_type == "error":
                    output.traceback = [f"{output.ename}: {output.evalue}"]
        return nb, resources


# Grading


class Submission(NamedTuple):
    """What a student handed in for an assignment, put into the instructor's notebook; ready for execution."""

    student: str
    assignment: Assignment
    notebook: nbformat.NotebookNode
    time: datetime.datetime
    remarks: list[str]


def task_of(cell) -> str | None:
    """Give the nbgrader id of a cell."""
    settings = cell.get("metadata", {}).get("nbgrader")
    return settings.get("grade_id") if isinstance(settings, dict) else None


def read_cells(path: Path) -> list[nbformat.NotebookNode] | None:
    """Read the cells of a submitted notebook, as far as they can be read; None if it is not a notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8", errors="replace"))["cells"]
        found = []
        for cell in cells:
            source = cell.get("source", "")
            source = source if isinstance(source, str) else "".join(source)
            make = nbformat.v4.new_code_cell if cell.get("cell_type") == "code" else nbformat.v4.new_markdown_cell
            metadata = {"nbgrader": {"grade_id": task_of(cell)}} if isinstance(task_of(cell), str) else {}
            found.append(make(source, metadata=metadata))
        return found
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        return None


def rebuild(released: nbformat.NotebookNode, source: nbformat.NotebookNode, cells: list) -> tuple[nbformat.NotebookNode, list[str]]:
    """Put a student's answers into the instructor's notebook: nothing that is missing, doubled or changed elsewhere matters.

    Args:
        released: the student edition, whose stubs stand for answers that are missing.
        source: the instructor's notebook, whose tests and given cells are those that count.
        cells: the submitted cells. Those that the student added stay behind the cell that they followed.

    Returns:
        The notebook to execute, and what the lecturer should know.
    """
    remarks, answers, added, last = [], {}, {}, None
    known = {task_of(cell): cell for cell in released.cells if task_of(cell)}
    handed_out = {cell.source for cell in released.cells}
    for cell in cells:
        task = task_of(cell)
        if task not in known:
            if cell.cell_type == "code" and cell.source not in handed_out:
                added.setdefault(last, []).append(nbformat.v4.new_code_cell(cell.source))
            continue
        if task in answers:
            remarks.append(f"cell {task} is there more than once: the first one counts")
            continue
        answers[task], last = cell.source, task
    for task in known:
        if task not in answers:
            remarks.append(f"cell {task} is missing")
    notebook = nbformat.from_dict({**source, "cells": []})
    notebook.cells += added.get(None, [])
    for cell, stub in zip(source.cells, released.cells, strict=True):
        task, cell = task_of(cell), nbformat.from_dict(cell)
        if task and cell.metadata.nbgrader.solution:
            cell.source, cell.metadata = answers.get(task, stub.source), stub.metadata
        notebook.cells.append(cell)
        notebook.cells += added.get(task, []) if task else []
    return notebook, remarks


def collect(submissions: Path, sources: dict[Assignment, tuple]) -> tuple[list[Submission], dict[str, list[str]]]:
    """Find out what a folder of submissions holds.

    Everything in the folder's first level is a student: a folder with notebooks at any depth, or a notebook. Which assignment a
    notebook answers is told by the ids of its cells, else by its name.

    Args:
        submissions: the folder.
        sources: for every assignment the student edition and the instructor's notebook.

    Returns:
        The submissions, and remarks on students of whom there is none.
    """
    found, without = [], {}
    for place in sorted(path for path in submissions.iterdir() if not path.name.startswith(".")):
        student = re.sub(r"[^\w .@-]", "_", place.stem if place.is_file() else place.name)
        paths = [place] if place.is_file() else [path for path in place.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts]
        candidates = {}
        for path in sorted((path for path in paths if path.suffix == ".ipynb"), key=lambda path: (path.stat().st_mtime, str(path))):
            cells = read_cells(path)
            ids = {task_of(cell) for cell in cells or []} - {None}
            shared = {item: len(ids & {task_of(cell) for cell in released.cells}) for item, (released, _) in sources.items()}
            item = max(shared, key=shared.get)
            if shared[item] == 0:
                item = next((item for item in sources if item.notebook in path.name or item.name in path.name), None)
            if item is not None:
                candidates.setdefault(item, []).append((path, cells, bool(ids)))
        for item, files in candidates.items():
            path, cells, has_ids = files[-1]
            notebook, remarks = rebuild(*sources[item], cells or [])
            if cells is None:
                remarks = [f"{path.name} is not a notebook"]
            elif not has_ids:
                remarks = [f"no cell of {path.name} has an nbgrader id: mark it by hand, or ask for the notebook that was handed out"]
            if len(files) > 1:
                remarks.append(f"{len(files)} notebooks: only the newest counts, {path.relative_to(submissions)}")
            time = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
            found.append(Submission(student, item, notebook, time, remarks))
        if not candidates:
            without[student] = ["nothing in this submission is a notebook of the course"]
    return found, without


def execute(submission: Submission, course_folder: Path, root: Path = ROOT) -> nbformat.NotebookNode:
    """Execute a submission in a process of its own, within limits; return it executed, with an error in every cell that failed."""
    item = submission.assignment
    with tempfile.TemporaryDirectory() as name:
        folder, journal = Path(name) / "work", Path(name) / "journal"
        shutil.copytree(course_folder / "source" / item.name, folder)
        notebook = folder / f"{item.notebook}.ipynb"
        nbformat.write(submission.notebook, notebook)
        journal.touch()
        command = [sys.executable, "-m", "tools.execution", notebook, journal, SECONDS_A_CELL, SECONDS_ADDED]
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
    if submissions is not None:
        found, without = collect(submissions, sources)
        remarks = read_remarks(folder / "remarks.csv")
        with ThreadPoolExecutor(workers or joblib.cpu_count()) as pool:
            executions = pool.map(lambda submission: execute(submission, folder, root), found)
            for submission, notebook in zip(found, tqdm(executions, total=len(found), unit="submission"), strict=True):
                failure = enter(api, folder, submission, notebook)
                key = submission.student, submission.assignment.name
                remarks[key] = [*submission.remarks, *notebook.metadata.get("remarks", []), *failure]
        with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book:
            for student, reasons in without.items():
                book.update_or_create_student(student)
                remarks[student, ""] = reasons
        write_remarks(folder / "remarks.csv", remarks)
    export(api, folder, config)
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


def export(api: NbGraderAPI, folder: Path, config: Config) -> None:
    """Write the feedback pages, the table of scores and the table of tasks."""
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        submitted = [(submission.assignment.name, submission.student.id) for item in book.assignments for submission in item.submissions]
    for assignment, student in submitted:
        api.generate_feedback(assignment, student, force=True)
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        CsvExportPlugin(to=str(folder / "grades.csv"), config=config).export(book)
        with open(folder / "tasks.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["student_id", "assignment", "task", "points", "max_points", "kind", "needs_marking"])
            for item in book.assignments:
                for submission in sorted(item.submissions, key=lambda submission: submission.student.id):
                    for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                        kind = "auto" if grade.cell.cell_type == "code" else "manual"
                        row = [grade.cell.name.removesuffix("-test"), grade.score, grade.max_score, kind, int(grade.needs_manual_grade)]
                        table.writerow([submission.student.id, item.name, *row])


def read_remarks(path: Path) -> dict[tuple[str, str], list[str]]:
    """Read the remarks on submissions, by student and assignment."""
    remarks = {}
    if path.exists():
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                remarks.setdefault((row["student_id"], row["assignment"]), []).append(row["remark"])
    return remarks


def write_remarks(path: Path, remarks: dict[tuple[str, str], list[str]]) -> None:
    """Write the remarks, a line each."""
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student_id", "assignment", "remark"])
        for (student, assignment), lines in sorted(remarks.items()):
            table.writerows([student, assignment, line] for line in lines)


SETTINGS = '''"""Settings of nbgrader for this course, written by make grade; for the pages in which one marks by hand (make marking)."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "sgmc"
c.CourseDirectory.root = "."
'''


def main(command: str = "", *arguments: str) -> None:
    """Run one of the commands of this file's head."""
    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own
    if command == "sync":
        for path, text in pairs().items():
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
                print(f"wrote {path.relative_to(ROOT)}")
    elif command == "check":
        found = problems()
        print("\n".join(found) or f"{len(assignments())} assignments are in step")
        sys.exit(bool(found))
    elif command == "release" and len(arguments) == 1:
        release(Path(arguments[0]).resolve())
    elif command == "grade" and len(arguments) in (1, 2):
        submissions = Path(arguments[1]).resolve() if len(arguments) == 2 else None
        if submissions is not None and not submissions.is_dir():
            sys.exit(f"SUBMISSIONS must be a folder with one folder for each student, but there is no folder {submissions}")
        grade(Path(arguments[0]).resolve(), submissions)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
