"""Judge one submission: its cells run in a pupil's process, all tests in this one,
which nothing but values reaches.

A submission is executed twice, each time by a pupil of its own. The first time only the
visible tests are run; what feedback shows is the output of that time, and so no hidden
test can be in it. The second time all tests are run; all that is taken from it are
points, and for the lecturer why they are missing."""

import ast
import contextlib
import functools
import io
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from torch import Generator, Tensor

from tools.coursework.blocks import Block, blocks, visible
from tools.coursework.clock import Clock
from tools.coursework.codec import AnswerError, BorderError, Link, Remote
from tools.coursework.pairs import task_of
from tools.coursework.suspicions import read_all

# bytes and number of all processes of a pupil together
MEMORY, PROCESSES = 3 * 2**30, 64
RESERVE = 2**30  # bytes that must stay available on this machine
OUTPUTS = 2**24  # characters of all outputs of a submission
REMARKS, LONGEST = 50, 300  # number and characters of remarks
NAMED = 3  # forbidden calls that are named
NOT_ALLOWED = "which this task does not allow"
ENDED = "ended its process, or disturbed it"
SPENT = "had no time left, for the submission used it up"
DEATHS = 30  # of pupils in one execution of a submission
OWN_MEMORY, OWN_SECONDS = 2 * 2**30, 1800  # of the judge itself
VALUES = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    list,
    tuple,
    dict,
    Tensor,
    np.ndarray,
    np.generic,
    Generator,
    types.FunctionType,
)


class Cell(NamedTuple):
    """A code cell of a submission."""

    kind: str  #: "given", "answer", "added" or "test"
    name: str
    source: str
    points: float = 0.0
    names: tuple[str, ...] = ()  #: what the instructor's answer defines
    #: modules of which an answer, or what is tested, may call nothing
    forbidden: tuple[str, ...] = ()
    experiment: bool = False  #: marked by hand, and of no use to any test


def read_cells(submitted: list, instructors: list) -> list[Cell]:
    """Read the code cells of a submission, put into the instructor's notebook; what an
    answer should be is the instructor's to say.
    """
    known = {task_of(cell): cell for cell in instructors if task_of(cell)}
    found = []
    for number, cell in enumerate(submitted):
        if cell.cell_type != "code":
            continue
        own = known.get(task_of(cell))
        if own is None:
            found.append(Cell("added", f"{number + 1}", cell.source))
            continue
        settings, experiment = (
            own.metadata.nbgrader,
            "experiment" in own.metadata.get("tags", ()),
        )
        kind = "test" if settings.grade else "answer" if settings.solution else "given"
        names = tuple(defined(own.source)) if kind == "answer" else ()
        found.append(
            Cell(
                kind,
                task_of(cell),
                cell.source,
                settings.get("points", 0.0),
                names,
                tuple(own.metadata.get("forbidden", ())),
                experiment,
            )
        )
    return found


def defined(source: str) -> list[str]:
    r"""List the names that a source defines at its top level.

    Example:
        >>> defined("def f(x):\n    y = x\n    return y\na, b = 1, 2")
        ['f', 'a', 'b']
    """
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [
                one.id
                for target in node.targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name)
            ]
    return names


class Verdict(NamedTuple):
    """What became of a block of a test cell."""

    block: Block
    points: float
    error: str  #: why it failed; empty if it passed


@dataclass
class Outcome:
    """What is known of a submission; what was not reached has no points."""

    #: of every cell, as far as feedback may show them
    outputs: dict[str, list[dict]] = field(default_factory=dict)
    #: of the visible part of every test cell
    seen: dict[str, list[Verdict]] = field(default_factory=dict)
    #: of every test cell
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    exhausted: bool = False  #: it ran out of time or memory


class Limits(NamedTuple):
    """Seconds of the processor: of every cell and every block of a test, of all cells
    that a student added, and of all there is.
    """

    cell: float = 60
    added: float = 300
    submission: float = 900


class Budget:
    """What is left to a submission: seconds of the processor, and four times as many on
    the wall, for what sleeps must end too.
    """

    def __init__(self, seconds: float):
        self.left, self.end = seconds, time.monotonic() + 4 * seconds

    def is_spent(self) -> bool:
        """Say whether nothing is left."""
        return self.left <= 0 or time.monotonic() > self.end


class Pupil:
    """A process that executes a student's cells, watched."""

    def __init__(self, process: subprocess.Popen, link: Link, budget: Budget):
        self.process, self.link, self.budget = process, link, budget
        self.clock, self.seconds, self.why, self.ended = (
            Clock(process.pid),
            60.0,
            "",
            False,
        )
        self.processes = PROCESSES  # how many it has of itself
        threading.Thread(target=self._watch, daemon=True).start()

    def within(self, seconds: float) -> None:
        """Begin something that may take so long."""
        self.clock, self.seconds = Clock(self.process.pid), seconds
        self.link.call("limit", seconds)

    def is_late(self) -> bool:
        """Say whether what was begun, and has failed, was stopped; the clock of the
        alarm is not quite this one.
        """
        return self.clock.processor() >= 0.75 * self.seconds

    def kill(self) -> None:
        """Kill it, with all processes that it started; those that are confined cannot
        do without it.

        One that is not, and hides, may still hold its end of the border: so that is
        closed here."""
        with contextlib.suppress(psutil.Error):
            for one in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    one.kill()
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        with contextlib.suppress(OSError):
            self.process.border.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Do without it from now on."""
        self.ended = True
        self.kill()
        self.process.wait()

    def _watch(self) -> None:
        whole, spent = Clock(self.process.pid), 0.0
        while not self.ended:
            time.sleep(0.2)
            if self.ended:
                return
            before, spent = spent, max(spent, whole.processor())
            self.budget.left -= spent - before
            if self.budget.is_spent():
                self.why = SPENT
            # what can be interrupted was interrupted before
            elif self.clock.seconds() > 1.1 * self.seconds + 1:
                self.why = (
                    "took too long"
                    if self.clock.processor() > self.clock.wall() / 100
                    else "slept for too long"
                )
            elif self.clock.has_ended():
                self.why = ENDED
            elif self.clock.processes() > PROCESSES:
                self.why = "started too many processes"
            elif (
                self.clock.memory() > MEMORY
                or psutil.virtual_memory().available < RESERVE
            ):
                self.why = "took too much memory"
            if self.why:
                self.kill()
                return


class Sitting:
    """One execution of a submission.

    Args:
        cells: its cells.
        start: starts a pupil's process, with the judge's end of a socket as its
            ``border``.
        limits: for the processor.
        hidden: whether hidden tests are run, rather than the visible ones alone.
        findings: sentences on forbidden uses that were read in an answer, by its name.
        process: one that was started before, and is to be used first.
        budget: what is left to the submission.
    """

    def __init__(
        self,
        cells: list[Cell],
        start: Callable[[], subprocess.Popen],
        limits: Limits,
        hidden: bool,
        findings=None,
        process=None,
        budget=None,
    ):
        self.process: subprocess.Popen | None = process
        self.budget, self.room = budget or Budget(limits.submission), OUTPUTS // 2
        self.findings: dict[str, list[str]] = findings or {}
        self.cells, self.start, self.limits, self.hidden = cells, start, limits, hidden
        self.pupil: Pupil | None = None
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.answers: list[str] = []  # names that the answers so far should define
        self.scope: dict[str, Any] = {}  # of the test that runs
        self.made: dict[int, tuple] = {}
        # executed by the pupil, which another pupil must do again
        self.done: list[Cell] = []
        self.faults: list[str] = []  # what fails a test whatever its values
        self.answer: Cell | None = None  # the last one
        self.asked = False  # whether this pupil's functions were called by a test
        self.deaths, self.added = 0, limits.added
        self.remarks: list[str] = []
        self.exhausted = False

    def run(self) -> Iterator[tuple[Cell, list[dict], list[Verdict]]]:
        """Execute the cells; give for each its outputs, and for a test its verdicts."""
        last = max(
            (number for number, cell in enumerate(self.cells) if cell.kind == "test"),
            default=-1,
        )
        for number, cell in enumerate(self.cells):
            if cell.kind == "test":
                yield cell, *self.test(cell)
            elif not self.hidden or (number < last and not cell.experiment):
                yield cell, self.execute(cell), []

    def end(self, keeps: bool = False) -> subprocess.Popen | None:
        """Let the pupil go; if wanted, and possible, keep the process in which there
        will be another one.
        """
        pupil, self.pupil = self.pupil, None
        with contextlib.suppress(BorderError, AnswerError):
            if pupil and keeps:
                pupil.within(60)
                pupil.link.call("leave")
                pupil.ended = True
                return pupil.process
        if pupil:
            pupil.end()
        return None

    # The student's cells

    def execute(self, cell: Cell) -> list[dict]:
        """Have the pupil execute a cell, and execute it here as well if it was
        given.
        """
        if cell.kind == "given" and not cell.experiment:
            self.execute_given(cell)
        if cell.kind == "answer" and not cell.experiment:
            self.answers += cell.names
            self.answer = cell
        if cell.kind == "added" and self.added <= 0:
            return [
                error_output(
                    "not executed, for the cells that were added took too long"
                )
            ]
        return self.execute_by_pupil(cell)

    def execute_by_pupil(self, cell: Cell) -> list[dict]:
        """Have the pupil execute a cell."""
        pupil = None
        try:
            pupil = self.present(
                min(self.limits.cell, self.added)
                if cell.kind == "added"
                else self.limits.cell
            )
            result = pupil.link.call("execute", cell.source, cell.kind == "given")
            outputs = [clean(output) for output in result["outputs"][:100]]
            self.room -= sum(len(str(output)) for output in outputs)
            if self.room < 0:
                outputs = []
                self.remark("its cells put out too much: the last outputs are left out")
            if result["full"]:
                self.remark(f"cell {cell.name} printed too much, and was cut")
            errors = [
                output["ename"]
                for output in outputs
                if output["output_type"] == "error"
            ]
            if errors and cell.kind == "answer" and not cell.experiment:
                self.remark(f"cell {cell.name} ended with {errors[-1]}")
            seconds = pupil.clock.seconds()
            if not (result["failed"] and pupil.is_late()):
                self.done.append(cell)
            else:
                self.exhausted = True
                self.remark(f"cell {cell.name} was stopped, for it took too long")
        except ValueError as error:  # of what is sent, which the pupil has not seen
            return [error_output(f"not executed, for {error}")]
        except (BorderError, AnswerError, KeyError, TypeError, AttributeError) as error:
            if self.asked and pupil and pupil.why in ("", ENDED):
                # what a test's calls left behind, such as a second answer on its way
                # from a fork, is not this cell's doing
                self.bury("what stayed behind of earlier cells", error)
                return self.execute_by_pupil(cell)
            why = self.bury(f"cell {cell.name}", error)
            if cell.kind == "added":
                self.added = 0.0
            return [error_output(f"stopped: {why}")]
        if cell.kind == "added":
            self.added -= seconds
            if self.added <= 0:
                self.remark(
                    "the cells that were added took too long: those after "
                    f"{cell.name} were not executed"
                )
        return outputs

    def execute_given(self, cell: Cell) -> None:
        """Execute a given cell here; remember of the objects that its functions will
        make how they were made.
        """
        exec(compile(cell.source, f"<{cell.name}>", "exec"), self.namespace)
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef):
                self.namespace[node.name] = self.remembering(
                    node.name, self.namespace[node.name]
                )

    def remembering(self, name: str, function: Callable) -> Callable:
        """Make of a given function one whose results can be made again by a pupil."""

        @functools.wraps(function)
        def remembers(*arguments, **named):
            state = torch.get_rng_state()
            result = function(*arguments, **named)
            if not isinstance(result, VALUES):
                self.made[id(result)] = result, (name, list(arguments), named, state)
            return result

        return remembers

    def recipe(self, value) -> tuple | None:
        """Say how a given function made an object: its name, its arguments, and
        PyTorch's generator before.
        """
        return self.made[id(value)][1] if id(value) in self.made else None

    def present(self, seconds: float) -> Pupil:
        """Give the pupil, for something that may take so long; if there is none of use,
        start one that does the cells so far.
        """
        while True:
            if self.budget.is_spent():
                raise BorderError(SPENT)
            try:
                if self.pupil and self.pupil.clock.processes() > self.pupil.processes:
                    raise BorderError(ENDED)  # a fork answers too
                if self.pupil is None:
                    self.begin()
                self.pupil.within(seconds)
                return self.pupil
            except (BorderError, AnswerError) as error:
                if self.deaths > DEATHS:
                    raise BorderError("its processes ended too often") from None
                self.bury("what stayed behind of earlier cells", error)

    def begin(self) -> None:
        """Start a pupil, and have it execute the cells so far."""
        process, self.process = self.process or self.start(), None
        self.asked = False
        link = Link(
            process.border.makefile("rb"),
            process.border.makefile("wb"),
            admit=self.admit,
            made=self.recipe,
            describe=describe,
        )
        self.pupil = Pupil(process, link, self.budget)
        for cell in list(self.done):
            try:
                self.pupil.within(self.limits.cell)
                self.pupil.link.call("execute", cell.source, cell.kind == "given")
            except (BorderError, AnswerError):
                self.done.remove(cell)
                raise
        self.pupil.within(self.limits.cell)  # so that the process that answers is there
        self.pupil.processes = self.pupil.clock.processes()

    def bury(self, where: str, error: Exception) -> str:
        """Do away with a pupil that is of no use any more; say why."""
        why = str(error)
        if self.pupil:
            why = self.pupil.why or ENDED
            self.pupil.end()
            self.pupil, self.deaths = None, self.deaths + 1
        self.exhausted = self.exhausted or why.startswith("took")
        self.remark(
            "not all cells were executed, for the submission used up its time"
            if why == SPENT
            else f"{where} {why}"
        )
        return why

    def remark(self, text: str) -> None:
        """Note what the lecturer should know, once."""
        if text not in self.remarks and len(self.remarks) < REMARKS:
            self.remarks.append(text[:LONGEST])

    # The tests

    def test(self, cell: Cell) -> tuple[list[dict], list[Verdict]]:
        """Run a test cell, block by block."""
        outputs, verdicts = [], []
        found = self.findings.get(self.answer.name, []) if self.answer else []
        for block in blocks(cell.source, cell.points):
            source = block.source if self.hidden else visible(block.source)
            self.faults, printed = list(found), io.StringIO()
            error, where = None, ""
            try:
                with (
                    contextlib.redirect_stdout(printed),
                    contextlib.redirect_stderr(printed),
                ):
                    self.run_block(source, cell)
            except BaseException as raised:
                error, where = raised, line_of(raised, cell, source)
            if isinstance(error, BorderError) or (self.pupil and self.pupil.why):
                error = BorderError(self.bury(f"cell {cell.name}", error))
            elif error and self.pupil and self.pupil.is_late():
                self.exhausted = True
                self.remark(f"cell {cell.name} was stopped, for it took too long")
            for fault in self.faults:
                self.remark(f"the answer tested in {cell.name}: {fault}")
                error, where = AssertionError(fault), ""
            outputs += (
                [
                    {
                        "output_type": "stream",
                        "name": "stdout",
                        "text": printed.getvalue()[:10_000],
                    }
                ]
                if printed.getvalue()
                else []
            )
            outputs += [error_of(error, where)] if error else []
            verdicts.append(
                Verdict(block, 0.0 if error else block.points, reason_of(error))
            )
        if any(NOT_ALLOWED in verdict.error for verdict in verdicts):
            verdicts = [verdict._replace(points=0.0) for verdict in verdicts]
        return outputs, verdicts

    def run_block(self, source: str, cell: Cell) -> None:
        """Run a block of a test, which sees what was given, and what the student made
        of the names that were to be defined.
        """
        pupil = self.present(self.limits.cell)
        pupil.link.forget()
        pupil.link.call("forget")
        found = pupil.link.call("look_up", self.answers)
        for name in self.answers:
            self.namespace.pop(name, None)
        self.namespace |= {
            name: functools.partial(self.ask, name)
            if isinstance(value, Remote)
            else value
            for name, value in found.items()
            if name in self.answers
        }
        self.scope = dict(self.namespace)
        exec(compile(source, f"<{cell.name}>", "exec"), self.scope)

    def ask(self, name: str, *arguments, **named):
        """Call a student's function. Names of answers that the test has replaced, the
        student's functions see replaced too.
        """
        replaced = {
            other: self.scope[other]
            for other in self.answers
            if self.scope.get(other) is not self.namespace.get(other) and other != name
        }
        forbidden = list(self.answer.forbidden) if self.answer else []
        self.asked = True
        reply = self.pupil.link.call(
            "answer", name, list(arguments), named, replaced, forbidden
        )
        if (
            not isinstance(reply, dict)
            or set(reply) != {"value", "used"}
            or not isinstance(reply["used"], list)
        ):
            raise BorderError("no answer")
        faults = [
            f"it calls {str(what)[:100]}, {NOT_ALLOWED}"
            for what in reply["used"][:NAMED]
        ]
        self.faults += [fault for fault in faults if fault not in self.faults]
        return reply["value"]

    def admit(self, generator: Generator, state: Tensor) -> None:
        """Put a generator into the state in which it came back, if it has moved there
        by drawing.
        """
        # to look once is enough, and takes long in vain
        if not self.faults and not reached(generator, state):
            self.faults.append("it sets a generator back, or to a state of its own")


def reached(generator: Generator, state: Tensor, most: int = 50_000) -> bool:
    """Put a generator into a state if draws lead there from its present one; say
    whether they do.

    The state of a Mersenne Twister is 624 numbers, which change all at once whenever
    all of them were given out, and how many are left."""

    def words(one: Tensor) -> tuple[Tensor, int]:
        return one[24:5016], int(one[8:12].view(torch.int32))

    wanted, wanted_left = words(state)
    walker = Generator()
    walker.set_state(generator.get_state())
    for _ in range(most):
        numbers, left = words(walker.get_state())
        if torch.equal(numbers, wanted) and wanted_left <= left:
            generator.set_state(state)
            return True
        torch.empty(left, dtype=torch.float32).uniform_(generator=walker)
    return False


def describe(error: BaseException) -> tuple[str, str, str]:
    """Say of an exception in this process what a pupil may know."""
    return type(error).__name__, f"{error}"[:1000], ""


def clean(output: dict) -> dict:
    """Make an output of a pupil's one for a notebook: text and pictures, within
    limits.
    """
    kind, data = output["output_type"], output.get("data", {})
    if kind == "stream":
        return {
            "output_type": kind,
            "name": "stderr" if output["name"] == "stderr" else "stdout",
            "text": str(output["text"])[:200_000],
        }
    if kind == "error":
        return {
            "output_type": kind,
            "ename": str(output["ename"])[:100],
            "evalue": str(output["evalue"])[:2000],
            "traceback": [str(line)[:10_000] for line in output["traceback"][:50]],
        }
    if kind not in ("display_data", "execute_result"):
        raise TypeError("no output")
    shown = {
        key: str(data[key])[: 2**22]
        for key in ("text/plain", "image/png")
        if key in data
    }
    return {"output_type": "display_data", "data": shown, "metadata": {}}


def error_output(message: str, kind: str = "GradingError", trace: str = "") -> dict:
    """Make the output of a cell that failed for a reason outside its code."""
    lines = [line for line in (trace, f"{kind}: {message}") if line]
    return {
        "output_type": "error",
        "ename": kind,
        "evalue": message,
        "traceback": lines,
    }


def error_of(error: BaseException, where: str) -> dict:
    """Make the output of a test that failed."""
    if isinstance(error, AnswerError):
        return error_output(
            str(error).removeprefix(f"{error.kind}: "),
            error.kind,
            f"{where}\n{error.trace}".strip(),
        )
    if isinstance(error, BorderError):
        return error_output(str(error), "Stopped", where)
    return error_output(str(error)[:2000], type(error).__name__, where)


def reason_of(error: BaseException | None) -> str:
    """Say for the lecturer why a test failed; nothing if it did not."""
    if isinstance(error, AnswerError):
        return (
            "not answered"
            if error.kind == "NotImplementedError"
            else f"the answer raised {error}"[:2000]
        )
    return f"{type(error).__name__}: {error}"[:2000] if error else ""


def line_of(error: BaseException, cell: Cell, source: str) -> str:
    """Quote the line of a test in which it failed."""
    numbers = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == f"<{cell.name}>"
    ]
    lines = source.splitlines()
    return (
        f"in the line  {lines[numbers[0] - 1].strip()}"
        if numbers and numbers[0] <= len(lines)
        else ""
    )


def judge(
    cells: list[Cell], start: Callable[[], subprocess.Popen], limits: Limits
) -> Iterator[Outcome]:
    """Read a submission and execute it twice; give what is known of it, again and again
    as more is.
    """
    outcome, findings = Outcome(), {}
    given = [cell.source for cell in cells if cell.kind == "given"]
    for name, found in read_all(
        [cell for cell in cells if cell.kind in ("answer", "added")], given
    ).items():
        findings[name] = found.forbidden
        outcome.remarks += [f"cell {name}: {remark}" for remark in found.remarks]
    process, budget = None, Budget(limits.submission)
    for hidden in (False, True):
        sitting = Sitting(cells, start, limits, hidden, findings, process, budget)
        for cell, outputs, verdicts in sitting.run():
            if hidden and verdicts:
                outcome.verdicts[cell.name] = verdicts
            elif not hidden:
                outcome.outputs[cell.name] = outputs
                outcome.seen[cell.name] = verdicts
            if verdicts:
                yield outcome
        outcome.remarks += [
            remark for remark in sitting.remarks if remark not in outcome.remarks
        ]
        outcome.exhausted |= sitting.exhausted
        process = sitting.end(keeps=not hidden)
        yield outcome


def main(
    sender,
    cells: list[Cell],
    folder: str,
    start: Callable[[], subprocess.Popen],
    limits: Limits,
) -> None:
    """Judge a submission in a process of its own, and send what is known of it, again
    and again as more is.

    Args:
        sender: where it goes.
        cells: of the submission.
        folder: with the files that go with the assignment.
        start: see ``Sitting``.
        limits: of the processor.
    """
    for kind, amount in (
        (resource.RLIMIT_DATA, OWN_MEMORY),
        (resource.RLIMIT_CPU, OWN_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (amount, amount))
    torch.set_num_threads(1)
    os.environ["MPLBACKEND"] = "agg"
    sys.stdout = sys.stderr = io.StringIO()
    os.chdir(folder)
    sys.path.insert(0, folder)
    for outcome in judge(cells, start, limits):
        sender.send(outcome)
