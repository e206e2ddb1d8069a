"""Execute one submission within limits: of time, of memory, of output.

usage: python tools/execution.py NOTEBOOK EXECUTED SECONDS_A_CELL SECONDS_A_NOTEBOOK

Whatever the submission does, ``EXECUTED`` is a notebook in which every cell that did not run to its end has an error among its outputs,
which nbgrader takes for zero points. What a lecturer should know of is listed in its metadata, under ``remarks``. The file is written
after every cell, so that it says how far the execution came if this process has to be killed.
"""

import asyncio
import json
import os
import resource
import sys
import time
from contextlib import suppress

import nbformat
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbgrader.preprocessors import Execute
from traitlets import Float, List, Unicode

MEMORY = 8 * 2**30  # bytes of address space, of which PyTorch maps three without using them
OUTPUT = 2 * 2**20  # characters of one cell's output
OUTPUTS = ("stream", "display_data", "update_display_data", "execute_result", "error")


class ExecuteWithinLimits(Execute):
    """Nbgrader's execution, which goes on after a time-out; here also after too much output, and it ends in peace when the kernel dies."""

    target = Unicode(help="file for the executed notebook")
    seconds = Float(300.0, help="time for the whole notebook")
    stopped = Unicode("", help="why no more cells are executed")
    remarks = List(Unicode(), help="what the lecturer should know")

    def preprocess(self, nb, resources=None, km=None):
        """Execute a notebook; its metadata then holds the remarks."""
        fail(nb, "a cell before it brought the whole execution down")
        self.deadline = time.monotonic() + self.seconds
        self.timeout_func = lambda cell: max(1, min(self.timeout, self.deadline - time.monotonic()))
        with suppress(DeadKernelError):  # said again by the shutdown of a kernel that died
            super().preprocess(nb, resources, km)
        self.write()
        return nb, resources

    def write(self):
        """Write the notebook as far as it is executed."""
        self.nb.metadata["remarks"] = self.remarks
        for cell in self.nb.cells:
            for output in cell.get("outputs", []) if cell.metadata.get("nbgrader", {}).get("grade") else []:
                if output.output_type == "stream":
                    output.name = "stdout"  # nbgrader takes standard error, hence any warning, for a failed test
        with open(f"{self.target}.unfinished", "w") as file:
            json.dump(self.nb, file)
        os.replace(f"{self.target}.unfinished", self.target)

    def preprocess_cell(self, cell, resources, index):
        """Execute a cell, or say in its output why it was not executed."""
        if cell.cell_type != "code":
            return cell, resources
        if not self.stopped and time.monotonic() > self.deadline:
            self.stop(f"the notebook took more than {self.seconds:g} seconds")
        if self.stopped:
            cell.outputs = [error(f"not executed, for {self.stopped}")]
            return cell, resources
        self.length, started = 0, time.monotonic()
        self.remarks = [*self.remarks, f"the execution had to be killed in {name(cell, index)}"]  # unless it comes back from there
        self.write()
        self.remarks = self.remarks[:-1]
        try:
            super().preprocess_cell(cell, resources, index)
        except Exception as failure:  # the kernel died, or sent what cannot be understood
            cell.outputs = [*cell.outputs, error(f"stopped, for {type(failure).__name__}")]
            self.stop(f"the kernel died in {name(cell, index)}")
        if self.length > OUTPUT:
            self.remarks = [*self.remarks, f"{name(cell, index)} printed too much and was stopped"]
            cell.outputs = [*cell.outputs, error("stopped, for it printed too much")]
        elif any(output.get("ename") == "CellTimeoutError" for output in cell.outputs):
            self.remarks = [*self.remarks, f"{name(cell, index)} was stopped after {time.monotonic() - started:.0f} seconds"]
            if not self.answers():
                self.stop(f"the kernel could not be stopped in {name(cell, index)}")
        return cell, resources

    def answers(self):
        """Ask the kernel whether it obeyed and is ready for the next cell."""

        async def ask():
            await self.kc.kernel_info(reply=True, timeout=10)

        try:
            run_sync(ask)()
        except Exception:  # no answer, or no kernel any more
            return False
        return True

    def stop(self, reason):
        """Execute no more cells."""
        self.stopped, self.remarks = reason, [*self.remarks, reason]

    def process_message(self, msg, cell, cell_index):
        """Take a message of the kernel; drop outputs beyond the limit, and interrupt the cell that makes them."""
        if msg["msg_type"] in OUTPUTS:
            before, self.length = self.length, self.length + size(msg["content"])
            if self.length > OUTPUT:
                if before <= OUTPUT:
                    self.interruption = asyncio.ensure_future(self.km.interrupt_kernel())
                return None
        return super().process_message(msg, cell, cell_index)


def size(content) -> int:
    """Count the characters of a message."""
    if isinstance(content, dict):
        return sum(map(size, content.values()))
    if isinstance(content, list):
        return sum(map(size, content))
    return len(content) if isinstance(content, str) else 0


def error(message: str) -> nbformat.NotebookNode:
    """Make the output of a cell that failed for a reason outside its code."""
    return nbformat.v4.new_output("error", ename="GradingError", evalue=message, traceback=[f"GradingError: {message}"])


def name(cell, index) -> str:
    """Name a cell as a lecturer knows it."""
    return "cell " + str(cell.metadata.get("nbgrader", {}).get("grade_id") or index + 1)


def fail(notebook, reason: str):
    """Make of a notebook one that was not executed."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [error(f"not executed, for {reason}")]
    notebook.metadata["remarks"] = [reason]
    return notebook


def main(path: str, executed: str, seconds_a_cell: str, seconds_a_notebook: str) -> None:
    """Execute ``path`` and write ``executed``."""
    notebook = nbformat.read(path, 4)
    os.remove(path)  # a submission should not find the hidden tests beside it
    for limit, amount in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 2**30), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a system without this limit, or with a lower one
            resource.setrlimit(limit, (amount, amount))
    execute = ExecuteWithinLimits(
        timeout=int(seconds_a_cell),
        seconds=float(seconds_a_notebook),
        kernel_name="python3",
        iopub_timeout=10,  # time to read what a cell had printed when it ended
        raise_on_iopub_timeout=False,
        target=executed,
    )
    execute.preprocess(notebook, {"metadata": {"path": "."}})


if __name__ == "__main__":
    main(*sys.argv[1:])
