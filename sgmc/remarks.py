"""What the draws of a run say against it, whatever the kernel: chains that stand still,
or do not agree.
"""

import torch
from torch import Tensor

# steps of a chain that stands still, and draws of one whose mean and variance are
# compared
LEAST = 100
LIMIT = 1.1  # of R̂ (Gelman and Rubin, 1992)


def remark_stuck(start: Tensor, end: Tensor, num_steps: int) -> list[str]:
    """Name the chains that after a hundred steps or more ended ``(chains, dim)`` where
    they started.

    Example:
        >>> remark_stuck(
        ...     torch.zeros(3, 2),
        ...     torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]),
        ...     100,
        ... )[0][:48]
        'chains 0 and 2 never moved: a smaller step_size,'
    """
    still = (end == start).all(-1)
    if num_steps < LEAST or not still.any():
        return []
    return [
        f"{name_chains(still)} never moved: a smaller step_size, or another start, "
        "may help; the draws are worth nothing there"
    ]


def remark_disagreement(samples: dict[str, Tensor]) -> list[str]:
    """Say where chains of a hundred draws and more disagree, in place or in width, R̂ >
    1.1, and whether they stay in separate places.

    R̂ is that of the values or, if it is larger, of their distances from the mean, for
    chains of one mean may differ in width (Vehtari et al., 2021, who fold about the
    median).

    Args:
        samples: draws by name, ``(num_samples, chains, ...)``; the name may be empty.

    Example:
        >>> stay = torch.tensor([0.0, 5.0, 0.0]) + torch.randn(
        ...     200, 3, generator=torch.Generator().manual_seed(0)
        ... )
        >>> remark_disagreement({"": stay})[0][:77]
        'the chains do not agree: R̂ is 2.72 in the samples. Chain 1 stays around 5.05'
    """
    found = []
    for name, values in samples.items():
        if values.is_floating_point() and len(values) >= LEAST and values.shape[1] > 1:
            values = values.flatten(2) if values.ndim > 2 else values[..., None]
            widths = (values - values.mean((0, 1))).abs_()
            shrink = torch.maximum(
                *(
                    split_r_hat(each).nan_to_num(nan=1.0, posinf=torch.inf)
                    for each in (values, widths)
                )
            )
            place = int(shrink.argmax())
            if shrink[place] > LIMIT:
                label = f"{name!r}" if name else "the samples"
                where = (
                    f"coordinate {place} of {label}" if values.shape[2] > 1 else label
                )
                many = (
                    f", and over {LIMIT} in {int((shrink > LIMIT).sum())} of "
                    f"{len(shrink)}"
                    if len(shrink) > 1
                    else ""
                )
                advice = (
                    _separate(values[..., place])
                    or "Take more draws, a longer warm_up, or a kernel that moves further"  # noqa: E501
                )
                found.append(
                    f"the chains do not agree: R̂ is {float(shrink[place]):.2f} in "
                    f"{where}{many}. {advice}"
                )
    return found


def split_r_hat(values: Tensor) -> Tensor:
    """Compute R̂ of chains cut into halves (Gelman et al., 2013, eq. 11.4), for many
    coordinates at once.

    With B/n the variance of the halves' means and W the mean of their variances, n
    draws each, R̂² = (n − 1)/n + (B/n)/W.

    Args:
        values: ``(num_samples, chains, k)``.

    Returns:
        ``(k,)``; NaN where nothing moves.

    Example:
        >>> split_r_hat(
        ...     torch.tensor([1.0, 3.0, 5.0, 7.0])[:, None, None]
        ... )  # halves 1, 3 and 5, 7: √(1/2 + 8/2)
        tensor([2.1213])
    """
    n = len(values) // 2
    halves = torch.stack([values[:n], values[-n:]])
    within = halves.var(1).mean((0, 1))
    between = halves.mean(1).flatten(0, 1).var(0)
    return ((n - 1) / n + between / within).sqrt()


def _separate(values: Tensor) -> str | None:
    """Say which chains ``(num_samples, chains)`` stay in one place and which in
    another, if there is a gap between them.
    """
    means, order = values.mean(0).sort()
    gap, last = means.diff().max(0)
    if not gap > 3 * values.var(0).mean().sqrt():
        return None
    low, high = means[: last + 1], means[last + 1 :]
    groups = sorted(
        [(order[: last + 1], low), (order[last + 1 :], high)],
        key=lambda group: len(group[0]),
    )
    few = torch.zeros(values.shape[1], dtype=torch.bool).index_fill(
        0, groups[0][0].cpu(), True
    )
    stay = "stays" if len(groups[0][0]) == 1 else "stay"
    names = name_chains(few)
    return (
        f"{names[0].upper()}{names[1:]} {stay} around "
        f"{float(groups[0][1].mean()):.3g}, and the others around "
        f"{float(groups[1][1].mean()):.3g}: these are separate modes, whose weights "
        "such chains cannot tell, or some have not arrived"
    )


def name_chains(which: Tensor) -> str:
    """Name the chains that a mask ``(chains,)`` chooses, at most five of them.

    Example:
        >>> (
        ...     name_chains(torch.tensor([True, False, True])),
        ...     name_chains(torch.ones(9, dtype=torch.bool)),
        ... )
        ('chains 0 and 2', 'chains 0, 1, 2, 3, 4 and 4 others')
    """
    numbers = which.nonzero()[:, 0].tolist()
    if len(numbers) == 1:
        return f"chain {numbers[0]}"
    shown = [str(number) for number in numbers[:5]]
    rest = (
        f"{len(numbers) - 5} other{'s' * (len(numbers) > 6)}"
        if len(numbers) > 5
        else shown.pop()
    )
    return f"chains {', '.join(shown)} and {rest}"
