"""Tables of computed values; a page shows them as real tables.

Entries are words, rounded already, whose alignment pandas leaves to a Styler.
"""

import builtins
import html
import re
from collections.abc import Sequence

# What stays in one line where a cell has several: an interval, a value with its error
WHOLE = re.compile(r"\[[^\]]*\](?: \*)?|\S+ ± \S+")


def show_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], live: Sequence[str] = ()
) -> None:
    """Show a table: lines of text, and on a page of the book a real table whose first
    column names the rows.

    Args:
        heads: what stands over each column.
        rows: the entries of each row, as words.
        live: heads of the columns that a notebook's text leaves out, because the last
            digits of what is drawn differ between processors.

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
            raise ValueError(
                f"rows must have {len(heads)} entries, one for each of heads, but one "
                f"is {row}"
            )
    # IPython defines it; elsewhere there is no page that could show a table.
    if "get_ipython" not in dir(builtins):
        print(_lines(heads, *rows))
        return
    from IPython.display import display

    words = [any(map(_is_words, column)) for column in zip(*rows, strict=True)]
    head = _row("th", heads, words)
    body = "".join(f"<tr>{_row('td', row, words)}</tr>" for row in rows)
    page = (
        "<table "
        f'class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )
    kept = [place for place, head in enumerate(heads) if head not in live]
    text = _lines(*([row[place] for place in kept] for row in (heads, *rows)))
    display({"text/plain": text, "text/html": page}, raw=True)


def _lines(heads: Sequence[str], *rows: Sequence[str]) -> str:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(
                    entry.rjust(width)
                    for entry, width in zip(line[1:], widths[1:], strict=True)
                ),
            ]
        ).rstrip()
        for line in (heads, *rows)
    ]
    return "\n".join(lines)


def _row(cell: str, entries: Sequence[str], words: Sequence[bool]) -> str:
    first, *others = (
        WHOLE.sub(r'<span class="whole">\g<0></span>', html.escape(entry))
        for entry in entries
    )
    marks = [' class="words"' if left else "" for left in words[1:]]
    return f"<th>{first}</th>" + "".join(
        f"<{cell}{mark}>{entry}</{cell}>"
        for mark, entry in zip(marks, others, strict=True)
    )


def _is_words(entry: str) -> bool:
    return len(entry) > 3 and not any(letter.isdigit() for letter in entry)
