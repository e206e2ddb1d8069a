"""Stand for ``sgmc`` where answers are graded, in place of each of its modules:
everything can be imported, so that no cell fails for an import, and nothing can be
used.
"""

SENTENCE = "sgmc is not there when this task is graded: write the function yourself"


class Absent(type):
    """The type of all that is imported."""

    def __getattr__(cls, name):
        return __getattr__(name)

    def __call__(cls, *arguments, **named):
        """Say that it is not there."""
        raise RuntimeError(SENTENCE)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(name, (), {})
