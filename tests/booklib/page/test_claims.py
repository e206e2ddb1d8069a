"""Claims: what holds prints one line, what does not raises, and bad bounds are
refused.
"""

import math

import pytest
import torch

import booklib.page.claims
from booklib.page.claims import (
    DECIDED,
    OPEN,
    ClaimError,
    at_least,
    at_most,
    at_most_errors,
    check,
    claim,
    near,
)
from booklib.scores.seeds import Gap


def test_a_true_claim_prints_one_line_without_the_measured_value(capsys):
    claim("The distance", 0.0112, at_most=0.015, because="exact draws show 0.010")
    assert (
        capsys.readouterr().out
        == "✓ The distance: at most 0.015 (because exact draws show 0.010)\n"
    )


@pytest.mark.parametrize(
    ("value", "bound", "line"),
    [
        (2.0, {"at_least": 1}, "at least 1"),
        (2.0, {"near": 2.05, "within": 0.1}, "2.05 ± 0.1"),
        (48.0, {"near": 48.913, "within": 1}, "48.9 ± 1"),
        (-7.0, {"near": -7, "within": 1e-9}, "−7 ± 10⁻⁹"),
        (0.0, {"at_most": 2.5e-7}, "at most 2.5·10⁻⁷"),
        (
            torch.tensor(2.0),
            {"near": 2.3, "standard_error": torch.tensor(0.1)},
            "2.3 within 5 standard errors",
        ),
        (True, {}, "true"),
        (torch.tensor(True), {}, "true"),
    ],
)
def test_bounds(value, bound, line, capsys):
    claim("It", value, **bound, because="of this")
    assert capsys.readouterr().out == f"✓ It: {line} (because of this)\n"


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (0.0151, {"at_most": 0.015}),
        (0.9, {"at_least": 1}),
        (2.2, {"near": 2.0, "within": 0.1}),
        (1.8, {"near": 2.0, "within": 0.1}),  # too little is as wrong as too much
        (2.6, {"near": 2.0, "standard_error": 0.1}),
        (1.4, {"near": 2.0, "standard_error": 0.1}),
        (2.0, {"near": 2.0, "standard_error": 0.0}),
        (2.0, {"near": 2.0, "standard_error": math.inf}),  # would support anything
        (math.nan, {"at_most": 1}),
        (math.nan, {"near": 1, "within": 1}),
        (False, {}),
    ],
)
def test_a_false_claim_raises_with_the_measured_value(value, bound):
    with pytest.raises(ClaimError, match="but measured"):
        claim("It", value, **bound, because="of this")


@pytest.mark.parametrize(
    "bound",
    [
        {},
        {"at_most": 1, "at_least": 0},
        {"near": 1},
        {"at_most": 1, "within": 1},
    ],
)
def test_a_bound_that_is_missing_or_stated_twice_is_refused(bound):
    with pytest.raises(ValueError, match="exactly one"):
        claim("It", 1.0, **bound, because="of this")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": torch.ones(2)}, r"\bvalue.*\[1., 1.\]"),
        ({"at_most": math.inf}, r"at_most.*inf"),
        ({"at_most": None, "near": 1.0, "within": math.inf}, r"within.*inf"),
        ({"kind": "sure"}, r"kind.*sure"),
    ],
)
def test_what_is_no_claim_is_refused(change, message):
    given = {"statement": "It", "value": 1.0, "at_most": 2.0, "because": "of this"}
    with pytest.raises(ValueError, match=message):
        claim(**(given | change))


@pytest.fixture
def record(monkeypatch):
    """Give the record that a check makes."""

    def made(*arguments, **options):
        found = []
        monkeypatch.setattr(booklib.page.claims, "_emit", found.append)
        check("it", *arguments, **options)
        return found[0]

    return made


@pytest.mark.parametrize(
    ("arguments", "options", "shown"),
    [
        ((1.40361, near(1.4, 0.01)), {}, "1.40"),
        ((1.40361, near(1.4036)), {"error": 0.002}, "1.404"),
        ((-1234.5, near(-1230)), {"error": 30}, "−1,230"),
        ((0.00123, at_most(0.01)), {}, "0.0012"),
        ((0.00123, at_most(0.01)), {"digits": 1}, "0.001"),
        ((1 / 3,), {"kind": "exact"}, "0.3333"),
        ((1 / 3, near(0.3, 0.1)), {"kind": "exact", "digits": 3}, "0.333"),
        ((17,), {"kind": "stored"}, "17"),
        ((True,), {}, ""),
        (
            (Gap(-0.211, -0.33, -0.092, 0.01, 5, decided=True), DECIDED),
            {"kind": "stored"},
            "−0.21 [−0.33, −0.09]",
        ),
    ],
)
def test_a_number_is_shown_with_the_digits_that_it_bears(
    arguments, options, shown, record
):
    assert record(*arguments, **options)["shown"] == shown


def test_a_line_has_the_number_unless_it_differs_between_processors(record):
    assert record(2.0, at_most(3), kind="exact")["line"] == "✓ it = 2: at most 3"
    assert record(2.0, kind="stored", because="read")["line"] == (
        "✓ it = 2 (because read)"
    )
    assert record(2.0, at_most(3))["line"] == "✓ it: at most 3"
    assert record(2.0, at_most(3), says="Two")["line"] == "✓ Two: at most 3"
    broken = record(4.0, at_most(3), kind="exact", error=0.5)
    assert broken["line"] == "✗ it = 4.0: at most 3, but measured 4 ± 0.5"


@pytest.mark.parametrize("decided", [True, False])
def test_a_comparison_is_decided_or_open_as_the_page_says(decided, record):
    gap = Gap(0.1, -0.1, 0.3, 0.3, 5, decided=decided)
    bounds = {True: DECIDED, False: OPEN}
    right = record(gap, bounds[decided], kind="stored")
    assert right["holds"]
    assert right["parts"]["verdict"] == ("decided" if decided else "open")
    assert right["parts"]["mean"] == right["shown"].split()[0]
    seeds = record(gap, bounds[decided], kind="stored", margin=0.3)["parts"]["seeds"]
    assert seeds == str(gap.seeds_needed(0.3))
    assert not record(gap, bounds[not decided], kind="stored")["holds"]


def test_a_record_has_what_a_tool_needs(record):
    found = record(3.0, at_most_errors(5), because="normal")
    assert (found["bound"], found["value"]) == ({"at_most": 5, "errors": 1}, 3.0)
    assert record(3.0, at_least(2), error=0.5)["error"] == 0.5
    assert record(math.nan, at_most(5))["value"] is None


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((1.0,), {}),  # a live number that nothing checks
        ((True, at_most(1)), {}),
        ((1.0, near(1.0)), {}),
        ((1.0, {"at_most": 1, "at_least": 0}), {}),
        ((1.0, {"like": 1}), {}),
    ],
)
def test_a_bound_that_does_not_fit_is_refused(arguments, options):
    with pytest.raises(ValueError, match="exactly one bound"):
        check("it", *arguments, **options)


@pytest.mark.parametrize(
    ("bound", "inside", "outside"),
    [
        (at_most(2), 2.0, 2.0001),
        (at_least(2), 2.0, 1.9999),
        (at_most_errors(), 5.0, 5.0001),
        (near(2, 0.5), 2.5, 2.5001),
        (near(2, 0.5), 1.5, 1.4999),
        (near(2), 2.5, 2.5001),
        (near(2), 1.5, 1.4999),
    ],
)
def test_a_bound_itself_is_inside(bound, inside, outside, record):
    """Near is within five errors, here of 0.1 or a rounding more."""
    error = 0.1 * (1 + 1e-12)
    assert record(inside, bound, error=error)["holds"]
    assert not record(outside, bound, error=error)["holds"]
