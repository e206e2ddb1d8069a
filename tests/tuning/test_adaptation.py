"""Adaptation: the acceptance it reaches, the scales it finds, and what it refuses."""

import dataclasses
import math
import signal
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from sgmc import sample
from sgmc.integrators import draw_momentum
from sgmc.kernels import HMC, NUTS, SGHMC, Kernel
from sgmc.matrices import Matrix
from sgmc.potentials import Potential
from sgmc.randomness import derived_seed
from sgmc.splittings import Splitting
from sgmc.splittings.flows import baoab
from sgmc.targets import Gaussian
from sgmc.tuning import adapt, adaptation
from sgmc.tuning.adaptation import (
    DualAveraging,
    _Moments,
    _one_step_acceptance,
    _reasonable_step_size,
    _window_ends,
)
from tests.fakes import WithoutFloat64

SCALES = torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
TARGET = Gaussian(torch.diag(SCALES**2), mean=SCALES)


@pytest.mark.parametrize("kernel", [NUTS(1.0), HMC(1.0, 1)], ids=["NUTS", "Langevin"])
def test_the_acceptance_and_the_scales_are_found(kernel, target_acceptance=0.9):
    start = torch.zeros(200, 3, dtype=torch.float64)
    tuned, position = adapt(
        kernel,
        TARGET,
        start,
        num_steps=200,
        seed=1,
        target_acceptance=target_acceptance,
    )
    assert type(tuned) is type(kernel) and position.shape == start.shape
    # 200 chains over a window of 100 steps: the standard deviations are known to a few
    # per cent.
    assert (tuned.mass.rsqrt() / SCALES - 1).abs().max() < 0.1
    acceptance = (
        sample(tuned, TARGET, position, num_samples=20, seed=2)
        .statistics["acceptance"]
        .mean()
    )
    assert abs(acceptance - target_acceptance) < 0.06


def test_three_updates_of_dual_averaging_by_hand():
    """With t₀ = 10, γ = 0.05 and κ = 0.75 (Hoffman and Gelman, 2014, Section 3.2.1).

    h̄ is (0.8 − 0.3)/11 = 1/22, then (11/22 + 0.8 − 0.9)/12 = 1/30, then (12/30 + 0.8 −
    0.55)/13 = 1/20; ε is 5 exp(−20√t h̄)."""
    averaging = DualAveraging(step_size=0.5, target=0.8)
    assert averaging.step_size == 0.5
    logs = [
        math.log(5) - 10 / 11,
        math.log(5) - 2 * math.sqrt(2) / 3,
        math.log(5) - math.sqrt(3),
    ]
    averages = [logs[0]]  # the first step size is forgotten at once
    averages.append(2**-0.75 * logs[1] + (1 - 2**-0.75) * averages[0])
    averages.append(3**-0.75 * logs[2] + (1 - 3**-0.75) * averages[1])
    for acceptance, log, average in zip((0.3, 0.9, 0.55), logs, averages, strict=True):
        averaging.update(acceptance)
        assert averaging.step_size == pytest.approx(math.exp(log), rel=1e-12)
        assert averaging.average == pytest.approx(math.exp(average), rel=1e-12)


def searched(potential, position, mass, generator, start=1.0, over_chains=torch.mean):
    acceptance = _one_step_acceptance(potential, position, mass, generator)
    return _reasonable_step_size(
        lambda step_size: over_chains(acceptance(step_size)), start
    )


def shrunk_variance(draws):
    n = len(draws)
    return draws.var(0) * n / (n + 5) + 1e-3 * 5 / (n + 5)


def test_moments_are_those_of_all_draws_of_the_chains_that_moved(generator):
    draws = (
        torch.randn(4, 7, 3, generator=generator, dtype=torch.float64)
        + 1000 * torch.arange(4.0)[:, None, None]
    )
    draws[:, 2] = -1e6
    moments = _Moments(draws[0])
    for draw in draws:
        moments.update(draw)
    moved = [0, 1, 3, 4, 5, 6]
    assert moments.moved().nonzero()[:, 0].tolist() == moved
    torch.testing.assert_close(
        moments.variance(), shrunk_variance(draws[:, moved].flatten(0, 1))
    )


def test_where_no_chain_moved_all_of_them_count():
    places = torch.tensor([[1.0], [2.0], [6.0]], dtype=torch.float64)
    moments = _Moments(places)
    moments.update(places.clone())
    torch.testing.assert_close(moments.variance(), shrunk_variance(places))


def test_a_warm_up_makes_no_float64_of_what_is_float32(monkeypatch):
    """Not every device has it."""
    monkeypatch.setattr(adaptation, "check_start", lambda *arguments: None)
    warm_up = NUTS(0.1), Gaussian.standard(2), torch.zeros(3, 2), 25
    with WithoutFloat64():
        kernel, position = adapt(*warm_up)
    assert position.dtype == kernel.mass.dtype == torch.float32


@pytest.mark.parametrize("num_steps", [20, 37, 100, 1000])
def test_windows_double_and_fill_the_middle(num_steps):
    ends = _window_ends(num_steps)
    assert ends[-1] == num_steps - num_steps // 5
    lengths = [b - a for a, b in pairwise([num_steps // 10, *ends])]
    assert all(b >= 2 * a for a, b in pairwise(lengths)) and lengths[0] >= 5


class State(NamedTuple):
    position: Tensor
    time: int


class Info(NamedTuple):
    acceptance: Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Scripted(Kernel):
    """A kernel that goes where a script tells it, accepts what a script tells it, and
    takes note of how it was tuned.
    """

    step_size: float
    mass: float | Tensor
    script: Tensor  # (steps, chains, dim)
    acceptances: Tensor  # (steps, chains)
    seen: list

    def init(self, potential, position, generator):
        return State(position.clone(), 0)

    def step(self, potential, state, generator):
        self.seen.append((self.step_size, Matrix(self.mass).value))
        return State(self.script[state.time].clone(), state.time + 1), Info(
            self.acceptances[state.time]
        )


def script(num_steps, chains=4):
    """Start far away, and come to where the variances are 1 and 9 in the course of the
    first tenth.
    """
    generator = torch.Generator().manual_seed(5)
    places = torch.randn(
        num_steps, chains, 2, generator=generator, dtype=torch.float64
    ) * torch.tensor([1.0, 3.0], dtype=torch.float64)
    places[: num_steps // 10] += 1e6
    # in the last fifth the mass is not looked at
    places[num_steps - num_steps // 5 :] *= 100
    return places, torch.rand(
        num_steps, chains, generator=generator, dtype=torch.float64
    )


@pytest.mark.parametrize("num_steps", [100, 403])
def test_every_step_of_a_warm_up_by_hand(num_steps):
    """The step size and the mass of each step, written out beside the schedule.

    Draws of the first tenth, and those of earlier windows, do not enter the mass; the
    search for the step size starts anew with each mass, and after the first half, from
    the average of the one before; what is returned is the average of the last search.
    Chain 2 accepts nothing in the first steps, nor again in the second half: it leads
    as long as its averaged acceptance is less than an eighth, but not in the second
    half."""
    places, acceptances = script(num_steps)
    acceptances[: num_steps // 20, 1] = acceptances[: num_steps // 5, 2] = acceptances[
        num_steps // 2 :, 2
    ] = 0
    potential, start, seed, seen = (
        Gaussian.standard(2, torch.float64),
        torch.zeros(4, 2, dtype=torch.float64),
        3,
        [],
    )
    tuned, position = adapt(
        Scripted(7.0, 2.0, places, acceptances, seen),
        potential,
        start,
        num_steps,
        seed=seed,
        target_acceptance=0.5,
    )
    assert torch.equal(position, places[-1]) and len(seen) == num_steps

    generator = torch.Generator().manual_seed(derived_seed(seed, "warm-up"))
    mass, first = 2.0, num_steps // 10
    # tells which chains are beyond help
    _one_step_acceptance(potential, start, Matrix(mass), generator)
    averaging = DualAveraging(
        searched(potential, start, Matrix(mass), generator, over_chains=torch.amin), 0.5
    )
    ends, recent, led = _window_ends(num_steps), torch.zeros(4, dtype=torch.float64), []
    assert len(ends) > 1
    for step in range(1, num_steps + 1):
        step_size, used = seen[step - 1]
        assert step_size == pytest.approx(averaging.step_size, rel=1e-12)
        torch.testing.assert_close(
            torch.as_tensor(used),
            torch.as_tensor(mass),
            check_dtype=False,
            rtol=1e-9,
            atol=0,
        )
        recent = 0.9 * recent + 0.1 * acceptances[step - 1]
        if step <= num_steps // 2 and recent.min() < 0.5 / 4:
            led.append(int(recent.argmin()))
            averaging.update(float(acceptances[step - 1, led[-1]]))
        else:
            averaging.update(float(acceptances[step - 1].mean()))
        if step in ends:
            # steps first + 1 to this one
            mass, first = 1 / shrunk_variance(places[first:step].flatten(0, 1)), step
        if step in (*ends, num_steps // 2):
            averaging = DualAveraging(
                searched(
                    potential,
                    places[step - 1],
                    Matrix(mass),
                    generator,
                    averaging.average,
                ),
                0.5,
            )
    assert tuned.step_size == pytest.approx(averaging.average, rel=1e-12)
    # the last step size is another number
    assert abs(averaging.average / averaging.step_size - 1) > 0.01
    assert len(set(led)) > 1 and num_steps // 10 < led.count(2) < num_steps // 2
    torch.testing.assert_close(tuned.mass, mass, rtol=1e-9, atol=0)
    assert (tuned.mass * torch.tensor([1.0, 9.0]) - 1).abs().max() < 0.5


def stop_at(monkeypatch, kernel, step):
    original, steps = type(kernel).step, []

    def stopping(self, *arguments):
        steps.append(None)
        if len(steps) == step:
            signal.raise_signal(signal.SIGINT)
        return original(self, *arguments)

    monkeypatch.setattr(type(kernel), "step", stopping)


def test_a_warm_up_that_is_stopped_is_tuned_by_what_it_saw(monkeypatch):
    kernel = HMC(1.0, 3, jitter=0.5, mass=torch.full((3,), 2.0, dtype=torch.float64))
    start = torch.zeros(5, 3, dtype=torch.float64)
    whole, end = adapt(kernel, TARGET, start, 60, seed=1)
    with monkeypatch.context() as patch:
        stop_at(patch, kernel, 30)
        with pytest.warns(UserWarning, match="interrupted.* 30 .*60.* tuned by what"):
            part, position = adapt(kernel, TARGET, start, 60, seed=1)
    assert part.step_size != whole.step_size and not torch.equal(position, end)
    assert not torch.equal(part.mass, kernel.mass)


@pytest.mark.parametrize(("stop", "named"), [(48, False), (57, False), (58, True)])
def test_a_stop_leaves_a_chain_ten_steps_to_move(monkeypatch, stop, named):
    """Counted from the last window's end, at step 48 of 60. Chain 2 stays."""
    original = HMC.step

    def staying(self, potential, state, generator):
        before = state.position[2].clone()
        state, info = original(self, potential, state, generator)
        state.position[2] = before
        return state, info

    kernel = HMC(1.0, 3)
    monkeypatch.setattr(HMC, "step", staying)
    stop_at(monkeypatch, kernel, stop)
    start = torch.zeros(5, 3, dtype=torch.float64)
    with pytest.warns(UserWarning) as caught:
        adapt(kernel, TARGET, start, 60)
    stopped, *others = [str(each.message) for each in caught]
    assert stopped.startswith(f"interrupted after {stop} of 60 steps")
    expected = ["chain 2 did not move in the last 10 steps of the warm-up"] * named
    assert [told.partition(",")[0] for told in others] == expected


# Chains that start badly


class Pit(Potential):
    """A Gaussian, with a point far away in which a chain is caught: anywhere near the
    energy is infinite.
    """

    dim = 3

    def energy(self, position):
        caught = torch.where((position == 2_000).all(-1), 0.0, math.inf)
        return torch.where(
            position.abs().amax(-1) < 1_000, TARGET.energy(position), caught
        )


def test_a_chain_for_which_no_step_is_small_enough_is_named_and_does_not_spoil_the_others():
    potential = Pit()
    start = torch.zeros(200, 3, dtype=torch.float64)
    start[7] = 2_000
    with pytest.warns(
        UserWarning,
        match=r"^chain 7 did .*40 steps",
    ) as caught:
        tuned, position = adapt(NUTS(1.0), potential, start, num_steps=200, seed=1)
    assert [each.filename for each in caught] == [__file__]
    assert (position[7] == 2_000).all() and position[:7].abs().max() < 100
    assert (tuned.mass.rsqrt() / SCALES - 1).abs().max() < 0.1
    others = torch.arange(200) != 7
    assert (
        abs(
            sample(tuned, TARGET, position[others], num_samples=20, seed=2)
            .statistics["acceptance"]
            .mean()
            - 0.8
        )
        < 0.06
    )


def test_no_step_is_smaller_than_can_be_used():
    averaging = DualAveraging(step_size=1.0, target=0.8)
    for _ in range(10_000):
        averaging.update(0.0)
    assert averaging.step_size == pytest.approx(1e-12) and averaging.average > 0


# Stops


def test_the_first_step_size_crosses_one_half_of_the_mean_acceptance(generator):
    """The mean over chains, with the mass given, the leapfrog step being written
    out.
    """
    potential = Gaussian.standard(1, torch.float64)
    position = potential.exact_samples(200, generator)
    state = generator.get_state()
    step_size = searched(potential, position, Matrix(4.0), generator)
    generator.set_state(state)
    momentum = draw_momentum(position, Matrix(4.0), generator)

    def acceptance(step):
        half = momentum - 0.5 * step * position
        moved = position + step * half / 4
        end = half - 0.5 * step * moved
        gained = (moved**2 - position**2) / 2 + (end**2 - momentum**2) / 8
        return float(torch.exp(-gained.clamp(min=0)).mean())

    assert acceptance(step_size) > 0.5 >= acceptance(2 * step_size)


def test_a_warm_up_has_other_random_numbers_than_the_run_of_its_seed(monkeypatch):
    seeds, step = [], HMC.step

    def noted(self, potential, state, generator):
        seeds.append(generator.initial_seed())
        return step(self, potential, state, generator)

    monkeypatch.setattr(HMC, "step", noted)
    start = torch.zeros(2, 3, dtype=torch.float64)
    adapt(HMC(1.0, 1), TARGET, start, num_steps=20, seed=3)
    sample(HMC(0.1, 1), TARGET, start, num_samples=1, seed=3)
    assert len(seeds) == 21 and seeds.count(seeds[-1]) == 1


def test_what_is_adapted_has_a_step_size_a_mass_and_an_acceptance():
    start = torch.zeros(2, 3, dtype=torch.float64)
    for kernel, message in (
        (SGHMC(0.1, 1.0), r"SGHMC.*acceptance"),
        (Splitting(baoab(0.1, 1.0)), r"Splitting.*step_size.*mass"),
    ):
        with pytest.raises(ValueError, match=message):
            adapt(kernel, TARGET, start, num_steps=100)


def test_a_search_without_end_is_reported():
    averaging = DualAveraging(1.0, target=0.8)
    with pytest.raises(ValueError, match=r"step_size.*1e12.*target_acceptance = 0\.8"):
        for _ in range(1_000):
            averaging.update(1.0)
    for acceptance in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"no step size between .* its gradient"):
            _reasonable_step_size(lambda _, a=acceptance: torch.tensor(a))
