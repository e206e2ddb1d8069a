"""Count what a page asks of its reader: words, minutes, code, claims.

usage: python -m tools.reading [write]

        print a table of all pages of the book
write   set the minutes that the heads of the pages state

Words are those of text, captions and tables, folded notes included; no word is a
formula, code, a claim, an exercise or its solution. A reference to a place counts as two
words, one to a page as its title. Minutes are (words / 150 + 45 seconds for each display
formula and figure + shown lines / 15) times 1.3, and 5 seconds for each formula in a
sentence and 2 minutes for each proof that is not folded. Code lines are not blank; all lines are
those of the notebook, folded or not, and of the helpers in booklib that no other page
and no other program needs. Tables that code makes, and claims, are read from the
notebook beside the script; where that is older than the script's code (marked *) there
are none of the tables, and as many claims as calls.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import nbformat
from sphinx.directives.code import LiteralIncludeReader

from tools import book, editions, sentences
from tools.notebooks import from_source

ROOT = Path(__file__).resolve().parent.parent
WORDS, LINES, SECONDS, AGAIN = 150, 15, 45, 1.3  # AGAIN: a page is read 1.3 times
FORMULAS, PROOFS = 5, 2  # seconds for one in a sentence; minutes for a proof
OTHERS = ("experiments", "benchmarks", "coursework", "lab", "tools")
OPTIONAL = "figures_of_the_paper"  # of the tutorial's pages

WORD = re.compile(r"[^\W_]+(?:[-–'’.,/][^\W_]+)*")
FENCE = re.compile(r"\s*(`{3,}|:{3,}|~{3,})(?:\{([\w:-]+)\}(.*)|.*)$")
ROLE = re.compile(r"\{([\w:-]+)\}`([^`]*)`")
FORMULA = re.compile(r"\s*(\$\$|\\begin\{(\w+\*?)\})")
OPTION = re.compile(r"\s*:([\w-]+):\s*(.*)$")
UNREAD = ("exercise", "solution", "index", "eval-rst", "raw", "bibliography")
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
PICTURES = ("figure", "image", "live")
STATED = re.compile(
    r"(?P<before>Reading: about |)(?P<minutes>\d+)(?P<after> minutes(?! to play)"
    r"[^·\n]*| to read[^·\n]*)"
)
PLAY = re.compile(r"\d+(?: minutes)? to read, (?:about )?(\d+)(?: minutes)? to play")


class Page(NamedTuple):
    """What a page has of each kind."""

    words: int = 0
    pauses: int = 0  # display formulas and figures
    shown: int = 0
    code: int = 0
    claims: int = 0
    exercises: int = 0
    current: bool = True
    formulas: int = 0  # within sentences
    proofs: int = 0

    @property
    def straight(self) -> float:
        """Say how many minutes the text takes where formulas are words and proofs text."""
        straight = self.words / WORDS + self.pauses * SECONDS / 60 + self.shown / LINES
        return AGAIN * straight

    @property
    def minutes(self) -> float:
        """Say how long the page takes to read with a pencil, without playing."""
        return self.straight + self.formulas * FORMULAS / 60 + self.proofs * PROOFS


# Text ---------------------------------------------------------------------------------


class Text:
    """What a text in Markdown holds, counted while it is read."""

    def __init__(self, place: Path):
        self.place, self.words, self.pauses = place, 0, 0
        self.shown, self.exercises, self.formulas, self.proofs = 0, 0, 0, 0

    def read(self, text: str, folded: bool = False) -> None:
        """Count a text, block by block."""
        lines, prose = text.splitlines(), []
        while lines:
            line = lines.pop(0)
            if fence := FENCE.match(line):
                inside = up_to(lines, re.escape(fence[1]) + rf"{fence[1][0]}*\s*")
                self.block(fence[2], fence[3] or "", inside, folded)
            elif formula := FORMULA.match(line):
                self.pauses += 1
                end = (
                    rf".*\\end\{{{re.escape(formula[2])}\}}"
                    if formula[2]
                    else r".*\$\$"
                )
                if not re.match(end, line[formula.end() :]):
                    up_to(lines, end + r".*")
            else:
                prose.append(line)
        self.words += len(WORD.findall(self.plain("\n".join(prose))))

    def block(self, kind: str | None, title: str, lines: list[str], folded: bool):
        """Count a block between fences."""
        options = {}
        while lines and (option := OPTION.match(lines[0])):
            options[option[1]] = option[2]
            lines.pop(0)
        folded = folded or kind == "dropdown" or "dropdown" in options.get("class", "")
        if kind in ("literalinclude", "code-block", "code", None):
            if kind == "literalinclude":
                lines = included(self.place.parent / title.strip(), options)
            self.shown += 0 if folded else number_of_lines("\n".join(lines))
        elif kind == "math":
            self.pauses += 1
        elif kind in UNREAD:
            self.exercises += kind == "exercise"
        elif title.strip() != "page-head":
            self.pauses += kind in PICTURES
            self.proofs += kind == "prf:proof" and not folded
            if kind not in PICTURES:
                self.words += len(WORD.findall(self.plain(title)))
            self.read("\n".join(lines), folded)

    def plain(self, text: str) -> str:
        """Leave of a text the words that are read."""
        text = re.sub(
            r"^\([\w-]+\)=$|^%.*$|<!--.*?-->|<[/\w][^>`]*>(?!`)", "", text, flags=re.M
        )
        text = ROLE.sub(lambda role: f" {said(role[1], role[2])} ", text)
        text, formulas = re.subn(r"(?<!\\)\$[^$]*\$", " ", text)
        self.formulas += formulas
        text = re.sub(r"`+[^`]*`+|\[\^[\w-]+\]", " ", text)
        self.pauses += len(re.findall(r"!\[", text))
        return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def up_to(lines: list[str], end: str) -> list[str]:
    """Take from lines those before one that matches, and that one away."""
    taken = []
    while lines and not re.fullmatch(end, line := lines.pop(0).rstrip()):
        taken.append(line)
    return taken


def said(role: str, text: str) -> str:
    """Give the words that stand on the page in the place of a role."""
    words, _, target = text.partition("<")
    if target and role not in ("eq", "numref", "math"):
        return words
    if role == "doc":
        sources = (ROOT / f"{text.strip('/')}{end}" for end in (".py", ".md"))
        return next(map(book.title, filter(Path.is_file, sources)), "a page")
    if role in ("term", "abbr", "kbd", "sub", "sup"):
        return text
    if role == "c":
        return "0.1"
    return "" if role in ("math", "index", "code") else "Figure 1"


def included(path: Path, options: dict[str, str]) -> list[str]:
    """Read what a listing of a file shows."""
    choice = {
        name: int(value) if value.isdigit() else value
        for name, value in options.items()
    }
    found = LiteralIncludeReader(
        str(path), choice, SimpleNamespace(source_encoding="utf-8")
    )
    return found.read()[0].splitlines()


def number_of_lines(code: str) -> int:
    """Count the lines that are not blank."""
    return sum(bool(line.strip()) for line in code.splitlines())


# Pages --------------------------------------------------------------------------------


def source(page: str, root: Path = ROOT) -> Path | None:
    """Find the source of a page; a page that the build writes has none."""
    paths = (root / f"{page}{ending}" for ending in (".py", ".md"))
    return next(filter(Path.is_file, paths), None)


def cells(path: Path) -> list[nbformat.NotebookNode]:
    """Read the cells of a page; one without code is one text."""
    if path.suffix == ".py" or "{code-cell}" in path.read_text():
        return from_source(path).cells
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(), flags=re.S)
    return [nbformat.v4.new_markdown_cell(text)]


def count(path: Path, helpers: int = 0) -> Page:
    """Count a page, with so many lines of helpers that only it uses."""
    found, text = cells(path), Text(path)
    text.read("\n".join(c.source for c in found if c.cell_type == "markdown"))
    code = [cell for cell in found if cell.cell_type == "code"]
    for cell in code:
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            text.pauses += 1
            text.read(figure.get("caption", ""))
    shown = [cell for cell in code if not set(cell.metadata.get("tags", ())) & HIDDEN]
    # an .md page has no notebook beside it, and no tables made by code
    outputs = put_out(path, [c.source for c in code]) if path.suffix == ".py" else []
    made = [one for put in outputs or () for one in sentences.recorded(put)]
    claims = list(filter(sentences.is_check, made))
    if outputs is None:
        source = "\n".join(cell.source for cell in code)
        claims = re.findall(r"^\s*(?:claim|check)\(", source, re.M)
    tables = [table_of(put) for put in outputs or () if not sentences.recorded(put)]
    text.words += sum(len(WORD.findall(table)) for table in tables)
    return Page(
        text.words,
        text.pauses,
        text.shown + sum(number_of_lines(cell.source) for cell in shown),
        sum(number_of_lines(cell.source) for cell in code) + helpers,
        len(claims),
        text.exercises,
        outputs is not None,
        text.formulas,
        text.proofs,
    )


def put_out(path: Path, code: list[str]) -> list[nbformat.NotebookNode] | None:
    """Read what a page's code has put out, if it is still the same code."""
    target = path.with_suffix(".ipynb")
    if not target.is_file():
        return None
    notebook = nbformat.read(target, 4)
    if [cell.source for cell in book.code_cells(notebook)] != code:
        return None
    return book.all_outputs(notebook)


def table_of(output: nbformat.NotebookNode) -> str:
    """Read the text of an output, which is none of a figure."""
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return "" if text.startswith("<Figure") else text


# Helpers ------------------------------------------------------------------------------

Name = tuple[str, str]  # of a module, and of what it defines


def names_in(tree: ast.AST, module: str, own: set[str], imported: dict) -> set[Name]:
    """List what a piece of code uses of booklib."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id in own:
                found.add((module, node.id))
            found |= {imported[node.id]} if node.id in imported else set()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            whole = imported.get(node.value.id)
            if whole and not whole[1]:
                found.add((whole[0], node.attr))
    return found


def imports(tree: ast.AST) -> dict[str, Name]:
    """List what a program imports from booklib; of a whole module the name is empty."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "booklib"
        ):
            for name in node.names:
                pair = (node.module.partition(".")[2], name.name)
                found[name.asname or name.name] = pair if pair[0] else (name.name, "")
    return found


def defined(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """List what a module defines."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                yield target.id, node


def length(node: ast.stmt, lines: list[str]) -> int:
    """Count the lines of a definition, without what documents it."""
    start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    documented = 0
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            inner
        ):
            text = inner.body[0]
            documented += number_of_lines(
                "\n".join(lines[text.lineno - 1 : text.end_lineno])
            )
    return number_of_lines("\n".join(lines[start - 1 : node.end_lineno])) - documented


@cache
def helpers(root: Path = ROOT) -> dict[Path, int]:
    """Count for each page the lines of what it alone uses of booklib."""
    uses, lengths = {}, {}
    for path in sorted((root / "booklib").rglob("*.py")):
        tree, lines = ast.parse(path.read_text()), path.read_text().splitlines()
        own, imported = {name for name, _ in defined(tree)}, imports(tree)
        module = ".".join(path.relative_to(root / "booklib").with_suffix("").parts)
        module = module.removesuffix(".__init__")
        for name, node in defined(tree):
            uses[module, name] = names_in(node, module, own, imported)
            lengths[module, name] = length(node, lines)
    users: dict[Name, set] = {name: set() for name in uses}
    pages = book.executed_pages(root)
    programs = [path for folder in OTHERS for path in (root / folder).rglob("*.py")]
    for path in (*pages, *programs):
        code = path.read_text()
        if path in pages:
            code = "\n".join(c.source for c in book.code_cells(from_source(path)))
        tree = ast.parse(code)
        waiting = list(names_in(tree, "", set(), imports(tree)))
        while waiting:
            name = waiting.pop()
            if path not in users.get(name, {path}):
                users[name].add(path)
                waiting += uses[name]
    return {
        page: sum(lengths[name] for name, who in users.items() if who == {page})
        for page in pages
    }


# The book -----------------------------------------------------------------------------


@cache
def pages(root: Path = ROOT) -> dict[str, Page]:
    """Count all pages of the table of contents, in its order."""
    found = [page for part in editions.parts().values() for page in part]
    sources = {page: source(page, root) for page in found}
    alone = helpers(root)
    return {
        page: count(path, alone.get(path, 0)) for page, path in sources.items() if path
    }


def twelve() -> list[str]:
    """List the pages of the tutorial that are not optional."""
    part = next(iter(part for name, part in editions.parts().items() if name))
    return [page for page in part if not page.endswith(OPTIONAL)]


def stated(path: Path) -> float | None:
    """Read how many minutes the head of a page states."""
    head = re.search(r"page-head\n(?:# )?(.*)", path.read_text())
    found = STATED.search(head[1]) if head else None
    return float(found["minutes"]) if found else None


def write(path: Path, minutes: float) -> None:
    """Set the minutes in the head of a page, and in its notebook."""
    for target in (path, path.with_suffix(".ipynb")):
        if target.suffix == path.suffix or target.is_file():
            text = target.read_text()
            start = text.find("{div} page-head")
            new = STATED.sub(
                rf"\g<before>{minutes:.0f}\g<after>", text[start:], count=1
            )
            target.write_text(text[:start] + new)


def table() -> Iterator[str]:
    """Write the table of all pages, a line each."""
    heads = ("words", "minutes", "stated", "shown", "code", "claims", "exercises")
    counted = pages()
    for part, names in editions.parts().items():
        yield f"{part or 'Front page':44}" + "".join(f"{head:>10}" for head in heads)
        for name in filter(counted.get, names):
            page, said = counted[name], stated(source(name))
            cells = (f"{page.minutes:.0f}", "" if said is None else f"{said:.0f}")
            cells = (
                page.words,
                *cells,
                page.shown,
                page.code,
                page.claims,
                page.exercises,
            )
            label = name.removeprefix("book/") + "*" * (not page.current)
            yield f"  {label:42}" + "".join(f"{cell:>10}" for cell in cells)
        yield ""
    of_tutorial = [counted[name] for name in twelve()]
    yield (
        f"The {len(of_tutorial)} pages of the tutorial: "
        f"{sum(page.words for page in of_tutorial)} words, "
        f"{sum(page.minutes for page in of_tutorial) / 60:.1f} hours"
    )


def main(*options: str) -> None:
    """Run one of the commands of this file's head."""
    if options == ("write",):
        for name, page in pages().items():
            if stated(source(name)) is not None:
                write(source(name), page.minutes)
    elif options:
        sys.exit(__doc__)
    else:
        print(*table(), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
