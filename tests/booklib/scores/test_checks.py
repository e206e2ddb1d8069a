"""The checks of what only the book's helpers take."""

import pytest
import torch

from booklib.scores import checks


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_probabilities_pass_in_any_precision(dtype, generator):
    logits = torch.randn(50, 1_000, generator=generator)
    checks.check_probabilities("p", logits.softmax(-1).to(dtype), "n", "classes")
    for bad in (
        logits,
        logits.log_softmax(-1),
        1.02 * logits.softmax(-1),
        -logits.softmax(-1),
    ):
        with pytest.raises(
            ValueError,
            match=r"classes.*logits",
        ):
            checks.check_probabilities("p", bad.to(dtype), "n", "classes")
