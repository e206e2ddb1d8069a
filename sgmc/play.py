"""Playing: a page on which somebody changes a number goes on where something fails."""

import builtins
import os

_ON = False


def play() -> None:
    """Let the rest of a notebook run where something fails, if a reader sits at it.

    From here on a claim that does not hold shows ✗ and what was measured, and in place of raising an error a chain that diverges
    says so and has NaN for its further draws. Where ``SGMC_STRICT`` is set, as in the book's build and tests, and outside of notebooks,
    both remain errors.

    Example:
        >>> play()
        >>> playing()  # this is no notebook
        False
    """
    global _ON
    _ON = "get_ipython" in dir(builtins) and not os.environ.get("SGMC_STRICT")


def playing() -> bool:
    """Tell whether what fails should say so and go on."""
    return _ON
