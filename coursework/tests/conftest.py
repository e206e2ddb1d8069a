"""What the tests of the coursework share."""

import shutil
from pathlib import Path

import pytest

from coursework.engine import edition
from coursework.tests.small import SMALL
from tests.conftest import pytest_runtest_makereport  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """Make a tree with one small assignment."""
    root = tmp_path_factory.mktemp("course")
    folder = root / "coursework" / "assignments"
    (folder / "assignment_1").mkdir(parents=True)
    (folder / "assignment_1" / "small.py").write_text(SMALL)
    (folder / "assignment_1" / "data.csv").write_text("1,2\n")
    shutil.copy(ROOT / "coursework" / "assignments" / "checks.py", folder)
    shutil.copytree(ROOT / "coursework" / "assignments" / "student", folder / "student")
    (root / "sgmc").mkdir()
    (root / "booklib").mkdir()
    for name in ("constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, root)
    edition.release(root / "student", root)
    return root
