"""Pruning by signal to noise."""

import pytest
import torch

from booklib.rivals.pruning import prune
from sgmc.door.draws import Draws


def law(mean, std):
    return Draws(
        torch.ones(2, 2, 4),
        {
            "mean": torch.tensor(mean).expand(2, 2, 4),
            "std": torch.tensor(std).expand(2, 2, 4),
        },
    )


def test_pruning_sets_the_weights_of_least_signal_to_zero_in_each_chain():
    # signals 3, 20, 1, ½ and ½, 10, 2, 3
    draws = law([[3.0, -2.0, 1.0, 0.5], [0.5, 1.0, -2.0, 3.0]], [1.0, 0.1, 1.0, 1.0])
    pruned = prune(draws, 0.5).samples
    assert torch.equal(
        pruned,
        torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]).expand(2, 2, 4),
    )
    assert torch.equal(prune(draws, 0.0).samples, draws.samples)
    assert (prune(draws, 0.99).samples.count_nonzero(-1) == 1).all()


@pytest.mark.parametrize("share", [2, 1.0, -0.1, "0"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match=r"share must be.*at least 0 and less than 1"):
        prune(law([1.0] * 4, [1.0] * 4), share)


def test_draws_without_a_law_are_refused():
    with pytest.raises(ValueError, match=r"draws must have the statistic mean.*none"):
        prune(Draws(torch.ones(2, 2, 4)), 0.5)
