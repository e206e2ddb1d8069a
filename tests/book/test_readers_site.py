"""The reader's notebooks of the whole book: they say what its pages say. ``make test``
builds it first.
"""

import functools
import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from tools import book, editions

ROOT = Path(__file__).resolve().parents[2]
SITE, MADE = ROOT / "_build" / "html", ROOT / "_build" / "notebooks"
NO_NOTEBOOK = {
    "book/appendix/claims",
    "book/appendix/execution_status",
    "book/appendix/sandbox",
    "book/appendix/settings",
}
PAGES = [
    page
    for part in editions.parts().values()
    for page in part
    if "/api" not in page and page != "index"
]
PAGES = [page for page in PAGES if page not in NO_NOTEBOOK]
MARKDOWN = (
    MarkdownIt("commonmark", {"html": True})
    .enable("table")
    .use(dollarmath_plugin, allow_space=False, double_inline=True)
)
NOT_SAID = (
    "a.headerlink, script, style, button, details.hide, .cell_input, figure.live > "
    "img, .backrefs"
)


@pytest.fixture(scope="module")
def notebooks():
    missing = [page for page in PAGES if not path_of(page).is_file()]
    assert missing == [], "say make notebooks first"
    return {page: nbformat.read(path_of(page), 4) for page in PAGES}


def path_of(page):
    return MADE / f"{page.removeprefix('book/')}.ipynb"


def texts(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def without_code(text):
    return re.sub(r"```.*?```|`[^`\n]+`", "", text, flags=re.DOTALL)


def test_every_chapter_and_every_page_of_text_has_a_notebook_and_no_other(notebooks):
    assert {
        f"{path.relative_to(ROOT).with_suffix('')}" for path in book.chapters()
    } <= set(PAGES)
    made = {path.relative_to(MADE).as_posix() for path in MADE.rglob("*.ipynb")}
    assert made == {path_of(page).relative_to(MADE).as_posix() for page in PAGES} | {
        "start.ipynb"
    }
    for notebook in notebooks.values():
        nbformat.validate(notebook)
        assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_code_is_that_of_the_sources_and_folded_as_there(notebooks):
    for path in book.chapters():
        page = path.relative_to(ROOT).with_suffix("").as_posix()
        source, made = (
            book.code_cells(notebook)
            for notebook in (book.from_source(path), notebooks[page])
        )
        assert made.pop(0).id == "needed"
        assert [cell.source for cell in made] == [cell.source for cell in source], page
        folded = ["hide-input" in cell.metadata.get("tags", ()) for cell in source]
        assert [
            cell.metadata.get("jupyter", {}).get("source_hidden", False)
            for cell in made
        ] == folded, page


class Page(NamedTuple):
    """What a page shows."""

    said: str
    images: int
    claims: int
    download: Path


@functools.cache
def shown(page):
    """Read what a page says, formulas as TeX and each after its number; and what else
    it shows.
    """
    whole = BeautifulSoup((SITE / f"{page}.html").read_text(), "html.parser")
    article = whole.select_one("article.bd-article")

    for element in article.select(NOT_SAID):
        element.decompose()
    others = {
        "images": len(article.select(".cell_output figure img:not([hidden])")),
        "claims": len(article.select(".cell_output .claim")),
        "download": (SITE / page).parent
        / whole.select_one("a.btn-download-source-button")["href"],
    }
    for output in article.select(".cell_output"):
        captions = [caption.extract() for caption in output.select("figcaption")]
        output.clear()
        output.extend(captions)
    return Page(plain(article.get_text()), **others)


def plain(text):
    """Take away what a reader does not see as a difference: spaces, and other words for
    the same sign in a formula.
    """
    text = re.sub(r"\\(begin|end)\{split\}|\\[\[\]()]", "", text)
    for other, sign in ((r"\Vert", "|"), (r"\vert", "|"), (r"\|", "|")):
        text = text.replace(other, sign)
    return re.sub(r"\s+", "", text)


def rendered(notebook):
    """Render the Markdown of a notebook, but for its formulas."""
    return BeautifulSoup("".join(map(MARKDOWN.render, texts(notebook))), "html.parser")


def said_in(notebook):
    """Read what a notebook says."""
    page = rendered(notebook)
    for formula in page.select("div.math, span.math"):
        number = re.search(r"\\tag\{(.+?)\}", formula.get_text())
        if number:
            formula.string = f"({number[1]}){formula.get_text().replace(number[0], '')}"
    return plain(page.get_text()).replace("Moveitonthepageofthebook.", "")


@pytest.mark.parametrize("page", PAGES)
def test_a_notebook_says_what_its_page_says(notebooks, page):
    expected, found = shown(page).said, said_in(notebooks[page])
    assert len(expected) > 1_000
    place = next(
        (
            i
            for i, (one, other) in enumerate(zip(expected, found, strict=False))
            if one != other
        ),
        None,
    )
    assert found == expected, (
        f"{expected[place - 60 : place + 60]!r} became "
        f"{found[place - 60 : place + 60]!r}"
    )


def test_outputs_are_those_of_the_pages(notebooks):
    """As many figures and claims as the page shows; no standard error, and no film."""
    for page, notebook in notebooks.items():
        outputs = book.all_outputs(notebook)
        data = [output.get("data", {}) for output in outputs]
        assert sum("image/png" in kinds for kinds in data) == shown(page).images, page
        assert (
            sum(
                line.startswith("✓ ")
                for kinds in data
                for line in kinds.get("text/plain", "").splitlines()
            )
            == shown(page).claims
        ), page
        assert not any(
            output.get("name") == "stderr" or 'class="frames"' in str(output)
            for output in outputs
        ), page


def test_every_link_leads_to_what_is_there(notebooks):
    everything = {path_of(page): notebook for page, notebook in notebooks.items()}
    everything[MADE / "start.ipynb"] = nbformat.read(MADE / "start.ipynb", 4)
    places = {
        path: {cell.id for cell in notebook.cells}
        | set(re.findall(r' id="([^"]+)"', str(texts(notebook))))
        for path, notebook in everything.items()
    }
    wrong, count = [], 0
    for path, notebook in everything.items():
        for target in re.findall(
            r"\]\(((?!https?:)[^)\s]+)\)", "\n".join(map(without_code, texts(notebook)))
        ):
            count += 1
            other, _, name = target.partition("#")
            file = (path.parent / other) if other else path
            known = places.get(Path(str(file.resolve())), set())
            if file.suffix == ".html" and file.is_file():
                known = {name} if f'id="{name}"' in file.read_text() else set()
            if not file.is_file() or (
                name and name.removeprefix("cell-id=") not in known
            ):
                wrong.append(f"{path.relative_to(MADE)}: {target}")
    assert count > 20 * len(everything)  # the links are found at all
    assert wrong == []


def test_the_button_of_a_page_gives_its_notebook_or_its_text():
    for page in PAGES:
        target = shown(page).download
        assert target.is_file()
        if (ROOT / f"{page}.py").is_file():
            assert (
                target.suffix == ".ipynb"
                and target.read_bytes() == path_of(page).read_bytes()
            )
        else:
            assert target.suffix == ".md"
