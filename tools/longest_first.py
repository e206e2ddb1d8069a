"""A plugin of pytest: the files that take longest are begun first.

Two processes take one file after the other, so a long file that is begun last keeps one
of them waiting."""

from collections import Counter

SLOW = 20  # a test that is marked slow takes more than two seconds, others a tenth


def pytest_collection_modifyitems(items):
    """Sort files by the time that their tests may take; within a file nothing moves."""
    length = Counter()
    for item in items:
        length[item.path] += SLOW if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: (-length[item.path], item.path))
