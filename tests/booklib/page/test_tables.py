"""Tables: the same text everywhere, and a real table on a page."""

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from booklib.page.tables import show_table


def test_on_a_page_it_is_a_table_whose_entries_are_no_markup():
    shell = InteractiveShell.instance()
    try:
        with capture_output() as captured:
            shell.run_cell(
                "from booklib.page.tables import show_table; show_table(['a <b>', 'x'], "
                "[['p & q', '1'], ['r', '22']])"
            )
    finally:
        InteractiveShell.clear_instance()
    (output,) = captured.outputs
    assert output.data["text/plain"] == "a <b>   x\np & q   1\nr      22"
    page = output.data["text/html"]
    assert (
        page.count("<tr>") == 3
        and "<th>a &lt;b&gt;</th>" in page
        and "<th>p &amp; q</th><td>1</td>" in page
    )


def test_columns_of_words_are_marked_and_those_of_numbers_are_not():
    """A page puts words to the left and numbers to the right."""
    shell = InteractiveShell.instance()
    try:
        with capture_output() as captured:
            table = (
                "[['a', '1.5 ± 0.1', 'take the mean', 'no'], ['b', '–', '7', 'yes']]"
            )
            shell.run_cell(
                "from booklib.page.tables import show_table; show_table(['name', 'error', "
                f"'use', 'done'], {table})"
            )
    finally:
        InteractiveShell.clear_instance()
    page = captured.outputs[0].data["text/html"]
    assert '<th>name</th><th>error</th><th class="words">use</th><th>done</th>' in page
    assert '<th>b</th><td>–</td><td class="words">7</td><td>yes</td>' in page


def test_elsewhere_it_is_printed(capsys):
    show_table(["name", "x"], [["long name", 3]])
    assert capsys.readouterr().out == "name       x\nlong name  3\n"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(
        ValueError,
        match=r"\brows.*\bheads.*\['1'\]",
    ):
        show_table(["a", "b"], [["1"]])
