"""Find the submissions of a course, and put each into the instructor's notebook."""

import datetime
import json
import re
from pathlib import Path
from typing import NamedTuple

import nbformat

from tools.coursework.pairs import Assignment, task_of


class Submission(NamedTuple):
    """What a student handed in for an assignment, put into the instructor's notebook; ready for execution."""

    student: str
    assignment: Assignment
    notebook: nbformat.NotebookNode
    time: datetime.datetime
    remarks: list[str]


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
