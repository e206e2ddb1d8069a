"""Checks at the door: each names the argument, what was given, and what is allowed."""

import math
from collections.abc import Callable
from types import UnionType
from typing import Any

import torch
from torch import Tensor


def is_number(value: object) -> bool:
    """Tell whether ``value`` is a number of Python that a tensor may hold, and no NaN.

    Example:
        >>> is_number(1), is_number(True), is_number("1"), is_number(math.nan)
        (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return value == value and (isinstance(value, float) or abs(value) < 2**63)


def _require(right: bool, name: str, what: str, value: object) -> None:
    """Raise a ValueError unless the value is right, and show how to make a number of a
    tensor or an array that is one.
    """
    if not right:
        remedy = f": use {name}.item()" if getattr(value, "ndim", None) == 0 else ""
        raise ValueError(f"{name} must be {what}, but it is {value!r}{remedy}")


def check_positive(name: str, value: float, at_most: float = math.inf) -> None:
    """Raise a ValueError unless ``value`` is a positive finite number, of at most so
    much."""
    right = is_number(value) and 0 < value < math.inf and value <= at_most
    limit = f" of at most {at_most:g}" if at_most < math.inf else ""
    _require(right, name, f"a positive number{limit}", value)


def check_step_size(
    name: str, value: float | Callable[[int], float], counted: str
) -> None:
    """Raise a ValueError unless ``value`` is a positive number, or a function from the
    number of what is counted to one.

    Example:
        >>> check_step_size("step_size", lambda t: -0.1, "steps")
        Traceback (most recent call last):
        ValueError: step_size must be a positive number, but it is -0.1
    """
    try:
        first = value(0) if callable(value) else value
    except TypeError as error:
        raise ValueError(
            f"{name} must be a number, or a function of the number of {counted} taken "
            f"so far: {error}"
        ) from error
    check_positive(name, first)


def check_number(
    name: str, value: float, at_least: float = -math.inf, below: float = math.inf
) -> None:
    """Raise a ValueError unless ``value`` is a finite number, of at least so much and
    below a limit.

    Example:
        >>> check_number("averaging", 1.0, 0, 1)
        Traceback (most recent call last):
        ValueError: averaging must be a number of at least 0 and less than 1, but it is
            1.0
    """
    right = is_number(value) and at_least <= value < below and value > -math.inf
    limit = f" and less than {below:g}" if below < math.inf else ""
    what = f"a number of at least {at_least:g}" if at_least > -math.inf else ""
    _require(right, name, f"{what or 'a finite number'}{limit}", value)


def check_count(name: str, value: int, at_least: int = 1) -> None:
    """Raise a ValueError unless ``value`` is a whole number of at least so many."""
    right = type(value) is int and value >= at_least
    _require(right, name, f"a whole number of at least {at_least}", value)


def check_seed(name: str, value: int) -> None:
    """Raise a ValueError unless ``value`` is a whole number of at most 64 bits."""
    right = type(value) is int and -(2**63) <= value < 2**64
    _require(right, name, "a whole number from -2**63 and less than 2**64", value)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless ``value`` is one of the choices."""
    right = isinstance(value, str) and value in choices
    _require(right, name, f"one of {', '.join(choices)}", value)


def shown(value: object) -> str:
    """Show a value in a message: a tensor by its shape and dtype, a number or a word as
    it is, anything else by its type.

    Example:
        >>> import torch
        >>> shown(torch.zeros(3, 2)), shown([1.0]), shown(0.5)
        ('(3, 2) of torch.float32', 'a list', '0.5')
    """
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} of {value.dtype}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (int, float, str)):
        return f"{value!r}"
    return f"a {type(value).__name__}"


def check_indices(name: str, value: Any, number: int) -> None:
    """Raise a ValueError unless ``value`` has different whole numbers below another
    one, int64 ``(size,)``."""
    check_tensor(name, value, "size", floating=False)
    different = f"{value.dtype}" == "torch.int64" and len(value.unique()) == len(value)
    right = different and 0 <= int(value.min()) <= int(value.max()) < number
    what = f"different numbers of torch.int64 from 0 to {number - 1}"
    _require(right, name, what, (value.dtype, value.tolist()))


def check_instance(
    name: str, value: object, kind: type | UnionType, example: str
) -> None:
    """Raise a ValueError unless ``value`` is an object of that kind; a class is none.

    Example:
        >>> check_instance("path", 3, str, '"run.pt"')
        Traceback (most recent call last):
        ValueError: path must be of type str, such as "run.pt", but it is 3
    """
    if isinstance(value, type) or not isinstance(value, kind):
        raise ValueError(
            f"{name} must be of type {getattr(kind, '__name__', kind)}, such as "
            f"{example}, but it is {shown(value)}"
        )


def check_tensor(name: str, value: Any, *axes: str, floating: bool = True) -> None:
    """Raise a ValueError unless ``value`` is a tensor of finite numbers, floating-point
    ones by default, with as many axes as are named; ``"..."`` is any number of them.

    Example:
        >>> check_tensor("inputs", [1.0, 2.0], "n", "features")
        Traceback (most recent call last):
        ValueError: inputs must be a floating-point tensor (n, features), but it is a
            list: use torch.as_tensor(inputs)
    """
    form = "a floating-point tensor" if floating else "a tensor"
    if axes != ("...",):
        form += f" ({', '.join(axes)}{',' * (len(axes) == 1)})"
    if not isinstance(value, Tensor):
        remedy = f"use torch.as_tensor({name})"
        array = isinstance(value, list | tuple) or hasattr(value, "__array__")
        if hasattr(value, "__len__") and not array:  # a loader, a data set
            remedy = "put its examples together by torch.stack or torch.cat"
        raise ValueError(f"{name} must be {form}, but it is {shown(value)}: {remedy}")
    more = value.ndim - len(axes)
    right = more >= -1 if axes[0] == "..." else more == 0
    if not right or value.is_complex() or floating > value.is_floating_point():
        raise ValueError(f"{name} must be {form}, but it is {shown(value)}")
    if value.numel() == 0 or value.is_meta:
        what = "holds no numbers, on the device meta" if value.is_meta else "is empty"
        raise ValueError(f"{name} {tuple(value.shape)} {what}")
    # in one pass, and with no memory of their size
    if not all(math.isfinite(extreme) for extreme in value.detach().aminmax()):
        place = tuple(int(index) for index in (~value.isfinite()).nonzero()[0])
        raise ValueError(
            f"{name} must be finite, but it is {float(value[place])} at {place}: "
            "leave such entries out, or mend them"
        )


def check_dims(**given: Any) -> None:
    """Raise a ValueError unless positions ``(chains, dim)`` and matrices that are
    tensors have one number of coordinates, and suit.
    """
    values = {name: getattr(value, "value", value) for name, value in given.items()}
    axes = {n: x for n, x in values.items() if isinstance(x, Tensor) and x.ndim}
    dims = {name: value.shape[-1] for name, value in axes.items()}
    # of what is multiplied
    types = {name: value.dtype for name, value in axes.items() if value.ndim > 1}
    for what, found in (("numbers of coordinates", dims), ("types of numbers", types)):
        if len(set(found.values())) > 1:
            listed = ", ".join(f"{name} has {each}" for name, each in found.items())
            raise ValueError(f"the {what} do not agree: {listed}")


def check_precision(name: str, value: Tensor) -> None:
    """Raise a ValueError if a tensor is of half precision, in which no matrix is
    factorised."""
    if value.element_size() < 4:
        raise ValueError(
            f"{name} must be of torch.float32 or torch.float64, in which matrices can "
            f"be factorised, but it is of {value.dtype}: use {name}.float(), and data "
            "of that type"
        )


def evaluate(function: Callable[[], Any], position: Tensor) -> Any:
    """Call a function of a potential at a position ``(chains, dim)``; what goes wrong
    there is a ValueError that says so.

    Example:
        >>> evaluate(lambda: torch.ones(2) + torch.ones(3), torch.zeros(1, 3))
        Traceback (most recent call last):
        ValueError: the potential cannot take a position of shape (1, 3), torch.float32:
            The size of tensor a (2) must match the size of tensor b (3) at ...
    """
    try:
        return function()
    except NotImplementedError:
        raise
    except (RuntimeError, TypeError, IndexError) as error:
        remedy = ". Positions and data need one type, such as y.float()"
        remedy = remedy if "type" in str(error) else ""
        raise ValueError(
            f"the potential cannot take a position of shape {tuple(position.shape)}, "
            f"{position.dtype}: {error}{remedy}"
        ) from error


def agree(one: Tensor | None, other: Tensor | None, root: int = 2) -> bool:
    """Tell whether two results ``(chains, ...)`` are the same up to a root of the
    precision, relative to the largest number of a chain.

    Example:
        >>> agree(torch.tensor([1.0]), torch.tensor([1.00001]))
        True
    """
    if one is None or other is None:
        return one is other
    scale = 1 + other.abs()
    if other.ndim > 1:
        scale = other.abs() + other.abs().amax(-1, keepdim=True)
    near = (one - other).abs() <= torch.finfo(other.dtype).eps ** (1 / root) * scale
    return bool((near | (one == other) | (one.isnan() & other.isnan())).all())
