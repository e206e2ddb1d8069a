"""Execute a student's cells, and answer calls of the student's functions: the process
that nobody trusts.

The judge starts it, confined, with a socket as its standard input, sends it cells and
calls, and believes nothing but the values that come back."""

import _thread
import ctypes
import os
import random
import resource
import signal
import socket
import sys
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress

import numpy as np
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from coursework.engine.codec import BorderError, Link

# Modules whose calls are derivatives by machine; PRINTING is what PyTorch calls of them
# to show a tensor.
AUTOGRAD = {
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.forward_ad",
    "torch._functorch.eager_transforms",
}
PRINTING = "unpack_dual"
NAMED = 3  # calls that are noted
# These switch off what notices calls, or start a thread without it.
EVASIONS = (sys.setprofile, _thread.start_new_thread)
NOTICING = "sys.setprofile, or starts a thread, so that its calls are not noticed"
PR_SET_PDEATHSIG = 1  # of Linux
# characters of text and of pictures that a cell may put out
OUTPUT, IMAGES = 100_000, 2 * 2**20
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


class Pupil:
    """The cells that were executed, and what the judge may ask of them."""

    def __init__(self):
        self.shell = Shell.instance(
            colors="NoColor", xmode="Plain", cache_size=1000, history_length=0
        )
        self.shell.history_manager.enabled = False
        self.names, self.given = self.shell.user_ns, {}
        # names of modules, and what was called of them
        self.forbidden, self.used = [], []
        # a thread of a cell may work on when a function is called
        threading.setprofile(self.look)

    def execute(self, source: str, given: bool) -> dict:
        """Execute a cell; give what it put out, whether it was cut, and its error."""
        before, self.shell.trace = dict(self.names), []
        with self.shell.display_trap, capture_output() as kept:
            self.shell.run_cell(source, store_history=True)
        if given:
            changed = {k: v for k, v in self.names.items() if before.get(k) is not v}
            self.given |= changed
        room, images, outputs, full = OUTPUT, IMAGES, [], False
        shown = [("stdout", kept.stdout), ("stderr", kept.stderr)]
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

    def answer(
        self,
        name: str,
        arguments: list,
        named: dict,
        replaced: dict,
        forbidden: list[str],
    ):
        """Call a student's function; meanwhile other names are replaced, and calls of
        what is forbidden are noticed.
        """
        before = {other: self.names.get(other) for other in replaced}
        outer = self.forbidden, self.used
        self.names.update(replaced)
        if forbidden and not self.forbidden:
            sys.setprofile(self.look)
        self.forbidden, self.used = forbidden, []
        try:
            with torch.set_grad_enabled("autograd" not in forbidden):
                value = self.names[name](*arguments, **named)
            profiles = sys.getprofile(), threading.getprofile()
            if forbidden and profiles != (self.look, self.look):
                self.note(NOTICING)
            return {"value": value, "used": self.used}
        finally:
            self.forbidden, self.used = outer
            self.names.update(before)
            if not self.forbidden:
                sys.setprofile(None)

    def look(self, frame, event: str, called) -> None:
        """Notice calls of functions of forbidden modules and of those within them, and
        what would hide such calls.
        """
        if not self.forbidden or len(self.used) == NAMED:
            return
        module, name = f"{frame.f_globals.get('__name__')}", frame.f_code.co_name
        if event == "call" and is_forbidden(module, name, self.forbidden):
            self.note(f"{module}.{name}")
        elif event == "c_call" and module != "threading":
            if any(called is one for one in EVASIONS):
                self.note(NOTICING)

    def note(self, call: str) -> None:
        """Note a call, once."""
        if call not in self.used:
            self.used.append(call)

    def make(self, name: str, arguments: list, named: dict, state: torch.Tensor):
        """Make an object again with the given function that made it for the judge."""
        kept = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            return self.given[name](*arguments, **named)
        finally:
            torch.set_rng_state(kept)


def is_forbidden(module: str, name: str, forbidden: list[str]) -> bool:
    """Tell whether a task forbids a function; what draws figures is nobody's answer.

    Example:
        >>> is_forbidden("torch.autograd", "grad", ["autograd"])
        True
        >>> is_forbidden("booklib.page.figures", "use_style", ["booklib"])
        False
    """
    if module in AUTOGRAD:
        return "autograd" in forbidden and name != PRINTING
    return module != "booklib.page.figures" and any(
        f"{module}.".startswith(f"{one}.") for one in forbidden
    )


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
