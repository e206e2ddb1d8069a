"""Pruning by signal to noise."""

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
