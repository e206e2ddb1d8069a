"""What a student reads: visible tests, points, comments and rubrics; and no hidden
test, no model answer, nothing from elsewhere.
"""

import html
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import sync_playwright

from coursework.engine import edition, feedback, pairs
from coursework.engine.feedback import Mark, Paper, mathml
from coursework.tests.test_secrets import MARKS, leaks, secret_phrases
from tools import editions

NASTY = r"""<script>alert(1)</script> <img src=x onerror=alert(2)>

A [link](javascript:alert(3)), <https://e.vil/1?a&b>, https://e.vil/2, [x](//e.vil/3),
[y](https://e.vil/4 "z"), [*u*](/e.vil/5), <t@e.vil>, ## https://e.vil/6 and a ![pixel](https://example.org/pixel.png).

$$\frac12 \href{javascript:alert(4)}{x}$$ and $\text{<img src=x onerror=alert(5)>}$ and
$x < y$ and $\unclosed{$ and $\style{background:url(x)}{x}$
"""
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
FIRST, SECOND = pairs.assignments()[:2]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    return edition.release_notebooks(tmp_path_factory.mktemp("released"))


def graded(item, notebook, answers=(), failing=()):
    """Make what a judge makes of a submission: the visible tests and their outputs, and
    no word of the hidden ones but that they failed.
    """
    made, answers = nbformat.from_dict(notebook), dict(answers)
    for cell in made.cells:
        task, settings = pairs.task_of(cell), cell.metadata.get("nbgrader", {})
        if settings.get("solution"):
            cell.source = answers.get(task, f"My answer to {task}.")
            shown = {"image/png": PICTURE, "text/html": "<script>alert(6)</script>"}
            if cell.cell_type == "code":
                cell.outputs = [new_output("display_data", shown)]
        elif task in failing:
            cell.outputs = [new_output("stream", text="a hidden test failed\n")]
            part = {"title": "a first part", "points": 4.0, "max_points": 4.0}
            cell.metadata.parts = [part]
    flood = new_output("stream", text="\x1b[31madded\x1b[0m " * 10_000)
    made.cells.append(new_code_cell("print('added')", outputs=[flood]))
    return made


@pytest.fixture
def page(released, tmp_path):
    """Make a function that writes a student's page and gives it."""

    def page(item, marks=None, notebook=None, **others):
        if notebook is None:
            notebook = graded(item, released[item], **others)
        paper = Paper(notebook, released[item], item.read(), marks or {})
        feedback.write(tmp_path / "page.html", paper)
        return (tmp_path / "page.html").read_text()

    page.folder = tmp_path
    return page


def text(source):
    return html.unescape(re.sub(r"<[^>]*>", "", source))


@pytest.mark.parametrize("item", pairs.assignments(), ids=lambda item: item.name)
def test_no_page_shows_a_hidden_test_or_a_model_answer(page, released, item):
    page(item)
    assert leaks(page.folder) == []
    # nor does one of a notebook that holds the hidden tests, and printed them
    instructors = item.read()
    for cell in instructors.cells:
        if (pairs.task_of(cell) or "").endswith("-test"):
            cell.outputs = [new_output("stream", text=cell.source)]
    page(item, notebook=graded(item, instructors))
    assert leaks(page.folder) == []


def test_the_scan_would_find_one(tmp_path):
    # as if the instructor's notebook were the student edition
    paper = Paper(FIRST.read(), FIRST.read(), FIRST.read(), {})
    feedback.write(tmp_path / "page.html", paper)
    found = {phrase for _, phrase in leaks(tmp_path)}
    assert len(found & secret_phrases(FIRST)) > 20 and found & set(MARKS)


def not_of_paper(tag):
    """Tell whether a tag loads or runs something, or leads away from the page."""
    name = re.match(r"</?([a-zA-Z0-9]+)", tag)[1].lower()
    address = re.search(r"""\b(?:src|href|action|data)\s*=\s*["']?([^"'\s>]*)""", tag)
    loads = "script link iframe object embed base form video audio source".split()
    runs = re.search(r"\s(on\w+|style)\s*=", tag)
    away = address and not re.match(r"(#|data:image/)", address[1])
    return bool(name in loads or runs or away)


def test_what_a_student_wrote_does_nothing_to_the_page(page):
    question = "leapfrog-question"
    shown = page(FIRST, answers={question: NASTY}, marks={question: Mark(None, 7)})
    tags = re.findall(r"<[a-zA-Z/][^>]*>", shown)
    assert len(tags) > 500 and [tag for tag in tags if not_of_paper(tag)] == []
    assert "default-src 'none'" in shown and "@import" not in shown
    assert "url(" not in re.sub(r"<style>.*</style>", "", shown, flags=re.S).replace(
        "\\style{background:url(x)}{x}", ""
    )
    assert sorted(re.findall(r"e\.vil/(\d)", shown)) == [*"123456"]
    assert "https://e.vil/1?a&amp;b, https://e.vil/2, x (//e.vil/3)" in shown
    assert "&lt;script&gt;alert(1)" in shown and "alert(6)" not in shown
    assert re.search(r"&lt;img\ssrc=x\sonerror=alert\(5\)&gt;</mtext>", shown)
    assert f"data:image/png;base64,{PICTURE}" in shown and "[picture: pixel]" in shown
    assert len(shown) < 1e6 and "\x1b" not in shown and "… cut" in shown


@pytest.mark.parametrize(
    "tag",
    [
        *('<script src="x.js">', '<a href="javascript:x">', "<p onclick='x'>"),
        *('<img src="https://example.org/x.png">', '<mi style="x">'),
        *('<a href="https://example.org">', "<a href='//x'>", "<a href=x.html>"),
    ],
)
def test_the_control_such_a_tag_would_be_found(tag):
    assert not_of_paper(tag)


def formulas():
    """List the formulas of the assignments, solutions and rubrics included."""
    found = set()

    class Lists(feedback.Renderer):
        def formula(self, tex, display):
            found.add((tex, display))
            return ""

    for item in pairs.assignments():
        for cell in item.read().cells:
            if cell.cell_type == "markdown":
                feedback.MarkdownWithMath(renderer=Lists()).render(cell.source)
    return sorted(found)


def test_every_formula_of_the_assignments_is_set():
    assert len(formulas()) > 250
    for tex, display in formulas():
        made = mathml(tex, display)
        assert made.startswith("<math") and not re.search(r"\\[A-Za-z]", made), tex


def test_what_is_not_marked_is_not_zero(page):
    waiting, nothing = Mark(None, 7), Mark(0, 8)
    marks = {"leapfrog-question": waiting, "banana-test": nothing}
    shown = text(page(FIRST, marks=marks))
    assert "not marked yet (7 points)" in shown and "7 more are not marked" in shown
    assert "0 of 8 points" in shown


def test_a_rubric_comes_with_the_mark(page):
    question = "variance-question"
    [answer] = [one for one in SECOND.read().cells if pairs.task_of(one) == question]
    words = re.search(r"\*\*Rubric\.\*\* (\d points: [\w ]+)", answer.source)[1]
    assert words not in text(page(SECOND, marks={question: Mark(None, 7)}))
    shown = page(SECOND, marks={question: Mark(3.5, 7, True, "Nearly: $x^2$.")})
    for piece in (words, "How it is marked", "Nearly: ", "3.5 of 7 points"):
        assert piece in text(shown)
    model = answer.source.partition("**Rubric.**")[0].splitlines()[1:]
    long = [line for line in model if len(line) > 25 and "$" not in line]
    assert [line for line in long if line in text(shown)] == []


def test_a_test_has_a_name_its_points_and_its_parts(page):
    marks = {"banana-test": Mark(4, 8), "leapfrog-test": Mark(12, 12)}
    shown = text(page(FIRST, marks=marks, failing=["banana-test"]))
    assert re.search(r"Tests of banana\s*4 of 8 points", shown)
    assert (
        re.search(r"a first part\s*4 of 4", shown) and "a hidden test failed" in shown
    )
    assert re.search(r"Tests of leapfrog\s*12 of 12 points", shown)


@pytest.mark.parametrize("points", [14, 9])
def test_a_task_with_all_its_points_shows_no_failure(page, points):
    [cell] = [one for one in FIRST.read().cells if pairs.task_of(one) == "hmc-test"]
    error = {"ename": "AssertionError", "evalue": "too far", "traceback": ["too far"]}
    cell.source, cell.outputs = "pass", [new_output("error", **error)]
    marks = {"hmc-test": Mark(points, 14)}
    shown = page(FIRST, marks=marks, notebook=new_notebook(cells=[cell]))
    assert ("too far" in shown) == (points < 14)


@pytest.mark.browser
@pytest.mark.skipif(editions.CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_telephone_by_day_and_by_night(page, scheme):
    sum_of_many = "\\theta + " * 30
    long = f"{'x' * 300}\n\n${sum_of_many}r$ and $${sum_of_many}r$$"
    code = new_code_cell(f"# {long}", outputs=[new_output("stream", text=long)])
    page(FIRST, notebook=new_notebook(cells=[new_markdown_cell(long), code]))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
        )
        size = {"width": 390, "height": 800}
        opened = browser.new_page(viewport=size, color_scheme=scheme)
        opened.goto(f"file://{page.folder / 'page.html'}")
        assert opened.evaluate("document.documentElement.scrollWidth") == 390
        style = "getComputedStyle(document.body)"
        colours = opened.evaluate(f"[{style}.backgroundColor, {style}.color]")
        browser.close()
    lightness = [sum(map(int, re.findall(r"\d+", one)[:3])) for one in colours]
    back, front = lightness if scheme == "light" else lightness[::-1]
    assert back > 600 and front < 150


@pytest.mark.parametrize(
    "source",
    [
        *("[" * 20_000, "$" * 20_000, "> " * 10_000, "$x$ " * 6_000, "*" * 20_000),
        *("$" + "{" * 2_900 + "$", "`" * 19_999, "x" * 10**7, "| " * 9_000),
    ],
    ids=lambda source: source[:4],
)
def test_a_page_comes_to_its_end(page, source):
    cells = [new_markdown_cell(source), new_code_cell(source)]
    assert len(page(FIRST, notebook=new_notebook(cells=cells))) < 5e6


@pytest.mark.parametrize(
    "cell",
    [
        new_code_cell("x = 1\n" * 100),
        new_markdown_cell("<" * 30_000),
        new_markdown_cell("$\\frac{1}{2}$ " * 20),
        new_code_cell("", outputs=[new_output("stream", text="<" * 20_000)]),
        new_code_cell(
            "", outputs=[new_output("display_data", {"image/png": "A" * 50_000})]
        ),
    ],
    ids=["code", "signs", "formulas", "prints", "pictures"],
)
def test_a_page_has_an_end_and_says_where_it_was_cut(page, cell, monkeypatch):
    monkeypatch.setattr(feedback, "PAGE", 10**5)
    cells = [nbformat.from_dict({**cell, "id": f"cell-{k}"}) for k in range(100)]
    few, many = new_notebook(cells=cells[:1]), new_notebook(cells=cells)
    few, many = page(FIRST, notebook=few), page(FIRST, notebook=many)
    assert feedback.FULL not in few and feedback.FULL in many and len(many) < 2 * 10**5
