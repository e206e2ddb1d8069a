"""What the tests of the coursework share."""

import shutil
from pathlib import Path

import pytest

from tests.assignments.small import SMALL
from tools.coursework import edition

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """Make a tree with one small assignment."""
    root = tmp_path_factory.mktemp("course")
    folder = root / "book" / "assignments"
    (folder / "assignment_1").mkdir(parents=True)
    (folder / "assignment_1" / "small.py").write_text(SMALL)
    (folder / "assignment_1" / "data.csv").write_text("1,2\n")
    shutil.copy(ROOT / "book" / "assignments" / "checks.py", folder)
    shutil.copytree(ROOT / "book" / "assignments" / "student", folder / "student")
    (root / "sgmc").mkdir()
    (root / "booklib").mkdir()
    for name in ("requirements.txt", "constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, root)
    edition.release(root / "student", root)
    return root
