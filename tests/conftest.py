"""What the tests share."""

import os
from pathlib import Path

import pytest
import torch

from sgmc.checkpoints import fingerprints

BOOK = Path(__file__).parent / "book"


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def known_by_name(monkeypatch):
    """A checkpoint knows the book's own kernels by their names, as it does those of the
    package, so that a test may put another step in the place of theirs.
    """
    of_others = fingerprints._is_installed
    known = lambda module: str(module).startswith("booklib") or of_others(module)
    monkeypatch.setattr(fingerprints, "_is_installed", known)


def pytest_collection_modifyitems(items):
    """Mark what lies in tests/book."""
    for item in items:
        if BOOK in item.path.parents:
            item.add_marker("book")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Where WITHOUT_SKIPS is set, a test that is skipped for want of Chromium or
    confinement fails.
    """
    report = (yield).get_result()
    if (
        report.skipped
        and os.environ.get("WITHOUT_SKIPS")
        and any(word in str(report.longrepr) for word in ("Chromium", "confined"))
    ):
        report.outcome, report.longrepr = (
            "failed",
            f"skipped, with WITHOUT_SKIPS set: {report.longrepr}",
        )
