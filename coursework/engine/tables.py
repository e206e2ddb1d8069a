"""Tables in files that any spreadsheet may open: no cell is a formula."""

import csv
import re
from pathlib import Path
from typing import TextIO

NUMBER = re.compile(r"[+-]?[\d.,]*(e[+-]?\d+)?", re.IGNORECASE)


def safe(value):
    r"""Put a text into one line; an apostrophe goes before what would be a formula.

    Example:
        >>> [safe(value) for value in (" =1+1", "＠SUM", "-2.5", "two\nlines", -1)]
        ["'=1+1", "'＠SUM", '-2.5', 'two lines', -1]
    """
    if not isinstance(value, str):
        return value
    text = " ".join(value.encode("utf-8", "replace").decode().replace("\0", "").split())
    is_formula = text[:1] in tuple("=+-@|%＝＋－＠") and not NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


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


def write(file: TextIO | Path, rows: list[dict], head: list[str] | None = None) -> None:
    """Write a table, every cell of it safe; one without rows only if it has a head."""
    head = head or list(rows[0] if rows else ())
    if not head:
        return
    if isinstance(file, Path):
        with open(file, "w", newline="", encoding="utf-8") as opened:
            write(opened, rows, head)
        return
    table = csv.DictWriter(file, head)
    table.writeheader()
    table.writerows({name: safe(value) for name, value in row.items()} for row in rows)
