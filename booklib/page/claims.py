"""Checked claims: each records a measured value, and the sentence shows it."""

import builtins
import hashlib
import math
from collections.abc import Mapping
from typing import Any

from booklib import MEDIA
from booklib.numbers import in_words, to_the_digits_of, with_the_digits_of
from booklib.page.play import playing
from sgmc.checks import check_choice

KINDS = ("exact", "live", "stored")
ERRORS = 5  # a measured value may be off by so many standard errors
_OF_THIS_CELL: list[dict[str, Any]] = []

Bound = Mapping[str, float]
# the verdicts of a comparison over seeds
DECIDED, OPEN = {"decided": True}, {"decided": False}
_BOUNDS = "at_most", "at_least", "near", "near within", "at_most errors", "decided"


class ClaimError(AssertionError):
    """A claim of the book is not supported by its own computation."""


def near(value: float, within: float | None = None) -> Bound:
    """Bound a claim on both sides; by default within five standard errors."""
    return {"near": value} if within is None else {"near": value, "within": within}


def at_most(value: float) -> Bound:
    """Bound a claim from above."""
    return {"at_most": value}


def at_least(value: float) -> Bound:
    """Bound a claim from below."""
    return {"at_least": value}


def at_most_errors(value: float = ERRORS) -> Bound:
    """Bound a distance in standard errors, such as the largest of ten."""
    return {"at_most": value, "errors": True}


def check(
    name: str,
    value: Any,
    bound: Bound | None = None,
    *,
    because: str = "",
    kind: str = "live",
    error: float | None = None,
    digits: int | None = None,
    margin: float | None = None,
    says: str = "",
) -> None:
    """Record a measured value, and whether it is as it should be, for the sentence that
    names it: ``{c}`name``` shows the number with ✓ or ✗; of a comparison ``.mean``,
    ``.verdict`` and ``.seeds`` behind the name are parts.

    A cell shows its records at its end, a line each. The number of a live record is
    not in its line, because its last digits differ between processors. A claim that
    does not hold raises an error, or, where a reader plays
    (:func:`booklib.page.play.play`), shows ✗ and the page goes on.

    Args:
        name: what the sentence calls it, such as ``"variance-cold"``.
        value: the measured number; a truth value; or a comparison over seeds
            (:class:`booklib.scores.seeds.Gap`), which is written with its interval.
        bound: :func:`near`, :func:`at_most`, :func:`at_least`,
            :func:`at_most_errors`, ``DECIDED`` or ``OPEN``. A truth value has none, and
            an exact or stored number needs none: the sentence shows what was computed.
        because: where the bound comes from.
        kind: ``"exact"`` for what has no chance in it, such as a distribution that is
            solved or an enumeration, ``"live"`` for what the page draws, ``"stored"``
            for what a longer run has left in a file.
        error: the Monte Carlo standard error of ``value``.
        digits: significant digits to show; by default as many as the error bears.
        margin: the difference whose discovery the number of seeds is said for, of a
            comparison.
        says: what is checked, where no sentence shows it.

    Raises:
        ClaimError: if the claim is false, or the value is not a number.
        ValueError: if the kind is none of these, the bound is missing or not a finite
            number, or the value is not one number.

    Example:
        >>> check("third", 1 / 3, near(0.33, 0.005), because="two digits", kind="exact")
        ✓ third = 0.333: 0.33 ± 0.005 (because two digits)
    """
    check_choice("kind", kind, KINDS)
    gap = value if hasattr(value, "decided") else None
    value = gap.mean if gap else value
    truth = str(getattr(value, "dtype", type(value).__name__)).endswith("bool")
    bound = {key: _number(key, number) for key, number in (bound or {}).items()}
    kinds = " ".join(bound)
    known = kinds in _BOUNDS and (kinds != "near" or error is not None)
    if (bool(bound) == truth and (truth or kind == "live")) or (bound and not known):
        raise ValueError(
            f"{name}: give exactly one bound for a number, and none for a truth value; "
            "near needs within or the value's error"
        )
    if not all(map(math.isfinite, bound.values())):
        raise ValueError(
            f"a bound must be finite, but it is {bound}: a bound that nothing breaks "
            "claims nothing"
        )
    value = bool(_number("value", value)) if truth else _number("value", value)
    error = None if error is None else _number("error", error)
    unsure = None if digits else error or bound.get("within")
    digits = digits or (2 if kind == "live" else 4)
    shown = "" if truth else with_the_digits_of(value, unsure, digits)
    measured = str(value).lower() if truth else in_words(value, 4)
    measured += "" if error is None else f" ± {in_words(error, 2)}"
    record = {
        "name": name,
        "kind": kind,
        "value": float(value) if math.isfinite(value) else None,
        "error": error,
        "bound": bound,
        "holds": _holds(value, bound, error, gap),
        "parts": gap.parts(margin) if gap else {},
        "shown": str(gap) if gap else shown,
        "measured": measured,
        "words": _words(bound) if bound or truth else "",
        "because": because,
        "says": says,
    }
    _emit(record | {"line": _line(record)})


def _number(name: str, value: Any) -> float:
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError, RuntimeError):  # the value is no number, or several
        pass
    raise ValueError(f"{name} must be one number, but it is {value!r}")


def _holds(value: float, bound: Bound, error: float | None, gap: Any) -> bool:
    if "decided" in bound:
        return bool(gap.decided) == bound["decided"]
    if "at_most" in bound:
        return value <= bound["at_most"]
    if "at_least" in bound:
        return value >= bound["at_least"]
    if "near" in bound:
        away = bound.get("within", ERRORS * (error or math.nan))
        return abs(value - bound["near"]) <= away < math.inf
    return bool(value) if isinstance(value, bool) else math.isfinite(value)


def _words(bound: Bound) -> str:
    if "decided" in bound:
        return "decided" if bound["decided"] else "open"
    if "within" in bound:
        middle = to_the_digits_of(bound["within"], bound["near"])
        return f"{middle} ± {in_words(bound['within'])}"
    if "near" in bound:
        return f"{in_words(bound['near'])} within {ERRORS} standard errors"
    for name in ("at_most", "at_least"):
        if name in bound:
            return f"{name.replace('_', ' ')} {in_words(bound[name])}"
    return "true"


def _line(record: Mapping[str, Any]) -> str:
    """Write a record as a line of text, without the number if the claim is live and
    holds, because its last digits differ between processors.
    """
    words, what = record["words"], record["says"] or record["name"]
    if not record["says"] and record["shown"] and record["kind"] != "live":
        what += f" = {record['shown']}"
    if not record["holds"]:
        return f"✗ {what}: {words}, but measured {record['measured']}"
    why = f" (because {record['because']})" if record["because"] else ""
    return f"✓ {what}{words and ': '}{words}{why}"


def _emit(record: dict[str, Any]) -> None:
    if not record["holds"] and not playing():
        raise ClaimError(record["line"])
    shell = getattr(builtins, "get_ipython", None)  # IPython defines it
    if shell is None:
        print(record["line"])
        return
    if not _OF_THIS_CELL:
        shell().events.register("post_run_cell", _show)
    _OF_THIS_CELL.append(record)


def _show(result: object = None) -> None:
    """Show the records of a cell as one output at its end."""
    from IPython import get_ipython
    from IPython.display import display

    records = list(_OF_THIS_CELL)
    _OF_THIS_CELL.clear()
    get_ipython().events.unregister("post_run_cell", _show)
    text = "\n".join(record["line"] for record in records)
    display({"text/plain": text, MEDIA: records}, raw=True)


def claim(
    statement: str,
    value: Any,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    near: float | None = None,
    within: float | None = None,
    standard_error: float | None = None,
    errors: bool = False,
    because: str,
    kind: str = "live",
) -> None:
    """State a sentence that the page does not show, by :func:`check`; pages that do not
    yet name their claims in sentences use it.
    """
    given = {"at_most": at_most, "at_least": at_least, "near": near, "within": within}
    bound = {key: number for key, number in given.items() if number is not None}
    bound |= {"errors": True} if errors else {}
    name = hashlib.sha256(f"{statement}{bound}".encode()).hexdigest()[:12]
    options = {"because": because, "kind": kind, "error": standard_error}
    check(name, value, bound or None, says=statement, **options)
