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

from tools import book
from tools.coursework import edition, pairs

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
MARKS = (
    "BEGIN SOLUTION",
    "END SOLUTION",
    "BEGIN HIDDEN TESTS",
    "END HIDDEN TESTS",
    "**Rubric.**",
)
REGIONS = {"SOLUTION", "HIDDEN TESTS"}


@functools.cache
def lines(item):
    """Split an assignment into the lines of its solutions, rubrics and hidden tests,
    and all others.
    """
    secret, shown = set(), set()
    for cell in item.read().cells:
        inside = False
        for line in cell.source.splitlines():
            if any(f"BEGIN {region}" in line for region in REGIONS):
                inside = True
            elif any(f"END {region}" in line for region in REGIONS):
                inside = False
            else:
                (secret if inside else shown).add(line.strip())
    return secret, shown


@functools.cache
def public():
    """Read what anybody may see: the package, the chapters, and what the assignments
    themselves show.
    """
    sources = [
        *(ROOT / "sgmc").rglob("*.py"),
        *(ROOT / "booklib").rglob("*.py"),
        *book.chapters(),
        *(ROOT / "book").glob("*/*.md"),
    ]
    return "\n".join(
        [path.read_text() for path in sources]
        + ["\n".join(lines(item)[1]) for item in pairs.assignments()]
    )


@functools.cache
def secret_phrases(item):
    """List what would give an assignment away: of each line of its secrets the longest
    piece without markup, if it is not public.
    """
    pieces = {
        max(re.split(r"""[$*`\\"'“”‘’{}<>&]""", line), key=len).strip()
        for line in lines(item)[0]
    }
    return {piece for piece in pieces if len(piece) >= 25 and piece not in public()}


def texts(folder):
    """Read everything readable in a folder, pages and notebooks as their readers see
    them; but not the files of the theme.
    """
    for path in sorted(folder.rglob("*")):
        if (
            not path.is_file()
            or "_static" in path.parts
            or path.suffix in (".png", ".svg", ".inv", ".npz", ".pt")
        ):
            continue
        text = path.read_text(errors="replace")
        if path.suffix == ".html":
            text = html.unescape(re.sub(r"<[^>]*>", "", text))
        if path.suffix == ".ipynb":
            text += "\n" + "\n".join(
                "".join(cell["source"]) for cell in json.loads(text)["cells"]
            )
        yield path, text


def leaks(folder, marks=MARKS):
    """List where a folder shows a secret, or one of the marks around them."""
    phrases = [
        *marks,
        *(phrase for item in pairs.assignments() for phrase in secret_phrases(item)),
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
    graded = [
        cell
        for cell in item.read().cells
        if cell.cell_type == "code" and cell.metadata.nbgrader.grade
    ]
    assert all("BEGIN HIDDEN TESTS" in cell.source for cell in graded)


def test_the_student_edition_has_none(student_edition):
    assert leaks(student_edition) == []


@pytest.mark.parametrize("suffix", [".txt", ".ipynb", ".html"])
def test_the_scan_would_find_one(tmp_path, suffix):
    source = pairs.assignments()[0].read()
    page = {
        ".txt": "\n".join(cell.source for cell in source.cells),
        ".ipynb": nbformat.writes(source),
    }
    page[".html"] = (
        "<p>" + html.escape(page[".txt"]).replace(" = ", "</span> = <span>") + "</p>"
    )
    (tmp_path / f"page{suffix}").write_text(page[suffix])
    found = {phrase for _, phrase in leaks(tmp_path)}
    assert found == {*MARKS, *secret_phrases(pairs.assignments()[0])}


@pytest.fixture(scope="module")
def site():
    assert SITE.exists(), "there is no built site: say make book first"
    return SITE


def test_the_built_book_and_its_sources_have_none(site):
    assert leaks(site, marks=()) == []
    # the page that tells a lecturer what the marks are
    explained = {"practice/teaching"}
    assert {
        path
        for path, _ in leaks(site, MARKS)
        if not any(page in path for page in explained)
    } == set()
    assert [path for path in site.rglob("*") if "book/assignments/" in str(path)] == []


def test_the_search_index_has_none(site):
    index = (site / "searchindex.js").read_text()
    assert "book/practice/teaching" in index and "book/assignments/" not in index

    def words(text):
        return set(re.findall(r"[a-z_]{8,}", text.lower()))

    secret = set().union(
        *(words(line) for item in pairs.assignments() for line in lines(item)[0])
    )
    elsewhere = words(public()) | words(
        "\n".join(text for path, text in texts(site) if path.name != "searchindex.js")
    )
    assert len(secret - elsewhere) > 20
    assert {word for word in secret - elsewhere if f'"{word}"' in index} == set()


def test_the_student_edition_is_complete(student_edition):
    for item in pairs.assignments():
        notebook = nbformat.read(
            student_edition / item.name / f"{item.notebook}.ipynb", 4
        )
        nbformat.validate(notebook)
        # a student's notebook has no script beside it
        assert "jupytext" not in notebook.metadata
        assert [
            cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells
        ] == [pairs.task_of(cell) for cell in item.read().cells]
        assert not any(cell.get("outputs") for cell in notebook.cells)
        for path in item.files():
            assert (
                student_edition / item.name / path.name
            ).read_bytes() == path.read_bytes()


def test_every_code_cell_has_an_id_and_points_add_up():
    for item in pairs.assignments():
        cells = item.read().cells
        ids = [pairs.task_of(cell) for cell in cells if pairs.task_of(cell)]
        assert len(ids) == len(set(ids)), f"{item.name} has an id twice"
        assert all(pairs.task_of(cell) for cell in cells if cell.cell_type == "code"), (
            f"{item.name} has a code cell without an id"
        )
        graded = [
            cell.metadata.nbgrader
            for cell in cells
            if cell.metadata.get("nbgrader", {}).get("grade")
        ]
        assert sum(cell.points for cell in graded) == 100


def test_the_pairs_of_the_assignments_are_in_step():
    assert pairs.problems() == []
