"""Write the pages on which students read how their work was graded.

A page is one file that loads nothing and runs nothing: formulas are MathML, pictures
are within it. It is made from the student edition, from what the student wrote, and
from the outputs of the visible tests; hidden tests and model answers are in none of
these."""

import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import jinja2
import mistune
import nbformat
from latex2mathml.converter import convert_to_element
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from coursework.engine.pairs import task_of

# characters of a source or an output, of a picture, of a formula: what is longer is cut
TEXT, IMAGE, FORMULA = 20_000, 2 * 2**20, 3_000
OUTPUTS, FORMULAS = 20, 1_000  # outputs of a cell, formulas of a page
# characters of what is put into a page
PAGE, FULL = 8 * 2**20, "Left out, because this page would be too long with it."
COLOURS, DARK = (
    HtmlFormatter(style=f"a11y-high-contrast-{light}", cssclass="code")
    for light in ("light", "dark")
)
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# of MathML, what a formula may hold: nothing in it is a link or a style
ELEMENTS = set(
    "math mrow mi mo mn ms mtext mspace msup msub msubsup munder mover munderover "
    "mfrac msqrt mroot mtable mtr mtd mstyle mpadded mphantom menclose".split()
)
ATTRIBUTES = set(
    "display displaystyle scriptlevel mathvariant stretchy fence form largeop accent "
    "movablelimits minsize maxsize linethickness columnalign width height depth lspace "
    "rspace separator notation".split()
)


class Mark(NamedTuple):
    """What was given for a cell: ``points`` is None where a person must still mark it,
    ``by_hand`` tells that one did.
    """

    points: float | None = None
    max_points: float | None = None
    by_hand: bool = False
    comment: str = ""


class Paper(NamedTuple):
    """What a page is made of: the graded notebook, the student edition, the
    instructor's notebook (for its rubrics), and the marks.
    """

    graded: nbformat.NotebookNode
    released: nbformat.NotebookNode
    source: nbformat.NotebookNode
    marks: dict[str, Mark]


def write(path: Path, paper: Paper) -> None:
    """Write a page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Page(paper).html, encoding="utf-8")


def mathml(tex: str, display: bool) -> str:
    r"""Set a formula; one that cannot be set stays as it was typed.

    Example:
        >>> mathml("x^2", False)
        '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
        >>> mathml(r"\sqrt", False)
        '\\sqrt'
    """
    try:
        tree = convert_to_element(tex, display="block" if display else "inline")
    except Exception:  # of many kinds
        return html.escape(tex)
    for one in tree.iter():
        one.tag = one.tag if one.tag in ELEMENTS else "mrow"
        for name, value in list(one.attrib.items()):
            if name not in ATTRIBUTES or not re.fullmatch(r"[\w.+-]{1,20}", value):
                del one.attrib[name]
        one.text, one.tail = (html.unescape(x or "") for x in (one.text, one.tail))
    return ET.tostring(tree, encoding="unicode")


class Renderer(mistune.HTMLRenderer):
    """Markdown to HTML without any HTML of its author's, any picture from elsewhere, or
    any link: nothing that leads away from the page.
    """

    def __init__(self):
        super().__init__(escape=True)
        self.formulas = FORMULAS

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Write out where a link would lead; ``text`` is HTML already."""
        address = html.escape(url)
        return text if text == address else f"{text} ({address})"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Name a picture, because it is not here."""
        return f"[picture: {html.escape(text)}]"

    def heading(self, text: str, level: int, **attributes) -> str:
        """Set a heading below that of the page."""
        return f"<h{min(level + 1, 6)}>{text}</h{min(level + 1, 6)}>\n"

    def formula(self, tex: str, display: bool) -> str:
        """Set a formula, unless there are too many."""
        self.formulas -= 1
        if self.formulas < 0 or len(tex) > FORMULA:
            return html.escape(tex)
        kind = "display" if display else "inline"
        return f'<span class="{kind}">{mathml(tex, display)}</span>'

    def block_math(self, body: str) -> str:
        """Set a formula on lines of its own."""
        return self.formula(body, True)

    def inline_math(self, body: str) -> str:
        """Set a formula in a line."""
        return self.formula(body, False)

    def latex_environment(self, name: str, body: str) -> str:
        """Set an environment of LaTeX."""
        return self.formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", True)


class Page:
    """A page in the making."""

    def __init__(self, paper: Paper):
        self.paper, self.room = paper, PAGE
        self.markdown, released = MarkdownWithMath(renderer=Renderer()), paper.released
        shown = {
            task_of(cell): cell.source
            for cell in released.cells
            if task_of(cell) and not cell.metadata.nbgrader.get("solution")
        }
        heads = [one.source for one in released.cells if one.source.startswith("# ")]
        marks = [mark for mark in paper.marks.values() if mark.max_points is not None]
        given = [mark for mark in marks if mark.points is not None]
        marked = sum(mark.max_points for mark in given)
        loader = jinja2.FileSystemLoader(Path(__file__).parent)
        templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True)
        self.html = templates.get_template("feedback.html").render(
            title=(heads or ["Feedback"])[0].lstrip("# ").splitlines()[0],
            cells=[
                self.cell(cell, shown.get(task_of(cell), cell.source))
                for cell in paper.graded.cells
            ],
            points=sum(mark.points for mark in given),
            marked=marked,
            waiting=sum(mark.max_points for mark in marks) - marked,
            style=COLOURS.get_style_defs(".code"),
            dark_style=DARK.get_style_defs(".code"),
        )

    def fitting(self, piece: str) -> str:
        """Give a piece of the page, or a sentence where there is no room left for
        it.
        """
        self.room -= len(piece)
        return piece if self.room >= 0 else FULL

    def text(self, source: str) -> str:
        """Set a text in markdown."""
        if len(source) > TEXT:
            return self.fitting(f"<pre>{html.escape(source[:TEXT])}\n… cut</pre>")
        return self.fitting(self.markdown.render(source) if self.room >= 0 else FULL)

    def code(self, source: str) -> str:
        """Set a source of Python."""
        if self.room < 0:
            return FULL
        return self.fitting(highlight(source[:TEXT], PythonLexer(), COLOURS))

    def cell(self, cell: nbformat.NotebookNode, source: str) -> dict:
        """Say what a page shows of a cell: nothing but what is named here."""
        task, settings = task_of(cell) or "", cell.metadata.get("nbgrader", {})
        mark = self.paper.marks.get(task, Mark())
        code = cell.cell_type == "code"
        is_test = code and settings.get("grade", False)
        # outputs of hidden tests are not shown
        is_safe = "BEGIN HIDDEN TESTS" not in cell.source
        outputs = cell.get("outputs", []) if is_safe else []
        if is_test and mark.points is not None and mark.points == mark.max_points:
            # With all its points a visible test may have failed by a mistake in another
            # task, which the hidden tests put right.
            outputs = [output for output in outputs if output.output_type != "error"]
        kind = "test" if is_test else "answer" if settings.get("solution") else "given"
        return {
            "task": task if kind != "given" or settings.get("grade") else None,
            "name": task.removesuffix("-test") if is_test else task,
            "kind": kind if settings else "added",
            "body": self.code(source) if code else self.text(source),
            "outputs": [self.output(output) for output in outputs[:OUTPUTS]],
            "mark": mark,
            "parts": cell.metadata.get("parts", []) if is_test else [],
            "comment": self.text(mark.comment) if mark.comment else "",
            "rubric": self.text(rubric(self.paper.source, task))
            if mark.by_hand
            else "",
        }

    def output(self, output: nbformat.NotebookNode) -> dict:
        """Say what a page shows of an output: a text or a picture."""
        data = output.get("data", {})
        picture = re.sub(r"\s", "", data.get("image/png", ""))
        if 0 < len(picture) <= IMAGE and re.fullmatch(r"[A-Za-z0-9+/]+=*", picture):
            made = self.fitting(f"data:image/png;base64,{picture}")
            return {"text": FULL} if made is FULL else {"image": made}
        is_error = output.output_type == "error"
        text = output.traceback if is_error else output.get("text", "")
        text = ESCAPES.sub("", "".join(text or data.get("text/plain", "")))
        text = text if len(text) <= TEXT else f"{text[:TEXT]}\n… cut"
        is_full = self.fitting(html.escape(text)) is FULL
        return {"text": FULL if is_full else text, "error": is_error}


def rubric(source: nbformat.NotebookNode, task: str) -> str:
    """Read how an answer is marked, from the end of the model answer."""
    for cell in source.cells:
        if task_of(cell) == task:
            text = cell.source.partition("**Rubric.**")[2]
            return text.partition("### END SOLUTION")[0].strip()
    return ""
