"""Cyclical step sizes: the schedule, the stages, where draws are taken, what is handed
on, and the exact law of every phase.
"""

import math
import warnings

import pytest
import torch

from sgmc import sample
from sgmc.kernels import HMC, SGHMC, SGLD
from sgmc.minibatches import Passes
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import Cyclical
from sgmc.posteriors import LogisticRegression
from sgmc.splittings import flows, langevin_chain, linear_chain
from sgmc.targets import Gaussian
from tests.checks import assert_covariance
from tests.fakes import (
    DOUBLE,
    NOISY,
    TARGET,
    generator_of,
    logistic,
)
from tests.kernels.steps import (
    START,
    assert_same,
    normal,
    run,
    run_with_info,
)

HIGH, LENGTH = 0.2, 12


def rate(step, high=HIGH, length=LENGTH):
    """The step size of Zhang et al. (2020), with k = step + 1 from one on and ⌈K/M⌉ =
    length, term by term.
    """
    k = step + 1
    return high / 2 * (math.cos(math.pi * ((k - 1) % length) / length) + 1)


def momentum_kernel(rate, **settings):
    return SGHMC.from_learning_rate(rate, 0.3, **settings)


def test_steps_are_those_of_sgld_with_the_schedule_of_the_paper():
    generator, position = generator_of(0), START
    for step in range(2 * LENGTH + 6):
        gradient = NOISY.stochastic_gradient(position, generator, step)
        position = (
            position
            - rate(step) * gradient
            + math.sqrt(2 * rate(step)) * normal(generator)
        )
    # three steps to a draw
    state, info = run_with_info(
        Cyclical(SGLD, HIGH, LENGTH, num_draws=4), NOISY, START, 10
    )
    assert_same(state.inner, (position, 2 * LENGTH + 6), rtol=1e-10, atol=1e-10)
    assert (info.cycle, info.draw, state.num_draws) == (2, 1, 10)
    assert info.inner.step_size == pytest.approx(rate(2 * LENGTH + 5), rel=1e-12)
    assert state.position is state.inner.position


def test_steps_are_those_of_sghmc_whose_momentum_no_step_size_enters():
    """θ ← θ + εr, r ← (1 − α)r − ε∇Ũ + N(0, 2α) with ε² = η: that r is handed on as it
    is.
    """
    generator, decay = generator_of(0), 0.3
    momentum, position = normal(generator), START
    for step in range(2 * LENGTH):
        epsilon = math.sqrt(rate(step))
        # of the gradient, and ours
        noise, injected = normal(generator), normal(generator)
        position = position + epsilon * momentum
        gradient = NOISY.gradient_given(position, noise)
        momentum = (
            (1 - decay) * momentum
            - epsilon * gradient
            + math.sqrt(2 * decay) * injected
        )
    state = run(Cyclical(momentum_kernel, HIGH, LENGTH), NOISY, START, 2)
    assert_same(
        state.inner[:3], (position, momentum, 2 * LENGTH), rtol=1e-10, atol=1e-10
    )


def test_the_highest_and_the_lowest_step_size():
    made = []
    Cyclical(lambda rate: made.append(rate) or SGLD(rate), HIGH, LENGTH)
    assert max(made) == HIGH  # the first of a cycle, exactly
    # ½(1 + cos(π − x)) = sin²(x/2), never zero
    assert min(made) == pytest.approx(
        HIGH * math.sin(math.pi / 2 / LENGTH) ** 2, rel=1e-12
    )


@pytest.mark.parametrize("exploration", [0.0, 0.25, 1 / 3, 0.9])
@pytest.mark.parametrize("num_draws", [1, 2, 5, 9])
def test_where_the_draws_of_a_cycle_are_taken(exploration, num_draws):
    length = 100
    # Algorithm 1: mod(k − 1, ⌈K/M⌉)/⌈K/M⌉ < β
    exploring = sum(step / length < exploration for step in range(length))
    kernel = Cyclical(SGLD, HIGH, length, num_draws, exploration)
    state, taken = kernel.init(TARGET, START, generator_of(0)), []
    for draw in range(3 * num_draws):
        state, info = kernel.step(TARGET, state, generator_of(1))
        taken.append(state.inner.num_gradients)
        assert (info.cycle, info.draw) == divmod(draw, num_draws)
    ends = [
        exploring + (length - exploring) * (draw + 1) // num_draws
        for draw in range(num_draws)
    ]
    assert taken == [cycle * length + end for cycle in range(3) for end in ends]
    gaps = {
        second - first for first, second in zip([exploring, *ends], ends, strict=False)
    }
    # the last at the end of the cycle, all at equal distances
    assert ends[-1] == length and max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize(
    ("exploration", "length", "exploring"),
    [(0.28, 25, 7), (50 / 1667, 1667, 50), (0.7, 10, 7), (0.701, 10, 8)],
)
def test_a_share_that_is_a_whole_number_of_steps_explores_so_many(
    exploration, length, exploring
):
    """As a product of floating-point numbers 0.28 of 25 steps is a little more than
    seven.
    """
    # a draw at every step that samples
    kernel = Cyclical(SGLD, HIGH, length, length - exploring, exploration)
    state, _ = kernel.step(
        TARGET, kernel.init(TARGET, START, generator_of(0)), generator_of(1)
    )
    assert state.inner.num_gradients == exploring + 1


def test_the_first_stage_may_be_cold():
    generator, position = generator_of(0), START
    for step in range(LENGTH + 9):  # the second cycle explores again
        position = position - rate(step) * NOISY.stochastic_gradient(
            position, generator, step
        )
        if step % LENGTH >= 6:
            position = position + math.sqrt(2 * rate(step)) * normal(generator)
    state = run(
        Cyclical(SGLD, HIGH, LENGTH, num_draws=2, exploration=0.5, cold=True),
        NOISY,
        START,
        3,
    )
    assert_same(state.inner, (position, LENGTH + 9), rtol=1e-10, atol=1e-10)


def test_each_kernel_of_a_cycle_is_made_once():
    made = []
    kernel = Cyclical(lambda rate: made.append(rate) or SGLD(rate), HIGH, LENGTH)
    run(kernel, TARGET, START, 5)
    assert len(made) == len(set(made)) == LENGTH


@pytest.mark.parametrize(
    "make",
    [
        momentum_kernel,
        SGLD,
        lambda rate: momentum_kernel(rate, noise_estimate=OnlineNoise()),
    ],
)
def test_a_state_is_handed_on_bit_for_bit(make):
    """From one kernel to the next and from one cycle to the next: nothing is drawn
    anew, rescaled or forgotten.
    """
    kernel, generator = Cyclical(make, HIGH, LENGTH, num_draws=3), generator_of(0)
    state = kernel._kernel_of(0).init(NOISY, START, generator)
    for step in range(2 * LENGTH):
        state, info = kernel._kernel_of(step % LENGTH).step(NOISY, state, generator)
    got, got_info = run_with_info(kernel, NOISY, START, 6)
    assert_same(got.inner, state)
    assert_same(got_info.inner, info)


def test_a_momentum_gathered_in_the_exploration_is_handed_to_the_sampler():
    start = momentum_kernel(rate(0), temperature=0.0)
    state = start.init(NOISY, START, generator := generator_of(0))
    for step in range(LENGTH):
        settings = {"temperature": 0.0} if step < 6 else {}
        kernel = momentum_kernel(rate(step), **settings)
        state, _ = kernel.step(NOISY, state, generator)
    kernel = Cyclical(momentum_kernel, HIGH, LENGTH, exploration=0.5, cold=True)
    got = run(kernel, NOISY, START)
    assert_same(got.inner[:3], state[:3], rtol=1e-10, atol=1e-10)


def test_without_the_cold_the_exploration_is_that_of_the_kernel():
    kernels = (
        Cyclical(SGLD, HIGH, LENGTH, exploration=0.5),
        Cyclical(SGLD, HIGH, LENGTH),
    )
    states = [run(kernel, NOISY, START, 3) for kernel in kernels]
    assert_same(states[0].inner, states[1].inner)


def test_passes_over_the_data_go_on_from_cycle_to_cycle(monkeypatch):
    posterior, steps = logistic(10), []
    draw = LogisticRegression.draw_minibatches

    def noting(self, position, generator, step, num_steps=1):
        steps.extend(range(step, step + num_steps))
        return draw(self, position, generator, step, num_steps)

    monkeypatch.setattr(LogisticRegression, "draw_minibatches", noting)
    run(
        Cyclical(SGLD, 0.02, 5, num_draws=2, exploration=0.3, cold=True),
        posterior,
        START,
        6,
    )
    # or a cycle would see the minibatches of the one before
    assert steps == list(range(15))


LAW_LENGTH, LAW_DRAWS = 30, 3
NOISE = torch.tensor([[4.0, 1.0], [1.0, 2.0]], dtype=DOUBLE)  # of NOISY


def phase_laws(steps, end):
    """Compute the stationary covariance of the draws taken after so many steps of a
    cycle, given the linear chain of each step.
    """
    order = [*steps[end:], *steps[:end]]
    cycle = order[0]
    for step in order[1:]:
        cycle = cycle.then(step)
    return cycle.stationary_covariance()[:2, :2]


def assert_phases(kernel, steps):
    """Compare the draws of each phase with their exact law, in 4,000 chains: one false
    alarm in 3,000 for the three phases.
    """
    start = torch.zeros(4_000, 2, dtype=DOUBLE)
    draws = sample(
        kernel, NOISY, start, num_samples=4 * LAW_DRAWS, warm_up=6 * LAW_DRAWS, seed=4
    )
    laws = [phase_laws(steps, end) for end in (10, 20, 30)]
    for phase, law in enumerate(laws):
        assert_covariance(draws.samples[phase::LAW_DRAWS], law)
    with pytest.raises(AssertionError, match="z ="):  # the phases can be told apart
        assert_covariance(draws.samples[0::LAW_DRAWS], laws[-1])
    return draws


def test_sgld_has_at_every_phase_the_law_of_its_linear_chains():
    steps = [
        langevin_chain(TARGET.precision, rate(j, 0.4, LAW_LENGTH), NOISE)
        for j in range(LAW_LENGTH)
    ]
    assert_phases(Cyclical(SGLD, 0.4, LAW_LENGTH, LAW_DRAWS), steps)


def sghmc_steps(high=0.4, length=LAW_LENGTH, decay=0.3):
    epsilons = [math.sqrt(rate(j, high, length)) for j in range(length)]
    return [
        linear_chain(flows.sghmc(epsilon, decay / epsilon), TARGET.precision, NOISE)
        for epsilon in epsilons
    ], epsilons


def test_sghmc_has_at_every_phase_the_law_of_its_linear_chains():
    assert_phases(
        Cyclical(momentum_kernel, 0.4, LAW_LENGTH, LAW_DRAWS), sghmc_steps()[0]
    )


def test_statistics_tell_cycle_draw_and_step_size():
    draws = sample(Cyclical(SGLD, HIGH, LENGTH, 3, 0.25), NOISY, START, num_samples=7)
    one = {name: values[:, 0] for name, values in draws.statistics.items()}
    assert one["cycle"].tolist() == [0, 0, 0, 1, 1, 1, 2] and one["draw"].tolist() == [
        0,
        1,
        2,
        0,
        1,
        2,
        0,
    ]
    assert one["step_size"][:3].tolist() == pytest.approx(
        [rate(5), rate(8), rate(11)], rel=1e-6
    )


def test_retarget_brings_the_inner_state_up_to_date():
    other = Gaussian(2 * torch.eye(2, dtype=DOUBLE))
    kernel = Cyclical(lambda rate: HMC(rate, 3), HIGH, LENGTH)
    state = kernel.init(TARGET, START, generator_of(0))
    assert torch.equal(kernel.retarget(other, state).inner.energy, other.energy(START))
    assert kernel.retarget(other, state).num_draws == 0


def warned(**settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sample(**settings)
    return [str(each.message) for each in caught]


def test_a_run_that_ends_within_its_first_cycle_is_told():
    settings = dict(potential=NOISY, position=START, seed=2)
    five = Cyclical(SGLD, HIGH, 50, num_draws=5)
    [message] = warned(kernel=five, num_samples=4, **settings)
    assert message.startswith(
        "the run ended after 4 of the 5 draws of its first cycle, before the step "
        "size was small: take a shorter"
    )
    assert not any(
        "first cycle" in message
        for message in warned(kernel=five, num_samples=5, **settings)
    )
    # It counts draws of the kernel, whichever of them are kept.
    assert not any(
        "first cycle" in message
        for message in warned(kernel=five, num_samples=3, thinning=2, **settings)
    )
    assert (
        "after 4 of the 5"
        in warned(kernel=five, num_samples=2, thinning=2, **settings)[0]
    )
    assert (
        "after 4 of the 5"
        in warned(kernel=five, num_samples=1, warm_up=3, **settings)[0]
    )


def test_what_the_inner_kernel_says_is_passed_on():
    kernel = Cyclical(
        lambda rate: SGHMC.from_learning_rate(rate, 0.05, OnlineNoise()), HIGH, LENGTH
    )
    assert any(
        "½εV̂ exceeded the friction" in message
        for message in warned(
            kernel=kernel, potential=NOISY, position=START, num_samples=5
        )
    )


def test_minibatches_of_a_rule_are_those_of_the_inner_kernel():
    """A cyclical kernel with one step a cycle is its kernel at the highest step size,
    bit for bit, minibatches and all.
    """
    generator = generator_of(3)
    inputs = torch.randn(40, 2, generator=generator, dtype=DOUBLE)
    posterior = LogisticRegression(
        inputs,
        (torch.rand(40, generator=generator) < 0.5).to(DOUBLE),
        batch_size=8,
        minibatches=Passes(),
    )
    got, expected = (
        run(Cyclical(SGLD, 0.02, 1), posterior, START, 12),
        run(SGLD(0.02), posterior, START, 12),
    )
    assert_same(got.inner, expected)
