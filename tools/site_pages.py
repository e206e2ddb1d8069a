"""What the theme cannot be told by its settings: an extension of Sphinx."""

import gc
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from pybtex import plugin
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.index_entries import split_index_msg

from tools import reading


class KeepTogether(SphinxPostTransform):
    """Keep punctuation on the line of the formula that it follows."""

    default_priority = 197
    formats = ("html",)

    def run(self, **settings):
        """Wrap each formula with the punctuation after it."""
        for formula in list(self.document.findall(nodes.math)):
            after = formula.next_node(descend=False, siblings=True)
            mark = (
                re.match(r"[.,;:!?)\]”’]+", after.astext())
                if isinstance(after, nodes.Text)
                else None
            )
            if mark and after.parent is formula.parent:
                parent, place = formula.parent, formula.parent.index(formula)
                rest = after.astext()[mark.end() :]
                parent.pop(place)
                # not remove, which takes the first text that is equal
                parent.pop(place)
                parent.insert(
                    place,
                    nodes.inline(
                        "", "", formula, nodes.Text(mark[0]), classes=["together"]
                    ),
                )
                if rest:
                    parent.insert(place + 1, nodes.Text(rest))


class NameFolds(SphinxPostTransform):
    """Say of a folded cell what is in it: a check, if it records claims, or code."""

    default_priority = 198  # before the cells are folded, at 199
    formats = ("html",)

    def run(self, **settings):
        """Set the words of each folded cell."""
        for cell in self.document.findall(nodes.container):
            if cell.get("nb_element") == "cell_code" and cell.get("hide_mode"):
                checks = {"tag_checks", "tag_only-checks"} & set(cell["classes"])
                what = "check" if checks else "code"
                cell["prompt_show"], cell["prompt_hide"] = (
                    f"Show the {what}",
                    f"Hide the {what}",
                )


class Minutes(SphinxRole):
    """Say how long pages take to read: of the tutorial, or of those named, without the
    folder of all.
    """

    def run(self):
        """Count the pages, and read this one again when one of them changes."""
        names = [f"book/{name}" for name in self.text.split()]
        names = reading.twelve() if self.text == "tutorial" else names
        paths = [reading.source(name) for name in names]
        for path in paths:
            self.env.note_dependency(str(path))
        minutes = sum(reading.count(path).minutes for path in paths)
        return [nodes.Text(in_words(minutes))], []


def in_words(minutes: float) -> str:
    """Write a time as nobody measures it more exactly."""
    if minutes > 150:
        return f"{minutes / 60:.0f} hours"
    return (
        f"{minutes:.0f} minutes"
        if minutes < 20
        else f"{5 * round(minutes / 5)} minutes"
    )


def open_the_first_part(app, pagename, templatename, context, doctree):
    """Show the pages of the first part in the navigation; those of the others are
    folded, but for the one that is read.
    """
    make = context.get("generate_toctree_html")
    if make is None:  # a file that is no page
        return

    def opened(*arguments, **settings):
        soup = make(*arguments, **settings)
        for part in soup.select("li.toctree-l0:first-child > details"):
            part["open"] = "open"
        return soup

    context["generate_toctree_html"] = opened


def search_what_is_seen(app):
    """Leave folded code out of the search index, which would otherwise find the words
    of programs and not of pages.
    """
    if app.builder.format != "html":
        return
    index = app.builder.index_page

    def index_page(pagename, doctree, title):
        folds = list(doctree.findall(HideCodeCellNode))
        inside = [fold.children for fold in folds]
        for fold in folds:
            fold.children = []
        index(pagename, doctree, title)
        for fold, children in zip(folds, inside, strict=True):
            fold.children = children

    app.builder.index_page = index_page


def keep_index_entries(app, env):
    """Give the search the index entries of pages that are not written again, which
    Sphinx forgets.
    """
    for page, entries in env.get_domain("index").entries.items():
        env._search_index_index_entries[page] = sorted(
            {
                (words, target or "", main)
                for kind, value, target, main, _ in entries
                for words in split_index_msg(kind, value)
            }
        )


def name_the_front_page_once(app, pagename, templatename, context, doctree):
    """Leave the book's title out of the browser's title of the page that has the same
    one.
    """
    if pagename == app.config.root_doc:
        context["docstitle"] = ""


# What the theme puts into every page, and browsers complain of when pages are read from
# files: hints to load fonts early, which they refuse, and Thebe, twice, which would run
# code on a server elsewhere and which nothing here calls.
COMPLAINTS = re.compile(
    r'<link rel="preload" as="font"[^>]*>\s*|<script>const '
    r"THEBE_JS_URL.*?</script>\s*|<script[^>]*sphinx-thebe\.js[^>]*></script>\s*"
)


def quieten(app, exception):
    """Take out of the written pages what browsers complain of."""
    if exception is None and app.builder.name == "html":
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text()
            # entries are no items
            quiet = COMPLAINTS.sub("", text).replace(
                'role="list" class="citation-list"', 'class="citation-list"'
            )
            if quiet != text:
                path.write_text(quiet)


def setup(app):
    """Register what stands above, and save a third of the time of all pages: pybtex
    looks through all packages for each citation, and Python through all trees of pages
    for circles that nothing leads to.
    """
    plugin.entry_points = cache(plugin.entry_points)
    gc.set_threshold(100_000, 20, 50)
    app.add_post_transform(KeepTogether)
    app.add_post_transform(NameFolds)
    app.connect("builder-inited", search_what_is_seen)
    app.connect("env-updated", keep_index_entries)
    app.add_role("minutes", Minutes())
    # after the theme has put its functions there
    app.connect("html-page-context", open_the_first_part, priority=900)
    app.connect("html-page-context", name_the_front_page_once)
    app.connect("build-finished", quieten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
