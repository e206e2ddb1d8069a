"""Other libraries against their laws: verdicts that turn when a law is changed, drivers
that stand alone, and the command that runs them.
"""

import ast
import copy
import json
import math
import sys
from pathlib import Path

import pytest
import torch

from booklib.conformance import TESTS, judge, reports
from booklib.conformance.verdicts import LIMIT
from booklib.runs.results import RESULTS, read_result
from conformance import __main__ as command
from sgmc.splittings import flows, linear_chain

FOLDER = Path(command.FOLDER)
STORED = sorted(
    path.stem.removeprefix("conformance_")
    for path in RESULTS.glob("conformance_*.json")
)


@pytest.mark.parametrize("library", STORED)
def test_every_stored_cell_has_the_law_that_was_read_from_the_code(library):
    found = read_result(RESULTS / f"conformance_{library}.json")
    shipped = {each["name"] for each in found["samplers"]}
    assert found["version"] and found["cells"]
    for cell in [*found["cells"], *found["reasons"]]:
        assert cell["sampler"] in shipped and cell["test"] in TESTS, cell
    for cell in found["cells"]:
        verdict = judge(library, cell)
        assert not verdict.of_code > LIMIT, (cell, verdict)


@pytest.mark.parametrize("library", [name for name in STORED if name != "sgmc"])
def test_the_page_names_the_version_that_was_run(library):
    page = (RESULTS.parent / "practice" / "which_library.py").read_text()
    found = read_result(RESULTS / f"conformance_{library}.json")
    assert f"# * **{found['library']} {found['version']}**" in page


def test_cells_that_exist_have_a_number():
    """At least four in five of each library's cells; the others have a reason."""
    for library in STORED:
        found = read_result(RESULTS / f"conformance_{library}.json")
        ran = {(each["sampler"], each["test"]) for each in found["cells"]}
        reasons = {(each["sampler"], each["test"]) for each in found["reasons"]}
        assert len(ran) >= 4 * len(reasons - ran), (
            library,
            len(ran),
            len(reasons - ran),
        )


def test_each_deviation_has_one_report():
    found = reports(RESULTS.parents[1] / "conformance" / "reports")
    for library in STORED:
        cells = [
            each
            for report in found
            if report.library == library
            for each in report.cells
        ]
        deviating = {
            (cell["sampler"], cell["test"])
            for cell in read_result(RESULTS / f"conformance_{library}.json")["cells"]
            if judge(library, cell).name == "deviates"
        }
        assert set(cells) == deviating, library
    assert {report.library for report in found} <= set(STORED)


def stored(library, sampler, test, **given):
    cells = read_result(RESULTS / f"conformance_{library}.json")["cells"]
    return next(
        copy.deepcopy(cell)
        for cell in cells
        if (cell["sampler"], cell["test"]) == (sampler, test)
        and given.items() <= cell["given"].items()
    )


def probed(splitting, cell):
    """Make the probe that a library with another step would give."""
    problem = cell["problem"]
    precision = torch.diag(torch.tensor(problem["curvature"], dtype=torch.float64))
    chain = linear_chain(splitting, precision, problem["gradient_variance"])
    transition, noise = (x.tolist() for x in chain)
    return cell | {"probe": {"transition": transition, "noise": noise}}


EULER, ORDERED = flows.explicit_euler_sghmc, flows.sghmc
CHANGED = {
    "nothing": lambda e, c, b, t: EULER(e, c, b, temperature=t),
    "order": lambda e, c, b, t: ORDERED(e, c, b, temperature=t),
    "a variance for a standard deviation": lambda e, c, b, t: EULER(
        e, c, c * t - (2 * e * (c * t - b)) ** 2 / (2 * e), temperature=t
    ),
    "no temperature": lambda e, c, b, t: EULER(e, c, b, temperature=1.0),
    "half of the estimate": lambda e, c, b, t: EULER(e, c, b / 2, temperature=t),
    "no estimate": lambda e, c, b, t: EULER(e, c, 0.0, temperature=t),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_planted_change_of_a_step_turns_its_cell(change):
    cell = stored("posteriors", "sghmc", "noise estimate", temperature=0.25)
    step, friction = cell["given"]["lr"], cell["given"]["alpha"]
    estimate = step * 0.25**2 * cell["given"]["beta"] / 2
    changed = probed(CHANGED[change](step, friction, estimate, 0.25), cell)
    deviates = judge("posteriors", changed).name == "deviates"
    assert deviates == (change != "nothing")


def test_a_planted_change_of_moments_turns_their_cell():
    """A tenth more variance, where the standard error is below a hundredth."""
    cell = stored("posteriors", "sglrw", "gradient noise")
    assert judge("posteriors", cell).name == "right"
    cell["moments"]["second"] = [1.1 * x for x in cell["moments"]["second"]]
    assert judge("posteriors", cell).name == "deviates"


def test_what_raises_deviates():
    cell = {"sampler": "sgld", "test": "front door", "given": {}, "error": "TypeError"}
    verdict = judge("posteriors", cell)
    assert verdict.name == "deviates" and math.isnan(verdict.ratio)


@pytest.mark.parametrize("name", command.NAMES)
def test_a_driver_imports_nothing_of_ours(name):
    tree = ast.walk(ast.parse((FOLDER / "drivers" / f"{name}.py").read_text()))
    names = set()
    for node in tree:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    ours = {"booklib", "experiments", "conformance", "tests", "tools"}
    assert not names & (ours if name == "sgmc" else ours | {"sgmc"})
    requirements = (FOLDER / "requirements" / f"{name}.txt").read_text().split("\n")
    assert all("==" in line for line in requirements if line and line[0] not in "#-")


DRIVER = """
import json, sys
cell = {"sampler": "sgld", "test": "front door", "given": {}, "observed": {"moved": 1.0}}
found = {"library": "made", "version": "1", "samplers": [], "cells": [cell], "reasons": []}
json.dump(found, open(sys.argv[1], "w"))
"""


def test_the_command_runs_a_driver_and_stores_what_it_wrote(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "made.py").write_text(DRIVER)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "made.txt").write_text("numpy==2.4.6")
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "NAMES", ["made"])
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    assert command.main(["list"]) == 0 and "not run yet" in capsys.readouterr().out
    here = ["--environment", sys.prefix]
    assert command.main(["run", "made", *here]) == 0
    result = json.loads((tmp_path / "conformance_made.json").read_text())
    assert result["cells"][0]["observed"] == {"moved": 1.0}
    assert result["provenance"]["command"] == "python -m conformance run made"
    assert [each[:7] for each in result["provenance"]["packages"]] == ["numpy=="]
    assert command.main(["list"]) == 0 and "1 cells" in capsys.readouterr().out
    (tmp_path / "drivers" / "made.py").write_text("raise SystemExit(3)")
    assert command.main(["run", "made", *here]) == 1
    assert "its driver failed" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sgmc", "made"])
def test_only_our_own_driver_finds_what_is_ours(name, tmp_path, monkeypatch):
    """Each runs alone, whatever PYTHONPATH is; sgmc's finds the package."""
    folder = tmp_path / "conformance"
    for part, text in (
        (f"drivers/{name}.py", "import os\n" + DRIVER),
        (f"requirements/{name}.txt", "numpy==2.4.6"),
    ):
        (folder / part).parent.mkdir(parents=True)
        text = text.replace('{"moved": 1.0}', 'dict(path=os.getenv("PYTHONPATH"))')
        (folder / part).write_text(text)
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setattr(command, "FOLDER", folder)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    assert command.run_driver(name, Path(sys.prefix), sys.executable)
    result = json.loads((tmp_path / f"conformance_{name}.json").read_text())
    path = str(tmp_path) if name == "sgmc" else None
    assert result["cells"][0]["observed"] == {"path": path}
