"""Kernels as forks: what they know at their start, and when they end."""

import ast
import fcntl
import subprocess
import sys
import time

import pytest

from tools import book

NAMES = ["In", "Out", "exit", "get_ipython", "open", "quit"]
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
from tools import kernels

if __name__ == "__main__":
    kernels.fork()
    new = nbformat.v4.new_code_cell
    notebook = nbformat.v4.new_notebook(cells=[new(cell) for cell in {cells!r}])
    NotebookClient(notebook).execute()
    print([cell.outputs[0].text for cell in notebook.cells])
"""


def script(folder, *cells):
    path = folder / "execute.py"
    path.write_text(EXECUTE.format(cells=list(cells)))
    return [sys.executable, str(path)]


@pytest.mark.slow
def test_a_kernel_has_what_is_imported_and_else_what_any_kernel_has(tmp_path):
    imported = "import sys; print('torch' in sys.modules, 'sgmc' in sys.modules)"
    names = "print(sorted(name for name in dir() if name[0] != '_'))"
    place = "import os; print(os.getpid() == os.getsid(0), __name__)"
    tools = f"print({str(book.ROOT / 'tools')!r} in sys.path)"
    done = subprocess.run(
        script(tmp_path, names, imported, place, tools),
        cwd=book.ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = ast.literal_eval(done.stdout)
    assert ast.literal_eval(found[0]) == NAMES
    there = sys.platform == "linux"  # elsewhere nothing is imported before a fork
    assert found[1:] == [f"{there} False\n", "True __main__\n", "False\n"]


def held(file):
    """Whether another process has the lock of a file: one that has ended, reaped or
    not, has none.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


@pytest.mark.slow
def test_a_kernel_ends_when_its_process_is_killed(tmp_path):
    path = tmp_path / "lock"
    waits = (
        f"import fcntl, time; file = open({str(path)!r}, 'w'); "
        "fcntl.flock(file, fcntl.LOCK_EX); time.sleep(1e6)"
    )
    process = subprocess.Popen(script(tmp_path, waits), cwd=book.ROOT)
    with path.open("w") as file:
        while not held(file):
            assert process.poll() is None
            time.sleep(0.1)
        process.kill()
        process.wait()
        for _ in range(1_000):
            if not held(file):
                return
            time.sleep(0.1)
    pytest.fail("a hundred seconds later the kernel is still there")
