"""Hashes by content of everything on which a run depends, which distinguish it from
other runs.

``joblib.hash`` pickles, and so takes two functions of one name for the same, and no
function that is defined within another at all.
"""

import ast
import copyreg
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import symtable
import sys
import types
import weakref
from collections.abc import Iterator, Sequence
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
# A brief fingerprint takes at most so many parts, and so many bytes of a tensor.
_PARTS, _BYTES = 10**5, 2**28
# Python itself writes functions for a class in these files.
_GENERATED = ("<string>", dataclasses.__file__)


def fingerprint(thing: object, name: str = "settings") -> str:
    """Hash everything on which a run depends, by content: numbers, tensors,
    collections, functions with the variables that they enclose, kernels and potentials.

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

    def of(self, thing: object) -> bytes:
        kind, key = type(thing), id(thing)
        digest = hashlib.sha256(f"<{kind.__module__}.{kind.__qualname__}>".encode())
        if kind in _PLAIN:
            digest.update(repr(thing).encode())
            return digest.digest()
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
        if kind is types.FunctionType:
            return b"", self.of_function(thing)
        if kind is types.MethodType:
            return b"", (thing.__func__, thing.__self__)
        if kind is property:
            return b"", (thing.fget, thing.fset, thing.fdel)
        if kind is functools.cached_property:
            return b"", (thing.func,)
        if isinstance(thing, types.ModuleType):
            return self.of_module(thing)
        if isinstance(thing, type):
            return self.of_class(thing)
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
        """List a function's source, its defaults and attributes, and the variables that
        it encloses or reads from the globals of its module and of other modules of the
        user's own.
        """
        empty, free = types.CellType(), function.__code__.co_freevars
        cells = zip(free, function.__closure__ or (), strict=True)
        enclosed = {name: cell.cell_contents for name, cell in cells if cell != empty}
        given = function.__defaults__, function.__kwdefaults__, vars(function)
        given = *given, [*enclosed.values()]
        if _is_installed(function.__module__):
            return f"{function.__module__}.{function.__qualname__}", *given
        try:
            source = _source(function)
        except (OSError, TypeError, SyntaxError, ValueError) as error:
            raise self.cannot_tell(function) from error
        scope, table = function.__globals__, symtable.symtable(source, "", "exec")
        names = sorted(({*_globals(table)} - {*free}) & {*scope})
        read = {name: scope[name] for name in names}
        return source, read, *given, *_members(source, scope | enclosed)

    def of_module(self, module: types.ModuleType) -> tuple[bytes, Sequence]:
        if _is_installed(module.__name__):
            return module.__name__.encode(), ()
        if not getattr(module, "__file__", None):
            raise self.cannot_tell(module)
        return Path(str(module.__file__)).read_bytes(), (module.__name__,)

    def of_class(self, kind: type) -> tuple[bytes, Sequence]:
        """Return a class's name and, unless the name stands for it, its bases,
        functions and constants.
        """
        name = f"{kind.__module__}.{kind.__qualname__}".encode()
        if _is_installed(kind.__module__):
            return name, ()
        members = sorted(vars(kind).items())
        own = {key: member for key, member in members if not _is_pythons(key, member)}
        return name, (kind.__bases__, own)

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
            modules = (vars(x) for x in state.values() if _is_own_module(x))
            plain = [
                (name, x)
                for module in modules
                for name, x in module.items()
                if type(x) in _PLAIN and not name.startswith("__")
            ]
            if plain:
                arguments = arguments, plain
        return b"", (function, arguments, state, list(items or ()), list(pairs or ()))

    def cannot_tell(self, thing: object) -> ValueError:
        return ValueError(
            f"{self.name} holds a {type(thing).__qualname__}, of which a checkpoint "
            "cannot tell whether it is the same in another run: put plain values, "
            "tensors and functions from a file or notebook in its place, or sample "
            "without a checkpoint"
        )


def _is_derived(kind: type, name: Any) -> bool:
    members = (vars(each).get(name) for each in kind.__mro__)
    return any(isinstance(member, functools.cached_property) for member in members)


def _is_pythons(name: str, member: object) -> bool:
    """Tell whether Python itself made a member of a class or of a data class."""
    if isinstance(member, types.FunctionType):
        return member.__code__.co_filename in _GENERATED
    return name.startswith("__") or name == "_abc_impl"


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


def _is_own_module(thing: object) -> bool:
    return isinstance(thing, types.ModuleType) and not _is_installed(thing.__name__)


def _members(source: str, scope: dict[str, Any]) -> list[tuple[str, Any]]:
    """List the values that a source reads from modules of the user's own, such as
    ``settings.SCALE``, whose value need not be that of the file.
    """
    found, nodes = {}, list(ast.walk(ast.parse(source)))

    def value_of(node: Any) -> Any:
        if isinstance(node, ast.Name):
            return scope.get(node.id)
        owner = value_of(node.value) if isinstance(node, ast.Attribute) else None
        return vars(owner).get(node.attr) if _is_own_module(owner) else None

    for node in nodes:  # the function itself may import modules
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.name if each.asname else each.name.partition(".")[0]
                scope[each.asname or name] = sys.modules.get(name)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            name = importlib.util.resolve_name(name, scope.get("__package__"))
            scope[name] = sys.modules.get(name)
            for each in node.names:
                value = value_of(ast.Attribute(ast.Name(name), each.name))
                scope[each.asname or each.name] = found[each.name] = value
    for node in nodes:
        if isinstance(node, ast.Attribute) and (value := value_of(node)) is not None:
            found[ast.unparse(node)] = value
    return list(found.items())


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """List the globals that the functions of a source read."""
    for function in table.get_children():
        for symbol in function.get_symbols():
            if symbol.is_global():
                yield symbol.get_name()
        yield from _globals(function)


@functools.lru_cache(maxsize=16)
def _functions_in(source: str) -> list[ast.FunctionDef | ast.Lambda]:
    tree = ast.walk(ast.parse(source))
    return [node for node in tree if isinstance(node, ast.FunctionDef | ast.Lambda)]


def _source(function: types.FunctionType) -> str:
    """Find the source of a function, without comments and layout.

    Raises:
        OSError, TypeError, SyntaxError, ValueError: if it is not there.
    """
    code = function.__code__
    found = [
        node
        for node in _functions_in("".join(inspect.findsource(function)[0]))
        if getattr(node, "name", "<lambda>") == code.co_name
        and min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
        == code.co_firstlineno
    ]
    if len(found) > 1:
        # the last lambda of a line that begins where the code does
        first = min((line, start) for line, _, start, end in code.co_positions() if end)
        begin = lambda node: (node.body.lineno, node.body.col_offset)
        found = [max((node for node in found if begin(node) <= first), key=begin)]
    return ast.unparse(*found)
