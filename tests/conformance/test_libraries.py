"""Adapters that stand alone, stored results, and the command that makes them."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from booklib.runs.results import RESULTS, read_result
from conformance import __main__ as command
from conformance.patched import named, squares_of
from conformance.sglaws import SIGNS, TESTS

FOLDER = Path(command.FOLDER)
FILES = sorted(path.stem for path in (FOLDER / "libraries").glob("*.py"))
REPORTS = sorted((FOLDER / "reports").glob("*-*.md"))
STORED = {path.stem: read_result(path) for path in RESULTS.glob("conformance_*.json")}


@pytest.mark.parametrize("name", FILES)
def test_an_adapter_imports_its_library_and_the_tool_alone(name):
    names = set()
    for node in ast.walk(ast.parse((FOLDER / "libraries" / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    ours = {"booklib", "experiments", "conformance", "tests", "tools"}
    assert not names & (ours if name == "sgmc" else ours | {"sgmc"})


def test_the_tool_imports_numpy_alone():
    allowed = {*sys.stdlib_module_names, "numpy"}
    for path in (FOLDER / "sglaws").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = {node.module.split(".")[0]}
            else:
                continue
            assert names <= allowed | ({"pytest"} if path.stem == "plugin" else set())


def test_every_library_has_adapters_pins_and_a_result():
    assert {*command.LIBRARIES} == {*FILES} - {"torch_optim"}
    assert {f"conformance_{name}" for name in command.LIBRARIES} == {*STORED}
    for _, environment in command.LIBRARIES.values():
        lines = (FOLDER / "requirements" / f"{environment}.txt").read_text().split("\n")
        assert all("==" in line for line in lines if line and line[0] != "#")


@pytest.mark.parametrize("name", STORED)
def test_a_stored_result_has_all_tests_a_version_and_a_date(name):
    found = STORED[name]
    assert found["version"] and found["date"] and found["packages"]
    for sampler in {each["sampler"] for each in found["squares"]}:
        tests = [x["test"] for x in found["squares"] if x["sampler"] == sampler]
        assert tests == list(TESTS)
    for square in found["squares"]:
        assert square["sign"] in SIGNS
        if square["sign"] in ("law", "interface", "blank"):
            assert square["text"]
    assert not any(
        each["sign"] == "law" for each in STORED["conformance_sgmc"]["squares"]
    )


@pytest.mark.parametrize("name", set(STORED) - {"conformance_sgmc"})
def test_the_page_names_the_version_that_was_run(name):
    page = (RESULTS.parent / "practice" / "which_library.py").read_text()
    assert f"**{STORED[name]['library']} {STORED[name]['version']}**" in page


def test_the_table_of_the_page_is_in_the_order_of_the_faults():
    page = (RESULTS.parent / "practice" / "which_library.py").read_text()
    rows = re.findall(r"^# \| \*\*(\S+) [^|]*\| (\d+) \|", page, re.M)
    there = {name.lower().replace("-", "_"): int(number) for name, number in rows}
    count = dict.fromkeys(there, 0)
    for path in REPORTS:
        if "Severity: another distribution" in path.read_text():
            count[path.stem.partition("-")[0]] += 1
    assert there == count
    assert [*count.values()] == sorted(count.values(), reverse=True), count


LIBRARY = """
import numpy as np
from sglaws import Adapter, laws


class Made(Adapter):
    name, documented = "SGLD", staticmethod(laws.sgld)
    samples = 4_000

    def arguments(self, s):
        return {"lr": s.step}

    def init(self, theta, seed, lr):
        return theta, lr

    def step(self, state, target, seed):
        xi = np.random.default_rng(seed).standard_normal(state[0].shape)
        move = state[1] * target.gradient(state[0])
        return state[0] - move + (2 * state[1]) ** 0.5 * xi, state[1]

    def position(self, state):
        return state[0]


ADAPTERS = [Made()]
"""


def test_the_command_measures_a_library_and_stores_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "numpy.py").write_text(LIBRARY)
    (tmp_path / "sglaws").symlink_to(FOLDER / "sglaws")
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "LIBRARIES", {"numpy": ("numpy", "made")})
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "interpreter_of", lambda *_: Path(sys.executable))
    assert command.main(["list"]) == 0 and "not run yet" in capsys.readouterr().out
    assert command.main(["run", "numpy"]) == 0
    result = json.loads((tmp_path / "conformance_numpy.json").read_text())
    assert result["provenance"]["command"] == "python -m conformance run numpy"
    signs = {each["test"]: each["sign"] for each in result["squares"]}
    assert signs["exact gradient"] == "right" and signs["friction"] == "blank"
    assert command.main(["list"]) == 0 and "14 squares" in capsys.readouterr().out
    (tmp_path / "libraries" / "numpy.py").write_text("raise SystemExit(3)")
    assert command.main(["run", "numpy"]) == 1
    assert "could not be measured" in capsys.readouterr().err


SEVERITY = ("another distribution", "as documented but surprising", "interface")


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_has_a_severity_and_squares_that_are_not_right(path):
    name, head = path.stem.partition("-")[0], path.read_text().split("\n\n")[1]
    said = " ".join(head.split()).partition("Severity: ")[2]
    assert said.startswith(SEVERITY)
    squares = named(said.partition("Squares:")[2])
    found = STORED.get(f"conformance_{name}", {"squares": []})["squares"]
    signs = {(each["sampler"], each["test"]): each["sign"] for each in found}
    for square in squares:
        assert signs[square] in ("law", "surprise", "interface"), square


def test_every_square_of_another_distribution_is_in_a_report():
    said = {
        (path.stem.partition("-")[0], *square)
        for path in REPORTS
        for square in named(" ".join(path.read_text().split("\n\n")[1].split()))
    }
    for name, found in STORED.items():
        for x in found["squares"]:
            square = name.removeprefix("conformance_"), x["sampler"], x["test"]
            assert x["sign"] != "law" or square in said, square


def test_there_are_patches():
    assert len(list((FOLDER / "patches").glob("*.patch"))) >= 10


def test_findings_about_a_distribution_are_reproduced_by_the_tool_alone():
    """Reports of another or a surprising distribution whose squares were measured, and
    samplers with a surprise that no report is about.
    """
    said = {
        path: " ".join(path.read_text().split("\n\n")[1].split()) for path in REPORTS
    }
    found = {
        path.stem: named(text.partition("Squares:")[2])
        for path, text in said.items()
        if "Severity: interface" not in text
    }
    reproduced = {stem for stem, squares in found.items() if squares}
    reported = {
        (stem.partition("-")[0], sampler)
        for stem, squares in found.items()
        for sampler, _ in squares
    }
    surprising = {
        (name.removeprefix("conformance_"), square["sampler"])
        for name, result in STORED.items()
        for square in result["squares"]
        if square["sign"] == "surprise"
    }
    assert len(reproduced) + len(surprising - reported) >= 22


@pytest.mark.parametrize("path", sorted((FOLDER / "patches").glob("*.patch")))
def test_a_patch_is_short_and_names_the_squares_that_it_turns(path):
    assert (FOLDER / "reports" / f"{path.stem}.md").exists()
    lines = path.read_text().splitlines()
    for sign in ("+", "-"):
        changed = [x for x in lines if x[:1] == sign and x[:3] not in ("+++", "---")]
        assert len(changed) <= 5
    name = f"conformance_{path.stem.partition('-')[0]}"
    signs = {(x["sampler"], x["test"]): x["sign"] for x in STORED[name]["squares"]}
    for square in squares_of(path):
        assert signs[square] in ("law", "interface"), square
