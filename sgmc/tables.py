"""Tables of computed values, real ones on a page."""

import builtins
import html
from collections.abc import Sequence


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show a table: lines of text, and on a page of the book a real table, whose first column names the rows.

    Args:
        heads: what stands over each column.
        rows: the entries of each row, as words.

    Raises:
        ValueError: if a row has more or fewer entries than there are heads.

    Example:
        >>> show_table(["sampler", "error"], [["SGHMC", "1.63"], ["SGLD", "1.7"]])
        sampler  error
        SGHMC     1.63
        SGLD       1.7
    """
    rows = [[str(entry) for entry in row] for row in rows]
    for row in rows:
        if len(row) != len(heads):
            raise ValueError(f"rows must have {len(heads)} entries, one for each of heads, but one is {row}")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join([line[0].ljust(widths[0]), *(entry.rjust(width) for entry, width in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in (heads, *rows)
    ]
    text = "\n".join(lines)
    if "get_ipython" not in dir(builtins):  # IPython defines it; elsewhere there is no page to show a table on
        print(text)
        return
    from IPython.display import display

    head = "".join(f"<th>{html.escape(entry)}</th>" for entry in heads)
    body = "".join(f"<tr><th>{html.escape(row[0])}</th>{''.join(map(_cell, row[1:]))}</tr>" for row in rows)
    page = f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    display({"text/plain": text, "text/html": page}, raw=True)


def _cell(entry: str) -> str:
    words = "" if any(letter.isdigit() for letter in entry) or len(entry) < 4 else ' class="words"'
    return f"<td{words}>{html.escape(entry)}</td>"
