"""In a notebook what fails says so, and the page goes on; a script stops."""

import builtins
import html
import re

import nbformat
import pytest
import torch
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
    'claim("Two < 3 is small", 2.0, at_most=1.0, because="it is a test", kind="exact")',
    "draws = sample(SGLD(3.0), Gaussian.standard(1), torch.zeros(4, 1), "
    "num_samples=20_000, thinning=2)",
    "samples = draws.samples\nfirst, last = samples[0].isfinite().all(), "
    "samples[-1].isnan().all()\n"
    "print(tuple(samples.shape), bool(first), bool(last), draws.complete)",
    'claim("The variance", samples.var(), near=1.0, within=0.1, because="a test")',
]


@pytest.fixture(scope="module")
def executed():
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS]
    )
    return NotebookClient(notebook, kernel_name="python3").execute().cells[1:]


@pytest.mark.slow
def test_in_a_notebook_what_fails_says_so_and_the_page_goes_on(executed):
    _, broken, diverged, shapes, variance = executed
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
    assert shapes.outputs[0].text == "(20000, 4, 1) True True False\n"
    assert variance.outputs[0]["data"]["text/plain"].endswith(
        "1 ± 0.1, but measured nan"
    )


def page(cell):
    return cell.outputs[0]["data"]["text/html"]


def test_a_claim_reads_as_a_sentence_without_the_style_sheet_of_the_book(executed):
    words = [html.unescape(re.sub("<[^>]*>", "", page(cell))) for cell in executed[:2]]
    assert words == [
        "✓ One is small: at most 1; measured 0.5 (because it is a half)",
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
    assert "style" not in page(executed[0])


def test_a_script_stops_whatever_it_calls():
    play()
    assert not playing()
    with pytest.raises(ClaimError, match="but measured 2"):
        claim("Two is small", 2.0, at_most=1.0, because="a test")
    with pytest.raises(DivergenceError):
        sample(SGLD(3.0), Gaussian.standard(1), torch.zeros(4, 1), num_samples=20_000)


@pytest.mark.slow
def test_only_a_notebook_is_played_with(monkeypatch):
    for shell, expected in ((lambda: None, True), (None, False)):
        if shell is None:
            monkeypatch.delattr(builtins, "get_ipython", raising=False)
        else:
            monkeypatch.setattr(builtins, "get_ipython", shell, raising=False)
        play()
        assert playing() is expected
