"""The rewards of mushrooms: the bandit of Blundell et al. (2015, Section 5.3)."""

import torch
from torch import Tensor

LEAVE, EAT = 0, 1
GOOD, BAD = 5.0, -35.0  # the rewards that eating may earn


def rewards(actions: Tensor, poisonous: Tensor, harmed: Tensor) -> Tensor:
    """Pay for actions: nothing for leaving, 5 for eating, and −35 if the mushroom is
    poisonous and the coin says harm.

    Example:
        >>> rewards(
        ...     torch.tensor([LEAVE, EAT, EAT, EAT]),
        ...     torch.tensor([1, 0, 1, 1]),
        ...     torch.tensor([True, True, False, True]),
        ... )
        tensor([  0.,   5.,   5., -35.])
    """
    eaten = torch.where((poisonous == 1) & harmed, BAD, GOOD)
    return torch.where(actions == EAT, eaten, 0.0)


def expected_rewards(actions: Tensor, poisonous: Tensor) -> Tensor:
    """Average the rewards over the coin: 0, 5 and −15.

    Example:
        >>> expected_rewards(torch.tensor([LEAVE, EAT, EAT]), torch.tensor([1, 0, 1]))
        tensor([  0.,   5., -15.])
    """
    tails, heads = (
        rewards(actions, poisonous, torch.full_like(poisonous, side, dtype=torch.bool))
        for side in (False, True)
    )
    return (tails + heads) / 2


def regrets(actions: Tensor, poisonous: Tensor) -> Tensor:
    """Compute how much more an oracle that knows each mushroom expects to earn than the
    actions.

    Example:
        >>> regrets(torch.tensor([LEAVE, LEAVE, EAT, EAT]), torch.tensor([0, 1, 0, 1]))
        tensor([ 5.,  0.,  0., 15.])
    """
    best = torch.where(poisonous == 1, LEAVE, EAT)
    return expected_rewards(best, poisonous) - expected_rewards(actions, poisonous)
