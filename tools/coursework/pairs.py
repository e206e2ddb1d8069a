"""The assignments of the course: each a percent script and the notebook beside it."""

from pathlib import Path
from typing import NamedTuple

import nbformat

from tools.notebooks import from_source

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sgmc", "booklib")  # what the assignments import


class Assignment(NamedTuple):
    """An assignment: a folder ``book/assignments/NAME`` with one percent script, and
    files that its notebook reads.
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
        others = [
            path
            for path in sorted(self.source.parent.iterdir())
            if path.is_file() and path.stem != self.source.stem
        ]
        return [self.source.parents[1] / "checks.py", *others]


def assignments(root: Path = ROOT) -> list[Assignment]:
    """List the assignments of a tree."""
    return [
        Assignment(path.parent.name, path)
        for path in sorted((root / "book" / "assignments").glob("assignment_*/*.py"))
    ]


def pairs(root: Path = ROOT) -> dict[Path, str]:
    """Say what the notebook of every assignment should hold."""
    return {
        item.source.with_suffix(".ipynb"): nbformat.writes(item.read()) + "\n"
        for item in assignments(root)
    }


def problems(root: Path = ROOT) -> list[str]:
    """List the pairs that are out of step."""
    return [
        f"{path.relative_to(root)} and its source are out of step: run make sync"
        for path, text in pairs(root).items()
        if not path.exists() or path.read_text() != text
    ]


def sync(root: Path = ROOT) -> None:
    """Write every assignment's notebook from its percent script."""
    for path, text in pairs(root).items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote {path.relative_to(root)}")


def task_of(cell) -> str | None:
    """Give the nbgrader id of a cell."""
    settings = cell.get("metadata", {}).get("nbgrader")
    return settings.get("grade_id") if isinstance(settings, dict) else None
