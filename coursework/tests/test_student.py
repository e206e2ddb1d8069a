"""What a student has besides the notebooks: `make test`, which says of each part of
each task whether its visible tests pass.
"""

import dis
import os
import re
import shlex
import shutil
import subprocess
import sys
import types

import nbformat
import pytest

from coursework.engine import pairs
from coursework.engine.blocks import blocks, visible
from coursework.tests.running import find
from tools.book import chapters

STUB = "# YOUR CODE HERE\n    raise NotImplementedError()"


@pytest.fixture(scope="module")
def student_edition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student") / "edition"
    command = [sys.executable, "-m", "coursework", "release", str(folder)]
    result = subprocess.run(
        command, cwd=pairs.ROOT, capture_output=True, text=True, check=True
    )
    # and nothing of what nbgrader says
    assert (result.stdout, result.stderr) == (
        f"The student edition is at {folder}\n",
        "",
    )
    return folder


def cell_of(notebook, task):
    return next(cell for cell in notebook.cells if pairs.task_of(cell) == task)


def notebook_of(folder, name):
    return folder / name / f"{find(name).notebook}.ipynb"


def make(folder, *arguments):
    # These tests may run below a make, whose settings a student has not.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS"))
    } | {"PYTHONPATH": ""}
    command = [
        "make",
        "-s",
        f"python={shlex.quote(sys.executable)}",
        "installed=",
        *arguments,
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_model_solution_passes_part_by_part(student_edition):
    item = find("assignment_1")
    nbformat.write(item.read(), notebook_of(student_edition, "assignment_1"))
    result = make(student_edition, "test", "A=assignment_1")
    assert result.returncode == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    tests = [
        cell
        for cell in item.read().cells
        if cell.cell_type == "code" and cell.metadata.nbgrader.grade
    ]
    expected = [
        block
        for cell in tests
        for block in blocks(cell.source, cell.metadata.nbgrader.points)
    ]
    ticked = [line for line in lines if line.startswith("  ✓")]
    assert len(ticked) == len(expected)
    assert all(
        line.endswith(block.sentence)
        for line, block in zip(ticked, expected, strict=True)
    )
    assert "The visible tests of 60 of 60 points pass." in result.stdout
    for unwanted in ("✗", "assignment_2", "Still to write"):
        assert unwanted not in result.stdout


def test_what_does_not_pass_is_said_in_a_line(student_edition):
    path = notebook_of(student_edition, "assignment_2")
    notebook = nbformat.read(path, 4)
    answers = {
        "minibatch": "return position",
        "settings": "return math.sqrt(learning_rate), momentum_decay, 'much ' * 100",
        "estimate": "import os\n    os._exit(1)",
    }
    for task, answer in answers.items():
        cell = cell_of(notebook, task)
        assert STUB in cell.source
        cell.source = cell.source.replace(STUB, answer)
    cell_of(notebook, "variance").source = "def noise_variance(:"
    cell_of(notebook, "variance-question").source = "An answer."
    nbformat.write(notebook, path)
    result = make(student_edition, "test", "A=assignment_2")
    assert result.returncode == 0 and "Traceback" not in result.stdout + result.stderr
    assert (
        "  ✗ minibatch              3 points  one chain, by hand\n    the gradient at "
        "θ = 2" in result.stdout
    )
    assert "  ✗ variance\n    SyntaxError: " in result.stdout
    # from the test of the third task on
    assert (
        result.stdout.count("not run to its end, for the kernel died here or before")
        >= 8
    )
    assert "The visible tests of 0 of 60 points pass." in result.stdout
    unwritten = result.stdout.partition("Still to write:")[2]
    assert "Question 1" not in unwritten
    for waits in ("Question 2", "code under “7 Plot”", "text under “7 Plot”"):
        assert waits in " ".join(unwritten.split())
    assert max(map(len, result.stdout.splitlines())) < 120


def test_one_assignment_is_partly_right(student_edition):
    path = notebook_of(student_edition, "assignment_3")
    notebook = nbformat.read(path, 4)
    model = find("assignment_3").read()
    for task in ("repair", "path"):
        cell_of(notebook, task).source = cell_of(model, task).source
    cell_of(notebook, "repair").source = cell_of(model, "repair").source.replace(
        "-(1 - 1 / temperature)", "(1 - 1 / temperature)"
    )
    nbformat.write(notebook, path)
    result = make(student_edition, "test", "A=assignment_3")
    assert "  ✓ repair                 5 points  the diagnosis\n" in result.stdout
    assert (
        "  ✗ repair                 7 points  the weights\n    on a path that is too "
        "hot" in result.stdout
    )
    assert (
        "  · transition " in result.stdout
        and "states of low energy need more weight\n" in result.stdout
    )
    assert re.search(r"Still to write: .*\btransition; ", result.stdout, re.S)
    assert "The visible tests of 17 of 60 points pass." in result.stdout


def test_without_make_the_package_beside_the_assignments_is_found(student_edition):
    for folder, root in (
        (student_edition / "assignment_1", student_edition),
        (pairs.ROOT / "coursework" / "assignments", pairs.ROOT),
    ):
        # This environment may know a checkout of the book: here it is forgotten.
        forget = (
            "import pathlib, sys; sys.path = [path for path in sys.path if not "
            "pathlib.Path(path, 'sgmc').exists()]"
        )
        command = [
            sys.executable,
            "-c",
            f"{forget}\nimport checks, sgmc\nprint(sgmc.__file__)",
        ]
        result = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == str(root.resolve() / "sgmc" / "__init__.py")


def test_an_assignment_that_is_not_there(student_edition):
    result = make(student_edition, "test", "A=assignment_7")
    assert result.returncode != 0 and "There is no notebook in" in result.stdout


SEE = re.compile(r"See (.*)\.")
CHAPTER = re.compile(r"\*([^*]+)\*((?:(?:, | and )“[^”]+”)+)")


def test_every_task_names_chapters_and_sections_that_exist():
    sections = {}
    for path in chapters():
        title, *others = re.findall(r"^# ##? (.+)$", path.read_text(), re.M)
        sections[title] = others
    for item in pairs.assignments():
        text = "\n".join(
            cell.source for cell in item.read().cells if cell.cell_type == "markdown"
        )
        named = [
            CHAPTER.findall(line[1])
            for line in map(SEE.fullmatch, text.splitlines())
            if line
        ]
        assert len(named) == sum(
            pairs.task_of(cell).endswith("-test")
            for cell in item.read().cells
            if pairs.task_of(cell)
        )
        for chapter, quoted in [pair for line in named for pair in line]:
            assert chapter in sections, f"{item.name} names the chapter {chapter!r}"
            assert set(re.findall("“([^”]+)”", quoted)) <= set(sections[chapter]), (
                f"{item.name} names sections of {chapter!r}"
            )


def test_the_summary_splits_tests_as_grading_does(student_edition):
    script = shutil.copy(
        student_edition / "summary.py", student_edition / "summary_of_tests.py"
    )
    namespace = {"__name__": "summary"}
    exec(compile(open(script).read(), str(script), "exec"), namespace)
    for item in pairs.assignments():
        for cell in item.read().cells:
            if cell.cell_type == "code" and cell.metadata.nbgrader.grade:
                cell.source = visible(cell.source)
                split = blocks(cell.source, cell.metadata.nbgrader.points)
                assert [
                    (points, sentence)
                    for points, sentence, _ in namespace["parts"](cell)
                ] == [block[:2] for block in split]


def names(source):
    """List what a source reads of names that it has not bound before, and what it
    binds.
    """

    def within(code):  # functions, which read what is there when they are called
        inner = [
            within(constant)
            for constant in code.co_consts
            if isinstance(constant, types.CodeType)
        ]
        return {
            one.argval
            for one in dis.get_instructions(code)
            if one.opname == "LOAD_GLOBAL"
        }.union(*inner)

    read, bound = set(), set()
    for one in dis.get_instructions(compile(source, "a part", "exec")):
        if one.opname == "STORE_NAME":
            bound.add(one.argval)
        elif one.opname == "LOAD_NAME":
            read |= {one.argval} - bound
        elif isinstance(one.argval, types.CodeType):
            read |= within(one.argval) - bound
    return read, bound


def test_names_are_read_and_bound():
    assert names("a, b = f(a), [k for k in range(3)]\nc = a + b") == (
        {"f", "a", "range"},
        {"a", "b", "c"},
    )
    assert names("x = 1\ndef g(y):\n    return x + y + z\nx = lambda: w") == (
        {"z", "w"},
        {"x", "g"},
    )


@pytest.mark.parametrize("item", pairs.assignments(), ids=lambda item: item.name)
def test_no_part_of_a_test_reads_what_an_earlier_part_has_bound(item):
    # Grading runs every part behind the cell's head alone, a notebook one part after
    # the other: both must see the same.
    split = 0
    for cell in item.read().cells:
        if cell.cell_type == "code" and cell.metadata.nbgrader.grade:
            earlier = set()
            for part in re.split(r"^# POINTS .*$", cell.source, flags=re.M)[1:]:
                read, bound = names(part)
                assert read & earlier == set(), (
                    f"a part of {pairs.task_of(cell)} reads what an earlier one has "
                    "bound"
                )
                earlier |= bound
                split += 1
    assert split > 6
