"""Pieces of work on many machines, by Dask: ``pip install ".[cluster]"`` in a
checkout.

A piece is a shard of a posterior, a chain, or a seed of an experiment. Every function
here takes a ``distributed.Client``: that of :func:`workers` on one machine, or
``Client("tcp://scheduler:8786")`` on a cluster, with workers of one thread each (``dask
worker tcp://scheduler:8786 --nthreads 1``). The result of a piece depends on the piece
alone, not on who works on it or how many workers there are."""

import logging
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sgmc.checks import check_count, check_instance
from sgmc.draws import Draws
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed
from sgmc.running import Store
from sgmc.sampling import sample

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 300  # seconds that a cluster may need for its first worker
# On a busy machine a worker may take a minute to start anew: by default Dask would give
# it up for good after a quarter of that. Data travel with their pieces on purpose.
_SETTINGS = {
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.comm.timeouts.connect": "5 minutes",
    "distributed.comm.timeouts.tcp": "5 minutes",
    "distributed.admin.large-graph-warning-threshold": "1 TiB",
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
    """Start so many workers of one thread each on this machine, and stop them at the
    end: processes, or threads of this one, which start at once and share its memory.

    Processes start anew, so that a script must call this under ``if __name__ ==
    "__main__":``; a notebook need not.

    Raises:
        ImportError: if Dask's package ``distributed`` is not installed.

    Example:
        >>> with workers(2, processes=False) as client:
        ...     run_all(client, abs, [3, -4])
        [3, 4]
    """
    check_count("number", number)
    distributed = _distributed()
    from dask import config

    with config.set(_SETTINGS):
        with warnings.catch_warnings():  # only while the workers start
            warnings.filterwarnings("ignore", "Creating scratch directories is taking")
            cluster = distributed.LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                processes=processes,
                dashboard_address=":0",  # any port: there may be another cluster
                silence_logs=logging.CRITICAL,  # of workers that Dask restarts
            )
        with cluster, distributed.Client(cluster) as client:
            yield client


def as_they_come(
    client: "Client", function: Callable, data: Sequence, *arguments: Sequence
) -> Iterator[tuple[int, object]]:
    """Compute ``function(data[j], arguments[0][j], …)`` for every piece j, each on some
    worker, and yield results as they come.

    A worker that dies loses its unfinished pieces, which begin again on another; a
    result that was yielded is never computed a second time.

    Args:
        client: of the cluster.
        function: what to compute; it must not depend on anything but its arguments.
        data: the large part of each piece.
        arguments: further arguments, each with one for every piece.

    Yields:
        The number of a piece and its result.

    Raises:
        RuntimeError: if a piece loses four workers, Dask's ``allowed-failures`` and one
            more, or no worker comes within five minutes.
        Exception: what the function raises in a piece; the others are given up.
    """
    distributed = _distributed()
    from dask import config

    check_instance("client", client, distributed.Client, "distributed.Client()")
    for number, argument in enumerate(arguments):
        if len(argument) != len(data):
            raise ValueError(
                f"arguments must have one for each of {len(data)} pieces, but those "
                f"at {number} are {len(argument)}"
            )
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise RuntimeError(
            f"the cluster has had no worker for {PATIENCE} seconds: start some, by "
            f"dask worker {getattr(client.scheduler, 'address', None)} --nthreads 1"
        ) from error
    with config.set(_SETTINGS):
        futures = client.map(
            partial(_work, _HOME, function),
            *map(list, (data, *arguments)),
            pure=False,
            key="piece",
        )
    pieces = {future: piece for piece, future in enumerate(futures)}
    try:
        for future in distributed.as_completed(futures):
            piece = pieces[future]
            try:
                result, remarks = future.result()
            except distributed.KilledWorker as error:
                raise RuntimeError(
                    f"piece {piece} lost its worker again and again: something ends "
                    "the workers, such as a lack of memory"
                ) from error
            future.release()
            for remark in remarks:
                warnings.warn(f"piece {piece}: {remark}", stacklevel=2)
            yield piece, result
    finally:
        client.cancel(futures)


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
    checkpoints: Sequence[Store] | None = None,
) -> list[Draws]:
    """Call :func:`sgmc.sampling.sample` for every piece: shards of a posterior, or one
    potential again and again for parallel chains, with seeds that follow from ``seed``
    and the piece's number.

    Args:
        client: of the cluster.
        kernel: for all pieces, or one for each.
        potentials: the target of each piece.
        positions: where its chains start, each ``(chains, dim)``.
        num_samples: this and what follows as :func:`sgmc.sampling.sample` takes it.
        warm_up: likewise.
        thinning: likewise.
        seed: of all pieces together.
        checkpoints: for each piece where it is saved, and goes on if it loses its
            worker, by an absolute path that all workers see.

    Returns:
        The draws of each piece.

    Raises:
        ValueError: if there is not one kernel, or one start, for each potential.
        DivergenceError: if a piece diverges; the others are given up.

    Example:
        >>> from sgmc.kernels import HMC
        >>> from sgmc.targets import Gaussian
        >>> targets, starts = [Gaussian.standard(2)] * 3, [torch.zeros(4, 2)] * 3
        >>> with workers(2, processes=False) as client:
        ...     parts = sample_all(client, HMC(0.5, 3), targets, starts, 10)
        >>> len(parts), parts[0].samples.shape
        (3, torch.Size([10, 4, 2]))
    """
    number = len(potentials)
    kernels = [kernel] * number if isinstance(kernel, Kernel) else kernel
    settings = {"num_samples": num_samples, "warm_up": warm_up, "thinning": thinning}
    each = []
    for piece in range(number):
        own = {"seed": derived_seed(seed, f"piece {piece}"), "progress": False}
        saved = {} if checkpoints is None else {"checkpoint": checkpoints[piece]}
        each.append(settings | own | saved)
    starts = [position.clone() for position in positions]  # views would take all along
    return run_all(client, _sample, potentials, kernels, starts, each)


def _sample(
    potential: Potential, kernel: Kernel, position: Tensor, settings: dict
) -> Draws:
    return sample(kernel, potential, position, **settings)


def _work(
    home: str, function: Callable, datum: object, *arguments: object
) -> tuple[object, list[str]]:
    """Do a piece of work, and send home the warnings, which nobody would see there."""
    # a thread of the process at home, whose filters belong to all threads
    if home == _HOME:
        return function(datum, *arguments), []
    torch.set_num_threads(1)
    with warnings.catch_warnings(record=True) as caught:
        result = function(datum, *arguments)
    return result, [str(warning.message) for warning in caught]
