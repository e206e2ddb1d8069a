"""Change one operator, sign, constant, condition or pair of arguments of a module at a
time, and list the changes that no test sees.

usage: python -m tests.faults.mutate sgmc/noise.py tests/core/test_noise.py ... [--only
FUNCTION]

What survives is either a gap in the tests or the same function written otherwise: only
a reader can tell. Messages, annotations and docstrings are left alone. cosmic-ray does
the same with a new Python, and so an import of PyTorch, for each mutant.
"""

import argparse
import ast
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from tests.faults.planting import ROOT, copy_tree, run_tests

SECONDS = 120  # of the processor, after which a mutant that loops is ended, and so seen
SWAPS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, Add Sub, Mult Div, And Or"
PAIRS = [[getattr(ast, name) for name in pair.split()] for pair in SWAPS.split(", ")]
OTHER = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])} | {ast.Pow: ast.Mult}
UNTOUCHED = ast.Raise | ast.JoinedStr | ast.arg | ast.Assert  # with all that is in them


class Mutant(NamedTuple):
    """A module with one change."""

    function: str  #: such as "HMC.step"
    line: int
    change: str  #: from what to what
    source: str


def changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """List the fields of a node that may be changed, and what to."""
    match node:
        case ast.Compare(ops=[op, *more]) if type(op) in OTHER:
            yield "ops", [OTHER[type(op)](), *more]
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in OTHER:
            yield "op", OTHER[type(node.op)]()
        case ast.UnaryOp(op=ast.USub()):
            yield "op", ast.UAdd()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield "value", value + 1
        case ast.Call(args=[first, second, *more]):
            yield "args", [second, first, *more]
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "test", ast.UnaryOp(ast.Not(), test)


def sites(node: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """List the nodes of functions, with the names of these, but what is untouched."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        name = f"{name}.{node.name}".removeprefix(".")
        children = node.body
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    else:
        children = ast.iter_child_nodes(node)
    if name and hasattr(node, "lineno"):
        yield name, node
    for child in children:
        if not isinstance(child, UNTOUCHED):
            yield from sites(child, name)


def mutants(source: str) -> Iterator[Mutant]:
    """Make the mutants of a module.

    Example:
        >>> [m.change for m in mutants("def add(a, b):\\n    return a + 2 * b")]
        ['a + 2 * b → a - 2 * b', '2 * b → 2 / b', '2 → 3']
    """
    tree = ast.parse(source)
    for function, node in list(sites(tree)):
        for field, new in changes(node):
            old, before = getattr(node, field), ast.unparse(node)
            setattr(node, field, new)
            change = f"{before} → {ast.unparse(node)}".replace("\n", " ")
            yield Mutant(function, node.lineno, change, ast.unparse(tree))
            setattr(node, field, old)


def main() -> int:
    """Run the command line; the status is 1 if a mutant survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutate")
    parser.add_argument("module", help="a file of Python")
    parser.add_argument("tests", nargs="+", help="what should see its mutants")
    parser.add_argument("--only", default="", help="only functions with this word")
    given = parser.parse_args()
    found, survived = list(mutants((ROOT / given.module).read_text())), 0
    found = [mutant for mutant in found if given.only in mutant.function]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_tree(ROOT, Path(folder))
        for mutant in tqdm(found, unit="mutant"):
            (Path(folder) / given.module).write_text(mutant.source)
            if not run_tests(Path(folder), " ".join(given.tests), SECONDS):
                survived += 1
                where = f"{given.module}:{mutant.line} {mutant.function}"
                tqdm.write(f"{where}: {mutant.change[:200]}", file=sys.stdout)
    print(f"{len(found)} mutants, {survived} survived")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
