"""Pieces of work on many machines, by Dask: ``pip install ".[cluster]"`` in a
checkout.

A piece is a shard of a posterior, a chain, or a seed of an experiment. Every function
here takes a ``distributed.Client``: that of :func:`workers` on one machine, or
``Client("tcp://scheduler:8786")`` on a cluster, with workers of one thread each (``dask
worker tcp://scheduler:8786 --nthreads 1``). What a piece gives depends on the piece
alone, not on who works on it or how many do."""

import logging
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance
from sgmc.draws import Draws
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed
from sgmc.sampling import sample

if TYPE_CHECKING:
    from distributed import Client

LOSSES = 3  # so often a piece may lose its worker
PATIENCE = 300  # seconds that a cluster may be without a worker
# On a busy machine a worker may take a minute to start anew: by default Dask would give
# it up for good after a quarter of that.
_PATIENCE = {
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.comm.timeouts.connect": "5 minutes",
    "distributed.comm.timeouts.tcp": "5 minutes",
}
_HOME = uuid.uuid4().hex  # another one in every process


def _distributed():
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "sgmc.machines.cluster needs Dask's scheduler: pip install "
            '".[cluster]" in a checkout, or pip install distributed'
        ) from error
    return distributed


@contextmanager
def workers(number: int, processes: bool = True) -> Iterator["Client"]:
    """Start workers of one thread each on this machine, and stop them at the end.

    Processes start anew, so that a script must call this under ``if __name__ ==
    "__main__":``; a notebook need not.

    Args:
        number: how many.
        processes: whether each is a process of its own; if not they are threads of this
            one, which start at once and share its memory.

    Raises:
        ImportError: if Dask's package ``distributed`` is not installed.

    Example:
        >>> with workers(2, processes=False) as client:
        ...     run_all(client, abs, [3, -4])
        [3, 4]
    """
    check_count("number", number)
    check_instance("processes", processes, bool, "True")
    distributed = _distributed()
    import dask

    settings = {"n_workers": number, "threads_per_worker": 1, "processes": processes}
    settings |= {"dashboard_address": ":0"}  # any port: there may be another cluster
    # what Dask would log of a worker that dies is mended here, and said in a warning
    settings |= {"silence_logs": logging.CRITICAL}
    with dask.config.set(_PATIENCE):
        with warnings.catch_warnings():  # only while the workers start
            warnings.filterwarnings("ignore", "Creating scratch directories is taking")
            cluster = distributed.LocalCluster(**settings)
        with cluster, distributed.Client(cluster) as client:
            yield client


def as_they_come(
    client: "Client", function: Callable, data: Sequence, *arguments: Sequence
) -> Iterator[tuple[int, object]]:
    """Compute ``function(data[j], arguments[0][j], …)`` for every piece j, each on some
    worker, and yield results as they come.

    Each object of ``data`` is sent once, to one worker, also if it belongs to several
    pieces; workers that need it later get it from each other. A result leaves its
    worker as soon as it is there. So a worker that dies takes with it what it was
    working on, and the data that it held, which are sent again; a result that was
    yielded is never computed a second time.

    Args:
        client: of the cluster.
        function: what to compute; it must not depend on anything but its arguments.
        data: the large part of each piece.
        arguments: further arguments, each with one for every piece.

    Yields:
        The number of a piece and its result.

    Raises:
        RuntimeError: if a piece loses its worker again and again, or there is no worker
            for five minutes.
        Exception: what the function raises in a piece; the others are given up.
    """
    distributed = _distributed()
    check_instance("client", client, distributed.Client, "distributed.Client()")
    for number, argument in enumerate(arguments):
        if len(argument) != len(data):
            raise ValueError(
                f"arguments must have one for each of {len(data)} pieces, but those "
                f"at {number} are {len(argument)}"
            )
    # keeps every object alive: a range or a tensor makes its own anew, and an identity
    # would soon be another's
    data = list(data)
    # what is on the workers, by the identity of what is here
    held: dict[int, object] = {}
    # of the futures under way: the piece, and the data that it was given
    pieces: dict[object, tuple[int, object]] = {}
    losses = [0] * len(data)

    def submit(piece: int):
        key = id(data[piece])
        if key not in held:
            _wait_for_a_worker(client)  # after a loss there may be none for a while
            (held[key],) = client.scatter([data[piece]], hash=False)
        given = [argument[piece] for argument in arguments]
        future = client.submit(
            _work,
            _HOME,
            function,
            held[key],
            *given,
            pure=False,
            key=f"piece-{piece}-{uuid.uuid4().hex}",
        )
        pieces[future] = piece, held[key]
        return future

    try:
        coming = distributed.as_completed([submit(piece) for piece in range(len(data))])
        for future in coming:
            piece, given = pieces.pop(future)
            try:
                result, remarks = future.result()
            except (distributed.CancelledError, distributed.KilledWorker) as error:
                # Where the data are on another worker too, Dask begins the piece again
                # by itself, and says KilledWorker in the end.
                losses[piece] += 1
                if losses[piece] > LOSSES or isinstance(
                    error, distributed.KilledWorker
                ):
                    raise RuntimeError(
                        f"piece {piece} lost its worker again and again: something "
                        "ends the workers, such as a lack of memory"
                    ) from error
                warnings.warn(
                    f"piece {piece} lost the worker that had it, and is sent to "
                    "another",
                    stacklevel=2,
                )
                if held.get(id(data[piece])) is given:
                    del held[id(data[piece])]
                coming.add(submit(piece))
                continue
            future.release()
            for remark in remarks:
                warnings.warn(f"piece {piece}: {remark}", stacklevel=2)
            yield piece, result
    finally:
        client.cancel(list(pieces))


def run_all(
    client: "Client", function: Callable, data: Sequence, *arguments: Sequence
) -> list:
    """Compute ``function(data[j], …)`` for every piece j, as :func:`as_they_come` does,
    and list the results in the order of the pieces.
    """
    found = dict(as_they_come(client, function, data, *arguments))
    return [found[piece] for piece in range(len(data))]


def sample_all(
    client: "Client",
    kernel: Kernel | Sequence[Kernel],
    potentials: Sequence[Potential],
    positions: Sequence[Tensor],
    num_samples: int,
    *,
    warm_up: int = 0,
    thinning: int = 1,
    seed: int = 0,
    checkpoints: str | Path | None = None,
) -> list[Draws]:
    """Call :func:`sgmc.sampling.sample` for every piece: shards of a posterior, or one
    potential again and again for parallel chains.

    The seed of a piece follows from ``seed`` and its number, so that the draws are the
    same for any number of workers.

    Args:
        client: of the cluster.
        kernel: for all pieces, or one for each.
        potentials: the target of each piece.
        positions: where its chains start, each ``(chains, dim)``.
        num_samples: number of draws to keep of each chain.
        warm_up: number of steps to throw away first.
        thinning: number of steps from one draw to the next.
        seed: of all pieces together.
        checkpoints: a folder that all workers see, where each piece is saved every half
            minute, and goes on if it loses its worker; without one it begins again, to
            the same draws.

    Returns:
        The draws of each piece.

    Raises:
        ValueError: if there is not one kernel, or one start, for each potential.
        DivergenceError: if a piece diverges; the others are given up.

    Example:
        >>> from sgmc.kernels import HMC
        >>> from sgmc.targets import Gaussian
        >>> with workers(2, processes=False) as client:
        ...     parts = sample_all(
        ...         client,
        ...         HMC(0.5, 3),
        ...         [Gaussian.standard(2)] * 3,
        ...         [torch.zeros(4, 2)] * 3,
        ...         num_samples=10,
        ...     )
        >>> [part.samples.shape for part in parts]
        [torch.Size([10, 4, 2]), torch.Size([10, 4, 2]), torch.Size([10, 4, 2])]
    """
    number = len(potentials)
    kernels = [kernel] * number if isinstance(kernel, Kernel) else kernel
    for name, these in (("kernel", kernels), ("positions", positions)):
        if len(these) != number:
            raise ValueError(
                f"{name} must have one for each of {number} potentials, but has "
                f"{len(these)}"
            )
    settings = {"num_samples": num_samples, "warm_up": warm_up, "thinning": thinning}
    each = []
    for piece in range(number):
        own = {"seed": derived_seed(seed, f"piece {piece}"), "progress": False}
        if checkpoints is not None:
            own["checkpoint"] = Path(checkpoints).absolute() / f"piece-{piece}.pt"
        each.append(settings | own)
    starts = [position.clone() for position in positions]  # views would take all along
    return run_all(client, _sample, potentials, kernels, starts, each)


def serialized_size(thing: object) -> int:
    """Measure how many bytes Dask sends for an object.

    Example:
        >>> 8_000 < serialized_size(
        ...     torch.zeros(1_000, dtype=torch.float64) + torch.arange(1_000)
        ... ) < 9_000
        True
    """
    _distributed()
    from distributed.protocol import serialize_bytelist

    return sum(memoryview(frame).nbytes for frame in serialize_bytelist(thing))


def _sample(
    potential: Potential, kernel: Kernel, position: Tensor, settings: dict
) -> Draws:
    return sample(kernel, potential, position, **settings)


def _wait_for_a_worker(client: "Client") -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise RuntimeError(
            f"the cluster has had no worker for {PATIENCE} seconds: start some, by "
            f"dask worker {client.scheduler.address} --nthreads 1"
        ) from error


def _work(
    home: str, function: Callable, datum: object, *arguments: object
) -> tuple[object, list[str]]:
    """Do a piece of work on a worker, and send home what would be said there to
    nobody.
    """
    # a thread of the process at home, where warnings are seen, and filters for them
    # belong to all threads
    if home == _HOME:
        return function(datum, *arguments), []
    torch.set_num_threads(1)
    with warnings.catch_warnings(record=True) as caught:
        result = function(datum, *arguments)
    return result, [str(warning.message) for warning in caught]
