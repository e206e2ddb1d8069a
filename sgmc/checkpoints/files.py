"""Files in which a run is saved, completely or not at all."""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from sgmc.checkpoints.fingerprints import fingerprint
from sgmc.checks import check_instance, check_number, warn


def _version() -> str:
    """Name the versions; another Python compiles, and so hashes, otherwise."""
    return f"PyTorch {torch.__version__} and Python 3.{sys.version_info.minor}"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read, or belongs to another run.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = Checkpoint(f"{folder}/run.pt")
        ...     checkpoint.open({"seed": 0})
        ...     checkpoint.save({"steps": 3})
        ...     try:
        ...         Checkpoint(f"{folder}/run.pt").open({"seed": 1})
        ...     except CheckpointError as error:
        ...         print("another seed" in str(error))
        True
    """


class Checkpoint:
    """A file in which a run is saved, and from which it goes on.

    Args:
        path: the file.
        every: at most so many seconds lie between two saves.

    Raises:
        ValueError: if the path cannot be a file's.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = Checkpoint(f"{folder}/run.pt", every=60.0)
        ...     checkpoint.open({"seed": 0})
        ...     checkpoint.save({"steps": 3})
        ...     Checkpoint(f"{folder}/run.pt").open({"seed": 0})
        {'steps': 3}
    """

    def __init__(self, path: str | Path, every: float = 30.0):
        check_instance("path", path, str | Path, '"run.pt"')
        check_number("every", every, 0)
        self.every, self.settings, problem = every, {}, "there is a folder or a device"
        try:
            # A link stays, and the file that it names is replaced.
            self.path = Path(path).resolve()  # a null character raises an error
            Path(f"{self.path}.unfinished").exists()  # so does a name that is too long
            right = self.path.is_file() or not self.path.exists()
        except (OSError, ValueError) as error:
            right, problem = False, str(error)
        if not right:
            raise ValueError(
                f"path {str(path)[:60]!r} cannot be the name of a file, for {problem}: "
                'give another, such as "run.pt"'
            )

    def __str__(self) -> str:
        return f"the checkpoint {self.path}"

    def open(self, settings: Mapping[str, object]) -> dict | None:
        """Read the saved contents, onto the CPU; None if the file is not there.

        Args:
            settings: what the run depends on, by name.

        Raises:
            ValueError: if a setting holds something whose content cannot be hashed.
            CheckpointError: if it is corrupt, or of a run with other settings; the file
                is left as it is.
        """
        self.settings = {
            name: fingerprint(value, name) for name, value in settings.items()
        }
        if not self.path.exists():
            return None
        try:
            content = read_whole(self.path)
            known, saved = content["settings"], content["content"]
            version = content["torch"]
        except OSError:
            raise  # the file may be whole
        except Exception as error:
            raise CheckpointError(
                f"checkpoint {self.path} is corrupt ({type(error).__name__} when "
                "reading it); delete it to start anew"
            ) from error
        ours = self.settings
        if changed := [x for x in ours | known if known.get(x) != ours.get(x)]:
            raise CheckpointError(
                f"checkpoint {self.path} belongs to a run under {version} with another "
                f"{', '.join(changed)}; give another file, or delete this one to start "
                "anew"
            )
        if version != _version():
            warn(
                f"checkpoint {self.path} was written with {version}, but this is "
                f"{_version()}: the run goes on, and its samples need not be those of "
                "a run without a break [resuming]"
            )
        return saved

    def save(self, content: dict) -> None:
        """Write tensors, numbers, words and collections of these, in one stroke, with a
        checksum at the end.

        Raises:
            OSError: if the file cannot be written; an older one is as it was.
        """
        # The views are cloned, because a view would be written with the whole tensor
        # behind it.
        alone = lambda x: x.clone() if isinstance(x, Tensor) else x

        def write(unfinished: Path) -> None:
            saved = {"settings": self.settings, "content": tree_map(alone, content)}
            torch.save({**saved, "torch": _version()}, unfinished)
            with open(unfinished, "r+b") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                file.write(digest)

        try:
            replace_file(self.path, write)
        except (OSError, RuntimeError) as error:  # PyTorch raises it on a full disk
            raise OSError(
                f"{self.path} could not be written ({error}); an older file there is "
                "as it was"
            ) from error


def read_whole(path: str | Path) -> dict[str, Any]:
    """Read the contents that :meth:`sgmc.checkpoints.Checkpoint.save` wrote, onto the
    CPU; no code in the file is run.

    Raises:
        ValueError: if the checksum at its end is not that of the rest.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint = Checkpoint(f"{folder}/run.pt")
        ...     checkpoint.open({"seed": 0})
        ...     checkpoint.save({"steps": 3})
        ...     read_whole(f"{folder}/run.pt")["content"]
        {'steps': 3}
    """
    content = np.memmap(path, np.uint8, "r")  # it need not fit into memory
    digest = hashlib.sha256(content[:-32].data).digest()
    if digest != content[-32:].tobytes():
        raise ValueError("checksum")
    return torch.load(path, map_location="cpu", weights_only=True)


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Write a new file beside the old one and move it over the old one, so that a stop
    in the middle of writing loses nothing.

    Args:
        path: the file.
        write: a function that writes to the path it is given.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "notes" / "run.txt"
        ...     replace_file(path, lambda unfinished: unfinished.write_text("done"))
        ...     path.read_text()
        'done'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        write(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
