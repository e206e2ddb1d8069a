"""The pairs in Jupyter: each opens, whatever touched its files, and looking at it
changes nothing.
"""

import contextlib
import difflib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

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


class Server:
    """A real Jupyter server with jupytext's contents manager, on a copy of the
    pairs.
    """

    def __init__(self, folder: Path):
        self.root = folder / "book of pairs"
        for path in SCRIPTS:
            target = self.root / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
            shutil.copy2(path.with_suffix(".ipynb"), target.with_suffix(".ipynb"))
        own = {
            f"JUPYTER_{name}_DIR": str(folder / name.lower())
            for name in ("CONFIG", "DATA", "RUNTIME")
        }
        options = [
            "--no-browser",
            "--allow-root",
            "--IdentityProvider.token=",
            "--ServerApp.password=",
            "--ServerApp.disable_check_xsrf=True",
        ]
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyter_server",
                    *options,
                    f"--ServerApp.root_dir={self.root}",
                ],
                env={**os.environ, **own},
                stdout=log,
                stderr=log,
            )
        self.url = ""
        while not self.url:
            assert self.process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
            for path in (folder / "runtime").glob("jpserver-*.json"):
                with contextlib.suppress(ValueError):  # not yet written to its end
                    self.url = json.loads(path.read_text())["url"]

    def get(self, name: str) -> tuple[int, dict]:
        """Open a notebook as JupyterLab does: its status, and what it holds or what the
        server says.
        """
        try:
            address = f"{self.url}api/contents/{name}.ipynb?type=notebook&content=1"
            with urlopen(address) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, {"message": error.read().decode()}

    def refused(self) -> dict[str, str]:
        """List the pairs that do not open."""
        answers = {name: self.get(name) for name in NAMES}
        return {
            name: said["message"]
            for name, (status, said) in answers.items()
            if status != 200
        }

    def script(self, name: str) -> Path:
        return self.root / f"{name}.py"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("jupyter"))
    yield server
    server.process.terminate()
    server.process.wait()


@pytest.fixture
def server(started):
    """Give the server, with the pairs as they are checked out: one moment for all
    files.
    """
    for name in NAMES:
        for suffix in (".py", ".ipynb"):
            target = started.root / f"{name}{suffix}"
            if target.read_bytes() != (ROOT / f"{name}{suffix}").read_bytes():
                shutil.copy(ROOT / f"{name}{suffix}", target)
            os.utime(target, (1.7e9, 1.7e9))
    return started


def made_newer(server, name, suffix=".ipynb"):
    os.utime(server.root / f"{name}{suffix}", (1.7e9 + 1000, 1.7e9 + 1000))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".ipynb", ".py"])
def test_all_pairs_open_whichever_file_is_newer(server, suffix):
    for name in NAMES:
        made_newer(server, name, suffix)
    assert server.refused() == {}


def test_the_server_does_refuse_a_pair_whose_two_files_differ(server):
    """The negative control: without it, the tests above would pass of a server that
    knows nothing of pairs.
    """
    name = NAMES[0]
    text = server.script(name).read_text()
    server.script(name).write_text(text.replace("# %%\n", "# %%\nchanged = True\n", 1))
    os.utime(server.script(name), (1.7e9, 1.7e9))
    made_newer(server, name)
    status, said = server.get(name)
    assert status == 400 and "is more recent than" in said["message"]
