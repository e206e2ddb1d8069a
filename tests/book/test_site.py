"""The built site: every page there, no error shown, nothing loaded from elsewhere.
``make test`` builds it first.
"""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
import yaml

from tests.lab.pages import run_node
from tools import book, sentences

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"


def moved():
    """Give the addresses that pages had, with those that they have."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    return config["sphinx"]["config"]["redirects"]


@pytest.fixture(scope="module")
def pages():
    found = {path: path.read_text() for path in sorted(SITE.rglob("*.html"))}
    assert found, "there is no built site: say make book first"
    return found


def test_no_page_shows_an_error(pages):
    marks = (
        "Traceback (most recent call last)",
        "output traceback",
        'class="problematic"',
        "mystnb-exec-error",
    )
    shown = [
        (str(path), mark)
        for path, text in pages.items()
        for mark in marks
        if mark in text and "appendix/api" not in path.as_posix()
    ]
    assert shown == []


class Loads(HTMLParser):
    """Collect what a browser would load for a page: scripts, style sheets, images,
    fonts; not what a reader may click on.
    """

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in (
            "script",
            "img",
            "iframe",
            "source",
            "video",
            "audio",
            "embed",
        ) and attributes.get("src"):
            self.addresses.append(attributes["src"])
        if tag == "link" and attributes.get("rel") not in (
            "canonical",
            "next",
            "prev",
            "search",
            "index",
            "author",
            "license",
        ):
            self.addresses.append(attributes.get("href") or "")
        self.addresses += re.findall(r"url\((.*?)\)", attributes.get("style") or "")


def loaded_from_elsewhere(text):
    parser = Loads()
    parser.feed(text)
    return [
        address for address in parser.addresses if re.match(r"(https?:)?//", address)
    ]


def test_no_page_loads_anything_from_elsewhere(pages):
    found = {str(path): loaded_from_elsewhere(text) for path, text in pages.items()}
    assert {path: addresses for path, addresses in found.items() if addresses} == {}
    imported = [
        (str(path), address)
        for path in SITE.rglob("*.css")
        for address in re.findall(
            r"""(?:@import|url\()\s*["']?((?:https?:)?//[^"')]+)""", path.read_text()
        )
    ]
    assert imported == []


def test_the_page_of_claims_lists_exactly_the_claims_of_the_book(pages):
    """Each with the value, bound and kind that its own page shows."""
    rows = re.findall(
        r'<tr data-kind="(\w+)"><td>✓ <a '
        r'href="\.\./([^"]+)#claim-([^"]+)">.*?</a></td>'
        r"<td>(.*?)</td><td>(.*?)</td><td>(\w+)</td>",
        pages[SITE / "book" / "appendix" / "claims.html"],
        re.DOTALL,
    )
    stored = [
        (f"{path.parent.name}/{path.stem}.html", record)
        for path in book.chapters()
        for record in sentences.records(nbformat.read(path.with_suffix(".ipynb"), 4))
    ]
    assert [(page, name) for _, page, name, *_ in rows] == [
        (page, record["name"]) for page, record in stored
    ]
    for (kind, page, name, bound, measured, word), (_, record) in zip(
        rows, stored, strict=True
    ):
        assert kind == word == record["kind"]
        assert bound == html.escape(record["words"])
        shown = re.findall(
            rf'<div class="claim" id="claim-{name}">(.*?)</div>',
            pages[SITE / "book" / page],
            re.DOTALL,
        )
        said = f'<span class="measured">measured {measured}</span>'
        assert any(said in row for row in shown), (page, name)


def test_the_page_of_times_names_every_chapter_in_words(pages):
    page = pages[SITE / "book" / "appendix" / "execution_status.html"]
    links = {
        f'href="../{path.parent.name}/{path.stem}.html"'.replace("../appendix/", "")
        for path in book.chapters()
    }
    assert [link for link in links if link not in page] == []
    assert page.count(">passed<") == len(book.executed_pages())


# Where a reader finds what they look for, in the words that they look for it with.
ANSWERS = {
    "save samples": "practice/recipes",
    "checkpoint": "practice/recipes",
    "credible interval": "practice/recipes",
    "predict": "practice/recipes",
    "GPU": "practice/recipes_networks",
    "memmap": "practice/recipes",
    "batch size": "practice/tuning",
    "warm-up": "appendix/glossary",
    "burn-in": "practice/tuning",
    "learning rate schedule": "further/falling_steps",
    "SGHMC": "tutorial/sghmc",
    "NUTS": "tutorial/no_u_turn",
}
FIND = """
const read = (name) => require("fs").readFileSync(%s + "/" + name, "utf8");
globalThis.document = { getElementById: () => null };
globalThis._ready = () => {};
globalThis._ = (words) => words;
globalThis.SPHINX_HIGHLIGHT_ENABLED = false;
const scripts = ["_static/language_data.js", "_static/searchtools.js", "_static/search.js", "searchindex.js"];
const find = (0, eval)(scripts.map(read).join("\\n").replaceAll('"use strict";', "") +
  "; (words) => Search._performSearch(...Search._parseQuery(words)).reverse()");
console.log(JSON.stringify(%s.map((words) => find(words).map((hit) => hit[0] + hit[2]))));
"""


def places(*queries):
    """The places that the site's own search lists for each query, best first."""
    return json.loads(run_node(FIND % (json.dumps(str(SITE)), json.dumps(queries))))


def hits(*queries):
    """The pages of these places."""
    return [[hit.partition("#")[0] for hit in found] for found in places(*queries)]


def test_the_search_finds_the_page_that_answers(pages):
    first = {
        words: [hit.removeprefix("book/") for hit in found[:3]]
        for words, found in zip(ANSWERS, hits(*ANSWERS), strict=True)
    }
    missed = {w: found for w, found in first.items() if ANSWERS[w] not in found}
    assert missed == {}


def test_the_search_does_not_find_folded_code(pages):
    folded = "axhline"  # an argument of figures
    assert any(folded in path.read_text() for path in book.chapters())
    assert hits(folded) == [[]]
