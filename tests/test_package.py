"""The package by itself: installed elsewhere, and one way of the imports."""

import ast
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pybtex.database import parse_file

import sgmc

ROOT = Path(__file__).resolve().parents[1]
WORK = """
import torch
from sgmc.tuning import adapt
from booklib.claims import claim
from sgmc import sample
from booklib.datasets import digits
from booklib.figures import use_style
from sgmc.kernels import NUTS
from sgmc.targets import Gaussian
import sgmc
assert sgmc.__file__.startswith(FOLDER), sgmc.__file__
use_style()
kernel, position = adapt(NUTS(1.0), Gaussian.standard(2), torch.zeros(4, 2), 20)
assert sample(kernel, Gaussian.standard(2), position, 5).samples.shape == (5, 4, 2) and len(digits()[0].targets) == 4000
"""


@pytest.mark.slow
def test_an_installed_package_works_outside_of_the_repository(tmp_path):
    source = tmp_path / "source"  # a copy, for a build leaves its traces
    shutil.copytree(ROOT / "sgmc", source / "sgmc", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = ["-m", "pip", "install", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(tmp_path / "site"), str(source)]
    subprocess.run([sys.executable, *build], check=True, cwd=tmp_path, env={"HOME": str(tmp_path)})
    work = f"import sys; FOLDER = {str(tmp_path / 'site')!r}; sys.path.insert(0, FOLDER)\n{WORK}"
    subprocess.run([sys.executable, "-c", work], check=True, cwd=tmp_path, env={"HOME": str(tmp_path)})


# Whatever stands in a row may import from its own row and the rows before it.
ROWS = [
    ["play", "checks", "compiling"],
    ["claims", "tables", "randomness", "matrices", "networks", "datasets", "prediction"],
    ["minibatches", "potentials"],
    ["flows", "integrators", "targets", "noise", "posteriors"],
    ["linear_laws", "diagnostics", "fidelity", "kernels"],
    ["draws", "thinning", "checkpoints", "starting", "remarks", "consensus"],
    ["sampling"],
    ["adaptation", "approximations", "figures", "tuning", "cluster"],
]


def test_imports_point_one_way():
    row = {name: number for number, names in enumerate(ROWS) for name in names}
    for path in sorted((ROOT / "sgmc").rglob("*.py")):
        room = path.relative_to(ROOT / "sgmc").parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [f"sgmc.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) and node.module == "sgmc" else []
            for module in modules:
                parts = module.split(".")
                if parts[0] == "sgmc" and len(parts) > 1 and parts[1] != room:
                    assert parts[1] in row, f"{path} imports {module}, which has no place in the rows"
                    assert row[parts[1]] <= row[room], f"{path.relative_to(ROOT)} imports {module}, which stands further down"
                assert parts[0] not in ("experiments", "book", "tests", "tools", "benchmarks"), f"{path} imports {module}"


def test_kernels_know_potentials_only():
    for path in sorted((ROOT / "sgmc" / "kernels").glob("*.py")):
        text = path.read_text()
        code = ast.parse(text)
        imported = {node.module for node in ast.walk(code) if isinstance(node, ast.ImportFrom) and node.module}
        assert not imported & {"sgmc.posteriors", "booklib.datasets", "sgmc.sampling", "sgmc.draws", "booklib.figures"}, path


def public_names(module):
    """List the functions and classes that a module defines and does not hide."""
    found = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    return {
        name: thing
        for name, thing in found.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__ == module.__name__
    }


def test_every_public_name_is_on_a_page_of_the_reference():
    shown = []
    for path in sorted((ROOT / "book" / "appendix" / "api").glob("*.md")):
        for name, members in re.findall(r"automodule:: (sgmc\S*)\n   :members:(.*)", path.read_text()):
            module = importlib.import_module(name)
            names = members.replace(",", " ").split() or getattr(module, "__all__", public_names(module))
            shown += [getattr(module, name) for name in names]
    modules = [importlib.import_module(info.name) for info in pkgutil.walk_packages(sgmc.__path__, "sgmc.")]
    missing = [f"{module.__name__}.{name}" for module in modules for name, thing in public_names(module).items() if thing not in shown]
    assert missing == []


SOURCE = re.compile(r"((?:[A-Z][\w-]+, )*[A-Z][\w-]+)(?:,? and ([A-Z][\w-]+)|( et al\.))?,? \(?((?:18|19|20)\d\d)\b")  # A, B and C (2000)


def test_every_source_that_is_named_is_in_the_references_and_a_page_cites_it():
    pages = [path for path in (ROOT / "book").rglob("*") if path.suffix in (".py", ".md")]
    cited = " ".join(found for path in pages for found in re.findall(r"\{cite:\w+\}`([^`]+)`", path.read_text()))
    known = []
    for key, entry in parse_file(ROOT / "book" / "references.bib").entries.items():
        authors = ["".join(map(str, person.rich_last_names)).split()[-1] for person in entry.persons["author"]]
        if re.search(rf"\b{key}\b", cited):
            known.append((authors, entry.fields["year"]))
    missing = []
    for path in sorted(path for folder in ("sgmc", "experiments", "benchmarks") for path in (ROOT / folder).rglob("*.py")):
        for found in SOURCE.finditer(" ".join(path.read_text().split())):
            first, last, others, year = found.groups()
            names = [*first.split(", "), *([last] if last else [])]
            if not any(year == when and names == (authors[: len(names)] if others else authors) for authors, when in known):
                missing.append(f"{path.relative_to(ROOT)}: {found[0]}")
    assert missing == []
