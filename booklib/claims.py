"""Checked claims: every empirical sentence of the book is one."""

import builtins
import hashlib
import html
import math

from booklib.play import playing
from sgmc.checks import check_instance

KINDS = ("exact", "live", "stored")
SUPERSCRIPTS = str.maketrans("−0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
STANDARD_ERRORS = 5
RED = "color: #d32f2f; font-weight: bold"
# In the place of a claim that the block above shows: nothing, and no room for it.
COUNTED = (
    '<span class="counted"></span><style>'
    ".jp-OutputArea-child:has(.counted) { display: none; }</style>"
)
_OF_THIS_CELL: list[tuple[bool, str, str]] = []


class ClaimError(AssertionError):
    """A claim of the book that its own computation does not support."""


def claim(
    statement: str,
    value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    near: float | None = None,
    within: float | None = None,
    standard_error: float | None = None,
    because: str,
    kind: str = "live",
) -> None:
    """State an empirical sentence, check it, and show one line that is the same on
    every machine.

    On a page the claims of a cell are one line, *8 checks hold*, which opens on click;
    if one of them does not hold, it is open.

    The line of a claim holds the statement, its bound and where the bound comes from,
    but not the measured value, whose last digits differ between processors; the
    rendered page shows that too. With ``standard_error`` the bound is five of them: a
    true claim fails once in 1.7 million times. Where a reader plays
    (:func:`booklib.play.play`), a claim that does not hold shows ✗ and what was
    measured, and the page goes on.

    Args:
        statement: the sentence, without its bound.
        value: the measured number, or a truth value when the sentence needs no bound.
        at_most: the largest value allowed.
        at_least: the smallest value allowed.
        near: the value expected; needs ``within`` or ``standard_error``.
        within: the largest absolute difference from ``near`` allowed.
        standard_error: the Monte Carlo standard error of ``value``.
        because: where the bound comes from.
        kind: ``"exact"`` for what has no chance in it, such as a law that is solved or
            an enumeration, ``"live"`` for what the page draws, ``"stored"`` for what a
            longer run has left in a file.

    Raises:
        ClaimError: if the claim is false, or the value is not a number.
        ValueError: if the kind is none of these, or the bound is missing, stated twice
            or no finite number, or the value is not one number.

    Example:
        >>> claim(
        ...     "A third is near 0.33",
        ...     1 / 3,
        ...     near=0.33,
        ...     within=0.005,
        ...     because="two digits",
        ... )
        ✓ A third is near 0.33: 0.33 ± 0.005 (because two digits)
    """
    check_instance("statement", statement, str, '"A third is near 0.33"')
    check_instance("because", because, str, '"two digits"')
    if kind not in KINDS:
        raise ValueError(
            f"kind must be one of {', '.join(map(repr, KINDS))}, but it is {kind!r}"
        )
    given = {"at_most": at_most, "at_least": at_least, "near": near, "within": within}
    for name, bound in given.items():
        if bound is not None and not math.isfinite(_number(name, bound)):
            raise ValueError(
                f"{name} must be finite, but it is {bound!r}: a bound that nothing "
                "breaks claims nothing"
            )
    bounds = [bound for bound in (at_most, at_least, near) if bound is not None]
    truth = isinstance(value, bool) or str(getattr(value, "dtype", "")) in (
        "torch.bool",
        "bool",
    )
    if len(bounds) != (0 if truth else 1):
        raise ValueError(
            "give exactly one of at_most, at_least and near for a number, and none "
            "for a truth value"
        )
    if (near is not None) != ((within is not None) != (standard_error is not None)):
        raise ValueError(
            "near needs exactly one of within and standard_error; the other bounds "
            "need neither"
        )
    value = bool(_number("value", value)) if truth else _number("value", value)
    if truth:
        holds, bound = value, "true"
    elif at_most is not None:
        holds, bound = value <= at_most, f"at most {in_words(at_most)}"
    elif at_least is not None:
        holds, bound = value >= at_least, f"at least {in_words(at_least)}"
    elif within is not None:
        holds, bound = (
            abs(value - near) <= within,
            f"{_to_the_digits_of(within, near)} ± {in_words(within)}",
        )
    else:
        standard_error = _number("standard_error", standard_error)
        holds = (
            0 < standard_error < math.inf
            and abs(value - near) <= STANDARD_ERRORS * standard_error
        )
        bound = f"{in_words(near)} within {STANDARD_ERRORS} standard errors"
    measured = str(value).lower() if truth else in_words(value, 4)
    if standard_error is not None:
        measured += f" ± {in_words(standard_error, 2)}"
    if not holds and not playing():
        raise ClaimError(
            f"{statement}: {bound}, but measured {measured} (because {because})"
        )
    _show(holds, statement, bound, because, measured, kind)


def _number(name: str, value: object) -> float:
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError, RuntimeError):  # of what is no number, or several
        pass
    raise ValueError(f"{name} must be one number, but it is {value!r}")


def in_words(number: float, digits: int = 6) -> str:
    """Write a number as it is written on paper.

    Example:
        >>> in_words(-0.25), in_words(1e-9), in_words(3.2e7, 1)
        ('−0.25', '10⁻⁹', '3·10⁷')
    """
    mantissa, _, power = f"{number:.{digits}g}".replace("-", "−").partition("e")
    if not power:
        return mantissa
    ten = (
        "10"
        + power[0].replace("+", "").translate(SUPERSCRIPTS)
        + power[1:].lstrip("0").translate(SUPERSCRIPTS)
    )
    return ten if mantissa == "1" else f"{mantissa}·{ten}"


def _to_the_digits_of(tolerance: float, number: float) -> str:
    """Write a number with one digit more than the first one of what it may be off
    by.
    """
    return in_words(
        round(float(number), 1 - math.floor(math.log10(tolerance)))
        if tolerance > 0
        else number
    )


def anchor(line: str) -> str:
    """Name the place of a claim in its page."""
    return "claim-" + hashlib.sha256(line.encode()).hexdigest()[:12]


def _show(
    holds: bool, statement: str, bound: str, because: str, measured: str, kind: str
) -> None:
    line = (
        f"✓ {statement}: {bound} (because {because})"
        if holds
        else f"✗ {statement}: {bound}, but measured {measured}"
    )
    # IPython defines it; elsewhere there is no page to show the value on
    if "get_ipython" not in dir(builtins):
        print(line)
        return
    # Where the book's style sheet is not, as in Jupyter, VS Code and Colab, this reads
    # as a sentence, and a broken claim in red; the sheet makes columns of the parts and
    # hides what joins them.
    red = "" if holds else f' style="{RED}"'
    frame = (
        ""
        if holds
        else ' style="border-left: 3px solid #d32f2f; background: rgba(211, 47, 47, 0.12); padding: .3rem .6rem"'  # noqa: E501
    )
    page = (
        f'<div class="claim{"" if holds else " broken"}" id="{anchor(line)}" '
        f'data-kind="{kind}"{frame}>'
        f'<span class="verdict"{red}>{"✓" if holds else "✗"}</span> '
        f'<span class="statement">{html.escape(statement)}</span>{_joined(": ")}'
        "<span "
        f'class="bound">{html.escape(bound)}</span>{_joined("; " if holds else ", but ")}'  # noqa: E501
        f'<b{red}><span class="measured">measured '
        f"{html.escape(measured)}</span></b>{_joined(' (because ')}"
        f'<span class="because">{html.escape(because)}</span>{_joined(")")}</div>'
    )
    if not _OF_THIS_CELL:
        from IPython import get_ipython

        get_ipython().events.register("post_run_cell", _show_block)
    _OF_THIS_CELL.append((holds, line, page))


def _show_block(result: object = None) -> None:
    """Show the claims of a cell, at its end: a line that opens on click, all of them in
    the first output, and of the others the text alone, which is what is stored.
    """
    from IPython import get_ipython
    from IPython.display import display

    claims = list(_OF_THIS_CELL)
    _OF_THIS_CELL.clear()
    get_ipython().events.unregister("post_run_cell", _show_block)
    broken, total = sum(not holds for holds, *_ in claims), len(claims)
    rows = "".join(page for *_, page in claims)
    if broken:
        verb = "fails" if broken == 1 else "fail"
        start = '<details class="checks broken" open="open"><summary '
        start += f'style="{RED}">✗ {broken} of {total} checks {verb}'
    else:
        said = "1 check holds" if total == 1 else f"{total} checks hold"
        start = f'<details class="checks"><summary>✓ {said}'
    pages = [f'{start}</summary><div class="rows">{rows}</div></details>']
    pages += [COUNTED] * (total - 1)
    for (_, line, _), page in zip(claims, pages, strict=True):
        display({"text/plain": line, "text/html": page}, raw=True)


def _joined(words: str) -> str:
    return f'<span class="joined">{words}</span>'
