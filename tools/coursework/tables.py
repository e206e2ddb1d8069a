"""Tables in files that any spreadsheet may open: a cell is one line, and no formula."""

import csv
import re
import unicodedata
from pathlib import Path
from typing import TextIO

# with what a formula begins, also behind white space, and in the full-width forms of
# Asian fonts
SIGNS = "=+-−@"
NUMBER = re.compile(r"[+-]?[\d.,]*(e[+-]?\d+)?", re.IGNORECASE)


def one_line(text: str) -> str:
    r"""Put a text into one line that every program can write: no control characters, no
    end of a line, no half of a character.

    Example:
        >>> one_line("one\u2028two\ud800")
        'one two?'
    """
    spaces = {"Cc", "Zl", "Zp"}
    return "".join(
        " " if unicodedata.category(sign) in spaces else sign
        for sign in text.encode("utf-8", "replace").decode()
    )


def safe(value):
    """Make of a text a cell that no spreadsheet computes: an apostrophe goes before
    what would be a formula; numbers stay as they are.

    Example:
        >>> (
        ...     safe(" =1+1"),
        ...     safe("＠SUM"),
        ...     safe("Ann;=1"),
        ...     safe("-2.5"),
        ...     safe("-"),
        ...     safe(-1),
        ... )
        ("' =1+1", "'＠SUM", "Ann;'=1", '-2.5', '-', -1)
    """
    if not isinstance(value, str):
        return value
    # Where a semicolon parts cells, a spreadsheet opens a table with commas
    # nevertheless, and parts its cells at semicolons.
    return ";".join(
        f"'{part}" if _is_formula(part) else part for part in one_line(value).split(";")
    )


def _is_formula(text: str) -> bool:
    seen = "".join(
        sign
        for sign in unicodedata.normalize("NFKC", text)
        if unicodedata.category(sign) != "Cf"
    ).strip(" '\"")
    return (
        seen[:1] in tuple(SIGNS)
        and not text.startswith("'")
        and not NUMBER.fullmatch(seen)
    )


def read(path: str | Path) -> list[dict[str, str]]:
    """Read a table; a byte-order mark, which Moodle and Excel write, is left out.

    Raises:
        ValueError: if the file is no text in UTF-8.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} should be a table with commas between its cells, in UTF-8: {error}"
        ) from None


def write(file: TextIO, head: list[str], rows: list[dict]) -> None:
    """Write a table, every cell of it safe."""
    table = csv.DictWriter(file, head)
    table.writeheader()
    table.writerows({name: safe(value) for name, value in row.items()} for row in rows)
