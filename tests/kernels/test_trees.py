"""The doubling on paths that are written down beforehand: against brute force, and that
it leaves the weights of a path invariant.
"""

import math
import weakref

import pytest
import torch

from sgmc.kernels import trees
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix
from tests.checks import z_bound

MAX_DEPTH = 5


def copy_of(generator):
    copy = torch.Generator()
    copy.set_state(generator.get_state())
    return copy


def directions(max_depth, chains, generator):
    """Foresee whether each doubling goes to the right: the path starts so, and is
    turned round before a doubling with probability ½.
    """
    turned_round = (
        torch.rand(
            2, max_depth, chains, generator=copy_of(generator), dtype=torch.float64
        )[0]
        < 0.5
    )
    return turned_round.long().cumsum(0) % 2 == 0


class WrittenPath:
    """A path given as a table of momenta and log-weights, which every chain reads from
    its own start, in rounds if it leaves the table.

    A position is the index in the table. The last coordinate of a momentum is 1, which
    the flip turns to −1, so that it tells in which direction the path grows; its
    inverse mass of 0 keeps it out of the U-turn criterion."""

    def __init__(self, momenta, log_weights):
        self.momenta = torch.cat(
            [momenta, torch.ones(len(momenta), 1, dtype=momenta.dtype)], -1
        )
        self.log_weights = log_weights
        inverse_mass = torch.ones(self.momenta.shape[1], dtype=momenta.dtype)
        inverse_mass[-1] = 0
        self.inverse_mass = Matrix(inverse_mass)

    def grow(self, start, generator, max_depth=MAX_DEPTH):
        def forward(point):
            way = point.momentum[:, -1:]
            index = point.position + way
            row = index[:, 0].long() % len(self.momenta)
            return Point(
                index,
                way * self.momenta[row],
                self.log_weights[row] - self.log_weights[start],
            )

        point = Point(
            start[:, None].to(self.momenta),
            self.momenta[start],
            torch.zeros_like(self.log_weights[start]),
        )
        return grow_tree(point, forward, self.inverse_mass, max_depth, generator)


def slowly_turning_path(length, seed):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(length, 2, generator=generator, dtype=torch.float64)
    angle = torch.cumsum(
        0.35 * torch.randn(length, generator=generator, dtype=torch.float64), 0
    )
    momenta = 1.5 * torch.stack([angle.cos(), angle.sin()], -1) + noise
    return WrittenPath(
        momenta, torch.randn(length, generator=generator, dtype=torch.float64)
    )


def by_brute_force(momenta, start, to_right):
    """Grow one tree as the definition says, checking every aligned sub-tree from
    scratch: depth, ends, steps, whether it hit the limit.
    """
    at = {i: momenta[i].tolist()[:-1] for i in range(len(momenta))}

    def does_not_turn(first, last):
        total = [sum(at[i][k] for i in range(first, last + 1)) for k in range(2)]
        return all(
            sum(total[k] * at[end][k] for k in range(2)) > 0 for end in (first, last)
        )

    def checked(first, last):
        middle = (first + last) // 2
        not_turning = does_not_turn(first, last)
        if last - first > 1:
            not_turning = (
                not_turning
                and does_not_turn(first, middle + 1)
                and does_not_turn(middle, last)
            )
        return not_turning

    low = high = start
    steps = 0
    for depth, right in enumerate(to_right):
        size = 2**depth
        for taken in range(1, size + 1):
            steps += 1
            for level in range(1, depth + 1):
                # an aligned sub-tree of 2^level states is complete
                if taken % 2**level == 0:
                    block = (
                        (high + taken - 2**level + 1, high + taken)
                        if right
                        else (low - taken, low - taken + 2**level - 1)
                    )
                    if not checked(*block):
                        break
            else:
                continue
            return depth, low, high, steps, False
        low, high = (low, high + size) if right else (low - size, high)
        if not checked(low, high):
            return depth + 1, low, high, steps, False
    return len(to_right), low, high, steps, True


@pytest.mark.parametrize("seed", range(3))
def test_the_stack_of_sub_trees_finds_what_brute_force_finds(seed):
    path = slowly_turning_path(400, seed)
    start = torch.arange(40, 360)
    generator = torch.Generator().manual_seed(seed)
    to_right = directions(MAX_DEPTH, len(start), generator)
    tree = path.grow(start, generator)
    for chain, first in enumerate(start.tolist()):
        depth, low, high, steps, limited = by_brute_force(
            path.momenta, first, to_right[:, chain].tolist()
        )
        assert (
            tree.depth[chain] == depth
            and tree.num_steps[chain] == steps
            and tree.depth_limited[chain] == limited
        )
        assert low <= tree.chosen.position[chain, 0] <= high
    assert len(tree.depth.unique()) == MAX_DEPTH  # all depths were met
    assert not tree.diverged.any()


def invariance(path, seed, num_chains=200_000, max_depth=3):
    """Start at states of a closed path with their weights, choose a state of each tree:
    z-scores of how often each state is chosen.
    """
    generator = torch.Generator().manual_seed(seed)
    probability = torch.softmax(path.log_weights, 0)
    start = torch.multinomial(
        probability, num_chains, replacement=True, generator=generator
    )
    chosen = path.grow(start, generator, max_depth).chosen.position[:, 0].long() % len(
        probability
    )
    counts = torch.bincount(chosen, minlength=len(probability))
    return (counts - num_chains * probability) / (
        num_chains * probability * (1 - probability)
    ).sqrt()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weights", ["equal", "random"])
def test_doubling_leaves_the_weights_of_a_path_invariant(weights, seed):
    """The heart of NUTS, without a mechanics: false alarms 1 in 10,000."""
    path = slowly_turning_path(16, seed)
    if weights == "equal":
        path.log_weights.zero_()
    assert invariance(path, seed).abs().max() < z_bound(16)


@pytest.mark.slow
def test_without_checks_inside_a_new_half_it_does_not(monkeypatch):
    """The negative control: the rule of stopping then depends on where the start
    was.
    """
    join, grow_branch = trees.join, trees.grow_branch

    def join_without_check(*spans):
        span, not_turning = join(*spans)
        return span, torch.ones_like(not_turning)

    def grow_branch_without_checks(*arguments):
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(trees, "join", join_without_check)
            return grow_branch(*arguments)

    monkeypatch.setattr(trees, "grow_branch", grow_branch_without_checks)
    worst = max(
        invariance(slowly_turning_path(16, seed), seed).abs().max() for seed in range(4)
    )
    assert worst > 3 * z_bound(16)


def test_a_step_that_diverges_ends_the_path_and_is_not_chosen():
    """To the right of every start lies a state of no, or an undefined, weight; to the
    left a straight path goes on for ever.
    """
    for bad in (-math.inf, math.nan, math.inf, -2000.0):
        log_weights = torch.zeros(64, dtype=torch.float64)
        log_weights[33] = bad
        path = WrittenPath(torch.ones(64, 2, dtype=torch.float64), log_weights)
        start = torch.full((2_000,), 32)
        generator = torch.Generator().manual_seed(0)
        to_right = directions(3, len(start), generator)

        def forward(point, path=path):
            way = point.momentum[:, -1:]
            index = point.position + way
            return Point(
                index,
                way * path.momenta[index[:, 0].long()],
                path.log_weights[index[:, 0].long()],
            )

        point = Point(
            start[:, None].double(),
            path.momenta[start],
            torch.zeros(len(start), dtype=torch.float64),
        )
        tree = grow_tree(
            point, forward, path.inverse_mass, 3, generator, max_error=1000.0
        )
        assert torch.equal(tree.diverged, to_right.any(0)) and torch.equal(
            tree.depth_limited, ~tree.diverged
        )
        assert (tree.chosen.position <= 32).all()
        # doublings before the first to the right
        lefts = torch.where(tree.diverged, to_right.int().argmax(0), 3)
        assert torch.equal(tree.depth, lefts) and torch.equal(
            tree.num_steps, 2**lefts - 1 + tree.diverged.long()
        )


def test_a_tree_keeps_few_states_however_many_it_visits():
    """Of the 2ʲ states of a path only the ends and the choices are kept, and for every
    sub-tree on the stack three vectors at most.
    """
    max_depth, dim = 9, 3
    positions, momenta, most = [], [], [0, 0]

    def forward(point):
        new = Point(
            point.position + point.momentum, point.momentum.clone(), point.log_weight
        )
        for kept, tensor in ((positions, new.position), (momenta, new.momentum)):
            kept.append(weakref.ref(tensor))
        most[:] = [
            max(m, sum(r() is not None for r in kept))
            for m, kept in zip(most, (positions, momenta), strict=True)
        ]
        return new

    generator = torch.Generator().manual_seed(0)
    start = Point(torch.zeros(1, dim), torch.ones(1, dim), torch.zeros(1))
    tree = grow_tree(start, forward, Matrix(1.0), max_depth, generator)
    assert tree.num_steps == 2**max_depth - 1 and tree.depth == max_depth
    # two ends, the choice of the path and that of the new half, the new end and the one
    # before
    assert most[0] <= 6
    assert most[1] <= 2 * max_depth + 6
