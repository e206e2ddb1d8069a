"""Execute a student's cells, and answer calls of the student's functions: the process
that nobody trusts.

The judge starts it, confined, with a socket as its standard input, sends it cells and
calls, and believes nothing but the values that come back."""

import ctypes
import io
import os
import random
import resource
import signal
import socket
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from coursework.engine.codec import BorderError, Link

PR_SET_PDEATHSIG = 1  # of Linux
# characters of text and of pictures that a cell may put out, and of text that only a
# loop without end prints
OUTPUT, IMAGES, ENDLESS = 100_000, 2 * 2**20, 20_000_000
LIMITS = {
    resource.RLIMIT_AS: 8 * 2**30,  # of which PyTorch maps three without using them
    resource.RLIMIT_FSIZE: 2**28,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: 3600,
    resource.RLIMIT_NOFILE: 512,
    resource.RLIMIT_NPROC: 1024,
}


class Shell(InteractiveShell):
    """IPython, which keeps the traceback of an error instead of printing it."""

    trace: list = []

    def _showtraceback(self, etype, evalue, stb):
        text = stb if isinstance(stb, str) else "\n".join(stb)
        self.trace = [etype.__name__[:100], f"{evalue}"[:2000], text[:10_000]]

    def enable_gui(self, gui=None):
        """Have none."""


class EndlessOutput(RuntimeError):
    """A cell printed more than a loop with an end does."""


class Printed(io.StringIO):
    """What a cell prints, which stops a cell that does nothing else."""

    def write(self, text: str) -> int:
        """Add a text."""
        if self.tell() > ENDLESS:
            raise EndlessOutput(f"more than {ENDLESS:,} characters: does a loop end?")
        return super().write(text)


class Pupil:
    """The cells that were executed, and what the judge may ask of them."""

    def __init__(self):
        self.shell = Shell.instance(
            colors="NoColor", xmode="Plain", cache_size=1000, history_length=0
        )
        self.shell.history_manager.enabled = False
        self.names, self.given = self.shell.user_ns, {}

    def execute(self, source: str, given: bool) -> dict:
        """Execute a cell; give what it put out, whether it was cut, and its error."""
        before, self.shell.trace = dict(self.names), []
        with self.shell.display_trap, capture_output(False, False) as kept:
            with redirect_stdout(Printed()) as out, redirect_stderr(Printed()) as err:
                self.shell.run_cell(source, store_history=True)
        if given:
            changed = {k: v for k, v in self.names.items() if before.get(k) is not v}
            self.given |= changed
        room, images, outputs, full = OUTPUT, IMAGES, [], False
        shown = [("stdout", out.getvalue()), ("stderr", err.getvalue())]
        for rich in kept.outputs:
            text, image = (rich.data.get(kind) for kind in ("text/plain", "image/png"))
            if isinstance(image, str) and len(image) <= images:
                images -= len(image)
                shown.append(("image", image))
            else:
                shown.append(("shown", f"{text or ''}"))
        for kind, content in shown:
            if kind != "image":
                full, content = full or len(content) > room, content[:room]
                room -= len(content)
            if content:
                outputs.append([kind, content])
        return {"outputs": outputs, "full": full, "error": self.shell.trace}

    def look_up(self, names: list[str]) -> dict:
        """Give what the cells call by these names."""
        return {name: self.names[name] for name in names if name in self.names}

    def answer(self, name: str, arguments: list, named: dict, replaced: dict):
        """Call a student's function; meanwhile other names are replaced."""
        before = {other: self.names.get(other) for other in replaced}
        self.names.update(replaced)
        try:
            return self.names[name](*arguments, **named)
        finally:
            self.names.update(before)

    def make(self, name: str, arguments: list, named: dict, state: torch.Tensor):
        """Make an object again with the given function that made it for the judge."""
        kept = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            return self.given[name](*arguments, **named)
        finally:
            torch.set_rng_state(kept)


def describe(error: BaseException) -> tuple[str, str, str]:
    """Say what was raised, and where in the student's cells."""
    lines = [
        traceback.format_list([frame])[0]
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith("<ipython-input")
    ]
    with suppress(BaseException):
        kind = type(error).__name__
        return kind[:100], f"{error}"[:2000], "".join(lines[-20:])[-4000:]
    return "Exception", "", ""


def serve(border: socket.socket) -> None:
    """Answer the judge at the other end of a socket."""
    with suppress(OSError, AttributeError):  # a system other than Linux
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # where memory ends at once, this process goes, and no other
        Path("/proc/self/oom_score_adj").write_text("1000")
    for kind, amount in LIMITS.items():
        with suppress(ValueError, OSError):  # a system without it, or a lower one
            resource.setrlimit(kind, (amount, amount))
    torch.set_num_threads(1)
    random.seed(0)
    np.random.seed(0)
    pupil = Pupil()
    link = Link(border.makefile("rwb"), make=pupil.make, describe=describe)
    link.named = {
        "execute": pupil.execute,
        "look_up": pupil.look_up,
        "answer": pupil.answer,
        "forget": link.forget,
    }
    nowhere = open(os.devnull, "w")  # for what is printed between cells
    with suppress(BorderError), redirect_stdout(nowhere), redirect_stderr(nowhere):
        link.serve()
    os._exit(1)


if __name__ == "__main__":
    own = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    serve(own)
