"""Pieces on many workers: the same numbers whoever computes them, also when a worker is
killed, and nothing twice that was finished.
"""

import os
import signal
import time
from pathlib import Path

import distributed
import pytest
import torch

from booklib.rivals.shards import shards
from booklib.runs.cluster import as_they_come, run_all, sample_all, workers
from sgmc import sample
from sgmc.checkpoints import Checkpoint
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import HMC, SGHMC
from sgmc.posteriors import LogisticRegression
from sgmc.randomness import derived_seed
from sgmc.targets import Gaussian

PIECES, DRAWS = 8, 60


@pytest.fixture(scope="module")
def processes():
    """Two workers, each a process."""
    with workers(2) as client:
        yield client


@pytest.fixture(scope="module")
def parts():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 3, generator=generator)
    posterior = LogisticRegression(x, (x.sum(-1) > 0).float(), batch_size=10)
    return shards(posterior, PIECES)


def work(part, piece: int, folder: Path | None = None, kill: bool = False):
    """Sample a part and leave traces: a file for each start and end. The first that may
    kill its worker does so, in its middle.
    """
    draws = 0

    def trace(word: str) -> None:
        if folder is not None:
            (folder / f"{word}-{piece}-{os.getpid()}-{time.monotonic_ns()}").touch()

    def watch(position):
        nonlocal draws
        draws += 1
        if (
            kill
            and draws == DRAWS // 2
            and len(finished := pieces_of(folder, "end")) >= 2
            and begin_to_kill(folder)
        ):
            # at home, where alone they are safe
            while not finished <= pieces_of(folder, "received"):
                time.sleep(0.05)
            (folder / "killed").write_text(" ".join(map(str, [os.getpid(), *finished])))
            os.kill(os.getpid(), signal.SIGKILL)
        return position

    trace("start")
    kernel = SGHMC(0.05, 2.0)
    found = sample(
        kernel,
        part,
        torch.zeros(2, 3),
        DRAWS,
        seed=piece,
        collect=watch,
        progress=False,
    )
    trace("end")
    return found.samples


def pieces_of(folder: Path, word: str) -> set[int]:
    """List the pieces with such a trace."""
    return {int(path.name.split("-")[1]) for path in folder.glob(f"{word}-*")}


def begin_to_kill(folder: Path) -> bool:
    """Tell whether this is the first one to come here."""
    try:
        os.close(os.open(folder / "killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@pytest.mark.slow
def test_a_killed_worker_loses_its_unfinished_piece_and_nothing_else(
    processes, parts, tmp_path
):
    """SIGKILL in the middle of a piece: all results are those of a run that nothing
    disturbed, and nothing that was finished began again.

    Nothing is said of who does what, or when: a busy machine may start the next worker
    late."""
    expected = [work(part, piece) for piece, part in enumerate(parts)]
    found = {}
    for piece, samples in as_they_come(
        processes, work, parts, range(PIECES), [tmp_path] * PIECES, [True] * PIECES
    ):
        found[piece] = samples
        (tmp_path / f"received-{piece}-at-home").touch()
    assert all(torch.equal(found[piece], expected[piece]) for piece in range(PIECES))
    dead, *safe = map(int, (tmp_path / "killed").read_text().split())
    starts, ends = (
        [path.name.split("-")[1:3] for path in tmp_path.glob(f"{word}-*")]
        for word in ("start", "end")
    )
    assert len(safe) >= 2 and all(
        [start[0] for start in starts].count(str(piece)) == 1 for piece in safe
    )
    assert sorted(int(piece) for piece, _ in ends) == list(range(PIECES))
    lost = [process for piece, process in starts if [piece, process] not in ends]
    assert str(dead) in lost and not any(is_alive(int(process)) for process in lost)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def end_worker(part):
    os.kill(os.getpid(), signal.SIGKILL)


def explode(part, piece):
    draws = sample(HMC(0.5, 3), Gaussian.standard(1), torch.zeros(2, 1), 5)
    if piece == 1:
        raise DivergenceError("the position stopped being finite", draws)


@pytest.mark.slow
def test_an_error_names_its_piece_and_a_piece_that_ends_every_worker_is_given_up(
    processes, monkeypatch
):
    """An error comes home with its draws and the number of its piece."""
    with pytest.raises(DivergenceError, match=r"stopped(.|\n)*in piece 1$") as caught:
        run_all(processes, explode, ["one", "other"], [0, 1])
    assert caught.value.draws.samples.shape == (5, 2, 1)
    monkeypatch.setattr(processes.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(distributed.KilledWorker, match=r"piece-\S+-0'"):
        run_all(processes, end_worker, ["part"])


def test_the_numbers_do_not_depend_on_the_workers(parts):
    """One worker, three workers, and no Dask at all: seeds belong to pieces."""
    kernel, start = SGHMC(0.05, 2.0), [torch.zeros(2, 3)] * PIECES
    found = []
    for number in (1, 3):
        with workers(number, processes=False) as client:
            found.append(
                sample_all(
                    client, kernel, parts, start, 30, warm_up=5, thinning=2, seed=7
                )
            )
    for piece, part in enumerate(parts):
        by_hand = sample(
            kernel,
            part,
            start[piece],
            30,
            warm_up=5,
            thinning=2,
            seed=derived_seed(7, f"piece {piece}"),
        )
        assert all(
            torch.equal(draws[piece].samples, by_hand.samples) for draws in found
        )
    assert not torch.equal(found[0][0].samples, found[0][1].samples)


def test_finished_pieces_are_read_from_their_checkpoints(tmp_path):
    with workers(2, processes=False) as client:
        given = (
            client,
            HMC(0.5, 3),
            [Gaussian.standard(2)] * 2,
            [torch.zeros(4, 2)] * 2,
            10,
        )
        files = [tmp_path / "piece-0.pt", tmp_path / "piece-1.pt"]
        saved = [Checkpoint(file) for file in files]
        first = sample_all(*given, checkpoints=saved)
        assert sorted(tmp_path.iterdir()) == files
        again = sample_all(*given, checkpoints=saved)
    assert all(
        torch.equal(one.samples, other.samples)
        for one, other in zip(first, again, strict=True)
    )


def test_refusals():
    with pytest.raises(ValueError, match=r"number.*whole"), workers(0):
        pass
    with workers(1, processes=False) as client:
        with pytest.raises(ValueError, match="shorter"):
            run_all(client, pow, [1, 2], [3])
        target, start = Gaussian.standard(1), torch.zeros(2, 1)
        for kernel, starts in ([HMC(0.5, 3)], 2), (HMC(0.5, 3), 3):
            with pytest.raises(ValueError, match=r"shorter|longer"):
                sample_all(client, kernel, [target] * 2, [start] * starts, 5)
        assert run_all(client, abs, []) == []
