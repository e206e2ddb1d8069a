"""Tables: the same text everywhere, and a real table on a page."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from booklib.page.tables import show_table


@pytest.fixture
def shown():
    """Give what a page shows of a table."""
    shell = InteractiveShell.instance()

    def of(heads, rows):
        with capture_output() as captured:
            shell.run_cell(
                "from booklib.page.tables import show_table\n"
                f"show_table({heads!r}, {rows!r})"
            )
        return captured.outputs[0].data

    yield of
    InteractiveShell.clear_instance()


def test_on_a_page_it_is_a_table_whose_entries_are_no_markup(shown):
    data = shown(["a <b>", "x"], [["p & q", "1"], ["r", "22"]])
    assert data["text/plain"] == "a <b>   x\np & q   1\nr      22"
    page = data["text/html"]
    assert page.count("<tr>") == 3
    assert "<th>a &lt;b&gt;</th>" in page
    assert "<th>p &amp; q</th><td>1</td>" in page


def test_columns_of_words_are_marked_and_those_of_numbers_are_not(shown):
    """A page puts words to the left and numbers to the right."""
    rows = [["a", "1.5 ± 0.1", "take the mean", "no"], ["b", "–", "7", "yes"]]
    page = shown(["name", "error", "use", "done"], rows)["text/html"]
    assert '<th>name</th><th>error</th><th class="words">use</th><th>done</th>' in page
    assert '<th>b</th><td>–</td><td class="words">7</td><td>yes</td>' in page


def test_an_interval_and_a_value_with_its_error_stay_whole(shown):
    """Where a table must be narrower, cells break beside them and not within."""
    page = shown(["a", "b"], [["x", "−0.2 [−0.3, −0.1] *"], ["y", "3.7 ± 0.2"]])
    page = page["text/html"]
    assert '<td>−0.2 <span class="whole">[−0.3, −0.1] *</span></td>' in page
    assert '<td><span class="whole">3.7 ± 0.2</span></td>' in page


def test_elsewhere_it_is_printed(capsys):
    show_table(["name", "x"], [["long name", 3]])
    assert capsys.readouterr().out == "name       x\nlong name  3\n"
