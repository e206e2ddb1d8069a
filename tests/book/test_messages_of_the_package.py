"""What the package says has its place in the book: each warning an entry in *When it
goes wrong*, whose label it ends in, and each error a line in the reference.
"""

import ast
import re

from tools import book, messages

PAGE = (book.ROOT / "book" / "practice" / "when_it_goes_wrong.py").read_text()
ENTRIES = set(re.findall(r"^# \(([a-z-]+)\)=$", PAGE, re.M))


def calls(tree, name):
    """List the calls of a function or method with this name."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name
    ]


def labelled(tree):
    """Tell whether a text below ends in a label, or another remark is asked."""
    inner = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(
        isinstance(node, ast.Constant | ast.JoinedStr)
        and messages.LABEL.search(messages.words(node))
        for node in ast.walk(tree)
    ) or any(
        re.search(r"(^|\.)(remark_\w+|diagnose)$", ast.unparse(node.func))
        for node in inner
    )


def test_every_label_has_an_entry_and_the_table_leads_to_every_entry():
    found = {messages.LABEL.search(text)[1] for text in messages.warned()}
    assert "too-…" in found  # too-wide or too-narrow, as a run finds
    assert found - {"too-…"} | {"too-wide", "too-narrow"} <= ENTRIES
    assert set(re.findall(r"^# \|.*\(#([a-z-]+)\) \|$", PAGE, re.M)) == ENTRIES


def test_every_warning_ends_in_a_label():
    warned = [
        (file, messages.words(call.args[0]))
        for file, tree in messages.parsed()
        for call in calls(tree, "warn")
    ]
    assert [file for file, text in warned if text in ("…", "……")] == [
        "sgmc/checks.py",  # the function that adds the page
        *["sgmc/door/sampling.py"] * 2,  # the remarks
        "sgmc/tuning/defaults.py",  # one of two texts
    ]
    assert not [
        (file, text)
        for file, text in warned
        if text not in ("…", "……") and not messages.LABEL.search(text)
    ]


def test_every_remark_ends_in_a_label():
    remarks = [
        (file, node)
        for file, tree in messages.parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and re.match(r"remark_|diagnose$", node.name)
        and file != "sgmc/kernels/base.py"  # a kernel that remarks nothing
    ]
    assert len(remarks) > 12
    assert [(file, node.name) for file, node in remarks if not labelled(node)] == []


def test_every_error_with_a_sentence_is_listed(tmp_path):
    source = (
        "def f(x):\n"
        "    if x:\n"
        "        raise ValueError('x must be ' f'zero, but it is {x}: ' + 'use 0')\n"
        "    raise KeyError('x')\n"
    )
    folder = tmp_path / "sgmc"
    folder.mkdir()
    (folder / "one.py").write_text(source)
    assert messages.errors(tmp_path) == [
        messages.Message(
            "sgmc/one.py", "ValueError", "x must be zero, but it is …: use 0"
        )
    ]
    assert "* `ValueError`: x must be zero, but it is …: use 0" in (
        messages.page(tmp_path)
    )
    assert "belongs to a run under … with another …" in messages.page()
    assert len(messages.errors()) > 140
