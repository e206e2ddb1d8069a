"""Consensus Monte Carlo on processes of one machine: time by number of workers, bytes
by shard, and workers that are killed.

A logistic regression is cut into shards, and each sampled by HMC. The same pieces go to
one worker, then to two, then to as many as are asked for; draws are compared bit by
bit. What Dask's task stream says of each task, and what is serialised, goes into a
computation of the time on more machines than are here: its terms stand in
:func:`planned`. At the end a worker is killed in the middle of a run, many times over.
``book/results/consensus.json`` keeps it all."""

import argparse
import math
import os
import signal
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import torch
from torch import Generator, Tensor

from booklib.rivals.consensus import serialized_size
from booklib.rivals.shards import shards
from booklib.runs.cluster import as_they_come, run_all, workers
from booklib.runs.results import RESULTS, circumstances, peak_memory, write_result
from sgmc import sample
from sgmc.door.draws import Draws
from sgmc.kernels import HMC
from sgmc.posteriors import LogisticRegression

FEATURES = 20


def make(num_examples: int) -> LogisticRegression:
    """Make up a logistic regression."""
    generator = Generator().manual_seed(0)
    inputs = torch.randn(num_examples, FEATURES, generator=generator)
    logits = inputs @ torch.randn(FEATURES, generator=generator) / FEATURES**0.5
    targets = (torch.rand(num_examples, generator=generator) < logits.sigmoid()).float()
    return LogisticRegression(inputs, targets)


def sampler(part) -> HMC:
    """Make HMC with a mass that suits a part: the slopes' precision is about a fifth of
    the number of examples.
    """
    return HMC(0.7, 4, mass=part.num_examples / 5)


def equal(some: list[Draws], others: list[Draws]) -> bool:
    """Tell whether all draws are the same, bit by bit."""
    return all(
        torch.equal(one.samples, other.samples)
        for one, other in zip(some, others, strict=True)
    )


def account(client, since: float) -> list[dict]:
    """Read from Dask's task stream, for each task of a piece: the seconds of computing,
    and of receiving data from other workers.
    """
    found = []
    for task in client.get_task_stream(start=since):
        if str(task["key"]).startswith("piece-"):
            spent = {"compute": 0.0, "transfer": 0.0}
            for part in task["startstops"]:
                spent[part["action"]] = (
                    spent.get(part["action"], 0.0) + part["stop"] - part["start"]
                )
            found.append(spent)
    return found


def timed(part, kernel: HMC, num_draws: int, seed: int) -> tuple[Draws, float]:
    """Sample a part, and tell the seconds that the processor spent on it, which other
    programs do not change.
    """
    begun = time.process_time()
    draws = sample(
        kernel,
        part,
        torch.zeros(4, FEATURES),
        num_draws,
        warm_up=20,
        seed=seed,
        progress=False,
    )
    return draws, time.process_time() - begun


def measure(number: int, parts: list, num_draws: int) -> tuple[dict, list[Draws]]:
    """Run all parts on so many workers; give what it took, by the clock and by the
    engine, and the draws.
    """
    kernels = [sampler(part) for part in parts]
    with workers(number) as client:
        run_all(client, len, [[0]] * number)  # every worker has imported what it needs
        client.get_task_stream()  # the record begins
        begun = time.time()
        found = run_all(
            client, timed, parts, kernels, [num_draws] * len(parts), range(len(parts))
        )
        wall = time.time() - begun
        tasks = account(client, begun)
        many = time.time()
        run_all(client, math.sqrt, [float(piece) for piece in range(100)])
        overhead = (time.time() - many) / 100
    draws, spent = zip(*found, strict=True)
    measured = {
        "workers": number,
        "seconds": round(wall, 2),
        "compute_seconds": [round(task["compute"], 3) for task in tasks],
        "processor_seconds": [round(seconds, 3) for seconds in spent],
        "transfer_seconds": round(sum(task["transfer"] for task in tasks), 4),
        "seconds_per_empty_task": round(overhead, 5),
        "load_average": round(os.getloadavg()[0], 1),
    }
    return measured, list(draws)


def bandwidth(size: int = 2**26) -> float:
    """Measure the bytes a second from this process to a worker: one object of 64 MiB,
    three times, the middle one.
    """
    with workers(1) as client:
        seconds = []
        for _ in range(3):
            data = torch.zeros(size, dtype=torch.uint8).random_(
                generator=Generator().manual_seed(0)
            )
            begun = time.time()
            client.gather(client.submit(len, client.scatter(data, hash=False)))
            seconds.append(time.time() - begun)
    return size / statistics.median(seconds)


def planned(
    num_workers: int,
    task_seconds: list[float],
    shard_bytes: int,
    draw_bytes: int,
    rate: float,
    overhead: float,
) -> dict:
    """Compute the time of all pieces on so many workers, none of which this machine
    has.

    Home sends one shard after the other and gets the draws back at ``rate`` bytes a
    second, and spends ``overhead`` seconds on each task; workers compute at the same
    time, each its share of the pieces, in the processor's time of the ones measured. A
    worker's time is the mean of its pieces' times, ⌈J/W⌉ of them: stragglers, a slower
    network and machines that share one are not in it.

    Example:
        >>> planned(2, [1.0, 1.0], 10, 10, 1000.0, 0.01)["seconds"]
        1.06
    """
    number = len(task_seconds)
    moving = number * (shard_bytes + draw_bytes) / rate
    computing = math.ceil(number / num_workers) * statistics.mean(task_seconds)
    seconds = moving + number * overhead + computing
    return {
        "workers": num_workers,
        "moving": round(moving, 4),
        "overhead": round(number * overhead, 4),
        "computing": round(computing, 4),
        "seconds": round(seconds, 4),
        "speed_up": round(
            (moving + number * overhead + sum(task_seconds)) / seconds, 2
        ),
    }


def doomed(part, piece: int, folder: Path, may_kill: bool) -> Tensor:
    """Sample a part, and leave files for its start and end; the first one to find two
    finished kills its worker, when they are at home.
    """
    (folder / f"start-{piece}-{os.getpid()}-{time.monotonic_ns()}").touch()
    kernel, start = sampler(part), torch.zeros(4, FEATURES)
    if (
        may_kill
        and len(finished := {path.name.split("-")[1] for path in folder.glob("end-*")})
        >= 2
    ):
        try:
            os.close(os.open(folder / "killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            sample(kernel, part, start, 10, seed=piece, progress=False)
            while not all(
                (folder / f"received-{other}").exists() for other in finished
            ):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
    samples = sample(kernel, part, start, 20, seed=piece, progress=False).samples
    (folder / f"end-{piece}-{os.getpid()}").touch()
    return samples


def kill(client, parts: list, expected: list[Tensor]) -> dict:
    """Kill a worker in the middle of a piece; say whether the draws are the same, and
    what had to begin again.
    """
    number = len(parts)
    with tempfile.TemporaryDirectory() as name:
        folder, found, home = Path(name), {}, {}
        for piece, samples in as_they_come(
            client, doomed, parts, range(number), [folder] * number, [True] * number
        ):
            found[piece], home[piece] = samples, time.monotonic_ns()
            (folder / f"received-{piece}").touch()
        starts = {
            piece: [
                int(path.name.split("-")[3]) for path in folder.glob(f"start-{piece}-*")
            ]
            for piece in range(number)
        }
        return {
            "killed": (folder / "killed").exists(),
            "same_draws": all(
                torch.equal(found[piece], expected[piece]) for piece in range(number)
            ),
            "begun_again": sum(len(begun) > 1 for begun in starts.values()),
            "received_and_begun_again": sum(
                max(begun) > home[piece] for piece, begun in starts.items()
            ),
        }


def main() -> None:
    """Measure, print, and store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for option, default in (
        ("--examples", 100_000),
        ("--shards", 16),
        ("--draws", 100),
        ("--kills", 20),
    ):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # pieces that lost their workers are counted
    posterior = make(arguments.examples)
    parts = shards(posterior, arguments.shards)
    whole, sizes = serialized_size(posterior), [serialized_size(part) for part in parts]
    runs, first = [], None
    for number in arguments.workers:
        found, draws = measure(number, parts, arguments.draws)
        first = draws if first is None else first
        runs.append({**found, "same_draws": equal(first, draws)})
        print(
            {
                name: sum(value) if isinstance(value, list) else value
                for name, value in runs[-1].items()
            },
            flush=True,
        )
    size, rate = serialized_size(first[0]), bandwidth()
    one = runs[0]
    # of the run that other programs disturbed least
    overhead = min(run["seconds_per_empty_task"] for run in runs)
    given = (max(sizes), size, rate, overhead)
    plans = [
        planned(number, one["processor_seconds"], *given) for number in (1, 2, 4, 8, 16)
    ]
    # A hundred shards of the same size: a hundred machines, and six times the data.
    hundred = [statistics.mean(one["processor_seconds"])] * 100
    plans_of_hundred = [
        planned(number, hundred, *given) for number in (1, 2, 5, 10, 20, 50, 100)
    ]
    few = parts[:6]
    with tempfile.TemporaryDirectory() as name:
        expected = [
            doomed(part, piece, Path(name), False) for piece, part in enumerate(few)
        ]
    with workers(2) as client:
        kills = [kill(client, few, expected) for _ in range(arguments.kills)]
    print(f"kills: {kills}")
    options = {**vars(arguments), "workers": " ".join(map(str, arguments.workers))}
    command = "python -m benchmarks.consensus " + " ".join(
        f"--{name} {value}" for name, value in options.items()
    )
    result = {
        "provenance": {
            "command": command,
            **circumstances("cpu"),
            "peak_memory_megabytes": peak_memory("cpu"),
        },
        "settings": options,
        "bytes": {
            "posterior": whole,
            "shard": max(sizes),
            "all_shards": sum(sizes),
            "draws": size,
        },
        "bytes_per_second": round(rate),
        "runs": runs,
        "plans": plans,
        "plans_of_hundred": plans_of_hundred,
        "kills": kills,
    }
    write_result(RESULTS / "consensus.json", result)


if __name__ == "__main__":
    main()
