"""Data in files: they are written once from a stream, and read by number."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler

from sgmc.checks import check_count, check_instance, shown

_LOOKS = 64  # the number of examples that are read twice
_WHOLE = "give the DataLoader drop_last=False"
_CHANGED = (
    "so something changes them at random, such as an augmentation, and the posterior "
    "would be that of one such pass: take the data without it"
)


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
    and is invalid. Of a ``DataLoader`` whose data set has numbers the sampler is asked
    for those of one pass, and 64 examples are read twice; any other stream that can be
    read again is, for 64 examples, and to its end if it then comes in another order. An
    augmentation that flips one example in ten is missed by chance in one of 300,000
    runs. A generator cannot be read again, and is taken at its word.

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
        >>> from torch.utils.data import TensorDataset
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
    most, workers = at_most, 0
    if isinstance(batches, DataLoader):
        if not isinstance(batches.dataset, IterableDataset):
            _check_numbered(batches)
            most = None
        elif batches.drop_last:
            raise ValueError(f"batches leaves the last examples out: {_WHOLE}")
        else:
            workers = batches.num_workers
    folder.mkdir(parents=True, exist_ok=True)
    # An incomplete set of files is deleted.
    with TemporaryDirectory(dir=folder) as new:
        _write(batches, Path(new), most, workers)
        if most is not None and not isinstance(batches, Iterator):
            _check_second_pass(batches, from_disk(new))
        for path in Path(new).iterdir():
            path.rename(folder / path.name)
    return from_disk(folder)


def _write(batches: Iterable, folder: Path, at_most: int | None, workers: int) -> None:
    """Write a stream of at most so many examples. Each of the workers goes through the
    stream of an ``IterableDataset``, in turn.
    """
    number, files, heads, before, twins = 0, [], [], [], workers > 1
    with ExitStack() as stack:
        for turn, batch in enumerate(batches):
            arrays = _arrays(batch)
            kinds = [(str(array.dtype), array.shape[1:]) for array in arrays]
            if turn == 0:
                first = kinds
                # NumPy leaves space in the headers for a number that grows.
                heads = [header_data_from_array_1_0(array[:0]) for array in arrays]
                for place, array in enumerate(arrays):
                    file = stack.enter_context(open(folder / f"{place}.npy", "wb"))
                    np.save(file, array[:0])
                    files.append(file)
            if kinds != first or len({len(array) for array in arrays}) > 1:
                given = [(str(array.dtype), array.shape) for array in arrays]
                alike = [(kind, ("n", *shape)) for kind, shape in first]
                raise ValueError(f"batches must be alike, {alike}, but one is {given}")
            for file, array in zip(files, arrays, strict=True):
                file.write(np.ascontiguousarray(array).data)
            number += len(arrays[0])
            if at_most is not None and number > at_most:
                raise ValueError(
                    f"batches has more than at_most = {at_most:,} examples, and may "
                    "have no end: cut it by itertools.islice, or give a larger at_most"
                )
            twins = twins and (turn % workers == 0 or _alike(before, arrays))
            before = arrays
        if number == 0:
            raise ValueError("batches has no examples: was the stream read before?")
        if twins and turn > 0:
            raise ValueError(
                f"batches gives each example {workers} times, once for each of its "
                "workers: share the examples out by get_worker_info, or give "
                "num_workers=0"
            )
        for file, head in zip(files, heads, strict=True):
            file.seek(0)
            shape = (number, *head["shape"][1:])
            write_array_header_1_0(file, head | {"shape": shape})


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
        >>> from_disk("data")  # doctest: +SKIP
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


def _alike(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Tell whether arrays are equal up to rounding, with NaN equal to NaN."""
    return all(
        one.shape == other.shape and np.allclose(one, other, equal_nan=True)
        for one, other in zip(some, others, strict=True)
    )


def _check_numbered(loader: DataLoader) -> None:
    """Raise a ValueError unless an epoch of a loader has each example of its data set
    once, and always with the same values. The random numbers of the following epoch do
    not change.
    """
    data, batched = loader.dataset, loader.batch_sampler is not None
    order: Any = loader.batch_sampler if batched else loader.sampler
    sampler = getattr(order, "sampler", order)
    name, generator = type(sampler).__name__, getattr(sampler, "generator", None)
    state = None if generator is None else generator.get_state()
    seen, places = set(), []
    with torch.random.fork_rng(devices=[]):
        for entry in order:
            keys = entry.tolist() if isinstance(entry, Tensor | np.ndarray) else entry
            keys = keys if isinstance(keys, list) else [keys]
            places += keys if batched else [entry]
            for key in keys:
                key = key.item() if isinstance(key, Tensor) else key
                key = key if isinstance(key, Hashable) else str(key)
                if key in seen:
                    raise ValueError(
                        f"batches gives example {key} more than once in a pass, by its "
                        f"{name}. A posterior counts each example once: leave the "
                        "sampler out, and where examples are to count more, write "
                        "their weights into the likelihood, as one more tensor beside "
                        "x and y"
                    )
                seen.add(key)
        if generator is not None:
            generator.set_state(state)
        # The subset that a sampler names is the data.
        whole: Any = sampler if isinstance(sampler, SubsetRandomSampler) else data
        counted = all(isinstance(key, Integral) for key in seen)
        if counted and hasattr(whole, "__len__") and len(seen) < len(whole):
            cut = getattr(order, "drop_last", False)
            remedy = f"leave its {name} out; torch.utils.data.Subset(...) names a part"
            raise ValueError(
                f"batches leaves {len(whole) - len(seen)} of {len(whole)} examples "
                f"out: {_WHOLE if cut else remedy}"
            )
        number = max(1, _LOOKS * len(places) // max(1, len(seen)))
        few = places[:: -(-len(places) // number) or 1]
        twice = DataLoader(
            data,
            len(few) if batched else None,
            sampler=few + few,
            collate_fn=loader.collate_fn,
            num_workers=min(loader.num_workers, 1),
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
        )
        looks = [_arrays(batch) for batch in twice] if few else []
    half = len(looks) // 2
    if not all(map(_alike, looks[:half], looks[half:])):
        raise ValueError(f"batches gives two values of one example, {_CHANGED}")


def _check_second_pass(batches: Iterable, found: Sequence[Tensor]) -> None:
    """Raise a ValueError if a second epoch has other examples than the first, up to
    their order.

    The global random numbers stay what they are.
    """
    first = [tensor.numpy() for tensor in found]
    number, total, ordered = 0, 0, True
    with torch.random.fork_rng(devices=[]):
        for batch in batches:
            arrays = _arrays(batch)
            size = len(arrays[0])
            rows = [array[number : number + size] for array in first]
            ordered = ordered and _alike(rows, arrays)
            number, total = number + size, total + _sum_of_rows(arrays)
            if number > len(first[0]) or (ordered and number >= _LOOKS):
                break
    # A stream that goes on where it was, instead of at its beginning, has nothing more.
    if number > 0 and not ordered and total != _sum_of_rows(first):
        raise ValueError(f"batches gives other values in a second pass, {_CHANGED}")


def _sum_of_rows(arrays: Sequence[np.ndarray]) -> int:
    """Add up the hashes of rows: a number for their contents, in whatever order."""
    rows = zip(*arrays, strict=True)
    return sum(hash(b"".join(x.tobytes() for x in row)) for row in rows)
