"""Split a test cell into parts that are graded one by one, and into what everybody
sees and what only grading runs.
"""

import re
from typing import NamedTuple

POINTS = re.compile(r"# POINTS (\d+(?:\.\d+)?): (.+)")
BEGIN, END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


class Block(NamedTuple):
    """A part of a test cell: it gives its points, or none."""

    points: float
    sentence: str  # what it asks for; empty if the cell is one part
    source: str  # what the cell's parts share, and the part itself


def visible(source: str) -> str:
    r"""Take the hidden tests out of a source.

    Example:
        >>> visible("one\n### BEGIN HIDDEN TESTS\ntwo\n### END HIDDEN TESTS\nthree")
        'one\nthree'
    """
    lines, inside = [], False
    for line in source.splitlines():
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def blocks(source: str, points: float) -> list[Block]:
    r"""Split a test cell at its lines ``# POINTS 4: a sentence``; what stands before
    the first of them belongs to every part.

    A cell without such lines is one part that is worth all points.

    Raises:
        ValueError: if the parts' points are not the cell's, or if one of the lines is
            among hidden tests.

    Example:
        >>> for block in blocks(
        ...     "x = 1\n# POINTS 1: one\nf(x)\n# POINTS 2: two\ng(x)", 3
        ... ):
        ...     print(block)
        Block(points=1.0, sentence='one', source='x = 1\nf(x)')
        Block(points=2.0, sentence='two', source='x = 1\ng(x)')
    """
    head, found, inside = [], [], False
    for line in source.splitlines():
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        if start := POINTS.fullmatch(line):
            if inside:
                raise ValueError(f"the line {line!r} is among hidden tests")
            found.append((float(start[1]), start[2], []))
        else:
            (found[-1][2] if found else head).append(line)
    if not found:
        return [Block(points, "", source)]
    total = sum(worth for worth, *_ in found)
    if total != points:
        raise ValueError(f"the parts have {total:g} points, their cell {points:g}")
    return [
        Block(worth, sentence, "\n".join(head + lines))
        for worth, sentence, lines in found
    ]
