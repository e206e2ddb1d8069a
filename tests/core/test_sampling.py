"""The loop: what it keeps, what it refuses, and that stopping and resuming change
nothing.
"""

import dataclasses
import math
import os
import signal
import sys
import textwrap
import threading
import time
import warnings
from functools import partial
from typing import NamedTuple

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from torch import Tensor, nn

from booklib.models.gibbs import Gibbs
from booklib.models.hierarchical import HierarchicalNetwork
from sgmc import sample
from sgmc.checkpoints import Checkpoint, CheckpointError
from sgmc.door import running, sampling
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, Kernel, NaiveSGHMC
from sgmc.minibatches import Fresh, Held, Passes
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import Cyclical, RandomWalkMetropolis
from sgmc.posteriors import LinearRegression
from sgmc.potentials import Potential
from sgmc.splittings import Splitting
from sgmc.splittings.flows import baoab, ubu
from sgmc.targets import DoubleWell, Gaussian, GaussianMixture, NoisyGradient

NOISY = NoisyGradient(DoubleWell(), 4.0)
START = torch.tensor([[0.0], [1.0], [-1.0]])


def regression(minibatches=None, batch_size=3):
    generator = torch.Generator().manual_seed(0)
    inputs, targets = (
        torch.randn(10, 1, generator=generator),
        torch.randn(10, generator=generator),
    )
    return LinearRegression(
        inputs, targets, batch_size=batch_size, minibatches=minibatches
    )


def network():
    inputs = torch.linspace(-1, 1, 8)[:, None]
    with torch.random.fork_rng():
        torch.manual_seed(0)  # which nothing but a checkpoint sees
        return HierarchicalNetwork(
            nn.Linear(1, 2),
            inputs,
            (inputs[:, 0] > 0).long(),
            batch_size=3,
            hyperprior=(2.0, 1.0),
        )


cyclical_sghmc = partial(SGHMC.from_learning_rate, momentum_decay=0.3)
SGHMC_KERNEL = SGHMC(0.1, 3.0, noise_estimate=0.2, num_steps=2, resample_every=3)
RUNS = {  # a kernel, its target, and where its chains start
    "random walk": (RandomWalkMetropolis(1.0), NOISY, START),
    "HMC": (HMC(0.1, 4, jitter=0.5, refreshment=0.7), NOISY, START),
    "naive SGHMC": (NaiveSGHMC(0.1, 4, metropolis=True), NOISY, START),
    "SGLD": (SGLD(lambda step: 0.1 / (1 + step)), NOISY, START),
    "SGHMC": (SGHMC_KERNEL, NOISY, START),
    "SGHMC on minibatches": (
        SGHMC(0.05, 3.0, num_steps=3),
        regression(Passes()),
        START,
    ),
    "SGHMC with an online estimate": (
        SGHMC(0.05, 3.0, OnlineNoise(refresh_every=3, averaging=0.5), num_steps=2),
        regression(),
        START,
    ),
    "SGHMC with a full online estimate": (
        SGHMC(0.05, 3.0, OnlineNoise("full")),
        NOISY,
        START,
    ),
    "NUTS": (NUTS(0.2), NOISY, START),
    "SGNUTS": (SGNUTS(0.1, 3.0, max_depth=4), regression(Held(2**4)), START),
    "a splitting": (Splitting(baoab(0.1, 1.0), num_steps=2), NOISY, START),
    "a splitting on minibatches": (
        Splitting(ubu(0.1, 1.0)),
        regression(Fresh(replacement=True)),
        START,
    ),
    "cyclical SGLD": (
        Cyclical(SGLD, 0.1, cycle_length=7, num_draws=2, exploration=0.3),
        NOISY,
        START,
    ),
    "cyclical SGHMC on minibatches": (
        Cyclical(
            cyclical_sghmc,
            0.01,
            7,
            num_draws=2,
            exploration=0.3,
            cold=True,
        ),
        regression(Passes()),
        START,
    ),
    "Gibbs": (Gibbs(SGHMC(0.1, 1.0), num_steps=3), network(), torch.zeros(3, 4)),
    "Gibbs with NUTS": (Gibbs(NUTS(0.3)), network(), torch.zeros(3, 4)),
}
SETTINGS = dict(num_samples=20, warm_up=5, thinning=2, seed=1)
TOTAL = 45  # steps of a run with these settings


pytestmark = pytest.mark.filterwarnings("ignore:½εV̂ exceeded the friction")


def call_in_steps(monkeypatch, kernel, actions):
    """Do something within steps of a kernel's class, which a checkpoint knows by its
    name: ``actions[n]`` in the n-th from now on.

    Returns:
        A list to which each step adds an entry.
    """
    original, steps = type(kernel).step, []

    def step(self, *arguments):
        if self is not kernel:
            return original(self, *arguments)
        steps.append(None)
        if len(steps) - 1 in actions:
            actions[len(steps) - 1]()
        return original(self, *arguments)

    monkeypatch.setattr(type(kernel), "step", step)
    return steps


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


def fail(error=MemoryError):
    raise error


def assert_same_draws(first, second):
    assert (
        torch.equal(first.samples, second.samples)
        and first.statistics.keys() == second.statistics.keys()
    )
    assert all(
        torch.equal(value, second.statistics[name])
        for name, value in first.statistics.items()
    )


@pytest.mark.parametrize("name", RUNS)
def test_the_same_seed_gives_the_same_draws_and_another_one_does_not(name):
    draw = lambda seed: sample(*RUNS[name], num_samples=12, seed=seed)
    first = draw(3)
    assert_same_draws(first, draw(3))
    assert not torch.equal(first.samples, draw(4).samples)


@pytest.mark.usefixtures("known_by_name")
@pytest.mark.parametrize("name", RUNS)
def test_ctrl_c_ends_the_run_after_its_step_and_resumed_it_draws_what_an_uninterrupted_one_draws(
    name, tmp_path, monkeypatch
):
    """By a real signal within a step, before a draw, in warm-up and in the middle, once
    within a pass over the data.
    """
    kernel = RUNS[name][0]
    whole = sample(*RUNS[name], **SETTINGS)
    file, done = tmp_path / "new" / "run.pt", 0
    for left in (1, 3, 17, 4):
        done += left
        with monkeypatch.context() as patch:
            steps = call_in_steps(patch, kernel, {left - 1: ctrl_c})
            with pytest.warns(
                UserWarning,
                match=rf"^interrupted.* {done} .*{TOTAL}",
            ):
                part = sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS)
        number = max(0, done - 5) // 2
        assert len(steps) == left and not part.complete and len(part.samples) == number
        assert torch.equal(part.samples, whole.samples[:number])
        assert all(
            torch.equal(value, whole.statistics[key][:number])
            for key, value in part.statistics.items()
        )
    resumed = sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS)
    assert resumed.complete
    assert_same_draws(resumed, whole)
    with monkeypatch.context() as patch:
        steps = call_in_steps(patch, kernel, {})
        assert_same_draws(
            sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS), whole
        )
        assert steps == []  # there is nothing left to do


class Interrupted(DoubleWell):
    """A double well that does something at its n-th gradient."""

    def __init__(self, at, action=ctrl_c):
        super().__init__()
        self.left, self.action = at, action

    def gradient(self, position):
        self.left -= 1
        if self.left == 0:
            self.action()
        return super().gradient(position)


def test_a_second_ctrl_c_in_the_middle_of_a_draw_leaves_that_draw_out(tmp_path):
    """What ``collect`` was about to give is not there, and what the memory held before
    must not stand in its place.
    """
    calls = []

    def collect(position):
        calls.append(None)
        if len(calls) == 5:  # the first is before any step
            raise KeyboardInterrupt
        return position

    with pytest.warns(UserWarning, match="interrupted after 3 of 10"):
        draws = sample(SGHMC_KERNEL, NOISY, START, num_samples=10, collect=collect)
    assert torch.equal(
        draws.samples, sample(SGHMC_KERNEL, NOISY, START, num_samples=3).samples
    )
    assert all(len(value) == 3 for value in draws.statistics.values())


def test_a_run_in_a_thread_does_without_signals():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(
            sample(SGHMC_KERNEL, NOISY, START, num_samples=3).samples
        )
    )
    thread.start()
    thread.join()
    assert torch.equal(
        found[0], sample(SGHMC_KERNEL, NOISY, START, num_samples=3).samples
    )


def test_the_first_checkpoints_come_early_and_the_others_every_so_often(
    tmp_path, monkeypatch
):
    """By a clock that a step moves on by half a second."""
    now, writes = [0.0], []
    monkeypatch.setattr(running.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Checkpoint, "save", lambda _, content: writes.append(now[0]))
    step = SGHMC.step

    def slow(*arguments):
        now[0] += 0.5
        return step(*arguments)

    monkeypatch.setattr(SGHMC, "step", slow)
    checkpoint = Checkpoint(tmp_path / "run.pt", every=10.0)
    sample(SGHMC_KERNEL, NOISY, START, num_samples=84, checkpoint=checkpoint)
    assert writes == [1.5, 3.5, 7.5, 15.5, 26.0, 36.5, 42.0]


def test_a_run_of_several_parts_took_as_long_as_all_of_them(tmp_path, monkeypatch):
    """By a clock that a step moves on by a second."""
    now, step = [0.0], SGHMC.step
    monkeypatch.setattr(sampling.time, "monotonic", lambda: now[0])

    def slow(*arguments):
        now[0] += 1.0
        return step(*arguments)

    monkeypatch.setattr(SGHMC, "step", slow)
    for number in (3, 5, 9, 9):
        where = Checkpoint(tmp_path / "run.pt")
        draws = sample(SGHMC_KERNEL, NOISY, START, number, checkpoint=where)
        assert draws.seconds == number
        now[0] += 100.0  # between two parts


def test_warm_up_and_thinning_keep_the_steps_they_should():
    every = sample(SGHMC_KERNEL, NOISY, START, num_samples=17, seed=2)
    kept = sample(
        SGHMC_KERNEL, NOISY, START, num_samples=4, warm_up=5, thinning=3, seed=2
    )
    assert torch.equal(kept.samples, every.samples[[7, 10, 13, 16]])
    assert torch.equal(
        kept.statistics["num_gradients"],
        every.statistics["num_gradients"][[7, 10, 13, 16]],
    )
    # two a step
    assert kept.statistics["num_gradients"][:, 0].tolist() == [16, 22, 28, 34]


# Potentials and minibatches


# What is kept


@pytest.mark.parametrize("number", [10**13, 10**30])
def test_more_draws_than_memory_holds_are_refused_before_any_step(number):
    with pytest.raises(ValueError, match=rf"num_samples.*\b{number}\b.*memory"):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=number)


class State(NamedTuple):
    position: Tensor
    square_average: Tensor
    momentum: Tensor
    time: int


class Info(NamedTuple):
    length: Tensor
    rate: float
    per_coordinate: Tensor
    missing: None = None


class Outer(NamedTuple):
    temperature: float
    inner: Info
    among: Tensor


class Preconditioned(Kernel):
    """A sampler of a user's own, whose state has more than its steps learn."""

    def init(self, potential, position, generator):
        return State(
            position.clone(), torch.ones_like(position), torch.zeros_like(position), 0
        )

    def step(self, potential, state, generator):
        gradient = potential.gradient(state.position)
        average = 0.9 * state.square_average + 0.1 * gradient**2
        position = state.position - 0.01 * gradient / average.sqrt()
        return State(position, average, state.momentum, state.time + 1), Info(
            gradient.norm(dim=-1), 0.5**state.time, gradient
        )


class Wrapping(Preconditioned):
    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        return state, Outer(2.0, info, state.position > 0)


class Learning(Preconditioned):
    """A kernel whose infos are given by hand."""

    def __init__(self, infos):
        self.infos = infos

    def step(self, potential, state, generator):
        return state._replace(time=state.time + 1), self.infos[state.time]


def test_a_statistic_that_is_whole_first_and_not_later_keeps_its_digits():
    infos = [Info(torch.ones(3), rate, torch.ones(3, 2)) for rate in (1, 0.5, 2)]
    draws = sample(
        Learning(infos), DoubleWell(2), torch.full((3, 2), 0.5), num_samples=3
    )
    assert draws.statistics["rate"][:, 0].tolist() == [1.0, 0.5, 2.0]
    draws = sample(
        SGLD(lambda step: 1 if step == 0 else 0.25),
        Gaussian.standard(1),
        START,
        num_samples=3,
    )
    assert draws.statistics["step_size"][:, 0].tolist() == [1.0, 0.25, 0.25]


def test_a_kernels_warnings_are_given_once_and_point_at_the_call():
    class Complaining(Preconditioned):
        def diagnose(self, statistics):
            return [f"the length was {statistics['length'].shape}", "and it rained"]

    with pytest.warns(UserWarning) as caught:
        sample(Complaining(), DoubleWell(2), torch.full((3, 2), 0.5), num_samples=5)
    assert [str(each.message) for each in caught] == [
        "the length was torch.Size([5, 3])",
        "and it rained",
    ]
    assert {each.filename for each in caught} == {__file__}


# What speaks against the draws


class Still(Preconditioned):
    """A kernel that moves the chains but the first."""

    def step(self, potential, state, generator):
        state, info = super().step(potential, state, generator)
        state.position[0] = 0.5
        return state, info


def test_chains_in_two_modes_are_named():
    """Four chains of 200 draws in modes at ±5: neither mixes, and nothing else is wrong
    with them.
    """
    start = torch.tensor([[5.0], [-5.0], [5.0], [5.0]])
    potential = GaussianMixture(means=start[:2], variance=1.0)
    message = r"R̂ .*\d\.\d\d.*-[45].*in chain 1 to [45]"
    with pytest.warns(UserWarning, match=message):
        sample(SGHMC(0.1, 1.0), potential, start, num_samples=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(SGHMC(0.1, 1.0), potential, start.abs(), num_samples=400, thinning=20)


# What a run leaves alone


# Divergence


class Late(Potential):
    """A potential whose gradient is NaN from some step on."""

    dim = 1

    def __init__(self, last=8):
        self.last = last

    def draw_minibatches(self, position, generator, step, num_steps=1):
        return range(step, step + num_steps)

    def gradient_given(self, position, step):
        return torch.full_like(position, 0.0 if step < self.last else math.nan)


class Failing(Late):
    """One whose gradient raises an error from some step on, as a distribution does
    whose scale has underflown.
    """

    def gradient_given(self, position, step):
        if step >= self.last:
            raise ValueError("Expected parameter scale to be positive")
        return torch.ones_like(position)


def test_a_step_that_fails_keeps_the_draws_and_tells_the_reason(tmp_path, monkeypatch):
    with pytest.raises(
        DivergenceError,
        match=r"step 9 .*ValueError: .*\n.*step_size.* 8 draws",
    ) as caught:
        sample(
            SGLD(0.1),
            Failing(),
            START,
            num_samples=50,
            checkpoint=Checkpoint(tmp_path / "run.pt", every=0.0),
        )
    assert len(caught.value.draws.samples) == 8 and not caught.value.draws.complete
    assert torch.load(tmp_path / "run.pt")["content"]["done"] == 8


def test_a_divergence_at_the_very_end_is_found():
    with pytest.raises(DivergenceError):
        sample(SGLD(0.1), Late(), START, num_samples=9)
    assert sample(SGLD(0.1), Late(), START, num_samples=8).complete


def test_a_dead_run_is_stopped_soon(monkeypatch):
    """Not at its end, which may be hours away."""
    kernel = SGLD(0.1)
    steps = call_in_steps(monkeypatch, kernel, {})
    with pytest.raises(DivergenceError, match=r"step 128\b") as caught:
        sample(kernel, Late(last=100), START, num_samples=10_000)
    assert 100 < len(steps) <= 100 + sampling._CHECK_EVERY
    samples = caught.value.draws.samples
    assert len(samples) == 128
    assert samples[:100].isfinite().all() and samples[100:].isnan().all()


class Cliff(Potential):
    """A slope that ends in NaN at a place."""

    dim = 1

    def __init__(self, place):
        self.place = place

    def gradient(self, position):
        return torch.where(position < self.place, -1.0, math.nan)


# Ten steps take a chain from 6 to 7, and the next is NaN. The third stays far away.
STEPPING, STARTS = SGLD(0.1, temperature=0.0), torch.tensor([[6.0], [5.0], [-9.0]])


def several(position):
    return {
        "square": position**2,
        "sign": position > 0,
        "one": torch.ones(3, 2, 2),
        "number": torch.arange(1, 4),
    }


@pytest.mark.parametrize("collect", [None, torch.isfinite, several])
@pytest.mark.parametrize(
    ("settings", "good"),
    [
        ({}, [10, 20, 32]),
        ({"warm_up": 5}, [5, 15, 27]),
        ({"warm_up": 15}, [0, 5, 17]),
        ({"thinning": 3}, [3, 6, 10]),
        ({"warm_up": 4, "thinning": 7}, [0, 2, 4]),
        ({"num_samples": 14}, [10, 14, 14]),
    ],
    ids=str,
)
def test_chains_that_break_leave_the_others_their_draws(settings, good, collect):
    """They break at steps 11 and 21, the run stops at step 32 or at its end: all its
    draws are there, those of a broken chain NaN from there on.
    """
    settings = {"num_samples": 100, "collect": collect} | settings
    whole = sample(STEPPING, Cliff(math.inf), STARTS, **settings).samples
    with pytest.raises(DivergenceError, match=f"chain.* {good[-1]} draws") as caught:
        sample(STEPPING, Cliff(6.95), STARTS, **settings)
    draws, keys = caught.value.draws, whole if collect is several else [None]
    for key in keys:
        found, right = (x if key is None else x[key] for x in (draws.samples, whole))
        assert len(found) == good[-1] and found.dtype == right.dtype
        for chain, number in enumerate(good):
            assert torch.equal(found[:number, chain], right[:number, chain])
            lost = found[number:, chain]
            assert (lost.isnan() if lost.is_floating_point() else lost == 0).all()
    assert not draws.complete
    assert [len(x) for x in draws.statistics.values()] == [good[-1]] * 2


def test_what_is_collected_may_have_the_name_of_a_statistic(tmp_path):
    def draw(number, checkpoint=None):
        collect = lambda position: {"num_gradients": position**2}
        settings = {"collect": collect, "checkpoint": checkpoint}
        return sample(NUTS(0.5), Gaussian.standard(1), START, number, **settings)

    whole = draw(8)
    draw(5, Checkpoint(tmp_path / "run.pt"))
    resumed = draw(8, Checkpoint(tmp_path / "run.pt"))
    for kind in ("samples", "statistics"):
        one, other = (getattr(x, kind)["num_gradients"] for x in (whole, resumed))
        assert torch.equal(one, other)


# Progress


class Slow(DoubleWell):
    def gradient(self, position):
        time.sleep(0.5)
        return super().gradient(position)


@pytest.mark.parametrize("watched", [True, False])
def test_progress_goes_to_standard_error_only_and_not_into_a_log_file(
    watched, capsys, monkeypatch
):
    # at once, whatever the speed of the machine and its environment
    bar = running.tqdm
    monkeypatch.setattr(
        running,
        "tqdm",
        lambda **settings: bar(**{"disable": False, **settings, "delay": 0}),
    )
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    sample(SGHMC_KERNEL, NOISY, START, num_samples=3)
    out, error = capsys.readouterr()
    assert out == "" and ("3/3" in error) == watched and (error == "") == (not watched)
    sample(SGHMC_KERNEL, NOISY, START, num_samples=3, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_progress_in_a_notebook_is_shown_while_it_runs_and_leaves_nothing(monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    source = """
        from sgmc.door import running
        bar = running.tqdm
        running.tqdm = lambda **settings: bar(**{**settings, "delay": 0, "mininterval": 0})
        from tests.core.test_sampling import NOISY, SGHMC_KERNEL, START, sample
        draws = sample(SGHMC_KERNEL, NOISY, START, num_samples=3)
        quiet = sample(SGHMC_KERNEL, NOISY, START, num_samples=3, progress=False)
    """
    cell = nbformat.v4.new_code_cell(textwrap.dedent(source))
    NotebookClient(
        nbformat.v4.new_notebook(cells=[cell]), kernel_name="python3"
    ).execute()
    assert {output.name for output in cell.outputs} == {"stdout"}  # the other is red
    written = "".join(output.text for output in cell.outputs)
    assert "| 2/3 [" in written and written.rsplit("\r", 2)[1].isspace()


# The door


@pytest.mark.parametrize("make", [SGLD, lambda steps: SGHMC(steps, 1.0)])
def test_a_schedule_that_turns_negative_stops_the_run_with_its_value(make):
    kernel = make(lambda step: 0.1 - 0.01 * step)
    with pytest.raises(DivergenceError, match=r"step_size.*-0\.0") as stopped:
        sample(kernel, DoubleWell(), torch.zeros(3, 1), num_samples=50, progress=False)
    assert len(stopped.value.draws.samples) in (10, 11)


# What is kept, saved and refused, of one run


def draw(number=10, kernel=SGHMC_KERNEL, **settings):
    return sample(kernel, NOISY, START, number, **settings)


@pytest.mark.usefixtures("known_by_name")
@pytest.mark.parametrize("name", ["SGHMC", "Gibbs with NUTS"])
def test_a_second_ctrl_c_saves_no_torn_state_and_a_run_is_extended(
    name, tmp_path, monkeypatch
):
    """The chains' tensors may be overwritten by then: the draws come back, and the file
    stays as the last whole state left it. In the warm-up it may be made shorter.
    """
    kernel, where, saved = RUNS[name][0], Checkpoint(tmp_path / "run.pt"), []
    monkeypatch.setattr(running.time, "monotonic", lambda: 0.0)
    whole = sample(*RUNS[name], **SETTINGS)
    for action, done in ((ctrl_c, 3), (lambda: (ctrl_c(), ctrl_c()), 8)):
        with monkeypatch.context() as patch:
            call_in_steps(patch, kernel, {2 if done == 3 else 5: action})
            with pytest.warns(UserWarning, match=f"interrupted after {done} of 45"):
                part = sample(*RUNS[name], checkpoint=where, **SETTINGS)
        saved.append(where.path.read_bytes())
        assert saved[0] == saved[-1]
        assert torch.equal(part.samples, whole.samples[: len(part.samples)])
    short = SETTINGS | {"num_samples": 7}
    first = sample(*RUNS[name], checkpoint=where, **short)
    assert torch.equal(first.samples, whole.samples[:7])
    assert_same_draws(sample(*RUNS[name], checkpoint=where, **SETTINGS), whole)
    with pytest.raises(ValueError, match=r"num_samples.*checkpoint.*\b20\b.*draws"):
        sample(*RUNS[name], checkpoint=where, **short)


@pytest.mark.parametrize("then", ["goes on", "diverges", "is stopped again"])
def test_sigterm_goes_to_its_own_handler_after_the_run_is_saved(
    then, tmp_path, monkeypatch
):
    """Whatever else happens in that step: a supervisor that asks a run to end must not
    be forgotten, and the handlers are put back.
    """
    file, seen = tmp_path / "run.pt", []
    terminate = lambda: signal.raise_signal(signal.SIGTERM)
    own = lambda number, frame: seen.append(file.exists())
    old = signal.signal(signal.SIGTERM, own)
    more = {"diverges": fail, "is stopped again": ctrl_c}.get(then, list)
    call_in_steps(monkeypatch, SGHMC_KERNEL, {6: lambda: (terminate(), more())})
    try:
        with warnings.catch_warnings(action="ignore"):
            draws = draw(20, checkpoint=Checkpoint(file))
        assert len(draws.samples) == (7 if then == "goes on" else 6)
    except MemoryError:
        assert then == "diverges"
    finally:
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.signal(signal.SIGTERM, old) is own
    assert seen == [then == "goes on"]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("handler", [signal.SIG_DFL, lambda *_: None])
def test_a_stop_promises_draws_only_if_the_process_goes_on(
    handler, again, tmp_path, monkeypatch
):
    """Also if a Ctrl-C comes after SIGTERM and breaks off the step."""
    numbers = (signal.SIGTERM, signal.SIGINT) if again else (signal.SIGTERM,)
    send = lambda: [os.kill(os.getpid(), number) for number in numbers]
    passed, words = [], "7 of 20 steps: the draws so far are kept"
    if handler is signal.SIG_DFL:
        words = "SIGTERM ends this process, and what no checkpoint has is lost"
    elif again:
        words = "6 of 20 steps: .* kept, but it stopped within a step and is not saved"
    monkeypatch.setattr(signal, "raise_signal", passed.append)  # it would end this one
    old = signal.signal(signal.SIGTERM, handler)
    try:
        call_in_steps(monkeypatch, SGHMC_KERNEL, {6: send})
        with pytest.warns(UserWarning, match=rf"{words} \[interrupted"):
            draw(20)
    finally:
        assert signal.signal(signal.SIGTERM, old) is handler
    assert passed == [signal.SIGTERM]


def test_checkpoints_are_written_while_the_run_goes_on(tmp_path, monkeypatch):
    """Unless they cannot be, of which each try warns."""
    where = Checkpoint(tmp_path / "run.pt", every=0.0)
    with monkeypatch.context() as patch:
        call_in_steps(patch, SGHMC_KERNEL, {7: lambda: (time.sleep(0.1), fail())})
        with pytest.raises(MemoryError):
            draw(checkpoint=where)
    content = torch.load(where.path)["content"]
    assert content["done"] == 7 and list(tmp_path.iterdir()) == [where.path]
    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", lambda *_: fail(OSError(28, "No space left")))
        message = r"checkpoint.*run\.pt.*No space"
        with pytest.warns(UserWarning, match=message) as caught:
            draws = draw(checkpoint=where)
    assert len(caught) == 4 and {each.filename for each in caught} == {__file__}
    assert_same_draws(draws, draw())
    assert content["seconds"] < draws.seconds
    del content["state"]
    where.save(content)
    with pytest.raises(ValueError, match=r"checkpoint .*run\.pt"):
        draw(checkpoint=where)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("kernel", {"kernel": dataclasses.replace(SGHMC_KERNEL, friction=3.1)}),
        ("seed", {"seed": 1}),
        ("warm_up", {"warm_up": 1}),
        ("thinning", {"thinning": 2}),
        ("collect", {"collect": torch.abs}),
        ("kernel, seed", {"kernel": RUNS["HMC"][0], "seed": 1}),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(name, changed, tmp_path):
    where = Checkpoint(tmp_path / "run.pt")
    draw(checkpoint=where)
    draw(kernel=dataclasses.replace(SGHMC_KERNEL), checkpoint=where)
    with pytest.raises(CheckpointError, match=rf"run\.pt.*another {name}"):
        draw(checkpoint=where, **changed)


def test_collect_keeps_tensors_by_name_through_a_stop(tmp_path, monkeypatch):
    """And cannot move the chains, as by a function that works in place."""

    def collect(position):
        kept = {"sign": position > 0, "square": position.pow(2).sum(-1)}
        return kept | {"twice": position.mul_(2)}

    positions, where = draw().samples, Checkpoint(tmp_path / "run.pt")
    call_in_steps(monkeypatch, SGHMC_KERNEL, {6: ctrl_c})
    with pytest.warns(UserWarning, match="interrupted after 7"):
        part = draw(collect=collect, checkpoint=where)
    assert {name: len(x) for name, x in part.samples.items()} == {
        "sign": 7,
        "square": 7,
        "twice": 7,
    }
    samples = draw(collect=collect, checkpoint=where).samples
    assert torch.equal(samples["twice"], 2 * positions)
    assert torch.equal(samples["square"], positions[..., 0] ** 2)
    assert torch.equal(samples["sign"], positions > 0)


@pytest.mark.parametrize(
    ("collect", "message"),
    [
        (lambda x, k: {"good": x, "bad": x.sum()}, r"chains = 3.*\(\).*'bad'"),
        (lambda x, k: 1.0, r"chains = 3.*1\.0"),
        (lambda x, k: x.repeat(1, 1 + k), r"collect.*\(3, 1\).*\(3, 2\)"),
        (lambda x, k: {"a": x} | ({"b": x} if k else {}), r"collect.*names.*'b'"),
    ],
)
def test_what_collect_may_not_return(collect, message):
    calls = []
    with pytest.raises(ValueError, match=message):
        draw(collect=lambda x: calls.append(None) or collect(x, len(calls) // 3))


def test_the_statistics_are_what_a_step_declares_to_have_learned():
    """A field of the state is none of them; a number holds for all chains, None is left
    out, and what an inner kernel learned is laid open.
    """
    start = torch.full((3, 2), 0.5)
    draws = sample(Wrapping(), DoubleWell(2), start, num_samples=4, thinning=2)
    assert {name: tuple(x.shape[1:]) for name, x in draws.statistics.items()} == {
        "temperature": (3,),
        "length": (3,),
        "rate": (3,),
        "per_coordinate": (3, 2),
        "among": (3, 2),
    }
    rates = 0.5 ** torch.tensor([1.0, 3.0, 5.0, 7.0])[:, None].expand(4, 3)
    assert torch.equal(draws.statistics["rate"], rates)
    assert draws.statistics["among"].dtype == torch.bool
    for rates in ((1.0, None), (None, 1.0)):  # one that comes or goes
        infos = [Info(torch.ones(3), rate, torch.ones(3, 2)) for rate in rates]
        with pytest.raises(ValueError, match=r"kernel.*info.*names"):
            sample(Learning(infos), DoubleWell(2), start, num_samples=2)


def test_a_state_that_a_checkpoint_cannot_hold_is_refused(tmp_path):
    class Odd(SGLD):
        def init(self, *given):
            state = super().init(*given)
            return state._replace(**{state._fields[-1]: object()})

    with pytest.raises(ValueError, match=r"object.*checkpoint"):
        draw(kernel=Odd(0.1), checkpoint=Checkpoint(tmp_path / "run.pt"))


def test_a_chain_that_never_moved_is_named_whatever_was_collected():
    collect = lambda position: position.sum(-1)
    start = torch.full((3, 2), 0.5)
    with pytest.warns(UserWarning, match=r"^chain 0 .*step_size"):
        sample(Still(), DoubleWell(2), start, 50, thinning=2, collect=collect)
    with pytest.warns(UserWarning) as caught:  # R̂ would add nothing
        sample(HMC(50.0, 3), Gaussian.standard(3), torch.ones(2, 3), 200)
    first, second = (str(each.message) for each in caught)
    assert "0.00% of the proposals" in first and "chains [0, 1]" in second


@pytest.mark.parametrize("name", RUNS)
def test_a_run_leaves_alone_its_start_and_the_global_generator(name):
    kernel, potential, position = RUNS[name]
    start, before = position.clone().requires_grad_(), torch.get_rng_state()
    draws = sample(kernel, potential, start, num_samples=3)
    assert torch.equal(start, position) and not draws.samples.requires_grad
    assert torch.equal(torch.get_rng_state(), before) and torch.is_grad_enabled()
    torch.manual_seed(1)
    again = sample(kernel, potential, position, num_samples=3)
    assert torch.equal(again.samples, draws.samples)
