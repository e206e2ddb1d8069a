"""How a fault is planted in a copy of the tree, and how it is told whether the tests
see it.
"""

import ast
import functools
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # of the processor, for the tests of one fault: many times what they take
IMPORTED = [
    "pytest",
    "torch",
    "torchvision",
    "scipy.stats",
    "nbformat",
    "jupytext",
]  # what the tests import and no fault is in


@dataclass(frozen=True)
class Fault:
    """A fault that an expert might make: a piece of a function, which is there once,
    and what is put in its place.
    """

    module: str  #: such as "sgmc.kernels.hmc"
    function: str  #: such as "HMC.step"
    what: str  #: a short sentence, by which the fault is known
    text: str  #: as ``ast.unparse`` writes the function
    instead: str
    #: which should see it: arguments of pytest with blanks between them, the cheap ones
    #: first
    tests: str

    @property
    def name(self) -> str:
        """Name the fault by its place and its sentence."""
        return f"{self.module}.{self.function}: {self.what}"

    @property
    def file(self) -> str:
        """Name the file in which it is."""
        return self.module.replace(".", "/") + ".py"

    def planted_in(self, source: str) -> str:
        """Plant it in the source of its module, whose comments go.

        Raises:
            ValueError: if there is no such function, or its text is not in it exactly
                once.
            SyntaxError: if what it makes of the function is no Python.
        """
        tree = ast.parse(source)
        body, places = tree.body, []
        for name in self.function.split("."):
            places = [
                (body, number)
                for number, node in enumerate(body)
                if getattr(node, "name", None) == name
            ]
            if not places:
                raise ValueError(
                    f"{self.name}: there is no such function; bring it up to date"
                )
            body = places[-1][0][places[-1][1]].body
        block, number = places[-1]
        right = ast.unparse(block[number])
        if (count := right.count(self.text)) != 1:
            raise ValueError(
                f"{self.name}: its text is there {count} times, not once; bring it up "
                "to date"
            )
        block[number : number + 1] = ast.parse(
            right.replace(self.text, self.instead)
        ).body
        return ast.unparse(tree)


def read_faults(path: Path) -> list[Fault]:
    """Read a list of faults, whose head says how it is written."""
    found, parts, module, tests, function, what = [], {}, "", "", "", ""
    for line in [*path.read_text().splitlines(), "@"]:
        if line[:2] in ("- ", "+ "):
            parts.setdefault(line[0], []).append(line[2:])
            continue
        if parts:
            found.append(
                Fault(
                    module,
                    function,
                    what,
                    "\n".join(parts["-"]),
                    "\n".join(parts.get("+", [])),
                    tests,
                )
            )
            parts = {}
        if line.startswith("@ "):
            module, tests = line[2:].split(" ", 1)
        elif line and line[0] not in "#@":
            function, what = line.split(": ", 1)
    return found


class Verdict(NamedTuple):
    """What became of a fault."""

    seen_by: str  #: the test that saw it; empty if none did
    seconds: float  #: on the wall


class NoVerdictError(RuntimeError):
    """Tests that cannot be run, or end without a verdict."""


def copy_tree(source: Path, target: Path) -> None:
    """Copy what git knows of a tree, and what is new there and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=source,
        capture_output=True,
        check=True,
    )
    for name in sorted(set(listed.stdout.decode().split("\0"))):
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)


def run_tests(tree: Path, tests: str, seconds: int | None = SECONDS) -> str:
    """Run tests, with blanks between them, in a tree until one fails, and name that
    one; an empty name if all passed.

    They run in a process of their own, forked from one that has imported what takes
    long, such as torch, but nothing of the tree. No verdict hangs on the clock on the
    wall: what computes for ever is ended by its limit of the processor's time, and so
    seen.

    Raises:
        NoVerdictError: if there are no such tests, or pytest itself was stopped.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_run_pytest, args=(tree, tests.split(), seconds, sender)
    )
    process.start()
    sender.close()
    try:
        status, failed, output = receiver.recv()
    except EOFError:
        process.join()
        return f"the end of its process, by signal {-process.exitcode}"
    process.join()
    if status == pytest.ExitCode.OK or failed:
        return failed
    raise NoVerdictError(f"pytest ended with {status!r}:\n{output}")


class _Failed:
    """A plugin of pytest that notes which test failed, or which file could not be
    imported.
    """

    name = ""

    def pytest_runtest_logreport(self, report) -> None:
        self.note(report)

    def pytest_collectreport(self, report) -> None:
        self.note(report)

    def note(self, report) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.partition("[")[0]


def _run_pytest(
    tree: Path, tests: list[str], seconds: int | None, sender: Connection
) -> None:
    sys.path[:] = [
        str(tree),
        *(path for path in sys.path if Path(path).resolve() != ROOT),
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # the tree has its own
    os.environ |= {
        "PYTHONPATH": str(tree),
        "OMP_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    os.chdir(tree)
    if seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
        # compiled code is told apart by seconds, of which two faults may share one
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
        failed = _Failed()
        status = pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:tools.executed", *tests],
            plugins=[failed],
        )
        sys.stdout.flush()
        output.seek(0)
        sender.send((status, failed.name, output.read()[-2000:]))


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """Plant a fault in a tree, and restore the file, its time included.

    Raises:
        ValueError: if the fault's text is not in its function exactly once.
        SyntaxError: if what it makes of a file of Python is none.
    """
    path = tree / fault.file
    right, times = path.read_text(), path.stat()
    wrong = fault.planted_in(right)
    path.write_text(wrong)
    try:
        yield
    finally:
        path.write_text(right)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def try_fault(fault: Fault, tree: Path) -> Verdict:
    """Plant a fault in a tree, and run its tests.

    Raises:
        NoVerdictError: if the tests cannot be run, or what failed fails without the
            fault too.
    """
    started = time.monotonic()
    with planted(fault, tree):
        seen_by = run_tests(tree, fault.tests)
    if seen_by and _fails(
        tree, seen_by if seen_by.partition("::")[0] in fault.tests else fault.tests
    ):
        raise NoVerdictError(f"{seen_by} fails without the fault too: mend that first")
    return Verdict(seen_by, time.monotonic() - started)


@functools.cache
def _fails(tree: Path, tests: str) -> bool:
    return bool(run_tests(tree, tests, seconds=None))
