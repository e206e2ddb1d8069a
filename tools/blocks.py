"""Run what pages show of other libraries, each block in an environment of its library.

usage: python -m tools.blocks

A block is fenced as ```{code-block} python and named block-LIBRARY-WHAT, where LIBRARY
is a key of LIBRARIES. It runs as it stands, in an empty folder. What it printed is
stored with date, versions and processor time in book/results/blocks.json, and it runs again once its
text or its library's version changes. A block whose caption begins with *Not run* is
left out."""

import hashlib
import os
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from booklib.runs.results import RESULTS, circumstances, read_result, write_result
from tools.book import ROOT

STORED = RESULTS / "blocks.json"
PRACTICE = ROOT / "book" / "practice"
LIBRARIES = {  # what is installed above the packages of the book's own environment
    "blackjax": ["blackjax==1.7.1", "jax==0.10.2"],
    "laplace-torch": ["laplace-torch==0.3"],
    "mapie": ["mapie==1.6.0"],
    "numpyro": ["numpyro==0.22.0", "jax==0.10.2"],
    "pymc": ["pymc==5.28.5"],
    "sgmc": ["."],
    "torch-uncertainty": ["torch-uncertainty[cpu]==0.13.0"],
}
FENCED = re.compile(
    r"^```\{code-block\} python\n((?::[\w-]+:[^\n]*\n)*)\n?(.*?)^```$", re.DOTALL | re.M
)


class Block(NamedTuple):
    """A block: the key of its library and its code."""

    library: str
    code: str

    @property
    def hash(self) -> str:
        """What changes with its text and with the versions that it needs."""
        whole = "\n".join([*LIBRARIES[self.library], self.code])
        return hashlib.sha256(whole.encode()).hexdigest()[:16]


def blocks(folder: Path = PRACTICE) -> dict[str, Block]:
    """Find the named blocks of a folder's pages, but for those marked as not run."""
    found = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*.md")]):
        text = path.read_text()
        if path.suffix == ".py":
            text = re.sub(r"^# ?", "", text, flags=re.M)
        for head, code in FENCED.findall(text):
            options = dict(re.findall(r"^:([\w-]+): *(.*)$", head, re.M))
            name = options.get("name", "")
            if not name.startswith("block-") or options.get("caption", "").startswith(
                "Not run"
            ):
                continue
            library = [key for key in LIBRARIES if name.startswith(f"block-{key}-")]
            if len(library) != 1 or name in found:
                raise ValueError(
                    f"{path.name} has a block named {name}: give each block one name, "
                    f"block-LIBRARY-WHAT, with a library of {', '.join(LIBRARIES)}, or "
                    'a caption that begins with "Not run"'
                )
            found[name] = Block(library[0], code)
    return found


def interpreter(library: str) -> Path:
    """Give the Python of a library's environment, which lies above ours."""
    folder = ROOT / "_build" / "blocks" / library
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        [packages] = folder.glob("lib/python*/site-packages")
        (packages / "beneath.pth").write_text(sysconfig.get_path("purelib"))
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([python, *install, *LIBRARIES[library]], check=True, cwd=ROOT)
    return python


def main() -> int:
    """Run the blocks that need it and store what they print."""
    found = blocks()
    stored = read_result(STORED)["blocks"] if STORED.exists() else {}
    stored = {name: stored[name] for name in found if name in stored}
    failed = []
    for name, block in found.items():
        if stored.get(name, {}).get("hash") == block.hash:
            continue
        print(f"{name} ...", flush=True)
        python = interpreter(block.library)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        alone = {key: x for key, x in os.environ.items() if key != "PYTHONPATH"}
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run(
                [python, "-c", block.code],
                cwd=empty,
                env=alone | {"MPLBACKEND": "agg"},
                capture_output=True,
                text=True,
            )
        stored.pop(name, None)
        if done.returncode != 0 or not done.stdout:
            print(done.stderr or "it prints nothing", file=sys.stderr)
            failed.append(name)
            continue
        stored[name] = {
            "hash": block.hash,
            "packages": LIBRARIES[block.library],
            "date": datetime.now(UTC).date().isoformat(),
            "processor_seconds": round(
                resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 1
            ),
            "output": done.stdout.splitlines(),
        }
    origin = {"command": "python -m tools.blocks", **circumstances()}
    write_result(STORED, {"provenance": origin, "blocks": stored})
    print(f"{len(stored)} stored" + "".join(f", {name} failed" for name in failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
