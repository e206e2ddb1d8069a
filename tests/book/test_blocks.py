"""What is meant to be copied needs the wheel alone.

The visible cells of a page of *Practice* import nothing that the wheel and
requirements.txt do not have. The python blocks of the README, and each block named
block-sgmc-WHAT, run in an empty folder, without the checkout. A page is added by its
name in PAGES.

Blocks of other libraries are run by make blocks; here each has a stored result.
"""

import ast
import os
import re
import subprocess
import sys
import sysconfig

import pytest

from booklib.runs.results import read_result
from tests.book.test_readme import README
from tests.book.test_visible_code import visible
from tools import blocks, book

PAGES = (
    "my_layer",
    "my_model",
    "my_targets",
    "recipes",
    "recipes_networks",
    "step_cost",
    "tuning",
    "tuning_hmc",
    "when_it_goes_wrong",
)
BLOCKS = {"README": "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))}
BLOCKS |= {  # a short run: what a whole one printed is stored
    name: re.sub(r"\b(500|1_000)\b", "20", block.code)
    for name, block in blocks.blocks().items()
    if block.library == "sgmc"
}


@pytest.fixture(scope="session")
def run_alone(tmp_path_factory):
    """Return a function that runs a script with the wheel alone and gives its output.

    Python starts without the environment's .pth files, one of which has the checkout.
    """
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    pip += ["--no-build-isolation", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*pip, "--target", folder, book.ROOT], check=True)
    paths = [str(folder), sysconfig.get_path("purelib")]

    def run(code):
        script = tmp_path_factory.mktemp("script") / "copied.py"
        script.write_text(f"import sys\nsys.path[:0] = {paths}\n{code}")
        done = subprocess.run(
            [sys.executable, "-I", "-S", script],
            cwd=tmp_path_factory.mktemp("empty"),
            env=os.environ | {"MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_package_is_of_the_wheel_and_the_checkout_is_not_there(run_alone):
    found = run_alone(
        "from importlib.util import find_spec\n"
        "print(find_spec('sgmc').origin.startswith(sys.path[0]))\n"
        "print([find_spec(name) for name in ('booklib', 'experiments', 'tests')])"
    )
    assert found.splitlines() == ["True", "[None, None, None]"]


@pytest.mark.parametrize("page", PAGES)
def test_the_visible_cells_of_a_page_need_the_wheel_alone(page):
    """They ran as cells of their page, and have all their names
    (``test_visible_code.py``).
    """
    imports = re.findall(r"^ *(?:from|import) (\w+)", visible(page), re.MULTILINE)
    ours = {path.name for path in book.ROOT.iterdir() if path.is_dir()}
    assert "sgmc" in imports and not ours & set(imports) - {"sgmc"}


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_runs_from_the_wheel(name, run_alone):
    assert run_alone(BLOCKS[name]), "nothing is printed"


SYMPTOMS = (book.ROOT / "book" / "practice" / "when_it_goes_wrong.py").read_text()
YOURS = {"draws", "module", "posterior", "start"}  # what a reader has who copies a line


def bound(code):
    """Names that a piece of code imports, defines or assigns."""
    nodes = list(ast.walk(ast.parse(code)))
    kinds = ast.Import | ast.ImportFrom
    imports = [name for node in nodes if isinstance(node, kinds) for name in node.names]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    stored = [
        n.id for n in nodes if isinstance(n, ast.Name) and type(n.ctx) is ast.Store
    ]
    return {name.asname or name.name for name in imports} | {*functions, *stored}


def called(code):
    """Names that a line calls, or calls something of; none if it is no code."""
    try:
        nodes = ast.walk(ast.parse(code))
    except SyntaxError:
        return set()
    calls = [ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)]
    return {re.match(r"\w*", name)[0] for name in calls} - {""}


def test_the_line_of_a_remedy_has_its_names():
    """They are imported in its section, or in the page's first cell."""
    first, *sections = re.split(r"^# \([\w-]+\)=$", SYMPTOMS, flags=re.M)
    script = lambda text: re.sub(r"^#.*$", "", text, flags=re.M)
    assert len(sections) > 20
    for section in sections:
        lines = re.sub(r"\* \*Why.\*.*(\n#   .*)*", "", section)
        lines = re.findall(r"`+([^`]+)`+", lines)
        imports = [line for line in lines if re.match("from |import ", line)]
        known = bound("\n".join([script(first), script(section), *imports])) | YOURS
        missing = {name for line in lines for name in called(line)} - known
        assert not missing, f"{missing} in {section.strip()[:60]}"


def test_each_block_of_another_library_ran_as_it_stands():
    stored = read_result(blocks.STORED)["blocks"]
    found = blocks.blocks()
    missing = [
        name
        for name, block in found.items()
        if stored.get(name, {}).get("hash") != block.hash
    ]
    assert not missing, "run make blocks"
    assert all(stored[name]["output"] for name in found), "a block shows its result"


PAGE = """# %% [markdown]
# ```{code-block} python
# :name: block-numpyro-NAME
# # a comment
# print(1)
#
# print(2)
# ```
#
# ```{code-block} python
# :caption: Not run here: it needs a compiler.
# :name: block-numpyro-other
#
# print(3)
# ```
"""


def test_blocks_are_found_by_name_unless_they_are_marked_as_not_run(tmp_path):
    (tmp_path / "page.py").write_text(PAGE)
    code = "# a comment\nprint(1)\n\nprint(2)\n"
    found = blocks.blocks(tmp_path)
    assert found == {"block-numpyro-NAME": ("numpyro", code)}
    assert found["block-numpyro-NAME"].hash != blocks.Block("pymc", code).hash


def test_a_block_of_an_unknown_library_or_with_a_name_twice_is_an_error(tmp_path):
    (tmp_path / "page.py").write_text(PAGE.replace("numpyro-NAME", "nothing-x"))
    with pytest.raises(ValueError, match=r"block-nothing-x.*numpyro"):
        blocks.blocks(tmp_path)
    for name in "one.py", "two.py":
        (tmp_path / name).write_text(PAGE)
    (tmp_path / "page.py").unlink()
    with pytest.raises(ValueError, match="block-numpyro-NAME"):
        blocks.blocks(tmp_path)
