"""Judge one submission: its cells run in a pupil's process, all tests in this one,
which nothing but values reaches.

A submission is executed twice, each time by a new pupil. The first time only visible
tests run; feedback shows the outputs of that time, so no hidden test can be in it. The
second time all tests run; only points, and for the lecturer why they are missing, are
taken from it."""

import ast
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
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from torch import Generator, Tensor

from coursework.engine.bans import questions
from coursework.engine.blocks import Block, blocks, visible
from coursework.engine.clock import Clock
from coursework.engine.codec import WORDS, AnswerError, BorderError, Link, Remote
from coursework.engine.pairs import task_of

MEMORY, PROCESSES = 3 * 2**30, 64  # bytes and number of all processes of a pupil
RESERVE = 2**30  # bytes that must stay available on this machine
OUTPUTS = 2**23  # characters of all outputs of one execution
REMARKS, LONGEST = 50, 300  # number and characters of remarks
ENDED = "ended its process, as a crash or an exit does, or disturbed it"
LONG, SLEPT = "took too long, as an endless loop does", "slept for too long"
LARGE = "took too much memory: it kept things until memory was full"
CUT = "printed too much, and was cut: its other results count"
ENDLESS = "printed without end, and was stopped: ask for a loop that ends"
AGAIN, TWICE = "it was not run again, because it had taken too long twice", 2
SPENT = "the submission used up its time"
FULL = "this machine has too little memory left"
DEATHS = 30  # of pupils in one execution of a submission
OWN_MEMORY, OWN_SECONDS = 2 * 2**30, 1800  # of the judge itself
VALUES = bool | int | float | complex | str | list | tuple | dict | types.FunctionType
VALUES |= types.NoneType | Tensor | np.ndarray | np.generic | Generator


class EnvironmentFault(RuntimeError):
    """Something is wrong with this machine, which is nobody's fault but ours."""


class Cell(NamedTuple):
    """A code cell of a submission."""

    kind: str  #: "given", "answer", "added" or "test"
    name: str
    source: str
    points: float = 0.0
    names: tuple[str, ...] = ()  #: what the instructor's answer defines
    forbidden: tuple[str, ...] = ()  #: words that its task rules out
    experiment: bool = False  #: marked by hand, and of no use to any test


def read_cells(submitted: list, instructors: list) -> list[Cell]:
    """Read the code cells of a submission that was put into the instructor's notebook;
    what an answer should be is the instructor's to say.
    """
    known = {task_of(cell): cell for cell in instructors if task_of(cell)}
    found = []
    for number, cell in enumerate(submitted):
        own = known.get(task_of(cell))
        if cell.cell_type == "code" and own is None:
            found.append(Cell("added", f"{number + 1}", cell.source))
        elif cell.cell_type == "code":
            settings, metadata = own.metadata.nbgrader, own.metadata
            kind = "answer" if settings.solution else "given"
            kind = "test" if settings.grade else kind
            names = tuple(defined(own.source)) if kind == "answer" else ()
            forbidden = tuple(metadata.get("forbidden", ()))
            experiment = "experiment" in metadata.get("tags", ())
            rest = settings.get("points", 0.0), names, forbidden, experiment
            found.append(Cell(kind, task_of(cell), cell.source, *rest))
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
            parts = (one for target in node.targets for one in ast.walk(target))
            names += [one.id for one in parts if isinstance(one, ast.Name)]
    return names


class Verdict(NamedTuple):
    """What became of a part of a test cell."""

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
    fault: str = ""  #: what is wrong with this machine; then nothing must be entered


class Limits(NamedTuple):
    """Seconds of the processor: of every cell and every part of a test, of all cells
    that a student added, and of all there is.
    """

    cell: float = 60
    added: float = 300
    submission: float = 900


class Budget:
    """What is left to a submission: seconds of the processor, and four times as many on
    the wall, because what sleeps must end too; and how often its answers took too long.
    """

    def __init__(self, seconds: float):
        self.left, self.end = seconds, time.monotonic() + 4 * seconds
        self.slow: Counter[str] = Counter()  # by the answers' names

    def is_spent(self) -> bool:
        """Tell whether nothing is left."""
        return self.left <= 0 or time.monotonic() > self.end


class Pupil:
    """A process that executes a student's cells, watched."""

    def __init__(self, process: subprocess.Popen, link: Link, budget: Budget):
        self.process, self.link, self.budget = process, link, budget
        self.clock, self.seconds = Clock(process.pid), 60.0
        self.why, self.ended = "", False
        self.available = psutil.virtual_memory().available
        self.processes = PROCESSES  # how many it has of itself
        threading.Thread(target=self._watch, daemon=True).start()

    def within(self, seconds: float) -> None:
        """Begin something that may take so long."""
        self.clock, self.seconds = Clock(self.process.pid), seconds

    def kill(self) -> None:
        """Kill it, with all processes that it started.

        An unconfined one that hides may still hold its end of the border, so that is
        closed here."""
        with suppress(psutil.Error):
            for one in psutil.Process(self.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    one.kill()
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        with suppress(OSError):
            self.process.border.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Do without it from now on."""
        self.ended = True
        self.kill()
        self.process.wait()

    def _watch(self) -> None:
        whole, spent = Clock(self.process.pid), 0.0
        while not self.why:
            time.sleep(0.2)
            before, spent = spent, max(spent, whole.processor())
            self.budget.left -= spent - before
            clock = self.clock
            if self.ended:
                return
            if self.budget.is_spent():
                self.why = SPENT
            elif clock.seconds() > self.seconds:
                slept = clock.processor() < clock.wall() / 100
                self.why = SLEPT if slept else LONG
            elif clock.has_ended():
                self.why = ENDED
            elif clock.processes() > PROCESSES:
                self.why = "started too many processes"
            elif clock.memory() > MEMORY:
                self.why = LARGE
            elif (left := psutil.virtual_memory().available) < RESERVE:
                # what no process owns, such as files in memory, is gone all the same
                self.why = LARGE if self.available - left > MEMORY else FULL
        self.kill()


class Sitting:
    """One execution of a submission.

    Args:
        cells: its cells.
        start: starts a pupil's process, with the judge's end of a socket as its
            ``border``.
        limits: for the processor.
        hidden: whether hidden tests are run, rather than the visible ones alone.
        budget: what is left to the submission.
    """

    def __init__(
        self,
        cells: list[Cell],
        start: Callable[[], subprocess.Popen],
        limits: Limits,
        hidden: bool,
        budget: Budget | None = None,
    ):
        self.cells, self.start, self.limits, self.hidden = cells, start, limits, hidden
        self.budget, self.room = budget or Budget(limits.submission), OUTPUTS
        self.pupil: Pupil | None = None
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.answers: list[str] = []  # names that the answers so far should define
        self.scope: dict[str, Any] = {}  # of the test that runs
        self.made: dict[int, tuple] = {}
        self.done: list[Cell] = []  # which a new pupil must execute again
        self.faults: list[str] = []  # what fails a test whatever its values
        self.answer: Cell | None = None  # the last one
        self.asked = False  # whether this pupil's functions were called by a test
        self.deaths, self.added = 0, limits.added
        self.remarks: list[str] = []
        self.exhausted = False

    def run(self) -> Iterator[tuple[Cell, list[dict], list[Verdict]]]:
        """Execute the cells; give for each its outputs, and for a test its verdicts."""
        tests = [k for k, cell in enumerate(self.cells) if cell.kind == "test"]
        last = max(tests, default=-1)
        for number, cell in enumerate(self.cells):
            if cell.kind == "test":
                yield cell, *self.test(cell)
            elif not self.hidden or (number < last and not cell.experiment):
                yield cell, self.execute(cell), []

    def end(self) -> None:
        """Let the pupil go."""
        if self.pupil:
            self.pupil.end()

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
            why = "not executed, because the cells that were added took too long"
            return [error_output(why)]
        return self.execute_by_pupil(cell)

    def execute_by_pupil(self, cell: Cell) -> list[dict]:
        """Have the pupil execute a cell."""
        added, pupil = cell.kind == "added", None
        seconds = min(self.limits.cell, self.added) if added else self.limits.cell
        try:
            pupil = self.present(seconds)
            result = pupil.link.call("execute", cell.source, cell.kind == "given")
            outputs = [shown(kind, text) for kind, text in result["outputs"][:200]]
            error = [str(one)[:10_000] for one in result["error"][:3]]
            full = result["full"]
            if error:
                outputs.append(error_output(*error[1::-1], error[2]))
        except ValueError as refused:  # of what is sent, which the pupil has not seen
            return [error_output(f"not executed: {refused}")]
        except (BorderError, AnswerError, LookupError, TypeError) as raised:
            if self.asked and pupil and pupil.why in ("", ENDED):
                # what a test's calls left behind, such as a second answer on its way
                # from a fork, is not this cell's doing
                self.bury("what stayed behind of earlier cells", raised)
                return self.execute_by_pupil(cell)
            why = self.bury(f"cell {cell.name}", raised)
            self.spend(cell, self.added)
            return [error_output(f"stopped: {why}")]
        self.done.append(cell)
        self.room -= len(str(outputs))
        if self.room < 0:
            outputs = []
            self.remark("its cells put out too much: the last outputs are left out")
        if full:
            outputs.append(shown("stderr", "… cut: this cell put out too much"))
            is_endless = error and error[0] == "EndlessOutput"
            self.remark(f"cell {cell.name} {ENDLESS if is_endless else CUT}")
        if error and cell.kind == "answer" and not cell.experiment:
            self.remark(f"cell {cell.name} ended with {error[0]}")
        self.spend(cell, pupil.clock.seconds())
        return outputs

    def spend(self, cell: Cell, seconds: float) -> None:
        """Take seconds from those of the cells that the student added."""
        self.added -= seconds if cell.kind == "added" else 0.0
        if cell.kind == "added" and self.added <= 0:
            why = "the cells that were added took too long"
            self.remark(f"{why}: those after {cell.name} were not executed")

    def execute_given(self, cell: Cell) -> None:
        """Execute a given cell here; remember of the objects that its functions will
        make how they were made.
        """
        exec(compile(cell.source, f"<{cell.name}>", "exec"), self.namespace)
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef):
                function = self.namespace[node.name]
                self.namespace[node.name] = self.remembering(node.name, function)

    def remembering(self, name: str, function: Callable) -> Callable:
        """Make of a given function one whose results a pupil can make again."""

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
                pupil = self.pupil
                if pupil and pupil.clock.processes() > pupil.processes:
                    raise BorderError(ENDED)  # a fork answers too
                if pupil is None:
                    pupil = self.begin()
                pupil.within(seconds)
                pupil.link.call("forget")  # nothing else is on its way
                return pupil
            except (BorderError, AnswerError) as error:
                if self.deaths > DEATHS:
                    raise BorderError("its processes ended too often") from None
                self.bury("what stayed behind of earlier cells", error)

    def begin(self) -> Pupil:
        """Start a pupil, and have it execute the cells so far."""
        process, self.asked = self.start(), False
        stream = process.border.makefile("rwb")
        link = Link(stream, admit=self.admit, made=self.recipe, describe=describe)
        self.pupil = Pupil(process, link, self.budget)
        try:
            link.call("forget")
        except (BorderError, AnswerError):  # nothing of the student's has run in it
            if (why := self.pupil.why or ENDED) == SPENT:
                raise
            raise EnvironmentFault(f"Python did not start: {why}") from None
        for cell in list(self.done):
            try:
                self.pupil.within(self.limits.cell)
                link.call("execute", cell.source, cell.kind == "given")
            except (BorderError, AnswerError):
                self.done.remove(cell)
                raise
        self.pupil.processes = self.pupil.clock.processes()
        return self.pupil

    def bury(self, where: str, error: Exception) -> str:
        """Do away with a pupil that is of no use any more; say why."""
        why = str(error)
        if self.pupil:
            why = self.pupil.why or ENDED
            self.pupil.end()
            self.pupil, self.deaths = None, self.deaths + 1
        if why == FULL:
            raise EnvironmentFault(FULL)
        self.exhausted = self.exhausted or why == SPENT or why.startswith("took")
        spent = f"not all cells were executed, because {SPENT}"
        self.remark(spent if why == SPENT else f"{where} {why}")
        return why

    def remark(self, text: str) -> None:
        """Note what the lecturer should know, once."""
        if text not in self.remarks and len(self.remarks) < REMARKS:
            self.remarks.append(text[:LONGEST])

    # The tests

    def test(self, cell: Cell) -> tuple[list[dict], list[Verdict]]:
        """Run a test cell, part by part."""
        outputs, verdicts = [], []
        name = self.answer.name if self.answer else ""
        for block in blocks(cell.source, cell.points):
            source = block.source if self.hidden else visible(block.source)
            self.faults, printed = [], io.StringIO()
            error, where = None, ""
            if self.budget.slow[name] >= TWICE:
                self.remark(f"the answer tested in {cell.name}: {AGAIN}")
                outputs.append(error_output(AGAIN))
                verdicts.append(Verdict(block, 0.0, AGAIN))
                continue
            try:
                with redirect_stdout(printed), redirect_stderr(printed):
                    self.run_block(source, cell)
            except EnvironmentFault:
                raise
            except BaseException as raised:
                error, where = raised, line_of(raised, cell, source)
            if isinstance(error, BorderError) or (self.pupil and self.pupil.why):
                why = self.bury(f"cell {cell.name}", error)
                error = BorderError(why)
                self.budget.slow[name] += why in (LONG, SLEPT)
            for fault in self.faults:
                self.remark(f"the answer tested in {cell.name}: {fault}")
                error, where = AssertionError(fault), ""
            if printed.getvalue():
                outputs.append(shown("stdout", printed.getvalue()[:10_000]))
            outputs += [error_of(error, where)] if error else []
            points = 0.0 if error else block.points
            verdicts.append(Verdict(block, points, reason_of(error)))
        return outputs, verdicts

    def run_block(self, source: str, cell: Cell) -> None:
        """Run a part of a test, which sees what was given, and what the student made
        of the names that were to be defined.
        """
        pupil = self.present(self.limits.cell)
        pupil.link.forget()
        found = pupil.link.call("look_up", self.answers)
        for name in self.answers:
            self.namespace.pop(name, None)
        for name in set(self.answers) & set(found):
            value = found[name]
            call = functools.partial(self.ask, name)
            self.namespace[name] = call if isinstance(value, Remote) else value
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
        self.asked = True
        call = self.pupil.link.call
        return call("answer", name, list(arguments), named, replaced)

    def admit(self, generator: Generator, state: Tensor) -> None:
        """Let a generator go on to the state in which it came back, if draws lead
        there.
        """
        # to look once is enough, and takes long in vain
        if not self.faults and not reached(generator, state):
            self.faults.append("it sets a generator back, or to a state of its own")


def reached(generator: Generator, state: Tensor, most: int = 50_000) -> bool:
    """Let a generator draw until it is in a state; tell whether it gets there.

    The state of a Mersenne Twister is 624 numbers, which change all at once whenever
    all of them were given out, and how many are left."""

    def words(one: Tensor) -> tuple[Tensor, int]:
        return one[24:5016], int(one[8:12].view(torch.int32))

    if len(state) != WORDS:
        return False
    wanted, wanted_left = words(state)
    walker = Generator()
    walker.set_state(generator.get_state())
    for _ in range(most):
        numbers, left = words(walker.get_state())
        is_there = torch.equal(numbers, wanted) and 0 < wanted_left <= left
        count = left - wanted_left if is_there else left
        torch.empty(count, dtype=torch.float32).uniform_(generator=walker)
        if is_there:
            generator.set_state(walker.get_state())
            return True
    return False


def describe(error: BaseException) -> tuple[str, str, str]:
    """Say of an exception in this process what a pupil may know."""
    return type(error).__name__, f"{error}"[:1000], ""


def shown(kind: str, content: str) -> dict:
    """Make an output of a notebook of a text or a picture of the pupil's."""
    content = str(content)[: 2**22]
    if kind in ("stdout", "stderr"):
        return {"output_type": "stream", "name": kind, "text": content}
    data = {"image/png" if kind == "image" else "text/plain": content}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def error_output(message: str, kind: str = "Not graded", trace: str = "") -> dict:
    """Make the output of a cell that failed."""
    lines = [trace or f"{kind}: {message}"]
    error = {"ename": kind, "evalue": message, "traceback": lines}
    return {"output_type": "error", **error}


def error_of(error: BaseException, where: str) -> dict:
    """Make the output of a test that failed."""
    message, kind, trace = str(error)[:2000], type(error).__name__, where
    if isinstance(error, AnswerError):
        message, kind = message.removeprefix(f"{error.kind}: "), error.kind
        trace = f"{where}\n{error.trace}".strip()
    elif isinstance(error, BorderError):
        kind = "Stopped"
    return error_output(message, kind, f"{trace}\n{kind}: {message}".strip())


def reason_of(error: BaseException | None) -> str:
    """Say for the lecturer why a test failed; nothing if it did not."""
    if isinstance(error, AnswerError):
        if error.kind == "NotImplementedError":
            return "not answered"
        return f"the answer raised {error}"[:2000]
    kind = "stopped" if isinstance(error, BorderError) else type(error).__name__
    return f"{kind}: {error}"[:2000] if error else ""


def line_of(error: BaseException, cell: Cell, source: str) -> str:
    """Quote the line of a test in which it failed."""
    lines = source.splitlines()
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == f"<{cell.name}>" and frame.lineno <= len(lines):
            return f"in the line  {lines[frame.lineno - 1].strip()}"
    return ""


def asked_about(cells: list[Cell]) -> list[str]:
    """Say which answers and added cells a lecturer should ask about, and what."""
    ruled_out = {word for cell in cells for word in cell.forbidden}
    remarks = []
    for cell in cells:
        own = cell.kind == "answer" and not cell.experiment
        words = cell.forbidden if own else ruled_out if cell.kind == "added" else ()
        if found := questions(cell.source, words):
            what = "the answer to" if own else "the added cell"
            names = f"{what} {cell.name} has {', '.join(found)}: ask what for"
            remarks.append(names[:LONGEST])
    return remarks[:REMARKS]


def judge(
    cells: list[Cell], start: Callable[[bool], subprocess.Popen], limits: Limits
) -> Iterator[Outcome]:
    """Read a submission and execute it twice; give what is known of it, again and again
    as more is.
    """
    outcome, budget = Outcome(), Budget(limits.submission)
    outcome.remarks += asked_about(cells)
    ruled_out = any(cell.forbidden for cell in cells)
    for hidden in (False, True):
        begin = functools.partial(start, hidden and ruled_out)
        sitting = Sitting(cells, begin, limits, hidden, budget)
        try:
            for cell, outputs, verdicts in sitting.run():
                if hidden and verdicts:
                    outcome.verdicts[cell.name] = verdicts
                elif not hidden:
                    outcome.outputs[cell.name] = outputs
                    outcome.seen[cell.name] = verdicts
                if verdicts:
                    yield outcome
        except EnvironmentFault as error:
            # a neighbour's doing, perhaps: it is judged again, alone
            outcome.fault, outcome.exhausted = f"{error}", True
        finally:
            sitting.end()
        outcome.remarks = [*dict.fromkeys(outcome.remarks + sitting.remarks)]
        outcome.exhausted |= sitting.exhausted
        yield outcome
        if outcome.fault:
            return


def main(
    sender,
    cells: list[Cell],
    folder: str,
    start: Callable[[bool], subprocess.Popen],
    limits: Limits,
) -> None:
    """Judge a submission in a process of its own, and send what is known of it, again
    and again as more is.

    Args:
        sender: where it goes.
        cells: of the submission.
        folder: with the files that go with the assignment.
        start: starts a pupil's process, without ``sgmc`` if it is told so.
        limits: of the processor.
    """
    own = {resource.RLIMIT_DATA: OWN_MEMORY, resource.RLIMIT_CPU: OWN_SECONDS}
    for kind, amount in {**own, resource.RLIMIT_CORE: 0}.items():
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (amount, amount))
    torch.set_num_threads(1)
    os.environ["MPLBACKEND"] = "agg"
    sys.stdout = sys.stderr = io.StringIO()
    os.chdir(folder)
    sys.path.insert(0, folder)
    for outcome in judge(cells, start, limits):
        sender.send(outcome)
