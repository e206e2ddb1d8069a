"""Read what the execution of a submission has told: see ``execution.py``."""

import json
from contextlib import suppress
from pathlib import Path

import nbformat


def error(message: str) -> nbformat.NotebookNode:
    """Make the output of a cell that failed for a reason outside its code."""
    return nbformat.v4.new_output("error", ename="GradingError", evalue=message, traceback=[f"GradingError: {message}"])


def outcome(notebook: nbformat.NotebookNode, journal: Path) -> nbformat.NotebookNode:
    """Give a notebook the outputs that its journal tells of, and in its metadata, under ``remarks``, what a lecturer should know."""
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.outputs = [error("not executed, for the submission brought its own execution down")]
    remarks, entry, last = [], {}, "its beginning"
    with suppress(Exception):  # no journal, a last line that was not finished, or whatever a submission has made of it
        for line in journal.read_text().splitlines():
            entry = nbformat.from_dict(json.loads(line))
            last = entry.get("begun", last)
            if "outputs" in entry:
                notebook.cells[entry.cell].update(outputs=entry.outputs, execution_count=entry.execution_count)
                remarks += entry.remarks
    if "ended" not in entry:
        remarks.append(f"the execution had to be killed in {last}")
    notebook.metadata["remarks"] = remarks
    return notebook
