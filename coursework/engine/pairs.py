"""The assignments of the course: each a percent script and the notebook beside it."""

from pathlib import Path
from typing import NamedTuple

import nbformat

from tools.notebooks import from_source

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sgmc", "booklib")  # what the assignments import


class Assignment(NamedTuple):
    """A folder ``coursework/assignments/NAME`` with one percent script, and files that
    its notebook reads.
    """

    name: str
    source: Path

    @property
    def notebook(self) -> str:
        """Name the notebook as nbgrader does, without its suffix."""
        return self.source.stem

    def read(self) -> nbformat.NotebookNode:
        """Read the instructor's notebook."""
        return from_source(self.source)

    def files(self) -> list[Path]:
        """List what goes with the notebook: the checks, and the assignment's data."""
        beside = sorted(self.source.parent.iterdir())
        others = [one for one in beside if one.is_file() and one.stem != self.notebook]
        return [self.source.parents[1] / "checks.py", *others]


def assignments(root: Path = ROOT) -> list[Assignment]:
    """List the assignments of a tree."""
    found = sorted((root / "coursework" / "assignments").glob("assignment_*/*.py"))
    return [Assignment(path.parent.name, path) for path in found]


def out_of_step(root: Path = ROOT) -> dict[Path, str]:
    """Give the notebooks that are not what their scripts say, with what they should
    hold.
    """
    wanted = {
        item.source.with_suffix(".ipynb"): nbformat.writes(item.read()) + "\n"
        for item in assignments(root)
    }
    return {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text() != text
    }


def task_of(cell) -> str | None:
    """Give the nbgrader id of a cell."""
    settings = cell.get("metadata", {}).get("nbgrader")
    return settings.get("grade_id") if isinstance(settings, dict) else None
