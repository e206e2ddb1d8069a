"""Read the cells of a submission for what a lecturer should ask about: what a task
rules out, ways to hide it, and texts longer than an answer is.

This costs no points. What decides is that an answer is graded where ``sgmc`` is not
there (see ``absent``), by cases in which nothing but the mathematics helps."""

import re
from collections.abc import Collection

# ways to run, to find or to fetch code that the cell does not show, also that of a
# package with samplers
HIDING = (
    *r"exec\( eval\( compile\( __import__ importlib import_module base64 zlib".split(),
    *"marshal pickle ctypes subprocess _getframe get_objects sys.modules".split(),
    *"meta_path urllib requests socket get_ipython runpy CodeType builtins".split(),
    *"__builtins__ pyro".split(),
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
        >>> questions("from pyro.ops.integrator import velocity_verlet", ["sgmc"])
        ['pyro']
        >>> questions("model.eval(); re.compile('sgmcx')", ["sgmc"])
        []
    """
    if not forbidden:
        return []
    patterns = {word: rf"(?<![.\w]){re.escape(word)}(?!\w)" for word in forbidden}
    for word in HIDING:  # a method may be called eval; a name may follow a dot
        call = word.endswith("(")
        name = word.replace("\\", "")
        patterns[name] = rf"(?<![.\w]){word}" if call else rf"(?<!\w){word}(?!\w)"
    found = [word for word, text in patterns.items() if re.search(text, source)]
    if len(source) > LONGEST:
        found.append(f"{len(source):,} characters")
    return found
