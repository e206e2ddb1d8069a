"""Claims: what holds prints one line, what does not raises, and bad bounds are
refused.
"""

import math

import pytest
import torch

from booklib.claims import ClaimError, claim


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
        {"near": 1, "within": 1, "standard_error": 1},
        {"at_most": 1, "within": 1},
    ],
)
def test_a_bound_that_is_missing_or_stated_twice_is_refused(bound):
    with pytest.raises(ValueError, match="exactly one"):
        claim("It", 1.0, **bound, because="of this")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": None}, r"\bvalue.*None"),
        ({"value": "1"}, r"\bvalue.*'1'"),
        (
            {"value": torch.ones(2)},
            r"\bvalue.*\[1., 1.\]",
        ),
        (
            {"value": torch.tensor([True, False]), "at_most": None},
            r"\bvalue.*tensor",
        ),
        ({"at_most": "2"}, r"at_most.*'2'"),
        (
            {"at_most": math.inf},
            r"at_most.*inf",
        ),
        (
            {"at_most": None, "near": 1.0, "within": math.inf},
            r"within.*inf",
        ),
        (
            {"at_most": None, "near": 1.0, "standard_error": torch.ones(2)},
            r"\bstandard_error\b",
        ),
        ({"statement": None}, r"statement.*None"),
        (
            {"kind": "sure"},
            r"kind.*sure",
        ),
        ({"because": 3}, r"because.*\b3$"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ", ".join(value),
)
def test_what_is_no_claim_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        claim(
            **(
                {"statement": "It", "value": 1.0, "at_most": 2.0, "because": "of this"}
                | change
            )
        )
