"""The whole book in one file, made of the pages that `make book` has built.

usage: python -m tools.editions pdf | epub [PART]

pdf      write _build/sgmc.pdf: printed by Chromium, with bookmarks, and links that lead
         from page to page
epub     write _build/sgmc.epub: EPUB 3, formulas as MathML

With a PART, as tutorial, only the pages of book/PART: _build/sgmc-PART.pdf.
Both need Chromium (Debian: apt-get install chromium), in which the book's own copy of
MathJax sets the formulas. Code that is folded on a page is left out, films stand still,
of a live figure there is its still, and the claims of a cell, folded on its page, are
open.
"""

import html
import re
import shutil
import sys
import uuid
import zipfile
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
LEFT_OUT = (
    "a.headerlink, script, style, button, details.hide, .frames img[hidden], .frames "
    "p, .prev-next-area, .tocwrapper, .claims-filter"
)


def parts() -> dict[str, list[str]]:
    """List the pages of each part of the book, in its order."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return {"": [contents["root"]]} | {
        part["caption"]: [
            page["file"]
            for chapter in part["chapters"]
            for page in (chapter, *chapter.get("sections", ()))
        ]
        for part in contents["parts"]
    }


def read(folder: Path, page: str) -> str:
    """Read what a built page says, without the navigation around it."""
    source = folder / f"{page}.html"
    if not source.is_file():
        sys.exit(f"{source} is missing: run make book first")
    text = source.read_text(encoding="utf-8")
    return text[text.index('<article class="bd-article"') : text.index("</article>")]


def article(
    text: str, page: str, known: Container[str], place: Callable[[str, str], str]
) -> Tag:
    """Take what a page says, with its identifiers as they are and its links changed.

    Args:
        text: the page, as ``read`` gives it.
        page: its name, without its ending.
        known: all pages of the edition; a link to any other page of the book becomes
            text.
        place: makes the address of an identifier of a page, which is empty for its
            head.
    """
    found = BeautifulSoup(text, "html.parser").article
    for element in found.select(LEFT_OUT):
        element.decompose()
    for folded in found.select("details"):
        folded["open"] = "open"
    seen = set()
    # the pages have some identifiers again and again, to which nothing leads
    for element in found.select("[id]"):
        if element["id"] in seen:
            del element["id"]
        else:
            seen.add(element["id"])
    for link in found.select("a[href]"):
        address = urlsplit(link["href"])
        if address.scheme or address.netloc:
            continue
        other = (
            page
            if not address.path
            else resolve(page, address.path).removesuffix(".html")
        )
        if other in known:
            link["href"] = place(other, unquote(address.fragment))
        else:
            link.unwrap()
    for image in found.select("img[src]"):
        if not image["src"].startswith("data:"):
            image["src"] = resolve(page, urlsplit(image["src"]).path)
    return found


def resolve(page: str, path: str) -> str:
    """Say where a path that stands on a page leads, from the folder of all pages."""
    steps: list[str] = []
    for step in (PurePosixPath(page).parent / unquote(path)).parts:
        if step == "..":
            steps.pop()
        else:
            steps.append(step)
    return "/".join(steps)


@contextmanager
def browser() -> Iterator:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        sys.exit(
            f"there is no {', '.join(BROWSERS)} here, which sets the formulas: "
            "install one, on Debian by apt-get install chromium"
        )
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--allow-file-access-from-files"],
            timeout=0,
        )
        yield started
        started.close()


PRINT = """
@page { size: A4; margin: 18mm 16mm 20mm; }
html { font-size: 11px; } body { background: white; color: black; }
article { max-width: none; padding: 0; }
article.page { break-before: page; }
h1, h2, h3 { break-after: avoid; }
figure, img, pre, table, .claim, mjx-container[display="true"] { break-inside: avoid; }
pre { white-space: pre-wrap; font-size: 9px; } .checks { font-size: 9px; }
.cover { height: 240mm; display: flex; flex-direction: column; justify-content: center; }
.contents { break-before: page; } .contents li { list-style: none; }
"""


def write_pdf(folder: Path, target: Path, chosen: dict[str, list[str]]) -> None:
    """Put all pages into one, and print it."""
    known = [page for pages in chosen.values() for page in pages]

    def place(page: str, identifier: str) -> str:
        return "#" + (f"{page}--{identifier}" if identifier else page).replace("/", "-")

    articles = {page: article(read(folder, page), page, known, place) for page in known}
    for page, found in articles.items():
        for element in found.select("[id]"):
            element["id"] = place(page, element["id"])[1:]
        found["id"], found["class"] = place(page, "")[1:], "bd-article page"
    head = BeautifulSoup(
        (folder / "index.html").read_text(encoding="utf-8"), "html.parser"
    ).head
    styles = "".join(str(link) for link in head.select('link[rel="stylesheet"]'))
    formulas = "".join(
        str(script)
        for script in head.select("script")
        if "mathjax" in str(script).lower()
    )
    title = yaml.safe_load((ROOT / "_config.yml").read_text())["title"]
    contents = "".join(
        f"<h2>{html.escape(part)}</h2><ul>"
        + "".join(
            "<li><a "
            f'href="{place(page, "")}">{html.escape(articles[page].h1.get_text())}</a></li>'
            for page in pages
        )
        + "</ul>"
        for part, pages in chosen.items()
        if part
    )
    # of one part alone, the cover names it
    named = "" if len(chosen) > 1 else f"<p>{html.escape(*chosen)}</p>"
    body = (
        f'<div class="cover"><h1>{html.escape(title)}</h1>{named}</div><nav '
        f'class="contents">{contents}</nav>'
        + "".join(str(found) for found in articles.values())
    )
    # no page of the site: what walks over its .html files does not meet it
    whole = folder / "whole.htm"
    whole.write_text(
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta '
        f'charset="utf-8"><title>{html.escape(title)}</title>{styles}'
        f"<style>{PRINT}</style>{formulas}</head><body>{body}</body></html>",
        encoding="utf-8",
    )
    number = (
        '<div style="font-size: 8px; width: 100%; text-align: center"><span '
        'class="pageNumber"></span></div>'
    )
    try:
        with browser() as started:
            sheet = started.new_page()
            sheet.set_default_timeout(0)  # a busy machine may take its time
            sheet.goto(whole.as_uri())
            sheet.evaluate("MathJax.startup.promise")
            sheet.pdf(
                path=target,
                prefer_css_page_size=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=number,
                outline=True,
                tagged=True,
            )
    finally:
        whole.unlink()


STYLE = """
body { line-height: 1.4; } pre { white-space: pre-wrap; font-size: .8em; } img { max-width: 100%; }
table { border-collapse: collapse; } th, td { padding: .1em .5em; border-bottom: 1px solid #ccc; text-align: left; }
.admonition { border-left: .2em solid #0072b2; padding-left: .8em; margin: 1em 0; } .admonition-title { font-weight: bold; }
.checks { border-left: .2em solid #009e73; padding-left: .8em; margin: .4em 0; } .claim { margin: .4em 0; } .eqno { float: right; }
figcaption, .caption-text { font-size: .9em; }
"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""
TYPES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
}


def write_epub(folder: Path, target: Path, chosen: dict[str, list[str]]) -> None:
    """Make a file of every page, with formulas as MathML, and pack them."""
    known = [page for pages in chosen.values() for page in pages]

    def name(page: str) -> str:
        return page.replace("/", "-") + ".xhtml"

    def place(page: str, identifier: str) -> str:
        return f"{name(page)}#{identifier}" if identifier else name(page)

    articles = {page: article(read(folder, page), page, known, place) for page in known}
    set_formulas(folder, list(articles.values()))
    images = {
        image["src"]
        for found in articles.values()
        for image in found.select("img[src]")
        if not image["src"].startswith("data:")
    }
    for found in articles.values():
        for image in found.select("img[src]"):
            image["src"] = (
                image["src"].replace("/", "-")
                if image["src"] in images
                else image["src"]
            )
        make_valid(found)
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    title, author = html.escape(config["title"]), html.escape(config["author"])
    items = [
        f'<item id="page{i}" href="{name(page)}" '
        f'media-type="application/xhtml+xml"{marks(articles[page])}/>'
        for i, page in enumerate(known)
    ]
    items += [
        f'<item id="image{i}" href="{image.replace("/", "-")}" '
        f'media-type="{TYPES[Path(image).suffix]}"/>'
        for i, image in enumerate(sorted(images))
    ]
    package = (
        '<?xml version="1.0" encoding="utf-8"?>\n<package version="3.0" '
        'xmlns="http://www.idpf.org/2007/opf" unique-identifier="id">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:identifier "
        f'id="id">urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, title)}</dc:identifier><dc:title>{title}</dc:title>'
        f"<dc:creator>{author}</dc:creator><dc:language>en</dc:language>"
        "<meta "
        f'property="dcterms:modified">{config["copyright"]}-01-01T00:00:00Z</meta></metadata>'
        '<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" '
        'properties="nav"/>'
        '<item id="style" href="style.css" '
        f'media-type="text/css"/>{"".join(items)}</manifest>'
        f'<spine>{"".join(f"""<itemref idref="page{i}"/>""" for i in range(len(known)))}</spine></package>'
    )
    entries = "".join(
        "".join(entry(articles[page], name(page)) for page in pages)
        if not part
        else f"<li><span>{html.escape(part)}</span><ol>{''.join(entry(articles[page], name(page)) for page in pages)}</ol></li>"
        for part, pages in chosen.items()
    )
    navigation = xhtml(
        title, f'<nav epub:type="toc"><h1>{title}</h1><ol>{entries}</ol></nav>'
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        # first, and as it is
        packed.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        packed.writestr("META-INF/container.xml", CONTAINER)
        packed.writestr("book/package.opf", package)
        packed.writestr("book/nav.xhtml", navigation)
        packed.writestr("book/style.css", STYLE)
        for page, found in articles.items():
            packed.writestr(
                f"book/{name(page)}",
                xhtml(
                    html.escape(found.h1.get_text()), found.decode(formatter="minimal")
                ),
            )
        for image in images:
            packed.write(folder / image, f"book/{image.replace('/', '-')}")


def set_formulas(folder: Path, articles: list[Tag]) -> None:
    """Replace all formulas by MathML, as the book's own MathJax makes it."""
    places = [
        place for found in articles for place in found.select("span.math, div.math")
    ]
    wanted = []
    for place in places:
        number = place.find("span", class_="eqno")
        if number is not None:
            number.extract()
        text = place.get_text().strip()
        display = not text.startswith(r"\(")
        wanted.append(
            (place, re.sub(r"^\\[(\[]|\\[)\]]$", "", text).strip(), display, number)
        )
    formulas = sorted({(text, display) for _, text, display, _ in wanted})
    with browser() as started:
        sheet = started.new_page()
        sheet.set_default_timeout(0)
        sheet.goto((folder / "index.html").as_uri())
        sheet.evaluate("MathJax.startup.promise")
        found = sheet.evaluate(
            "all => all.map(([text, display]) => MathJax.tex2mml(text, {display}))",
            [list(each) for each in formulas],
        )
    made = dict(zip(formulas, found, strict=True))
    for place, text, display, number in wanted:
        place.clear()
        if number is not None:
            place.append(number)
        place.append(BeautifulSoup(made[text, display], "html.parser").math)


def make_valid(found: Tag) -> None:
    """Take away what HTML allows and EPUB does not."""
    for element in found.find_all(True):
        for attribute in [
            name
            for name in element.attrs
            if name.startswith("data-") or name in ("align", "width", "height")
        ]:
            if element.name != "math" or attribute.startswith("data-"):
                del element[attribute]
        if element.get("role") == "doc-biblioentry":
            del element["role"]
    for link in found.select("a:not([href]):not([id])"):
        link.unwrap()


def marks(found: Tag) -> str:
    """Tell a reader's program what a page holds."""
    has = [
        word
        for word, tag in (("mathml", "math"), ("svg", "svg"))
        if found.find(tag) is not None
    ]
    return f' properties="{" ".join(has)}"' if has else ""


def entry(found: Tag, address: str) -> str:
    """Make a line of the table of contents."""
    return f'<li><a href="{address}">{html.escape(found.h1.get_text())}</a></li>'


def xhtml(title: str, body: str) -> str:
    """Make a page of an EPUB."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" '
        'xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">'
        f'<head><title>{title}</title><link rel="stylesheet" '
        f'href="style.css"/></head><body>{body}</body></html>'
    )


def pages_of(part: str) -> dict[str, list[str]]:
    """List the pages of one part, or of all where none is named."""
    folders = {
        caption: pages[0].split("/")[1] for caption, pages in parts().items() if caption
    }
    if part and part not in folders.values():
        sys.exit(f"There is no part {part!r}; there are {', '.join(folders.values())}.")
    return {
        caption: pages
        for caption, pages in parts().items()
        if not part or folders.get(caption) == part
    }


def main(command: str, part: str = "") -> None:
    """Run one of the commands of this file's head."""
    makers = {"pdf": write_pdf, "epub": write_epub}
    if command not in makers:
        sys.exit(__doc__)
    name = "-".join(filter(None, ("sgmc", part)))
    target = ROOT / "_build" / f"{name}.{command}"
    makers[command](ROOT / "_build" / "html", target, pages_of(part))
    print(f"The book is at {target}")


if __name__ == "__main__":
    main(*sys.argv[1:] if len(sys.argv) in (2, 3) else [""])
