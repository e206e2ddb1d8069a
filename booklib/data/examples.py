"""Examples and their classes or values."""

from typing import NamedTuple

import torch
from torch import Tensor


class Data(NamedTuple):
    """Inputs in [0, 1] and their classes."""

    inputs: Tensor  #: (n, features) float32
    targets: Tensor  #: (n,) int64


def part(data: Data, which: slice | torch.Tensor) -> Data:
    """Take some of the examples."""
    return Data(*(values[which] for values in data))
