"""In a notebook what fails says so, and the page goes on; a script stops."""

import builtins
import warnings

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from booklib import MEDIA
from booklib.page.claims import ClaimError, claim
from booklib.page.play import play, playing
from sgmc import sample
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import SGLD
from sgmc.targets import Gaussian

CELLS = [
    "import torch\nfrom booklib.page.claims import claim\nfrom sgmc import sample\nfrom sgmc.kernels import "
    "SGLD\nfrom booklib.page.play import play\n"
    "from sgmc.targets import Gaussian\nplay()",
    'claim("One is small", 0.5, at_most=1.0, because="it is a half")',
    # imported anew, as a visible cell may
    'from sgmc import sample\nclaim("Two < 3 is small", 2.0, at_most=1.0, because="it is a test", kind="exact")',
    # every step doubles the distance, and 2¹²⁸ is infinite
    "draws = sample(SGLD(3.0), Gaussian.standard(1), torch.tensor([0.0, 0, 1e15, 0])"
    "[:, None], num_samples=20_000, thinning=2)",
    "import sgmc\nprint(draws.samples.isfinite().sum(0).flatten().tolist(), "
    "draws.samples[-1].isnan().all(), len(draws.statistics['step_size']), "
    "draws.complete, sample.__wrapped__ is sgmc.sample)",
    'claim("The variance", draws.samples.var(), near=1.0, within=0.1, because="a test")',
    "for number in range(3):\n"
    '    claim(f"{number} is small", number, at_most=5, because="a test")\n'
    'print("a table")',
    "for number in range(3):\n"
    '    claim(f"{number} is small", number, at_most=1, because="a test")',
    "claim('One', True, because='a test')\nraise ValueError",
    "1 + 1",
]


@pytest.fixture(scope="module")
def executed():
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS]
    )
    client = NotebookClient(notebook, kernel_name="python3", allow_errors=True)
    return client.execute().cells[1:]


def recorded(cell):
    """Give the records of a cell, and the lines that it shows."""
    data = cell.outputs[-1]["data"]
    return data[MEDIA], data["text/plain"].split("\n")


@pytest.mark.slow
def test_in_a_notebook_what_fails_says_so_and_the_page_goes_on(executed):
    holds, broken, diverged, shapes, variance, *_ = executed
    assert recorded(holds)[1] == ["✓ One is small: at most 1 (because it is a half)"]
    records, lines = recorded(broken)
    assert lines == ["✗ Two < 3 is small: at most 1, but measured 2"]
    assert [(one["holds"], one["kind"]) for one in records] == [(False, "exact")]
    warned = diverged.outputs[0]
    assert (
        warned.name == "stderr"
        and "the step_size of SGLD" in warned.text
        and "Here the rest of them is NaN" in warned.text
    )
    # it is stopped after 96 steps; the third chain breaks after 78 of them
    assert shapes.outputs[0].text == "[48, 48, 39, 48] tensor(True) 20000 False True\n"
    assert recorded(variance)[1][0].endswith("1 ± 0.1, but measured nan")
    assert recorded(variance)[0][0]["value"] is None  # which JSON can say


def test_the_records_of_a_cell_are_one_output_behind_all_others(executed):
    printed, *outputs = executed[5].outputs
    assert printed.text == "a table\n" and len(outputs) == 1
    records, lines = recorded(executed[5])
    assert [record["says"] for record in records] == [
        f"{number} is small" for number in range(3)
    ]
    assert lines == [record["line"] for record in records]
    records, lines = recorded(executed[6])
    assert [record["holds"] for record in records] == [True, True, False]
    assert [line[0] for line in lines] == ["✓", "✓", "✗"]


def test_each_cell_shows_its_own_records_also_where_it_stops(executed):
    error, shown = executed[7].outputs
    assert error.ename == "ValueError"
    assert shown.data["text/plain"] == "✓ One: true (because a test)"
    assert [output.output_type for output in executed[8].outputs] == ["execute_result"]


def test_a_script_stops_whatever_it_calls():
    play()
    assert not playing()
    with pytest.raises(ClaimError, match="but measured 2"):
        claim("Two is small", 2.0, at_most=1.0, because="a test")
    with pytest.raises(DivergenceError):
        sample(SGLD(3.0), Gaussian.standard(1), torch.zeros(4, 1), num_samples=20_000)


@pytest.mark.slow
def test_only_a_notebook_is_played_with(monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    with warnings.catch_warnings():
        play()
    assert playing()
    monkeypatch.delattr(builtins, "get_ipython")
    play()
    assert not playing()
