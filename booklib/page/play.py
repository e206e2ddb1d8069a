"""Playing: a page goes on where something fails, so that readers can change its
numbers.
"""

import builtins
import functools
import math
import warnings
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from sgmc.door.sampling import DivergenceError, Draws, sample

_ON = False
# Many pages show wrong samplers on purpose, and measure them, so these warnings are
# off.
WIDTH = ".*too (wide|narrow)|.*left the support|.*halves of the chain"


def play() -> None:
    """Let the rest of a notebook run where something fails.

    From here on a claim that does not hold shows ✗ and what was measured, and where a
    chain diverges, the notebook's ``sample`` says so in place of raising an error, and
    gives what was drawn, filled up with NaN. Outside of notebooks both remain errors.

    Example:
        >>> play()
        >>> playing()  # this is no notebook
        False
    """
    global _ON
    shell = getattr(builtins, "get_ipython", None)  # IPython defines it
    _ON = shell is not None
    if shell is not None:
        warnings.filterwarnings("ignore", message=WIDTH)
        names, events = shell().user_ns, shell().events
        _go_on(names)
        # A cell may import sample anew.
        events.register("pre_run_cell", lambda *_: _go_on(names))


def playing() -> bool:
    """Tell whether a failure should be printed and the page go on."""
    return _ON


def _go_on(names: dict[str, object]) -> None:
    if names.get("sample") is sample:
        names["sample"] = _filled_up


@functools.wraps(sample)
def _filled_up(kernel, potential, position, num_samples, **settings) -> Draws:
    """Sample; where a chain diverges, print so, and fill the rest of the draws with
    NaN.
    """
    try:
        return sample(kernel, potential, position, num_samples, **settings)
    except DivergenceError as error:
        warnings.warn(f"{error}. Here the rest of them is NaN", stacklevel=2)
        draws = error.draws

    def fill(value: Tensor) -> Tensor:
        form = num_samples - len(value), *value.shape[1:]
        unknown = math.nan if value.is_floating_point() else 0
        return torch.cat([value, value.new_full(form, unknown)])

    samples, statistics = tree_map(fill, (draws.samples, draws.statistics))
    return replace(draws, samples=samples, statistics=statistics)
