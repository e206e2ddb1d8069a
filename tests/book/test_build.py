"""The build: what it must notice."""

import html
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from booklib import MEDIA
from tests.book.small import SOURCE, run
from tools import book


def build(root, *options):
    """Build the small book as ``make book`` does, from its sources to its pages."""
    return run(root, sys.executable, "tools/book.py", "build", *options)


def page(root):
    return (root / "_build" / "html" / "book" / "part" / "small.html").read_text()


@pytest.mark.slow
def test_a_change_of_the_package_alone_changes_the_page_and_no_pair(small_book):
    assert run(small_book, "sync")[0] == 0
    pair = [
        small_book / "book" / "part" / f"small.{ending}" for ending in ("py", "ipynb")
    ]
    before = [path.stat().st_mtime_ns for path in pair]
    code, said = build(small_book, "--strict")
    assert code == 0, said
    assert "first" in page(small_book)
    start = (small_book / "_build" / "notebooks" / "start.ipynb").read_text()
    assert "[A small chapter](part/small.ipynb)" in start
    (small_book / "sgmc" / "__init__.py").write_text(
        "def answer():\n    return 'second'\n"
    )
    code, said = build(small_book, "--strict")
    assert code == 0, said
    assert "second" in page(small_book) and "first" not in page(small_book)
    assert [path.stat().st_mtime_ns for path in pair] == before


@pytest.mark.slow
def test_notebooks_come_without_an_execution_and_with_the_text_that_is_stored(
    small_book,
):
    """The package says another word by then, which only an execution would find."""
    with_cell(small_book, "import matplotlib.pyplot as plt; plt.plot([1]); plt.show()")
    assert run(small_book, "sync")[0] == 0
    text = (small_book / "sgmc" / "__init__.py").read_text().replace("first", "second")
    (small_book / "sgmc" / "__init__.py").write_text(text)
    shutil.rmtree(small_book / "_build")
    code, said = run(small_book, "notebooks")
    assert code == 0 and "1 of 1 pages have text outputs and no figures" in said, said
    assert (
        "first" in page(small_book)
        and "| not executed |"
        in (small_book / "_build/source/book/appendix/execution_status.md").read_text()
    )
    notebook = small_book / "_build" / "notebooks" / "part" / "small.ipynb"
    assert book.NOT_DRAWN in notebook.read_text() and "first" in notebook.read_text()
    assert run(small_book, "notebooks") == (0, "")
    assert build(small_book, "--strict")[0] == 0
    assert "second" in notebook.read_text() and "image/png" in notebook.read_text()
    assert run(small_book, "notebooks") == (0, "")


def test_notebooks_are_made_again_when_anything_that_they_are_made_of_changes(
    small_book, monkeypatch
):
    made = []
    monkeypatch.setattr(book, "stage", lambda found, root: root)

    def make_pages(*arguments, root, **settings):
        made.append(True)
        (root / "_build" / "notebooks").mkdir(parents=True, exist_ok=True)
        book.write(book.made(root), book.state(root))

    monkeypatch.setattr(book, "make_pages", make_pages)
    changes = ["index.md", "book/part/small.py", "booklib/__init__.py", "_config.yml"]
    changes += ["tools/markdown.py", "_build/source/book/part/small.ipynb"]
    for count, name in enumerate(changes, start=1):
        (small_book / name).parent.mkdir(parents=True, exist_ok=True)
        with (small_book / name).open("a") as file:
            file.write("\n")
        for _ in range(2):
            book.make_notebooks(small_book)
            assert len(made) == count, name
    shutil.rmtree(small_book / "_build" / "notebooks")
    book.make_notebooks(small_book)
    assert len(made) == len(changes) + 1


def with_cell(root, source, name="small", text=""):
    """Write a chapter whose last cell is another one, and which has a text."""
    head = "\n#\n".join(filter(None, (f"# # Chapter {name}", f"# {text}" * bool(text))))
    whole = SOURCE.replace("# # A small chapter", head).replace("1 + 1", source)
    (root / "book" / "part" / f"{name}.py").write_text(whole)


def recording(*records):
    """Write the code of a cell that records claims."""
    whole = [{**RECORD, **record} for record in records]
    return (
        "from IPython.display import display\n"
        f"display({{'text/plain': 'lines', {MEDIA!r}: {whole!r}}}, raw=True)"
    )


RECORD = {
    "name": "half",
    "kind": "exact",
    "holds": True,
    "parts": {},
    "shown": "0.5",
    "measured": "0.5",
    "words": "at most 1",
    "because": "counted",
    "says": "",
    "line": "✓ half = 0.5: at most 1 (because counted)",
}


def with_claim(root, holds):
    line = f"{'✓' if holds else '✗'} 2 is < 1: true, but measured false"
    record = {"says": "2 is < 1", "holds": holds, "words": "true", "line": line}
    with_cell(root, recording(record))


@pytest.mark.slow
def test_a_claim_that_does_not_hold_is_shown_and_listed_and_there_is_a_book(small_book):
    """Of a chapter that was committed, and whose notebook is of before."""
    assert run(small_book, "sync")[0] == 0
    for command in (
        "init -q",
        "add book",
        "-c user.name=a -c user.email=a@b commit -qm first",
    ):
        subprocess.run(["git", *command.split()], cwd=small_book, check=True)
    with_claim(small_book, holds=False)
    code, said = build(small_book)
    assert code == 0, said
    assert "1 of 1 claims do not hold on this machine:" in said
    assert (
        "✗ Chapter small: 2 is < 1: true, but measured false\n  "
        f"{small_book}/_build/html/book/part/small.html#claim-half" in said
    )
    assert (
        "small.py was changed since it was last committed; git restore "
        '"book/part/small".* brings it back.' in said
    )
    assert "small.ipynb differs from small.py, from which its page is made" in said
    assert "1 + 1" in (small_book / "book" / "part" / "small.ipynb").read_text(), (
        "a build wrote a notebook"
    )
    assert 'class="claim broken"' in page(small_book)
    claims = (
        small_book / "_build" / "source" / "book" / "appendix" / "claims.md"
    ).read_text()
    assert (
        "1 of them do not hold" in claims
        and '<td>✗ <a href="../part/small.html#claim-half">' in claims
    )
    code, said = build(small_book, "--strict")
    assert code == 1 and "✗ Chapter small" in said, (
        "a strict build passes over a claim that does not hold"
    )
    with_claim(small_book, holds=True)
    code, said = build(small_book, "--strict")
    assert code == 0 and "✗" not in said, said


@pytest.mark.slow
def test_a_cell_that_raises_shows_its_error_on_its_page_and_the_others_are_built(
    small_book,
):
    """One that kills its kernel, too."""
    with_cell(small_book, "1 / 0")
    with_cell(small_book, "6 * 7", "other")
    with_cell(small_book, "import os; os._exit(1)", "deadly")
    toc = small_book / "_toc.yml"
    toc.write_text(
        toc.read_text() + "  - file: book/part/other\n  - file: book/part/deadly\n"
    )
    code, said = build(small_book)
    assert (
        code == 1
        and "✗ Chapter small: a cell raised ZeroDivisionError: division by zero" in said
    )
    assert "the kernel died here" in said
    assert "ZeroDivisionError" in page(small_book) and "first" in page(small_book)
    assert (
        "42"
        in (small_book / "_build" / "html" / "book" / "part" / "other.html").read_text()
    )
    again = build(small_book)[1]
    assert "executing 2 of 3 pages" in again, (
        "a chapter that failed is tried again, and no other"
    )


@pytest.mark.slow
def test_what_a_stopped_build_has_executed_is_kept(small_book):
    """The second chapter stops the build, as Ctrl-C does, once the first is
    executed.
    """
    with_cell(small_book, "6 * 7", "other")
    toc = small_book / "_toc.yml"
    toc.write_text(toc.read_text() + "  - file: book/part/other\n")
    first, second = (
        book.executed_path(small_book / "book/part/small.py", small_book),
        small_book / "book" / "part" / "other.py",
    )
    waits = (
        f"import pathlib, time\nwhile not pathlib.Path({str(first)!r}).exists():\n    "
        "time.sleep(0.1)\ntime.sleep(10_000)"
    )
    second.write_text(second.read_text().replace("6 * 7", waits))
    process = subprocess.Popen(
        [sys.executable, "tools/book.py", "build"],
        cwd=small_book,
        env={**os.environ, "PYTHONPATH": str(small_book)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # a shell that starts the tests in the background has Ctrl-C ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in process.stdout:
        if "1 of 2: small" in line:
            os.killpg(process.pid, signal.SIGINT)
            break
    rest = process.communicate()[0]
    assert process.returncode != 0 and rest.endswith(
        "What is executed is kept: make book goes on from here.\n"
    )
    with_cell(small_book, "6 * 7", "other")
    code, said = build(small_book)
    assert code == 0 and "executing 1 of 2 pages" in said, said


@pytest.mark.slow
def test_one_chapter_is_executed_and_its_page_made_beside_the_others_as_they_were(
    small_book,
):
    with_cell(small_book, "1 / 0", "other")
    toc = small_book / "_toc.yml"
    toc.write_text(toc.read_text() + "  - file: book/part/other\n")
    drawn = "from IPython.display import HTML\n\nHTML('<b>drawn</b>')"
    with_cell(small_book, drawn, "small")
    code, said = run(small_book, sys.executable, "tools/book.py", "chapter", "small")
    assert (
        code == 0
        and "executing 1 of 1 pages" in said
        and "wrote book/part/small.ipynb" in said
    ), said
    assert (
        "first" in page(small_book)
        and "<b>drawn</b>" in page(small_book)  # and not the text that the pair has
        and not (small_book / "book" / "part" / "other.ipynb").exists()
    )
    code, said = run(small_book, sys.executable, "tools/book.py", "chapter", "nowhere")
    assert (
        code == 1 and "There is no chapter 'nowhere'; there are small, other." in said
    )


SAYING = (
    "A half is {c}`half`, or $x = {c}`half`$; a gap of {c}`gap` is {c}`gap.verdict`,"
    " and $n = {c}`gap.seeds`$."
)
GAP = {
    "name": "gap",
    "kind": "stored",
    "parts": {"verdict": "open", "mean": "−0.2", "seeds": "17"},
    "shown": "−0.2 [−0.4, 0.1]",
    "words": "open",
}


def plain(text):
    """Read a page without its marks."""
    return html.unescape(re.sub(r"<[^>]*>", "", text))


@pytest.mark.slow
def test_a_sentence_shows_what_was_measured_on_its_page_and_on_another(small_book):
    for name in ("small", "other"):
        text = SAYING if name == "small" else "There it was {c}`small/half`."
        cell = recording({}, GAP) if name == "small" else "2"
        with_cell(small_book, cell, name, text)
    with (small_book / "_toc.yml").open("a") as contents:
        contents.write("  - file: book/part/other\n")
    code, said = build(small_book, "--strict")
    assert code == 0, said
    text = plain(page(small_book))
    assert (
        "A half is 0.5✓, or \\(x = 0.5\\); a gap of −0.2 [−0.4, 0.1]✓ is open✓, and \\(n = 17\\)."
        in text
    )
    assert 'title="✓ half = 0.5: at most 1 (because counted)"' in page(small_book)
    other = small_book / "_build" / "html" / "book" / "part" / "other.html"
    assert "There it was 0.5✓." in plain(other.read_text())
    assert 'href="small.html#claim-half"' in other.read_text()
    notebook = small_book / "_build" / "notebooks" / "part" / "small.ipynb"
    assert "A half is 0.5✓, or $x = 0.5$" in notebook.read_text()
    claims = small_book / "_build" / "source" / "book" / "appendix" / "claims.md"
    assert "A half is <b>0.5</b>, or" in claims.read_text()
    # the number changes, and with it the sentences, also of the page that did not
    changed = {"shown": "0.7", "measured": "0.7", "holds": False, "line": "✗ half"}
    with_cell(small_book, recording(changed, GAP), "small", SAYING)
    code, said = build(small_book)
    assert code == 0 and "✗ Chapter small: half" in said
    assert "A half is 0.7✗, or \\(x = 0.7\\)" in plain(page(small_book))
    assert 'class="c broken"' in page(small_book)
    assert "There it was 0.7✗." in plain(other.read_text())


@pytest.mark.slow
def test_a_name_without_a_record_and_a_record_without_a_sentence_are_said(small_book):
    cell = recording({}, {"name": "gap"}, {"name": "gap", "parts": {"mean": "1"}})
    text = "It is {c}`thirds` and $y = {c}`quarter`$, see {ref}`nowhere`."
    with_cell(small_book, cell, text=text)
    code, said = build(small_book)
    assert code == 0 and "It is ✗ thirds" in plain(page(small_book))
    for words in (
        "no cell of small records 'thirds'",
        "no text shows 'half'",
        "two records are named 'gap'",
        "a formula names 'quarter'",
        "undefined label: 'nowhere'",
    ):
        assert words in said, said
    assert build(small_book, "--strict")[0] != 0
