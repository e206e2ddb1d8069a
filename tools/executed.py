"""A plugin of pytest: what nbval executes to compare it with what is stored, the book is built from.

A chapter whose cells all passed goes, with its figures, into the cache of executed chapters; so ``make test`` executes each chapter once.
"""

import copy
import time
from pathlib import Path

import nbformat
import pytest

from tools import book

OUTPUTS = ("display_data", "execute_result", "stream")


def pytest_configure(config):
    """Empty the cache, if it is not of this package, before anything is put into it."""
    if config.getoption("nbval", False) and not hasattr(config, "workerinput"):
        book.open_cache()


def pytest_collectstart(collector):
    """Listen to the kernel of a notebook; leave out of the comparison what notebooks do not store.

    That is the HTML of claims, whose measured values vary in the last digits, and standard error, where progress and warnings go.
    """
    if not hasattr(collector, "skip_compare"):
        return
    collector.skip_compare += ("text/html", "stderr")
    collector.outputs, collector.passed, get_message = [], True, collector.get_kernel_message

    def get_and_note(*arguments, **settings):
        message = get_message(*arguments, **settings)
        if message["msg_type"] in OUTPUTS:
            collector.outputs[-1].append(nbformat.v4.output_from_msg(message))
        return message

    collector.get_kernel_message = get_and_note


def pytest_runtest_setup(item):
    """Begin a cell."""
    if hasattr(item.parent, "skip_compare"):
        if not item.parent.outputs:
            item.parent.started = time.monotonic()
        item.parent.outputs.append([])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Note whether a cell passed."""
    report = (yield).get_result()
    if hasattr(item.parent, "skip_compare"):
        item.parent.passed &= report.passed


def pytest_runtest_teardown(item, nextitem):
    """After the last cell of a chapter, keep the chapter as it was executed."""
    chapter = item.parent
    if not hasattr(chapter, "skip_compare") or (nextitem is not None and nextitem.parent is chapter):
        return
    code = [cell for cell in chapter.nb.cells if cell.cell_type == "code"]
    path = Path(chapter.path)
    if chapter.passed and len(code) == len(chapter.outputs) and path.with_suffix(".py") in book.chapters():
        notebook = copy.deepcopy(chapter.nb)
        for cell, outputs in zip((cell for cell in notebook.cells if cell.cell_type == "code"), chapter.outputs, strict=True):
            cell.outputs = outputs
        book.keep_executed(path, notebook, time.monotonic() - chapter.started)
