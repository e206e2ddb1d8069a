"""What a run depends on, hashed by content, so that another run is told apart.

``joblib.hash`` pickles, and so takes two functions of one name for the same, and no
function that is defined within another at all.
"""

import ast
import copyreg
import dataclasses
import functools
import hashlib
import inspect
import site
import symtable
import sys
import sysconfig
import types
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

_PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type(Ellipsis),
    type(NotImplemented),
    torch.Size,
)
# of fields, whose values belong to the objects
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
# files of functions that Python itself writes for a class
_GENERATED = ("<string>", dataclasses.__file__)
_INSTALLED = {
    sysconfig.get_path("purelib"),
    sysconfig.get_path("platlib"),
    site.getusersitepackages(),
}


def fingerprint(thing: object, name: str = "settings") -> str:
    """Hash what a run depends on, by content: numbers, tensors, collections, functions
    with what they enclose, kernels and potentials.

    Raises:
        ValueError: if it holds something whose content cannot be told.

    Example:
        >>> def prior(scale):
        ...     return lambda position: -position / scale
        >>> (
        ...     fingerprint(prior(1.0)) == fingerprint(prior(1.0)),
        ...     fingerprint(prior(1.0)) == fingerprint(prior(2.0)),
        ... )
        (True, False)
    """
    return _Fingerprint(name).of(thing).hex()


class _Fingerprint:
    """The hashes of a thing and of all that it consists of, each taken once."""

    def __init__(self, name: str):
        self.name = name
        # with the things, lest another one gets the identity of one that is gone
        self.known: dict[int, tuple[object, bytes]] = {}
        self.depth: dict[int, int] = {}  # of the things that are not done yet

    def of(self, thing: object) -> bytes:
        if type(thing) in _PLAIN:
            return hashlib.sha256(
                f"<{type(thing).__qualname__}>{thing!r}".encode()
            ).digest()
        key = id(thing)
        # a function that calls itself, or an object that knows its owner: so many
        # levels above
        if key in self.depth:
            return hashlib.sha256(
                b"above %d" % (len(self.depth) - self.depth[key])
            ).digest()
        if key not in self.known:
            self.depth[key] = len(self.depth)
            content, parts = self.content(thing)
            digest = hashlib.sha256(
                f"<{type(thing).__module__}.{type(thing).__qualname__}>{len(parts)}:".encode()
            )
            for part in parts:
                digest.update(self.of(part))
            digest.update(content)
            del self.depth[key]
            self.known[key] = thing, digest.digest()
        return self.known[key][1]

    def content(self, thing: Any) -> tuple[Any, Sequence]:
        """Give the bytes of a thing, and the other things of which it consists."""
        kind = type(thing)
        if isinstance(thing, (torch.dtype, torch.device, torch.layout, Path)):
            return repr(thing).encode(), ()
        if issubclass(kind, Tensor) and thing.layout is torch.strided:
            plain = (
                thing.detach()
                .resolve_conj()
                .resolve_neg()
                .contiguous()
                .reshape(-1)
                .view(torch.uint8)
            )
            return plain.cpu().numpy(), (
                thing.dtype,
                tuple(thing.shape),
                thing.device.type,
            )
        if kind is np.ndarray and not thing.dtype.hasobject:
            return np.ascontiguousarray(thing).reshape(-1).view(np.uint8), (
                str(thing.dtype),
                thing.shape,
            )
        if kind in (list, tuple):
            return b"", thing
        if kind in (dict, OrderedDict, types.MappingProxyType):
            return b"", [part for pair in thing.items() for part in pair]
        if kind in (set, frozenset):
            return b"".join(sorted(map(self.of, thing))), ()
        if kind is Generator:
            return b"", (thing.get_state(),)
        if kind is weakref.ref:
            return b"", (thing(),)
        if kind is types.FunctionType:
            return b"", self.of_function(thing)
        if kind is types.MethodType:
            return b"", (thing.__func__, thing.__self__)
        if isinstance(thing, types.ModuleType):
            return self.of_module(thing)
        if isinstance(thing, type):
            return f"{thing.__module__}.{thing.__qualname__}".encode(), _parts_of_class(
                thing
            )
        if hasattr(thing, "__wrapped__"):  # such as functools.cache
            return b"", (thing.__wrapped__,)
        return self.of_object(thing)

    def of_function(self, function: types.FunctionType) -> Sequence:
        """List a function's source, its defaults and attributes, and what it encloses
        or reads of the globals of its module.
        """
        enclosed = [
            cell.cell_contents
            for cell in function.__closure__ or ()
            if _is_filled(cell)
        ]
        given = (
            function.__defaults__,
            function.__kwdefaults__,
            enclosed,
            vars(function),
        )
        if _is_installed(function.__module__):
            return f"{function.__module__}.{function.__qualname__}", *given
        try:
            source, names = _find_source(function)
        except LookupError as error:
            raise self.cannot_tell(function) from error
        scope = function.__globals__
        read = {name: scope[name] for name in names if name in scope}
        return source, read, *given

    def of_module(self, thing: types.ModuleType) -> tuple[bytes, Sequence]:
        if _is_installed(thing.__name__):
            return thing.__name__.encode(), ()
        if not getattr(thing, "__file__", None):
            raise self.cannot_tell(thing)
        return Path(str(thing.__file__)).read_bytes(), (thing.__name__,)

    def of_object(self, thing: object) -> tuple[bytes, Sequence]:
        """Give the parts from which ``pickle`` would make a thing anew, but for those
        that are only derived from others.
        """
        if hasattr(thing, "__next__"):
            raise self.cannot_tell(thing)  # it changes when it is used
        try:
            recipe = copyreg.dispatch_table.get(
                type(thing), lambda thing: thing.__reduce_ex__(4)
            )(thing)
        except Exception as error:
            raise self.cannot_tell(thing) from error
        if isinstance(recipe, str):  # known by its name
            return f"{getattr(thing, '__module__', None)}.{recipe}".encode(), ()
        function, arguments, state, items, pairs, *_ = (*recipe, None, None, None)
        if isinstance(state, dict):
            members = (
                item for each in type(thing).__mro__ for item in vars(each).items()
            )
            derived = {
                name
                for name, value in members
                if isinstance(value, functools.cached_property)
            }
            state = {
                name: value
                for name, value in sorted(state.items(), key=str)
                if name not in derived
            }
        return b"", (function, arguments, state, list(items or ()), list(pairs or ()))

    def cannot_tell(self, thing: object) -> ValueError:
        return ValueError(
            f"{self.name} holds a {type(thing).__qualname__}, of which a checkpoint "
            "cannot tell whether it is the same in another run: put plain values, "
            "tensors and functions from a file or notebook in its place, or sample "
            "without a checkpoint"
        )


@functools.cache
def _is_installed(module: str | None) -> bool:
    """Tell whether the name of a module stands for its code: this package, the standard
    library and what pip installed.
    """
    package = str(module).partition(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None)
    installed = file is not None and any(
        Path(file).is_relative_to(folder) for folder in _INSTALLED
    )
    return package != "__main__" and (
        installed or package == "sgmc" or package in sys.stdlib_module_names
    )


def _parts_of_class(kind: type) -> Sequence:
    """List the functions and the constants of a class, and its bases; nothing if its
    name stands for them.
    """
    if _is_installed(kind.__module__):
        return ()
    members = []
    for name, member in sorted(vars(kind).items()):
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        elif isinstance(member, property):
            member = (member.fget, member.fset, member.fdel)
        elif isinstance(member, functools.cached_property):
            member = member.func
        elif isinstance(member, _DESCRIPTORS) or name == "_abc_impl":
            continue
        is_special = name.startswith("__") and name.endswith("__")
        if isinstance(member, types.FunctionType):
            # of a data class or named tuple, written by Python from its fields
            is_special = member.__code__.co_filename in _GENERATED
        if not is_special or name == "__annotations__":
            members += [name, member]
    return *kind.__bases__, *members


@functools.lru_cache(maxsize=16)
def _functions_in(
    source: str,
) -> list[tuple[ast.FunctionDef | ast.Lambda, list[str]]]:
    """List the functions that a source defines, each with the globals that it reads."""
    read: dict[tuple, set[str]] = {}

    def look(table: symtable.SymbolTable) -> set[str]:
        names = set().union(*map(look, table.get_children()))
        if isinstance(table, symtable.Function):
            names |= set(table.get_globals())
            read.setdefault((table.get_name(), table.get_lineno()), set()).update(names)
        return names

    look(symtable.symtable(source, "<source>", "exec"))
    return [
        (node, sorted(read[getattr(node, "name", "lambda"), node.lineno]))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.Lambda)
    ]


def _find_source(function: types.FunctionType) -> tuple[str, list[str]]:
    """Find the source of a function, without comments and layout, and the globals that
    it reads.

    Raises:
        LookupError: if its source is not there.
    """
    code = function.__code__
    try:
        functions = _functions_in("".join(inspect.findsource(function)[0]))
    except (OSError, TypeError, SyntaxError) as error:
        raise LookupError("no source") from error

    def begins(node: ast.FunctionDef | ast.Lambda) -> int:
        return min([node.lineno, *(one.lineno for one in decorators(node))])

    def decorators(node: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
        return node.decorator_list if isinstance(node, ast.FunctionDef) else []

    found = [
        (node, names)
        for node, names in functions
        if begins(node) == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == code.co_name
    ]
    if len(found) > 1:  # several lambdas in a line are told apart by their columns
        places = [
            ((line, column), (end, end_column))
            for line, end, column, end_column in code.co_positions()
            if end_column
        ]
        found = [
            (node, names)
            for node, names in found
            if places
            and isinstance(node, ast.Lambda)
            and (node.body.lineno, node.body.col_offset) <= min(places)[0]
            and max(end for _, end in places)
            <= (node.body.end_lineno or 0, node.body.end_col_offset or 0)
        ]
        found = sorted(found, key=lambda one: len(ast.unparse(one[0])))[:1]
    if not found:
        raise LookupError("another source")
    return ast.unparse(found[0][0]), found[0][1]


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True
