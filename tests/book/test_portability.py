"""The tool that moves claims: it reads records, and no words."""

import math

import pytest

import booklib.page.claims
from tools import portability

PAGE = """# %%
from booklib.page.claims import at_least, at_most_errors, check, near

check("distance", 2.0, near(1.9), error=0.05)
check("largest", 4.0, at_most_errors(5), says="The largest |z| of ten")
check("ratio", 3.0, at_least(2.5), kind="exact")
check("wrong", 3.0, at_least(4))
check("nothing", float("nan"), at_least(4))
check("same", True)
1 / 0
"""


def test_margins_are_those_of_the_records(tmp_path, monkeypatch):
    path = tmp_path / "page.py"
    path.write_text(PAGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(booklib.page.claims, "_emit", None)  # it is put back at the end
    found = portability.execute(path, 0)
    assert found["raised"] == ["ZeroDivisionError: division by zero"]
    claims = [portability.in_errors(claim) for claim in found["claims"]]
    assert [claim["kind"] for claim in claims] == 2 * ["live"] + ["exact"] + 3 * [
        "live"
    ]
    margins = [portability.margin(claim) for claim in claims]
    # two standard errors of five; one of five; a value that is too small; no number
    assert margins == pytest.approx([3.0, 1.0, 0.5, -1.0, -math.inf, math.inf])
    assert "errors" in claims[1]["bound"] and "errors" not in claims[0]["bound"]
