"""Execute one submission within limits: of time, of memory, of output.

usage: python -m tools.coursework.execution NOTEBOOK JOURNAL SECONDS_A_CELL SECONDS_ADDED

Each cell that was handed out has ``SECONDS_A_CELL`` of its own; those that the student added have as much each, and ``SECONDS_ADDED``
together. What happens is appended to ``JOURNAL``, a line when a cell begins and one when it ends, so that it is known how far the
execution came if this process has to be killed. From the journal ``journal.py`` makes the executed notebook: whatever the submission did,
every cell that did not run to its end has an error among its outputs, which nbgrader takes for zero points.
"""

import asyncio
import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

import nbformat
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from nbgrader.preprocessors import Execute
from traitlets import Float, Unicode

from tools.coursework import kernel
from tools.coursework.clock import Clock
from tools.coursework.journal import error
from tools.coursework.kernel import OUTPUT, size

MEMORY = 8 * 2**30  # bytes of address space, of which PyTorch maps three without using them
OUTPUTS = ("stream", "display_data", "update_display_data", "execute_result", "error")
GRACE = 10  # seconds in which a cell must end that is interrupted every second


class ExecuteWithinLimits(Execute):
    """Nbgrader's execution, which goes on after an error; here also after too much time or output, and it ends when the kernel dies."""

    journal = Unicode(help="file for what happens")
    seconds_a_cell = Float(60.0, help="time for each cell")
    seconds_added = Float(300.0, help="time for all cells together that the student added")
    stopped = Unicode("", help="why no more cells are executed")

    def preprocess(self, nb, resources=None, km=None):
        """Execute a notebook, which is told in the journal."""
        with suppress(DeadKernelError):  # said again by the shutdown of a kernel that died
            super().preprocess(nb, resources, km)
        self.write(ended=True)
        return nb, resources

    def write(self, **entry):
        """Append a line to the journal."""
        with open(self.journal, "a") as file:
            file.write(json.dumps(entry) + "\n")

    def create_kernel_manager(self):
        """Have the kernel started that limits its output."""
        super().create_kernel_manager()
        self.km.kernel_spec.argv = [sys.executable, kernel.__file__, "-f", "{connection_file}"]
        return self.km

    def preprocess_cell(self, cell, resources, index):
        """Execute a cell, or say in its output why it was not executed."""
        if cell.cell_type != "code":
            return cell, resources
        settings = cell.metadata.get("nbgrader", {})  # a cell without them was added
        title = f"cell {settings.get('grade_id') or index + 1}"
        self.write(begun=title)
        remarks = []
        if self.stopped or (not settings and self.seconds_added <= 0):
            cell.outputs = [error(f"not executed, for {self.stopped or 'the cells that the student added took too long'}")]
        elif settings:
            remarks = self.execute_within(self.seconds_a_cell, cell, title, resources, index)
        else:
            remarks = self.execute_within(min(self.seconds_a_cell, self.seconds_added), cell, title, resources, index)
            self.seconds_added -= self.clock.seconds()
            if self.seconds_added <= 0:
                remarks.append(f"the cells that the student added took too long: those after {title} were not executed")
        for one in cell.outputs if settings.get("grade") else []:
            if one.output_type == "stream":
                one.name = "stdout"  # nbgrader takes standard error, hence any warning, for a failed test
        self.write(cell=index, outputs=cell.outputs, execution_count=cell.execution_count, remarks=remarks)
        return cell, resources

    def execute_within(self, seconds, cell, title, resources, index):
        """Execute a cell within so many seconds; return what the lecturer should know."""
        self.length, self.limit, self.clock = 0, seconds, Clock(self.km.provisioner.pid)
        self.late, self.idle, remarks = False, False, []
        try:
            super().preprocess_cell(cell, resources, index)
        except Exception as failure:  # the kernel died, was given up, or sent what cannot be understood
            cell.outputs = [*cell.outputs, error(f"stopped, for {type(failure).__name__}")]
            if not self.idle:
                self.stopped = f"the kernel {'could not be stopped' if self.late else 'died'} in {title}"
                remarks.append(self.stopped)
        if self.length > OUTPUT:
            cell.outputs = [*cell.outputs, error("stopped, for it printed too much")]
            remarks.insert(0, f"{title} printed too much and was stopped")
        elif self.late:
            cell.outputs = [*cell.outputs, error("stopped, for it took too long")]
            computed, passed = self.clock.processor(), self.clock.wall()
            remarks.insert(0, f"{title} was stopped after {computed:.0f} seconds of computing, {passed:.0f} in all")
        return remarks

    async def async_execute_cell(self, cell, cell_index, execution_count=None, store_history=True):
        """Execute a cell under the eyes of a watch."""
        watch = asyncio.ensure_future(self.watch())
        try:
            return await super().async_execute_cell(cell, cell_index, execution_count, store_history)
        finally:
            watch.cancel()

    execute_cell = run_sync(async_execute_cell)

    async def watch(self):
        """Interrupt the cell at its limit; give the kernel up if the cell does not obey."""
        while self.clock.seconds() < self.limit:
            await asyncio.sleep(0.1)
        self.late = True
        for second in range(1, GRACE + 1):
            if not self.idle:
                await self.km.interrupt_kernel()
            while self.clock.seconds() < self.limit + second:
                await asyncio.sleep(0.1)
            if self.idle:
                break  # it obeyed, but an interrupt between a cell's end and its reply makes a kernel forget the reply
        self.task_poll_for_reply.cancel()

    def process_message(self, msg, cell, cell_index):
        """Take a message of the kernel; drop outputs beyond the limit, and interrupt the cell if the kernel has not done it soon."""
        if msg["msg_type"] in OUTPUTS:
            self.length += size(msg["content"])
            if self.length > OUTPUT:
                self.limit = min(self.limit, self.clock.seconds() + 1)
                return None
        self.idle = self.idle or msg["content"].get("execution_state") == "idle"
        return super().process_message(msg, cell, cell_index)


def main(path: str, journal: str, seconds_a_cell: str, seconds_added: str) -> None:
    """Execute ``path`` and write ``journal``."""
    notebook = nbformat.read(path, 4)
    os.remove(path)  # a submission should not find the hidden tests beside it
    for limit, amount in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 2**30), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a system without this limit, or with a lower one
            resource.setrlimit(limit, (amount, amount))
    execute = ExecuteWithinLimits(
        journal=journal,
        seconds_a_cell=float(seconds_a_cell),
        seconds_added=float(seconds_added),
        timeout=None,  # watched here
        startup_timeout=600,
        iopub_timeout=60,  # time to read what a cell had printed when it ended
        raise_on_iopub_timeout=False,
        kernel_name="python3",
    )
    execute.preprocess(notebook, {"metadata": {"path": str(Path(path).parent)}})


if __name__ == "__main__":
    main(*sys.argv[1:])
