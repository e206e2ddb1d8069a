"""Run the visible tests of notebooks, and say of each part whether it passes.

usage: python summary.py assignment_1/NAME.ipynb ...
"""

import ast
import re
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError

POINTS = re.compile(r"^# POINTS ([\d.]+): (.+)$", re.M)
HEADING = re.compile(r"^(?:#+ |\*\*)(.+?)(?: \(\d+ points.*)?$", re.M)
WIDTH, LINES = 110, 3  # columns of a line, and lines of a reason
UNANSWERED = "not answered yet"
SECONDS = 300  # for a cell


def parts(cell):
    """Split a test into its parts.

    Gives for each its points, a sentence and its code, with what they share before it.
    """
    head, *rest = POINTS.split(cell.source)
    if not rest:
        return [(float(cell.metadata.nbgrader.points), "", head)]
    return [
        (float(rest[k]), rest[k + 1], head + rest[k + 2])
        for k in range(0, len(rest), 3)
    ]


def defined(source):
    """List the functions that an answer defines."""
    with suppress(SyntaxError):
        return [one.name for one in ast.parse(source).body if hasattr(one, "args")]
    return []


def across(source, names):
    """Make of a part of a test one that calls the answers as grading does."""
    home = str(Path(__file__).resolve().parent)
    return nbformat.v4.new_code_cell(
        f"import sys\nsys.path.insert(0, {home!r})\nimport border\n"
        f"border.run({source!r}, {names!r}, globals())"
    )


def wrapped(text):
    """Break a reason into lines, and cut it where it is too long."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
        max_lines=LINES,
        placeholder=" …",
    )


def failure(cell):
    """Say why a cell failed; None if it did not."""
    for output in cell.outputs:
        if output.output_type == "error":
            if output.ename == "NotImplementedError":
                return UNANSWERED
            if output.ename == "AssertionError" and output.evalue:
                return output.evalue
            return f"{output.ename}: {output.evalue}"
    ended = "shell.execute_reply" in cell.metadata.get("execution", {})
    return None if ended else "not run to its end, for the kernel died here or before"


def run(path):
    """Execute a notebook up to its plots, every part of a test as a cell of its own.

    Gives the cells with what each one is.
    """
    cells, heading, names = [], "", []
    for cell in nbformat.read(path, 4).cells:
        settings = cell.metadata.get("nbgrader", {})
        name = settings.get("grade_id", "a cell of yours")
        if cell.cell_type != "code":
            if not settings and (found := HEADING.findall(cell.source)):
                heading = found[-1].split(":")[0].rstrip("*.")
            if settings.get("grade") and "YOUR ANSWER HERE" in cell.source:
                cells.append(("unwritten", f"the text under “{heading}”", cell))
        elif settings.get("grade"):
            for points, sentence, source in parts(cell):
                cells.append(
                    (
                        "test",
                        (name.removesuffix("-test"), points, sentence),
                        across(source, names),
                    )
                )
        elif "experiment" in cell.metadata.get("tags", ()):
            if "YOUR CODE HERE" in cell.source:
                cells.append(("unwritten", f"the code under “{heading}”", cell))
        else:
            names += defined(cell.source) if settings.get("solution") else []
            cells.append(("code", name, nbformat.v4.new_code_cell(cell.source)))
    notebook = nbformat.v4.new_notebook(cells=[])
    for kind, _, cell in cells:  # what is not written has nothing to run
        run = (
            nbformat.v4.new_markdown_cell(cell.source) if kind == "unwritten" else cell
        )
        notebook.cells.append(run)
    resources = {"metadata": {"path": str(Path(path).parent)}}
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        interrupt_on_timeout=True,
        allow_errors=True,
        kernel_name="python3",
        resources=resources,
    )
    with suppress(DeadKernelError):
        client.execute()
    return [
        (kind, what, cell)
        for (kind, what, _), cell in zip(cells, notebook.cells, strict=True)
    ]


def summarise(path):
    """Print which parts of the tasks of a notebook pass."""
    print(f"\n{path}")
    passed = total = 0
    waiting = []
    for kind, what, cell in run(path):
        if kind == "unwritten":
            waiting.append(what)
        elif kind == "code":
            if reason := failure(cell):
                print(f"  ✗ {what}\n{wrapped(reason)}")
        else:
            task, points, sentence = what
            reason = failure(cell)
            total += points
            passed += points * (reason is None)
            sign = "✓" if reason is None else "·" if reason == UNANSWERED else "✗"
            unit = "points" if points != 1 else "point "
            print(f"  {sign} {task:20} {points:3g} {unit}  {sentence}".rstrip())
            if sign == "·":
                waiting.append(task)
            elif reason:
                print(wrapped(reason))
    print(
        f"  The visible tests of {passed:g} of {total:g} points pass. "
        "Grading runs more tests of the same tasks."
    )
    if waiting:
        print(
            textwrap.fill(
                f"Still to write: {'; '.join(dict.fromkeys(waiting))}.",
                WIDTH,
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
        )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        summarise(argument)
