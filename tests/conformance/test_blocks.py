"""The lines of reports: what is printed has to be shown, and what is not is found."""

import sys
from pathlib import Path

import pytest

from conformance import __main__ as command
from conformance.blocks import blocks_of, is_shown, not_shown, try_report

REPORT = """# A title

A library 1.0. Severity: interface.

```python
import os, sys
print(0.0475 + 1e-5, 12.0, os.listdir(), "PYTHONPATH" in os.environ)
sys.exit(1 // {zero})
```

**Expected**: {expected}. **Observed**: 0.0475{comma} False, and a ZeroDivisionError.

Its line 4 is 99 lines long.
"""


@pytest.mark.parametrize(
    ("number", "shown", "right"),
    [
        ("0.047512", "0.0475", True),
        ("0.0476", "0.0475", False),
        ("-0.10000000149", "0.1, -0.1", True),
        ("-0.1", "0.1", False),
        ("16666.67", "16667", True),
        ("4.2", "in 4 dimensions", False),
        ("4", "4 and 4", True),
        ("1.02e-8", "1e-8", True),
        ("1e-9", "1e-8", False),
        ("nan", "nan, then", True),
        ("nan", "0.1", False),
        ("-4.21", "−4.21", True),
    ],
)
def test_a_printed_number_rounds_to_one_that_is_shown(number, shown, right):
    assert is_shown(number, shown) is right


def test_the_lines_of_a_report_run_and_what_is_not_shown_is_found(tmp_path):
    report, python = tmp_path / "made-up.md", Path(sys.executable)
    given = {"zero": 0, "comma": ", `12.0`,"}
    report.write_text(REPORT.format(**given, expected="an error"))
    assert try_report(report, python).startswith("prints") is False
    given["comma"] = ","  # 12.0 is shown no more; 12 of the title would not count
    report.write_text(REPORT.format(**given, expected="an error"))
    assert try_report(report, python) == "prints 12.0, which it does not show"
    report.write_text(REPORT.format(**given | {"zero": 1}, expected="an error"))
    assert "12.0" in try_report(report, python)
    assert not_shown("True 0.0475 float32", report.read_text()) == ["True"]
    report.write_text("```python\npass\n```\n\n**Observed**: nothing.")
    assert try_report(report, python) == "prints nothing"


def test_the_command_says_which_reports_are_wrong(tmp_path, monkeypatch, capsys):
    (tmp_path / "reports").mkdir()
    for name, value in (("numpy-right", 4), ("numpy-wrong", 5), ("other-none", 5)):
        text = f"```python\nprint(2 + 2)\n```\n\n**Observed**: {value}."
        (tmp_path / "reports" / f"{name}.md").write_text(text)
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "LIBRARIES", {"numpy": ("numpy", "made")})
    monkeypatch.setattr(command, "interpreter_of", lambda *_: Path(sys.executable))
    assert command.main(["reports", "numpy"]) == 1
    said = capsys.readouterr().out
    assert "numpy-right" in said and "as shown" in said and "other" not in said
    assert "prints 4, which it does not show" in said
    assert command.main(["reports", "numpy-right"]) == 0


def test_every_library_with_a_report_has_an_environment():
    for path in (command.FOLDER / "reports").glob("*-*.md"):
        name = path.stem.partition("-")[0]
        assert name in command.LIBRARIES or name in command.READ
        assert all("print" in block for block in blocks_of(path.read_text())) or (
            "Error" in path.read_text()
        )
