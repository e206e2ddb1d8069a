"""The form of chapters: what a reader finds in each, and that code, figures and claims
stand where they should.
"""

import re
from pathlib import Path

import pytest

from tests.book.test_visible_code import PAGES as VISIBLE
from tools import book
from tools.notebooks import from_source

CHAPTERS = {path.stem: from_source(path).cells for path in book.chapters()}
PAGES = (
    "errata",
    "my_layer",
    "my_model",
    "my_targets",
    "recipes",
    "what_should_i_use",
    "recipes_networks",
    "sgnuts_measured",
    "sources",
    "when_it_goes_wrong",
)  # of a form of their own
TEXT = "\n".join(
    path.read_text()
    for path in Path(book.ROOT / "book").rglob("*")
    if path.suffix in (".md", ".py")
)


def prose(cells):
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def tags(cell):
    return cell.metadata.get("tags", [])


def test_what_folds_has_a_title():
    """On which its button stands; a `prf:proof` has none."""
    assert not re.findall(r"\{prf:proof\}\n(?:# )?:class: dropdown", TEXT)


@pytest.mark.parametrize("name", CHAPTERS)
def test_claims_are_folded_away_and_readers_may_play(name):
    """A page whose visible code makes its result shows its own claim."""
    code = [cell for cell in CHAPTERS[name] if cell.cell_type == "code"]
    open_claims = [
        cell.source
        for cell in code
        if re.search(r"^\s*(?:claim|check)\(", cell.source, re.M)
        and "hide-input" not in tags(cell)
    ]
    assert open_claims == [] or name in VISIBLE
    assert any("\nplay()" in cell.source for cell in code[:2])


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_figure_is_all_that_its_cell_puts_out(name):
    """A second output, but for what is printed, would have the figure's name, too."""
    for cell in CHAPTERS[name]:
        if "figure" in cell.metadata.get("mystnb", {}):
            assert not re.search(
                r"^\s*(?:claim|check|show_table|show_row)\(", cell.source, re.M
            )


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_figure_is_described_and_referred_to(name):
    for cell in CHAPTERS[name]:
        options = cell.metadata.get("mystnb", {})
        shows = re.search(r"^(plt\.show|show_frames)\(", cell.source, re.M)
        assert cell.cell_type == "markdown" or bool(shows) == ("figure" in options), (
            f"a figure without a caption: {cell.source[-200:]}"
        )
        if "figure" in options:
            figure = options["figure"]
            alt = options.get("image", {}).get("alt", "")
            assert figure["caption"] and (
                len(alt) > 40 or "show_frames" in cell.source
            ), f"{figure['name']} has no description"
            assert f"{{numref}}`{figure['name']}`" in TEXT, (
                f"no sentence refers to {figure['name']}"
            )


@pytest.mark.parametrize(
    "path", [path for path in book.chapters() if path.parent.name == "tutorial"]
)
def test_what_a_reader_is_told_to_set_is_in_the_code(path):
    cells = CHAPTERS[path.stem]
    proposals = prose(cells).partition("\n## Change it\n")[2].partition("\n## ")[0]
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    told = re.findall(r"^\* Set `([^`]+)`", proposals, re.M)
    assert [words for words in told if words not in code] == []


@pytest.mark.parametrize("name", [name for name in CHAPTERS if name not in PAGES])
def test_every_chapter_says_what_it_asks_for_and_what_to_try(name):
    text = prose(CHAPTERS[name])
    level, reading, running = (
        r"(Level: (first course|second course|advanced)|Page \d+ of 12|Optional)",
        r"(Reading: about \d+ minutes|\d+ minutes to read, \d+ to play).*",
        r"Running: about \d+ .*",
    )
    assert re.search(
        rf"^```\{{div\}} page-head\n{level} · {reading} · {running}$", text, re.M
    ), "no head"
    sections = re.findall(r"^## (.*)$", text, re.M)
    order = ["Change it", "Exercises", "Further reading"]
    assert [section for section in sections if section in order] == order
    assert "Write it yourself" in text
    assert (
        len(
            re.findall(
                r"^\* ",
                text.partition("\n## Change it\n")[2].partition("\n## ")[0],
                re.M,
            )
        )
        >= 2
    )
