"""What a confined process sees, and what it can do: nothing but what it needs."""

import contextlib
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tools.coursework import confinement, grading
from tools.coursework.clock import Clock
from tools.coursework.confinement import confined, obstacle

ROOT = Path(__file__).resolve().parents[2]
needs_confinement = pytest.mark.skipif(
    bool(obstacle()), reason=f"submissions cannot be confined here: {obstacle()}"
)


@pytest.fixture
def run(tmp_path):
    """Make a function that runs a program of Python confined, beside a file with data,
    and gives what it printed.
    """
    library, work, gradebook = (
        tmp_path / name for name in ("library", "work", "gradebook")
    )
    for folder in (library, work, gradebook):
        folder.mkdir()
    (work / "data.csv").write_text("1,2")
    (gradebook / "gradebook.db").write_text("marks")

    def run(program, *, hidden=()):
        command = confined(
            [sys.executable, "-c", program], library, work, [ROOT, gradebook, *hidden]
        )
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/"
        ).stdout.strip()

    run.gradebook = gradebook
    return run


@needs_confinement
@pytest.mark.parametrize(
    ("program", "expected"),
    {
        "print(open('data.csv').read())": "1,2",
        "import os; print(os.path.exists('GRADEBOOK'), "
        "os.path.exists('ROOT/Makefile'), os.path.exists('/home'), "
        "os.path.exists('/etc/passwd'))": "False False False False",
        "import os; print(sorted(int(name) for name in os.listdir('/proc') if "
        "name.isdigit())[-1] < 5)": "True",
        "import os; print(sorted(os.environ.keys() - {'PWD', 'LC_CTYPE'}))": f"{sorted([*confinement.ENVIRONMENT, 'PYTHONPATH'])}",
        "print(open('/proc/1/environ').read().split('\\0')[0][:5], 'HOME' in "
        "open('/proc/1/environ').read())": "PATH= False",
        "import socket; print(socket.gethostname(), [name for _, name in "
        "socket.if_nameindex()])": "student ['lo']",
        "import os; print(os.getuid(), [line.split()[1] for line in "
        "open('/proc/self/status') if line.startswith('CapEff')])": "1000 ['0000000000000000']",
    }.items(),
)
def test_what_is_seen(run, program, expected):
    assert (
        run(program.replace("GRADEBOOK", f"{run.gradebook}").replace("ROOT", f"{ROOT}"))
        == expected
    )


@needs_confinement
@pytest.mark.parametrize(
    "place",
    [
        "/data",
        "/usr/data",
        "/library/data",
        "/etc/data",
        "PREFIX/data",
        "GRADEBOOK/data",
        "/tmp/data.csv",
        "/dev/data",
    ],
)
def test_nothing_can_be_written_but_to_memory(run, place):
    path = place.replace("PREFIX", sys.prefix).replace("GRADEBOOK", f"{run.gradebook}")
    assert (
        run(
            f"try:\n    open({path!r}, 'w').write('x')\n    print('written')\nexcept "
            "OSError:\n    print('not written')"
        )
        == "not written"
    )
    assert (
        run("open('/tmp/new', 'w').write('x')\nprint(open('/tmp/new').read())") == "x"
    )


@needs_confinement
def test_a_folder_that_must_not_be_seen_is_covered_even_within_one_that_is(run):
    inside = Path(sys.prefix) / "lib"
    assert run("print('runs')", hidden=[Path("/usr/share")]) == "runs"
    assert (
        run("import os; print(os.listdir('/usr/share'))", hidden=[Path("/usr/share")])
        == "[]"
    )
    assert inside.exists()


@needs_confinement
def test_the_control_a_process_that_is_not_confined_sees_the_repository():
    program = f"import os; print(os.path.exists('{ROOT}/Makefile'))"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True
        ).stdout.strip()
        == "True"
    )


def test_where_there_is_no_confinement_nothing_is_executed_and_it_is_said_in_capitals(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(confinement, "obstacle", lambda: "bubblewrap is not installed")
    with pytest.raises(confinement.ConfinementError) as raised:
        grading.grade(tmp_path / "grades", tmp_path)
    assert "NO SUBMISSION IS EXECUTED" in str(raised.value) and "UNCONFINED=1" in str(
        raised.value
    )
    assert (
        "apt-get install bubblewrap" in str(raised.value)
        and not (tmp_path / "grades").exists()
    )


def test_an_obstacle_is_noticed(monkeypatch):
    monkeypatch.setattr(confinement.shutil, "which", lambda name: None)
    obstacle.cache_clear()
    assert obstacle() == "bubblewrap is not installed"
    monkeypatch.undo()
    monkeypatch.setattr(
        confinement,
        "confined",
        lambda *_: ["/bin/sh", "-c", "echo 'No permissions' >&2; exit 1"],
    )
    monkeypatch.setattr(confinement.shutil, "which", lambda name: name)
    obstacle.cache_clear()
    assert obstacle() == "bubblewrap does not work here: No permissions"
    obstacle.cache_clear()


@needs_confinement
@pytest.mark.parametrize(
    "file",
    [
        "os.memfd_create('x')",
        "os.open('/tmp/x', os.O_CREAT | os.O_RDWR)",
        "os.open('/dev/shm/x', 66)",
    ],
)
def test_files_in_memory_are_counted_as_memory(tmp_path, file):
    program = (
        f"import os; print(flush=True); input(); file = {file}; os.write(file, "
        "bytes(10**8)); print(flush=True); input()"
    )
    command = confined([sys.executable, "-c", program], tmp_path, tmp_path, [ROOT])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        before = Clock(process.pid).memory()
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        assert 10**8 <= Clock(process.pid).memory() - before < 2.5 * 10**8
        for one in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # with the first all end
                one.kill()
