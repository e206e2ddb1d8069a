"""Write the student edition, with nbgrader."""

import functools
import shutil
import tempfile
from pathlib import Path

import nbformat
import nbgrader.api
from alembic.script import ScriptDirectory
from nbgrader.apps import NbGraderAPI
from nbgrader.dbutil import ALEMBIC_DIR
from traitlets.config import Config

from tools.coursework.pairs import PACKAGES, ROOT, assignments


@functools.cache
def version_of_gradebooks() -> str:
    """Read the version of nbgrader's tables."""
    return ScriptDirectory(ALEMBIC_DIR).get_current_head()


# its own starts another process for it, which takes longer than all the rest
nbgrader.api.get_alembic_version = version_of_gradebooks


def course(folder: Path, root: Path = ROOT) -> Config:
    """Lay out a course directory of nbgrader with the instructor's notebooks in
    ``source``; return nbgrader's settings for it.
    """
    for item in assignments(root):
        source = folder / "source" / item.name
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir(parents=True)
        notebook = item.read()
        # with it JupyterLab would write a script beside each notebook that is saved
        notebook.metadata.pop("jupytext", None)
        nbformat.write(notebook, source / f"{item.notebook}.ipynb")
        for path in item.files():
            shutil.copy(path, source)
    config = Config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.course_id = "sgmc"
    config.Application.log_level = "WARNING"
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
    shutil.copytree(
        root / "book" / "assignments" / "student", target, dirs_exist_ok=True
    )
    for name in PACKAGES:
        shutil.copytree(
            root / name, target / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("requirements.txt", "constraints.txt", "LICENSE"):
        shutil.copy(root / name, target)
    print(f"The student edition is at {target}")
