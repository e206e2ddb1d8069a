"""Tasks on many machines, by Dask (``pip install distributed``).

A task is a shard of a posterior, a chain, or a seed of an experiment. A client is that
of :func:`workers` on one machine, or ``distributed.Client("tcp://scheduler:8786")`` on
a cluster, with workers of one thread each (``dask worker tcp://scheduler:8786
--nthreads 1``). The result of a task depends on the task alone: not on the worker
that computes it, nor on the number of workers."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dask import config
from distributed import Client, as_completed
from torch import Tensor

from sgmc.checks import check_count
from sgmc.door.draws import Draws
from sgmc.door.running import Store
from sgmc.door.sampling import sample
from sgmc.kernels.base import Kernel
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed

_SETTINGS = {
    # A busy machine may need a minute to start a worker anew.
    "distributed.deploy.lost-worker-timeout": "1 day",
    # Data travel with their tasks on purpose.
    "distributed.admin.large-graph-warning-threshold": "1 TiB",
}


@contextmanager
def workers(number: int, processes: bool = True) -> Iterator[Client]:
    """Start workers of one thread each on this machine, and stop them at the end:
    processes, or threads of this one, which start at once and share its memory.

    Processes start anew, so that a script must call this under ``if __name__ ==
    "__main__":``; a notebook need not.

    Example:
        >>> with workers(2, processes=False) as client:
        ...     run_all(client, abs, [3, -4])
        [3, 4]
    """
    check_count("number", number)
    few = {"n_workers": number, "threads_per_worker": 1, "dashboard_address": ":0"}
    with config.set(_SETTINGS):
        with warnings.catch_warnings():  # only the start of workers is silenced
            warnings.filterwarnings("ignore", "Creating scratch directories is taking")
            client = Client(processes=processes, **few)  # the port is a free one
        with client:
            yield client


def as_they_come(
    client: Client, function: Callable, data: Sequence, *arguments: Sequence
) -> Iterator[tuple[int, Any]]:
    """Compute ``function(data[j], arguments[0][j], …)`` for every task j, each on some
    worker, and yield j and the result as they come.

    A worker that dies loses its unfinished tasks, which begin again on another; a
    result that was yielded is never computed a second time.

    Raises:
        ValueError: if an argument has not one entry for each task.
        Exception: an error of the function in a task, with a note that has its number;
            the other tasks are given up.
    """

    def work(piece: int, given: tuple) -> tuple[int, Any]:
        try:
            return piece, function(*given)
        except Exception as error:
            error.add_note(f"in piece {piece}")
            raise

    pieces = list(zip(data, *arguments, strict=True))
    futures = client.map(work, range(len(pieces)), pieces, pure=False, key="piece")
    try:
        for future, found in as_completed(futures, with_results=True):
            future.release()
            yield found
    finally:
        client.cancel(futures)


def run_all(
    client: Client, function: Callable, data: Sequence, *arguments: Sequence
) -> list:
    """Compute ``function(data[j], …)`` for every task j, as :func:`as_they_come` does,
    and list the results in the order of the tasks.
    """
    found = dict(as_they_come(client, function, data, *arguments))
    return [found[piece] for piece in range(len(found))]


def sample_all(
    client: Client,
    kernel: Kernel | Sequence[Kernel],
    potentials: Sequence[Potential],
    positions: Sequence[Tensor],
    num_samples: int,
    *,
    seed: int = 0,
    checkpoints: Sequence[Store] | None = None,
    **settings: Any,
) -> list[Draws]:
    """Call :func:`sgmc.door.sampling.sample` for every task: shards of a posterior, or
    one potential again and again for parallel chains, with seeds that follow from
    ``seed`` and the task's number.

    Args:
        client: of the cluster.
        kernel: one for all tasks, or one for each.
        potentials: the target of each task.
        positions: where its chains start, each ``(chains, dim)``.
        num_samples: of each chain.
        seed: the seed of all tasks together.
        checkpoints: the file of each task, from which it goes on if it loses its
            worker, by an absolute path that all workers see.
        settings: others of :func:`sgmc.door.sampling.sample`, such as ``warm_up``.

    Returns:
        The draws of each task.

    Example:
        >>> import torch
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
    seeds = [derived_seed(seed, f"piece {piece}") for piece in range(number)]
    saved = [None] * number if checkpoints is None else checkpoints

    def work(kernel, potential, position, seed, checkpoint) -> Draws:
        own: Any = dict(seed=seed, checkpoint=checkpoint, progress=False)
        return sample(kernel, potential, position, num_samples, **own, **settings)

    return run_all(client, work, kernels, potentials, positions, seeds, saved)
