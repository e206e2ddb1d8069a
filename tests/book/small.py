"""A small book in a folder of its own, to try the tools on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A small chapter

# %%
import sgmc
print(sgmc.answer())

# %%
1 + 1
"""


def make(folder):
    """Make a book of one chapter, which prints what a package says."""
    (folder / "book" / "part").mkdir(parents=True)
    (folder / "book" / "part" / "small.py").write_text(SOURCE)
    (folder / "sgmc").mkdir()
    (folder / "sgmc" / "__init__.py").write_text("def answer():\n    return 'first'\n")
    for name in ("requirements.txt", "constraints.txt"):
        (folder / name).write_text("")
    shutil.copytree(ROOT / "tools", folder / "tools")
    (folder / "booklib").mkdir()
    shutil.copy(ROOT / "booklib" / "__init__.py", folder / "booklib")
    shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static")
    shutil.copy(ROOT / "_config.yml", folder)
    shutil.copy(ROOT / "book" / "references.bib", folder / "book")
    (folder / "index.md").write_text("# Title\n")
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n- caption: Part\n  chapters:\n  - "
        "file: book/part/small\n"
    )
    return folder


def run(root, *command):
    """Run a command of ``tools/book.py``, or any other, in the small book; return its
    exit status and what it said.
    """
    if len(command) == 1:
        command = (sys.executable, "tools/book.py", *command)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    result = subprocess.run(
        command, cwd=root, capture_output=True, text=True, env=environment
    )
    return result.returncode, result.stdout + result.stderr
