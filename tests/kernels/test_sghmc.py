"""Stochastic-gradient Hamiltonian Monte Carlo, one step at a time."""

import itertools
import math

import pytest
import torch

from sgmc import sample
from sgmc.kernels import SGHMC, sghmc
from sgmc.matrices import Matrix
from sgmc.noise import InjectedNoise, OnlineNoise
from sgmc.potentials import Potential
from sgmc.randomness import blocks
from sgmc.splittings import langevin_chain, sghmc_chain
from sgmc.tuning.defaults import matched_noise_estimate
from tests.fakes import (
    DOUBLE,
    NOISY,
    TARGET,
    Flat,
    generator_of,
    logistic,
)
from tests.kernels.steps import (
    DIAGONAL,
    FULL,
    START,
    assert_same,
    forms,
    full,
    normal,
    root,
    run,
    run_with_info,
)

# does not commute with the mass
FRICTION = torch.tensor([[2.0, -0.5], [-0.5, 3.0]], dtype=DOUBLE)
CASES = {
    "numbers": dict(friction=2.0, noise_estimate=0.2, mass=1.7),
    "diagonals": dict(
        friction=2 * DIAGONAL, noise_estimate=0.2 * DIAGONAL, mass=DIAGONAL
    ),
    "full": dict(friction=FRICTION, noise_estimate=0.2 * FULL, mass=FULL),
    "full friction, diagonal mass": dict(
        friction=FRICTION, noise_estimate=0.2, mass=DIAGONAL
    ),
    "diagonal friction, full mass": dict(
        friction=2 * DIAGONAL, noise_estimate=0.2 * FULL, mass=FULL
    ),
    "half temperature": dict(
        friction=FRICTION, noise_estimate=0.2 * DIAGONAL, mass=FULL, temperature=0.5
    ),
    "no temperature": dict(friction=FRICTION, mass=FULL, temperature=0.0),
    "no estimate": dict(friction=2.0),
}


def normals(number, generator, like=START):
    """Draw the injected noise of so many steps at once."""
    return torch.randn((number, *like.shape), generator=generator, dtype=like.dtype)


def written_out(
    settings, num_steps, num_calls, start=START, length=None, step_size=0.1
):
    """Take m steps a call; the noise of a block of steps comes at once, first the
    gradients', then what is injected.
    """
    settings = {"noise_estimate": 0.0, "mass": 1.0, "temperature": 1.0} | settings
    temperature, friction, estimate = (
        settings["temperature"],
        full(settings["friction"]),
        full(settings["noise_estimate"]),
    )
    inverse, generator, step = (
        torch.linalg.inv(full(settings["mass"])),
        generator_of(0),
        0,
    )
    injected = (
        root(2 * (temperature * friction - estimate) * step_size)
        if temperature > 0
        else torch.zeros(2, 2, dtype=DOUBLE)
    )
    position = start
    momentum = (
        math.sqrt(temperature)
        * torch.randn(start.shape, generator=generator, dtype=DOUBLE)
        @ root(settings["mass"])
    )
    for _ in range(num_calls):
        left = num_steps
        while left > 0:
            number = min(left, length or num_steps)
            omegas = NOISY.draw_minibatches(position, generator, step, number)
            xis = (
                normals(number, generator, start)
                if temperature > 0
                else torch.zeros(number, *start.shape, dtype=DOUBLE)
            )
            for omega, xi in zip(omegas, xis, strict=True):
                position = position + step_size * momentum @ inverse
                gradient = TARGET.gradient(position) + omega @ NOISY.noise_root.value
                momentum = (
                    momentum
                    - step_size * momentum @ inverse @ friction
                    - step_size * gradient
                    + xi @ injected
                )
            step, left = step + number, left - number
    return position, momentum, step


@pytest.mark.parametrize("num_steps", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_steps_are_the_algorithm_written_out(case, num_steps):
    state, info = run_with_info(
        SGHMC(0.1, num_steps=num_steps, **CASES[case]), NOISY, START, 6 // num_steps
    )
    position, momentum, _ = written_out(CASES[case], num_steps, 6 // num_steps)
    assert_same(state, (position, momentum, 6, None, None), rtol=1e-10, atol=1e-10)
    assert info == (6, None, None)


@pytest.mark.parametrize(("chains", "length"), [(30, 50), (4_096, 8), (32_768, 1)])
def test_noise_that_is_drawn_in_blocks_makes_the_same_steps(chains, length):
    """Fifty steps a call: the noise of (30, 2) positions fits into one block, that of
    larger ones into several.
    """
    settings = dict(
        friction=FRICTION, noise_estimate=0.2 * FULL, mass=DIAGONAL, temperature=0.5
    )
    start = torch.randn(chains, 2, generator=generator_of(5), dtype=DOUBLE)
    num_steps = 50 if length > 1 else 3
    assert next(blocks(0, num_steps, start)) == (0, min(length, num_steps))
    state = run(SGHMC(0.1, num_steps=num_steps, **settings), NOISY, start, 2)
    expected = written_out(settings, num_steps, 2, start, length)
    assert_same(state[:3], expected, rtol=1e-10, atol=1e-10)


def test_blocks_go_on_with_the_number_of_the_step():
    """By which minibatches are chosen: in the blocks of one call, and from call to
    call.
    """
    asked, seen = [], []

    class Numbered(Flat):
        def draw_minibatches(self, position, generator, step, num_steps=1):
            asked.append((step, num_steps))
            return range(step, step + num_steps)

        def gradient_given(self, position, minibatch):
            seen.append(minibatch)
            return torch.zeros_like(position)

    run(
        SGHMC(0.1, 2.0, num_steps=20),
        Numbered(),
        torch.zeros(4_096, 2, dtype=DOUBLE),
        2,
    )
    assert asked == [
        (0, 8),
        (8, 8),
        (16, 4),
        (20, 8),
        (28, 8),
        (36, 4),
    ] and seen == list(range(40))


def test_a_trajectory_is_a_pure_function_of_its_noise():
    """The same noise gives the same trajectory, from a step's own call or by hand, and
    nothing is drawn on the way.
    """
    kernel = SGHMC(0.1, FRICTION, 0.2 * FULL, DIAGONAL, num_steps=50)
    state = kernel.init(NOISY, START, generator_of(0))
    generator, seen = generator_of(1), []
    omegas, xis = (
        NOISY.draw_minibatches(START, generator, 0, 50),
        normals(50, generator),
    )
    noise = InjectedNoise(0.1, Matrix(root(2 * 0.1 * (FRICTION - 0.2 * FULL))))

    class Watched(type(NOISY)):
        def draw_minibatches(self, *arguments):
            raise AssertionError("a trajectory draws nothing")

        def gradient_given(self, position, minibatch):
            seen.append(minibatch)
            return super().gradient_given(position, minibatch)

    watched = Watched(NOISY.potential, NOISY.noise_variance)
    ends = [(START.clone(), state.momentum.clone()) for _ in range(2)]
    for position, momentum in ends:
        kernel.trajectory(watched, position, momentum, omegas, xis, noise)
    assert_same(*ends)
    # one gradient a step, each from its own noise
    assert torch.equal(torch.stack(seen[:50]), omegas)
    stepped, _ = kernel.step(NOISY, state, generator_of(1))
    assert_same(stepped[:2], ends[0], rtol=1e-12, atol=1e-12)


class Written(Potential):
    """A noisy gradient whose noise is a table, a row for every step of a run."""

    table = torch.randn(10, 30, 2, generator=generator_of(3), dtype=DOUBLE)

    def energy(self, position):
        return TARGET.energy(position)

    def draw_minibatches(self, position, generator, step, num_steps=1):
        return self.table[step : step + num_steps]

    def gradient_given(self, position, minibatch):
        return TARGET.gradient(position) + minibatch


@pytest.mark.parametrize(
    "estimate",
    [0.2, OnlineNoise("full", refresh_every=3, averaging=0.2)],
    ids=["fixed", "online"],
)
def test_several_steps_between_draws_are_as_many_draws_of_one_step(
    estimate, monkeypatch
):
    """Bit for bit, where each step finds the same noise; that of the gradients goes by
    the number of the step.
    """
    table = torch.randn(10, 30, 2, generator=generator_of(4), dtype=DOUBLE)
    potential, taken = Written() if estimate == 0.2 else logistic(7), itertools.count()
    monkeypatch.setattr(
        sghmc,
        "normal_block",
        lambda position, number, generator, drawn: torch.stack(
            [table[next(taken)] for _ in range(number)]
        ),
    )
    states = []
    for num_steps in (5, 1):
        taken = itertools.count()
        states.append(
            run(
                SGHMC(0.1, 15.0, estimate, num_steps=num_steps),
                potential,
                START,
                10 // num_steps,
            )
        )
        assert next(taken) == 10
    assert_same(*states)


def test_zero_temperature_without_gradient_stays_at_rest():
    state = run(SGHMC(0.1, 2.0, temperature=0.0), Flat(), START, 3)
    assert torch.equal(state.position, START) and torch.equal(
        state.momentum, torch.zeros_like(START)
    )


@pytest.mark.parametrize("momentum_decay", [0.1, 0.6])
def test_zero_temperature_is_stochastic_gradient_descent_with_momentum(momentum_decay):
    """PyTorch accumulates b ← μb + ∇U(θ) and then moves, θ ← θ − ηb.

    With v = −ηb and μ = 1 − α that is v ← (1 − α)v − η∇U(θ), θ ← θ + v, the very
    updates of SGHMC, of which it does the position's last and SGHMC first. From rest
    SGHMC's first move goes nowhere, so that its k + 1 steps end where k of PyTorch's
    do."""
    learning_rate, number = 0.01, 12
    parameter = START.clone().requires_grad_()
    optimiser = torch.optim.SGD(
        [parameter], lr=learning_rate, momentum=1 - momentum_decay
    )
    for _ in range(number):
        parameter.grad = logistic().gradient(parameter.detach())
        optimiser.step()
    kernel = SGHMC.from_learning_rate(learning_rate, momentum_decay, temperature=0.0)
    state = run(kernel, logistic(), START, number)
    buffer = optimiser.state[parameter]["momentum_buffer"]
    torch.testing.assert_close(
        kernel.step_size * state.momentum,
        -learning_rate * buffer,
        rtol=1e-11,
        atol=1e-12,
    )
    state, _ = kernel.step(logistic(), state, generator_of(0))
    torch.testing.assert_close(
        state.position, parameter.detach(), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize(
    "estimate",
    [0.0, 0.02, 0.02 * DIAGONAL, 0.02 * FULL],
    ids=["none", "number", "diagonal", "full"],
)
@pytest.mark.parametrize(
    "momentum_decay",
    [0.1, 0.1 * DIAGONAL, 0.1 * FRICTION],
    ids=["number", "diagonal", "full"],
)
def test_learning_rate_form_written_out(momentum_decay, estimate):
    """Chen et al. (2014), eq. 15: v ← (1 − α)v − η∇Ũ(θ) + N(0, 2(α − β̂)η)."""
    learning_rate, generator = 0.04, generator_of(0)
    position, velocity = START, math.sqrt(learning_rate) * normal(generator)
    noise_root = root(2 * (full(momentum_decay) - full(estimate)) * learning_rate)
    for omega, xi in zip(
        NOISY.draw_minibatches(position, generator, 0, 5),
        normals(5, generator),
        strict=True,
    ):
        position = position + velocity
        gradient = NOISY.gradient_given(position, omega)
        velocity = (
            velocity
            - velocity @ full(momentum_decay)
            - learning_rate * gradient
            + xi @ noise_root
        )
    state = run(
        SGHMC.from_learning_rate(learning_rate, momentum_decay, estimate, num_steps=5),
        NOISY,
        START,
    )
    assert_same(
        state,
        (position, velocity / math.sqrt(learning_rate), 5, None, None),
        rtol=1e-10,
        atol=1e-10,
    )


@pytest.mark.parametrize(
    "estimate", [0.2, 0.2 * DIAGONAL, 0.2 * FULL], ids=["number", "diagonal", "full"]
)
def test_both_forms_make_the_same_steps(estimate):
    """η = ε²M⁻¹, α = εM⁻¹C and β̂ = εM⁻¹B̂ with M = 1."""
    step_size, friction, settings = (
        0.3,
        2.0,
        dict(num_steps=2, resample_every=3, temperature=0.9),
    )
    first = SGHMC(step_size, friction, estimate, **settings)
    second = SGHMC.from_learning_rate(
        step_size**2, step_size * friction, step_size * estimate, **settings
    )
    assert_same(
        run(first, NOISY, START, 5),
        run(second, NOISY, START, 5),
        rtol=1e-10,
        atol=1e-10,
    )


def test_friction_at_the_noise_estimate_leaves_nothing_to_inject():
    kernel = SGHMC(0.1, 0.5 * FULL, 0.5 * FULL)
    state = kernel.init(TARGET, START, generator_of(0))
    momentum = state.momentum.clone()
    state, _ = kernel.step(TARGET, state, generator_of(1))
    position = START + 0.1 * momentum
    torch.testing.assert_close(
        state.momentum,
        momentum - 0.1 * momentum @ (0.5 * FULL) - 0.1 * TARGET.gradient(position),
    )


def test_every_step_and_every_chain_draws_its_own_minibatch():
    """Level 5: three times thirty gradients at one place, no two of them equal."""
    seen = []

    class Watched(type(logistic())):
        def gradient_given(self, position, minibatch):
            seen.append(super().gradient_given(torch.zeros_like(position), minibatch))
            return seen[-1]

    data = logistic().data
    run(SGHMC(0.1, 2.0, num_steps=3), Watched(*data, batch_size=5), START)
    assert len(torch.cat(seen).unique(dim=0)) == 3 * len(START)


@pytest.mark.parametrize(
    ("resample_every", "fresh"),
    [(None, []), (1, [0, 1, 2, 3, 4, 5, 6]), (3, [0, 3, 6]), (4, [0, 4])],
)
def test_momentum_is_drawn_afresh_before_every_so_many_calls(resample_every, fresh):
    """Without forces, friction and noise nothing else changes it. Calls are counted,
    not gradients, of which there are two in each.
    """
    kernel = SGHMC(
        0.1,
        0.0,
        mass=FULL,
        num_steps=2,
        resample_every=resample_every,
        temperature=0.25,
    )
    generator, expected = generator_of(0), generator_of(0)
    state = kernel.init(Flat(), START, generator)
    momentum = 0.5 * normal(expected) @ root(FULL)
    for call in range(7):
        torch.testing.assert_close(state.momentum, momentum)
        state, _ = kernel.step(Flat(), state, generator)
        if call in fresh:
            momentum = 0.5 * normal(expected) @ root(FULL)
        torch.testing.assert_close(state.momentum, momentum)
        normals(2, expected)  # those of the noise, here times zero


# Step sizes that fall


def falling(draw):
    return 0.1 / (1 + draw)


@pytest.mark.parametrize("case", CASES)
def test_steps_of_a_schedule_are_the_algorithm_written_out(case):
    """Algorithm 2 has one ε_t for all m steps of a draw; momenta are handed on as they
    are.
    """
    settings = {"noise_estimate": 0.0, "mass": 1.0, "temperature": 1.0} | CASES[case]
    temperature, friction, estimate = (
        settings["temperature"],
        full(settings["friction"]),
        full(settings["noise_estimate"]),
    )
    inverse, generator, position = (
        torch.linalg.inv(full(settings["mass"])),
        generator_of(0),
        START,
    )
    momentum = math.sqrt(temperature) * normal(generator) @ root(settings["mass"])
    for draw in range(3):
        step_size = (0.1, 0.05, 0.1 / 3)[draw]
        injected = (
            root(2 * (temperature * friction - estimate) * step_size)
            if temperature > 0
            else 0 * full(1.0)
        )
        omegas = NOISY.draw_minibatches(position, generator, 2 * draw, 2)
        xis = (
            normals(2, generator)
            if temperature > 0
            else torch.zeros(2, *START.shape, dtype=DOUBLE)
        )
        for omega, xi in zip(omegas, xis, strict=True):
            position = position + step_size * momentum @ inverse
            gradient = TARGET.gradient(position) + omega @ NOISY.noise_root.value
            momentum = (
                momentum
                - step_size * momentum @ inverse @ friction
                - step_size * gradient
                + xi @ injected
            )
    state, info = run_with_info(
        SGHMC(falling, num_steps=2, **CASES[case]), NOISY, START, 3
    )
    assert_same(state, (position, momentum, 6, None, None), rtol=1e-10, atol=1e-10)
    assert info == (6, None, 0.1 / 3)


@pytest.mark.parametrize(
    "estimate",
    [0.2, OnlineNoise("full", refresh_every=3, averaging=0.2)],
    ids=["fixed", "online"],
)
def test_a_draw_of_a_schedule_is_that_of_its_step_size(estimate):
    """Bit for bit, from the same state and the same random numbers; an online estimate
    is ½ε_tV̂ with the draw's own ε_t.
    """
    asked = []

    def schedule(draw):
        asked.append(draw)
        return (0.05, 0.02, 0.01)[draw]

    settings = dict(
        friction=20.0, noise_estimate=estimate, num_steps=5, resample_every=2
    )
    kernel, potential, generator, twin = (
        SGHMC(schedule, **settings),
        logistic(7),
        generator_of(0),
        generator_of(0),
    )
    asked.clear()  # the constructor's look at the first one
    state, other = (
        kernel.init(potential, START, generator),
        SGHMC(0.05, **settings).init(potential, START, twin),
    )
    for step_size in (0.05, 0.02, 0.01):
        state, info = kernel.step(potential, state, generator)
        other, other_info = SGHMC(step_size, **settings).step(potential, other, twin)
        assert_same(state, other)
        assert info.step_size == step_size and other_info.step_size is None
    assert asked == [0, 1, 2]


def test_the_step_sizes_of_a_schedule_are_a_statistic():
    draws = sample(SGHMC(falling, 2.0, num_steps=2), NOISY, START, 3, progress=False)
    sizes = draws.statistics["step_size"]
    assert (sizes / sizes[0]).reshape(3, -1)[:, 0].tolist() == pytest.approx(
        [1, 1 / 2, 1 / 3]
    )
    assert (
        "step_size"
        not in sample(SGHMC(0.1, 2.0), NOISY, START, 3, progress=False).statistics
    )


# The online estimate


def minibatch_gradient_and_variance(posterior, position, indices):
    """Write the stochastic gradient of logistic regression and the estimate of its
    covariance out, chain by chain (Cochran's formula).
    """
    inputs, targets = posterior.data
    total, size = len(inputs), indices.shape[1]
    gradients, covariances = [], []
    for theta, rows in zip(position, indices, strict=True):
        each = (targets[rows] - torch.sigmoid(inputs[rows] @ theta))[:, None] * inputs[
            rows
        ]
        centred = each - each.mean(0)
        gradients.append(posterior.prior_precision * theta - total / size * each.sum(0))
        covariances.append(
            total**2 / size * (1 - size / total) / (size - 1) * centred.T @ centred
        )
    return torch.stack(gradients), torch.stack(covariances)


def of_kind(covariance, kind):
    """Keep of a covariance what the kind keeps, written out as a matrix for each
    chain.
    """
    if kind == "full":
        return covariance
    diagonal = covariance.diagonal(dim1=-2, dim2=-1)
    return torch.diag_embed(
        diagonal
        if kind == "diagonal"
        else diagonal.mean(-1, keepdim=True).expand_as(diagonal)
    )


def room_left(friction, estimate):
    """Take a root of (TC − B̂)⁺ for a chain: Cholesky's, or of a diagonal entry by
    entry, with the share that was negative.
    """
    spare = friction - estimate
    if spare[0, 1] == 0:
        return spare.clamp(min=0).sqrt(), float((spare.diagonal() < 0).double().mean())
    return torch.linalg.cholesky(spare), 0.0


def online_by_hand(posterior, kernel, settings, num_calls, fault=None):
    """Take the online steps one by one: drift, gradient and V̂ at the new position,
    friction, kick, noise; or with a known fault.

    Returns the position, the momentum, V̂ as a matrix for each chain, and the sum of
    the clipped shares."""
    step_size, temperature, friction = (
        0.05,
        settings["temperature"],
        full(settings["friction"]),
    )
    inverse, online = (
        torch.linalg.inv(full(settings["mass"])),
        settings["noise_estimate"],
    )
    generator = generator_of(0)
    position, momentum = (
        START,
        math.sqrt(temperature) * normal(generator) @ root(settings["mass"]),
    )

    def look(step):
        indices = posterior.minibatches.indices(
            40, posterior.batch_size, len(START), generator.initial_seed(), step
        )
        return minibatch_gradient_and_variance(posterior, position, indices)

    variance = of_kind(look(2**40)[1], online.kind)
    clipped = torch.zeros(len(START), dtype=DOUBLE)
    for call in range(num_calls):
        for offset, xi in enumerate(normals(kernel.num_steps, generator)):
            step = call * kernel.num_steps + offset
            if fault == "gradient at the old position":
                gradient, now = look(step)
            position = position + step_size * momentum @ inverse
            if fault != "gradient at the old position":
                gradient, now = look(step)
            counted = offset if fault == "refreshed by the steps of a call" else step
            if counted % online.refresh_every == 0:
                weight = (
                    1 - online.averaging
                    if fault == "averaging upside down"
                    else online.averaging
                )
                variance = weight * variance + (1 - weight) * of_kind(now, online.kind)
            estimate = 0.5 * step_size * variance
            room = friction if fault == "C in place of TC" else temperature * friction
            pairs = [room_left(room, one) for one in estimate]
            roots, shares = (
                torch.stack([pair[0] for pair in pairs]),
                torch.tensor([pair[1] for pair in pairs], dtype=DOUBLE),
            )
            noise = math.sqrt(2 * step_size) * torch.einsum("cij,cj->ci", roots, xi)
            damping = (
                friction @ inverse
                if fault == "friction on the wrong side"
                else inverse @ friction
            )
            momentum = (
                momentum - step_size * momentum @ damping - step_size * gradient + noise
            )
            clipped = clipped + shares
    return position, momentum, variance, clipped


ONLINE_FRICTIONS = {
    "number": 25.0,
    "diagonal": torch.tensor([28.0, 20.0], dtype=DOUBLE),
    "full": 8 * FRICTION,
}
ONLINE_FAULTS = [
    "C in place of TC",
    "gradient at the old position",
    "friction on the wrong side",
    "averaging upside down",
    "refreshed by the steps of a call",
]


def online_kernel(kind, friction, num_steps=3):
    online = OnlineNoise(kind, refresh_every=2, averaging=0.3)
    settings = dict(
        noise_estimate=online, friction=friction, mass=FULL, temperature=0.5
    )
    return SGHMC(0.05, num_steps=num_steps, **settings), settings


def as_full(variance):
    """Write V̂ of a state out as a matrix for each chain."""
    return (
        variance
        if variance.ndim == 3
        else torch.diag_embed(variance.expand(len(START), 2))
    )


@pytest.mark.parametrize("friction", ONLINE_FRICTIONS)
@pytest.mark.parametrize("kind", ["scalar", "diagonal", "full"])
def test_online_steps_are_the_algorithm_written_out(kind, friction):
    """At half the temperature, with a memory, and a look at the noise every two steps,
    which three steps a call do not divide.
    """
    kernel, settings = online_kernel(kind, ONLINE_FRICTIONS[friction])
    posterior = logistic(7)
    (position, momentum, num_gradients, variance, clipped), info = run_with_info(
        kernel, posterior, START, 3
    )
    expected = online_by_hand(posterior, kernel, settings, 3)
    assert not expected[3].any()  # there is room enough
    assert_same(
        (position, momentum, as_full(variance), clipped),
        expected,
        rtol=1e-10,
        atol=1e-10,
    )
    assert (
        num_gradients == 9
        and info.num_gradients == 9
        and torch.equal(info.clipped, clipped)
    )


@pytest.mark.parametrize("fault", ONLINE_FAULTS)
def test_the_comparison_of_online_steps_sees_faults(fault):
    """The friction is full, and commutes neither with the mass nor with the noise."""
    kernel, settings = online_kernel("full", ONLINE_FRICTIONS["full"])
    state = run(kernel, logistic(7), START, 3)
    position, momentum, _, _ = online_by_hand(logistic(7), kernel, settings, 3, fault)
    for given, wrong in ((state.position, position), (state.momentum, momentum)):
        assert ((given - wrong).abs().amax(-1) > 1e-3).double().mean() > 0.5


@pytest.mark.parametrize("kind", ["scalar", "diagonal"])
def test_where_the_online_estimate_exceeds_the_room_nothing_is_injected(kind):
    """Diagonals are clipped entry by entry; the shares of all steps add up, also while
    V̂ is held.
    """
    online = OnlineNoise(kind, refresh_every=2, averaging=0.3)
    settings = dict(
        noise_estimate=online,
        friction=torch.tensor([6.0, 5.0], dtype=DOUBLE),
        mass=1.7,
        temperature=0.5,
    )
    kernel, posterior = SGHMC(0.05, num_steps=3, **settings), logistic(7)
    position, momentum, _, variance, clipped = run(kernel, posterior, START, 3)
    expected = online_by_hand(posterior, kernel, settings, 3)
    # half of the coordinates, for two steps
    assert (
        (expected[3] == 0).any()
        and (expected[3] == 1).any()
        and (expected[3] > 1).any()
    )
    assert_same(
        (position, momentum, as_full(variance), clipped),
        expected,
        rtol=1e-10,
        atol=1e-10,
    )


def test_where_a_full_online_estimate_exceeds_the_room_nothing_is_injected():
    """In the direction of a negative eigenvalue of TC − ½εV̂ there is no noise, in the
    other √(2ελ) of one of the normals.
    """
    kernel, posterior = (
        SGHMC(0.05, 2 * FRICTION, OnlineNoise("full"), 1.7, temperature=0.5),
        logistic(7),
    )
    state = kernel.init(posterior, START, generator_of(0))
    start = START + 0.05 / 1.7 * state.momentum
    damped = state.momentum - 0.05 / 1.7 * state.momentum @ (2 * FRICTION)
    gradient, variance = minibatch_gradient_and_variance(
        posterior, start, posterior.draw_minibatches(start, generator_of(0), 0)[0]
    )
    after, info = kernel.step(posterior, state, generator_of(0))
    injected = after.momentum - damped + 0.05 * gradient
    values, vectors = torch.linalg.eigh(FRICTION - 0.025 * variance)
    torch.testing.assert_close(info.clipped, (values < 0).double().mean(-1))
    seen = torch.einsum("cij,ci->cj", vectors, injected)
    clipped = info.clipped > 0
    assert 5 < clipped.sum() < 25
    # An eigenvector's sign is free.
    expected = (0.1 * values.clamp(min=0)).sqrt() * normal(generator_of(0))
    torch.testing.assert_close(
        seen[clipped].abs(), expected[clipped].abs(), rtol=1e-10, atol=1e-10
    )
    root = torch.linalg.cholesky((0.1 * (FRICTION - 0.025 * variance))[~clipped])
    by_cholesky = torch.einsum("cij,cj->ci", root, normal(generator_of(0))[~clipped])
    torch.testing.assert_close(injected[~clipped], by_cholesky, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"learning_rate": 0.0},
            r"learning_rate.*\b0\.0\b",
        ),
        (
            {"learning_rate": -0.01},
            r"learning_rate.*-0\.01\b",
        ),
        (
            {"momentum_decay": -0.1},
            r"momentum_decay.*-0\.1\b",
        ),
        ({"noise_estimate": 0.2}, r"friction.*noise_estimate"),
        (
            {"num_steps": 0},
            r"num_steps.*\b0\b",
        ),
        ({"mass": 2.0}, r"mass is 2\.0.*M = 1"),
    ],
)
def test_bad_parameters_of_the_learning_rate_form_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SGHMC.from_learning_rate(
            **({"learning_rate": 0.01, "momentum_decay": 0.1} | change)
        )


def test_a_noise_estimate_may_be_negative_in_a_direction():
    """The estimate that keeps the covariance A⁻¹ at a finite step, B̂ = ½εV + ⅛ε²(CKA +
    AKC), need not be positive: of the friction, B̂ ⪯ C is all that is asked.
    """
    curvature = torch.tensor([[1.0, 0.95], [0.95, 1.0]], dtype=DOUBLE)
    friction = torch.tensor([0.1, 3.0], dtype=DOUBLE)
    estimate = matched_noise_estimate(curvature, 0.0, 0.3, friction)
    assert torch.linalg.eigvalsh(estimate)[0] < -0.02
    chain = sghmc_chain(curvature, 0.3, friction, 0.0, estimate)
    expected = torch.linalg.inv(curvature)
    assert_same(
        [chain.stationary_covariance()[:2, :2]], [expected], rtol=1e-10, atol=1e-10
    )
    # and the sampler injects what the chain has
    root = SGHMC(0.3, friction, estimate).injected_noise().root.dense(2)
    injected = 0.6 * (torch.diag(friction) - estimate)
    assert_same([root @ root.T], [injected], rtol=1e-12, atol=1e-12)
    for refused in (0.2, friction + 0.01):
        with pytest.raises(ValueError, match=r"friction.*noise_estimate"):
            SGHMC(0.3, friction, refused)
    with pytest.raises(ValueError, match=r"temperature.*0.*noise_estimate"):
        SGHMC(0.3, friction, -0.1, temperature=0.0)


@pytest.mark.parametrize("form", forms(1.0))
def test_where_the_decay_is_one_the_momentum_is_forgotten(form):
    """With εC/M = 1 a step is Langevin's, with η = ε²M⁻¹, a gradient late."""
    friction, mass = forms(4.0)[form], forms(0.4)[form]
    kernel, generator = SGHMC(0.1, friction, 0.0, mass), generator_of(0)
    state = kernel.init(NOISY, START, generator)
    ends = []
    for momentum in (state.momentum, 7.0 * torch.ones_like(START)):
        step, _ = kernel.step(
            Flat(), state._replace(momentum=momentum.clone()), generator_of(1)
        )
        ends.append(step.momentum)
    assert_same([ends[0]], [ends[1]], rtol=0, atol=1e-12)
    # θ' − θ of the next step is −η∇U + N(0, 2η)
    chain = sghmc_chain(TARGET.precision, 0.1, friction, 0.0, 0.0, mass)
    assert (
        chain.transition[2:, 2:].add(0.1 * TARGET.precision * 0.1 / 0.4).abs().max()
        < 1e-12
    )
    eta = 0.1**2 / 0.4
    langevin = langevin_chain(TARGET.precision, eta)
    assert_same(
        [chain.stationary_covariance()[:2, :2]],
        [langevin.stationary_covariance()],
        rtol=1e-9,
        atol=1e-12,
    )


def test_a_step_is_refused_where_it_is_stable_at_no_target(generator):
    """Algorithm 2 is stable if and only if M − ½εC − ¼ε²A is positive definite: by the
    spectral radius, at random matrices of which some are refused, some are not stable
    and some are.
    """
    seen = set()
    for curvature in torch.logspace(-3, 1, 60, dtype=DOUBLE):
        a, c, m = (
            x @ x.T for x in torch.randn(3, 3, 3, generator=generator, dtype=DOUBLE)
        )
        a, m = curvature * a, m + torch.eye(3)
        chain = sghmc_chain(a, 0.5, c, 0.0, 0.0, m)
        radius = float(torch.linalg.eigvals(chain.transition).abs().max())
        room = torch.linalg.eigvalsh(m - 0.25 * c - 0.0625 * a)[0]
        assert (radius < 1) == bool(room > 0)
        try:
            SGHMC(0.5, c, 0.0, m)
            refused = False
        except ValueError:
            refused = True
        assert refused == bool(torch.linalg.eigvalsh(m - 0.25 * c)[0] <= 0)
        seen.add((refused, radius < 1))
    assert seen == {(True, False), (False, False), (False, True)}


def test_a_schedule_may_begin_beyond_the_limit():
    """Its steps fall."""
    SGHMC(lambda draw: 1 / (1 + draw), friction=2.5)
    SGHMC.from_learning_rate(0.01, 1.99)
    with pytest.raises(ValueError, match=r"momentum_decay.*below 2"):
        SGHMC.from_learning_rate(0.01, 2.0, temperature=0.0)


def test_nothing_is_known_of_an_online_estimate_before_its_first_look():
    """A friction below 1 is let through, and all of TC is spare."""
    kernel = SGHMC(0.1, 0.5, OnlineNoise("scalar"), temperature=0.5)
    assert kernel._spare.number == 0.25


def test_the_share_of_clipped_coordinates_is_that_of_all_chains():
    """None and four steps' worth in 20: a tenth."""
    statistics = dict(
        clipped=torch.tensor([[0.0, 3.0], [0.0, 4.0]]),
        num_gradients=torch.tensor([[10, 10], [20, 20]]),
    )
    kernel = SGHMC(0.1, 2.0, OnlineNoise("scalar"))
    (told,) = kernel.diagnose(statistics)
    assert told.startswith("½εV̂ exceeded the friction in 10.0% of the coordinates")
    assert "with independent minibatches the samples are too wide" in told
    for few in (0.0, 0.19):  # of 20: below one per cent
        clipped = torch.full((2, 2), few)
        assert kernel.diagnose(statistics | dict(clipped=clipped)) == []
    clipped = torch.full((2, 2), 0.22)
    assert "1.1%" in kernel.diagnose(statistics | dict(clipped=clipped))[0]
