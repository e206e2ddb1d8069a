"""What a confined process sees, and what it can do: nothing but what it needs; and that
nobody pays for a machine on which nothing can be confined.
"""

import functools
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest

from coursework.engine import confinement, grading, judge
from coursework.engine.confinement import confined, obstacle
from coursework.tests.planted import GREEDY
from coursework.tests.small import answered, grade, remarks_on, table

ROOT = Path(__file__).resolve().parents[2]
needs_confinement = pytest.mark.skipif(
    bool(obstacle()), reason=f"submissions cannot be confined here: {obstacle()}"
)


@pytest.fixture
def run(tmp_path):
    """Make a function that runs a program of Python confined, beside a file with data,
    and gives what it printed.
    """
    folders = [tmp_path / name for name in ("library", "work", "gradebook")]
    library, work, gradebook = folders
    for folder in folders:
        folder.mkdir()
    (work / "data.csv").write_text("1,2")
    (gradebook / "gradebook.db").write_text("marks")

    def run(program, *, hidden=(), python=sys.executable):
        unseen = [ROOT, gradebook, *hidden]
        command = confined([python, "-c", program], library, work, unseen)
        quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        return subprocess.run(command, cwd="/", **quiet).stdout.strip()

    run.gradebook = gradebook
    return run


@needs_confinement
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print(open('data.csv').read())", "1,2"),
        (
            "import os; print([os.path.exists(path) for path in ('GRADEBOOK', "
            "'ROOT/Makefile', '/home', '/etc/passwd')])",
            "[False, False, False, False]",
        ),
        (
            "import os; print(max(int(one) for one in os.listdir('/proc') if "
            "one.isdigit()) < 5)",
            "True",
        ),
        (
            "import os; print(sorted(os.environ.keys() - {'PWD', 'LC_CTYPE'}))",
            f"{sorted([*confinement.ENVIRONMENT, 'PYTHONPATH'])}",
        ),
        ("print('HOME' in open('/proc/1/environ').read())", "False"),
        (
            "import socket; print(socket.gethostname(), socket.if_nameindex())",
            "student [(1, 'lo')]",
        ),
        (
            "import os; print(os.getuid(), [line.split()[1] for line in "
            "open('/proc/self/status') if line.startswith('CapEff')])",
            "1000 ['0000000000000000']",
        ),
    ],
)
def test_what_is_seen(run, program, expected):
    program = program.replace("GRADEBOOK", f"{run.gradebook}")
    assert run(program.replace("ROOT", f"{ROOT}")) == expected


@needs_confinement
@pytest.mark.parametrize(
    "place",
    [
        *("/data", "/usr/data", "/library/data", "/etc/data", "/dev/data"),
        *("PREFIX/data", "GRADEBOOK/data", "/tmp/data.csv"),
    ],
)
def test_nothing_can_be_written_but_to_memory(run, place):
    path = place.replace("PREFIX", sys.prefix).replace("GRADEBOOK", f"{run.gradebook}")
    program = (
        f"try:\n    open({path!r}, 'w').write('x')\n    print('written')\n"
        "except OSError:\n    print('not written')"
    )
    assert run(program) == "not written"
    assert run(program.replace(path, "/tmp/new")) == "written"
    assert run("import os; print(os.path.exists('/tmp/new'))") == "False"


@needs_confinement
def test_a_folder_that_must_not_be_seen_is_covered_even_within_one_that_is(run):
    program = "import os; print(os.listdir('/usr/share'))"
    assert run(program) != "[]" and run(program, hidden=[Path("/usr/share")]) == "[]"


@needs_confinement
def test_the_control_a_process_that_is_not_confined_sees_the_repository():
    program = f"import os; print(os.path.exists('{ROOT}/Makefile'))"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True).stdout.strip() == b"True"


@needs_confinement
@pytest.mark.parametrize("linked", [False, True], ids=["its own", "a link to another"])
def test_an_environment_below_tmp_works(run, tmp_path, monkeypatch, linked):
    """As that of a checkout in /tmp, which is not seen itself."""
    assert tmp_path.is_relative_to("/tmp")
    environment, module = tmp_path / ".venv", "torch"
    if linked:
        environment.symlink_to(sys.prefix)
    else:
        version, module = f"python3.{sys.version_info[1]}", "marker"
        packages = environment / "lib" / version / "site-packages"
        real = Path(os.path.realpath(sys.executable))
        for folder in (packages, environment / "bin"):
            folder.mkdir(parents=True)
        (environment / "bin" / "python").symlink_to(real)
        (environment / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
        (packages / "marker.py").touch()
    (tmp_path / "Makefile").touch()
    monkeypatch.setattr(sys, "prefix", f"{environment}")
    monkeypatch.setattr(sys, "executable", f"{environment / 'bin' / 'python'}")
    program = (
        f"import os, sys, {module}; "
        f"print(sys.prefix, os.path.exists('{tmp_path}/Makefile'))"
    )
    found = run(program, python=sys.executable, hidden=[tmp_path])
    assert found == f"{environment} False"


def on_a_small_machine(before, sender, *others):
    """Judge where 2.5 GB are left, less what no process owns."""
    memory = psutil.virtual_memory
    judge.MEMORY, judge.RESERVE = 3 * 2**29, 2**29
    psutil.virtual_memory = lambda: SimpleNamespace(
        available=5 * 2**29 - memory().shared + before
    )
    judge.main(sender, *others)


@needs_confinement
def test_what_takes_memory_that_nobody_counts_leaves_its_neighbours_their_points(
    course, tmp_path, monkeypatch
):
    machine = functools.partial(on_a_small_machine, psutil.virtual_memory().shared)
    monkeypatch.setattr(grading.judge, "main", machine)
    grades = grade(course, tmp_path, GREEDY, seconds=20, workers=len(GREEDY))
    for student, (_, double, triple, words) in GREEDY.items():
        rows = [r for r in table(grades / "tasks.csv") if r["student_id"] == student]
        assert [float(row["points"]) for row in rows] == [double, triple, 0], student
        said = remarks_on(grades, student)
        assert len(said) == len(words) and all(map(str.__contains__, said, words)), said


def hand_in(course, folder):
    place = folder / "submissions" / "ann" / "small.ipynb"
    place.parent.mkdir(parents=True)
    nbformat.write(answered(course), place)
    return folder / "grades", folder / "submissions", course


def test_where_there_is_no_confinement_nothing_is_executed(
    course, tmp_path, monkeypatch
):
    monkeypatch.setattr(confinement, "obstacle", lambda: confinement.INSTALL)
    with pytest.raises(confinement.ConfinementError) as raised:
        grading.grade(*hand_in(course, tmp_path))
    for words in ("apt-get install bubblewrap", "UNCONFINED=1", "Nothing was graded"):
        assert words in str(raised.value)
    assert not (tmp_path / "grades").exists()


def without_torch(imports, work, hidden, is_confined, bare):
    """Start a pupil whose Python has no packages."""
    process = confinement_start(imports, work, hidden, False, bare)
    process.kill()
    process.wait()
    return process


confinement_start = confinement.start


def without_data(imports, work, hidden, is_confined, bare):
    """Start a pupil whose folder holds nothing."""
    for path in work.iterdir():
        path.unlink()
    return confinement_start(imports, work, hidden, is_confined, bare)


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (without_torch, "Python did not start"),
        (without_data, "setup of the model solution ended with FileNotFoundError"),
    ],
)
def test_nobody_pays_for_a_machine_on_which_the_model_solution_does_not_run(
    course, tmp_path, monkeypatch, start, why
):
    monkeypatch.setattr(confinement, "start", start)
    with pytest.raises(confinement.ConfinementError, match=why) as raised:
        grading.grade(*hand_in(course, tmp_path), is_confined=False)
    assert "Nothing was graded or entered" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "grades" / "tasks.csv").exists()


def test_a_pupil_that_does_not_start_later_on_costs_nobody_anything(
    course, tmp_path, monkeypatch
):
    rehearse = grading.rehearse

    def rehearse_and_break(*arguments):
        rehearse(*arguments)
        monkeypatch.setattr(confinement, "start", without_torch)

    monkeypatch.setattr(grading, "rehearse", rehearse_and_break)
    grading.grade(*hand_in(course, tmp_path), is_confined=False)
    [remark] = [
        row["remark"]
        for row in table(tmp_path / "grades" / "remarks.csv")
        if "graded without confinement" not in row["remark"]
    ]
    assert remark.startswith("not graded, and no points were entered: Python did not")
    assert not (tmp_path / "grades" / "tasks.csv").exists()


@pytest.mark.parametrize(
    ("apparmor", "why"),
    [("1\n", "AppArmor forbids"), ("0\n", "bubblewrap does not work: No permissions")],
)
def test_an_obstacle_is_named_in_one_sentence(monkeypatch, tmp_path, apparmor, why):
    (tmp_path / "setting").write_text(apparmor)
    monkeypatch.setattr(confinement, "APPARMOR", tmp_path / "setting")
    failed = SimpleNamespace(returncode=1, stderr="No permissions\n", stdout="")
    monkeypatch.setattr(confinement.subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(confinement.shutil, "which", lambda name: name)
    for cached in (obstacle, confinement._options):
        cached.cache_clear()
    found = obstacle()
    monkeypatch.setattr(confinement.shutil, "which", lambda name: None)
    obstacle.cache_clear()
    missing = obstacle()
    monkeypatch.undo()
    for cached in (obstacle, confinement._options):
        cached.cache_clear()
    assert why in found and "\n" not in found and missing == confinement.INSTALL


def test_the_advice_for_ubuntu_is_in_the_readme():
    readme = (ROOT / "coursework" / "README.md").read_text()
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in readme
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in confinement.ALLOW
    assert "profile bwrap /usr/bin/bwrap" in readme


def test_what_two_submissions_could_share_is_denied():
    # in a process of its own, which the rules confine as they confine a pupil
    calls = (
        "import ctypes, sys\n"
        "program = sys.stdin.buffer.read()\n"
        "class Rules(ctypes.Structure):\n"
        "    _fields_ = [('n', ctypes.c_ushort), ('lines', ctypes.c_char_p)]\n"
        "kernel = ctypes.CDLL(None, use_errno=True)\n"
        "rules = Rules(len(program) // 8, program)\n"
        "assert kernel.prctl(38, 1, 0, 0, 0) == 0\n"
        "assert kernel.prctl(22, 2, ctypes.byref(rules), 0, 0) == 0\n"
        f"for number in {confinement.DENIED[platform.machine()][1]}:\n"
        "    assert kernel.syscall(number, 0, 0, 0, 0, 0) == -1\n"
        "    assert ctypes.get_errno() == 1, number\n"
        "import os, threading, socket, torch\n"
        "print(torch.ones(2).sum(), os.getpid() > 0, bool(socket.socketpair()))\n"
    )
    command = [sys.executable, "-c", calls]
    done = subprocess.run(command, input=confinement.rules(), capture_output=True)
    assert done.stdout == b"tensor(2.) True True\n", done.stderr
