"""A pytest plugin: ``pytest --sglaws mylib.conformance:ADAPTERS``, a test a square."""

import pytest

from .check import TESTS, check_one
from .report import load


def pytest_addoption(parser):
    """Add the option that names the adapters."""
    parser.addoption(
        "--sglaws",
        metavar="MODULE:NAME",
        help="test samplers against their exact laws: a list of sglaws.Adapter",
    )


def pytest_configure(config):
    """With the option and no path, collect the squares alone."""
    if config.getoption("--sglaws") and config.args_source.name != "ARGS":
        config.args = []


class Failed(Exception):
    """A square that failed: its text is all that is shown."""


class SquareItem(pytest.Item):
    """One test of one sampler."""

    adapter, test = None, ""

    def runtest(self):
        """Fail on another law than documented, and on an interface that fails."""
        square = check_one(self.adapter, self.test)
        if square.sign in ("blank", "no defaults"):
            pytest.skip(square.text)
        if square.failed:
            raise Failed(f"{square.sign}: {square.text}")

    def repr_failure(self, excinfo, style=None):
        """Show the sentence, and no traceback of this package."""
        if isinstance(excinfo.value, Failed):
            return f"{self.name}: {excinfo.value}"
        return super().repr_failure(excinfo)


def pytest_collection_modifyitems(session, config, items):
    """Append a test for each square."""
    named = config.getoption("--sglaws")
    for adapter in load(named) if named else ():
        for test in TESTS:
            item = SquareItem.from_parent(session, name=f"{adapter.name}[{test}]")
            item.adapter, item.test = adapter, test
            if test in adapter.xfail:
                reason = adapter.xfail[test]
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
            items.append(item)
