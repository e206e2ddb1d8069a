"""Read the cells of a submission for what a lecturer should ask about: what a task
rules out, ways to hide it, and texts longer than an answer is.

This costs no points. What decides is that an answer is graded where ``sgmc`` is not
there (see ``absent``), by cases in which nothing but the mathematics helps."""

import re
from collections.abc import Collection

# ways to run, to find or to fetch code that the cell does not show
HIDING = (
    *r"exec\( eval\( compile\( __import__ importlib import_module base64 zlib".split(),
    *"marshal pickle ctypes subprocess _getframe get_objects sys.modules".split(),
    *"meta_path urllib requests socket".split(),
)
LONGEST = 20_000  # characters of a cell that is read without a remark


def questions(source: str, forbidden: Collection[str]) -> list[str]:
    r"""Name what in a cell deserves a question.

    Args:
        source: the cell.
        forbidden: words that its task rules out; without them nothing is asked.

    Example:
        >>> questions("import sgmc.kernels\nexec(text)", ["sgmc"])
        ['sgmc', 'exec(']
        >>> questions("model.eval(); re.compile('sgmcx')", ["sgmc"])
        []
    """
    if not forbidden:
        return []
    words = [*map(re.escape, forbidden), *HIDING]
    found = [
        word.replace("\\", "")
        for word in words
        if re.search(rf"(?<![.\w]){word}(?!\w)", source)
    ]
    if len(source) > LONGEST:
        found.append(f"{len(source):,} characters")
    return found
