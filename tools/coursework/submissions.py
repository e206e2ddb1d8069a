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

from tools.coursework.pairs import Assignment, task_of
from tools.coursework.tables import one_line

LARGEST = 50 * 2**20  # bytes of one notebook, and of all notebooks in one zip
MEMBERS = 500  # files in one zip
LONGEST = 200  # bytes of a name, which systems limit
# cells of one notebook, and signs in its file that begin or part lists and dictionaries
CELLS, PARTS = 1_000, 1_000_000
# which platforms and systems add
IGNORED = {
    "submission_metadata.yml",
    "submission_metadata.csv",
    "Thumbs.db",
    "desktop.ini",
}


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


class File(NamedTuple):
    """A notebook as it was handed in; of two the one with the greater ``order`` is the
    newer.
    """

    name: str
    data: bytes
    time: float
    order: tuple


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
            make = (
                nbformat.v4.new_code_cell
                if cell.get("cell_type") == "code"
                else nbformat.v4.new_markdown_cell
            )
            metadata = (
                {"nbgrader": {"grade_id": task_of(cell)}}
                if isinstance(task_of(cell), str)
                else {}
            )
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
        task = task_of(cell)
        if task not in known:
            if cell.cell_type == "code" and cell.source not in handed_out:
                added.setdefault(last, []).append(
                    nbformat.v4.new_code_cell(cell.source)
                )
            continue
        if task in answers:
            remarks.append(
                f"cell {task} is there more than once: the first one counts, and what "
                "others hold runs behind it"
            )
            if (
                cell.cell_type == "code"
                and cell.source not in handed_out | {answers[task]}
                and known[task].metadata.nbgrader.solution
            ):
                added.setdefault(task, []).append(
                    nbformat.v4.new_code_cell(cell.source)
                )
            continue
        answers[task], last = cell.source, task
    for task, cell in known.items():
        if task not in answers:
            remarks.append(f"cell {task} is missing")
        elif (
            not cell.metadata.nbgrader.solution
            and answers[task].split() != cell.source.split()
        ):
            remarks.append(
                f"cell {task} was changed: the one that was handed out counts"
            )
    notebook = nbformat.from_dict({**source, "cells": []})
    notebook.cells += added.get(None, [])
    for cell, stub in zip(source.cells, released.cells, strict=True):
        task, cell = task_of(cell), nbformat.from_dict(cell)
        if task and cell.metadata.nbgrader.solution:
            cell.source, cell.metadata = answers.get(task, stub.source), stub.metadata
        notebook.cells.append(cell)
        notebook.cells += added.get(task, []) if task else []
    return notebook, remarks


def student_id(name: str) -> str:
    """Make of a name one that is safe in paths, patterns and tables, in the composed
    characters of Unicode (NFC).

    Example:
        >>> (
        ...     student_id("Lee, Ann"),
        ...     student_id("Ju\u0308rgen O'Neill"),
        ...     student_id("=1+1"),
        ... )
        ('Lee_ Ann', "Jürgen O'Neill", '_1_1')
    """
    signs = unicodedata.normalize("NFC", name)
    student = "".join(
        sign if unicodedata.category(sign)[0] in "LMN" or sign in " ._@-'’" else "_"
        for sign in signs
    )
    student = student.encode()[:LONGEST].decode(errors="ignore")
    return re.sub(r"^[ .@'’-]|[ .]+$", "_", student) or "_"


def student_of(place: Path) -> tuple[str, list[str]]:
    """Say whose a folder or a file is, with a remark if the student is called otherwise
    than it.
    """
    name = place.name if place.is_dir() else place.stem
    student = student_id(name)
    if student == name:
        return student, []
    remark = f"{one_line(name)} is called {student} here"
    return student, [
        remark
        + (
            ", in composed characters"
            if unicodedata.normalize("NFC", name) == student
            else ""
        )
    ]


class Room:
    """How many bytes may still be read of a zip, and of those within it."""

    def __init__(self):
        self.left = LARGEST


def unzip(
    name: str, data: bytes, time: float, remarks: list[str], within: Room | None = None
) -> Iterator[File]:
    """Read the notebooks in a zip, and in zips within it; nothing is written, and what
    cannot be read is left out with a remark.
    """
    room = within or Room()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [
                member for member in archive.infolist() if is_wanted(member.filename)
            ]
            if len(members) > MEMBERS:
                remarks.append(f"{name} holds more than {MEMBERS:,} files: left out")
                return
            for member in members:
                title = f"{name}/{member.filename}"
                if member.filename.startswith(("/", "\\")) or ".." in re.split(
                    r"[/\\]", member.filename
                ):
                    remarks.append(f"{title} points out of the zip: left out")
                elif member.flag_bits & 1:
                    remarks.append(f"{title} is encrypted: left out")
                elif within and member.filename.lower().endswith(".zip"):
                    remarks.append(f"{title} is a zip in a zip in a zip: left out")
                else:
                    with archive.open(member) as file:
                        content = file.read(room.left + 1)
                    room.left -= len(content)
                    if room.left < 0:
                        room.left = 0
                        remarks.append(
                            f"{name} holds more than {LARGEST // 2**20} MB: what "
                            f"comes after {member.filename} was left out"
                        )
                        return
                    if member.filename.lower().endswith(".zip"):
                        yield from unzip(title, content, time, remarks, room)
                    else:
                        yield File(title, content, time, (time, member.date_time))
    except Exception as error:  # each way of packing has its own
        remarks.append(
            f"{name} cannot be opened as a zip ({type(error).__name__}): left out"
        )


def is_wanted(path: str) -> bool:
    """Tell a notebook or a zip from what systems and Jupyter put beside them."""
    parts = re.split(r"[/\\]", path)
    hidden = any(
        part == "__MACOSX" or (part.startswith(".") and part != "..") for part in parts
    )
    return not hidden and parts[-1].lower().endswith((".ipynb", ".zip"))


def files_in(place: Path, root: Path, remarks: list[str]) -> Iterator[File]:
    """Read what a student handed in: a notebook, a zip, or a folder with any of these
    at any depth. Links are not followed.
    """
    paths = [place]
    if place.is_dir():
        paths = [
            Path(folder) / name for folder, _, names in os.walk(place) for name in names
        ]
    for path in paths:
        name = f"{path.relative_to(root)}"
        if not is_wanted(f"{path.relative_to(root)}"):
            continue
        if (path != place and path.is_symlink()) or not path.is_file():
            remarks.append(f"{name} is a link or no file: left out")
        elif path.stat().st_size > LARGEST:
            remarks.append(f"{name} has more than {LARGEST // 2**20} MB: left out")
        elif path.suffix.lower() == ".zip":
            yield from unzip(name, path.read_bytes(), path.stat().st_mtime, remarks)
        else:
            yield File(
                name, path.read_bytes(), path.stat().st_mtime, (path.stat().st_mtime,)
            )


def places_in(submissions: Path) -> tuple[dict[str, Path], list[str]]:
    """Say whose each entry of a folder is, and which entries are nobody's.

    Raises:
        ValueError: if there is no student in the folder, or if two entries would be one
            student.
    """
    students, strays, alike = {}, [], {}
    for place in sorted(submissions.iterdir()):
        if place.name in IGNORED or place.name.startswith((".", "__")):
            continue
        if not place.is_dir() and not is_wanted(place.name):
            strays.append(
                f"{one_line(place.name)} is no folder, notebook or zip: left out"
            )
            continue
        student, _ = student_of(place)
        alike.setdefault(unicodedata.normalize("NFKC", student).casefold(), []).append(
            one_line(place.name)
        )
        students[student] = place
    double = ["; ".join(names) for names in alike.values() if len(names) > 1]
    if double:
        raise ValueError(
            "these would be the same student, for names count without marks and "
            f"case; rename them: {' | '.join(double)}"
        )
    if not students:
        raise ValueError(
            f"there is no submission in {submissions}: no folder, no notebook, no zip"
        )
    return students, strays


def collect(submissions: Path, sources: dict[Assignment, tuple]) -> Collected:
    """Find out what a folder of submissions holds.

    Everything in the folder's first level is a student: a folder with notebooks or zips
    at any depth, a notebook, or a zip. Which assignment a notebook answers is told by
    the ids of its cells, else by its name.

    Args:
        submissions: the folder.
        sources: for every assignment the student edition and the instructor's notebook.

    Returns:
        The submissions, the students of whom there is none, and what is nobody's.

    Raises:
        ValueError: if there is no student in the folder, or if two entries would be one
            student.
    """
    students, strays = places_in(submissions)
    found, empty = [], {}
    for student, place in students.items():
        general, why = (
            student_of(place)[1],
            "nothing in this submission is a notebook of the course",
        )
        try:
            mine = submissions_of(student, place, submissions, sources, general)
        # whatever one student's files bring about, the others are graded
        except Exception as error:
            mine, why = (
                [],
                f"it could not be read: {type(error).__name__}: {error}"[:300],
            )
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
    for file in sorted(
        files_in(place, root, general), key=lambda file: (file.order, file.name)
    ):
        cells = read_cells(file.data)
        ids = {task_of(cell) for cell in cells or []} - {None}
        shared = {
            item: len(ids & {task_of(cell) for cell in released.cells})
            for item, (released, _) in sources.items()
        }
        item = max(shared, key=shared.get)
        if shared[item] == 0:
            name = Path(file.name).name
            item = next(
                (
                    item
                    for item in sources
                    if item.notebook in name or item.name in name
                ),
                None,
            )
        if item is not None:
            candidates.setdefault(item, []).append((file, cells, bool(ids)))
    for item, files in candidates.items():
        file, cells, has_ids = files[-1]
        notebook, remarks = rebuild(*sources[item], cells or [])
        name = Path(file.name).name
        if cells is None:
            remarks = [f"{name} is not a notebook of at most {CELLS:,} cells"]
        elif not has_ids:
            remarks = [
                f"no cell of {name} has an nbgrader id: mark it by hand, or ask for "
                "the notebook that was handed out"
            ]
        if len(files) > 1:
            remarks.append(
                f"{len(files)} notebooks: only the newest counts, {file.name}"
            )
        time = datetime.datetime.fromtimestamp(file.time, datetime.UTC)
        found.append(Submission(student, item, notebook, time, [*general, *remarks]))
    return found
