"""Data in files: they are written once from a stream, and read by number."""

import copy
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.lib.format import write_array_header_1_0
from torch import Generator, Tensor
from torch.utils import data

from sgmc.checks import check_count, check_instance, shown


def to_disk(
    batches: Iterable[Sequence[Tensor]],
    folder: str | Path,
    at_most: int = 10_000_000,
) -> tuple[Tensor, ...]:
    """Write batches of examples into files, and map them into memory: data for a
    posterior that may be larger than memory.

    Minibatches are chosen by number, so that a run can be repeated and taken up again,
    and a stream such as a ``DataLoader`` has no numbers. So it is read once, batch by
    batch. NumPy's ``open_memmap`` has to know N before.

    A posterior counts each example once, so a stream that does not is another data set,
    and is invalid. Of a ``DataLoader`` whose data set has numbers all examples are read
    in their order, and a sampler but a shuffle is invalid. Whatever can be read again
    is, to its end, and must give the same examples; a generator cannot, and is taken at
    its word.

    Args:
        batches: such as a ``torch.utils.data.DataLoader``: a tensor ``(n, ...)``, or
            several in a tuple or a list, in every batch of the same types and, but for
            n, shapes. Python's numbers come as float64: convert them in the data set.
        folder: where to write ``0.npy``, ``1.npy``, ..., one for each tensor of a
            batch; it may not hold them already.
        at_most: the number of examples beyond which a stream that does not know its
            length is taken for one without an end.

    Returns:
        The tensors ``(N, ...)``. In another session, :func:`from_disk` gives them
        without reading the stream again.

    Raises:
        ValueError: if there are no batches, they are not alike, or they do not have
            each example exactly once.
        FileExistsError: if the files are there already.

    Example:
        >>> import tempfile
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> loader = DataLoader(
        ...     TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 1])),
        ...     batch_size=2,
        ... )
        >>> folder = tempfile.TemporaryDirectory()
        >>> inputs, targets = to_disk(loader, folder.name)
        >>> inputs.shape, targets
        (torch.Size([3, 2]), tensor([0, 1, 1]))
        >>> folder.cleanup()
    """
    check_instance("folder", folder, str | Path, '"data"')
    check_count("at_most", at_most)
    folder = Path(folder)
    if (folder / "0.npy").exists():
        raise FileExistsError(
            f"{folder} holds data already: take from_disk({str(folder)!r}), or "
            "another folder"
        )
    again, most = batches, float(at_most)
    if isinstance(batches, data.DataLoader):
        if not isinstance(batches.dataset, data.IterableDataset):
            batches, most = _in_order(batches), math.inf
        elif batches.drop_last:
            raise ValueError(
                "batches leaves the last examples out: give the DataLoader "
                "drop_last=False"
            )
        # Workers that all go through one stream give each example several times.
        again = copy.copy(batches)
        vars(again).update(num_workers=0, generator=Generator(), _iterator=None)
    folder.mkdir(parents=True, exist_ok=True)
    # An incomplete set of files is deleted.
    with TemporaryDirectory(dir=folder) as new:
        _write(batches, Path(new), most)
        if not isinstance(again, Iterator):
            _check_again(again, from_disk(new))
        for path in Path(new).iterdir():
            path.rename(folder / path.name)
    return from_disk(folder)


def _in_order(loader: data.DataLoader) -> data.DataLoader:
    """Make a loader of the same batches whose examples come in their order, each once;
    raise a ValueError if the sampler is more than a shuffle.
    """
    order: Any = loader.sampler if loader.batch_size else loader.batch_sampler
    whole = type(order) in (data.SequentialSampler, type(None))
    if type(order) is data.RandomSampler:
        whole = not order.replacement and order.num_samples == len(order.data_source)
    if not whole:
        raise ValueError(
            f"batches has a {type(order).__name__}, by which examples may come more "
            "than once, or not at all. A posterior counts each once: leave the sampler "
            "out, name a part by torch.utils.data.Subset(...), and write weights into "
            "the likelihood, as one more tensor beside x and y"
        )
    settings: Any = dict(num_workers=loader.num_workers, collate_fn=loader.collate_fn)
    settings |= dict(batch_size=loader.batch_size, generator=Generator())
    return data.DataLoader(loader.dataset, **settings)


def _write(batches: Iterable, folder: Path, at_most: float) -> None:
    """Write a stream of at most so many examples."""
    number, first, files = 0, None, []
    with ExitStack() as stack:
        for batch in batches:
            arrays = _arrays(batch)
            kinds = [(str(array.dtype), array.shape[1:]) for array in arrays]
            if first is None:
                first = kinds
                for place, array in enumerate(arrays):
                    file = stack.enter_context(open(folder / f"{place}.npy", "wb"))
                    # NumPy leaves space in the header for a number that grows.
                    np.save(file, array[:0])
                    files.append(file)
            if kinds != first or len({*map(len, arrays)}) > 1:
                given = [(str(array.dtype), array.shape) for array in arrays]
                alike = [(kind, ("n", *shape)) for kind, shape in first]
                raise ValueError(f"batches must be alike, {alike}, but one is {given}")
            for file, array in zip(files, arrays, strict=True):
                file.write(np.ascontiguousarray(array).data)
            number += len(arrays[0])
            if number > at_most:
                raise ValueError(
                    f"batches has more than at_most = {at_most:,.0f} examples, and may "
                    "have no end: cut it by itertools.islice, or give a larger at_most"
                )
        if number == 0:
            raise ValueError("batches has no examples: was the stream read before?")
        for file, (kind, shape) in zip(files, first or (), strict=True):
            file.seek(0)
            head = {"descr": np.dtype(kind).str, "shape": (number, *shape)}
            write_array_header_1_0(file, head | {"fortran_order": False})


def from_disk(folder: str | Path) -> tuple[Tensor, ...]:
    """Map the files of :func:`to_disk` into memory: only the examples that are used are
    read, and the files may be larger than memory.

    The tensors are for reading alone: who writes into one ends the program.

    Args:
        folder: the folder with ``0.npy``, ``1.npy``, ....

    Returns:
        The tensors ``(N, ...)``.

    Raises:
        FileNotFoundError: if the files do not exist.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> to_disk([(torch.ones(2, 3), torch.zeros(2))], folder.name)[0].shape
        torch.Size([2, 3])
        >>> from_disk(folder.name)[1]
        tensor([0., 0.])
        >>> folder.cleanup()
    """
    check_instance("folder", folder, str | Path, '"data"')
    paths = sorted(Path(folder).glob("[0-9]*.npy"), key=lambda path: int(path.stem))
    if not paths:
        raise FileNotFoundError(
            f"{Path(folder).resolve()} holds no data: write them by to_disk(loader, "
            f"{str(folder)!r})"
        )
    # mmap_mode="c" would copy on writing, for which the system wants to have the
    # memory, should all be written. PyTorch warns that one must not write
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return tuple(torch.from_numpy(np.load(path, mmap_mode="r")) for path in paths)


def _arrays(batch: Sequence[Tensor]) -> list[np.ndarray]:
    """Turn a batch into arrays with the examples on their first axis."""
    batch = [batch] if isinstance(batch, Tensor) else batch
    some = isinstance(batch, tuple | list) and len(batch) > 0
    if not (some and all(isinstance(x, Tensor) and x.ndim > 0 for x in batch)):
        given = [type(x).__name__ for x in batch] if some else shown(batch)
        raise ValueError(
            "batches must give tensors with the examples on their first axis, such as "
            f"(x, y), but gave {given}"
        )
    try:
        return [tensor.detach().cpu().numpy() for tensor in batch]
    except TypeError as error:
        raise ValueError(
            f"batches have a type that NumPy lacks: convert {[x.dtype for x in batch]}"
        ) from error


def _check_again(batches: Iterable, found: Sequence[Tensor]) -> None:
    """Raise a ValueError if a second pass has other examples than the first, up to
    their order. The global random numbers stay what they are.
    """
    first = [tensor.numpy() for tensor in found]
    number, total = 0, 0
    with torch.random.fork_rng(devices=[]):
        for batch in batches:
            arrays = _arrays(batch)
            number, total = number + len(arrays[0]), total + _sum_of_rows(arrays)
            if number > len(first[0]):
                break
    # A stream that goes on where it was, instead of at its beginning, has nothing more.
    if number > 0 and total != _sum_of_rows(first):
        raise ValueError(
            "batches gives other examples in a second pass, because something changes "
            "them at random, such as an augmentation, and the posterior would be that "
            "of one such pass; or each worker gives them all. Take the data without "
            "it, and share them out by get_worker_info, or give num_workers=0"
        )


def _sum_of_rows(arrays: Sequence[np.ndarray]) -> int:
    """Add up the hashes of rows: a number for their contents, in whatever order."""
    rows = zip(*arrays, strict=True)
    return sum(hash(b"".join(x.tobytes() for x in row)) for row in rows)
