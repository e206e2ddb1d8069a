"""Whoever copies the functions that the book's pages show, with the arguments renamed,
gets next to nothing for the code tasks.
"""

import ast
import re

import pytest

from coursework.engine import pairs
from coursework.tests import running
from tests.book.test_visible_code import PAGES, visible

MOST = 5  # of the 60 points of an assignment
NAMES = {"theta": "position", "r": "momentum", "U": "energy", "look": "gradient"}
STOCHASTIC = "lambda theta: stochastic_gradient(theta, generator)"


def functions(source):
    """List the functions that a source defines at its top level."""
    return [one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)]


def shown():
    """Give the functions of each page, under names of their own, with their sources."""
    for page in PAGES:
        body = ast.parse(visible(page)).body
        kinds = ast.FunctionDef | ast.Import | ast.ImportFrom
        source = "\n\n".join(ast.unparse(one) for one in body if isinstance(one, kinds))
        for name in [one.name for one in functions(source)]:
            source = re.sub(rf"\b{name}\b", f"page_{name}", source)
        for function in functions(source):
            yield function, source


def retyped(answer, function, source):
    """Write an answer that is a page's function; None if arguments are missing."""
    own = {one.arg for one in answer.args.args}
    if "stochastic_gradient" in own:
        own |= {"gradient"}
    given = {}
    needed = len(function.args.args) - len(function.args.defaults)
    for number, one in enumerate(function.args.args):
        name = NAMES.get(one.arg, one.arg)
        if name in own:
            is_noisy = name == "gradient" and "stochastic_gradient" in own
            given[one.arg] = STOCHASTIC if is_noisy else name
        elif number < needed:
            return None
    if len(given) < min(2, len(own)):
        return None
    call = ", ".join(f"{name}={value}" for name, value in given.items())
    head = f"def {answer.name}({ast.unparse(answer.args)}):"
    return f"{source}\n\n\n{head}\n    return {function.name}({call})"


@pytest.mark.parametrize("name", ["assignment_1", "assignment_2", "assignment_3"])
def test_a_copyist_of_the_pages_gets_next_to_nothing(name):
    best, tried = dict.fromkeys(running.tests_of(name), 0.0), 0
    for cell in running.cells_of(name):
        task = pairs.task_of(cell)
        for answer in functions(cell.source) if task in best else ():
            for function, source in shown():
                if copy := retyped(answer, function, source):
                    result = running.execution(name, {task: copy}, [task])[0][task]
                    best[task] = max(best[task], result.points)
                    tried += 1
    assert tried and sum(best.values()) <= MOST, best
