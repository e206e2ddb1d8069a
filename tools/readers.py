"""The reader's notebooks: the built book's pages, in plain Markdown for any Jupyter.

usage: python -m tools.readers [copy | lab]

        make _build/notebooks: a notebook of every page that changed, and start.ipynb
copy    bring them to notebooks/, where a reader works: what the reader changed stays
lab     open notebooks/ in JupyterLab; options that follow go to it, as --no-browser

Words, titles and numbers are those of the built pages, code and outputs those of the
notebooks that the pages were made of.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import nbformat
from bs4 import Tag
from ipykernel.ipkernel import IPythonKernel
from nbformat import NotebookNode, v4

from tools import book, editions, markdown, sentences
from tools.markdown import anchor, block, line

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
MADE = ROOT / "_build" / "notebooks"
COPIES = ROOT / "notebooks"
APPENDIX = "claims|execution_status|settings|sandbox|api.*"
ONLY_PAGES = re.compile(rf"index|book/appendix/({APPENDIX})")

FOLDED = {"jupyter": {"source_hidden": True}}
# As JupyterLab writes it, so that looking at a notebook changes nothing in it.
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": dict(IPythonKernel.language_info),
}

# Where links lead ---------------------------------------------------------------------

LINK = re.compile(r'<a class="[^"]*reference[^"]*" href="([^"#]*)#([^"]+)"')
PLACE = re.compile(r'id=\\"([^"\\]+)\\"|^   "id": "([^"]+)"', re.MULTILINE)
COLOURED = re.compile(r'<span class="[a-z][a-z0-9]?">([^<]*)</span>')  # words of code
CELL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Places(NamedTuple):
    """What links lead to on a page: links of the page itself, and of others."""

    own: set[str]
    others: set[str]


def place(page: str) -> str:
    """Say where the notebook of a page is, or the page where it has none."""
    if ONLY_PAGES.fullmatch(page) or not page.startswith("book/"):
        return f"pages/{page}.html"
    return f"{page.removeprefix('book/')}.ipynb"


def path_to(target: str, page: str) -> str:
    """Say how the notebook of a page leads to a file."""
    return os.path.relpath(target, os.path.dirname(place(page)))


def address(page: str, other: str, name: str) -> str:
    """Say where a link of a page leads.

    JupyterLab finds a cell by its name, also in a notebook that it has to open first;
    any other place only in a notebook that it shows. A figure is a cell.
    """
    path, is_figure = path_to(place(other), page), re.match(r"fig-(?!live-)", name)
    if not name:
        return path
    if path.endswith(".html"):
        return f"{path}#{name}"
    return f"{path}#cell-id={name}" if other != page or is_figure else f"#{name}"


def places(pages: list[str]) -> dict[str, Places]:
    """Collect what the pages' links lead to."""
    found = {page: Places(set(), set()) for page in pages}
    for page in pages:
        for path, name in LINK.findall(editions.read(SITE, page)):
            other = editions.resolve(page, path).removesuffix(".html") if path else page
            if other == page:
                found[page].own.add(name)
            elif other in found:
                found[other].others.add(name)
    return found


# From a page to a notebook ------------------------------------------------------------


class Text(list):
    """Blocks of text that become a cell, with a name if other pages lead to it."""

    def __init__(self, blocks: list[str] = (), name: str = ""):
        super().__init__(blocks)
        self.name = name


def article(page: str, known: set[str], led_to: Places) -> Tag:
    """Take what a page says, with a notebook's links, and the places of links only."""
    text = COLOURED.sub(r"\1", editions.read(SITE, page))
    found = editions.article(text, page, known, partial(address, page))
    for element in found.select("[id]"):
        if element["id"] not in led_to.own | led_to.others:
            del element["id"]
    for number in found.select("a.c"):  # what it leads to is text in a notebook
        number.unwrap()
    for image in found.select("img[src]"):
        image["src"] = path_to(f"pages/{image['src']}", page)
    for figure in found.select("figure.live"):
        target = f"{path_to(f'pages/{page}.html', page)}#{figure['id']}"
        link = f' <a href="{target}">Move it on the page of the book.</a>'
        figure.figcaption.p.append(markdown.parse(link))
    return found


def pieces(part: Tag, code: Iterator[NotebookNode], led_to: Places) -> list:
    """Take a part of a page apart, into code and texts.

    A text begins at each heading, and at what other pages lead to.
    """
    made = [Text()]
    for child in part.find_all(True, recursive=False):
        kinds = set(child.get("class", ()))
        if "cell" in kinds:
            captions = child.select("figcaption")
            made += [named(next(code), child), *(Text(block(one)) for one in captions)]
            made.append(Text())
            continue
        outer = child.name in ("section", "dl")
        outer = outer or kinds & {"container", "citation-list"}
        name = name_of([child] if outer else [child, *child.select("[id]")], led_to)
        if child.name == "section" or name:
            made.append(Text(name=name))
        if child.get("id") == name and name not in led_to.own:
            del child["id"]
        if outer:
            first, *rest = pieces(child, code, led_to)
            made[-1] += anchor(child) + first
            made += rest
        else:
            made[-1] += block(child)
    return made


def name_of(elements: list[Tag], led_to: Places) -> str:
    """Name a cell after the first of its places to which other pages lead."""
    names = [element.get("id") for element in elements]
    found = [name for name in names if name in led_to.others]
    return next(filter(CELL_NAME.fullmatch, found), "")


def named(cell: NotebookNode, shown: Tag) -> NotebookNode:
    """Name a cell of code after the figure that its page shows."""
    if shown.figure and shown.figure.get("id"):
        cell.id = shown.figure["id"]
    return cell


def code_of(page: str) -> list[NotebookNode]:
    """Read the code of a page, folded as there, with what it has put out."""
    executed = book.executed_path(ROOT / f"{page}.py", ROOT)
    found = book.code_cells(nbformat.read(executed, 4)) if executed.is_file() else []
    return [
        v4.new_code_cell(
            cell.source,
            id=f"code-{number}",
            metadata=FOLDED if "hide-input" in cell.metadata.get("tags", ()) else {},
            execution_count=cell.execution_count,
            outputs=stored(cell.outputs),
        )
        for number, cell in enumerate(found, start=1)
    ]


def stored(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Choose what a notebook keeps: no standard error, of a film one picture, and of
    records their lines.
    """
    kept = [output for output in outputs if output.get("name") != "stderr"]
    for output in kept:
        claims = output.get("metadata", {}).pop(sentences.KEPT, None)
        if claims or "image/png" in output.get("data", ()):
            output.data.pop("text/html", None)
    return kept


def notebook(pieces: list) -> str:
    """Write a notebook; its text is the same each time."""
    cells = []
    for piece in pieces:
        if isinstance(piece, Text):
            text = "\n\n".join(filter(None, piece))
            piece = v4.new_markdown_cell(text, id=piece.name or f"text-{len(cells)}")
        if piece.source:
            cells.append(piece)
    made = v4.new_notebook(cells=cells, metadata=METADATA)
    return nbformat.writes(made) + "\n"


# Said where a notebook is opened elsewhere, in place of "No module named 'booklib'".
NEEDED = """\
# This notebook needs the packages sgmc and booklib, which are in the folder of the book.
# There `make lab` installs what they need, and opens this notebook.
import importlib.util

if not importlib.util.find_spec("booklib"):
    raise ModuleNotFoundError(
        "sgmc and booklib are not here: get the folder of the book, say make lab in it, "
        "and open this notebook there; or start Jupyter with PYTHONPATH=/path/to/it."
    )"""

# All notebooks ------------------------------------------------------------------------


def fresh(page: str, led_to: Places) -> bool:
    """Say whether a notebook is newer than its page, and has all that links lead to."""
    target = MADE / place(page)
    if not target.is_file():
        return False
    sources = (SITE / f"{page}.html", Path(__file__), Path(markdown.__file__))
    if target.stat().st_mtime_ns < max(path.stat().st_mtime_ns for path in sources):
        return False
    found = PLACE.findall(target.read_text(encoding="utf-8"))
    return led_to.own | led_to.others <= {name for names in found for name in names}


def make() -> None:
    """Make the notebooks of the pages that changed, and the one to begin with."""
    pages = [page for part in editions.parts().values() for page in part]
    pages = [page for page in pages if place(page).endswith(".ipynb")]
    led_to = places(pages)
    stale = [page for page in pages if not fresh(page, led_to[page])]
    files = (path.relative_to(SITE) for path in SITE.rglob("*.html"))
    known = {path.with_suffix("").as_posix() for path in files}
    for page in stale:
        code, found = code_of(page), article(page, known, led_to[page])
        if len(code) != len(found.select("div.cell")):
            sys.exit(f"{page}.html shows other code: run make book first")
        needed = [v4.new_code_cell(NEEDED, id="needed")] * bool(code)
        text = notebook([*needed, *pieces(found, iter(code), led_to[page])])
        download = SITE / "_sources" / f"{page}.ipynb"
        for target in (*[download] * download.is_file(), MADE / place(page)):
            book.write(target, text)
            target.touch()
    book.write(MADE / "start.ipynb", start())
    if not (MADE / "pages").is_symlink():
        (MADE / "pages").symlink_to("../html", target_is_directory=True)
    print(f"{len(stale)} of {len(pages)} notebooks made in {MADE}")


START = """# {title}

These are the chapters of the book, to run and to change.

* Open a chapter, and choose *Run All Cells* in the menu *Run*. Then try what its
  section *Change it* proposes, or change whatever you like, and run it again.
* ✓ is a sentence that its cell has just checked, ✗ one that your change made false.
* A cell that is folded shows one line and three dots: click on them.
* A figure is there once its cell has run; after `make book`, which runs the cells of
  all chapters, new notebooks come with their figures.
* What you change stays. `make lab` brings new versions only of what you have not
  changed; to get a new version of a chapter that you changed, rename yours.
* Figures that you move with the mouse are on the [pages of the book]({pages})."""


def start() -> str:
    """Write the first notebook: how to use them, and the chapters in their order."""
    said = [START.format(title=title("index"), pages=place("index"))]
    for part, pages in editions.parts().items():
        if part:
            lines = [f"* [{title(page)}]({place(page)})" for page in pages]
            said.append("\n".join((f"## {part}\n", *lines)))
    return notebook([Text([text]) for text in said])


def title(page: str) -> str:
    """Read the title of a page, with its number."""
    head = (
        editions.read(SITE, page)
        .partition("<h1>")[2]
        .partition('<a class="headerlink"')[0]
    )
    return line(markdown.parse(head))


# The reader's copies ------------------------------------------------------------------


def copy() -> None:
    """Bring new versions to where a reader works, but for what the reader changed."""
    made = [path.relative_to(MADE) for path in MADE.rglob("*.ipynb")]
    if not made:
        sys.exit(f"there are no notebooks in {MADE}: run make notebooks first")
    log = COPIES / ".copied.json"
    try:
        copied = json.loads(log.read_text())
    except (OSError, ValueError):  # nothing was copied yet, or nobody knows what
        copied = {}
    try:
        kept = [name.stem for name in sorted(made) if not brought(name, copied)]
        log.write_text(json.dumps(copied, indent=1, sort_keys=True))
    except OSError as error:
        sys.exit(f"{COPIES} must be a folder that you can write to ({error})")
    if kept:
        print(f"Kept as you changed them, though new ones wait: {', '.join(kept)}")


def brought(name: Path, copied: dict[str, str]) -> bool:
    """Bring a notebook, unless its reader changed the copy; say if no new one waits.

    In JupyterLab the pages of the book are under /static: see ``lab``.
    """
    text = (MADE / name).read_text(encoding="utf-8")
    text = re.sub(r"\]\((?:\.\./)*pages/", "](/static/", text)
    target, new, before = COPIES / name, digest(text.encode()), copied.get(str(name))
    if target.exists() and digest(target.read_bytes()) not in (new, before):
        return before == new
    book.write(target, text)
    copied[str(name)] = new
    return True


def digest(content: bytes) -> str:
    """Hash the content of a file."""
    return hashlib.sha256(content).hexdigest()


def lab(*options: str, folder: Path = COPIES) -> list[str]:
    """Give the command that opens JupyterLab on the copies, and serves the built pages.

    Links to pages would else open in JupyterLab's own viewer, without style and
    scripts."""
    own, others = ROOT / "tools" / "jupyter", os.environ.get("JUPYTER_CONFIG_PATH", "")
    os.environ["JUPYTER_CONFIG_PATH"] = f"{own}{os.pathsep}{others}".strip(os.pathsep)
    return [
        *(sys.executable, "-m", "jupyter", "lab"),
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.extra_static_paths={SITE}",
        "--LabApp.default_url=/lab/tree/start.ipynb",
        *options,
    ]


def main(command: str = "make", *options: str) -> None:
    """Run one of the commands of this file's head."""
    if command == "lab":
        os.execv(sys.executable, lab(*options))
    if command not in ("make", "copy") or options:
        sys.exit(__doc__)
    {"make": make, "copy": copy}[command]()


if __name__ == "__main__":
    main(*sys.argv[1:])
