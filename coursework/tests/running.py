"""Score answers to an assignment as the judge does, but with a pupil that is forked and
not confined, which is fast.
"""

import contextlib
import functools
import hashlib
import importlib
import io
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

# here, like the next ones, so that the forked processes have them
import matplotlib.pyplot
import pytest
import scipy.stats  # noqa: F401
import torch

import booklib.page.figures  # noqa: F401
from coursework.engine import judge, pairs, pupil
from coursework.engine.clock import Clock

FOLDER = Path(__file__).resolve().parents[1]
STAMP = FOLDER / "tests" / "answers.sha256"
SECONDS = 600  # of the processor for one variant: what never comes to its end


def stamp():
    """Hash all that the verdicts on the planted answers rest on."""
    used = ("blocks", "clock", "codec", "judge", "pairs", "pupil")
    patterns = [f"engine/{name}.py" for name in used]
    patterns += ["assignments/assignment_*/*.py", "assignments/checks.py"]
    patterns += ["tests/test_assignment_*.py", "tests/running.py"]
    files = sorted(path for one in patterns for path in FOLDER.glob(one))
    return hashlib.sha256(b"".join(map(Path.read_bytes, files))).hexdigest()


def are_all_tried():
    """Tell whether all planted answers are tried, rather than a right one and a wrong
    one a task: where that is asked for, and where something has changed since they
    were.
    """
    return os.environ.get("ANSWERS") == "all" or stamp() != STAMP.read_text().strip()


def find(name):
    """Find an assignment by its name."""
    return next(item for item in pairs.assignments() if item.name == name)


@functools.cache
def cells_of(name):
    """Read the cells of an assignment."""
    return find(name).read().cells


def tests_of(name):
    """List an assignment's code tasks, each with the points of its test."""
    cells = cells_of(name)
    return {
        pairs.task_of(cell).removesuffix("-test"): cell.metadata.nbgrader.points
        for cell in cells
        if cell.cell_type == "code" and cell.metadata.nbgrader.grade
    }


@functools.cache
def on_long_lines(source):
    """Format a cell as the tests are, so that a replacement need not know where the
    page breaks the line.
    """
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--line-length=140",
        "--config=format.skip-magic-trailing-comma=true",
        "-",
    ]
    return subprocess.run(
        command, input=source, capture_output=True, text=True, check=True
    ).stdout.rstrip("\n")


def replaced(source, answer):
    """Change a cell's source: by a whole new one, or by replacements, each of which
    must find its place.
    """
    if isinstance(answer, str):
        return answer
    source = on_long_lines(source)
    for old, new in answer.items():
        assert old in source, f"there is no {old!r} in the solution:\n{source}"
        source = source.replace(old, new)
    return source


def empty(name):
    """Make the answers of a student who hands in what was handed out: the stub in place
    of every solution.
    """
    solution = re.compile(
        r"^( *)### BEGIN SOLUTION$.*?^ *### END SOLUTION$", re.M | re.S
    )
    stub = r"\1# YOUR CODE HERE\n\1raise NotImplementedError()"
    answers = {}
    for cell in cells_of(name):
        if cell.cell_type == "code" and cell.metadata.nbgrader.solution:
            answers[pairs.task_of(cell)] = solution.sub(stub, cell.source)
    return answers


class Result(NamedTuple):
    """What became of a task: its points, and why each block of its test that failed did
    so.
    """

    points: float
    errors: list[str]


def execution(name, answers, tasks):
    """Execute an assignment with some of its answers replaced, as far as the last test
    of ``tasks``.

    Tests of other tasks, and cells with the tag ``experiment``, are left out.

    Returns:
        For each of the tasks its ``Result``, and the number of statistical checks that
        were made.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_execute, args=(sender, find(name), cells_of(name), answers, set(tasks))
    )
    process.start()
    sender.close()
    clock = Clock(process.pid)
    try:
        while not receiver.poll(0.1):
            if clock.processor() > SECONDS:
                return dict.fromkeys(
                    tasks, Result(0, [f"took more than {SECONDS} seconds"])
                ), 0
        return receiver.recv()
    except EOFError:
        return dict.fromkeys(tasks, Result(0, ["the process died"])), 0
    finally:
        process.kill()
        process.join()


class ForkedPupil:
    """A pupil's process as the judge knows it, but not confined, and forked, because
    that is fast.
    """

    def __init__(self, bare=False):
        self.border, beyond = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            self.border.close()
            # as bubblewrap is, a process stands between the pupil and the judge
            if inner := os.fork():
                os.waitpid(inner, 0)
                os._exit(0)
            pupil.serve(beyond)
        beyond.close()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        os.waitpid(self.pid, 0)


def _execute(sender, item, cells, answers, tasks):
    torch.set_num_threads(1)
    matplotlib.use("agg")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        for path in item.files():
            os.symlink(path, Path(folder) / path.name)
        os.chdir(folder)
        sys.path.insert(0, folder)
        checks = importlib.import_module("checks")
        # where every statistical check ends
        checks.assert_chance = mock.Mock(wraps=checks.assert_chance)
        submitted = [
            cell._replace(
                source=replaced(cell.source, answers[cell.name])
                if cell.name in answers
                else cell.source
            )
            for cell in judge.read_cells(cells, cells)
            if cell.kind != "test" or cell.name.removesuffix("-test") in tasks
        ]
        sitting = judge.Sitting(
            submitted, ForkedPupil, judge.Limits(cell=SECONDS), hidden=True
        )
        outcome = {}
        for cell, _, verdicts in sitting.run():
            if cell.kind == "test":
                errors = [
                    f"{verdict.error} ({verdict.block.sentence})"
                    for verdict in verdicts
                    if verdict.error
                ]
                outcome[cell.name.removesuffix("-test")] = Result(
                    sum(verdict.points for verdict in verdicts), errors
                )
        sitting.end()
        os.chdir("/")
    sender.send((outcome, checks.assert_chance.call_count))
    sender.close()


def run_all_cells(name, task, answer):
    """Execute the setup, an answer to a task and its whole test, as a notebook does;
    give the last line of what went wrong.
    """
    cells = {
        pairs.task_of(cell): cell.source
        for cell in cells_of(name)
        if pairs.task_of(cell)
    }
    source = "\n".join(
        [cells["setup"], replaced(cells[task], answer), cells[f"{task}-test"]]
    )
    command = [
        sys.executable,
        "-c",
        f"import matplotlib\nmatplotlib.use('agg')\n{source}",
    ]
    result = subprocess.run(
        command, cwd=find(name).source.parent, capture_output=True, text=True
    )
    return result.stderr.strip().rpartition("\n")[2]


def answers_score(name, wrong, right):
    """Make the test of an assignment's planted answers.

    Args:
        name: the assignment.
        wrong: for every code task at least three answers. Each must score zero on it,
            or, as a pair of an answer and points, these points.
        right: for every code task at least one other answer than the model's, each of
            which must score in full.
    """
    cases = [("model solution", None, None), ("nothing", None, None)]
    if not are_all_tried():
        wrong, right = (
            {task: dict([next(iter(answers.items()))]) for task, answers in one.items()}
            for one in (wrong, right)
        )
    cases += [(f"{task} alone", task, None) for task in right if are_all_tried()]
    cases += [
        (f"{task}: {title}", task, answer)
        for task in wrong
        for title, answer in wrong[task].items()
    ]
    cases += [
        (f"{task}, also right: {title}", task, answer)
        for task in right
        for title, answer in right[task].items()
    ]

    @pytest.mark.parametrize(
        ("title", "task", "answer"), cases, ids=[case[0] for case in cases]
    )
    def test_answers_score(title, task, answer):
        worth = tests_of(name)
        if title == "model solution":
            found, statistical_checks = execution(name, {}, list(worth))
            assert found == {task: Result(points, []) for task, points in worth.items()}
            assert statistical_checks <= 15, (
                "each has a false-alarm rate of 5e-6, and all together must stay "
                "below 1e-4"
            )
        elif title == "nothing":
            found, _ = execution(name, empty(name), list(worth))
            assert {
                task: result.points for task, result in found.items()
            } == dict.fromkeys(worth, 0), "an empty submission passes"
        # the other tasks unanswered: a mistake costs no other task's points
        elif title == f"{task} alone":
            others = {
                other: stub for other, stub in empty(name).items() if other != task
            }
            assert execution(name, others, [task])[0][task] == Result(worth[task], [])
        elif title.startswith(f"{task}, also right"):
            assert execution(name, {task: answer}, [task])[0][task] == Result(
                worth[task], []
            )
        else:
            answer, points = answer if isinstance(answer, tuple) else (answer, 0)
            result = execution(name, {task: answer}, [task])[0][task]
            assert result.points == points < worth[task], (
                f"a wrong answer has {result.points} points\n"
                + "\n".join(result.errors)
            )
            kinds = {error.split(":")[0] for error in result.errors}
            assert kinds == {"AssertionError"}, (
                "the wrong answer fails, but not for being wrong:\n"
                + "\n".join(result.errors)
            )

    return test_answers_score


def planted_enough(name, wrong, right):
    """Make the test that every code task has enough planted answers, and that the
    points add up.
    """

    def test_planted_enough():
        tasks = tests_of(name)
        assert set(wrong) == set(right) == set(tasks)
        assert {
            task: len(answers) for task, answers in wrong.items() if len(answers) < 3
        } == {}
        assert {task for task, answers in right.items() if not answers} == set()
        cells = [
            cell.metadata.nbgrader
            for cell in cells_of(name)
            if cell.metadata.get("nbgrader", {}).get("grade")
        ]
        assert sum(cell.points for cell in cells) == 100

    return test_planted_enough


if __name__ == "__main__":  # after all planted answers were tried
    STAMP.write_text(f"{stamp()}\n")
