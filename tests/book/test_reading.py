"""What pages ask of their readers: the count itself, the minutes that pages state, and
the limits of the tutorial.
"""

import pytest

from booklib import MEDIA
from tools import book, reading

WORDS, MINUTES, CODE, CLAIMS, EXERCISES = 2_200, 35, 300, 15, 3
WHOLE = 6 * 60  # minutes for the twelve, formulas and proofs apart

PAGE = """# %% [markdown]
# # Three words here
#
# ```{div} page-head
# Level: first course · 30 minutes to read, 15 to play · Running: about 8 seconds
# ```
#
# ```{index} ! not, ! read
# ```
#
# One sentence of six words, $x + y$ and `code` apart.
# See {doc}`this page </book/nowhere>` and {numref}`fig-one`{cite:p}`somebody`.
#
# $$
# x = \\\\sum_i y_i
# $$ (eq-x)
#
# (a-label)=
# ## Head
#
# | a table | with |
# | --- | ---: |
# | four words | |
#
# ```{prf:proof}
# ```
#
# ```{admonition} A fold
# :class: dropdown
#
# Three more words.
#
# ~~~python
# not_shown()
# ~~~
#
# $$ z $$
# ```
#
# ````{exercise}
# :label: ex-one
#
# Ten words that do not count, and a formula $$ q $$.
# ```{note}
# Nor these.
# ```
# ````
#
# ```{solution} ex-one
# Nor these.
# ```
#
# ```python
# shown()
# ```

# %% tags=["hide-input"]
import matplotlib.pyplot as plt

from booklib.helpers import mine, shared
from booklib.page.claims import claim

# %%
def algorithm(x):
    \"\"\"Two times x.\"\"\"

    return mine(2 * x)


shared()

# %% tags=["hide-input"]
claim("One", True, because="so")
claim("Two", True, because="so")

# %% mystnb={"figure": {"caption": "A caption of five words, $\\\\theta$.", "name": "fig-one"}} tags=["hide-input"]
plt.plot([1, 2])
plt.show()
"""
HELPERS = '''"""Helpers."""

WIDTH = 3  # of one page


def mine(x):
    """A line that is documentation."""
    return _inner(x) * WIDTH


def _inner(x):

    return x


def shared():
    return 1


def nobodys():
    return 1
'''


@pytest.fixture
def page(tmp_path):
    (tmp_path / "book" / "part").mkdir(parents=True)
    (tmp_path / "booklib").mkdir()
    (tmp_path / "booklib" / "helpers.py").write_text(HELPERS)
    (tmp_path / "index.md").write_text("# A book\n")
    (tmp_path / "_toc.yml").write_text("root: index\n")
    other = "# %%\nfrom booklib import helpers\n\nhelpers.shared()\n"
    (tmp_path / "book" / "part" / "other.py").write_text(other)
    path = tmp_path / "book" / "part" / "small.py"
    path.write_text(PAGE)
    return path


def test_a_page_whose_counts_are_known(page):
    found = reading.count(page)
    text = 3 + 7 + (4 + 2 + 2) + 1 + 3 + 2  # line by line; a reference is two
    folded, caption = 2 + 3, 5
    assert found.words == text + folded + caption
    assert found.pauses == 2 + 1
    assert found.shown == 4 + 1
    assert found.code == 4 + 3 + 2 + 2
    assert (found.claims, found.exercises) == (2, 1)
    assert not found.current  # there is no notebook, of which tables would be read
    straight = found.words / 150 + 3 * 0.75 + 5 / 15
    assert found.straight == pytest.approx(1.3 * straight)
    assert (found.formulas, found.proofs) == (2, 1)
    assert found.minutes == pytest.approx(found.straight + 2 * 5 / 60 + 2)


def test_tables_and_claims_are_those_of_the_notebook(page):
    notebook = reading.from_source(page)
    _, second, third, last = book.code_cells(notebook)
    new = book.nbformat.v4.new_output
    second.outputs = [new("display_data", {"text/plain": "a table\n3   7.5"})]
    names = [{"words": word} for word in ("one", "two", "three, in a loop", "")]
    third.outputs = [new("display_data", {"text/plain": "✓ One", MEDIA: names})]
    last.outputs = [new("display_data", {"text/plain": "<Figure size 640x480>"})]
    before = reading.count(page)
    target = page.with_suffix(".ipynb")
    target.write_text(book.nbformat.writes(notebook))
    after = reading.count(page)
    assert after.words == before.words + 4
    assert (after.claims, after.current) == (3, True)
    target.write_text(target.read_text().replace("shared()", "changed()"))
    assert reading.count(page) == before


def test_a_helper_that_one_page_calls_is_code_of_that_page(page):
    alone = reading.helpers(page.parents[2])
    assert alone[page] == 1 + 2 + 2  # WIDTH, mine, _inner
    assert reading.count(page, alone[page]).code == reading.count(page).code + 5
    assert alone[page.with_name("other.py")] == 0


def test_a_program_that_calls_a_helper_too_makes_it_nobodys_own(page):
    root = page.parents[2]
    (root / "experiments").mkdir()
    program = "from booklib.helpers import mine as theirs\n\ntheirs(1)\n"
    (root / "experiments" / "one.py").write_text(program)
    reading.helpers.cache_clear()
    assert reading.helpers(root)[page] == 0


def test_the_minutes_that_a_page_states_are_read_and_written(page):
    (page.with_suffix(".ipynb")).write_text(f'"{page.read_text()}"')
    assert reading.stated(page) == 30
    reading.write(page, 41.6)
    assert reading.stated(page) == 42
    for path in (page, page.with_suffix(".ipynb")):
        assert (
            "· 42 minutes to read, 15 to play · Running: about 8 s" in path.read_text()
        )
    old = "Reading: about 105 minutes, without the exercises"
    page.write_text(PAGE.replace("30 minutes to read, 15 to play", old))
    reading.write(page, 50)
    assert "Reading: about 50 minutes, without the exercises · R" in page.read_text()


def pages_that_state_their_minutes():
    """All but those whose tables nobody knows, because their notebook is older than
    their code (test_pairs.py).
    """
    return {
        name: page
        for name, page in reading.pages().items()
        if page.current and reading.stated(reading.source(name)) is not None
    }


def test_pages_state_the_minutes_that_they_take():
    found = pages_that_state_their_minutes()
    assert len(found) > 20
    wrong = {
        name: (reading.stated(reading.source(name)), round(page.minutes))
        for name, page in found.items()
        if abs(reading.stated(reading.source(name)) / page.minutes - 1) > 0.1
        and abs(reading.stated(reading.source(name)) - page.minutes) > 0.5
    }
    assert wrong == {}, "say python -m tools.reading write"


def test_a_page_of_the_tutorial_keeps_the_limits():
    twelve = {name: reading.pages()[name] for name in reading.twelve()}
    assert len(twelve) == 12
    over = {n: page for n, page in twelve.items() if not keeps_the_limits(page)}
    assert over == {}
    assert sum(page.straight for page in twelve.values()) <= WHOLE
    for name in twelve:
        head = reading.source(name).read_text().partition("page-head")[2]
        assert reading.PLAY.search(head), f"{name} says no minutes of play"


def keeps_the_limits(page):
    return (
        page.words <= WORDS
        and page.straight <= MINUTES
        and page.code <= CODE
        and page.claims <= CLAIMS
        and page.exercises <= EXERCISES
    )


def test_the_lecturers_page_is_short():
    page = book.ROOT / "book" / "practice" / "teaching.md"
    assert reading.count(page).words <= 900
