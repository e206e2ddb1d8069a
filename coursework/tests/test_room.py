"""The coursework as a room of the house: what it imports, how large it is, and that its
notebooks are plain nbgrader.
"""

import ast
import difflib
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from coursework.engine import edition, grading, pairs
from tools.notebooks import as_saved

ROOM = Path(__file__).resolve().parents[1]
ENGINE = [*ROOM.glob("*.py"), *(ROOM / "engine").glob("*.py")]
TESTS = [
    path
    for path in (ROOM / "tests").glob("*.py")
    if "assignment" not in path.name  # planted answers, and
    and path.name not in ("planted.py", "running.py")  # what tries them
]


def lines_of_code(path):
    """Count the lines of a file without docstrings, comments and blank lines."""
    source, found, docstrings = path.read_text(), set(), set()
    layout = ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")
    for node in ast.walk(ast.parse(source)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            first = node.body[0]
            docstrings |= {*range(first.lineno, first.end_lineno + 1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if tokenize.tok_name[token.type] not in layout:
            found |= {*range(token.start[0], token.end[0] + 1)}
    return len(found - docstrings)


def test_the_room_is_small():
    assert sum(map(lines_of_code, ENGINE)) <= 2_050
    assert sum(map(lines_of_code, TESTS)) <= 2_500


def test_the_engine_imports_nothing_of_the_package():
    for path in ENGINE:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in getattr(node, "names", [])]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert not any(name.split(".")[0] == "sgmc" for name in names), path


def test_the_notebooks_are_in_step_with_their_scripts():
    assert pairs.out_of_step() == {}


@pytest.mark.parametrize("item", pairs.assignments(), ids=lambda item: item.name)
def test_a_script_is_what_jupytext_writes_and_fits_the_page(item):
    before, after = item.source.read_text(), as_saved(item.source)
    assert list(difflib.unified_diff(before.split("\n"), after.split("\n"), n=0)) == []
    cells = [cell for cell in item.read().cells if cell.cell_type == "code"]
    lines = [line for cell in cells for line in cell.source.split("\n")]
    assert [line for line in lines if len(line) > 88] == []


@pytest.mark.parametrize("item", pairs.assignments(), ids=lambda item: item.name)
def test_every_code_cell_has_an_id_and_points_add_up(item):
    cells = item.read().cells
    ids = [pairs.task_of(cell) for cell in cells if pairs.task_of(cell)]
    assert len(ids) == len(set(ids))
    assert all(pairs.task_of(cell) for cell in cells if cell.cell_type == "code")
    settings = [cell.metadata.get("nbgrader", {}) for cell in cells]
    assert sum(one.points for one in settings if one.get("grade")) == 100


def nbgrader(folder, *words):
    command = [sys.executable, "-m", "nbgrader", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nbgrader_itself_releases_the_exported_sources(course, tmp_path):
    edition.course(tmp_path, course)
    (tmp_path / "nbgrader_config.py").write_text(grading.SETTINGS)
    environment = Path(sys.executable).parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{environment}:/usr/bin:/bin")
        nbgrader(tmp_path, "generate_assignment", "assignment_1", "--create")
    ours, theirs = (
        nbformat.read(folder / "assignment_1" / "small.ipynb", 4)
        for folder in (course / "student", tmp_path / "release")
    )
    assert [one.source for one in ours.cells] == [one.source for one in theirs.cells]


def test_names_and_dates_are_entered_by_nbgraders_own_commands(course, tmp_path):
    grading.grade(tmp_path, None, course)
    people = "id,last_name,first_name,email\nann,Lee,Ann,ann@example.org\n"
    (tmp_path / "roster.csv").write_text(people)
    nbgrader(tmp_path, "db", "student", "import", "roster.csv")
    due = "--duedate=2026-11-02T23:59+01:00"
    nbgrader(tmp_path, "db", "assignment", "add", "assignment_1", due)
    grading.grade(tmp_path, None, course)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}", "sgmc") as book:
        assert book.find_student("ann").last_name == "Lee"
        moment = book.find_assignment("assignment_1").duedate
        assert f"{moment:%Y-%m-%d %H:%M}" == "2026-11-02 22:59"
