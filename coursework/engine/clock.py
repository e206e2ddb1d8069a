"""Measure what a process takes, however busy the machine is."""

import time
from collections.abc import Iterator
from contextlib import suppress

import psutil


class Clock:
    """Seconds of a process and its descendants: those of the processor, or a tenth of
    those on the wall if that is more.

    So a busy machine takes nothing from anybody, and what sleeps for ever ends too."""

    def __init__(self, pid: int):
        self.pid = pid
        self.processor_start, self.wall_start = self._processor(), time.monotonic()

    def _tree(self) -> Iterator[psutil.Process]:
        with suppress(psutil.Error):  # a process that has ended
            process = psutil.Process(self.pid)
            yield process
            yield from process.children(recursive=True)

    def _sum(self, measure) -> float:
        total = 0.0
        for one in self._tree():
            with suppress(psutil.Error):
                total += measure(one)
        return total

    def _processor(self) -> float:
        # its own seconds and its dead children's, as user and as system
        return self._sum(lambda one: sum(one.cpu_times()[:4]))

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
        """Tell whether the process itself is no more, though descendants may be."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            return True

    def processes(self) -> int:
        """Count the processes."""
        return sum(1 for _ in self._tree())

    def memory(self) -> float:
        """Add up the bytes that the processes hold; what they share counts for each."""
        return self._sum(lambda one: one.memory_info().rss)
