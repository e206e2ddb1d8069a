"""The jobs in PyTorch, as users of its libraries write them."""

import torch
from torch import Tensor
from torch.nn import functional

from conformance.speed import shared

NONE = torch.tensor([])


def well(theta: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Give the log density of the double well; ζ·θ has the gradient ζ."""
    square = theta * theta
    return (square * (2 - square)).sum() - (noise * theta).sum(), NONE


def logistic(theta: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Give that of the regression."""
    logits = batch[0] @ theta
    each = batch[1] * logits - functional.softplus(logits)
    return -0.5 * theta.pow(2).sum() + shared.EXAMPLES * each.mean(), NONE


def network(theta: Tensor, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Give that of the network, summed over chains."""
    a, b, c, d = theta.split([78_400, 100, 1_000, 10], 1)
    hidden = torch.baddbmm(b[:, None], batch[0], a.unflatten(1, (784, 100))).relu()
    logits = torch.baddbmm(d[:, None], hidden, c.unflatten(1, (100, 10)))
    each = logits.log_softmax(-1).gather(-1, batch[1][..., None])
    return -0.5 * theta.pow(2).sum() + shared.EXAMPLES * each.mean(1).sum(), NONE


def jobs() -> dict:
    """Make of each row its log density, start, minibatches, steps and numbers."""

    def some(parts, *shape):
        chosen = torch.randint(shared.EXAMPLES, shape)
        return tuple(part[chosen] for part in parts)

    made = {}
    for row, (chains, _, steps) in shared.WELLS.items():
        start = torch.zeros(chains)
        noise = lambda start=start: 2 * torch.randn_like(start)
        made[row] = well, start, noise, steps, shared.WELL
    *data, truth = map(torch.from_numpy, shared.regression())
    batch, steps = lambda: some(data, shared.BATCH), shared.STEPS[1]
    made[shared.SGLD] = logistic, truth, batch, steps, None
    made[shared.SGHMC] = logistic, truth, batch, steps, shared.LOGISTIC
    for row, (chains, _, steps) in shared.NETWORKS.items():
        *parts, start = map(torch.from_numpy, shared.pictures(chains))
        batch = lambda x=(parts, chains): some(*x, shared.BATCH)
        made[row] = network, start, batch, steps, shared.NETWORK
    return made
