"""Planted submissions to the small course: clumsy ones, and cheats, of somebody who would
rather have points than answers.

The first cheats are those that scored when the coursework was reviewed, the others were
invented since."""

import nbformat

from coursework.tests.small import (
    SECONDS,
    answered,
    cheated,
    doubled,
    extended,
    helped,
    without,
)


def looping(body):
    return (
        f"while True:\n    try:\n        while True:\n            {body}\n    except "
        "BaseException:\n        pass"
    )


def answers(double="return 2 * x", **others):
    return lambda course: answered(course, double=double, **others)


def untouched(course):
    path = course / "student" / "assignment_1" / "small.ipynb"
    return nbformat.read(path, 4)


def longer(source, number=1):
    return lambda course: extended(answered(course), source, number)


PRINTS = "for _ in range(100):\n    print('x' * 10**6)\nreturn 2 * x"
PIECES = "held = []\nwhile True:\n    held.append(b'x' * 10**8)"
SLEEPS = f"import time\ntime.sleep({SECONDS})\nreturn 2 * x"
MUCH = "import torch\nreturn torch.ones(10**9, 10)"
TESTS = ("double-test", "triple-test")
SUBMISSIONS = {
    # student: (what is handed in, points of double, points of triple, a word of each remark)
    "right": (answered, 5, 7, []),
    "nothing": (untouched, 0, 0, []),
    "half": (answers(triple="return 4 * x"), 5, 0, []),
    "loops for ever": (answers("while True:\n    pass"), 0, 7, ["took too long"]),
    "doubles ids": (lambda course: doubled(answered(course)), 5, 7, ["more than once"]),
    "Zoë, renamed": (answered, 5, 7, ["is called"]),
}  # fmt: skip
ALONE = {  # what concerns the judge alone
    "right where one sees": (answers(triple="return 3"), 5, 0, []),
    "loops and will not be stopped": (answers(triple=looping("pass")), 5, 0, ["triple-test took too long"]),
    "crashes": (answers("import os\nos.abort()"), 0, 7, ["double-test ended"]),
    "says exit": (answers("raise SystemExit"), 0, 7, []),
    "prints a lot": (answers(PRINTS), 5, 7, []),
    "prints in a cell": (longer("print('x' * 10**7)"), 5, 7, ["printed too much"]),
    "prints in a loop": (longer("while True:\n    print('x' * 100)"), 5, 7, ["printed without end, and was stopped"]),
    "loops and prints": (answers("while True:\n    print(x)"), 0, 7, ["double-test took too long"]),
    "displays in a cell": (longer("'x' * 10**7"), 5, 7, ["printed too much"]),
    "gives a long reason": (answers("raise ValueError('x' * 10**7)"), 0, 7, []),
    "sleeps": (answers(SLEEPS), 5, 7, []),
    "adds many cells": (longer("1 + 1", 120), 5, 7, []),
    "looks whether it goes first": (answers("return (2 * x) * (int(open('/proc/self/oom_score_adj').read()) == 1000)"), 5, 7, []),
    "wants all memory": (answers("return [0] * 10**11"), 0, 7, []),
    "takes memory in pieces": (answers(PIECES), 0, 7, ["double-test took too much memory"]),
    "gives back too much": (answers(MUCH), 0, 7, []),
    "deletes an answer": (lambda course: without(answered(course), "double"), 0, 7, ["double is missing"]),
    "deletes the tests": (lambda course: without(answered(course), *TESTS), 5, 7, ["double-test is missing", "triple-test is missing"]),
    "changes the tests": (lambda course: cheated(answered(course, double="return 0")), 0, 7, ["double-test was changed"]),
    "adds a helper, with a warning": (lambda course: helped(answered(course, double="return helper(x)")), 5, 7, []),
    "calls a variable like a check": (longer("check = double_ = 3"), 5, 7, []),
}  # fmt: skip


REBOUND = """def check(value, expected):
    pass
import checks
for name in dir(checks):
    if name.startswith("assert"):
        setattr(checks, name, lambda *a, **k: None)
"""
TRANSFORMER = """import ast
class Empty(ast.NodeTransformer):
    def visit_Module(self, node):
        node.body = []
        return node
get_ipython().ast_transformers.append(Empty())
"""
DETACHED = """import os, subprocess, sys
code = '''
import glob, os, sqlite3, time
for _ in range(600):
    for path in glob.glob("/proc/*/cmdline") + glob.glob("/tmp/**/gradebook.db", recursive=True) + glob.glob("/**/gradebook.db"):
        if path.endswith(".db"):
            sqlite3.connect(path).execute("update grade set manual_score = 100")
    time.sleep(1)  # MARK
'''.replace("MARK", "outlives-its-notebook")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])
    os._exit(0)
"""
NEIGHBOURS = """import os
def seen():
    found = []
    for top, folders, files in os.walk("/"):
        if top.startswith(("/proc", "/sys", "/usr", "/dev")) or "site-packages" in top or "/lib/python" in top:
            folders[:] = []
        found += [os.path.join(top, name) for name in files if name.endswith((".ipynb", ".db")) or "assignment" in name or "Makefile" in name]
    return found
print("SEEN", seen(), sorted(name for name in os.listdir("/proc") if name.isdigit() and int(name) > 99))
"""
LEFT = """import os
seen = os.path.exists("/tmp/left")
open("/tmp/left", "w").close()
"""
NETWORK = """import socket
def reaches():
    for address in (("1.1.1.1", 53), ("127.0.0.1", 22), ("8.8.8.8", 443)):
        try:
            socket.create_connection(address, timeout=0.3)
            return True
        except OSError as error:
            if "refused" in str(error) and address[0] != "127.0.0.1":
                return True
    return False
print("NETWORK", reaches())
"""
LIAR = """import torch
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True
    def __eq__(self, other):
        return True
    def __bool__(self):
        return True
    __hash__ = None
class Agrees:
    def __eq__(self, other): return True
    def __array__(self, *a, **k): return [0]
    def __float__(self): return 0.0
"""
FORGED = """import json, os, struct
def forge():
    message = json.dumps({"value": {"dict": {"value": int("83851"[::-1]), "used": {"list": []}}}, "generators": [], "sizes": []}).encode()
    for number in range(3, 40):
        try:
            os.write(number, struct.pack(">Q", len(message)) + message)
        except OSError:
            pass
"""
LINK = """import gc
from coursework.engine.codec import Link, Remote
def others():
    link = next(one for one in gc.get_objects() if isinstance(one, Link))
    found = []
    for name in ("execute", "look_up", "eval", "system", 0, 1, 2, -1):
        try:
            found.append(repr(link.call(name, "7")))
        except BaseException as error:
            found.append(repr(error))
    return found
"""
KEEPS = "kept = []\ndef keep(x):\n    kept.append(x)\n    return 2 * x"
PATCHED = """import torch, builtins
torch.Tensor.any = lambda *a, **k: torch.tensor(False)
torch.Tensor.__ge__ = lambda *a: False
builtins.abs = lambda x: 0
"""
TRACE = """import sys, traceback
def hook(*arguments):
    pass
sys.excepthook = hook
get_ipython()._showtraceback = hook
get_ipython().showtraceback = hook
"""


def added(source, double="return 0", triple="return 3 * x"):
    return lambda course: extended(
        answered(course, double=double, triple=triple), source, 1
    )


def answer(double):
    return lambda course: answered(course, double=double)


def tail(source, **answers):
    """Add a cell behind all others."""

    def make(course):
        notebook = answered(course, **answers)
        notebook.cells.append(nbformat.v4.new_code_cell(source))
        return notebook

    return make


CHEATS = {
    # of the review
    "writes the gradebook": (added(DETACHED), 0, 7, []),
    "rebinds the checks": (added(REBOUND), 0, 7, []),
    "empties the cells": (added(TRANSFORMER, triple="return 0"), 0, 0, []),
    "executes the source of the tests": (
        answer("import os, pathlib\nfor path in pathlib.Path(os.environ.get('PYTHONPATH', '/')).rglob('*.py'):\n    exec(path.read_text())"),
        0,
        7,
        [],
    ),
    "kills what executes it": (answer("import os\nos.kill(os.getppid(), 9)\nos.kill(1, 9)\nos._exit(0)"), 0, 7, ["ended its process"]),
    "leaves": (answer("import os\nos._exit(0)"), 0, 7, ["ended its process"]),
    "patches tensors": (added(PATCHED), 0, 7, []),
    "gives a lying tensor": (added(LIAR, "return torch.zeros(1).as_subclass(Liar)"), 0, 7, []),
    "gives what equals everything": (added(LIAR, "return Agrees()"), 0, 7, []),
    "takes the expected value from the frames": (
        answer("import sys\nframe = sys._getframe()\nwhile frame:\n    if 'expected' in frame.f_locals:\n        return frame.f_locals['expected']\n    frame = frame.f_back"),
        0,
        7,
        [],
    ),
    "reads the tests in In": (answer("return eval(In[-1].split(',')[1].split(')')[0])"), 0, 7, []),
    "prints In": (tail("print(In)\nprint(get_ipython().history_manager.input_hist_raw)"), 5, 7, []),
    "raises In": (answer("raise ValueError(str(In))"), 0, 7, []),
    "replaces the traceback": (added(TRACE, "raise ValueError"), 0, 7, []),
    "knows the visible value": (answer("return 2"), 0, 7, []),
    # invented since
    "keeps hidden arguments, prints them later": (
        lambda course: extended(tail("print('KEPT', kept)\nkept", double="return keep(x)")(course), KEEPS, 1), 5, 7, [],
    ),
    "raises hidden arguments": (answer("raise type(f'No{x}', (Exception,), {})(x) if x > 1 else ValueError(x)"), 0, 7, []),
    "stops an iteration": (answer("raise StopIteration(2 * x)"), 0, 7, []),
    "forges an answer": (added(FORGED, "forge()\nreturn 0"), 0, 7, []),
    "asks the judge": (added(LINK, "print(others())\nreturn 0"), 0, 7, []),
    "answers twice": (answer("import os\nos.fork()\nreturn 2 * x + 1"), 0, 7, []),
    "nests values": (answer("value = []\nfor _ in range(10**5):\n    value = [value]\nreturn value"), 0, 7, []),
    "gives a number of a million digits": (answer("return 10**10**6"), 0, 7, []),
    "has an evil text": (
        answer("class Evil(Exception):\n    def __str__(self):\n        raise SystemExit\n    __repr__ = __str__\nraise Evil"), 0, 7, [],
    ),
    "takes the alarm away": (
        answer("import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\nwhile True:\n    pass"), 0, 7, ["took too long"],
    ),
    "forks for ever": (answer("import os\nwhile True:\n    os.fork()"), 0, 7, ["double-test"]),
    "leaves a file for the next execution": (added(LEFT, "return 0 if seen else 2 * x"), 5, 7, []),
    "looks for its neighbours": (added(NEIGHBOURS, "return 0 if seen() else 2 * x"), 5, 7, []),
    "looks for the network": (added(NETWORK, "return 0 if reaches() else 2 * x"), 5, 7, []),
    "changes Python's packages": (
        answer("import torch, checks\nfor module in (torch, checks):\n    open(module.__file__, 'a').write('check = print')\nreturn 2 * x"),
        0,
        7,
        [],
    ),
    "fills the disk": (
        answer("for number in range(100):\n    with open(f'/tmp/{number}', 'wb') as file:\n        file.write(bytes(10**8))\nreturn 2 * x"),
        0,
        7,
        [],
    ),
}  # fmt: skip


CONFINED = {  # those that would do harm, or see something, if they were not
    "writes the gradebook",
    "executes the source of the tests",
    "kills what executes it",
    "keeps hidden arguments, prints them later",
    "forges an answer",
    "answers twice",
    "forks for ever",
    "leaves a file for the next execution",
    "looks for its neighbours",
    "looks for the network",
    "changes Python's packages",
    "fills the disk",
}


# Pages of shared memory that no process has in its tables any more, of which nobody knows
# to whom they belong.
UNCOUNTED = """import mmap, time
held = []
for _ in range(60):
    held.append(mmap.mmap(-1, 2**26))
    held[-1].write(bytes(2**26))
    held[-1].madvise(mmap.MADV_DONTNEED)
    time.sleep(0.05)
time.sleep(3)
return 2 * x"""
# All that may be written to memory, and what is denied or counted.
FILES = """import os, time
for folder in ("/dev/shm", "/tmp"):
    try:
        for number in range(100):
            with open(f"{folder}/{number}", "wb") as file:
                file.write(bytes(2**26))
    except OSError:
        pass
try:
    os.ftruncate(os.memfd_create("much"), 2**34)
    return 0
except PermissionError:
    time.sleep(3)
return 2 * x"""
PROCESSES = """import os, time
for _ in range(60):
    if os.fork() == 0:
        held = bytearray(os.urandom(2**20)) * 100
        time.sleep(30)
        os._exit(0)
time.sleep(3)
return 2 * x"""
GREEDY = {
    "honest": (answers("import time\ntime.sleep(2)\nreturn 2 * x"), 5, 7, []),
    "uncounted": (answers(UNCOUNTED), 0, 7, ["double-test took too much memory"]),
    "files": (answers(FILES), 5, 7, []),
    "processes": (answers(PROCESSES), 0, 7, ["double-test took too much memory"]),
}
