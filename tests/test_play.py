"""Who sits at a notebook and changes a number sees what fails, and the page goes on; a build, a test and a script stop."""

import subprocess
import sys

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from sgmc import claim, sample
from sgmc.claims import ClaimError
from sgmc.kernels import SGLD
from sgmc.play import play, playing
from sgmc.sampling import DivergenceError
from sgmc.targets import Gaussian

CELLS = [
    "import torch\nfrom sgmc import claim, sample\nfrom sgmc.kernels import SGLD\nfrom sgmc.play import play\n"
    "from sgmc.targets import Gaussian\nplay()",
    'claim("Two is small", 2.0, at_most=1.0, because="a test", kind="exact")',
    "draws = sample(SGLD(3.0), Gaussian.standard(1), torch.zeros(4, 1), num_samples=20_000, thinning=2)",
    "samples = draws.samples\nfirst, last = samples[0].isfinite().all(), samples[-1].isnan().all()\n"
    "print(tuple(samples.shape), bool(first), bool(last), draws.complete)",
    'claim("The variance", samples.var(), near=1.0, within=0.1, because="a test")',
]


def execute(monkeypatch, strict):
    monkeypatch.setenv("SGMC_STRICT", strict)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    return NotebookClient(notebook, kernel_name="python3").execute()


def test_where_a_reader_plays_what_fails_says_so_and_the_page_goes_on(monkeypatch):
    broken, diverged, shapes, variance = execute(monkeypatch, "").cells[1:]
    data = broken.outputs[0]["data"]
    assert data["text/plain"] == "✗ Two is small: at most 1, but measured 2"
    assert 'class="claim broken"' in data["text/html"] and 'data-kind="exact"' in data["text/html"] and ">✗<" in data["text/html"]
    warned = diverged.outputs[0]
    assert warned.name == "stderr" and "the step_size of SGLD" in warned.text and "Here the rest of them is NaN" in warned.text
    assert shapes.outputs[0].text == "(20000, 4, 1) True True False\n"
    assert variance.outputs[0]["data"]["text/plain"].endswith("1 ± 0.1, but measured nan")


def test_in_a_build_the_first_claim_that_fails_stops_the_page(monkeypatch):
    with pytest.raises(CellExecutionError, match="Two is small: at most 1, but measured 2"):
        execute(monkeypatch, "1")


def test_a_script_stops_whatever_it_calls():
    play()
    assert not playing()
    with pytest.raises(ClaimError, match="but measured 2"):
        claim("Two is small", 2.0, at_most=1.0, because="a test")
    with pytest.raises(DivergenceError):
        sample(SGLD(3.0), Gaussian.standard(1), torch.zeros(4, 1), num_samples=20_000)


def test_only_a_notebook_outside_of_a_build_is_played_with(monkeypatch):
    code = "import builtins\nbuiltins.get_ipython = None\nfrom sgmc.play import play, playing\nplay()\nprint(playing())"
    for strict, expected in (("", "True"), ("1", "False")):
        monkeypatch.setenv("SGMC_STRICT", strict)
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == expected
