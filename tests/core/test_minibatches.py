"""Minibatch rules: uniform, independent of one another, and pure functions of seed,
step and chain.
"""

import itertools
import math
import random
import re

import numpy as np
import pytest
import scipy.stats
import torch

from sgmc import minibatches
from sgmc.door._models import check_rule, check_uniform, spread
from sgmc.minibatches import Fresh, Held, Passes, Sweeps
from sgmc.models import Posterior
from sgmc.posteriors import LogisticRegression
from sgmc.randomness import derived_seed

# (rule, N, n): each way of drawing a subset has a case
DRAWN = {
    "with replacement": (Fresh(replacement=True), 4, 2),
    "the start of a permutation": (Fresh(), 5, 2),
    "the first that are different": (Fresh(), 8, 2),
}
RULES = {
    **DRAWN,
    "passes": (Passes(), 8, 3),
    "sweeps": (Sweeps(), 8, 3),
    "held": (Held(3), 9, 2),
    "held passes": (Held(2, Passes()), 8, 3),
    "held sequences": (Held(2, Fresh(replacement=True)), 8, 3),
}
# 40 steps of the cases in DRAWN are drawn together, so that these are many blocks
CHAINS, STEPS = 200, 500


def forget():
    minibatches._fresh_block.cache_clear()
    minibatches._pass.cache_clear()


def drawn(name, seed=0, chains=CHAINS, steps=STEPS):
    """Draw minibatches ``(steps, chains, n)``."""
    rule, total, size = RULES[name]
    return torch.stack(
        [rule.indices(total, size, chains, seed, step) for step in range(steps)]
    )


def codes_of(indices, name):
    """Number the sets, or with replacement the sequences, from zero: ``(steps,
    chains)``, and how many there are.
    """
    rule, total, size = RULES[name]
    if not rule.replacement:
        indices = indices.sort(-1).values
    choose = (
        itertools.product(range(total), repeat=size)
        if rule.replacement
        else itertools.combinations(range(total), size)
    )
    numbers = {chosen: number for number, chosen in enumerate(choose)}
    flat = [numbers[tuple(row)] for row in indices.flatten(0, 1).tolist()]
    return torch.tensor(flat).view(indices.shape[:2]), len(numbers)


def assert_uniform(codes, number, tests=1):
    """Compare counts with equal ones by Pearson's test; false alarm 1e-4 for all
    ``tests`` together.
    """
    counts = codes.flatten().bincount(minlength=number)
    # so that the statistic has its law
    assert len(counts) == number and counts.double().mean() > 50
    assert scipy.stats.chisquare(counts).pvalue > 1e-4 / tests, counts.tolist()


@pytest.mark.parametrize("name", DRAWN)
def test_every_minibatch_is_equally_likely(name):
    indices = drawn(name)
    rule, total, size = DRAWN[name]
    assert indices.shape == (STEPS, CHAINS, size) and indices.dtype == torch.int64
    if not rule.replacement:
        assert all(len(set(row)) == size for row in indices.flatten(0, 1).tolist())
    assert_uniform(*codes_of(indices, name), tests=2)
    assert_uniform(indices[..., 0], total, tests=2)


@pytest.mark.parametrize("name", DRAWN)
def test_minibatches_of_chains_steps_blocks_and_seeds_are_independent(name):
    """The pairs of two minibatches are uniform on all pairs."""
    codes, number = codes_of(drawn(name), name)
    other, _ = codes_of(drawn(name, seed=1), name)
    block = minibatches._steps_together(CHAINS, DRAWN[name][2])
    assert 1 < block < STEPS // 2
    # disjoint pairs
    far = torch.arange(STEPS - block)[torch.arange(STEPS - block) // block % 2 == 0]
    pairs = {
        "chains": (codes[:, ::2], codes[:, 1::2]),
        "steps": (codes[::2], codes[1::2]),
        "blocks": (codes[far], codes[far + block]),
        "seeds": (codes, other),
    }
    for first, second in pairs.values():
        assert_uniform(first * number + second, number**2, tests=len(pairs))


def test_subsets_that_came_out_short_are_drawn_again(generator):
    """A generator that repeats one example at first, which happens by chance in less
    than one of a million rows.
    """

    class Repeating:
        calls, rows = 0, np.random.default_rng(0)

        def integers(self, total, size):
            self.calls += 1
            values = self.rows.integers(total, size=size)
            if self.calls == 1:
                values[::2] = values[::2, :1]
            return values

    source, number = Repeating(), 60_000
    rows = torch.from_numpy(minibatches._subsets(8, 2, number, source)).view(
        1, number, 2
    )
    assert source.calls == 2
    codes, subsets = codes_of(rows, "the first that are different")
    assert_uniform(codes[:, ::2], subsets, tests=2)  # those that came out short
    assert_uniform(codes[:, 1::2], subsets, tests=2)


@pytest.mark.parametrize(
    ("total", "size"), [(100, 1), (100, 25), (100, 26), (60_000, 500), (7, 7), (1, 1)]
)
def test_subsets_of_any_size_are_subsets(total, size):
    indices = Fresh().indices(total, size, 3, 0, 5)
    assert indices.shape == (3, size) and indices.min() >= 0 and indices.max() < total
    assert all(len(set(row)) == size for row in indices.tolist())


@pytest.mark.parametrize("chains", [1, 5, 300])
@pytest.mark.parametrize("name", RULES)
def test_any_step_can_be_looked_up_by_itself_and_in_any_order(name, chains):
    rule, total, size = RULES[name]
    block = minibatches._steps_together(chains, size)
    steps = [
        *range(10),
        *(k * block + i for k in (1, 2, 3) for i in (-1, 0, 1)),
        10**6,
        2**40,
    ]
    in_order = {step: rule.indices(total, size, chains, 3, step) for step in steps}
    random.Random(0).shuffle(steps)
    for step in steps:
        if step % 4 == 0:
            forget()
        # what is asked in between does not matter
        rule.indices(total, size, chains + 1, 3, step)
        rule.indices(total, size, chains, 4, step)
        assert torch.equal(rule.indices(total, size, chains, 3, step), in_order[step])


@pytest.mark.parametrize("rule", [Fresh(), Fresh(replacement=True)])
def test_a_step_may_have_more_indices_than_are_drawn_together(rule):
    """Each step is a block of its own then, with minibatches of its own."""
    chains, size = 3, minibatches._INDICES // 3 + 1
    steps = [rule.indices(2 * size, size, chains, 0, step) for step in range(3)]
    assert all(step.shape == (chains, size) for step in steps)
    assert len({tuple(row.tolist()) for step in steps for row in step}) == 3 * chains
    if not rule.replacement:
        assert all(len(row.unique()) == size for step in steps for row in step)


@pytest.mark.parametrize("name", RULES)
def test_another_seed_or_step_gives_other_minibatches(name):
    first, second = drawn(name, seed=0, steps=6), drawn(name, seed=1, steps=6)
    assert not torch.equal(first, second)
    held = getattr(RULES[name][0], "num_steps", 1)
    assert not torch.equal(first[:held], first[held : 2 * held])
    rows = first[0].tolist()
    assert len(set(map(tuple, rows))) > 1, "the chains share their minibatches"


@pytest.mark.parametrize("rule", [Fresh(), Passes()])
def test_neighbouring_seeds_are_told_apart_however_large(rule):
    """Seeds of 2⁵³ and more are no longer exact as floating-point numbers; a negative
    seed becomes a large one.
    """
    seeds = [0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    seen = {tuple(rule.indices(1_000, 10, 1, seed, 0)[0].tolist()) for seed in seeds}
    assert len(seen) == len(seeds)


def test_each_seed_and_purpose_has_a_derived_seed_of_its_own():
    """A negative seed is the large one that it is to a generator of PyTorch."""
    seeds = [-(2**63), -2, -1, 0, 1, 2, 2**63 - 1]
    found = {derived_seed(seed, word) for seed in seeds for word in ("one", "two")}
    assert len(found) == 2 * len(seeds)
    for seed in seeds:
        known = torch.Generator().manual_seed(seed).initial_seed()
        assert derived_seed(seed, "one") == derived_seed(known, "one")


def test_a_pass_sees_every_example_once_but_for_the_remainder():
    total, size, chains = 11, 3, 40
    for number in range(4):
        seen = torch.cat(
            [
                Passes().indices(total, size, chains, 0, 3 * number + place)
                for place in range(3)
            ],
            1,
        )
        assert seen.shape == (chains, 9)
        assert all(len(set(row)) == 9 for row in seen.tolist())
    left_out = [set(range(total)) - set(row) for row in seen.tolist()]
    assert len(set(map(frozenset, left_out))) > 10  # another remainder in every chain


def test_the_orders_of_passes_are_uniform_and_independent_between_chains_and_passes():
    total, chains, passes = 4, 100, 200
    numbers = {
        order: number
        for number, order in enumerate(itertools.permutations(range(total)))
    }
    codes = torch.empty(passes, chains, dtype=torch.int64)
    for number in range(passes):
        orders = torch.cat(
            [
                Passes().indices(total, 2, chains, 0, 2 * number + place)
                for place in range(2)
            ],
            1,
        )
        codes[number] = torch.tensor(
            [numbers[tuple(order)] for order in orders.tolist()]
        )
    assert_uniform(codes, 24, tests=3)
    # of the last three, given the first, lest there be too many pairs for their number
    codes = codes % 6
    assert_uniform(codes[:, ::2] * 6 + codes[:, 1::2], 36, tests=3)
    assert_uniform(codes[::2] * 6 + codes[1::2], 36, tests=3)


@pytest.mark.parametrize("rule", [Fresh(), Fresh(replacement=True), Passes()], ids=str)
def test_a_held_minibatch_stays_for_its_steps_and_then_comes_the_next(rule):
    held = [Held(4, rule).indices(20, 3, 2, 7, step) for step in range(16)]
    for step, indices in enumerate(held):
        assert torch.equal(indices, rule.indices(20, 3, 2, 7, step // 4))
    assert Held(4, rule).replacement == rule.replacement
    assert torch.equal(Held(2, Held(2, rule)).indices(20, 3, 2, 7, 11), held[11])


def posterior_of(name, **settings):
    rule, total, size = RULES[name]
    return Posterior(
        lambda position: -position.pow(2).sum(-1),
        lambda position, x: -((x - position) ** 2),
        (torch.arange(float(total)),),
        dim=1,
        batch_size=size,
        minibatches=rule,
        **settings,
    )


@pytest.mark.parametrize("name", RULES)
def test_a_posterior_draws_the_same_steps_one_by_one_and_in_blocks(name):
    posterior, position, generator = (
        posterior_of(name),
        torch.zeros(3, 1),
        torch.Generator().manual_seed(5),
    )
    together = posterior.draw_minibatches(position, generator, step=17, num_steps=50)
    assert len(together) == 50
    for number, indices in enumerate(together):
        (alone,) = posterior.draw_minibatches(position, generator, step=17 + number)
        assert torch.equal(indices, alone)


@pytest.mark.parametrize("name", RULES)
def test_minibatches_depend_on_the_seed_and_not_on_the_use_of_a_generator(name):
    posterior, position = posterior_of(name), torch.zeros(3, 1)
    fresh, used, resumed, other = (
        torch.Generator().manual_seed(seed) for seed in (5, 5, 5, 6)
    )
    torch.rand(1_000, generator=used)
    resumed.set_state(used.get_state())
    at_40 = [
        posterior.draw_minibatches(position, generator, step=40)[0]
        for generator in (fresh, used, resumed, other)
    ]
    assert (
        torch.equal(at_40[0], at_40[1])
        and torch.equal(at_40[0], at_40[2])
        and not torch.equal(at_40[0], at_40[3])
    )
    # which choosing has not moved
    assert torch.equal(torch.rand(1, generator=used), torch.rand(1, generator=resumed))


def test_a_rule_of_the_users_own_is_a_class_with_one_method():
    class Next:
        replacement = False

        def indices(self, num_examples, batch_size, chains, seed, step):
            start = step * batch_size
            return (torch.arange(start, start + batch_size) % num_examples).expand(
                chains, -1
            )

    data = torch.arange(6.0)
    posterior = Posterior(
        lambda p: 0 * p.sum(-1),
        lambda p, x: x * p,
        (data,),
        dim=1,
        batch_size=2,
        minibatches=Next(),
    )
    generator, position = torch.Generator().manual_seed(0), torch.ones(2, 1)
    sums = [
        posterior.stochastic_gradient(position, generator, step=step)[:, 0].tolist()
        for step in range(4)
    ]
    assert sums == [[-3 * 1.0] * 2, [-3 * 5.0] * 2, [-3 * 9.0] * 2, [-3 * 1.0] * 2]


def test_gradient_errors_nearly_cancel_within_a_pass_and_do_not_with_fresh_minibatches():
    """Over one pass each chain's mean stochastic gradient is the gradient; over as many
    fresh minibatches it has a known variance.
    """
    total, size, chains = 12, 3, 4_000
    x = torch.linspace(-1, 2, total, dtype=torch.float64)
    make = lambda rule: Posterior(
        lambda p: 0 * p.sum(-1), lambda p, x: x * p, (x,), 1, size, rule
    )
    position, generator = (
        torch.zeros(chains, 1, dtype=torch.float64),
        torch.Generator().manual_seed(0),
    )
    errors = {}
    for rule in (Passes(), Fresh()):
        posterior = make(rule)
        mean = (
            sum(
                posterior.stochastic_gradient(position, generator, step=step)
                for step in range(4)
            )
            / 4
        )
        errors[type(rule)] = (mean - posterior.gradient(position))[:, 0]
    torch.testing.assert_close(
        errors[Passes], torch.zeros(chains, dtype=torch.float64), rtol=0, atol=1e-12
    )
    # Cochran (1977), Theorem 2.2
    variance = total**2 / size * (1 - size / total) * x.var() / 4
    fourth = (errors[Fresh].pow(2) - variance).std() / math.sqrt(chains)
    assert abs(errors[Fresh].pow(2).mean() - variance) < 4 * fourth  # false alarm 6e-5


PINNED = {
    "with replacement": (Fresh(replacement=True), 9, 2, [6, 7], [3, 3]),
    "the start of a permutation": (Fresh(), 9, 3, [1, 8, 7], [6, 4, 2]),
    "the first that are different": (Fresh(), 12, 3, [8, 10, 4], [11, 10, 6]),
    "passes": (Passes(), 8, 3, [4, 1, 3], [7, 6, 2]),
    "sweeps": (Sweeps(), 8, 3, [4, 1, 3], [7, 6, 2]),
}


def test_a_sweep_is_a_pass_and_the_same_pass_backwards():
    """Four steps a pass; the third pass is the second one that is shuffled."""
    steps = [Sweeps().indices(8, 2, 5, 0, step) for step in range(16)]
    assert all(torch.equal(steps[t], steps[7 - t]) for t in range(4))
    passes = [Passes().indices(8, 2, 5, 0, step) for step in range(8)]
    assert all(torch.equal(steps[t], passes[t]) for t in range(4))
    assert all(torch.equal(steps[8 + t], passes[4 + t]) for t in range(4))


@pytest.mark.parametrize("name", PINNED)
def test_a_seed_has_the_minibatches_that_it_had(name):
    """Stored results and checkpoints rest on them."""
    rule, total, size, *expected = PINNED[name]
    found = [rule.indices(total, size, 1, 7, step)[0].tolist() for step in (0, 1)]
    assert found == expected
    assert rule.replacement == (name == "with replacement")


@pytest.mark.parametrize(
    "rule", [Fresh(), Fresh(True), Passes(), Held(2), Held(2, Passes())]
)
@pytest.mark.parametrize("size", [None, 0, -1, 2.5, 11])
def test_a_size_that_no_minibatch_has_is_refused(rule, size):
    """With replacement there may be more than there are examples."""
    if size == 11 and rule.replacement:
        assert rule.indices(10, size, 2, 0, 3).shape == (2, 11)
        return
    with pytest.raises(
        ValueError, match=rf"batch_size is {size}\b|batch_size.*it is {size}$"
    ):
        rule.indices(10, size, 2, 0, 3)


@pytest.mark.parametrize("rule", [Passes(), Held(3)], ids=str)
def test_a_rule_without_a_size_is_refused(rule):
    given = torch.randn(10, 2), torch.ones(10)
    with pytest.raises(ValueError, match=rf"batch_size is None.*{type(rule).__name__}"):
        LogisticRegression(*given, minibatches=rule)
    assert LogisticRegression(*given, batch_size=5, minibatches=rule).batch_size == 5
    assert LogisticRegression(*given, minibatches=Fresh()).takes_all_data


# Rules of one's own, and of this module, counted


class Chosen:
    """A rule whose minibatches are drawn with given chances, or cut from an order."""

    replacement = True

    def __init__(self, chances=None, cut=None, offset=0):
        self.chances, self.cut, self.offset = chances, cut, offset

    def indices(self, num_examples, batch_size, chains, seed, step):
        generator = torch.Generator().manual_seed(seed + step)
        if self.cut is None:
            chances = self.chances.expand(chains, -1)
            return torch.multinomial(chances, batch_size, True, generator=generator)
        begin = torch.randint(self.cut, (chains, 1), generator=generator)
        if self.cut == 1:  # in their order, the same for all
            begin = begin + step * batch_size
        return (begin + self.offset + torch.arange(batch_size)) % num_examples


X = torch.randn(1_000, 3, generator=torch.Generator().manual_seed(1))
Y = X[:, 0] + 1.0
RARE = (torch.arange(1_000) % 50 == 7).long()
EQUAL = torch.ones(1_000)


@pytest.mark.parametrize(
    ("rule", "size", "message"),
    [
        (
            Chosen(1 + 3.0 * (Y > 2.5)),
            50,
            "tenth 10 .*tensor 1 .*comes [23]\\.[0-9]+ times",
        ),
        (Chosen(1 + 3.0 * RARE), 50, "tenth 10 .*tensor 2 .*comes 1\\.[4-6]"),
        (
            Chosen(1 + 0.5 * (X @ torch.tensor([1.0, 2**0.5, 3**0.5]) > 0)),
            50,
            "tensor 0",
        ),
        (Chosen(torch.linspace(0.5, 1.5, 1_000)), 50, "tenth .* by "),
        (Chosen((torch.arange(1_000) != 123).float()), 50, "example 123 came 0 times"),
        (
            Chosen(1 + 4.0 * (torch.arange(1_000) == 123)),
            50,
            "example 123 came [0-9]+ ",
        ),
        (Chosen(cut=900), 50, "uniformly"),
    ],
    ids=["large", "rare", "inputs", "place", "never", "often", "no end"],
)
def test_a_rule_that_does_not_choose_uniformly_is_refused(rule, size, message):
    with pytest.raises(ValueError, match=message):
        check_rule(rule, 1_000, size, 0, (X, Y, RARE))


@pytest.mark.parametrize("size", [20, 400, 1_000])
@pytest.mark.parametrize(
    "rule",
    [
        *[Fresh(), Fresh(replacement=True), Passes(), Held(7), Held(3, Passes())],
        *[Chosen(EQUAL), Chosen(cut=1_000), Chosen(cut=1)],
    ],
    ids=lambda rule: f"{rule}"[:30],
)
def test_a_uniform_rule_passes(rule, size):
    """One seed in a million refuses one by chance."""
    for seed in range(2):
        check_uniform(rule, 1_000, size, seed, (X, Y, RARE))


@pytest.mark.parametrize("number", [1, 2, 3, 9])
def test_few_examples_are_counted_too(number):
    for rule in (Fresh(), Chosen(torch.ones(number))):
        check_uniform(rule, number, 1, 0, (Y[:number],))


def test_a_rule_for_fewer_steps_is_not_counted():
    class Short(Chosen):
        def indices(self, num_examples, batch_size, chains, seed, step):
            return [torch.zeros(chains, batch_size).long()][step]

    assert check_uniform(Short(), 100, 10, 0) is None


def test_examples_from_all_over_the_data():
    """Of each tensor the rarest value, the least, the largest and some between."""
    rare = torch.full((400,), 2)
    rare[[11, 333]] = torch.tensor([0, 5])
    rare[50:70] = 3
    chosen = spread((X[:400], rare), 32).tolist()
    assert {0, 399, 199, 11, 333, 50} <= set(chosen)
    sums = X[:400] @ torch.tensor([1.0, 2.0, 3.0]).sqrt()
    assert {int(sums.argmin()), int(sums.argmax())} <= set(chosen)
    assert chosen == sorted(set(chosen)) and len(chosen) <= 32
    assert len(spread((X[:400], rare), 5)) == 5 and 11 in spread((X[:400], rare), 5)
    assert spread((torch.full((1,), math.nan),), 4).tolist() == [0]
    # of many some are looked at
    late = torch.zeros(2**17)
    late[90_000] = 1.0
    assert 90_000 in spread((late,), 4)


def test_rules_inside_of_others_are_counted_and_those_below_a_known_one():
    class Biased(Fresh):
        def indices(self, num_examples, batch_size, chains, seed, step):
            return super().indices(num_examples // 2, batch_size, chains, seed, step)

    for rule in (Held(3, Held(2, Chosen(cut=900))), Biased(), Held(2, Biased())):
        with pytest.raises(ValueError, match="uniformly"):
            check_rule(rule, 1_000, 50, 0)
    check_rule(Held(3, Chosen(EQUAL)), 1_000, 50, 0)


def test_chains_may_have_one_minibatch_where_there_are_few():
    """Of 1,000,000 or fewer; of 23 examples there are 1,144,066 of nine."""

    class Shared(Chosen):
        def indices(self, num_examples, batch_size, chains, seed, step):
            found = Fresh().indices(num_examples, batch_size, 1, seed, step)
            return found.expand(chains, -1)

    check_rule(Shared(), 22, 9, 0)
    check_rule(Shared(), 23, 8, 0)
    with pytest.raises(ValueError, match="all chains"):
        check_rule(Shared(), 24, 9, 0)
    with pytest.raises(ValueError, match=r"here \(2, 5\), but it returned \(2, 4\)"):
        check_rule(
            type(
                "Few",
                (),
                {"indices": lambda self, n, size, *_: torch.zeros(2, size - 1)},
            )(),
            24,
            5,
            0,
        )


@pytest.mark.parametrize(
    ("size", "number", "expected"),
    [(50, 800, "40"), (400, 400, "160"), (12, 2_000, "24")],
)
def test_a_count_is_of_some_forty_of_each_example(size, number, expected):
    """In 400 minibatches at least and 2,000 at most."""
    missing = Chosen((torch.arange(1_000) != 123).float())
    message = f"example 123 came 0 times in {number} minibatches, where {expected} are"
    with pytest.raises(ValueError, match=message):
        check_rule(missing, 1_000, size, 0)
    # e⁻²⁴ is a chance of less than one in ten million for a thousand examples, e⁻²² no
    check_rule(missing, 1_000, 11, 0)


class Composed:
    """A rule that takes each tenth of a thousand examples as often as is said."""

    replacement = True

    def __init__(self, *times):
        tenths = torch.arange(10).repeat_interleave(torch.tensor(times))
        self.first, self.order = 100 * tenths, torch.arange(1_000)

    def indices(self, num_examples, batch_size, chains, seed, step):
        generator = torch.Generator().manual_seed(step)
        shape = chains, len(self.first)
        return self.order[self.first + torch.randint(100, shape, generator=generator)]


@pytest.mark.parametrize("reverse", [False, True])
def test_the_share_of_a_tenth_may_be_off_by_a_tenth(reverse):
    """By its place, or by the values of a tensor; the one that is furthest off is told."""
    order = torch.randperm(1_000, generator=torch.Generator().manual_seed(0))
    data = torch.ones(1_000), torch.empty(1_000, 1)
    data[1][order, 0] = -torch.arange(1_000.0)
    name = "tensor 1 of the data" if reverse else "their place"
    for more, told in ((9, None), (11, "1.11"), (-9, None), (-12, "0.88")):
        times = [100] * 10
        times[3] += more
        times[5], times[6] = 100 - more // 2, 100 - (more - more // 2)
        rule = Composed(*times)
        rule.order = order if reverse else rule.order
        if told is None:
            check_uniform(rule, 1_000, 1_000, 0, data)
            continue
        with pytest.raises(ValueError, match="uniformly") as error:
            check_uniform(rule, 1_000, 1_000, 0, data)
        place = 7 if reverse else 4
        assert re.search(f"tenth {place} .*{name}.* {told} times", str(error.value))


def test_which_examples_are_looked_at_first():
    """The rarest value of the last tensor, of the first, and the first example; then
    the least of each and the last example, the largest, and those between.
    """
    first, last = torch.zeros(100), torch.zeros(100, 2)
    first[[20, 30, 31]] = torch.tensor([7.0, -1, -1])
    last[[40, 50, 51, 60, 61]] = torch.tensor(
        [[1.0, 0], [0, -9], [0, -9], [0, 9], [0, 9]]
    )
    order = [40, 20, 0, 50, 30, 99]
    for most in range(1, 7):
        assert spread((first, last), most).tolist() == sorted(order[:most])
    assert spread((first, last), 7).tolist() == sorted([*order, 60])
    alone = torch.arange(17.0).flip(0)
    assert spread((alone,), 99).tolist() == [*range(0, 17, 2)]
