"""In a notebook what fails says so, and the page goes on; a script stops."""

import builtins
import html
import re
import warnings

import nbformat
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from booklib.claims import ClaimError, claim
from booklib.play import play, playing
from sgmc import sample
from sgmc.kernels import SGLD
from sgmc.sampling import DivergenceError
from sgmc.targets import Gaussian

CELLS = [
    "import torch\nfrom booklib.claims import claim\nfrom sgmc import sample\nfrom sgmc.kernels import "
    "SGLD\nfrom booklib.play import play\n"
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


@pytest.mark.slow
def test_in_a_notebook_what_fails_says_so_and_the_page_goes_on(executed):
    _, broken, diverged, shapes, variance, *_ = executed
    data = broken.outputs[0]["data"]
    assert data["text/plain"] == "✗ Two < 3 is small: at most 1, but measured 2"
    assert (
        'class="claim broken"' in data["text/html"]
        and 'data-kind="exact"' in data["text/html"]
        and ">✗<" in data["text/html"]
    )
    warned = diverged.outputs[0]
    assert (
        warned.name == "stderr"
        and "the step_size of SGLD" in warned.text
        and "Here the rest of them is NaN" in warned.text
    )
    # it is stopped after 96 steps; the third chain breaks after 78 of them
    assert shapes.outputs[0].text == "[48, 48, 39, 48] tensor(True) 20000 False True\n"
    assert variance.outputs[0]["data"]["text/plain"].endswith(
        "1 ± 0.1, but measured nan"
    )


def page(cell):
    return cell.outputs[0]["data"]["text/html"]


def test_a_claim_reads_as_a_sentence_without_the_style_sheet_of_the_book(executed):
    words = [
        html.unescape(re.sub("<[^>]*>", "", line))
        for cell in executed[:2]
        for line in page(cell).split("</summary>")
    ]
    assert words == [
        "✓ 1 check holds",
        "✓ One is small: at most 1; measured 0.5 (because it is a half)",
        "✗ 1 of 1 checks fails",
        "✗ Two < 3 is small: at most 1, but measured 2 (because it is a test)",
    ]


def test_the_sheet_finds_the_parts_of_a_claim_and_what_joins_them(executed):
    parts = re.findall(r'<span class="(\w+)"[^>]*>([^<]*)</span>', page(executed[0]))
    assert [part for part in parts if part[0] != "joined"] == [
        ("verdict", "✓"),
        ("statement", "One is small"),
        ("bound", "at most 1"),
        ("measured", "measured 0.5"),
        ("because", "it is a half"),
    ]
    assert [text for name, text in parts if name == "joined"] == [
        ": ",
        "; ",
        " (because ",
        ")",
    ]


def test_a_broken_claim_is_red_by_itself(executed):
    red = "#d32f2f"
    assert re.search(
        rf'<div class="claim broken"[^>]*style="[^"]*{red}', page(executed[1])
    )
    assert re.search(rf'style="color: {red}[^"]*">✗<', page(executed[1]))
    assert re.search(rf'<summary style="color: {red}[^"]*">✗ 1 of', page(executed[1]))
    assert "style" not in page(executed[0])


def test_the_claims_of_a_cell_are_one_line_which_opens_on_click(executed):
    printed, *outputs = executed[5].outputs
    assert printed.text == "a table\n"  # the claims come last
    first, *others = [output.data["text/html"] for output in outputs]
    assert first.startswith(
        '<details class="checks"><summary>✓ 3 checks hold</summary><div class="rows">'
    )
    assert len(re.findall('<div class="claim" id="claim-[0-9a-f]{12}"', first)) == 3
    assert len(others) == 2 and not any("claim" in page for page in others)
    # what is stored and compared is a line a claim
    assert [output.data["text/plain"] for output in outputs] == [
        f"✓ {number} is small: at most 5 (because a test)" for number in range(3)
    ]


def test_a_claim_that_fails_opens_its_block_and_is_counted(executed):
    block = page(executed[6])
    assert re.match('<details class="checks broken" open="open"><summary', block)
    assert ">✗ 1 of 3 checks fails</summary>" in block
    assert re.findall(r'class="claim( broken)?"', block) == ["", "", " broken"]


def test_each_cell_shows_its_own_claims_also_where_it_stops(executed):
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
