"""The package by itself: installed elsewhere, and one way of the imports."""

import ast
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from pybtex.database import parse_file

import sgmc

ROOT = Path(__file__).resolve().parents[2]
# of the core; executed by an import of SGHMC and sample
MOST_FILES, MOST_MODULES = 30, 23
# Lines of code: of what a sampler is, of the loop and what checks a run before and
# after it, and of the package. What they should be is 1,900, 1,050 and 5,700.
MOST_OF_SAMPLERS, MOST_OF_DOOR, MOST_OF_ALL = 1_900, 1_304, 5_909
WORK = """
import sys
import torch
from sgmc import sample
from sgmc.kernels import NUTS
from sgmc.targets import Gaussian
from sgmc.tuning import adapt
import sgmc
assert sgmc.__file__.startswith(FOLDER), sgmc.__file__
kernel, position = adapt(NUTS(1.0), Gaussian.standard(2), torch.zeros(4, 2), 20)
assert sample(kernel, Gaussian.standard(2), position, 5).samples.shape == (5, 4, 2)
assert not {"arviz", "matplotlib", "mlxtend", "pyro", "torchvision"} & set(sys.modules)
"""


@pytest.mark.slow
def test_an_installed_package_works_outside_of_the_repository(tmp_path):
    source = tmp_path / "source"  # a copy, for a build leaves its traces
    shutil.copytree(
        ROOT / "sgmc", source / "sgmc", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        "--target",
        str(tmp_path / "site"),
        str(source),
    ]
    subprocess.run(
        [sys.executable, *build], check=True, cwd=tmp_path, env={"HOME": str(tmp_path)}
    )
    work = (
        f"import sys; FOLDER = {str(tmp_path / 'site')!r}; sys.path.insert(0, "
        f"FOLDER)\n{WORK}"
    )
    subprocess.run(
        [sys.executable, "-c", work],
        check=True,
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
    )


# The core. Whatever stands in a row may import from its own row and the rows before it.
CORE = [
    ["checks"],
    ["randomness", "matrices"],
    ["minibatches", "potentials"],
    ["integrators", "noise", "posteriors"],
    ["kernels"],
    ["door"],
]
# Rooms beside it, which import the core and none of the others but the test densities.
ROOMS = [
    "arviz",
    "checkpoints",
    "compiled",
    "diagnostics",
    "disk",
    "models",
    "other_kernels",
    "predictions",
    "splittings",
    "targets",
    "tuning",
]


# Rooms that the core opens within a function, where they are needed.
ON_DEMAND = {("door", room) for room in ("arviz", "checkpoints", "diagnostics")}


def imported(path):
    """List the modules that a file imports, at its head or within a function, as their
    dotted names.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_point_one_way():
    row = {name: number for number, names in enumerate(CORE) for name in names}
    assert {
        path.stem
        for path in (ROOT / "sgmc").iterdir()
        if not path.name.startswith("_") and path.suffix in ("", ".py")
    } == {*row, *ROOMS}
    for path in sorted((ROOT / "sgmc").rglob("*.py")):
        place = path.relative_to(ROOT / "sgmc").parts[0].removesuffix(".py")
        for module in imported(path):
            parts = module.split(".")
            assert parts[0] not in (
                "booklib",
                "conformance",
                "experiments",
                "book",
                "tests",
                "tools",
                "benchmarks",
            ), f"{path} imports {module}"
            if parts[0] == "sgmc" and place != "__init__" and parts[1] != place:
                right = (
                    parts[1] in {*row, "targets"}
                    if place in ROOMS
                    else row.get(parts[1], len(row)) <= row[place]
                )
                right |= (place, parts[1]) in ON_DEMAND
                assert right or module == "sgmc.sample", (
                    f"{path.relative_to(ROOT)} imports {module}"
                )


# Rooms of booklib, and which of the others each may import; numbers are written alike
# in all of them.
BOOKLIB = {
    "numbers": set(),
    "page": {"numbers"},
    "scores": {"numbers"},
    "data": set(),
    "models": set(),
    "rivals": {"scores"},
    "runs": {"numbers", "scores", "data", "models"},
}
# What lies above booklib, and imports from it.
ABOVE_BOOKLIB = {"conformance", "experiments", "benchmarks", "tools", "tests"}


def test_rooms_of_booklib_import_what_is_below_them():
    folder = ROOT / "booklib"
    assert {
        path.stem
        for path in folder.iterdir()
        if not path.name.startswith("_") and path.suffix in ("", ".py")
    } == set(BOOKLIB)
    for path in sorted(folder.glob("*/*.py")):
        room = path.parent.name
        for module in imported(path):
            first, second, *_ = [*module.split("."), ""]
            assert first not in ABOVE_BOOKLIB | {"book"}, f"{path} imports {module}"
            if first == "booklib" and second in BOOKLIB:
                assert second in BOOKLIB[room] | {room}, f"{path} imports {module}"


def test_no_file_opens_a_path_of_a_room_above_it():
    """But for the folder of stored results, which has one name."""
    above = {
        "sgmc": ABOVE_BOOKLIB | {"booklib", "book"},
        "booklib": ABOVE_BOOKLIB | {"book"},
        "experiments": {"tools", "tests", "book"},
    }
    named = {
        (str(path.relative_to(ROOT)), node.right.value)
        for room, names in above.items()
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.right, ast.Constant)
        and str(node.right.value).split("/")[0] in names
    }
    assert named == {("booklib/runs/results.py", "book")}


def test_every_public_function_and_class_has_an_example():
    """``make units`` executes them, by ``--doctest-modules``."""
    without = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in sorted((ROOT / "sgmc").rglob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and (">>> " not in (text := ast.get_docstring(node) or "") or "SKIP" in text)
    ]
    assert without == []


def test_chapters_import_no_experiment():
    for path in sorted((ROOT / "book").glob("*/*.py")):
        assert not any(module.startswith("experiments") for module in imported(path))


def lines_of_code(path):
    """Count the lines that are neither blank, comment nor docstring."""
    source, found = path.read_text(), set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.string.strip() and token.type != tokenize.COMMENT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            found -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(found)


def test_the_core_is_small_and_imports_itself_alone():
    core = [
        path
        for path in (ROOT / "sgmc").rglob("*.py")
        if path.relative_to(ROOT / "sgmc").parts[0].removesuffix(".py") not in ROOMS
    ]
    assert len(core) <= MOST_FILES
    own = {ROOT / "sgmc" / "__init__.py", ROOT / "sgmc" / "checks.py"}
    door = [path for path in core if path.parent.name == "door" or path in own]
    of_door = sum(map(lines_of_code, door))
    assert of_door <= MOST_OF_DOOR
    assert sum(map(lines_of_code, core)) - of_door <= MOST_OF_SAMPLERS
    assert sum(map(lines_of_code, (ROOT / "sgmc").rglob("*.py"))) <= MOST_OF_ALL
    code = (
        "import sys; from sgmc import sample; from sgmc.kernels import SGHMC; "
        "print(*(m for m in sys.modules if m.startswith('sgmc')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    executed = run.stdout.split()
    assert len(executed) <= MOST_MODULES
    assert not [
        module
        for module in executed
        if module.split(".")[1:2] and module.split(".")[1] in ROOMS
    ]


def test_the_first_page_of_the_reference_has_the_names_that_the_package_offers():
    page = ROOT / "book" / "appendix" / "api.md"
    names = re.findall(r"`(\w+) <sgmc\.[\w.]*\.\1>` \|$", page.read_text(), re.M)
    assert len(names) == 10 and sorted(names) == sorted(sgmc.__all__)
    for name in names:
        assert getattr(sgmc, name).__name__ == name
    done = doctest.testfile(str(page), module_relative=False)
    assert done.failed == 0 and done.attempted > 20
    with pytest.raises(ImportError, match="sampel"):
        exec("from sgmc import sampel", {})


def test_the_version_is_the_same_everywhere():
    version = re.escape(sgmc.__version__)
    for name, line in (
        ("pyproject.toml", f'version = "{version}"'),
        ("CITATION.cff", f"version: {version}"),
    ):
        assert re.search(f"^{line}$", (ROOT / name).read_text(), re.M), name
    assert f"\n## {sgmc.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_kernels_know_potentials_only():
    for path in sorted((ROOT / "sgmc" / "kernels").glob("*.py")):
        assert not {module.rpartition(".")[0] for module in imported(path)} & {
            "sgmc.posteriors",
            "sgmc.door.sampling",
            "sgmc.door.draws",
        }, path


def public_names(module):
    """List the functions and classes that a module defines and does not hide."""
    found = {
        name: thing for name, thing in vars(module).items() if not name.startswith("_")
    }
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    }


def test_every_public_name_is_on_one_page_of_the_reference():
    shown = []
    for path in sorted((ROOT / "book" / "appendix" / "api").glob("*.md")):
        text = path.read_text()
        for name in re.findall(r"automodule:: (sgmc\S*)\n   :members:\n", text):
            shown += public_names(importlib.import_module(name)).values()
        for name in re.findall(r"auto(?:class|function):: (sgmc\S*)\n", text):
            module, _, thing = name.rpartition(".")
            shown.append(getattr(importlib.import_module(module), thing))
    assert len(shown) == len(set(shown))
    modules = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(sgmc.__path__, "sgmc.")
        if "._" not in info.name
    ]
    missing = [
        f"{module.__name__}.{name}"
        for module in modules
        for name, thing in public_names(module).items()
        if thing not in shown
    ]
    assert missing == []


# A, B and C (2000)
SOURCE = re.compile(
    r"((?:[A-Z][\w-]+, )*[A-Z][\w-]+)(?:,? and ([A-Z][\w-]+)|( et al\.))?,? "
    r"\(?((?:18|19|20)\d\d)\b"
)


def test_every_source_that_is_named_is_in_the_references_and_a_page_cites_it():
    pages = [
        path for path in (ROOT / "book").rglob("*") if path.suffix in (".py", ".md")
    ]
    cited = " ".join(
        found
        for path in pages
        for found in re.findall(r"\{cite:\w+\}`([^`]+)`", path.read_text())
    )
    known = []
    for key, entry in parse_file(ROOT / "book" / "references.bib").entries.items():
        authors = [
            "".join(map(str, person.rich_last_names)).split()[-1]
            for person in entry.persons["author"]
        ]
        if re.search(rf"\b{key}\b", cited):
            known.append((authors, entry.fields["year"]))
    missing = []
    for path in sorted(
        path
        for folder in ("sgmc", "experiments", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ):
        for found in SOURCE.finditer(" ".join(path.read_text().split())):
            first, last, others, year = found.groups()
            names = [*first.split(", "), *([last] if last else [])]
            if not any(
                year == when and names == (authors[: len(names)] if others else authors)
                for authors, when in known
            ):
                missing.append(f"{path.relative_to(ROOT)}: {found[0]}")
    assert missing == []
