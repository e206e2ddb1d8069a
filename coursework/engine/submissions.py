"""Find the submissions of a course, and put each into the instructor's notebook."""

import datetime
import io
import json
import os
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from coursework.engine.pairs import Assignment, task_of

LARGEST = 50 * 2**20  # bytes of one notebook, and of all notebooks in one zip
MEMBERS = 500  # files in one zip
LONGEST = 200  # bytes of a name, which systems limit
# cells of one notebook, and signs in its file that begin or part lists and dictionaries
CELLS, PARTS = 1_000, 1_000_000
# which platforms and systems add
IGNORED = {"submission_metadata.yml", "Thumbs.db", "desktop.ini"}


class Submission(NamedTuple):
    """What a student handed in for an assignment, put into the instructor's notebook;
    ready for execution.
    """

    student: str
    assignment: Assignment
    notebook: nbformat.NotebookNode
    time: datetime.datetime
    remarks: list[str]


class Collected(NamedTuple):
    """What a folder of submissions holds.

    Attributes:
        submissions: a notebook of a student for an assignment each.
        empty: remarks on students of whom there is no notebook of the course.
        strays: remarks on files that belong to no student.
    """

    submissions: list[Submission]
    empty: dict[str, list[str]]
    strays: list[str]


def read_cells(data: bytes) -> list[nbformat.NotebookNode] | None:
    """Read the cells of a submitted notebook, as far as they can be read; None if it is
    not a notebook, or far too long for one.
    """
    # each of which can become an object of some hundred bytes
    if sum(map(data.count, (b"{", b"[", b","))) > PARTS:
        return None
    try:
        cells = json.loads(data.decode("utf-8-sig", "replace"))["cells"]
        if len(cells) > CELLS:
            return None
        found = []
        for cell in cells:
            source = cell.get("source", "")
            source = source if isinstance(source, str) else "".join(source)
            # halves of characters, which no file can hold
            source = source.encode("utf-8", "replace").decode()
            is_code, task = cell.get("cell_type") == "code", task_of(cell)
            metadata = {"nbgrader": {"grade_id": task}} if isinstance(task, str) else {}
            make = new_code_cell if is_code else new_markdown_cell
            found.append(make(source, metadata=metadata))
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def rebuild(
    released: nbformat.NotebookNode, source: nbformat.NotebookNode, cells: list
) -> tuple[nbformat.NotebookNode, list[str]]:
    """Put a student's answers into the instructor's notebook: nothing that is missing,
    doubled or changed elsewhere matters.

    Args:
        released: the student edition, whose stubs stand for answers that are missing.
        source: the instructor's notebook, whose tests and given cells are those that
            count.
        cells: the submitted cells. Those that the student added stay behind the cell
            that they followed.

    Returns:
        The notebook to execute, and what the lecturer should know.
    """
    remarks, answers, added, last = [], {}, {}, None
    known = {task_of(cell): cell for cell in released.cells if task_of(cell)}
    handed_out = {cell.source for cell in released.cells}
    for cell in cells:
        task, is_new = task_of(cell), cell.source not in handed_out
        if task in known and task not in answers:
            answers[task], last = cell.source, task
            continue
        if task in known:
            remarks.append(
                f"cell {task} is there more than once: the first one counts, and what "
                "others hold runs behind it"
            )
            is_new &= cell.source != answers[task]
            is_new &= known[task].metadata.nbgrader.solution
        if cell.cell_type == "code" and is_new:
            place = added.setdefault(task if task in known else last, [])
            place.append(new_code_cell(cell.source))
    for task, cell in known.items():
        if task not in answers:
            remarks.append(f"cell {task} is missing")
        elif (
            not cell.metadata.nbgrader.solution
            and answers[task].split() != cell.source.split()
        ):
            remarks.append(f"cell {task} was changed: the one handed out counts")
    notebook = nbformat.from_dict({**source, "cells": []})
    notebook.cells += added.get(None, [])
    for cell, stub in zip(source.cells, released.cells, strict=True):
        task, cell = task_of(cell), nbformat.from_dict(cell)
        if task and cell.metadata.nbgrader.solution:
            cell.source, cell.metadata = answers.get(task, stub.source), stub.metadata
        notebook.cells += [cell, *(added.get(task, []) if task else [])]
    return notebook, remarks


def student_id(name: str) -> str:
    """Make of a name one that is safe in paths, patterns and tables, in the composed
    characters of Unicode (NFC).

    Example:
        >>> [student_id(name) for name in ("Lee, Ann", "Ju\u0308rgen O'Neill", "=1+1")]
        ['Lee_ Ann', "Jürgen O'Neill", '_1_1']
    """
    student = "".join(
        sign if unicodedata.category(sign)[0] in "LMN" or sign in " ._@-'’" else "_"
        for sign in unicodedata.normalize("NFC", name)
    )
    student = student.encode()[:LONGEST].decode(errors="ignore")
    return re.sub(r"^[ .@'’-]|[ .]+$", "_", student) or "_"


def name_of(place: Path) -> str:
    """Give the name of a student's folder or file, as every file can hold it."""
    name = place.name if place.is_dir() else place.stem
    return name.encode("utf-8", "replace").decode()


def is_wanted(path: str) -> bool:
    """Tell a notebook or a zip from what systems and Jupyter put beside them."""
    *folders, name = re.split(r"[/\\]", path)
    hidden = any(one == "__MACOSX" or one.startswith(".") for one in (*folders, name))
    return not hidden and name.lower().endswith((".ipynb", ".zip"))


def unzip(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Read the notebooks in a zip; nothing is written.

    Raises:
        ValueError: if they are too many, or too large.
        Exception: each way of packing has its own.
    """
    left = LARGEST
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [one for one in archive.namelist() if is_wanted(one)]
        if len(names) > MEMBERS:
            raise ValueError(f"more than {MEMBERS:,} files")
        for name in names:
            with archive.open(name) as file:
                content = file.read(left + 1)
            left -= len(content)
            if left < 0:
                raise ValueError(f"more than {LARGEST // 2**20} MB")
            if name.lower().endswith(".ipynb"):
                yield name, content


def files_in(
    place: Path, root: Path, remarks: list[str]
) -> Iterator[tuple[str, bytes, float]]:
    """Read what a student handed in: a notebook, a zip, or a folder with any of these
    at any depth. Links are not followed.
    """
    paths = [place]
    if place.is_dir():
        walk = sorted(os.walk(place))
        paths = [Path(folder) / name for folder, _, names in walk for name in names]
    for path in paths:
        name = f"{path.relative_to(root)}".encode("utf-8", "replace").decode()
        if not is_wanted(name):
            continue
        if path.is_symlink() or not path.is_file():
            remarks.append(f"{name} is a link or no file: left out")
        elif path.stat().st_size > LARGEST:
            remarks.append(f"{name} has more than {LARGEST // 2**20} MB: left out")
        elif path.suffix.lower() == ".ipynb":
            yield name, path.read_bytes(), path.stat().st_mtime
        else:
            try:
                for member, data in unzip(path.read_bytes()):
                    yield f"{name}/{member}", data, path.stat().st_mtime
            except Exception as error:
                remarks.append(f"{name} could not be read to its end: {error!r}"[:300])


def collect(submissions: Path, sources: dict[Assignment, tuple]) -> Collected:
    """Find out what a folder of submissions holds.

    Everything in the folder's first level is a student: a folder with notebooks or zips
    at any depth, a notebook, or a zip. The ids of its cells tell which assignment a
    notebook answers.

    Args:
        submissions: the folder.
        sources: for every assignment the student edition and the instructor's notebook.

    Returns:
        The submissions, the students of whom there is none, and what is nobody's.

    Raises:
        ValueError: if there is no student in the folder, or if two entries would be one
            student.
    """
    students, strays, alike = {}, [], {}
    for place in sorted(submissions.iterdir()):
        if place.name in IGNORED or place.name.startswith((".", "__")):
            continue
        if place.is_dir() or is_wanted(place.name):
            student = student_id(name_of(place))
            students[student] = place
            key = unicodedata.normalize("NFKC", student).casefold()
            alike.setdefault(key, []).append(name_of(place))
        else:
            name = place.name.encode("utf-8", "replace").decode()
            strays.append(f"{name} is no folder, notebook or zip: left out")
    if double := ["; ".join(names) for names in alike.values() if len(names) > 1]:
        raise ValueError(
            "these would be the same student, because names count without marks and "
            f"case; rename them: {' | '.join(double)}"
        )
    if not students:
        raise ValueError(f"there is no submission in {submissions}")
    found, empty = [], {}
    for student, place in students.items():
        name, general = name_of(place), []
        if student != name:
            general = [f"{name} is called {student} here"]
        try:
            mine = submissions_of(student, place, submissions, sources, general)
            why = "nothing in this submission is a notebook of the course"
        # whatever one student's files bring about, the others are graded
        except Exception as error:
            mine, why = [], f"it could not be read: {error!r}"[:300]
        found += mine
        if not mine:
            empty[student] = [*general, why]
    return Collected(found, empty, strays)


def submissions_of(
    student: str,
    place: Path,
    root: Path,
    sources: dict[Assignment, tuple],
    general: list[str],
) -> list[Submission]:
    """Read what a student handed in, for each assignment the newest notebook; remarks
    on the whole are added to ``general``.
    """
    candidates, found = {}, []
    for name, data, time in files_in(place, root, general):
        cells = read_cells(data)
        ids = {task_of(cell) for cell in cells or []}
        shared = {
            item: len(ids & ({task_of(cell) for cell in released.cells} - {None}))
            for item, (released, _) in sources.items()
        }
        item = max(shared, key=shared.get)
        if shared[item]:
            candidates.setdefault(item, []).append((time, name, cells))
        elif cells is None:
            general.append(f"{name} is no notebook of at most {CELLS:,} cells")
        else:
            general.append(
                f"no cell of {name} has an nbgrader id: mark it by hand, or ask for "
                "the notebook that was handed out"
            )
    for item, files in candidates.items():
        time, name, cells = max(files, key=lambda file: file[:2])
        notebook, remarks = rebuild(*sources[item], cells)
        if len(files) > 1:
            remarks.append(f"{len(files)} notebooks: only the newest counts, {name}")
        moment = datetime.datetime.fromtimestamp(time, datetime.UTC)
        found.append(Submission(student, item, notebook, moment, [*general, *remarks]))
    return found
