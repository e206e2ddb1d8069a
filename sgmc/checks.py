"""Checks of arguments: each error names the argument, what was given, and what is
allowed.
"""

import copy
import math
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy

MEMORY = 4 * 2**30  # the bytes that a full matrix of all chains may take
_ANY_MODULE = (
    "Modules with several inputs or with keywords are for sgmc.models.NamedPosterior, "
    "whose log_likelihood calls torch.func.functional_call(module, parameters, (), "
    "keywords) with its data"
)


def warn(text: str, stacklevel: int = 2) -> None:
    """Warn; to a text that ends in the label of an entry, add the page that has it.

    Example:
        >>> with warnings.catch_warnings(record=True, action="always") as said:
        ...     warn("take a smaller step_size [too-wide]")
        >>> print(said[0].message)
        take a smaller step_size [too-wide: see "When it goes wrong" in the book]
    """
    end = ': see "When it goes wrong" in the book]' if text.endswith("]") else text[-1:]
    warnings.warn(text[:-1] + end, stacklevel=stacklevel + 1)


def is_number(value: object) -> bool:
    """Tell whether ``value`` is a number of Python that a tensor can hold, and is not
    NaN.

    Example:
        >>> is_number(1), is_number(True), is_number("1"), is_number(math.nan)
        (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return value == value and (isinstance(value, float) or abs(value) < 2**63)


def _require(right: bool, name: str, what: str, value: object) -> None:
    """Raise a ValueError unless the value is valid; if it is a tensor or an array of
    one number, show how to make a number of it.
    """
    if not right:
        remedy = f": use {name}.item()" if getattr(value, "ndim", None) == 0 else ""
        raise ValueError(f"{name} must be {what}, but it is {value!r}{remedy}")


def check_positive(name: str, value: float, at_most: float = math.inf) -> None:
    """Raise a ValueError unless ``value`` is a positive finite number, of at most the
    given limit.

    Example:
        >>> check_positive("friction", -1.0)
        Traceback (most recent call last):
        ValueError: friction must be a positive number, but it is -1.0
    """
    right = is_number(value) and 0 < value < math.inf and value <= at_most
    limit = f" of at most {at_most:g}" if at_most < math.inf else ""
    _require(right, name, f"a positive number{limit}", value)


def check_step_size(
    name: str, value: float | Callable[[int], float], counted: str
) -> None:
    """Raise a ValueError unless ``value`` is a positive number, or a function that
    returns one for a count.

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
    """Raise a ValueError unless ``value`` is a finite number, at least a minimum and
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
    """Raise a ValueError unless ``value`` is a whole number of at least a minimum.

    Example:
        >>> check_count("num_steps", 2.5)
        Traceback (most recent call last):
        ValueError: num_steps must be a whole number of at least 1, but it is 2.5
    """
    right = type(value) is int and value >= at_least
    _require(right, name, f"a whole number of at least {at_least}", value)


def check_seed(name: str, value: int) -> None:
    """Raise a ValueError unless ``value`` is a whole number of at most 64 bits.

    Example:
        >>> check_seed("seed", 0.5)
        Traceback (most recent call last):
        ValueError: seed must be a whole number from -2**63 and less than 2**64, but it
            is 0.5
    """
    right = type(value) is int and -(2**63) <= value < 2**64
    _require(right, name, "a whole number from -2**63 and less than 2**64", value)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless ``value`` is one of the choices.

    Example:
        >>> check_choice("weights", "even", ("uniform", "energy", "work"))
        Traceback (most recent call last):
        ValueError: weights must be one of uniform, energy, work, but it is 'even'
    """
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


def check_instance(name: str, value: object, kind: Any, example: str) -> None:
    """Raise a ValueError unless ``value`` is an object of that kind; the class itself
    is not accepted.

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
    ones by default, with as many axes as are named; ``"..."`` stands for any number of
    axes.

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
        if hasattr(value, "__len__") and not array:  # such as a loader or a data set
            remedy = "put its examples together by torch.stack or torch.cat"
        raise ValueError(f"{name} must be {form}, but it is {shown(value)}: {remedy}")
    more = value.ndim - len(axes)
    right = more >= -1 if axes[0] == "..." else more == 0
    if not right or value.is_complex() or floating > value.is_floating_point():
        raise ValueError(f"{name} must be {form}, but it is {shown(value)}")
    if value.numel() == 0 or value.is_meta:
        what = "holds no numbers, on the device meta" if value.is_meta else "is empty"
        raise ValueError(f"{name} {tuple(value.shape)} {what}")
    # The check takes one pass, and no memory of the tensor's size.
    if not all(math.isfinite(extreme) for extreme in value.detach().aminmax()):
        place = tuple(int(index) for index in (~value.isfinite()).nonzero()[0])
        raise ValueError(
            f"{name} must be finite, but it is {float(value[place])} at {place}: "
            "leave such entries out, or correct them"
        )


def check_dims(**given: Any) -> None:
    """Raise a ValueError unless positions ``(chains, dim)`` and matrices that are
    tensors have the same number of coordinates, and suitable types.

    Example:
        >>> check_dims(position=torch.zeros(4, 2), mass=torch.ones(3))
        Traceback (most recent call last):
        ValueError: the numbers of coordinates do not agree: position has 2, mass has 3
    """
    values = {name: getattr(value, "value", value) for name, value in given.items()}
    axes = {n: x for n, x in values.items() if isinstance(x, Tensor) and x.ndim}
    dims = {name: value.shape[-1] for name, value in axes.items()}
    # Only matrices and positions are multiplied, so only their types have to agree.
    types = {name: value.dtype for name, value in axes.items() if value.ndim > 1}
    for what, found in (("numbers of coordinates", dims), ("types of numbers", types)):
        if len(set(found.values())) > 1:
            listed = ", ".join(f"{name} has {each}" for name, each in found.items())
            raise ValueError(f"the {what} do not agree: {listed}")


def check_precision(name: str, value: Tensor) -> None:
    """Raise a ValueError if a tensor has half precision, in which no matrix can be
    factorised.

    Example:
        >>> check_precision("position", torch.zeros(2, dtype=torch.float16))
        Traceback (most recent call last):
        ValueError: position must be of torch.float32 or torch.float64, ...
    """
    if value.element_size() < 4:
        raise ValueError(
            f"{name} must be of torch.float32 or torch.float64, in which matrices can "
            f"be factorised, but it is of {value.dtype}: use {name}.float(), and data "
            "of that type"
        )


def evaluate(function: Callable[[], Any], position: Tensor) -> Any:
    """Call a function of a potential at a position ``(chains, dim)``; an error there
    becomes a ValueError that describes it.

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
    """Tell whether two results ``(chains, ...)`` agree up to a root of the precision,
    relative to the largest number of a chain.

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


def check_module(module: Any, inputs: Any) -> None:
    """Raise a ValueError unless a module has parameters of its own, and its inputs are
    one tensor.

    Example:
        >>> check_module(nn.LazyLinear(2), torch.zeros(5, 3))
        Traceback (most recent call last):
        ValueError: module is lazy, and its parameters ['weight', 'bias'] have no shapes
            yet: ...
    """
    check_instance("module", module, nn.Module, "torch.nn.Linear(784, 10)")
    if isinstance(module, torch.jit.ScriptModule):
        raise ValueError(
            "module is compiled by torch.jit, which hides its parameters: give the "
            "nn.Module that it was compiled from"
        )
    if lazy := [name for name, x in module.named_parameters() if is_lazy(x)]:
        raise ValueError(
            f"module is lazy, and its parameters {lazy} have no shapes yet: first call "
            "it once, as in module.eval()(inputs[:2])"
        )
    if isinstance(inputs, (tuple, list, Mapping)):
        raise ValueError(
            f"inputs must be one tensor, but they are a {type(inputs).__name__}. "
            f"{_ANY_MODULE}"
        )
    check_tensor("inputs", inputs, "...", floating=False)


def copied(module: nn.Module) -> nn.Module:
    """Copy a module; raise a ValueError if it holds something that cannot be copied.

    Example:
        >>> module = nn.Linear(1, 1)
        >>> copied(module) is module
        False
    """
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        raise ValueError(
            "module cannot be copied, for it keeps a tensor that was computed of "
            "its parameters, such as an output: keep its .detach(), and instead of "
            "torch.nn.utils.weight_norm take torch.nn.utils.parametrizations' own"
        ) from error


def check_outputs(
    module: nn.Module, inputs: Tensor, parameters: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Call a module twice, and with fewer inputs: raise a ValueError if it cannot be
    called, returns no tensor, or has outputs that are random or depend on changed
    buffers or on the other inputs. Return the buffers that it changes, such as a count
    of calls.

    Example:
        >>> module = nn.Dropout(0.5)
        >>> check_outputs(module, torch.ones(8, 3), {})
        Traceback (most recent call last):
        ValueError: in training mode the module's outputs are random, ...
    """
    own = {name: x.clone() for name, x in module.named_buffers()}
    of = lambda few: functional_call(module, parameters | own, (few,))
    try:
        with torch.no_grad():
            found = [of(few) for few in (inputs, inputs, inputs[:2])]
    except (RuntimeError, TypeError, ValueError, LookupError) as error:
        raise ValueError(
            f"the module cannot take inputs of {shown(inputs)}: {error}"
        ) from error
    if not all(isinstance(outputs, Tensor) for outputs in found):
        raise ValueError(
            f"the module returns a {type(found[0]).__name__}, and no tensor: take the "
            "outputs out of it in the forward of a module around it. " + _ANY_MODULE
        )
    changing = {n: x for n, x in module.named_buffers() if not x.equal(own[n])}
    layers = [name for name, layer in module.named_modules() if _in_training(layer)]
    # The second comparison is coarse, because the sums over few inputs round otherwise,
    # and mixing changes much.
    same = agree(found[0], found[1])
    if layers or not (same and agree(found[2], found[0][: len(found[2])], root=5)):
        raise ValueError(
            "in training mode the module's outputs are random, as by dropout, or "
            "depend on the others of its minibatch, as by batch normalisation, or on "
            f"its calls, as by spectral normalisation (layers {layers}, buffers "
            f"{sorted(changing)[:3]}): use module.eval(), or nn.GroupNorm, or "
            "torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight')"
        )
    return changing


def _in_training(layer: nn.Module) -> bool:
    if isinstance(layer, _BatchNorm):
        return layer.training or layer.running_mean is None
    return isinstance(layer, _DropoutNd) and layer.training and layer.p > 0


def check_data(data: Any) -> int:
    """Count the examples; raise a ValueError unless data are tensors of one length.

    Example:
        >>> check_data((torch.zeros(5, 2), torch.zeros(5)))
        5
        >>> check_data((torch.zeros(5, 2), torch.zeros(4)))
        Traceback (most recent call last):
        ValueError: data must be a sequence of tensors with the same number of ...
    """
    found: Any = type(data).__name__
    if isinstance(data, Sequence):
        found = [
            len(x) if isinstance(x, Tensor) and x.ndim > 0 else type(x).__name__
            for x in data
        ]
        if len(set(found)) == 1 and isinstance(found[0], int) and found[0] > 0:
            return found[0]
    raise ValueError(
        "data must be a sequence of tensors with the same number of examples on their "
        f"first axis, such as (x, y), not {found}: put the examples of a loader "
        "together by torch.stack or torch.cat, or, if they are many, on the disk"
    )


def versions(data: Sequence[Tensor]) -> list[tuple[int | None, int]]:
    """Identify the contents of data, so that tensors changed in place are noticed: by
    PyTorch's count of changes, and by a checksum for changes that it does not see, as
    by NumPy. The checksum covers all the numbers up to 4 GiB, which takes a second; of
    more, such as a file larger than memory, it covers evenly chosen examples of that
    size.

    Example:
        >>> data = torch.zeros(3)
        >>> before = versions([data])
        >>> data[0] = 1.0
        >>> versions([data]) == before
        False
    """
    found = []
    for x in data:
        count, checksum = None if x.is_inference() else x._version, 0
        size = x.numel() * x.element_size()
        for piece in x.detach()[:: size // (MEMORY + 1) + 1].split(2**12):
            numbers = piece.cpu().contiguous().view(torch.uint8).numpy()
            checksum = zlib.crc32(numbers.data, checksum)
        found.append((count, checksum))
    return found


def check_fits(chains: int, dim: int, element_size: int) -> None:
    """Raise a ValueError if full matrices of all chains are too large for memory.

    Example:
        >>> check_fits(chains=4, dim=100_000, element_size=4)
        Traceback (most recent call last):
        ValueError: a full noise estimate of 100,000 coordinates in 4 chains takes 149.0
            GiB, ...
    """
    size = chains * dim**2 * element_size
    if size > MEMORY:
        raise ValueError(
            f"a full noise estimate of {dim:,} coordinates in {chains} "
            f"chain{'s' * (chains > 1)} takes {size / 2**30:,.1f} GiB, "
            f"more than {MEMORY / 2**30:g} GiB: use kind='diagonal' or 'scalar', or "
            "fewer chains"
        )
