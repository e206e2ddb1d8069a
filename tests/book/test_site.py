"""The built site: every page there, no error shown, nothing loaded from elsewhere. ``make test`` builds it first."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from sgmc import claims
from tools import book

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"


@pytest.fixture(scope="module")
def pages():
    found = {path: path.read_text() for path in sorted(SITE.rglob("*.html"))}
    assert found, "there is no built site: say make book first"
    return found


def test_every_entry_of_the_table_of_contents_has_a_page(pages):
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    assert [name for name in files if SITE / f"{name}.html" not in pages] == []


def test_no_page_shows_an_error(pages):
    marks = ("Traceback (most recent call last)", "output traceback", 'class="problematic"', "mystnb-exec-error")
    shown = [(str(path), mark) for path, text in pages.items() for mark in marks if mark in text and "api" not in path.name]
    assert shown == []


class Loads(HTMLParser):
    """Collect what a browser would load for a page: scripts, style sheets, images, fonts; not what a reader may click on."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed") and attributes.get("src"):
            self.addresses.append(attributes["src"])
        if tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev", "search", "index", "author", "license"):
            self.addresses.append(attributes.get("href") or "")
        self.addresses += re.findall(r"url\((.*?)\)", attributes.get("style") or "")


def loaded_from_elsewhere(text):
    parser = Loads()
    parser.feed(text)
    return [address for address in parser.addresses if re.match(r"(https?:)?//", address)]


def test_the_scan_sees_what_it_should():
    assert loaded_from_elsewhere('<script src="https://example.org/x.js"></script>') == ["https://example.org/x.js"]
    assert loaded_from_elsewhere('<link rel="stylesheet" href="//example.org/x.css">') == ["//example.org/x.css"]
    assert loaded_from_elsewhere('<a href="https://example.org">a link</a><img src="x.png">') == []


def test_no_page_loads_anything_from_elsewhere(pages):
    found = {str(path): loaded_from_elsewhere(text) for path, text in pages.items()}
    assert {path: addresses for path, addresses in found.items() if addresses} == {}
    imported = [
        (str(path), address)
        for path in SITE.rglob("*.css")
        for address in re.findall(r"""(?:@import|url\()\s*["']?((?:https?:)?//[^"')]+)""", path.read_text())
    ]
    assert imported == []


def test_the_page_of_claims_lists_exactly_the_claims_of_the_book(pages):
    page = pages[SITE / "book" / "appendix" / "claims.html"]
    listed = set(re.findall(r'href="\.\./([^"]+#claim-[0-9a-f]+)"', page))
    expected = {f"{path.parent.name}/{path.stem}.html#{claims.anchor(line)}" for path, lines in book.claims().items() for line in lines}
    assert listed == expected
    for link in expected:
        path, anchor = link.split("#")
        assert f'id="{anchor}"' in pages[SITE / "book" / path], f"{link} leads nowhere"
