"""Kernels of notebooks as forks of one process that has imported what nearly all pages
import: to import torch takes longer than many a page.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from signal import SIG_IGN, SIGINT, SIGKILL, signal
from threading import Thread

# Nothing that asks whether it is in a notebook when it is imported.
IMPORTS = "torch", "scipy.stats", "matplotlib.figure", "ipykernel.kernelapp"
INLINE = "module://matplotlib_inline.backend_inline"
server = get_context("forkserver")


class Kernel:
    """The process of a kernel, with what jupyter_client asks of one."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], environment: dict, folder: str | None):
        process = server.Process(target=serve, args=(arguments, environment, folder))
        process.start()
        self.pid, self.poll = process.pid, lambda: process.exitcode
        while self.poll() is None and os.getpgid(self.pid) != self.pid:
            time.sleep(0.001)  # what is sent to its group would come to this process

    def wait(self) -> int:
        """Wait for its end; return the exit status."""
        while self.poll() is None:
            time.sleep(0.01)
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Send a signal to its group, if it is still there."""
        with suppress(ProcessLookupError):
            if self.poll() is None:
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(SIGKILL)


def serve(arguments: list[str], environment: dict, folder: str | None) -> None:
    """Be a kernel, in a session of its own: Ctrl-C comes to the parent alone."""
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()
    os.chdir(folder or ".")
    os.environ.update(environment)
    tools = str(Path(__file__).parent)  # whose names are no packages of a page
    sys.path[:] = [path for path in sys.path if path != tools]
    Thread(target=end_with_parent, daemon=True).start()
    # The handle of its parent, the server, tells it that nobody sees its terminal.
    arguments.append(f"--IPKernelApp.parent_handle={os.getppid()}")
    IPKernelApp.launch_instance(arguments)


def end_with_parent() -> None:
    """End when the process ends that asked for this one."""
    parent_process().join()
    os._exit(1)


def fork(imports: Sequence[str] = IMPORTS) -> list[Kernel]:
    """Have the kernels of this process forked from now on; return the list of them."""
    from jupyter_client.provisioning import local_provisioner

    os.environ.setdefault("MPLBACKEND", INLINE)  # before matplotlib is imported
    # A Mac may crash where libraries are loaded before a fork.
    imports = imports if sys.platform == "linux" else ()
    server.set_forkserver_preload(["__main__", *imports])
    before = signal(SIGINT, SIG_IGN)  # of the server: Ctrl-C is for this process
    ensure_running()
    signal(SIGINT, before)
    kernels = []

    def launch_kernel(command, env, cwd=None, **settings):
        _, _, module, *arguments = command
        assert module == "ipykernel_launcher", command
        kernels.append(Kernel(arguments, env, cwd))
        return kernels[-1]

    local_provisioner.launch_kernel = launch_kernel
    return kernels
