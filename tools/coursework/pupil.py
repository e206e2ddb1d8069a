"""Execute a student's cells, and answer calls of the student's functions: the process
that nobody trusts.

The judge starts it, confined, with a socket as its standard input and output, sends it
cells and calls, and believes nothing but the values that come back."""

import _thread
import ctypes
import io
import os
import random
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress

import numpy as np
import torch
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from tools.coursework.codec import BorderError, Link

AUTOGRAD = {
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.forward_ad",
    "torch._functorch.eager_transforms",
}
PRINTING = "unpack_dual"  # of these, what PyTorch calls to show a tensor
NAMED = 3  # calls that are noted
# which switch off what notices calls, or start a thread without it
EVASIONS = (sys.setprofile, _thread.start_new_thread)
NOTICING = "sys.setprofile, or starts a thread, so that its calls are not noticed"
PR_SET_PDEATHSIG = 1  # of Linux
LET_GO = 77  # the exit status of a pupil after which there is another one
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


class Outputs:
    """What a cell puts out, as far as there is room; what goes beyond is lost where it
    is made.
    """

    def __init__(self):
        self.clear()
        self.room, self.images = 0, 0

    def clear(self) -> None:
        """Begin a new cell."""
        self.list, self.room, self.images, self.full = [], OUTPUT, IMAGES, False

    def cut(self, text: str) -> str:
        """Take the part of a text for which there is room."""
        kept, self.full = text[: self.room], self.full or len(text) > self.room
        self.room -= len(kept)
        return kept

    def stream(self, name: str, text: str) -> None:
        """Add to what is printed."""
        if text := self.cut(text):
            if self.list and self.list[-1].get("name") == name:
                self.list[-1]["text"].append(text)
            else:
                self.list.append(
                    {"output_type": "stream", "name": name, "text": [text]}
                )

    def data(self, kind: str, data: dict) -> None:
        """Add something that is displayed: its text, and its picture."""
        shown = {}
        if isinstance(text := data.get("text/plain"), str):
            shown["text/plain"] = self.cut(text)
        if (
            isinstance(image := data.get("image/png"), str)
            and len(image) <= self.images
        ):
            self.images -= len(image)
            shown["image/png"] = image
        if shown:
            self.list.append({"output_type": kind, "data": shown})

    def error(self, kind: str, message: str, trace: list[str]) -> None:
        """Add an error."""
        self.list.append(
            {
                "output_type": "error",
                "ename": kind[:100],
                "evalue": message[:2000],
                "traceback": ["\n".join(trace)[:10_000]],
            }
        )


OUTPUTS = Outputs()


class Printed(io.TextIOBase):
    """Standard output or error of a cell."""

    encoding = "utf-8"

    def __init__(self, name: str):
        self.name = name

    def writable(self) -> bool:
        """Say that one can write."""
        return True

    def write(self, text: str) -> int:
        """Keep a text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        OUTPUTS.stream(self.name, text)
        return len(text)


class Publisher(DisplayPublisher):
    """Keeps what is displayed."""

    def publish(self, data, metadata=None, **others):
        """Keep it."""
        OUTPUTS.data("display_data", data)

    def clear_output(self, wait=False):
        """Begin anew."""
        OUTPUTS.list.clear()


class Hook(DisplayHook):
    """Keeps what a cell's last line gives."""

    def write_output_prompt(self):
        """Write none."""

    def write_format_data(self, format_dict, md_dict=None):
        """Keep it."""
        OUTPUTS.data("execute_result", format_dict)

    def finish_displayhook(self):
        """Write nothing."""


class Shell(InteractiveShell):
    """IPython, which keeps what it shows in ``OUTPUTS``."""

    displayhook_class = Hook
    display_pub_class = Publisher

    def _showtraceback(self, etype, evalue, stb):
        OUTPUTS.error(
            etype.__name__, f"{evalue}", stb if isinstance(stb, list) else [stb]
        )

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
        # words and modules, and what was called of them
        self.forbidden, self.used = [], []
        # for a thread of a cell may work on when a function is called
        threading.setprofile(self.look)

    def execute(self, source: str, given: bool) -> dict:
        """Execute a cell; give what it put out, and whether it raised an exception."""
        OUTPUTS.clear()
        before = dict(self.names)
        result = self.shell.run_cell(source, store_history=True)
        if given:
            self.given |= {
                name: value
                for name, value in self.names.items()
                if before.get(name, self) is not value
            }
        if OUTPUTS.full:
            OUTPUTS.list.append(
                {
                    "output_type": "stream",
                    "name": "stderr",
                    "text": ["… cut, for it printed too much"],
                }
            )
        for output in OUTPUTS.list:
            if isinstance(output.get("text"), list):
                output["text"] = "".join(output["text"])
        OUTPUTS.room = 0  # what is printed between cells is lost
        return {
            "outputs": OUTPUTS.list,
            "failed": not result.success,
            "full": OUTPUTS.full,
        }

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
        before, outer = (
            {other: self.names.get(other) for other in replaced},
            (self.forbidden, self.used),
        )
        self.names.update(replaced)
        if forbidden and not self.forbidden:
            sys.setprofile(self.look)
        self.forbidden, self.used = forbidden, []
        try:
            value = self.names[name](*arguments, **named)
            if (
                forbidden
                and not sys.getprofile() == threading.getprofile() == self.look
            ):
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
        elif (
            event == "c_call"
            and module != "threading"
            and any(called is one for one in EVASIONS)
        ):
            self.note(NOTICING)

    def note(self, call: str) -> None:
        """Note a call, once."""
        if call not in self.used:
            self.used.append(call)

    def make(self, name: str, arguments: list, named: dict, state: torch.Tensor):
        """Make an object once more, by the given function that made it for the
        judge.
        """
        kept = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            return self.given[name](*arguments, **named)
        finally:
            torch.set_rng_state(kept)


def is_forbidden(module: str, name: str, forbidden: list[str]) -> bool:
    """Tell whether a function is one of those that a task forbids; what draws figures
    is nobody's answer.

    Example:
        >>> (
        ...     is_forbidden("torch.autograd", "grad", ["autograd"]),
        ...     is_forbidden("booklib.figures", "use_style", ["sgmc"]),
        ... )
        (True, False)
    """
    if module in AUTOGRAD:
        return "autograd" in forbidden and name != PRINTING
    return module != "booklib.figures" and any(
        f"{module}.".startswith(f"{one}.") for one in forbidden
    )


class Alarm:
    """Interrupts what computes for too long, and again and again if it goes on."""

    def __init__(self, link: Link):
        self.link, self.end = link, float("inf")
        signal.signal(signal.SIGPROF, self.ring)

    def set(self, seconds: float) -> None:
        """Give so many seconds of the processor from now on."""
        self.end = time.process_time() + seconds
        signal.setitimer(signal.ITIMER_PROF, seconds, 0.1)

    def ring(self, *_) -> None:
        """Interrupt what is computed, unless a message crosses, or the timer has
        counted time that others took away.
        """
        if (
            time.process_time() >= self.end
            and self.link.depth
            and not self.link.crossing
        ):
            raise KeyboardInterrupt("it took too long")


def describe(error: BaseException) -> tuple[str, str, str]:
    """Say what was raised, and where in the student's cells."""
    trace = traceback.extract_tb(error.__traceback__)
    trace.reverse()
    lines = [
        line
        for frame in trace[:20]
        if frame.filename.startswith("<ipython-input")
        for line in traceback.format_list([frame])
    ]
    with suppress(BaseException):
        return (
            type(error).__name__[:100],
            f"{error}"[:2000],
            "".join(lines[::-1])[-4000:],
        )
    return "Exception", "", ""


def main() -> None:
    """Answer the judge through standard input and output, which are of no other use
    then.
    """
    border = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    serve_again(border)


def serve_again(border: socket.socket) -> None:
    """Answer the judge in a copy of this process, which has imported what takes long;
    when the judge lets that go, in the next one.
    """
    while True:
        child = os.fork()
        if not child:
            with suppress(OSError, AttributeError):  # a system other than Linux
                # who ends this process ends the copy too
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            serve(border)
        if os.waitpid(child, 0)[1] != LET_GO << 8:
            return


def serve(border: socket.socket) -> None:
    """Answer the judge at the other end of a socket."""
    for kind, amount in LIMITS.items():
        # a system without this limit, or with a lower one
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (amount, amount))
    sys.stdout, sys.stderr = Printed("stdout"), Printed("stderr")
    torch.set_num_threads(1)
    random.seed(0)
    np.random.seed(0)
    pupil = Pupil()
    link = Link(
        border.makefile("rb"), border.makefile("wb"), make=pupil.make, describe=describe
    )

    link.named = {
        "execute": pupil.execute,
        "look_up": pupil.look_up,
        "answer": pupil.answer,
        "limit": Alarm(link).set,
        "leave": link.leave,
        "forget": link.forget,
    }
    with suppress(BorderError):
        link.serve()
        os._exit(LET_GO)
    os._exit(1)


if __name__ == "__main__":
    main()
