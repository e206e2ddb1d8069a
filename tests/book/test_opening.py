"""The pairs in Jupyter: each opens, whatever touched its files, and looking at it
changes nothing.
"""

import difflib
import os
import shutil
from pathlib import Path

import pytest
from jupytext.sync_contentsmanager import TextFileContentsManager
from tornado.web import HTTPError

from tools import book
from tools.notebooks import as_saved

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = book.chapters()
NAMES = [str(path.relative_to(ROOT).with_suffix("")) for path in SCRIPTS]


@pytest.mark.slow
def test_every_script_is_what_jupytext_writes():
    """Otherwise saving a chapter rewrites lines that nobody changed, and a notebook
    that is newer than its script does not open.
    """
    wrong = [
        line
        for path in SCRIPTS
        for line in difflib.unified_diff(
            path.read_text().split("\n"),
            as_saved(path).split("\n"),
            path.stem,
            "jupytext",
            n=0,
            lineterm="",
        )
    ]
    advice = (
        "a header has its metadata in the order of the alphabet and in ASCII: write "
        "formulas in captions as $\\\\varepsilon$"
    )
    assert not wrong, f"{advice}\n" + "\n".join(wrong[:40])


@pytest.fixture(scope="module")
def manager(tmp_path_factory):
    """Give what opens notebooks in JupyterLab, on a copy of the pairs."""
    root = tmp_path_factory.mktemp("a book of pairs")
    for path in SCRIPTS:
        target = root / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".py", ".ipynb"):
            shutil.copy(path.with_suffix(suffix), target.with_suffix(suffix))
    found = TextFileContentsManager()
    found.root_dir = str(root)
    return found


def made_newer(manager, name, newer):
    for suffix in (".py", ".ipynb"):
        time = 1.7e9 + 1000 * (suffix == newer)
        os.utime(Path(manager.root_dir, f"{name}{suffix}"), (time, time))


@pytest.mark.slow
@pytest.mark.parametrize("newer", [".ipynb", ".py"])
def test_all_pairs_open_whichever_file_is_newer(manager, newer):
    for name in NAMES:
        made_newer(manager, name, newer)
        assert manager.get(f"{name}.ipynb", type="notebook")["content"]["cells"]


def test_a_pair_whose_two_files_differ_does_not_open(manager):
    """The negative control: else the test above would pass of what knows no pairs."""
    script = Path(manager.root_dir, f"{NAMES[0]}.py")
    text = script.read_text()
    script.write_text(text.replace("# %%\n", "# %%\nchanged = True\n", 1))
    made_newer(manager, NAMES[0], ".ipynb")
    with pytest.raises(HTTPError, match="is more recent than"):
        manager.get(f"{NAMES[0]}.ipynb", type="notebook")
    script.write_text(text)
