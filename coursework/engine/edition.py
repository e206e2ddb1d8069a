"""Write the student edition, and a source tree for nbgrader."""

import shutil
import tempfile
from pathlib import Path

import nbformat
import nbgrader.api
from alembic.script import ScriptDirectory
from nbgrader.apps import NbGraderAPI
from nbgrader.dbutil import ALEMBIC_DIR
from traitlets.config import Config

from coursework.engine.pairs import PACKAGES, ROOT, Assignment, assignments

# nbgrader's own looks for the command alembic, which is found where the environment is
# activated only
nbgrader.api.get_alembic_version = ScriptDirectory(ALEMBIC_DIR).get_current_head


def course(folder: Path, root: Path = ROOT) -> Config:
    """Lay out a course directory of nbgrader with the instructor's notebooks in
    ``source``; give nbgrader's settings for it.
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


def release_notebooks(
    folder: Path, root: Path = ROOT
) -> dict[Assignment, nbformat.NotebookNode]:
    """Have nbgrader write the notebooks without solutions and hidden tests into
    ``folder / "release"``; give them.

    Raises:
        RuntimeError: if nbgrader refuses an assignment.
    """
    api, released = NbGraderAPI(config=course(folder, root)), {}
    for item in assignments(root):
        result = api.generate_assignment(item.name, force=True)
        if not result["success"]:
            raise RuntimeError(f"{result.get('error') or ''}{result.get('log') or ''}")
        path = folder / "release" / item.name / f"{item.notebook}.ipynb"
        released[item] = nbformat.read(path, 4)
    return released


def release(target: Path, root: Path = ROOT) -> None:
    """Write the student edition."""
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        release_notebooks(Path(folder), root)
        shutil.copytree(Path(folder) / "release", target)
    student, unwanted = root / "coursework" / "assignments" / "student", "__pycache__"
    shutil.copytree(student, target, dirs_exist_ok=True)
    for name in PACKAGES:
        ignored = shutil.ignore_patterns(unwanted)
        shutil.copytree(root / name, target / name, ignore=ignored)
    codec = Path(__file__).with_name("codec.py")  # the border's, for the tests at home
    for path in (root / "constraints.txt", root / "LICENSE", codec):
        shutil.copy(path, target)
    print(f"The student edition is at {target}")
