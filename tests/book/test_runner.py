"""How the tests are run: what takes longest first, and the libraries that the package
allows, oldest and newest.
"""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import yaml

from tools import bounds, longest_first

ROOT = Path(__file__).resolve().parents[2]


def test_files_that_take_longest_are_begun_first():
    tests = "a1 b1 b2 c1! a2 d1 d2 c2"
    items = [
        SimpleNamespace(
            name=name,
            path=Path(name[0]),
            get_closest_marker=lambda marker, name=name: (
                name.endswith("!") and marker == "slow"
            ),
        )
        for name in tests.split()
    ]
    longest_first.pytest_collection_modifyitems(items)
    assert [item.name for item in items] == "c1! c2 a1 a2 b1 b2 d1 d2".split()
    # pytest-xdist keeps this order only if it is told to
    assert "--dist loadfile --no-loadscope-reorder" in (ROOT / "Makefile").read_text()


def test_every_library_of_the_package_has_a_lower_bound_that_the_pins_keep():
    numbers = lambda version: tuple(map(int, version.split(".")))
    newest, oldest = (bounds.requirements(which) for which in ("newest", "oldest"))
    assert len(newest) == len(oldest) >= 6
    pins = dict(
        re.findall(
            r"^([\w-]+)==([\d.]+)$", (ROOT / "requirements.txt").read_text(), re.M
        )
    )
    for new, old in zip(newest, oldest, strict=True):
        name, bound = re.fullmatch(r"([\w-]+)>=([\d.]+)", new).groups()
        assert old == f"{name}=={bound}"
        assert numbers(bound) <= numbers(pins[name])


def test_a_job_takes_the_oldest_and_one_the_newest_libraries():
    workflow = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text())
    job = workflow["jobs"]["libraries"]
    taken = [each["libraries"] for each in job["strategy"]["matrix"]["include"]]
    assert taken == ["oldest", "newest"]
    assert job["steps"][-1]["run"] == ".ci/run ${{ matrix.libraries }}"
    for which in taken:
        command = [sys.executable, "tools/bounds.py", which]
        said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
        assert said.split() == bounds.requirements(which)
