"""Settings of the test runner that concern the whole tree."""


def pytest_collectstart(collector):
    """Leave HTML out of the comparison of notebooks: a claim's page shows its measured value, whose last digits vary."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("text/html",)
