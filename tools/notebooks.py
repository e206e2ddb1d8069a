"""Read a percent script as a notebook."""

from pathlib import Path

import jupytext
import nbformat

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


def from_source(path: Path) -> nbformat.NotebookNode:
    """Read a percent script as a notebook without outputs; cell ids are numbers, so that writing it again changes nothing."""
    notebook = jupytext.read(path)
    notebook.metadata = nbformat.from_dict({"jupytext": {"formats": "ipynb,py:percent"}, "kernelspec": KERNELSPEC})
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook
