"""The chapters' pairs: in step, executed, in order, and the tools that keep them so."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml

from booklib import MEDIA
from tests.book.small import SOURCE, run
from tools import book, editions, sentences

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_pairs_of_this_book_are_in_step_and_executed():
    assert book.problems() == []


def test_every_chapter_is_in_the_table_of_contents():
    contents = {
        chapter["file"]
        for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
        for chapter in part["chapters"]
    }
    assert {
        str(path.relative_to(ROOT).with_suffix("")) for path in book.chapters()
    } <= contents


def test_every_address_that_a_page_had_leads_to_one_that_exists():
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    moved = config["sphinx"]["config"]["redirects"]
    # all pages of three folders that are no more
    assert (
        len([old for old in moved if re.match("book/(found|stoch|bayes)", old)]) == 31
    )
    for old, new in moved.items():
        page = ROOT / new.strip("/")
        sources = [page.with_suffix(suffix) for suffix in (".py", ".md")]
        assert any(map(Path.is_file, sources)), (
            f"{old} leads to {new}, which is no page"
        )
        assert not (ROOT / old).with_suffix(".py").exists(), f"{old} is a page"


def test_the_front_page_is_executed_too():
    assert book.executed_pages()[0] == ROOT / "index.md" and book.code_cells(
        book.from_source(ROOT / "index.md")
    )


def test_every_executed_chapter_has_claims():
    numbers = {
        path: len(sentences.records(nbformat.read(path.with_suffix(".ipynb"), 4)))
        for path in book.chapters()
    }
    few = {
        str(path): number
        for path, number in numbers.items()
        if number < (1 if "appendix" in str(path) else 5)
    }
    assert not few, f"chapters with too few claims: {few}"


def test_no_line_of_code_is_wider_than_the_page():
    """The formatter leaves strings, docstrings and comments as they are."""
    wide = []
    for path in book.chapters():
        cells = nbformat.read(path.with_suffix(".ipynb"), as_version=4).cells
        wide += [
            (path.stem, line)
            for cell in cells
            if cell.cell_type == "code"
            for line in cell.source.split("\n")
            if len(line) > 88
        ]
    assert wide == []


@pytest.mark.parametrize(
    "name", ["sgmc/__init__.py", "book/results/small.json", "requirements.txt"]
)
def test_what_a_chapter_depends_on_is_in_its_key(small_book, name):
    (small_book / "book" / "results").mkdir()
    before = book.environment_hash(small_book)
    with open(small_book / name, "a") as file:
        file.write("\n")
    assert book.environment_hash(small_book) != before


CHANGES = [
    (lambda notebook: notebook.cells[1].update(source="2 + 2"), "out of step"),
    (
        lambda notebook: notebook.cells[1].update(source="2 + 2"),
        "not executed since its last change",
    ),
    (lambda notebook: notebook.cells[1].update(execution_count=7), "out of order"),
    (
        lambda notebook: notebook.cells[2].outputs[0].data.update({"image/png": "x"}),
        "an image",
    ),
]


@pytest.mark.slow
def test_what_is_wrong_with_a_pair_is_found(small_book):
    assert run(small_book, "sync")[0] == 0
    path = small_book / "book" / "part" / "small.ipynb"
    right = path.read_text()
    for change, message in CHANGES:
        notebook = nbformat.reads(right, 4)
        change(notebook)
        nbformat.write(notebook, path)
        assert any(message in found for found in book.problems(small_book)), message
    code, said = run(small_book, "check")
    assert code == 1 and "an image" in said


@pytest.mark.slow
def test_a_failing_chapter_fails_the_build_with_its_traceback(small_book):
    (small_book / "book" / "part" / "small.py").write_text(
        SOURCE.replace("1 + 1", "1 / 0")
    )
    code, said = run(small_book, "sync")
    assert code == 1 and "ZeroDivisionError" in said


def test_text_outputs_keep_text_and_join_what_was_printed_in_pieces():
    outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="a warning"),
        nbformat.v4.new_output("stream", name="stdout", text="one "),
        nbformat.v4.new_output("stream", name="stdout", text="line\n"),
        nbformat.v4.new_output(
            "display_data", {"text/plain": "a table", "text/html": "<p>"}
        ),
        nbformat.v4.new_output("stream", name="stdout", text="another\n"),
    ]
    texts = [output.get("text") or output.data for output in book.text_outputs(outputs)]
    assert texts == ["one line\n", {"text/plain": "a table"}, "another\n"]


def test_a_pair_keeps_of_records_what_every_processor_says():
    """Also of a notebook that has been laid out for its page."""
    notebook = executed(1.0, "now", output_of(RECORD))
    for found in (notebook, sentences.with_blocks(notebook)):
        (kept,) = book.text_outputs(book.all_outputs(found))
        assert set(kept.data) == {"text/plain", MEDIA}
        (record,) = kept.data[MEDIA]
        assert record == {
            key: "0.50" if key == "measured" else value
            for key, value in RECORD.items()
            if key not in ("value", "error", "bound")
        }


RECORD = {
    "name": "half",
    "kind": "live",
    "value": 0.50123,
    "error": 0.01,
    "bound": {"at_most": 1.0},
    "holds": True,
    "parts": {},
    "shown": "0.50",
    "measured": "0.5012 ± 0.01",
    "words": "at most 1",
    "because": "counted",
    "says": "a < b",
    "line": "✓ a < b: at most 1 (because counted)",
}


def output_of(*records):
    data = {"text/plain": "lines", MEDIA: list(records)}
    return nbformat.v4.new_output("display_data", data)


def test_the_page_of_claims_has_sentence_bound_value_and_kind_of_each():
    shown = RECORD | {"name": "third", "kind": "exact", "says": "", "shown": "0.33"}
    found = sentences.records(executed(1.0, "now", output_of(RECORD, shown)))
    path = Path("book/part/small.py")
    text = "# Head\nIt is **{c}`third`**, see {doc}`/book/a <a>` and $x < {c}`third`$."
    page = sentences.claims_page(
        {path: found}, {path: "Small"}, {"small": [text], "other": []}
    )
    row = '<tr data-kind="{}"><td>✓ <a href="../part/small.html#claim-{}">{}</a></td>'
    rest = "<td>at most 1</td><td>0.5012 ± 0.01</td><td>{}</td></tr>"
    assert row.format("live", "half", "a &lt; b") + rest.format("live") in page
    said = (
        "It is <b>0.33</b>, see /book/a and "
        r'<span class="math notranslate">\(x &lt; 0.33\)</span>.'
    )
    assert row.format("exact", "third", said) + rest.format("exact") in page
    assert (
        "exact (1)" in page
        and "stored (0)" in page
        and "(claims-small)=\n## Small" in page
    )


def test_a_block_is_one_line_that_opens_on_click_or_is_open_where_one_fails():
    page = sentences.block([RECORD, RECORD])
    start = '<details class="checks"><summary>✓ 2 checks hold</summary>'
    assert page.startswith(f'{start}<div class="rows">')
    assert page.count('<div class="claim" id="claim-half">') == 2
    assert re.findall(r'<span class="(\w+)">([^<]*)</span>', page)[:5] == [
        ("verdict", "✓"),
        ("statement", "a &lt; b"),
        ("bound", "at most 1"),
        ("measured", "measured 0.5012 ± 0.01"),
        ("because", "counted"),
    ]
    number = RECORD | {"words": ""}
    assert "✓ 1 check holds" in sentences.block([RECORD, number])
    assert "✓ 2 numbers" in sentences.block([number, number])
    page = sentences.block([RECORD, RECORD | {"holds": False}])
    assert page.startswith('<details class="checks broken" open><summary>✗ 1 of 2')
    assert re.findall(r'class="claim( broken)?"', page) == ["", " broken"]


def test_on_paper_the_claims_of_a_cell_are_open():
    shown = sentences.block([RECORD, RECORD | {"name": "whole"}])
    page = f'<article><details class="hide">code</details>{shown}</article>'
    found = editions.article(page, "page", ["page"], lambda page, name: f"#{name}")
    (folded,) = found.select("details")
    assert folded.has_attr("open")
    assert [claim["id"] for claim in folded.select(".claim")] == [
        "claim-half",
        "claim-whole",
    ]
    assert folded.get_text().count("measured 0.5012 ± 0.01") == 2


@pytest.mark.parametrize(
    ("number", "formula"),
    [("−1,200", "-1{,}200"), ("2.5·10⁻⁷", r"2.5\cdot 10^{-7}"), ("10⁹", "10^{9}")],
)
def test_a_number_in_a_formula_is_tex(number, formula):
    small = {"n": {"shown": number, "parts": {"mean": "5"}}}
    known = {"small": small, "other": {"n": {"shown": "7"}}}
    text = "$n = {c}`n`$, ${c}`n.mean`$ and {c}`n`, $$x = {c}`other/n` {c}`m`$$"
    assert (
        sentences.fill_formulas(text, "small", known)
        == f"$n = {formula}$, $5$ and {{c}}`n`, $$x = 7 {{c}}`m`$$"
    )


def executed(seconds, on, *outputs):
    cell = nbformat.v4.new_code_cell("", outputs=list(outputs))
    said = {"seconds": seconds, "on": on, "key": on and "a hash"}
    return nbformat.v4.new_notebook(cells=[cell], metadata={"executed": said})


def test_the_page_of_times_is_in_words():
    error = nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])
    page = book.execution_page(
        {
            Path("book/part/small.py"): executed(89.6, "22 Nov 2026"),
            Path("book/part/other.py"): executed(30.0, "21 Nov 2026", error),
            Path("book/part/third.py"): executed(0.0, ""),
        }
    )
    assert "| {doc}`/book/part/small` | passed | 90 | 22 Nov 2026 |" in page
    assert "| {doc}`/book/part/other` | a cell failed | 30 |" in page
    assert "| {doc}`/book/part/third` | not executed | 0 |" in page
    assert "Of 3 pages with code 1 passed" in page and "in 1 a cell raised" in page
    assert "and 1 were not executed" in page and "add up to 2 minutes" in page
    assert "the longest was {doc}`/book/part/small`." in page


def test_a_page_is_shown_as_executed_here_or_with_what_its_notebook_keeps(small_book):
    path = small_book / "book" / "part" / "small.py"

    def stored(key, word):
        notebook = book.from_source(path)
        for cell, text in zip(
            book.code_cells(notebook), (word, "<Figure size 1x1>"), strict=True
        ):
            data = {"text/plain": text}
            cell.outputs = [nbformat.v4.new_output("display_data", data)]
        notebook.metadata["executed"] = key
        return nbformat.writes(notebook)

    def shown():
        found = book.all_outputs(book.as_it_was(path, small_book))
        return [output.data["text/plain"] for output in found]

    assert shown() == []
    path.with_suffix(".ipynb").write_text(stored("hash", "pair"))
    assert shown() == ["pair", book.NOT_DRAWN]
    here = book.executed_path(path, small_book)
    for key, expected in {"": "pair", "hash": "here"}.items():
        book.write(here, stored({"key": key}, "here"))
        assert shown()[0] == expected
    path.write_text(path.read_text().replace("1 + 1", "1 + 2"))
    assert shown() == []
