"""Playing: a page on which somebody changes a number goes on where something fails."""

import builtins

import sgmc.sampling

_ON = False


def play() -> None:
    """Let the rest of a notebook run where something fails.

    From here on a claim that does not hold shows ✗ and what was measured, and in place
    of raising an error a chain that diverges says so and has NaN for its further draws.
    Outside of notebooks both remain errors.

    Example:
        >>> play()
        >>> playing()  # this is no notebook
        False
    """
    global _ON
    _ON = "get_ipython" in dir(builtins)  # IPython defines it
    sgmc.sampling.ON_DIVERGENCE = "nan" if _ON else "raise"
    # many pages show wrong samplers on purpose, and measure them
    sgmc.sampling.LOOK_AT_WIDTH = not _ON


def playing() -> bool:
    """Tell whether what fails should say so and go on."""
    return _ON
