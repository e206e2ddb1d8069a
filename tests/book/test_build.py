"""The build: what it must notice."""

import sys
from pathlib import Path

from tests.book.conftest import SOURCE, run


def build(root):
    """Build the small book as ``make book`` does, from its sources to its pages."""
    code, said = run(root, "update")
    if code == 0:
        code, said = run(root, str(Path(sys.executable).with_name("jupyter-book")), "build", ".", "-n", "-W", "--keep-going")
    return code, said


def page(root):
    return (root / "_build" / "html" / "book" / "part" / "small.html").read_text()


def test_a_change_of_the_package_alone_changes_the_page(small_book):
    code, said = build(small_book)
    assert code == 0, said
    assert "first" in page(small_book)
    (small_book / "sgmc" / "__init__.py").write_text("def answer():\n    return 'second'\n")
    code, said = build(small_book)
    assert code == 0, said
    assert "second" in page(small_book) and "first" not in page(small_book)


TO_NOTHING = {
    "See {ref}`nowhere`.": "undefined label: 'nowhere'",
    "See {doc}`/book/nowhere`.": "unknown document: '/book/nowhere'",
    "See {eq}`eq-nowhere`.": "equation not found: eq-nowhere",
    "See {prf:ref}`thm-nowhere`.": "thm-nowhere",
    "See {cite:t}`nobody1900`.": "could not find bibtex key",
    "![](nowhere.png)": "image file not readable",
}


def test_references_to_nothing_fail_the_build_and_each_is_named(small_book):
    text = "\n#\n".join(f"# {sentence}" for sentence in TO_NOTHING)
    (small_book / "book" / "part" / "small.py").write_text(SOURCE.replace("# # A small chapter", f"# # A small chapter\n#\n{text}"))
    code, said = build(small_book)
    assert code != 0
    assert [message for message in TO_NOTHING.values() if message not in said] == [], said
