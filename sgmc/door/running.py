"""The loop of everything that takes long: a progress bar, a stop that loses nothing,
and checkpoints.
"""

import builtins
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from tqdm import tqdm

from sgmc.checks import check_instance, warn


class Job(Protocol):
    """Work that goes step by step, and may be stopped.

    Example:
        >>> class Count:
        ...     done = 0
        ...
        ...     def advance(self):
        ...         self.done += 1
        ...
        ...     def check(self):
        ...         pass
        >>> job = Count()
        >>> drive(job, 3, progress=False)
        >>> job.done
        3
    """

    done: int  #: steps done so far

    def advance(self) -> None:
        """Take one more step."""

    def check(self) -> None:
        """Raise an error if the work is not worth going on with."""


class SavedJob(Job, Protocol):
    """Work that may also be saved and resumed.

    Example:
        >>> class Count:
        ...     done = 0
        ...
        ...     def advance(self):
        ...         self.done += 1
        ...
        ...     def check(self):
        ...         pass
        ...
        ...     def settings(self):
        ...         return {"what": "counting"}
        ...
        ...     def state_dict(self):
        ...         return {"done": self.done}
        ...
        ...     def load_state_dict(self, saved):
        ...         self.done = saved["done"]
        >>> import tempfile
        >>> from sgmc.checkpoints import Checkpoint
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first, second = Count(), Count()
        ...     drive(
        ...         first,
        ...         3,
        ...         checkpoint=Checkpoint(f"{folder}/count.pt"),
        ...         progress=False,
        ...     )
        ...     drive(
        ...         second,
        ...         3,
        ...         checkpoint=Checkpoint(f"{folder}/count.pt"),
        ...         progress=False,
        ...     )
        >>> second.done  # read from the file
        3
    """

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
    """A place in which a job is saved, such as :class:`sgmc.checkpoints.Checkpoint`.

    Example:
        >>> from sgmc.checkpoints import Checkpoint
        >>> isinstance(Checkpoint("run.pt"), Store)
        True
    """

    every: float  #: seconds between two saves

    def open(self, settings: Mapping[str, object]) -> dict[str, Any] | None:
        """Read the saved state of a job with these settings, if there is one."""
        ...

    def save(self, content: dict[str, Any]) -> None:
        """Save the result of a job's ``state_dict``."""


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
    second time, the step is broken off: the last save stays. SIGTERM then goes to its
    former handler; if that is the default one, the process ends.

    Args:
        job: the work; a :class:`SavedJob` if there is a checkpoint.
        total: number of steps.
        checkpoint: where to save it, after one, two, four ... seconds, then every
            ``checkpoint.every`` seconds and when it stops; if it holds something, the
            job goes on from there.
        unit: the name of a step beside the progress bar.
        title: what stands before the progress bar.
        kept: the results that a message promises after a stop that ends no process.
        progress: whether to show a progress bar if it takes over two seconds: on
            standard error in a terminal, below the cell in a notebook, not in a file.

    Example:
        >>> class Halve:
        ...     done, number = 0, 8.0
        ...
        ...     def advance(self):
        ...         self.done, self.number = self.done + 1, self.number / 2
        ...
        ...     def check(self):
        ...         pass
        >>> job = Halve()
        >>> drive(job, 3, progress=False)
        >>> job.number
        1.0
    """
    check_instance("progress", progress, bool, "False")
    if checkpoint is not None:
        example = 'sgmc.checkpoints.Checkpoint("run.pt")'
        check_instance("checkpoint", checkpoint, Store, example)
        _load(job, checkpoint)
    bar = _bar(progress, total, initial=job.done, unit=unit, desc=title)
    stop, begun = _Stop(), job.done
    started = saved = time.monotonic()
    with torch.no_grad(), stop, bar:
        try:
            while job.done < total and not stop.signal:
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
            done, old = f"{job.done} of {total} {unit}s", stop.old.get(stop.signal)
            if stop.signal == signal.SIGTERM and old == signal.SIG_DFL:
                kept = "SIGTERM ends this process, and what no checkpoint has is lost"
            elif stop.within:
                kept += ", but it stopped within a step and is not saved"
            warn(f"interrupted after {done}: {kept} [interrupted]", stacklevel=3)
        if not stop.within:
            _save(job, checkpoint if job.done > begun else None)


def _load(job: Any, checkpoint: Store) -> None:
    job.state_dict()  # a state that cannot be saved raises its error now
    content = checkpoint.open(job.settings())
    try:
        if content is not None:
            job.load_state_dict(content)
    except (LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"{checkpoint} holds no state of such a run ({error!r}): give another "
            "file, or delete this one to start anew"
        ) from error


def _save(job: Any, checkpoint: Store | None) -> None:
    job.check()
    try:
        if checkpoint is not None:
            checkpoint.save(job.state_dict())
    except OSError as error:
        warn(f"checkpoint {error}; the run goes on without it [resuming]", stacklevel=4)


def _bar(progress: bool, total: int, **labels: Any) -> tqdm:
    shell = getattr(builtins, "get_ipython", lambda: None)()  # IPython defines it
    if cell := hasattr(shell, "kernel"):  # a notebook prints errors in red
        labels["file"] = sys.stdout
    if not (progress and (cell or sys.stderr.isatty())):
        labels["disable"] = True  # else the environment decides
    return tqdm(total=total, delay=2, leave=not cell, **labels)


class _Stop:
    """A context in which Ctrl-C and SIGTERM are noted, for the loop to stop after its
    present step; a second signal stops at once. At its end SIGTERM goes to its former
    handler.
    """

    def __init__(self):
        self.signal, self.within, self.old = 0, False, {}

    def __enter__(self) -> "_Stop":
        # Other threads do not get signals.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # None means a handler that is not one of Python's.
                self.old[number] = signal.signal(number, self.note) or signal.SIG_DFL
        return self

    def note(self, number: int, frame: object) -> None:
        # SIGTERM, the larger number, is not forgotten for a later Ctrl-C.
        again, self.signal = self.signal, max(number, self.signal)
        if again:
            raise KeyboardInterrupt

    def __exit__(self, *_) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)
        if self.signal == signal.SIGTERM:
            signal.raise_signal(signal.SIGTERM)
