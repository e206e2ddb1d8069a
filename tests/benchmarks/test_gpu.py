"""The benchmark of a GPU: a hundredth of it on the processor, and a sentence without
CUDA.
"""

import pytest
import torch

from benchmarks import gpu


@pytest.mark.slow
def test_a_hundredth_of_it_runs_on_the_processor_and_stores_nothing(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(gpu, "RESULTS", tmp_path)
    rows = gpu.main(["--device", "cpu"])
    assert set(gpu.WELLS) < set(rows) and rows["megabytes kept"] == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_without_cuda_it_says_so(capsys):
    assert gpu.main([]) is None
    assert capsys.readouterr().out.startswith("There is no CUDA device here")
