"""No remedy leads into a wall: each message of the package that names an argument or a
function as its remedy is made, the remedy is applied, and the message is gone. The
table is remedies.txt.
"""

import re
import warnings
from pathlib import Path

import pyro
import pytest

from sgmc.checks import warn
from tests.core import mistakes
from tools import messages

TABLE = Path(__file__).with_name("remedies.txt").read_text()
ROWS = {
    words: (wrong, re.findall(r"^\+ (.*)", remedies, re.M))
    for words, wrong, remedies in re.findall(
        r"^([^#+-].*)\n- (.*)\n((?:\+ .*\n)+)", TABLE, re.M
    )
}
# Messages without such a remedy: they say what is wrong, or that nothing needs doing.
WITHOUT = (
    "CompiledSGHMC",  # whose remedy, SGHMC, is everywhere here
    "the posterior counts its data",  # this is part of a warning of the table
    "did not move in the last",  # a chain whose start is far too steep
    "tune takes about",
    "a matrix that is 0",
    "has no root, and is no covariance",
    "batches has no examples",
    "batches must be alike",
    "batches must give tensors",
    "[resuming]",
    "[interrupted]",
    "collect must return",
    "direction must have",
    "function must give",
    "inputs must be (examples",
    "module has no parameters",
    "no step size between",
    "holds no draws, or was damaged",
    "but the potential has dim",
    "prior_variance must be",
    "must not depend on their values",
    "there is no free pyro.sample",
    "runs differ in kernel",
    "samples must be a tensor, or some by name",
    "which is not installed",
    "shapes must have a tuple",
    "supports has",
    "which has temperature 1",
    "the gradients of … examples at the reference",
    "the module cannot take inputs",
    "an output for each target",
    "the numbers of coordinates do not agree",
    "the potential cannot take a position",  # another error's words follow
    "counts as one that leaves the support",
    "they must agree",
    "are not in the support of its law",
    "the step_size has grown",
    "the … do not agree: …",
    "there are no draws",
    "4 samples each",
    "values of … must lie inside",
    "an older file there is as it was",
    "has entries that are not finite",
    "use tensors and numbers",
    "or a function of the number of",
    "the same names and shapes at every draw",
    "must have tensors of the shapes",
    "must return (chains, n)",
    "draws before are in this error's attribute",
    "has no attribute",
)


def pattern(words):
    """Make a pattern of words of the source, in which … stands for anything."""
    return re.compile(".*".join(map(re.escape, words.split("…"))), re.S)


def said(code, folder):
    """Collect the warnings and the error of some code, as one text."""
    folder.mkdir()
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            eval(code, vars(mistakes) | {"f": folder})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "\n".join(str(each.message) for each in caught)


@pytest.mark.parametrize("words", ROWS)
def test_a_remedy_helps(words, tmp_path):
    pyro.clear_param_store()
    (wrong, remedies), message = ROWS[words], pattern(words.removesuffix("]"))
    assert message.search(found := said(wrong, tmp_path / "wrong")), found
    for number, remedy in enumerate(remedies):
        found = said(remedy, tmp_path / str(number))
        assert not message.search(found) and "Error: " not in found, (remedy, found)


def test_every_message_has_a_row_or_no_remedy():
    texts = {each.text for each in messages.errors()} | messages.warned()
    known = [pattern(words) for words in (*ROWS, *WITHOUT)]
    assert sorted(t for t in texts if not any(p.search(t) for p in known)) == []
    assert TABLE.count("\n") <= 400


def test_a_label_is_followed_by_the_page_that_has_it_and_other_ends_stay(tmp_path):
    code = "run(HMC(50.0, 3), NORMAL, at(1), 100)"
    *_, last = said(code, tmp_path / "labelled").splitlines()
    assert last.endswith(' [never-moves: see "When it goes wrong" in the book]')
    with pytest.warns(UserWarning, match=r"^a remark of another kernel\.$"):
        warn("a remark of another kernel.")
