"""Read a percent script as a notebook, and write it as jupytext does."""

import copy
from functools import cache
from pathlib import Path

import jupytext
import nbformat

# What differs between machines stays out of the script: the kernel's name, the version
# of jupytext.
PAIR = {
    "formats": "ipynb,py:percent",
    "notebook_metadata_filter": "-kernelspec,-jupytext.text_representation",
}
# as JupyterLab writes it
KERNELSPEC = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}


def from_source(path: Path) -> nbformat.NotebookNode:
    """Read a percent script as a notebook without outputs; cell ids are numbers, so
    that writing it again changes nothing.
    """
    return copy.deepcopy(_read(path.read_text(encoding="utf-8"), path.suffix))


@cache
def _read(text: str, kind: str) -> nbformat.NotebookNode:
    notebook = jupytext.reads(text, kind)
    notebook.metadata = nbformat.from_dict({"jupytext": PAIR, "kernelspec": KERNELSPEC})
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def as_saved(path: Path) -> str:
    """Give the text that JupyterLab writes into a percent script when its notebook is
    saved without a change.

    JupyterLab refuses a notebook that is newer than its script if this text, made from
    either, is not the same."""
    # a notebook's file has the metadata in order
    notebook = nbformat.reads(nbformat.writes(from_source(path)), 4)
    return jupytext.writes(notebook, "py:percent")
