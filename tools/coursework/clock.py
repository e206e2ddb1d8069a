"""Measure what a process takes, however busy the machine is."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil


class Clock:
    """Seconds of a process and its descendants: those of the processor, or a tenth of
    those on the wall if that is more.

    So a busy machine takes nothing from anybody, and what sleeps for ever ends
    nevertheless."""

    def __init__(self, pid: int):
        self.pid = pid
        self.processor_start, self.wall_start = self._processor(), time.monotonic()

    def _tree(self) -> Iterator[psutil.Process]:
        with suppress(psutil.Error):  # a process that has ended
            process = psutil.Process(self.pid)
            yield process
            yield from process.children(recursive=True)

    def _processor(self) -> float:
        seconds = 0.0
        for one in self._tree():
            with suppress(psutil.Error):
                # its own and its dead children's, as user and as system
                seconds += sum(one.cpu_times()[:4])
        return seconds

    def processor(self) -> float:
        """Say how long the processor has worked since the clock was made."""
        return self._processor() - self.processor_start

    def wall(self) -> float:
        """Say how long ago the clock was made."""
        return time.monotonic() - self.wall_start

    def seconds(self) -> float:
        """Say what counts."""
        return max(self.processor(), self.wall() / 10)

    def has_ended(self) -> bool:
        """Say whether the process itself is no more, though its descendants may be."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return True

    def processes(self) -> int:
        """Count the processes."""
        return sum(1 for _ in self._tree())

    def memory(self) -> int:
        """Add up the bytes that the processes hold, and those of files in memory; what
        they share counts for each.
        """
        held, files = 0, {}
        for one in self._tree():
            with suppress(psutil.Error, OSError):
                held += one.memory_info().rss
                files |= nameless(one.pid) | in_private_folders(one.pid)
        return held + sum(files.values())


def nameless(pid: int) -> dict[tuple[int, int], int]:
    """Give the bytes of the files that a process holds open and that have no name, by
    device and number.
    """
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            file = os.stat(f"/proc/{pid}/fd/{name}")
            if stat.S_ISREG(file.st_mode) and not file.st_nlink:
                found[file.st_dev, file.st_ino] = 512 * file.st_blocks
    return found


def in_private_folders(pid: int) -> dict[tuple[int, int], int]:
    """Give the bytes in the folders in memory that a confined process writes to, by
    device.
    """
    found = {}
    for name in ("/tmp", "/dev/shm"):
        with suppress(OSError):
            device = os.stat(f"/proc/{pid}/root{name}").st_dev
            if device != os.stat(name).st_dev:
                system = os.statvfs(f"/proc/{pid}/root{name}")
                found[device, 0] = (system.f_blocks - system.f_bfree) * system.f_frsize
    return found
