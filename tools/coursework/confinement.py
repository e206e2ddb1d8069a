"""Start a process that sees nothing of this machine but Python, what it may import, and
its own folder.
"""

import functools
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1",
    "PATH": "/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "TQDM_DISABLE": "1",
    "USER": "student",
}
SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
SETTINGS = ["/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/fonts"]
ROOM = 2**28  # bytes that may be written to each of the folders in memory
UNCONFINED = "NOT CONFINED: WHAT STUDENTS WROTE COULD READ AND WRITE ALL THAT YOU CAN"
ADVICE = """NO SUBMISSION IS EXECUTED, FOR IT COULD NOT BE CONFINED: {why}
INSTALL BUBBLEWRAP, FOR EXAMPLE WITH   apt-get install bubblewrap
OR SAY   UNCONFINED=1 make grade SUBMISSIONS=...   IF YOU TRUST EVERYBODY WHO WROTE ONE WITH ALL THAT YOU CAN READ AND WRITE"""


class ConfinementError(RuntimeError):
    """Processes cannot be confined here."""


@functools.cache
def obstacle() -> str:
    """Say why processes cannot be confined here; nothing if they can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    command = confined(["/bin/true"], Path("/usr"), Path("/usr"), [])
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    return (
        f"bubblewrap does not work here: {result.stderr.strip()[-300:]}"
        if result.returncode
        else ""
    )


@functools.cache
def _options() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


def confined(
    command: list[str], library: Path, work: Path, hidden: list[Path]
) -> list[str]:
    """Make of a command one that runs confined by bubblewrap.

    Its processes end with it. They have no network, no sight of other processes, and
    see of the files the system's programs, Python with its packages, ``library`` as
    ``/library`` and copies of the files in ``work`` in a folder of their own; what they
    write is in memory.

    Args:
        command: what to run.
        library: a folder that they may import from.
        work: a folder with files that they may read.
        hidden: folders that must not be seen even if they lie in one that is.
    """
    shown = {
        Path(path)
        for path in [
            *SYSTEM,
            *SETTINGS,
            sys.prefix,
            sys.base_prefix,
            *_homes_of_python(),
        ]
        if os.path.lexists(path)
    }
    covered = {
        path for path in hidden if any(path.is_relative_to(other) for other in shown)
    }
    size = ["--size", f"{ROOM}"] if "--size" in _options() else []
    mounts: list[str] = []
    # an outer one first
    for path in sorted(shown | covered, key=lambda path: len(path.parts)):
        if path in covered:
            mounts += ["--tmpfs", f"{path}", "--remount-ro", f"{path}"]
        elif path.is_symlink():
            mounts += ["--symlink", os.readlink(path), f"{path}"]
        else:
            mounts += ["--ro-bind", f"{path}", f"{path}"]
    files = [
        argument
        for path in sorted(work.iterdir())
        if path.is_file()
        for argument in ("--ro-bind", f"{path}", f"/tmp/{path.name}")
    ]
    return [
        # for bwrap's own environment can be read within
        *("env", "-i", f"PATH={os.environ['PATH']}"),
        *(
            "bwrap",
            "--unshare-all",
            "--unshare-user",
            "--uid",
            "1000",
            "--gid",
            "1000",
            "--cap-drop",
            "ALL",
        ),
        *(["--disable-userns"] if "--disable-userns" in _options() else []),
        *("--die-with-parent", "--new-session", "--clearenv", "--hostname", "student"),
        *(
            argument
            for name, value in {**ENVIRONMENT, "PYTHONPATH": "/library"}.items()
            for argument in ("--setenv", name, value)
        ),
        *mounts,
        *(
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--remount-ro",
            "/dev",
            *size,
            "--tmpfs",
            "/dev/shm",
            *size,
            "--tmpfs",
            "/tmp",
        ),
        *("--ro-bind", f"{library}", "/library"),
        *files,
        *("--remount-ro", "/", "--chdir", "/tmp", "--"),
        *command,
    ]


def _homes_of_python() -> list[str]:
    """List the folders of Python's own files, where they are not below its prefix."""
    return [f"{Path(os.path.realpath(sys.executable)).parents[1]}"]


def start(
    library: Path, work: Path, hidden: list[Path], is_confined: bool
) -> subprocess.Popen:
    """Start a pupil; its ``border`` is a socket, to which what it is asked goes, and
    from which its answers come.
    """
    command, settings = [sys.executable, "-m", "tools.coursework.pupil"], {"cwd": "/"}
    if is_confined:
        command = confined(command, library, work, hidden)
    else:
        environment = {
            **os.environ,
            **ENVIRONMENT,
            "PYTHONPATH": f"{library}",
            "PATH": os.environ["PATH"],
            "HOME": f"{work}",
        }
        settings = {"cwd": work, "env": environment, "start_new_session": True}
    border, beyond = socket.socketpair()
    with beyond:
        process = subprocess.Popen(
            command, stdin=beyond, stdout=beyond, stderr=subprocess.DEVNULL, **settings
        )
    process.border = border
    return process
