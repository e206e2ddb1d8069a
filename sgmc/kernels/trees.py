"""Trees, which NUTS and SGNUTS share: paths grown by doubling until they turn round.

The path of every chain is a row of 2ʲ states, the leaves of a binary tree. All chains
double together; a chain that is done is carried along, and what happens to it no longer
counts."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.matrices import Matrix
from sgmc.randomness import uniform_like


class Point(NamedTuple):
    """One state of the path of every chain.

    Example:
        >>> one = torch.ones(1, 1)
        >>> Point(one, -one, torch.zeros(1)).momentum
        tensor([[-1.]])
    """

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim), in the direction in which the path grows
    log_weight: Tensor  #: log weight of its choice, less the start's, (chains,)
    #: further values that its kernel keeps, such as U, (chains,), and ∇U, (chains, dim)
    known: tuple[Tensor, ...] = ()


class Span(NamedTuple):
    """The quantities that the U-turn criterion needs of a sub-tree.

    Example:
        >>> momenta = torch.tensor([[[1.0]], [[2.0]], [[3.0]]])
        >>> Span(momenta[0], momenta[-1], momenta.sum(0)).total
        tensor([[6.]])
    """

    first: Tensor  #: momentum at one end, (chains, dim)
    last: Tensor  #: momentum at the other end, (chains, dim)
    total: Tensor  #: ρ, the sum of all its momenta, (chains, dim)


class Tree(NamedTuple):
    """A finished tree.

    Example:
        >>> start = Point(torch.zeros(1, 1), torch.ones(1, 1), torch.zeros(1))
        >>> turning = lambda point: point._replace(momentum=-point.momentum)
        >>> tree = grow_tree(start, turning, Matrix(1.0), 5, Generator())
        >>> tree.depth, tree.num_steps
        (tensor([1]), tensor([1]))
    """

    chosen: Point  #: the next state of the chain
    depth: Tensor  #: j, for a path of 2ʲ states, (chains,) int64
    diverged: Tensor  #: whether a step diverged, (chains,) bool
    depth_limited: Tensor  #: whether it would have grown further, (chains,) bool
    acceptance: Tensor  #: mean of min(1, weight) over the steps taken, (chains,)
    num_steps: Tensor  #: steps taken, in halves thrown away too, (chains,) int64


def grow_tree(
    start: Point,
    forward: Callable[[Point], Point],
    inverse_mass: Matrix,
    max_depth: int,
    generator: Generator,
    max_error: float = math.inf,
) -> Tree:
    """Double the path of every chain, each time to a random side, until it turns;
    choose one of its states (Betancourt, 2017, Appendix A).

    Both ends of a path are kept with their momentum pointing outwards, because a step
    backwards in time is a step forward with reversed momentum. Before each doubling the
    path is turned round with probability ½, and grows from the end ``near``. A new half
    that has a U-turn in it, or diverges, is thrown away and ends the growth. Otherwise
    a state of it replaces the choice so far with probability min(1, W_new / W_old),
    where W is a sum of weights (biased progressive sampling), and growth ends if the
    whole path turns.

    Args:
        start: the state to start from, with log-weight 0.
        forward: the step; it must not change its argument.
        inverse_mass: M⁻¹.
        max_depth: the largest j.
        generator: the source of directions and choices.
        max_error: a step to a log-weight of −max_error or less diverges, as does one to
            a log-weight that is not finite.

    Example:
        >>> start = Point(torch.zeros(1, 1), torch.ones(1, 1), torch.zeros(1))
        >>> flight = lambda point: point._replace(
        ...     position=point.position + point.momentum
        ... )
        >>> tree = grow_tree(start, flight, Matrix(1.0), 3, Generator())
        >>> tree.depth, tree.num_steps, tree.depth_limited  # it never turns
        (tensor([3]), tensor([7]), tensor([True]))
    """
    near, far = start, start._replace(momentum=-start.momentum)
    chosen, log_weight, total = start, start.log_weight, start.momentum
    growing = torch.ones_like(log_weight, dtype=torch.bool)
    depth = torch.zeros_like(growing, dtype=torch.int64)
    # Each entry has the chains that took the step, and the log-weights it led to.
    steps: list[tuple[Tensor, Tensor]] = []
    settings = generator, max_error, steps
    coins, uniforms = uniform_like(log_weight, generator, 2, max_depth)
    for doubling in range(max_depth):
        turned_round = coins[doubling] < 0.5
        near, far = choose(turned_round, far, near), choose(turned_round, near, far)
        total = torch.where(turned_round[:, None], -total, total)
        size = 2**doubling
        end, new, new_weight, span, growing = grow_branch(
            near, forward, inverse_mass, size, growing, *settings
        )
        depth += growing
        log_uniform = uniforms[doubling].log()
        moves = growing & (log_uniform < new_weight - log_weight)
        chosen = choose(moves, new, chosen)
        log_weight = torch.logaddexp(log_weight, new_weight)

        old = Span(-far.momentum, near.momentum, total)
        whole, not_turning = join(old, span, inverse_mass)
        near, total, growing = end, whole.total, growing & not_turning
        if not growing.any():
            break
    taken, log_weights = (torch.stack(x) for x in zip(*steps, strict=True))
    num_steps = taken.sum(0)
    diverged = (taken & (log_weights <= -max_error)).any(0)
    acceptance = (taken * log_weights.clamp(max=0).exp()).sum(0) / num_steps
    return Tree(chosen, depth, diverged, growing, acceptance, num_steps)


def grow_branch(
    near: Point,
    forward: Callable[[Point], Point],
    inverse_mass: Matrix,
    num_states: int,
    growing: Tensor,
    generator: Generator,
    max_error: float,
    steps: list[tuple[Tensor, Tensor]],
) -> tuple[Point, Point, Tensor, Span, Tensor]:
    """Take ``num_states`` steps from the end ``near`` of a path, check all sub-trees
    for U-turns, and choose one of the new states.

    The choice is multinomial: a new state replaces the choice so far with its share of
    the sum of the weights so far. Complete sub-trees are kept on a stack, the largest
    at the bottom. As in counting in binary, two of one size are joined at once, so that
    the stack is never higher than log₂(num_states) + 1.

    Returns:
        The last state, the chosen one, the logarithm of the sum of the weights
        ``(chains,)``, the ends of the branch and the sum of its momenta, and whether it
        neither turned nor diverged, ``(chains,)``.

    Example:
        >>> start = Point(torch.zeros(1, 1), torch.ones(1, 1), torch.zeros(1))
        >>> flight = lambda point: point._replace(
        ...     position=point.position + point.momentum
        ... )
        >>> growing = torch.ones(1, dtype=torch.bool)
        >>> given = Matrix(1.0), 4, growing, Generator(), math.inf, []
        >>> end, chosen, log_weight, span, straight = grow_branch(start, flight, *given)
        >>> end.position, log_weight.exp(), span.total
        (tensor([[4.]]), tensor([4.]), tensor([[4.]]))
    """
    end, chosen, spans, not_turning = near, near, [], growing
    log_weight = torch.full_like(near.log_weight, -math.inf)
    log_uniforms = uniform_like(log_weight, generator, num_states).log()
    for number, log_uniform in enumerate(log_uniforms, 1):
        end = forward(end)
        new = end.log_weight.nan_to_num(-math.inf, -math.inf, -math.inf)
        steps.append((not_turning, new))
        log_weight = torch.logaddexp(log_weight, new)
        chosen = choose(log_uniform < new - log_weight, end, chosen)

        not_turning = not_turning & (new > -max_error)
        span = Span(end.momentum, end.momentum, end.momentum)
        while number % 2 == 0:
            span, together = join(spans.pop(), span, inverse_mass)
            not_turning = not_turning & together
            number //= 2
        spans.append(span)
        if not not_turning.any():
            break
    return end, chosen, log_weight, spans[0], not_turning


def join(old: Span, new: Span, inverse_mass: Matrix) -> tuple[Span, Tensor]:
    """Join two neighbouring sub-trees, and tell in which chains they do not turn
    together: ρᵀM⁻¹r > 0 at both ends, ρ being the sum of the momenta between them
    (Betancourt, 2017, Appendix A).

    The ends of a path that made a full turn look as if it had not turned. Hence each
    half is also checked together with the first state of the other, as Stan does since
    2019 (its pull request 2800).

    Example:
        >>> there, back = torch.ones(1, 1), -torch.ones(1, 1)
        >>> join(Span(there, there, there), Span(there, there, there), Matrix(1.0))[1]
        tensor([True])
        >>> join(Span(there, there, there), Span(back, back, back), Matrix(1.0))[1]
        tensor([False])
    """
    total = old.total + new.total
    over, under = old.total + new.first, old.last + new.total
    # Each of the six checks compares a sum of momenta with one end.
    sums = torch.stack((total, total, over, over, under, under), 1)
    momenta = old.first, new.last, old.first, new.first, old.last, new.last
    ends = torch.stack(momenta, 1)
    # A number does not change the sign.
    sums *= ends if inverse_mass.number else inverse_mass @ ends
    return Span(old.first, new.last, total), sums.sum(-1).amin(-1) > 0


def choose(condition: Tensor, one: Point, other: Point) -> Point:
    """Take ``one`` in chains where the condition ``(chains,)`` holds.

    Example:
        >>> zero, one = torch.zeros(2, 1), torch.ones(2, 1)
        >>> first = Point(zero, zero, torch.zeros(2))
        >>> second = Point(one, one, torch.zeros(2))
        >>> choose(torch.tensor([True, False]), first, second).position
        tensor([[0.],
                [1.]])
    """
    if len(condition) == 1:  # there is nothing to copy
        return one if condition else other

    def pick(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(condition[:, None] if a.ndim == 2 else condition, a, b)

    known = tuple(map(pick, one.known, other.known))
    return Point(*map(pick, one[:3], other[:3]), known=known)


def check_energy(energy: Tensor) -> None:
    """Raise a ValueError unless the energies ``(chains,)`` at the start are finite.

    Example:
        >>> check_energy(torch.tensor([0.5, math.inf]))
        Traceback (most recent call last):
        ValueError: the energy at the start is inf in chain 1; ...
    """
    if not energy.isfinite().all():
        chain = int((~energy.isfinite()).nonzero()[0])
        raise ValueError(
            f"the energy at the start is {float(energy[chain])} in chain {chain}; it "
            "must be finite: start elsewhere, or correct the potential"
        )


def diagnose(statistics: dict[str, Tensor], max_depth: int) -> list[str]:
    """Report what share of the trees diverged or reached the depth limit.

    Example:
        >>> limited = torch.tensor([[True, False], [False, False]])
        >>> statistics = {"diverged": ~limited & limited, "depth_limited": limited}
        >>> diagnose(statistics, max_depth=10)[0][:56]
        '1 of 4 trees (25.00%) reached max_depth = 10 before they'
    """
    remarks = {
        "diverged": "diverged: the draws miss places where the potential is too steep "
        "for the step_size. Take a smaller step_size, or another parametrisation "
        "[divergences]",
        "depth_limited": f"reached max_depth = {max_depth} before they turned: "
        "draws follow each other closely. Raise max_depth or the step_size, or adapt "
        "the mass [slow]",
    }
    return [
        f"{(number := int(found.sum()))} of {found.numel()} trees "
        f"({number / found.numel():.2%}) {what}"
        for name, what in remarks.items()
        if (found := statistics[name]).any()
    ]
