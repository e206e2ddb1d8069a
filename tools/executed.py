"""A plugin of pytest: what nbval executes to compare it with what is stored, the book
is built from.

A chapter whose cells all passed is kept, with its figures, for the build; so ``make
test`` executes each chapter once."""

import copy
import time
from pathlib import Path

import nbformat
import pytest
from xdist import is_xdist_controller

from booklib import MEDIA
from tools import book, kernels

OUTPUTS = ("display_data", "execute_result", "stream")


def pytest_sessionstart(session):
    """Have the notebooks' kernels forked."""
    if session.config.getoption("nbval", False) and not is_xdist_controller(session):
        kernels.fork()


def pytest_collectstart(collector):
    """Listen to the kernel of a notebook; leave out of the comparison what notebooks do
    not store.

    That is HTML, the records of claims, whose measured values vary in the last digits,
    and standard error, where progress and warnings go."""
    if not hasattr(collector, "skip_compare"):
        return
    collector.skip_compare += ("text/html", "stderr", MEDIA)
    collector.outputs, collector.passed, get_message = (
        [],
        True,
        collector.get_kernel_message,
    )

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
    if not hasattr(chapter, "skip_compare") or (
        nextitem is not None and nextitem.parent is chapter
    ):
        return
    code = book.code_cells(chapter.nb)
    path = Path(chapter.path)
    if (
        chapter.passed
        and len(code) == len(chapter.outputs)
        and path.with_suffix(".py") in book.chapters()
    ):
        notebook = copy.deepcopy(chapter.nb)
        for cell, outputs in zip(
            book.code_cells(notebook), chapter.outputs, strict=True
        ):
            cell.outputs = outputs
        book.keep_executed(
            path.with_suffix(".py"), notebook, time.monotonic() - chapter.started
        )
