"""The reader's notebooks in JupyterLab, in a real browser: opened, run, changed, saved
and opened again.

``make test`` builds the book first."""

import os
import re
import socket
import subprocess
import time
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from playwright.sync_api import sync_playwright

from tests.book.test_readers_site import rendered, texts
from tools import book, editions, readers

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        editions.CHROMIUM is None,
        reason="no Chromium is installed, in which JupyterLab opens",
    ),
]


CHAPTER = "tutorial/sghmc"
# One proposal of its section "Change it", after which a claim no longer holds.
CHANGE_IT = "0.1, 0.5, noise_estimate", "0.1, 3.0, noise_estimate"
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
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:  # it may wait for a kernel that is gone
            server.kill()
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
    old, other = CHANGE_IT
    assert f"`{other}`" in "\n".join(texts(notebook)), "it proposes other changes"

    open_notebook(page, address, name)
    assert page.evaluate(VERDICTS) == stored
    page.evaluate(SAVE)
    assert path.read_bytes() == made, "looking at a notebook changes it"
    page.evaluate(RUN)
    ran = page.evaluate(VERDICTS)
    assert not re.search(r"\{[a-z:]+\}`|^:::|\{\{", page.evaluate(READ), re.M)
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


def test_a_chapter_opens_runs_and_can_be_changed(tmp_path):
    folder = tmp_path / "with spaces"
    folder.mkdir()
    with opened(folder) as (page, address):
        stored, ran, changed = try_chapter(page, address, folder, CHAPTER)
        assert (
            urlopen(f"{address}/static/index.html").read()
            == (readers.SITE / "index.html").read_bytes()
        )
    assert set(stored) == {"✓"} and ran == stored
    assert len(changed) == len(stored) and "✗" in changed
