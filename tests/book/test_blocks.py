"""What is meant to be copied runs from the wheel alone.

The visible cells of a page of *Practice* are one script, and so is each python block
of the README: it runs in an empty folder, with the wheel of `sgmc` and what
requirements.txt installs, and without the checkout. A page is added by its name in
PAGES once its visible cells import nothing else. Blocks of other libraries are in
test_other_blocks.py.
"""

import os
import re
import subprocess
import sys
import sysconfig

import pytest

from tests.book.test_readme import README
from tests.book.test_visible_code import visible
from tools import book

PAGES = ("when_it_goes_wrong",)
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_visible_cells_of_a_page_run_from_the_wheel(page, run_alone):
    assert run_alone(visible(page)), "nothing is printed"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_a_block_of_the_readme_runs_from_the_wheel(block, run_alone):
    run_alone(BLOCKS[block])
