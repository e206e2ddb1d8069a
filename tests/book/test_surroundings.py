"""Bad surroundings: one sentence before any work. A false Python stands for the long
installation.
"""

import os
import shutil
import subprocess
import sys
from collections import namedtuple

import pytest

from tests.book.small import ROOT
from tools import book, surroundings

Usage = namedtuple("Usage", "total used free")
PYTHON = """#!/bin/sh
# Stands for Python: writes down what it was asked, makes an environment of its own kind, and may be interrupted.
echo "$@" >> "{log}"
case "$*" in
    *surroundings.py*) exec "{python}" "$@" ;;
    "-m venv"*) mkdir -p "$3/bin" "$3/lib/python3/site-packages" && cp "$0" "$3/bin/python" ;;
    *pip*) [ -z "$INTERRUPTED" ] || exit 130 ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """Make a checkout in a path with spaces, and the false Python."""
    root = tmp_path / "a path with spaces"
    (root / "tools").mkdir(parents=True)
    for name in (
        "Makefile",
        "requirements.txt",
        "requirements-more.txt",
        "constraints.txt",
        "tools/surroundings.py",
        "tools/checkout.pth",
        "coursework/Makefile",
        "coursework/requirements.txt",
    ):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    python = tmp_path / "python"
    python.write_text(PYTHON.format(log=tmp_path / "log", python=sys.executable))
    python.chmod(0o755)
    return root


def make(root, *words, **settings):
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    command = ["make", "-C", root, f"PYTHON={root.parent / 'python'}", *words]
    result = subprocess.run(
        command, capture_output=True, text=True, env={**clean, **settings}
    )
    return result.returncode, result.stdout + result.stderr


def asked(root):
    return (root.parent / "log").read_text()


def test_the_environment_is_made_once_and_names_no_checkout(checkout):
    path = checkout / "environment/lib/python3/site-packages/checkout.pth"
    for _ in range(2):
        code, said = make(checkout, "importable", "VENV=environment")
        assert code == 0, said
        assert path.read_text() == (ROOT / "tools" / "checkout.pth").read_text()
        path.write_text("/of/an/older/version")
    assert asked(checkout).count("pip install") == 1


def test_each_checkout_finds_its_own_packages_in_an_environment_that_both_share(
    tmp_path, monkeypatch
):
    """Two checkouts, and a folder in which only one of the two packages is."""
    line = (ROOT / "tools" / "checkout.pth").read_text()
    for name in ("one/sgmc", "one/booklib", "two/sgmc", "two/booklib", "half/sgmc"):
        (tmp_path / name).mkdir(parents=True)
    for place, found in {
        "one": [tmp_path / "one"],
        "two/notebooks/tutorial": [tmp_path / "two"],
        "half": [],
    }.items():
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(tmp_path / place)
        monkeypatch.setattr(sys, "path", ["first"])
        exec(line)
        assert sys.path == ["first", *map(str, found)]


def test_what_only_some_targets_need_is_installed_by_them(checkout):
    assert make(checkout, "importable", "VENV=environment")[0] == 0
    assert "coursework" not in asked(checkout)
    for _ in range(2):
        code, said = make(checkout, "assignments", "VENV=environment")
        assert code == 0, said
    assert asked(checkout).count("coursework/requirements.txt") == 1
    assert "requirements-more.txt" not in asked(checkout)


def test_an_interrupted_installation_begins_anew(checkout):
    assert make(checkout, "importable", "VENV=environment", INTERRUPTED="yes")[0] != 0
    half = checkout / "environment" / "half"
    half.touch()
    code, said = make(checkout, "importable", "VENV=environment")
    assert (
        code == 0
        and "An installation was interrupted here: environment is made anew." in said
    )
    assert not half.exists() and not (checkout / "environment" / ".installing").exists()


def test_an_environment_of_somebody_else_is_never_deleted(checkout):
    mine = checkout / "environment" / "mine"
    mine.parent.mkdir()
    mine.touch()
    assert make(checkout, "importable", "VENV=environment", INTERRUPTED="yes")[0] != 0
    assert make(checkout, "importable", "VENV=environment")[0] == 0
    assert mine.exists()


def test_a_space_in_the_environments_path_is_refused(checkout):
    code, said = make(checkout, "book", "VENV=/an environment")
    assert (
        code != 0
        and 'VENV is "/an environment", and make cannot work with a space in it' in said
    )
    assert not (checkout.parent / "log").exists()


@pytest.mark.parametrize("version", ["3.10", "3.15", "2.7", "4.0"])
def test_a_python_for_which_the_packages_are_not_is_told(version, monkeypatch):
    numbers = (*map(int, version.split(".")), 4, "final", 0)
    monkeypatch.setattr(surroundings.sys, "version_info", numbers)
    assert (
        surroundings.obstacle(".")
        == f"Python 3.11 to 3.14 is needed, and this is {version}: say make PYTHON=/path/to/python3.14"
    )


def test_all_places_name_the_same_pythons():
    oldest, newest = (
        "{}.{}".format(*each) for each in (surroundings.OLDEST, surroundings.NEWEST)
    )
    assert (
        f"You need Python {oldest} to {newest} and make"
        in (ROOT / "README.md").read_text()
    )
    assert (
        f"Python {oldest} to {newest}, and make"
        in (ROOT / "book" / "practice" / "teaching.md").read_text()
    )
    assert f'requires-python = ">={oldest}"' in (ROOT / "pyproject.toml").read_text()
    assert (
        f'["{oldest}", "{newest}"]'
        in (ROOT / ".github" / "workflows" / "book.yml").read_text()
    )


def test_a_full_disk_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(
        surroundings.shutil, "disk_usage", lambda folder: Usage(10**12, 0, 3 * 10**9)
    )
    assert (
        f"needs 9 GB of disk space, and {tmp_path} has 3.0 GB left"
        in surroundings.obstacle(str(tmp_path / "new"))
    )
    with pytest.raises(SystemExit, match=r"2 GB.*0\.5 GB"):
        monkeypatch.setattr(
            book.shutil, "disk_usage", lambda folder: Usage(10**12, 0, 5 * 10**8)
        )
        book.build(root=tmp_path)
