"""Checks of numbers and shapes at the door: each names the argument, what was given, and what is allowed."""

import math

from torch import Tensor


def check_positive(name: str, value: float) -> None:
    """Raise a ValueError unless ``value`` is a positive finite number."""
    if not (isinstance(value, (int, float)) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a positive number, but it is {value!r}")


def check_non_negative(name: str, value: float) -> None:
    """Raise a ValueError unless ``value`` is a finite number of at least zero."""
    if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
        raise ValueError(f"{name} must be a number of at least 0, but it is {value!r}")


def check_count(name: str, value: int, at_least: int = 1) -> None:
    """Raise a ValueError unless ``value`` is a whole number of at least so many."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, but it is {value!r}")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless ``value`` is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, but it is {value!r}")


def check_dims(**given: object) -> None:
    """Raise a ValueError unless positions ``(chains, dim)`` and matrices that are tensors have one number of coordinates."""
    values = {name: getattr(value, "value", value) for name, value in given.items()}
    dims = {name: value.shape[-1] for name, value in values.items() if isinstance(value, Tensor) and value.ndim > 0}
    if len(set(dims.values())) > 1:
        listed = ", ".join(f"{name} has {dim}" for name, dim in dims.items())
        raise ValueError(f"the numbers of coordinates do not agree: {listed}")
