"""Start a process that sees nothing of this machine but Python, what it may import, and
its own folder.
"""

import functools
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
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
APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
ROOM = 2**28  # bytes that may be written to each of the folders in memory
# An architecture's number, and those of the system calls by which two submissions could
# share something, or take memory that is nobody's: add_key, request_key, keyctl,
# memfd_create, memfd_secret, shmget, msgget, mq_open, io_uring_setup.
DENIED = {
    "x86_64": (0xC000003E, (248, 249, 250, 319, 447, 29, 68, 240, 425)),
    "aarch64": (0xC00000B7, (217, 218, 219, 279, 447, 194, 186, 180, 425)),
}
WHOLE, BARE = "whole", "bare"  # libraries with sgmc, and with what stands for it
UNCONFINED = "graded without confinement: the code could read and write all your files"
INSTALL = "bubblewrap is not installed: say  sudo apt-get install bubblewrap"
ALLOW = (
    "AppArmor forbids it to separate processes, as on Ubuntu 24.04: say  sudo sysctl "
    "-w kernel.apparmor_restrict_unprivileged_userns=0  (until the next start), or "
    "install the profile in coursework/README.md"
)
ADVICE = (
    "Nothing was graded or entered, because submissions cannot be run safely here: "
    "{why}. If you trust everybody who handed in with all your files, say  "
    "UNCONFINED=1 make grade SUBMISSIONS=..."
)


class ConfinementError(RuntimeError):
    """Submissions cannot be executed here; nothing was entered."""


@functools.cache
def obstacle() -> str:
    """Say why processes cannot be confined here; nothing if they can."""
    if shutil.which("bwrap") is None:
        return INSTALL
    command = confined(["/bin/true"], Path("/usr"), Path("/usr"), [])
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True}
    result = subprocess.run(command, **quiet, text=True, errors="replace")
    if not result.returncode:
        return ""
    if APPARMOR.exists() and APPARMOR.read_text().strip() == "1":
        return f"bubblewrap is installed, but {ALLOW}"
    return f"bubblewrap does not work: {result.stderr.strip()[-300:]}"


@functools.cache
def _options() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


def places_of_python() -> set[Path]:
    """List what Python needs of this machine: its prefixes, the folders of packages,
    and the links that lead to its program, wherever they are.
    """
    program = Path(sys.executable)
    found = {Path(sys.prefix), Path(sys.base_prefix), program.resolve().parents[1]}
    found |= {Path(one) for one in sys.path if one.endswith("-packages")}
    while program.is_symlink():
        program = program.parent / os.readlink(program)
        found.add(Path(os.path.normpath(program)))
    return {path for path in found if path.exists()}


def confined(
    command: list[str], library: Path, work: Path, hidden: list[Path]
) -> list[str]:
    """Make of a command one that runs confined by bubblewrap.

    Its processes end with it. They have no network and no sight of other processes. Of
    the files they see the system's programs, Python with its packages, ``library`` as
    ``/library``, and copies of the files in ``work`` in a folder of their own; what
    they write is in memory.

    Args:
        command: what to run.
        library: a folder that they may import from.
        work: a folder with files that they may read.
        hidden: folders that must not be seen even if they lie in one that is.
    """
    system = {Path(path) for path in [*SYSTEM, *SETTINGS] if os.path.lexists(path)}
    shown = system | places_of_python()
    covered = {path for path in hidden if any(map(path.is_relative_to, shown))}
    size = ["--size", f"{ROOM}"] if "--size" in _options() else []
    # The folders in memory come first: an environment may lie below /tmp.
    mounts = ["--proc", "/proc", "--dev", "/dev"]
    mounts += [*size, "--tmpfs", "/dev/shm", *size, "--tmpfs", "/tmp"]
    for path in sorted(shown | covered, key=lambda path: len(path.parts)):
        outer = [one for one in path.parents if one in shown | covered][:1]
        if path in covered:
            mounts += ["--tmpfs", f"{path}"]
        elif outer and outer[0] not in covered:
            continue  # it is there already
        elif path in system and path.is_symlink():
            mounts += ["--symlink", os.readlink(path), f"{path}"]
        else:
            mounts += ["--ro-bind", f"{path.resolve()}", f"{path}"]
    mounts += ["--ro-bind", f"{library}", "/library"]
    for path in sorted(work.iterdir()):
        if path.is_file():
            mounts += ["--ro-bind", f"{path}", f"/tmp/{path.name}"]
    for path in ("/dev", "/", *covered):
        mounts += ["--remount-ro", f"{path}"]
    for name, value in {**ENVIRONMENT, "PYTHONPATH": "/library"}.items():
        mounts += ["--setenv", name, value]
    return [
        # bwrap's own environment can be read within
        *("env", "-i", f"PATH={os.environ['PATH']}", "bwrap"),
        *("--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000"),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv"),
        *(["--disable-userns"] if "--disable-userns" in _options() else []),
        *("--hostname", "student", *mounts, "--chdir", "/tmp", "--", *command),
    ]


def rules() -> bytes:
    """Write the program with which the kernel denies these calls, and all those of
    another architecture; empty if this one is not known.
    """
    if platform.machine() not in DENIED:
        return b""
    architecture, denied = DENIED[platform.machine()]
    end = len(denied) + 5  # where a call is denied; on the line before it is allowed
    lines = [(0x20, 0, 0, 4), (0x15, 0, end - 2, architecture), (0x20, 0, 0, 0)]
    lines += [(0x15, end - k - 4, 0, number) for k, number in enumerate(denied)]
    lines += [(0x35, 1, 0, 0x40000000), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x50001)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def start(
    imports: Path, work: Path, hidden: list[Path], is_confined: bool, bare: bool
) -> subprocess.Popen:
    """Start a pupil with the whole library in ``imports``, or the bare one; its
    ``border`` is a socket, to which what it is asked goes, and from which its answers
    come.
    """
    command, settings = [sys.executable, "-m", "coursework.engine.pupil"], {"cwd": "/"}
    library = imports / (BARE if bare else WHOLE)
    if is_confined:
        command = confined(command, library, work, hidden)
    else:
        ours = {**os.environ, **ENVIRONMENT, "PATH": os.environ["PATH"]}
        ours |= {"PYTHONPATH": f"{library}", "HOME": f"{work}"}
        settings = {"cwd": work, "env": ours, "start_new_session": True}
    border, beyond = socket.socketpair()
    with beyond, tempfile.TemporaryFile() as file:
        if is_confined and (program := rules()):
            file.write(program)
            file.seek(0)
            place = command.index("bwrap") + 1
            command[place:place] = ["--seccomp", f"{file.fileno()}"]
            settings["pass_fds"] = (file.fileno(),)
        process = subprocess.Popen(
            command, stdin=beyond, stdout=beyond, stderr=subprocess.DEVNULL, **settings
        )
    process.border = border
    return process
