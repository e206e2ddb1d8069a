"""The list of faults that can be planted to see how sharp the tests are: that it does
not rot, and that its verdicts are right.
"""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import FAULTS, planting
from tests.faults.mutate import mutants
from tests.faults.planting import Fault, NoVerdictError, copy_tree, planted, try_fault

ROOT = Path(__file__).resolve().parents[2]


def test_every_fault_can_be_planted_in_the_present_code():
    for fault in FAULTS:
        fault.planted_in((ROOT / fault.file).read_text())


def test_the_tests_that_should_see_a_fault_are_there():
    for test in {test for fault in FAULTS for test in fault.tests.split()}:
        path, _, name = test.partition("[")[0].partition("::")
        assert not name or re.search(
            rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE
        ), test
        assert (ROOT / path).is_file(), test


def test_faults_are_many_and_told_apart():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 150
    assert len(
        {(fault.module, fault.function, fault.text, fault.instead) for fault in FAULTS}
    ) == len(FAULTS)


FAULT = Fault(
    "package",
    "add",
    "a sum is a difference",
    "return a + b",
    "return a - b",
    "test_zero.py test_sum.py",
)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Make a tree of one function, with one test that sees its sign and one that does
    not; neither needs more than pytest.
    """
    monkeypatch.setattr(planting, "IMPORTED", ["pytest"])
    (tmp_path / "package.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "test_zero.py").write_text(
        "from package import add\ndef test_nothing_is_added():\n    assert add(1, 0) "
        "== 1\n"
    )
    (tmp_path / "test_sum.py").write_text(
        "from package import add\ndef test_one_and_one():\n    assert add(1, 1) == 2\n"
    )
    return tmp_path


def test_a_fault_is_seen_by_the_test_that_fails_and_leaves_no_trace(tree):
    before = (tree / "package.py").stat()
    assert try_fault(FAULT, tree).seen_by == "test_sum.py::test_one_and_one"
    assert (tree / "package.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert (tree / "package.py").stat().st_mtime_ns == before.st_mtime_ns
    assert try_fault(replace(FAULT, tests="test_zero.py"), tree).seen_by == ""


def test_a_test_that_fails_anyway_sees_nothing(tree):
    (tree / "test_sum.py").write_text("def test_nothing():\n    assert False\n")
    with pytest.raises(
        NoVerdictError, match=r"^test_sum.py::test_nothing fails without the fault too"
    ):
        try_fault(FAULT, tree)


def test_a_copy_of_a_tree_has_what_git_knows_and_what_is_new_but_not_what_it_ignores(
    tree, tmp_path_factory
):
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "run.log").write_text("")
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    subprocess.run(["git", "add", "package.py"], cwd=tree, check=True)
    copy = tmp_path_factory.mktemp("copy")
    copy_tree(tree, copy)
    assert {path.name for path in copy.iterdir()} == {
        ".gitignore",
        "package.py",
        "test_zero.py",
        "test_sum.py",
    }


def test_what_cannot_be_tried_is_no_verdict(tree):
    with pytest.raises(
        NoVerdictError, match=r"file or directory not found: test_nowhere.py"
    ):
        try_fault(replace(FAULT, tests="test_nowhere.py"), tree)
    with (
        pytest.raises(
            ValueError,
            match=r"^package.add: a sum is a difference: its text is there 0 times",
        ),
        planted(replace(FAULT, text="a * b"), tree),
    ):
        pass
    with (
        pytest.raises(SyntaxError),
        planted(replace(FAULT, instead="return a b"), tree),
    ):
        pass


def test_mutants_have_one_change_each_and_leave_messages_alone():
    right = (
        "def f(a: int, b=1):\n    if not a < 2:\n        raise ValueError(f'{a + 1}')"
        "\n    return g(a, -b)"
    )
    found = {(each.function, each.change) for each in mutants(right)}
    assert found == {
        ("f", "not a < 2 → not not a < 2"),
        ("f", "a < 2 → a <= 2"),
        ("f", "2 → 3"),
        ("f", "g(a, -b) → g(-b, a)"),
        ("f", "-b → +b"),
        (
            "f",
            "if not a < 2:     raise ValueError(f'{a + 1}') → if not not a < 2:     "
            "raise ValueError(f'{a + 1}')",
        ),
    }
    sources = [each.source for each in mutants(right)]
    assert len(sources) == 6 and len(set(sources)) == 5  # two ways to one condition
