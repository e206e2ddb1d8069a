"""Settings of the test runner that concern the whole tree."""

pytest_plugins = ["tools.executed", "tools.longest_first"]
