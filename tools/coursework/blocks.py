"""Split a test cell into blocks that are graded one by one, and into what everybody
sees and what only grading runs.
"""

import re
from typing import NamedTuple

POINTS = re.compile(r"# POINTS (\d+(?:\.\d+)?): (.+)")
BEGIN, END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


class Block(NamedTuple):
    """A part of a test cell: it gives its points, or none."""

    points: float
    sentence: str  # what it asks for; empty if the cell is one block
    source: str  # what the cell's blocks share, and the block itself


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
    the first of them belongs to every block.

    A cell without such lines is one block that is worth all points.

    Raises:
        ValueError: if the blocks' points are not the cell's, or if one of the lines, or
            a block's end, is among hidden tests.

    Example:
        >>> for block in blocks(
        ...     "x = f(1)\n# POINTS 1: a number\nfloat(x)\n# POINTS 2: the right one\nassert x == 1",
        ...     3,
        ... ):
        ...     print(block)
        Block(points=1.0, sentence='a number', source='x = f(1)\nfloat(x)')
        Block(points=2.0, sentence='the right one', source='x = f(1)\nassert x == 1')
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
    if sum(worth for worth, *_ in found) != points:
        raise ValueError(
            f"the blocks have {sum(worth for worth, *_ in found):g} points, and their "
            f"cell has {points:g}"
        )
    return [
        Block(worth, sentence, "\n".join(head + lines))
        for worth, sentence, lines in found
    ]
