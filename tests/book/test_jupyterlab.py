"""The reader's notebooks in JupyterLab, in a real browser: opened, run, changed, saved
and opened again.

``make test`` builds the book first and tries one chapter; more by hand: ``python -m
tests.book.test_jupyterlab sghmc digits``, or ``all``."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from playwright.sync_api import sync_playwright

from tests.book.test_readers_site import RAW, rendered, texts
from tools import book, editions, readers

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        editions.CHROMIUM is None,
        reason="no Chromium is installed, in which JupyterLab opens",
    ),
]

# One proposal of each chapter's section "Change it", after which a claim no longer
# holds.
CHANGES = {
    "tutorial/bayesian_learning": (
        "prior_variance=4.0",
        "prior_variance=0.01",
    ),
    "tutorial/markov_chains": (
        "torch.full((4, 1), 3.0)",
        "spread",
    ),
    "tutorial/hamiltonian_dynamics": (
        "path(leapfrog, 2.01, 200)",
        "path(leapfrog, 1.99, 200)",
    ),
    "tutorial/hamiltonian_monte_carlo": (
        '(("fixed", 0.0), ("random", 0.5))',
        '(("fixed", 0.0), ("random", 0.1))',
    ),
    "tutorial/no_u_turn": (
        "Gaussian.correlated(0.95, dtype=torch.float64), 0.34",
        "Gaussian.correlated(0.95, dtype=torch.float64), 0.17",
    ),
    "tutorial/minibatch_noise": (
        "N / len(minibatch) * per_example.sum(0)",
        "per_example.sum(0)",
    ),
    "tutorial/langevin": (
        "rate, paths = 4e-4, {}",
        "rate, paths = 4e-3, {}",
    ),
    "tutorial/naive_sghmc": (
        "friction=0.2",
        "friction=0.4",
    ),
    "tutorial/sghmc": (
        "sghmc(noisy_bowl, 0.2)",
        "sghmc(noisy_bowl, 0.4)",
    ),
    "tutorial/estimating_the_noise": (
        "100**2 / 2",
        "100 / 2",
    ),
    "tutorial/sgnuts": (
        "SGNUTS(0.1, 0.5, 0.2, max_depth=8, **settings)",
        "SGNUTS(0.1, 0.5, 0.0, max_depth=8, **settings)",
    ),
    "tutorial/digits": (
        '"SGLD": SGLD(4e-4)',
        '"SGLD": SGLD(8e-4)',
    ),
}
TRIED = ["tutorial/sghmc"]


@pytest.mark.parametrize("name", CHANGES)
def test_the_change_that_is_tried_is_one_that_the_page_proposes(name):
    lines = (ROOT / "book" / f"{name}.py").read_text().splitlines()
    code = "\n".join(line for line in lines if not line.startswith("# "))
    old, other = CHANGES[name]
    assert old in code and f"`{other}`" in "\n".join(lines)


IDLE = (
    "for (let i = 0; i < 3; i++) { await new Promise((next) => "
    "requestIdleCallback(next)); }"
)
READY = f"""async () => {{
  const {{content, context, sessionContext}} = jupyterapp.shell.currentWidget;
  await context.ready; await sessionContext.ready; await sessionContext.session.kernel.info;
  await Promise.all(content.widgets.map((cell) => cell.ready));
  {IDLE}
}}"""
RUN = f"""async () => {{ await jupyterapp.commands.execute("notebook:run-all-cells"); {IDLE} }}"""
SAVE = "async () => { await jupyterapp.shell.currentWidget.context.save(); }"
CHANGE = """([old, other]) => jupyterapp.shell.currentWidget.content.widgets.filter((cell) => {
  const {type, sharedModel} = cell.model, code = sharedModel.getSource();
  if (type !== "code" || !code.includes(old)) { return false; }
  sharedModel.setSource(code.replace(old, other));
  return true;
}).length"""
VERDICTS = """() => [...document.querySelectorAll(".jp-OutputArea-output pre")].map((e) => (e.textContent.match(/^[✓✗](?= )/gm) || []).join("")).join("")"""
READ = """() => [...document.querySelectorAll(".jp-MarkdownOutput :is(p, li, td, pre, summary)")].map((e) => e.textContent).join("\\n")"""


@contextmanager
def jupyterlab(folder):
    """Start JupyterLab, as ``make lab`` does, on copies of the notebooks; give its
    address.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    places = {
        f"JUPYTER_{kind}_DIR": str(folder / "settings" / kind)
        for kind in ("CONFIG", "DATA", "RUNTIME")
    }
    options = (
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True",
    )
    command = readers.lab(
        *options,
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        folder=folder / "notebooks",
    )
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **places}, stdout=log, stderr=log, cwd=folder
        )
    try:
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/api/status")
                break
            except URLError:
                assert server.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@contextmanager
def opened(folder):
    """Copy the notebooks, and open a browser where JupyterLab has them; give a page and
    the address.
    """
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setattr(readers, "COPIES", folder / "notebooks")
        patch.setenv("JUPYTER_CONFIG_PATH", "")
        readers.copy()
        with jupyterlab(folder) as address:
            browser = playwright.chromium.launch(
                executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
            )
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.set_default_timeout(0)  # a busy machine may take its time
            yield page, address
            browser.close()


def open_notebook(page, address, name):
    """Open a notebook; there must be no dialog about it."""
    page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
    page.wait_for_selector(".jp-Dialog, .jp-NotebookPanel .jp-MarkdownOutput h1")
    assert page.locator(".jp-Dialog").all_text_contents() == []
    page.evaluate(READY)


def try_chapter(page, address, folder, name):
    """Open, run, change, save and open a chapter again; return what its claims said: as
    stored, when run, and when changed.
    """
    path = folder / "notebooks" / f"{name}.ipynb"
    made, notebook = path.read_bytes(), nbformat.read(path, 4)
    stored = "".join(
        re.findall(
            "^[✓✗](?= )",
            "\n".join(
                output.get("data", {}).get("text/plain", "")
                for output in book.all_outputs(notebook)
            ),
            re.MULTILINE,
        )
    )
    old, other = CHANGES[name]
    assert f"`{other}`" in "\n".join(texts(notebook)), (
        f"the chapter proposes other changes than {other}"
    )

    open_notebook(page, address, name)
    assert page.evaluate(VERDICTS) == stored
    page.evaluate(SAVE)
    assert path.read_bytes() == made, "looking at a notebook changes it"
    page.evaluate(RUN)
    ran = page.evaluate(VERDICTS)
    text = page.evaluate(READ)
    assert [
        kind for kind, pattern in RAW.items() if re.search(pattern, text, re.MULTILINE)
    ] == []
    expected, shown = rendered(notebook), page.locator(".jp-MarkdownOutput")
    for what in ("blockquote strong", "details > summary", "table", "h2", "pre"):
        assert shown.locator(what).count() == len(expected.select(what)), what
    assert shown.locator("mjx-container").count() == len(expected.select(".math"))
    assert shown.locator("mjx-merror").count() == 0

    assert page.evaluate(CHANGE, [old, other]) >= 1, f"no cell has {old}"
    page.evaluate(RUN)
    changed = page.evaluate(VERDICTS)
    page.evaluate(SAVE)
    open_notebook(page, address, name)
    assert page.evaluate(VERDICTS) == changed, (
        "what was saved is not what is shown when it is opened again"
    )
    assert other in "\n".join(
        cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"
    )
    return stored, ran, changed


@pytest.mark.parametrize("name", TRIED)
def test_a_chapter_opens_runs_and_can_be_changed(tmp_path, name):
    folder = tmp_path / "with spaces"
    folder.mkdir()
    with opened(folder) as (page, address):
        stored, ran, changed = try_chapter(page, address, folder, name)
        assert (
            urlopen(f"{address}/static/index.html").read()
            == (readers.SITE / "index.html").read_bytes()
        )
    assert set(stored) == {"✓"} and ran == stored
    assert len(changed) == len(stored) and "✗" in changed


def main(*names):
    """Try chapters, and print a line for each."""
    if names == ("all",):
        names = [Path(name).name for name in CHANGES]
    with tempfile.TemporaryDirectory() as place, opened(Path(place)) as (page, address):
        for name in CHANGES:
            if Path(name).name in names:
                try:
                    found = zip(
                        ("stored", "run", "changed"),
                        try_chapter(page, address, Path(place), name),
                        strict=True,
                    )
                    said = "; ".join(
                        f"{when} {claims.count('✓')} ✓ {claims.count('✗')} ✗"
                        for when, claims in found
                    )
                except AssertionError as error:
                    said = f"wrong: {error}"
                print(f"{name}: {said}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
