"""Settings of the test runner that concern the whole tree."""


def pytest_collectstart(collector):
    """Leave out of the comparison of notebooks what they do not store.

    That is the HTML of claims, whose measured values vary in the last digits, and standard error, where progress and warnings go.
    """
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html", "stderr")
