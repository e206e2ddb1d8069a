"""Solutions and hidden tests are nowhere that a student looks: the built book, its
sources, its search index, the student edition.
"""

import functools
import html
import json
import re
from pathlib import Path

import nbformat
import pytest

from coursework.engine import edition, pairs
from coursework.engine.pairs import task_of
from tools import book

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
REGIONS = ("SOLUTION", "HIDDEN TESTS")
MARKS = [f"{side} {region}" for side in ("BEGIN", "END") for region in REGIONS]
MARKS.append("**Rubric.**")


@functools.cache
def lines(item):
    """Split an assignment into the lines of its solutions, rubrics and hidden tests,
    and all others.
    """
    secret, shown = set(), set()
    for cell in item.read().cells:
        inside = False
        for line in cell.source.splitlines():
            if any(mark in line for mark in MARKS[:4]):
                inside = "BEGIN" in line
            else:
                (secret if inside else shown).add(line.strip())
    return secret, shown


@functools.cache
def public():
    """Read what anybody may see: the package, the chapters, and what the assignments
    themselves show.
    """
    modules = [path for name in pairs.PACKAGES for path in (ROOT / name).rglob("*.py")]
    sources = [*modules, *book.chapters(), *(ROOT / "book").glob("*/*.md")]
    shown = ["\n".join(lines(item)[1]) for item in pairs.assignments()]
    return "\n".join([path.read_text() for path in sources] + shown)


@functools.cache
def secret_phrases(item):
    """List what would give an assignment away: of each line of its secrets the longest
    piece without markup, if it is not public.
    """
    markup = re.compile(r"""[$*`\\"'“”‘’{}<>&]""")
    pieces = {max(markup.split(line), key=len).strip() for line in lines(item)[0]}
    return {piece for piece in pieces if len(piece) >= 25 and piece not in public()}


def texts(folder):
    """Read what is readable in a folder, pages and notebooks as their readers see them;
    but not the files of the theme.
    """
    unread = {".png", ".svg", ".inv", ".npz", ".pt"}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix in unread or "_static" in path.parts:
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".html":
            text = html.unescape(re.sub(r"<[^>]*>", "", text))
        if path.suffix == ".ipynb":
            sources = ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
            text = "\n".join([text, *sources])
        yield path, text


def leaks(folder, marks=MARKS):
    """List where a folder shows a secret, or one of the marks around them."""
    phrases = [
        *marks,
        *(one for item in pairs.assignments() for one in secret_phrases(item)),
    ]
    return [
        (str(path.relative_to(folder)), phrase)
        for path, text in texts(folder)
        for phrase in phrases
        if phrase in text
    ]


@pytest.fixture(scope="module")
def student_edition(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edition") / "student"
    edition.release(folder)
    return folder


@pytest.mark.parametrize("item", pairs.assignments(), ids=lambda item: item.name)
def test_there_are_secrets_to_look_for(item):
    assert len(secret_phrases(item)) > 30
    for cell in item.read().cells:
        if cell.cell_type == "code" and cell.metadata.nbgrader.grade:
            assert "BEGIN HIDDEN TESTS" in cell.source


def test_the_student_edition_has_none(student_edition):
    assert leaks(student_edition) == []


@pytest.mark.parametrize("suffix", [".txt", ".ipynb", ".html"])
def test_the_scan_would_find_one(tmp_path, suffix):
    source = pairs.assignments()[0].read()
    text = "\n".join(cell.source for cell in source.cells)
    page = {".txt": text, ".ipynb": nbformat.writes(source)}
    marked_up = html.escape(text).replace(" = ", "</span> = <span>")
    page[".html"] = f"<p>{marked_up}</p>"
    (tmp_path / f"page{suffix}").write_text(page[suffix])
    found = {phrase for _, phrase in leaks(tmp_path)}
    ours = secret_phrases(pairs.assignments()[0])
    all_of_them = {one for item in pairs.assignments() for one in secret_phrases(item)}
    # another assignment may have a phrase that stands within a line of this one
    assert found == {*MARKS, *ours, *(one for one in all_of_them if one in text)}


@pytest.fixture(scope="module")
def site():
    assert SITE.exists(), "there is no built site: say make book first"
    return SITE


def test_the_built_book_and_its_sources_have_none(site):
    assert leaks(site) == []
    assert [path for path in site.rglob("*") if "coursework" in str(path)] == []


def test_the_search_index_has_none(site):
    index = (site / "searchindex.js").read_text()
    assert "book/practice/teaching" in index and "coursework/" not in index

    def words(text):
        return set(re.findall(r"[a-z_]{8,}", text.lower()))

    hidden = [line for item in pairs.assignments() for line in lines(item)[0]]
    pages = [text for path, text in texts(site) if path.name != "searchindex.js"]
    secret = words("\n".join(hidden)) - words(public()) - words("\n".join(pages))
    assert len(secret) > 20
    assert {word for word in secret if f'"{word}"' in index} == set()


def test_the_student_edition_is_complete(student_edition):
    for item in pairs.assignments():
        path = student_edition / item.name / f"{item.notebook}.ipynb"
        notebook = nbformat.read(path, 4)
        nbformat.validate(notebook)
        # a student's notebook has no script beside it
        assert "jupytext" not in notebook.metadata
        ids = [task_of(cell) for cell in notebook.cells]
        assert ids == [task_of(cell) for cell in item.read().cells]
        assert not any(cell.get("outputs") for cell in notebook.cells)
        for path in item.files():
            copy = student_edition / item.name / path.name
            assert copy.read_bytes() == path.read_bytes()
    for name in ("README.md", "Makefile", "summary.py", "LICENSE", "sgmc", "booklib"):
        assert (student_edition / name).exists()
    needs = (student_edition / "requirements.txt").read_text().splitlines()[1:]
    assert needs and set(needs) <= set((ROOT / "requirements.txt").read_text().split())
