"""List what the package says, from its source: its errors, for a page of the reference,
and its warnings, each with the label of its entry in *When it goes wrong*.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LABEL = re.compile(r"\[([a-z-]+|too-…)\]$")


class Message(NamedTuple):
    """What one line of the source says, with … for what a run puts in."""

    file: str
    kind: str  # the name of the error
    text: str


def words(node: ast.AST | None) -> str:
    """Write an expression as the text that it makes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(words(value) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return words(node.left) + words(node.right)
    return "…"


def parsed(root: Path = ROOT) -> Iterator[tuple[str, ast.Module]]:
    """Give the files of the package, in order."""
    for path in sorted((root / "sgmc").rglob("*.py")):
        yield str(path.relative_to(root)), ast.parse(path.read_text(encoding="utf-8"))


def errors(root: Path = ROOT) -> list[Message]:
    """List the errors that the package raises with a sentence of its own."""
    made = [
        (file, call)
        for file, tree in parsed(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise | ast.Return)
        for call in [node.exc if isinstance(node, ast.Raise) else node.value]
        if isinstance(call, ast.Call)
    ]
    found = [
        # a run makes its DivergenceError by the method divergence
        Message(
            file,
            ast.unparse(call.func).replace("self.divergence", "DivergenceError"),
            words(call.args[0]),
        )
        for file, call in made
        if call.args and re.search("Error$|divergence$", ast.unparse(call.func))
    ]
    return [each for each in found if len(re.findall(r"[a-z]{2,}", each.text)) > 2]


def warned(root: Path = ROOT) -> set[str]:
    """Collect the texts of the package that end in a label: what it warns of."""
    nodes = [node for _, tree in parsed(root) for node in ast.walk(tree)]
    parts = {
        id(part)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    texts = {
        words(node)
        for node in nodes
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in parts
    }
    return {text for text in texts if LABEL.search(text)}


def page(root: Path = ROOT) -> str:
    """Write the page that lists the errors, by the room of the package."""
    lines = [
        "# Error messages",
        "",
        "All errors that `sgmc` raises with a sentence of its own, as its source has "
        "them; … stands for what a run puts in. Warnings are in "
        "{doc}`/book/practice/when_it_goes_wrong`.",
    ]
    found = sorted(set(errors(root)))
    for file in sorted({each.file for each in found}):
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        lines += ["", f"## `{module}`", ""]
        lines += [
            f"* `{each.kind}`: {_plain(each.text)}"
            for each in found
            if each.file == file
        ]
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """Keep Markdown from reading marks in a text."""
    return re.sub(r"([\\`*_{}\[\]<>$|#])", r"\\\1", " ".join(text.split()))
