"""Write the pages on which students read how their work was graded.

A page is one file, which loads nothing and runs nothing: formulas are set here,
pictures are within it. It is made from the student edition, from what the student
wrote, and from the outputs of the visible tests; hidden tests and model answers are in
none of these."""

import html
import json
import re
import secrets
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import jinja2
import mistune
import nbformat
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from tools.coursework.pairs import task_of

# characters of a source or an output, of a picture, of a formula: what is longer is cut
TEXT, IMAGE, FORMULA = 20_000, 2 * 2**20, 3_000
OUTPUTS, FORMULAS = 20, 1_000  # outputs of a cell, formulas of a page
# characters of what is put into a page
PAGE, FULL = 8 * 2**20, "Left out, for this page would be too long with it."
COLOURS, DARK = (
    HtmlFormatter(style=f"a11y-high-contrast-{light}", cssclass="code")
    for light in ("light", "dark")
)
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SECONDS = 120  # for MathJax, which needs less than one


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


def write(folder: Path, papers: dict[Path, Paper]) -> None:
    """Write a page for every paper; pages that were there before go."""
    shutil.rmtree(folder, ignore_errors=True)
    made = {path: Page(paper) for path, paper in papers.items()}
    for (path, page), (pictures, glyphs) in zip(
        made.items(), typeset([page.formulas for page in made.values()]), strict=True
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(
            page.with_formulas(pictures, glyphs), encoding="utf-8"
        )


def typeset(pages: list[list[tuple[str, bool]]]) -> list[tuple[list[str], str]]:
    """Have MathJax make pictures of the formulas of pages; a page whose formulas bring
    it down keeps them as they were typed.

    Args:
        pages: for every page its formulas, each with whether it stands on lines of its
            own.

    Returns:
        For every page the pictures of its formulas, and the glyphs that they share.
    """
    node = [
        Path(sys.executable).with_name("node"),
        Path(__file__).with_name("formulas.js"),
        Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax",
    ]
    try:
        result = subprocess.run(
            node,
            input=json.dumps(pages),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return [tuple(page) for page in json.loads(result.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError):
        if len(pages) > 1:
            return [typeset([page])[0] for page in pages]
        return [([html.escape(tex) for tex, _ in page], "") for page in pages]


class Renderer(mistune.HTMLRenderer):
    """Markdown to HTML without any HTML of its author's, any picture from elsewhere, or
    any link that runs something.
    """

    def __init__(self, page: "Page"):
        super().__init__(escape=True, allow_harmful_protocols=False)
        self.page = page

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Name a picture, for it is not here."""
        return f"[picture: {html.escape(text)}]"

    def heading(self, text: str, level: int, **attributes) -> str:
        """Set a heading below that of the page."""
        return f"<h{min(level + 1, 6)}>{text}</h{min(level + 1, 6)}>\n"

    def block_math(self, body: str) -> str:
        """Set a formula on lines of its own."""
        return self.page.formula(body, True)

    def inline_math(self, body: str) -> str:
        """Set a formula in a line."""
        return self.page.formula(body, False)

    def latex_environment(self, name: str, body: str) -> str:
        """Set an environment of LaTeX."""
        return self.page.formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", True)


class Page:
    """A page in the making."""

    def __init__(self, paper: Paper):
        # nobody can write what stands for a formula
        self.formulas, self.token, self.paper = [], secrets.token_hex(12), paper
        self.room = PAGE
        self.markdown = MarkdownWithMath(renderer=Renderer(self))
        shown = {
            task_of(cell): cell.source
            for cell in paper.released.cells
            if task_of(cell) and not is_answer(cell)
        }
        self.cells = [
            self.cell(cell, shown.get(task_of(cell), cell.source))
            for cell in paper.graded.cells
        ]
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            trim_blocks=True,
        )
        graded = [mark for mark in paper.marks.values() if mark.max_points is not None]
        self.html = environment.get_template("feedback.html").render(
            title=next(
                (
                    cell.source.lstrip("# ").splitlines()[0]
                    for cell in paper.released.cells
                    if cell.source.startswith("# ")
                ),
                "Feedback",
            ),
            cells=self.cells,
            points=sum(mark.points or 0 for mark in graded),
            marked=sum(mark.max_points for mark in graded if mark.points is not None),
            waiting=sum(mark.max_points for mark in graded if mark.points is None),
            style=COLOURS.get_style_defs(".code"),
            dark_style=DARK.get_style_defs(".code"),
        )

    def formula(self, tex: str, display: bool) -> str:
        """Keep a formula for later, and give what stands for it."""
        # which makes links
        if len(tex) > FORMULA or len(self.formulas) >= FORMULAS or "\\mmlToken" in tex:
            return html.escape(tex)
        self.formulas.append((tex, display))
        return f"{self.token}-{len(self.formulas) - 1}-"

    def with_formulas(self, pictures: list[str], glyphs: str) -> str:
        """Put the pictures of the formulas where they belong."""

        def picture(match: re.Match) -> str:
            number = int(match[1])
            tex, display = self.formulas[number]
            return self.fitting(
                f'<span class="{"display" if display else "inline"}" role="img" '
                f'aria-label="{html.escape(tex)}">{pictures[number]}</span>'
            )

        page = re.sub(f"{self.token}-(\\d+)-", picture, self.html)
        return page.replace(
            "</body>", f'<svg class="glyphs" aria-hidden="true">{glyphs}</svg></body>'
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
        return self.fitting(
            highlight(source[:TEXT], PythonLexer(), COLOURS) if self.room >= 0 else FULL
        )

    def cell(self, cell: nbformat.NotebookNode, source: str) -> dict:
        """Say what a page shows of a cell: nothing but what is named here."""
        task, settings = task_of(cell), cell.metadata.get("nbgrader", {})
        mark = self.paper.marks.get(task, Mark())
        code = cell.cell_type == "code"
        is_test = code and settings.get("grade", False)
        # which were theirs
        outputs = (
            cell.get("outputs", []) if "BEGIN HIDDEN TESTS" not in cell.source else []
        )
        if is_test and mark.points is not None and mark.points == mark.max_points:
            # With all its points a visible test may have failed by a mistake in another
            # task, which the hidden tests put right.
            outputs = [output for output in outputs if output.output_type != "error"]
        return {
            "task": task if settings.get("grade") or settings.get("solution") else None,
            "name": (task or "").removesuffix("-test") if is_test else (task or ""),
            "kind": "test"
            if is_test
            else "answer"
            if settings.get("solution")
            else "given"
            if settings
            else "added",
            "body": self.code(source) if code else self.text(source),
            "outputs": [
                shown
                for output in outputs[:OUTPUTS]
                for shown in [self.output(output, is_test)]
                if shown
            ],
            "mark": mark,
            "parts": cell.metadata.get("parts", []) if is_test else [],
            "comment": self.text(mark.comment) if mark.comment else "",
            "rubric": self.text(rubric(self.paper.source, task))
            if mark.by_hand
            else "",
        }

    def printed(self, text: str | list[str]) -> str:
        """Cut an output to what is readable, without the colours of a terminal."""
        text = ESCAPES.sub("", "".join(text))
        text = text if len(text) <= TEXT else f"{text[:TEXT]}\n… cut"
        return text if self.fitting(html.escape(text)) is not FULL else FULL

    def output(self, output: nbformat.NotebookNode, is_test: bool) -> dict:
        """Say what a page shows of an output: a text or a picture."""
        if output.output_type == "stream":
            return {"text": self.printed(output.text)}
        if output.output_type == "error":
            return {
                "text": self.printed(
                    "\n".join(output.traceback or [f"{output.ename}: {output.evalue}"])
                ),
                "error": True,
            }
        data = output.get("data", {})
        for kind in ("image/png", "image/jpeg"):
            picture = re.sub(r"\s", "", data.get(kind, ""))
            if (
                picture
                and len(picture) <= IMAGE
                and re.fullmatch(r"[A-Za-z0-9+/]+=*", picture)
            ):
                shown = self.fitting(f"data:{kind};base64,{picture}")
                return {"text": FULL} if shown is FULL else {"image": shown}
        if is_test and output.output_type == "execute_result":
            # the points of a test that gives part of them, which stand in its head
            return {}
        return {"text": self.printed(data.get("text/plain", ""))}


def is_answer(cell: nbformat.NotebookNode) -> bool:
    """Tell a cell in which the student writes."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def rubric(source: nbformat.NotebookNode, task: str) -> str:
    """Read how an answer is marked, from the end of the model answer."""
    for cell in source.cells:
        if task_of(cell) == task:
            return (
                cell.source.partition("**Rubric.**")[2]
                .partition("### END SOLUTION")[0]
                .strip()
            )
    return ""
