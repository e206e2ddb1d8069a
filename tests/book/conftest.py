"""A small book in a folder of its own, to try the tools on."""

import pytest

from tests.book import small


@pytest.fixture
def small_book(tmp_path):
    """Make a book of one chapter, which prints what a package says."""
    return small.make(tmp_path)
