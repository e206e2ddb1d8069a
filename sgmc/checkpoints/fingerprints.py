"""Hashes by content of everything on which a run depends, which distinguish it from
other runs.

``joblib.hash`` pickles, and so takes two functions of one name for the same, and no
function that is defined within another at all.
"""

import copyreg
import dis
import functools
import hashlib
import sys
import types
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Values of these types are hashed by their printed form.
_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, range, torch.Size),
    *(type(Ellipsis), type(NotImplemented), torch.dtype, torch.device, torch.layout),
)
# Values of these types are hashed by some of their attributes.
_ATTRIBUTES = {
    types.MethodType: ("__func__", "__self__"),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    types.CodeType: [
        f"co_{name}"
        for name in "code consts names varnames freevars cellvars argcount "
        "posonlyargcount kwonlyargcount flags exceptiontable".split()
    ],
}
# A brief fingerprint takes at most so many parts, and so many bytes of a tensor.
_PARTS, _BYTES = 10**5, 2**28


def fingerprint(thing: object, name: str = "settings") -> str:
    """Hash everything on which a run depends, by content: numbers, tensors,
    collections, functions with the variables that they enclose, kernels and potentials.

    Functions are hashed as this version of Python compiles them, without comments and
    layout, and with the values that they read from other modules of the user's own.

    Raises:
        ValueError: if it holds something whose content cannot be hashed.

    Example:
        >>> def prior(scale):
        ...     return lambda position: -position / scale
        >>> fingerprint(prior(1.0)) == fingerprint(prior(1.0))
        True
        >>> fingerprint(prior(1.0)) == fingerprint(prior(2.0))
        False
    """
    return _Fingerprint(name).of(thing).hex()


def brief_fingerprint(thing: object) -> str:
    """Hash a thing as far as a fraction of a second allows: of a tensor above 256 MiB
    evenly chosen bytes. The hash is empty if the thing cannot be hashed, or has over
    100,000 parts.

    Example:
        >>> brief_fingerprint([1.0, 2.0]) == brief_fingerprint([1.0, 2.0])
        True
        >>> import threading
        >>> brief_fingerprint(threading.Lock())
        ''
    """
    try:
        return _Fingerprint("potential", _PARTS, _BYTES).of(thing).hex()
    except Exception:  # a user's object may raise anything
        return ""


class _Fingerprint:
    """The hashes of a thing and of all that it consists of, each taken once."""

    def __init__(self, name: str, parts: float = inf, size: float = inf):
        self.name, self.parts, self.size = name, parts, size
        # The things are kept, too, so that no new one gets the identity of a deleted
        # one.
        self.known: dict[int, tuple[object, bytes]] = {}
        self.depth: dict[int, int] = {}  # the depth of the things that are not done yet

    @functools.cached_property
    def modules(self) -> dict[str, types.ModuleType]:
        """The modules of the user's own."""
        return {n: x for n, x in [*sys.modules.items()] if _is_own_module(x)}

    def of(self, thing: object) -> bytes:
        kind, key = type(thing), id(thing)
        digest = hashlib.sha256(f"<{kind.__module__}.{kind.__qualname__}>".encode())
        # This is a function that calls itself, or an object that refers to its owner:
        # so many levels above.
        if key in self.depth:
            levels = len(self.depth) - self.depth[key]
            return hashlib.sha256(b"above %d" % levels).digest()
        if key not in self.known:
            self.depth[key] = len(self.depth)
            content, parts = self.content(thing)
            self.parts -= len(parts)
            if self.parts < 0:
                raise self.cannot_tell(thing)
            digest.update(b"%d:" % len(parts))
            for part in parts:
                digest.update(self.of(part))
            digest.update(content)
            del self.depth[key]
            self.known[key] = thing, digest.digest()
        return self.known[key][1]

    def content(self, thing: Any) -> tuple[Any, Sequence]:
        """Return the bytes of a thing, and the other things that it consists of."""
        kind = type(thing)
        if kind in _PLAIN:
            return repr(thing).encode(), ()
        if issubclass(kind, Tensor) and thing.layout is torch.strided:
            plain = thing.detach().resolve_conj().resolve_neg().contiguous()
            numbers = plain.reshape(-1).view(torch.uint8).cpu().numpy()
            return self.some(numbers), (thing.dtype, thing.shape, thing.device.type)
        if kind is np.ndarray and not thing.dtype.hasobject:
            numbers = np.ascontiguousarray(thing).reshape(-1).view(np.uint8)
            return self.some(numbers), (str(thing.dtype), thing.shape)
        if kind in (list, tuple):
            return b"", thing
        if kind in (dict, types.MappingProxyType):
            return b"", [part for pair in thing.items() for part in pair]
        if kind in (set, frozenset):
            return b"".join(sorted(map(self.of, thing))), ()
        if kind is weakref.ref:
            return b"", (thing(),)
        if kind in _ATTRIBUTES:
            return b"", [getattr(thing, name) for name in _ATTRIBUTES[kind]]
        if kind is types.FunctionType:
            return b"", self.of_function(thing)
        if isinstance(thing, types.ModuleType | type):
            return self.of_name(thing)
        if hasattr(thing, "__wrapped__"):  # a static method or functools.cache wraps it
            return b"", (thing.__wrapped__,)
        return self.of_object(thing)

    def some(self, numbers: np.ndarray) -> np.ndarray:
        """Choose some of too many bytes, at an odd distance, so that all bytes of a
        number occur.
        """
        if len(numbers) > self.size:
            numbers = numbers[:: len(numbers) // 2**16 | 1].copy()
        return numbers

    def of_function(self, function: types.FunctionType) -> Sequence:
        """List a function's code, its defaults and attributes, and the variables that
        it encloses or reads from the globals of its module and of other modules of the
        user's own.
        """
        empty, codes = types.CellType(), [*_codes(function.__code__)]
        cells = [x.cell_contents for x in function.__closure__ or () if x != empty]
        given = function.__defaults__, function.__kwdefaults__, vars(function), cells
        if _is_installed(function.__module__):
            return f"{function.__module__}.{function.__qualname__}", *given
        scope = function.__globals__
        steps = chain.from_iterable(map(dis.get_instructions, codes))
        found = [x.argval for x in steps if x.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
        read = {name: scope[name] for name in found if name in scope}
        names = {name for code in codes for name in code.co_names}
        held = [x.__name__ for x in [*cells, *read.values()] if _is_own_module(x)]
        # A module that it imports within itself has its full name or its last.
        members = [
            (name, vars(module)[name])
            for key, module in sorted(self.modules.items())
            if key in held or {key, key.rpartition(".")[2]} & names
            for name in sorted(names & vars(module).keys())
        ]
        return codes[0], *given, read, members

    def of_name(self, thing: Any) -> tuple[bytes, Sequence]:
        """Return the name of a module or a class and, unless the name stands for it, a
        module's file, or a class's bases, functions and constants.
        """
        if isinstance(thing, types.ModuleType):
            if _is_installed(thing.__name__):
                return thing.__name__.encode(), ()
            if not getattr(thing, "__file__", None):
                raise self.cannot_tell(thing)
            return Path(str(thing.__file__)).read_bytes(), (thing.__name__,)
        name = f"{thing.__module__}.{thing.__qualname__}".encode()
        if _is_installed(thing.__module__):
            return name, ()
        own = {
            key: member
            for key, member in sorted(vars(thing).items())
            if isinstance(member, types.FunctionType)
            or not key.startswith(("__", "_abc_"))
        }
        return name, (thing.__bases__, own)

    def of_object(self, thing: object) -> tuple[bytes, Sequence]:
        """Return the parts from which ``pickle`` would make a thing anew, without those
        that are only derived from others.
        """
        if hasattr(thing, "__next__"):
            raise self.cannot_tell(thing)  # an iterator changes when it is used
        reduce = copyreg.dispatch_table.get(type(thing))
        try:
            recipe = reduce(thing) if reduce else thing.__reduce_ex__(4)
        except Exception as error:
            raise self.cannot_tell(thing) from error
        if isinstance(recipe, str):  # the name stands for the thing
            return f"{getattr(thing, '__module__', None)}.{recipe}".encode(), ()
        function, arguments, state, items, pairs, *_ = (*recipe, None, None, None)
        if isinstance(state, dict):
            kept = [name for name in state if not _is_derived(type(thing), name)]
            state = {name: state[name] for name in sorted(kept, key=str)}
            # All plain values of a module count, because it is unknown which of them
            # are read.
            modules = [vars(x) for x in state.values() if _is_own_module(x)]
            plain = [x for module in modules for x in module.items() if _is_plain(*x)]
            arguments = arguments, plain
        return b"", (function, arguments, state, list(items or ()), list(pairs or ()))

    def cannot_tell(self, thing: object) -> ValueError:
        return ValueError(
            f"{self.name} holds a {type(thing).__qualname__}, of which a checkpoint "
            "cannot tell whether it is the same in another run: put plain values, "
            "tensors and functions in its place, or sample without a checkpoint"
        )


def _is_derived(kind: type, name: Any) -> bool:
    members = (vars(each).get(name) for each in kind.__mro__)
    return any(isinstance(member, functools.cached_property) for member in members)


@functools.cache
def _is_installed(module: str | None) -> bool:
    """Tell whether the name of a module stands for its code: true for this package, the
    standard library and packages that pip installed.
    """
    package = str(module).partition(".")[0]
    if package in ("sgmc", *sys.stdlib_module_names):
        return True
    if package == "__main__":  # its file may be the one that starts a notebook
        return False
    file = Path(getattr(sys.modules.get(package), "__file__", None) or "")
    return not {"site-packages", "dist-packages"}.isdisjoint(file.parts)


def _is_plain(name: str, value: object) -> bool:
    return type(value) in _PLAIN and not name.startswith("__")


def _is_own_module(thing: object) -> bool:
    return isinstance(thing, types.ModuleType) and not _is_installed(thing.__name__)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """List the code of a function and of those that are defined within it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)
