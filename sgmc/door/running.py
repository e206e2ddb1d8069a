"""The loop of everything that takes long: a progress bar, a stop that loses nothing,
and checkpoints.
"""

import _thread
import builtins
import signal
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from tqdm import tqdm

from sgmc.checks import check_instance

PATIENCE = 2.0  # the seconds that a step may take after Ctrl-C


class Job(Protocol):
    """Work that goes step by step, and may be stopped and resumed."""

    done: int  #: steps done so far

    def advance(self) -> None:
        """Take one more step."""

    def check(self) -> None:
        """Raise an error if the work is not worth going on with."""

    def settings(self) -> Mapping[str, object]:
        """Return everything on which the work depends, by name; a change makes it
        another job.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return everything that is needed to go on: tensors, numbers, words and
        collections.
        """
        ...

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go back to a state that :meth:`state_dict` returned."""


@runtime_checkable
class Store(Protocol):
    """A place in which a job is saved, such as :class:`sgmc.checkpoints.Checkpoint`."""

    every: float  #: seconds between two saves

    def open(self, settings: Mapping[str, object]) -> dict[str, Any] | None:
        """Read the saved state of a job with these settings, if there is one."""
        ...

    def save(self, content: dict[str, Any]) -> None:
        """Save the result of :meth:`Job.state_dict`."""


def drive(
    job: Job,
    total: int,
    *,
    checkpoint: Store | None = None,
    unit: str = "step",
    title: str | None = None,
    kept: str = "the draws so far are kept",
    progress: bool = True,
) -> None:
    """Do a job to its end, or until Ctrl-C or SIGTERM: the only loop.

    A stop lets the present step come to its end and saves the job. If Ctrl-C comes a
    second time, or the step goes on for two seconds more (with a checkpoint: for the
    seconds between two saves), it is broken off: the last save stays.

    Args:
        job: the work.
        total: number of steps.
        checkpoint: where to save it, after one, two, four ... seconds, then every
            ``checkpoint.every`` seconds and when it stops; if it holds something, the
            job goes on from there.
        unit: the name of a step beside the progress bar.
        title: what stands before the progress bar.
        kept: the results that a message promises after a stop.
        progress: whether to show a progress bar if it takes over two seconds: on
            standard error in a terminal, below the cell in a notebook, not in a file.
    """
    check_instance("progress", progress, bool, "False")
    patience = PATIENCE
    if checkpoint is not None:
        example = 'sgmc.checkpoints.Checkpoint("run.pt")'
        check_instance("checkpoint", checkpoint, Store, example)
        patience = max(patience, checkpoint.every)
        job.state_dict()  # a state that cannot be saved raises its error now
        _load(job, checkpoint)
    bar = _bar(progress, total, initial=job.done, unit=unit, desc=title)
    stop, begun = _Stop(patience), job.done
    started = saved = time.monotonic()
    with torch.no_grad(), stop, bar:
        try:
            while job.done < total and stop.signal is None:
                stop.within = True
                job.advance()
                stop.within = False
                bar.update()
                if checkpoint is not None:
                    wait = min(checkpoint.every, max(1.0, saved - started))
                    if time.monotonic() - saved > wait:
                        _save(job, checkpoint)
                        saved = time.monotonic()
        except KeyboardInterrupt:
            stop.signal = stop.signal or signal.SIGINT
        if job.done < total:
            lost = ", but it stopped within a step and is not saved" * stop.within
            warnings.warn(
                f"interrupted after {job.done} of {total} {unit}s: {kept}{lost}",
                stacklevel=3,
            )
        if not stop.within:
            _save(job, checkpoint if job.done > begun else None)


def _load(job: Job, checkpoint: Store) -> None:
    content = checkpoint.open(job.settings())
    try:
        if content is not None:
            job.load_state_dict(content)
    except (LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"{checkpoint} holds no state of such a run ({error!r}): give another "
            "file, or delete this one to start anew"
        ) from error


def _save(job: Job, checkpoint: Store | None) -> None:
    job.check()
    try:
        if checkpoint is not None:
            checkpoint.save(job.state_dict())
    except OSError as error:
        warnings.warn(f"checkpoint {error}; the run goes on without it", stacklevel=4)


def _bar(progress: bool, total: int, **labels: Any) -> tqdm:
    shell = getattr(builtins, "get_ipython", lambda: None)()  # IPython defines it
    if cell := hasattr(shell, "kernel"):  # a notebook prints errors in red
        labels["file"] = sys.stdout
    if not (progress and (cell or sys.stderr.isatty())):
        labels["disable"] = True  # else the environment decides
    return tqdm(total=total, delay=2, leave=not cell, **labels)


class _Stop:
    """A context in which Ctrl-C and SIGTERM are noted, for the loop to stop after its
    present step; a second signal, or Ctrl-C when patience ends, stops at once. At its
    end SIGTERM goes to its former handler.
    """

    def __init__(self, patience: float):
        self.signal: int | None = None
        self.within, self.patience, self.old = False, patience, {}

    def __enter__(self) -> "_Stop":
        # Other threads do not get signals.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.old[number] = signal.signal(number, self.note)
        return self

    def note(self, number: int, frame: object) -> None:
        again = self.signal is not None
        term = signal.SIGTERM in (number, self.signal)
        self.signal = signal.SIGTERM if term else number
        if again:
            raise KeyboardInterrupt
        if number == signal.SIGINT:  # this takes no lock that the step may hold
            _thread.start_new_thread(self.wait, ())

    def wait(self) -> None:
        time.sleep(self.patience)
        if self.within:
            _thread.interrupt_main()

    def __exit__(self, *_) -> None:
        self.within = False  # the wait is over
        for number, handler in self.old.items():
            # The handler None means that it is not one of Python's.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self.signal == signal.SIGTERM:
            signal.raise_signal(signal.SIGTERM)
