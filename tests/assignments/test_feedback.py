"""What a student reads: visible tests, points, comments and rubrics; and no hidden
test, no model answer, nothing from elsewhere.
"""

import csv
import html
import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    DeduplicateIds,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from playwright.sync_api import sync_playwright

from tests.assignments.test_secrets import MARKS, leaks, secret_phrases
from tools import editions
from tools.coursework import edition, feedback, pairs, results
from tools.coursework.roster import enrol

pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
NASTY = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)>\n\nA "
    "[link](javascript:alert(3)) and a ![pixel](https://example.org/pixel.png).\n\n"
    "$$\\frac12 \\href{javascript:alert(4)}{x}$$ and "
    "$\\mmlToken{mi}[href=javascript:alert(5)]{x}$ and $x < y$ and $\\unclosed{$\n\n"
    "```mermaid\n<b>bold</b>\n```\n"
)
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def judged(item, released, answers, failing=()):
    """Make what a judge makes of a submission: the visible tests, their outputs, and no
    word of the hidden ones but that they failed.
    """
    notebook = nbformat.from_dict(released)
    for cell in notebook.cells:
        task = pairs.task_of(cell)
        settings = cell.metadata.get("nbgrader", {})
        if settings.get("solution") and answers is not None:
            cell.source = answers.get(
                task,
                "def answer():\n    return 42"
                if cell.cell_type == "code"
                else f"My answer to {task}.",
            )
            if cell.cell_type == "code":
                cell.outputs = [
                    new_output(
                        "display_data",
                        {
                            "image/png": PICTURE,
                            "text/html": "<script>alert(6)</script>",
                        },
                    )
                ]
        if cell.cell_type == "code" and settings.get("grade"):
            if task in failing:
                cell.outputs = [
                    new_output("stream", text="a hidden test failed\n"),
                    new_output("execute_result", {"text/plain": "4.0"}),
                ]
                cell.metadata.parts = [
                    {"title": "a first part", "points": 4.0, "max_points": 4.0}
                ]
                cell.metadata.reason = (
                    "=the force should be 2, but it is 1\u2028at index 1"
                )
            elif answers is None:
                cell.outputs = [
                    new_output(
                        "error", ename="NotImplementedError", evalue="", traceback=["…"]
                    )
                ]
    notebook.cells.append(
        new_code_cell(
            "print('added')",
            outputs=[new_output("stream", text="\x1b[31madded\x1b[0m " * 10_000)],
        )
    )
    return notebook


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Enter three students into a gradebook for all assignments; the third one's
    submissions are older than this kind of page.
    """
    folder = tmp_path_factory.mktemp("feedback")
    config = edition.course(folder)
    config.Autograde.sanitize_preprocessors = [
        DeduplicateIds,
        OverwriteKernelspec,
        OverwriteCells,
        CheckCellMetadata,
    ]
    # nothing is executed
    config.Autograde.autograde_preprocessors = [
        SaveAutoGrades,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    api = NbGraderAPI(config=config)
    for item in pairs.assignments():
        edition.succeed(api.generate_assignment(item.name, force=True))
        released = nbformat.read(
            folder / "release" / item.name / f"{item.notebook}.ipynb", 4
        )
        tests = [
            pairs.task_of(cell)
            for cell in released.cells
            if (pairs.task_of(cell) or "").endswith("-test")
        ]
        asked = [
            pairs.task_of(cell)
            for cell in released.cells
            if cell.cell_type == "markdown" and cell.metadata.get("nbgrader")
        ]
        old = judged(item, item.read(), {})  # with the hidden tests in its test cells
        for cell in old.cells:
            if (pairs.task_of(cell) or "").endswith("-test"):
                cell.outputs = [
                    new_output(
                        "error",
                        ename="AssertionError",
                        evalue=cell.source,
                        traceback=[cell.source],
                    )
                ]
        for student, notebook in {
            "ann": judged(item, released, {asked[0]: NASTY}, tests[:1]),
            "bo": judged(item, released, None),
            "old": old,
        }.items():
            place = folder / "submitted" / student / item.name
            place.mkdir(parents=True)
            nbformat.write(notebook, place / f"{item.notebook}.ipynb")
            (place / "timestamp.txt").write_text("2026-11-02 23:30:00 UTC")
            edition.succeed(api.autograde(item.name, student, force=True, create=True))
    (folder / "roster.csv").write_text(
        'student_id,last_name,first_name,email\nann,"Lee, '
        'A.",=Ann,ann@example.org\ncy,Fo,Cy,cy@example.org\n'
    )
    (folder / "dates.csv").write_text(
        "assignment,due\nassignment_1,2026-11-02 23:59 "
        "Europe/Berlin\nassignment_2,2026-11-02T23:30+00:00\n"
    )
    enrol(folder)
    results.export(
        folder, {("ann", "assignment_1"): ["=cmd|' /C calc'!A0", "two\u2028lines\n"]}
    )
    return folder


def mark(folder, item, student="ann"):
    """Mark one answer by hand; return its id."""
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", "sgmc") as book:
        [grade, *_] = [
            grade
            for paper in book.find_submission(item.name, student).notebooks
            for grade in paper.grades
            if grade.cell.cell_type == "markdown" and grade.needs_manual_grade
        ]
        grade.manual_score, grade.needs_manual_grade = 3.5, False
        book.find_comment(
            grade.cell.name, item.notebook, item.name, student
        ).manual_comment = "Nearly: $x^2$."
        book.db.commit()
        return grade.cell.name


def page(folder, student, item):
    return (
        folder / "feedback" / student / item.name / f"{item.notebook}.html"
    ).read_text()


def text(source):
    return html.unescape(re.sub(r"<[^>]*>", "", source))


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_no_page_shows_a_hidden_test_or_a_model_answer(graded):
    assert len(list((graded / "feedback").rglob("*.html"))) == 3 * len(
        pairs.assignments()
    )
    assert [leak for leak in leaks(graded / "feedback")] == []


def test_the_scan_would_find_one(graded, tmp_path):
    item = pairs.assignments()[0]
    # as if the instructor's notebook were the student edition
    paper = feedback.Paper(item.read(), item.read(), item.read(), {})
    feedback.write(tmp_path, {"page.html": paper})
    found = {phrase for _, phrase in leaks(tmp_path)}
    assert len(found & secret_phrases(item)) > 20 and found & set(MARKS)


def test_a_page_loads_nothing_and_runs_nothing(graded):
    for path in (graded / "feedback").rglob("*.html"):
        source = path.read_text()
        tags = [
            re.sub(r'aria-label="[^"]*"', "", tag)
            for tag in re.findall(r"<[a-zA-Z/][^>]*>", source)
        ]
        assert [tag for tag in tags if not_of_paper(tag)] == []
        assert (
            "default-src 'none'" in source
            and "url(" not in source
            and "@import" not in source
        )
    assert all(
        map(
            not_of_paper,
            [
                '<script src="x.js">',
                '<a href="javascript:x">',
                '<img src="https://example.org/x.png">',
                "<p onclick='x'>",
            ],
        )
    )


def not_of_paper(tag):
    """Tell whether a tag loads something, or runs something; a link that one may follow
    does neither.
    """
    name, address = (
        re.match(r"</?([a-zA-Z0-9]+)", tag)[1].lower(),
        re.search(r"""\b(?:src|srcset|href|action|data)\s*=\s*["']?([^"'\s>]*)""", tag),
    )
    loads = (
        "script",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "video",
        "audio",
        "source",
    )
    good = "(#|data:image/)" if name != "a" else "(#|https?://|[\\w./-]+$)"
    return bool(
        name in loads
        or re.search(r"\son\w+\s*=", tag)
        or (address and not re.match(good, address[1]))
    )


def test_formulas_are_pictures(graded):
    for item in pairs.assignments():
        source = page(graded, "bo", item)
        assert source.count('role="img" aria-label=') > 20
        assert (
            "Undefined control sequence" not in source
            and "data-mjx-error" not in source
        )
        assert set(re.findall(r'href="(#MJX[^"]*)"', source)) <= {
            f"#{name}" for name in re.findall(r'id="(MJX[^"]*)"', source)
        }
        assert not re.search(
            r"\$\S", re.sub(r"<div class=\"code\">.*?</div>", "", source, flags=re.S)
        )


def test_formulas_stay_as_they_were_typed_where_they_cannot_be_set(
    graded, tmp_path, monkeypatch
):
    monkeypatch.setattr(feedback, "SECONDS", 0)
    item = pairs.assignments()[0]
    released = nbformat.read(
        graded / "release" / item.name / f"{item.notebook}.ipynb", 4
    )
    feedback.write(
        tmp_path, {"page.html": feedback.Paper(released, released, item.read(), {})}
    )
    assert "\\theta_1" in text((tmp_path / "page.html").read_text())


def test_what_is_not_marked_is_not_zero(graded):
    item = pairs.assignments()[0]
    assert "not marked yet (7 points)" in page(
        graded, "ann", item
    ) and "40 more are not marked yet" in page(graded, "ann", item)
    nothing = text(page(graded, "bo", item))
    # nothing was answered
    assert "0 of 7 points" in nothing and "not marked yet" not in nothing


def test_a_rubric_comes_with_the_mark(graded):
    item = pairs.assignments()[1]
    answer = next(
        cell
        for cell in item.read().cells
        if cell.cell_type == "markdown" and "**Rubric.**" in cell.source
    )
    words = re.search(r"\*\*Rubric\.\*\* (\d points: [\w ]+)", answer.source)[1]
    assert words not in text(page(graded, "ann", item))
    task = mark(graded, item)
    assert task == pairs.task_of(answer)
    results.export(graded, results.read_remarks(graded / "remarks.csv"))
    shown = page(graded, "ann", item)
    assert (
        words in text(shown)
        and "How it is marked" in shown
        and "Nearly: " in shown
        and "3.5 of" in shown
    )
    model = answer.source.partition("**Rubric.**")[0].splitlines()[1:]
    assert [
        line
        for line in model
        if len(line) > 25 and "$" not in line and line in text(shown)
    ] == []
    assert words not in text(page(graded, "old", item))  # the others wait


def test_a_test_has_a_name_its_points_and_its_parts(graded):
    item = pairs.assignments()[0]
    source = text(page(graded, "ann", item))
    assert re.search(r"Tests of banana\s*4 of 8 points", source) and re.search(
        r"a first part\s*4 of 4", source
    )
    assert "a hidden test failed" in source and "but it is 1" not in source
    assert re.search(r"Tests of leapfrog\s*12 of 12 points", source)


@pytest.mark.browser
@pytest.mark.skipif(
    editions.CHROMIUM is None,
    reason="no Chromium is installed, in which the page is looked at",
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_telephone_by_day_and_by_night(scheme, tmp_path):
    released = pairs.assignments()[0].read()
    long = (
        "x" * 300
        + "\n\n$"
        + "\\theta + " * 30
        + "r$ and $$"
        + "\\theta + " * 30
        + "r$$"
    )
    cells = [
        nbformat.v4.new_markdown_cell(long),
        new_code_cell(f"# {long}", outputs=[new_output("stream", text=long)]),
    ]
    feedback.write(
        tmp_path,
        {
            "page.html": feedback.Paper(
                nbformat.v4.new_notebook(cells=cells), released, released, {}
            )
        },
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=editions.CHROMIUM, args=["--no-sandbox"], timeout=0
        )
        page = browser.new_page(
            viewport={"width": 390, "height": 800}, color_scheme=scheme
        )
        page.goto(f"file://{tmp_path / 'page.html'}")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        colours = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, "
            "getComputedStyle(document.body).color]"
        )
        browser.close()
    lightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
    assert (
        (lightness[0] < 150 and lightness[1] > 600)
        if scheme == "dark"
        else (lightness[0] > 600 and lightness[1] < 150)
    )


@pytest.mark.parametrize("points", [14, 9])
def test_a_task_with_all_its_points_shows_no_failure(points, tmp_path):
    item = pairs.assignments()[0]
    cell = next(cell for cell in item.read().cells if pairs.task_of(cell) == "hmc-test")
    cell.source, cell.outputs = (
        "pass",
        [
            new_output(
                "error", ename="AssertionError", evalue="too far", traceback=["too far"]
            )
        ],
    )
    paper = feedback.Paper(
        nbformat.v4.new_notebook(cells=[cell]),
        nbformat.v4.new_notebook(),
        item.read(),
        {"hmc-test": feedback.Mark(points, 14)},
    )
    feedback.write(tmp_path, {"page.html": paper})
    assert ("too far" in (tmp_path / "page.html").read_text()) == (points < 14)


def test_what_a_student_wrote_does_nothing_to_the_page(graded):
    shown = page(graded, "ann", pairs.assignments()[0])
    assert "&lt;script&gt;alert(1)" in shown and "alert(6)" not in shown
    assert f"data:image/png;base64,{PICTURE}" in shown
    assert "[picture: pixel]" in shown and "&lt;b&gt;bold" in shown
    assert len(shown) < 1e6 and "\x1b" not in shown and "… cut" in shown


@pytest.mark.parametrize(
    "source",
    [
        "[" * 20_000,
        "$" * 20_000,
        "> " * 10_000,
        "$x$ " * 6_000,
        "*" * 20_000,
        "$" + "{" * 2_900 + "$",
        "`" * 19_999,
        "x" * 10**7,
        "| " * 9_000,
    ],
    ids=lambda source: source[:4],
)
def test_a_page_comes_to_its_end(source, tmp_path):
    released = pairs.assignments()[0].read()
    submitted = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(source), new_code_cell(source)]
    )
    feedback.write(
        tmp_path, {"page.html": feedback.Paper(submitted, released, released, {})}
    )
    assert len((tmp_path / "page.html").read_text()) < 5e6


@pytest.mark.parametrize(
    "cell",
    [
        new_code_cell("x = 1\n" * 100),
        nbformat.v4.new_markdown_cell("word " * 3_000),
        nbformat.v4.new_markdown_cell("<" * 30_000),
        nbformat.v4.new_markdown_cell("$\\frac{1}{2}$ " * 20),
        new_code_cell("", outputs=[new_output("stream", text="<" * 20_000)]),
        new_code_cell(
            "", outputs=[new_output("display_data", {"image/png": "A" * 50_000})]
        ),
    ],
    ids=["code", "words", "signs", "formulas", "prints", "pictures"],
)
def test_a_page_has_an_end_and_says_where_it_was_cut(cell, tmp_path, monkeypatch):
    released = pairs.assignments()[0].read()
    pages = {}
    for number in (1, 50):
        cells = [nbformat.from_dict({**cell, "id": f"cell-{k}"}) for k in range(number)]
        paper = feedback.Paper(
            nbformat.v4.new_notebook(cells=cells), released, released, {}
        )
        monkeypatch.setattr(feedback, "PAGE", 2 * 10**5)
        feedback.write(tmp_path, {"page.html": paper})
        pages[number] = (tmp_path / "page.html").read_text()
    assert (
        feedback.FULL not in pages[1]
        and feedback.FULL in pages[50]
        and len(pages[50]) < 3 * 10**5
    )


def test_the_roster_and_the_dates_are_in_the_tables(graded):
    rows = {
        (row["student_id"], row["assignment"]): row
        for row in table(graded / "grades.csv")
    }
    ann = rows["ann", "assignment_1"]
    assert (ann["last_name"], ann["first_name"], ann["email"]) == (
        "Lee, A.",
        "'=Ann",
        "ann@example.org",
    )
    assert ann["duedate"] == "2026-11-02 22:59:00" and float(
        ann["hours_late"]
    ) == pytest.approx(31 / 60, abs=1e-4)
    assert (
        rows["ann", "assignment_2"]["hours_late"] == "0.0"
        and rows["ann", "assignment_3"]["hours_late"] == ""
    )
    absent = rows["cy", "assignment_1"]
    assert (absent["score"], absent["timestamp"], absent["last_name"]) == (
        "0.0",
        "",
        "Fo",
    )


def test_remarks_say_who_is_missing_and_are_safe_in_a_spreadsheet(graded):
    for _ in range(2):  # writing the tables again changes nothing
        remarks = results.read_remarks(graded / "remarks.csv")
        assert remarks["cy", "assignment_1"] == [results.ABSENT] and remarks[
            "bo", "assignment_1"
        ] == [results.STRANGER]
        assert remarks["ann", "assignment_1"] == ["'=cmd|' /C calc'!A0", "two lines "]
        results.export(graded, remarks)
    reasons = {
        (row["student_id"], row["task"]): row["reason"]
        for row in table(graded / "tasks.csv")
    }
    assert (
        reasons["ann", "banana"] == "'=the force should be 2, but it is 1 at index 1"
        and reasons["ann", "leapfrog"] == ""
    )


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (
            "dates.csv",
            "assignment,due\nassignment_1,2026-11-02 23:59\n",
            "line 2 .* a zone",
        ),
        (
            "dates.csv",
            "assignment,due\nassignment_1,2026-11-02 23:59 Europe/Nowhere\n",
            "line 2 .* a zone",
        ),
        (
            "dates.csv",
            "assignment,due\nassignment_9,2026-11-02 23:59 UTC\n",
            "names assignment_9",
        ),
        ("roster.csv", "name\nann\n", "should begin with"),
        (
            "roster.csv",
            "student_id,last_name,first_name,email\n,Lee,Ann,\n",
            "line 2 .* has no student_id",
        ),
        (
            "roster.csv",
            "student_id,last_name,first_name,email\nann,,,\nann,,,\n",
            "line 3 .* a student ann already",
        ),
        ("roster.csv", b"\xff\xfe\x00", "should begin with"),
    ],
)
def test_a_roster_or_a_date_that_cannot_be_understood(
    name, content, complaint, graded, tmp_path
):
    shutil.copy(graded / "gradebook.db", tmp_path)
    (tmp_path / name).write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    with pytest.raises(ValueError, match=complaint):
        enrol(tmp_path)
