"""Saving a run and going on with it: what a run depends on, told apart by content, and files that are whole or not there."""

import functools
import hashlib
import os
import types
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

_OURS = ("builtins", "sgmc.", "torch.", "numpy.", "typing", "abc", "collections")  # modules whose versions stand for their code


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read, or belongs to another run."""


class Checkpoint:
    """A file in which a run is saved, and from which it goes on.

    Args:
        path: the file.
        settings: what the run depends on, by name; a change of any makes it another run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "run.pt"
        ...     Checkpoint(path, {"seed": 0}).save({"steps": 3})
        ...     Checkpoint(path, {"seed": 0}).load("cpu")
        {'steps': 3}
    """

    def __init__(self, path: str | Path, settings: Mapping[str, object]):
        self.path = Path(path)
        self.settings = {name: fingerprint(value, name) for name, value in settings.items()}

    def load(self, device: torch.device | str) -> dict | None:
        """Read what was saved; None if the file is not there.

        Raises:
            CheckpointError: if it is corrupt, or of a run with other settings; the file is left as it is.
        """
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as file:
                _check_sum(file)
                content = torch.load(file, map_location=device, weights_only=True)
            settings, saved = content["settings"], content["content"]
        except Exception as error:
            raise CheckpointError(
                f"checkpoint {self.path} is corrupt ({type(error).__name__} when reading it); delete it to start anew"
            ) from error
        if changed := [name for name in self.settings if settings.get(name) != self.settings[name]]:
            raise CheckpointError(
                f"checkpoint {self.path} belongs to a run with another {', '.join(changed)}; "
                "give another file, or delete this one to start anew"
            )
        return saved

    def save(self, content: dict) -> None:
        """Write tensors, numbers, words and collections of these, in one stroke; a checksum at the end tells a bit that flips later."""

        def write(unfinished: Path) -> None:
            torch.save({"settings": self.settings, "content": content}, unfinished)
            with open(unfinished, "r+b") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                file.write(digest)

        replace_file(self.path, write)


def _check_sum(file) -> None:
    """Compare a file with the checksum at its end, and go back to its start."""
    end = file.seek(0, os.SEEK_END) - hashlib.sha256().digest_size
    digest, left = hashlib.sha256(), file.seek(0) or end
    while left > 0 and (piece := file.read(min(left, 2**24))):
        digest.update(piece)
        left -= len(piece)
    if file.read() != digest.digest():
        raise ValueError("checksum")
    file.seek(0)


def replace_file(path: Path, write) -> None:
    """Write a file beside the old one and move it over it, so that a stop in the middle of writing loses nothing.

    Args:
        path: the file.
        write: a function that writes to the path it is given.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    write(unfinished)
    os.replace(unfinished, path)


def fingerprint(thing: object, name: str = "settings") -> str:
    """Hash what a run depends on, by content: numbers, tensors, collections, functions with what they enclose, kernels and potentials.

    Raises:
        ValueError: if it holds something whose content cannot be told.

    Example:
        >>> def prior(scale):
        ...     return lambda position: -position / scale
        >>> fingerprint(prior(1.0)) == fingerprint(prior(1.0)), fingerprint(prior(1.0)) == fingerprint(prior(2.0))
        (True, False)
    """
    digest = hashlib.sha256()
    _feed(digest, thing, name, ())
    return digest.hexdigest()


def _feed(digest, thing: object, name: str, above: tuple[int, ...]) -> None:
    """Put the content of a thing into a hash, piece by piece; ``above`` are the things that it is a part of."""

    def feed(*parts: object) -> None:
        for part in parts:
            _feed(digest, part, name, (*above, id(thing)))

    if id(thing) in above:
        return  # a function that calls itself, or an object that knows its owner
    digest.update(f"<{type(thing).__module__}.{type(thing).__qualname__}>".encode())
    if thing is None or isinstance(
        thing, (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, type, Path, range)
    ):
        digest.update(repr(thing).encode())
    elif isinstance(thing, Tensor):
        digest.update(f"{thing.dtype}{tuple(thing.shape)}".encode())
        _feed_array(digest, thing.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy())
    elif isinstance(thing, np.ndarray) and thing.dtype != object:
        digest.update(f"{thing.dtype}{thing.shape}".encode())
        _feed_array(digest, thing)
    elif isinstance(thing, np.generic):
        digest.update(repr(thing.item()).encode())
    elif isinstance(thing, Mapping):
        feed(*(part for pair in thing.items() for part in pair))
    elif isinstance(thing, (list, tuple)):
        feed(len(thing), *thing)
    elif isinstance(thing, (set, frozenset)):
        feed(*sorted(fingerprint(part, name) for part in thing))
    elif isinstance(thing, torch.nn.Module):
        tensors = [*thing.named_parameters(), *thing.named_buffers()]
        feed(str(thing), thing.training, *(part for pair in tensors for part in pair), type(thing).forward)
    elif isinstance(thing, Generator):
        feed(thing.get_state())
    elif isinstance(thing, functools.partial):
        feed(thing.func, thing.args, thing.keywords)
    elif isinstance(thing, types.MethodType):
        feed(thing.__func__, thing.__self__)
    elif isinstance(thing, types.FunctionType):
        _feed_function(feed, thing)
    elif isinstance(thing, types.CodeType):
        feed(thing.co_code, thing.co_names, thing.co_consts)
    elif isinstance(thing, (types.BuiltinFunctionType, types.BuiltinMethodType, types.ModuleType, np.ufunc)) or (
        callable(thing) and not hasattr(thing, "__dict__")
    ):
        owner = getattr(thing, "__self__", None)
        feed(getattr(thing, "__qualname__", thing.__name__), None if isinstance(owner, types.ModuleType) else owner)
    elif hasattr(thing, "__dict__"):
        kind = type(thing)
        derived = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, functools.cached_property)}
        feed({key: value for key, value in sorted(vars(thing).items()) if key not in derived})
        for each in kind.__mro__:  # what the user's own classes do
            if not each.__module__.startswith(_OURS):
                feed([value for _, value in sorted(vars(each).items()) if isinstance(value, types.FunctionType)])
    else:
        raise ValueError(
            f"{name} holds a {type(thing).__qualname__}, of which a checkpoint cannot tell whether it is the same in another run: "
            "put plain values, tensors and functions in its place, or sample without a checkpoint"
        )


def _feed_array(digest, array: np.ndarray) -> None:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), 2**24):
        digest.update(flat[start : start + 2**24])


def _feed_function(feed, function: types.FunctionType) -> None:
    """Feed a function's code, defaults, and what it encloses or finds among the globals of its module."""
    code = function.__code__
    enclosed = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    feed(code, function.__defaults__, function.__kwdefaults__, enclosed)
    if not function.__module__.startswith(_OURS):
        names = sorted(_names(code) & function.__globals__.keys())
        feed(*(part for each in names for part in (each, function.__globals__[each])))


def _names(code: types.CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True
