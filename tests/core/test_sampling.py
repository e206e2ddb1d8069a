"""The loop: what it keeps, what it refuses, and that stopping and resuming change
nothing.
"""

import dataclasses
import math
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
import torch
from nbclient import NotebookClient
from torch import Tensor, nn

from sgmc import sample
from sgmc.checkpoints import Checkpoint, CheckpointError
from sgmc.door import running, sampling
from sgmc.door.sampling import DivergenceError
from sgmc.kernels import HMC, NUTS, SGHMC, SGLD, SGNUTS, Kernel, NaiveSGHMC
from sgmc.minibatches import Fresh, Held, Passes
from sgmc.models import HierarchicalNetwork
from sgmc.noise import OnlineNoise
from sgmc.other_kernels import Cyclical, Gibbs, RandomWalkMetropolis
from sgmc.posteriors import LinearRegression, LogisticRegression, NetworkPosterior
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
            explorer=partial(cyclical_sghmc, temperature=0.0),
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


def test_ctrl_c_in_the_middle_of_a_trajectory_lets_it_come_to_its_end():
    kernel = SGHMC(0.1, 1.0, num_steps=10)
    with pytest.warns(UserWarning, match=r"interrupted.*\b4\b.*\b50\b"):
        # the first looks at the start
        draws = sample(kernel, Interrupted(at=1 + 35), START, num_samples=50)
    assert torch.equal(
        draws.samples, sample(kernel, DoubleWell(), START, num_samples=4).samples
    )


def test_ctrl_c_keeps_what_was_drawn(monkeypatch):
    call_in_steps(monkeypatch, SGHMC_KERNEL, {8: ctrl_c})
    with pytest.warns(UserWarning, match=r"interrupted.*\b9\b.*\b40\b") as caught:
        draws = sample(SGHMC_KERNEL, NOISY, START, num_samples=20, thinning=2)
    # it points at the line of the user
    assert [each.filename for each in caught] == [__file__]
    assert draws.samples.shape == (4, 3, 1) and not draws.complete
    monkeypatch.undo()
    assert torch.equal(
        draws.samples,
        sample(SGHMC_KERNEL, NOISY, START, num_samples=20, thinning=2).samples[:4],
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_second_ctrl_c_stops_at_once_and_no_torn_state_is_saved(
    name, tmp_path, monkeypatch
):
    """The chains' tensors may be overwritten by then: the draws come back, and the file
    stays as the last whole state left it.
    """
    kernel, file = RUNS[name][0], tmp_path / "run.pt"
    monkeypatch.setattr(running.time, "monotonic", lambda: 0.0)
    whole = sample(*RUNS[name], **SETTINGS)
    with monkeypatch.context() as patch:
        call_in_steps(patch, kernel, {9: ctrl_c})
        with pytest.warns(UserWarning, match="interrupted after 10"):
            sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS)
    before = file.read_bytes()
    with monkeypatch.context() as patch:
        call_in_steps(patch, kernel, {5: lambda: (ctrl_c(), ctrl_c())})
        with pytest.warns(
            UserWarning,
            match=r"interrupted.*15 of 45.*not saved",
        ):
            part = sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS)
    assert file.read_bytes() == before
    assert torch.equal(part.samples, whole.samples[:5])
    assert_same_draws(
        sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS), whole
    )


def test_one_ctrl_c_breaks_off_a_step_that_goes_on_and_on(tmp_path, monkeypatch):
    """Its draw would take minutes; those before come back, and the last save stays.
    With a checkpoint the next save is waited for.
    """
    monkeypatch.setattr(running, "PATIENCE", 0.01)
    kernel, whole = SGHMC(0.1, 1.0, num_steps=10), []

    def endless():
        ctrl_c()
        whole.append(signal.getsignal(signal.SIGINT).__self__.patience)
        while True:
            time.sleep(0.001)

    for every, settings in ((None, {}), (0.2, {"checkpoint": tmp_path / "run.pt"})):
        if every is not None:
            settings = {"checkpoint": Checkpoint(settings["checkpoint"], every=every)}
        # the first looks at the start
        target = Interrupted(at=1 + 35, action=endless)
        with pytest.warns(UserWarning, match=r"interrupted after 3 of 50.*not saved"):
            draws = sample(kernel, target, START, num_samples=50, **settings)
        assert torch.equal(
            draws.samples, sample(kernel, DoubleWell(), START, num_samples=3).samples
        )
    assert whole == [0.01, 0.2]


@pytest.mark.parametrize("then", [ctrl_c, fail])
def test_nobody_is_interrupted_after_a_run_that_ended_within_a_step(then, monkeypatch):
    monkeypatch.setattr(running, "PATIENCE", 0.05)
    call_in_steps(monkeypatch, SGHMC_KERNEL, {1: lambda: (ctrl_c(), then())})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if then is ctrl_c:
            sample(SGHMC_KERNEL, NOISY, START, num_samples=5)
        else:
            with pytest.raises(MemoryError):
                sample(SGHMC_KERNEL, NOISY, START, num_samples=5)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:  # a signal would come here
        time.sleep(0.01)


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


def test_the_handlers_of_signals_are_put_back(monkeypatch):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    sample(SGHMC_KERNEL, NOISY, START, num_samples=2)
    call_in_steps(monkeypatch, SGHMC_KERNEL, {1: fail})
    with pytest.raises(MemoryError):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=2)
    assert [
        signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    ] == before


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


@pytest.mark.parametrize("then", ["goes on", "diverges", "is stopped again"])
def test_sigterm_goes_to_its_own_handler_after_the_run_is_saved(
    then, tmp_path, monkeypatch
):
    """Whatever else happens in that step: a supervisor that asks a run to end must not
    be forgotten.
    """
    file, seen = tmp_path / "run.pt", []
    terminate = lambda: signal.raise_signal(signal.SIGTERM)
    old = signal.signal(
        signal.SIGTERM, lambda number, frame: seen.append(file.exists())
    )
    actions = {
        "goes on": terminate,
        "diverges": lambda: (terminate(), fail()),
        "is stopped again": lambda: (terminate(), ctrl_c()),
    }
    call_in_steps(monkeypatch, SGHMC_KERNEL, {6: actions[then]})
    try:
        if then == "diverges":
            with pytest.raises(MemoryError):
                sample(
                    SGHMC_KERNEL,
                    NOISY,
                    START,
                    num_samples=20,
                    checkpoint=Checkpoint(file),
                )
        else:
            with pytest.warns(
                UserWarning,
                match=f"interrupted after {7 if then == 'goes on' else 6} of 20",
            ):
                sample(
                    SGHMC_KERNEL,
                    NOISY,
                    START,
                    num_samples=20,
                    checkpoint=Checkpoint(file),
                )
    finally:
        signal.signal(signal.SIGTERM, old)
    assert seen == [then == "goes on"]


SCRIPT = """
import os, signal, sys, torch
from sgmc.checkpoints import Checkpoint
from sgmc import sample
from sgmc.kernels import SGHMC
from sgmc.targets import DoubleWell, NoisyGradient
kernel, step, steps = SGHMC(0.1, 3.0, noise_estimate=0.2), SGHMC.step, []
def counted(self, *arguments):
    steps.append(None)
    if len(steps) == 7:
        os.kill(os.getpid(), signal.SIGTERM)
    return step(self, *arguments)
SGHMC.step = counted
sample(kernel, NoisyGradient(DoubleWell(), 4.0), torch.zeros(3, 1), num_samples=20, checkpoint=Checkpoint(sys.argv[1]), progress=False)
print("the process went on")
"""


@pytest.mark.slow
def test_sigterm_saves_the_run_and_the_process_dies_of_it(tmp_path):
    file = tmp_path / "run.pt"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == -signal.SIGTERM and ended.stdout == "", ended.stderr
    assert "interrupted after 7 of 20 steps" in ended.stderr
    kernel = SGHMC(0.1, 3.0, noise_estimate=0.2)
    resumed = sample(
        kernel, NOISY, torch.zeros(3, 1), num_samples=20, checkpoint=Checkpoint(file)
    )
    assert_same_draws(resumed, sample(kernel, NOISY, torch.zeros(3, 1), num_samples=20))


@pytest.mark.parametrize("name", RUNS)
def test_a_finished_run_is_extended_by_asking_for_more(name, tmp_path, monkeypatch):
    """To the draws that a longer run would have had from the start; fewer than there
    are cannot be asked for.
    """
    file, short = tmp_path / "run.pt", {**SETTINGS, "num_samples": 7}
    first = sample(*RUNS[name], checkpoint=Checkpoint(file), **short)
    with monkeypatch.context() as patch:
        steps = call_in_steps(patch, RUNS[name][0], {})
        longer = sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS)
    assert (
        len(steps) == 13 * 2
        and longer.complete
        and torch.equal(longer.samples[:7], first.samples)
    )
    assert_same_draws(longer, sample(*RUNS[name], **SETTINGS))
    before = file.read_bytes()
    with pytest.raises(
        ValueError,
        match=r"num_samples.*checkpoint.*\b20\b.*\bdraws",
    ):
        sample(*RUNS[name], checkpoint=Checkpoint(file), **short)
    assert_same_draws(
        sample(*RUNS[name], checkpoint=Checkpoint(file), **SETTINGS), longer
    )
    assert file.read_bytes() == before


def test_a_run_stopped_within_its_warm_up_may_be_made_shorter(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        call_in_steps(patch, SGHMC_KERNEL, {3: ctrl_c})
        with pytest.warns(UserWarning, match="interrupted after 4"):
            sample(
                SGHMC_KERNEL,
                NOISY,
                START,
                checkpoint=Checkpoint(tmp_path / "run.pt"),
                **SETTINGS,
            )
    draws = sample(
        SGHMC_KERNEL,
        NOISY,
        START,
        checkpoint=Checkpoint(tmp_path / "run.pt"),
        **{**SETTINGS, "num_samples": 2},
    )
    assert_same_draws(
        draws, sample(SGHMC_KERNEL, NOISY, START, **{**SETTINGS, "num_samples": 2})
    )


def test_checkpoints_are_written_while_the_run_goes_on(tmp_path, monkeypatch):
    file = tmp_path / "run.pt"
    with monkeypatch.context() as patch:
        call_in_steps(patch, SGHMC_KERNEL, {7: fail})
        with pytest.raises(MemoryError):
            sample(
                SGHMC_KERNEL,
                NOISY,
                START,
                num_samples=10,
                checkpoint=Checkpoint(file, every=0.0),
            )
    assert torch.load(file)["content"]["done"] == 7 and list(tmp_path.iterdir()) == [
        file
    ]
    steps = call_in_steps(monkeypatch, SGHMC_KERNEL, {})
    resumed = sample(
        SGHMC_KERNEL,
        NOISY,
        START,
        num_samples=10,
        checkpoint=Checkpoint(file, every=0.0),
    )
    assert len(steps) == 3
    assert_same_draws(resumed, sample(SGHMC_KERNEL, NOISY, START, num_samples=10))


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


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left"), RuntimeError("PytorchStreamWriter failed")],
    ids=["OS", "PyTorch"],
)
def test_an_error_when_writing_the_checkpoint_warns_and_the_draws_come_back(
    error, tmp_path, monkeypatch
):
    file = tmp_path / "run.pt"
    sample(
        SGHMC_KERNEL,
        NOISY,
        START,
        num_samples=10,
        checkpoint=Checkpoint(file, every=0.0),
    )
    old = file.read_bytes()
    file.rename(tmp_path / "old.pt")
    monkeypatch.setattr(torch, "save", lambda *_: fail(error))
    message = r"checkpoint.*run\.pt.*(No space|Stream)"
    with pytest.warns(UserWarning, match=message) as caught:
        draws = sample(
            SGHMC_KERNEL,
            NOISY,
            START,
            num_samples=10,
            checkpoint=Checkpoint(file, every=0.0),
        )
    assert len(caught) == 11 and {each.filename for each in caught} == {__file__}
    assert (
        draws.complete
        and list(tmp_path.iterdir()) == [tmp_path / "old.pt"]
        and (tmp_path / "old.pt").read_bytes() == old
    )
    assert_same_draws(draws, sample(SGHMC_KERNEL, NOISY, START, num_samples=10))


def test_a_folder_that_cannot_be_made_warns_too(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="could not be written"):
        draws = sample(
            SGHMC_KERNEL,
            NOISY,
            START,
            num_samples=3,
            checkpoint=Checkpoint(tmp_path / "file" / "run.pt"),
        )
    assert draws.complete


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "run.pt"
    settings = dict(num_samples=5, checkpoint=Checkpoint(file))
    sample(SGHMC_KERNEL, NOISY, START, **settings)
    sample(
        dataclasses.replace(SGHMC_KERNEL),
        NoisyGradient(DoubleWell(), 4.0),
        START.clone(),
        **settings,
    )
    others = {
        "kernel": [
            (RUNS["HMC"][0], NOISY, START, {}),
            (dataclasses.replace(SGHMC_KERNEL, friction=3.1), NOISY, START, {}),
        ],
        "potential": [
            (SGHMC_KERNEL, NoisyGradient(DoubleWell(), 4.1), START, {}),
            (SGHMC_KERNEL, DoubleWell(), START, {}),
        ],
        "start": [
            (SGHMC_KERNEL, NOISY, START + 1, {}),
            (SGHMC_KERNEL, NOISY, START.double(), {}),
        ],
        "seed": [(SGHMC_KERNEL, NOISY, START, {"seed": 1})],
        "warm_up": [(SGHMC_KERNEL, NOISY, START, {"warm_up": 1})],
        "thinning": [(SGHMC_KERNEL, NOISY, START, {"thinning": 2})],
        "collect": [(SGHMC_KERNEL, NOISY, START, {"collect": torch.abs})],
        "kernel, seed": [(RUNS["HMC"][0], NOISY, START, {"seed": 1})],
    }
    before = file.read_bytes()
    for name, runs in others.items():
        for *arguments, changed in runs:
            with pytest.raises(
                CheckpointError,
                match=rf"run\.pt.*another {name}",
            ):
                sample(*arguments, **(settings | changed))
    assert file.read_bytes() == before


def test_schedules_and_networks_with_other_content_are_other_runs(tmp_path):
    """Functions by their content, not their names; a network with its running
    statistics.
    """
    settings = dict(num_samples=3, checkpoint=Checkpoint(tmp_path / "schedule.pt"))
    falling = lambda scale: SGLD(lambda step: scale / (1 + step))
    sample(falling(0.1), NOISY, START, **settings)
    sample(falling(0.1), NOISY, START, **settings)
    with pytest.raises(CheckpointError, match="another kernel"):
        sample(falling(0.2), NOISY, START, **settings)

    def normalised(statistic):
        module = nn.Sequential(nn.BatchNorm1d(1, affine=False), nn.Linear(1, 2)).eval()
        module[0].running_mean.fill_(statistic)
        for parameter in module.parameters():
            nn.init.zeros_(parameter)
        return NetworkPosterior(module, torch.ones(4, 1), torch.arange(4) % 2)

    settings, start = (
        dict(num_samples=3, checkpoint=Checkpoint(tmp_path / "network.pt")),
        torch.zeros(2, 4),
    )
    sample(SGLD(0.1), normalised(0.5), start, **settings)
    sample(SGLD(0.1), normalised(0.5), start, **settings)
    with pytest.raises(CheckpointError, match="another potential"):
        sample(SGLD(0.1), normalised(0.6), start, **settings)


@pytest.mark.parametrize(
    "content", [b"", b"not a checkpoint", None], ids=["empty", "text", "cut short"]
)
def test_a_corrupt_checkpoint_is_refused(content, tmp_path):
    file = tmp_path / "run.pt"
    sample(SGHMC_KERNEL, NOISY, START, num_samples=5, checkpoint=Checkpoint(file))
    file.write_bytes(file.read_bytes()[:200] if content is None else content)
    with pytest.raises(CheckpointError, match=r"run\.pt.*corrupt"):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=5, checkpoint=Checkpoint(file))


def test_a_checkpoint_with_a_bit_flipped_anywhere_is_refused(tmp_path):
    file, chance = tmp_path / "run.pt", random.Random(1)
    sample(SGHMC_KERNEL, NOISY, START, num_samples=5, checkpoint=Checkpoint(file))
    whole = file.read_bytes()
    for _ in range(60):
        changed = bytearray(whole)
        changed[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        with pytest.raises(CheckpointError, match="corrupt"):
            sample(
                SGHMC_KERNEL, NOISY, START, num_samples=5, checkpoint=Checkpoint(file)
            )


def test_what_cannot_be_told_apart_is_refused_before_any_step(tmp_path, monkeypatch):
    steps = call_in_steps(monkeypatch, SGHMC_KERNEL, {})
    with open(os.devnull) as file:
        collect = partial(lambda file, position: position, file)
        with pytest.raises(
            ValueError,
            match=r"collect.*TextIOWrapper.*checkpoint",
        ):
            sample(
                SGHMC_KERNEL,
                NOISY,
                START,
                num_samples=3,
                collect=collect,
                checkpoint=Checkpoint(tmp_path / "run.pt"),
            )
        assert steps == []
        # without a checkpoint
        assert sample(
            SGHMC_KERNEL, NOISY, START, num_samples=3, collect=collect
        ).complete


def test_seconds_are_those_of_all_the_parts_of_a_run(tmp_path, monkeypatch):
    file = tmp_path / "run.pt"
    for part in range(1, 4):
        with monkeypatch.context() as patch:
            call_in_steps(patch, SGHMC_KERNEL, {0: lambda: time.sleep(0.2), 1: ctrl_c})
            with pytest.warns(UserWarning, match=f"interrupted after {2 * part} of 10"):
                seconds = sample(
                    SGHMC_KERNEL,
                    NOISY,
                    START,
                    num_samples=10,
                    checkpoint=Checkpoint(file),
                ).seconds
        assert seconds >= 0.2 * part  # what a busy machine adds cannot make it fail
    assert (
        sample(
            SGHMC_KERNEL, NOISY, START, num_samples=10, checkpoint=Checkpoint(file)
        ).seconds
        >= 0.6
    )


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

MINIBATCHES = {
    "fresh": Fresh(),
    "with replacement": Fresh(replacement=True),
    # 3 of 10: a pass has three steps, and 45 steps are not a whole number of blocks of
    # theirs
    "passes": Passes(),
    "held": Held(4),
    "held passes": Held(2, Passes()),
}


@pytest.mark.parametrize(
    "kernel",
    [SGHMC(0.05, 3.0, num_steps=2), SGLD(0.01), Splitting(baoab(0.05, 1.0))],
    ids=lambda k: type(k).__name__,
)
@pytest.mark.parametrize("name", MINIBATCHES)
def test_a_posterior_has_no_state_so_that_the_same_call_gives_the_same_draws(
    name, kernel, tmp_path, monkeypatch
):
    posterior = regression(MINIBATCHES[name])
    whole = sample(kernel, posterior, START, **SETTINGS)
    posterior.stochastic_gradient(START, torch.Generator().manual_seed(3))
    assert_same_draws(sample(kernel, posterior, START, **SETTINGS), whole)
    assert_same_draws(
        sample(kernel, regression(MINIBATCHES[name]), START, **SETTINGS), whole
    )
    file = tmp_path / "run.pt"
    # neither is the end of a pass, nor the last step of a minibatch that is held
    for left in (4, 7):
        with monkeypatch.context() as patch:
            call_in_steps(patch, kernel, {left - 1: ctrl_c})
            with pytest.warns(UserWarning, match="interrupted"):
                sample(
                    kernel, posterior, START, checkpoint=Checkpoint(file), **SETTINGS
                )
    assert_same_draws(
        sample(
            kernel,
            regression(MINIBATCHES[name]),
            START,
            checkpoint=Checkpoint(file),
            **SETTINGS,
        ),
        whole,
    )


def test_passes_are_not_the_draws_of_fresh_minibatches():
    draw = lambda rule: (
        sample(SGLD(0.01), regression(rule), START, num_samples=5).samples
    )
    seen = [draw(rule) for rule in MINIBATCHES.values()]
    assert all(
        not torch.equal(one, other) for i, one in enumerate(seen) for other in seen[:i]
    )


# What is kept


def test_collect_keeps_a_function_of_the_positions():
    squares = sample(
        SGHMC_KERNEL,
        NOISY,
        START,
        num_samples=4,
        collect=lambda position: position[:, 0] ** 2,
    ).samples
    assert torch.equal(
        squares, sample(SGHMC_KERNEL, NOISY, START, num_samples=4).samples[..., 0] ** 2
    )
    with pytest.raises(
        ValueError,
        match=r"collect.*\(chains, ...\).*\b3\b.*\(2, 1\)",
    ):
        sample(
            SGHMC_KERNEL,
            NOISY,
            START,
            num_samples=4,
            collect=lambda position: position.sum(0)[None].expand(2, 1),
        )


def test_collect_keeps_several_tensors_by_name(tmp_path, monkeypatch):
    positions = sample(SGHMC_KERNEL, NOISY, START, **SETTINGS).samples
    collect = lambda position: {
        "weights": position,
        "square": position.pow(2).sum(-1),
        "sign": position > 0,
    }
    draws = sample(SGHMC_KERNEL, NOISY, START, collect=collect, **SETTINGS)
    assert list(draws.samples) == ["weights", "square", "sign"]
    assert torch.equal(draws.samples["weights"], positions) and torch.equal(
        draws.samples["square"], positions[..., 0] ** 2
    )
    assert (
        torch.equal(draws.samples["sign"], positions > 0)
        and draws.samples["sign"].dtype == torch.bool
    )
    file = tmp_path / "run.pt"
    with monkeypatch.context() as patch:
        call_in_steps(patch, SGHMC_KERNEL, {11: ctrl_c})
        with pytest.warns(UserWarning, match="interrupted after 12"):
            part = sample(
                SGHMC_KERNEL,
                NOISY,
                START,
                collect=collect,
                checkpoint=Checkpoint(file),
                **SETTINGS,
            )
    assert {name: len(value) for name, value in part.samples.items()} == {
        "weights": 3,
        "square": 3,
        "sign": 3,
    }
    resumed = sample(
        SGHMC_KERNEL,
        NOISY,
        START,
        collect=collect,
        checkpoint=Checkpoint(file),
        **SETTINGS,
    )
    assert all(
        torch.equal(value, draws.samples[name])
        for name, value in resumed.samples.items()
    )
    mean, _ = draws.mean_and_standard_error(lambda samples: samples["square"])
    torch.testing.assert_close(mean, positions.double().pow(2).mean())


@pytest.mark.parametrize(
    ("collect", "message"),
    [
        (
            lambda position: {"good": position, "bad": position.sum()},
            r"not \(\) of torch.float32 as 'bad'",
        ),
        (lambda position: {"bad": 1.0}, "not 1.0 as 'bad'"),
        (lambda position: 1.0, "not 1.0$"),
        (lambda position: None, "not a NoneType$"),
    ],
)
def test_what_collect_may_not_return(collect, message):
    with pytest.raises(
        ValueError,
        match=r"collect must return \(chains, ...\) with chains = 3, " + message,
    ):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=4, collect=collect)


def test_collect_must_give_the_same_names_at_every_draw():
    calls = []

    def collect(position):
        calls.append(None)
        return {"first": position} | ({"second": position} if len(calls) > 3 else {})

    with pytest.raises(
        ValueError,
        match=r"collect.*\bnames.*\{'first'[^}]*\} .*'first': .*'second",
    ):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=10, collect=collect)


def test_collect_must_give_one_shape_at_every_draw():
    """Otherwise it would be repeated to fill the room of the first."""
    calls = []

    def collect(position):
        calls.append(None)
        return position.repeat(1, 2) if len(calls) < 4 else position

    with pytest.raises(ValueError, match=r"collect.*\(3, 2\).*\(3, 1\)"):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=10, collect=collect)


@pytest.mark.parametrize("number", [10**13, 10**30])
def test_more_draws_than_memory_holds_are_refused_before_any_step(number):
    with pytest.raises(ValueError, match=rf"num_samples.*\b{number}\b.*memory"):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=number)


def test_a_checkpoint_without_a_state_is_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.pt")
    sample(SGHMC_KERNEL, NOISY, START, num_samples=3, checkpoint=checkpoint)
    content = torch.load(checkpoint.path)["content"]
    del content["state"]
    checkpoint.save(content)
    with pytest.raises(ValueError, match=r"checkpoint .*run\.pt holds no state"):
        sample(SGHMC_KERNEL, NOISY, START, num_samples=3, checkpoint=checkpoint)


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


def test_the_statistics_are_what_a_step_declares_to_have_learned():
    """A field of the state is none of them, whatever its name and shape; a number holds
    for all chains, and None is left out.
    """
    draws = sample(
        Preconditioned(),
        DoubleWell(2),
        torch.full((3, 2), 0.5),
        num_samples=4,
        thinning=2,
    )
    assert list(draws.statistics) == ["length", "rate", "per_coordinate"]
    assert {name: tuple(value.shape) for name, value in draws.statistics.items()} == {
        "length": (4, 3),
        "rate": (4, 3),
        "per_coordinate": (4, 3, 2),
    }
    assert torch.equal(
        draws.statistics["rate"],
        0.5 ** torch.tensor([1.0, 3.0, 5.0, 7.0])[:, None].expand(4, 3),
    )
    torch.testing.assert_close(
        draws.statistics["length"], draws.statistics["per_coordinate"].norm(dim=-1)
    )


def test_the_info_of_an_inner_kernel_is_laid_open():
    draws = sample(Wrapping(), DoubleWell(2), torch.full((3, 2), 0.5), num_samples=4)
    assert list(draws.statistics) == [
        "temperature",
        "length",
        "rate",
        "per_coordinate",
        "among",
    ]
    assert (
        draws.statistics["among"].shape == (4, 3, 2)
        and draws.statistics["among"].dtype == torch.bool
    )
    assert draws.statistics["temperature"].eq(2.0).all()
    plain = sample(
        Preconditioned(), DoubleWell(2), torch.full((3, 2), 0.5), num_samples=4
    )
    assert all(
        torch.equal(draws.statistics[name], value)
        for name, value in plain.statistics.items()
    )


def test_gibbs_lays_open_what_its_kernel_learned():
    draws = sample(*RUNS["Gibbs with NUTS"], num_samples=4)
    assert draws.statistics["hyperparameters"].shape == (4, 3, 2)
    assert {"acceptance", "energy", "depth", "diverged"} < set(
        draws.statistics
    ) and draws.statistics["depth"].shape == (4, 3)


class Learning(Preconditioned):
    """A kernel whose infos are given by hand."""

    def __init__(self, infos):
        self.infos = infos

    def step(self, potential, state, generator):
        return state._replace(time=state.time + 1), self.infos[state.time]


class Twice(NamedTuple):
    length: float
    inner: Info


def test_statistics_of_one_name_are_refused():
    info = Info(torch.ones(3), 1.0, torch.ones(3, 2))
    with pytest.raises(
        ValueError,
        match=r"Twice.*\['length'\].*kernel",
    ):
        sample(
            Learning([Twice(1.0, info)] * 3),
            DoubleWell(2),
            torch.full((3, 2), 0.5),
            num_samples=3,
        )


@pytest.mark.parametrize(
    "order", [slice(None), slice(None, None, -1)], ids=["comes", "goes"]
)
def test_a_statistic_that_comes_and_goes_is_refused(order):
    """Otherwise what the memory held before would stand in the draws without it."""
    infos = [
        Info(torch.ones(3), None, torch.ones(3, 2)),
        Info(torch.ones(3), 1.0, torch.ones(3, 2)),
    ][order]
    with pytest.raises(
        ValueError,
        match=r"kernel.*info.*names",
    ):
        sample(Learning(infos), DoubleWell(2), torch.full((3, 2), 0.5), num_samples=2)


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


class Odd(NamedTuple):
    position: Tensor
    history: object


class OddKernel(Preconditioned):
    def init(self, potential, position, generator):
        return Odd(position, object())


def test_a_state_that_a_checkpoint_cannot_hold_is_refused_before_any_step(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"Odd.*object.*checkpoint",
    ):
        sample(
            OddKernel(),
            DoubleWell(2),
            torch.full((3, 2), 0.5),
            num_samples=3,
            checkpoint=Checkpoint(tmp_path / "run.pt"),
        )


def test_a_kernel_of_the_users_own_can_be_resumed(tmp_path, monkeypatch):
    kernel, settings = Preconditioned(), dict(num_samples=6)
    start = torch.full((3, 2), 0.5)
    whole = sample(kernel, DoubleWell(2), start, **settings)
    with monkeypatch.context() as patch:
        gradient, calls = DoubleWell.gradient, []

        # in the potential, for a checkpoint knows the code of a class that is not the
        # package's
        def stopping(self, position):
            calls.append(None)
            if len(calls) == 3 + 3:  # the first three are those of the door
                ctrl_c()
            return gradient(self, position)

        patch.setattr(DoubleWell, "gradient", stopping)
        with pytest.warns(UserWarning, match="interrupted after 3 of 6"):
            sample(
                kernel,
                DoubleWell(2),
                start,
                checkpoint=Checkpoint(tmp_path / "run.pt"),
                **settings,
            )
    assert_same_draws(
        sample(
            kernel,
            DoubleWell(2),
            start,
            checkpoint=Checkpoint(tmp_path / "run.pt"),
            **settings,
        ),
        whole,
    )


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


def test_a_chain_that_never_moved_is_named_whatever_was_collected():
    with pytest.warns(UserWarning, match=r"^chain 0 .*step_size") as caught:
        sample(
            Still(),
            DoubleWell(2),
            torch.full((3, 2), 0.5),
            num_samples=50,
            thinning=2,
            collect=lambda position: position.sum(-1),
        )
    assert [each.filename for each in caught] == [__file__]


def test_chains_in_two_modes_are_named():
    """Four chains of 200 draws in modes at ±5: neither mixes, and nothing else is wrong
    with them.
    """
    start = torch.tensor([[5.0], [-5.0], [5.0], [5.0]])
    potential = GaussianMixture(means=start[:2], variance=1.0)
    message = r"R̂ .*\d\.\d\d.*chain 1 .*-[45].*others.* [45]"
    with pytest.warns(UserWarning, match=message):
        sample(SGHMC(0.1, 1.0), potential, start, num_samples=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(SGHMC(0.1, 1.0), potential, start.abs(), num_samples=400, thinning=20)


@pytest.mark.parametrize(
    "kernel", [HMC(50.0, 3), RandomWalkMetropolis(1e9)], ids=["HMC", "random walk"]
)
def test_proposals_that_are_never_accepted_are_told(kernel):
    with pytest.warns(UserWarning) as caught:
        sample(kernel, Gaussian.standard(3), torch.ones(2, 3), num_samples=200)
    first, second = (str(each.message) for each in caught)  # R̂ would add nothing
    assert (
        re.match(r"0\.00% of the proposals were accepted.* smaller step_size", first)
        and "chains 0 and 1 never moved" in second
    )


# What a run leaves alone


def test_collect_cannot_move_the_chains():
    """A function that works in place would otherwise write into the state."""
    draws = sample(
        SGHMC_KERNEL,
        NOISY,
        START,
        num_samples=5,
        collect=lambda position: position.mul_(2),
    )
    assert torch.equal(
        draws.samples, 2 * sample(SGHMC_KERNEL, NOISY, START, num_samples=5).samples
    )


def test_the_start_is_not_changed():
    for name, (kernel, potential, position) in RUNS.items():
        start = position.clone()
        sample(kernel, potential, start, num_samples=3)
        assert torch.equal(start, position), name


def test_the_global_generator_is_neither_read_nor_moved():
    for kernel, potential, start in RUNS.values():
        torch.manual_seed(0)
        before = torch.get_rng_state()
        first = sample(kernel, potential, start, num_samples=3).samples
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(1)
        assert torch.equal(
            sample(kernel, potential, start, num_samples=3).samples, first
        )


def test_draws_do_not_carry_gradients():
    draws = sample(
        SGHMC_KERNEL,
        NOISY,
        START.clone().requires_grad_(),
        num_samples=3,
        collect=lambda position: position * 2,
    )
    assert not draws.samples.requires_grad and torch.is_grad_enabled()
    assert torch.equal(
        draws.samples, 2 * sample(SGHMC_KERNEL, NOISY, START, num_samples=3).samples
    )


# Divergence


def test_divergence_names_step_chain_and_cause_and_keeps_the_draws():
    kernel = SGHMC(step_size=1.0, friction=0.1)
    with pytest.raises(
        DivergenceError,
        match=r"chains 0, 1 and 2 .*finite.*step_size.*SGHMC",
    ) as caught:
        sample(kernel, DoubleWell(), START + 3, num_samples=100)
    kept = caught.value.draws
    assert len(kept.samples) == 32 and not kept.complete
    first_bad = int(kept.samples.isfinite().all(1).sum())
    assert 0 < first_bad < 32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generator = torch.Generator().manual_seed(0)
        state = kernel.init(DoubleWell(), START + 3, generator)
        for step in range(first_bad + 1):
            assert torch.isfinite(state.position).all(), step
            state, _ = kernel.step(DoubleWell(), state, generator)
    assert not torch.isfinite(state.position).all()


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


def test_a_step_that_fails_in_the_warm_up_is_a_divergence_too():
    with pytest.raises(
        DivergenceError, match=r"step 9 .*ValueError: .*\n.* 0 draws"
    ) as caught:
        sample(SGLD(0.1), Failing(), START, num_samples=50, warm_up=20)
    assert len(caught.value.draws.samples) == 0


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


def test_a_dead_run_is_not_saved(tmp_path, monkeypatch):
    with pytest.raises(DivergenceError):
        sample(
            SGLD(0.1),
            Late(last=5),
            START,
            num_samples=100,
            checkpoint=Checkpoint(tmp_path / "run.pt", every=0.0),
        )
    assert torch.load(tmp_path / "run.pt")["content"]["done"] == 5


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


@pytest.mark.parametrize("collect", [None, several])
def test_a_chain_that_breaks_after_a_run_was_resumed(tmp_path, collect):
    where = Checkpoint(tmp_path / "run.pt")
    settings = {"collect": collect, "checkpoint": where}
    sample(STEPPING, Cliff(6.95), STARTS, num_samples=8, **settings)
    with pytest.raises(DivergenceError, match="chains 0 and 1 ") as caught:
        sample(STEPPING, Cliff(6.95), STARTS, num_samples=99, **settings)
    samples = caught.value.draws.samples
    values = samples["square"] if collect else samples
    assert values.isfinite().sum(0).flatten().tolist() == [10, 20, 32]


def test_draws_of_a_step_that_fails_are_not_numbers_where_a_chain_had_broken():
    class Strict(Cliff):
        def gradient(self, position):
            if (position[1] > 5.45).any():
                raise ValueError("beyond")
            return super().gradient(position.clamp(max=9.0))

    with pytest.raises(DivergenceError, match=r"step 6 failed.*beyond") as caught:
        sample(STEPPING, Strict(6.15), STARTS, num_samples=99)
    draws = caught.value.draws
    assert draws.samples.isfinite().sum(0).flatten().tolist() == [2, 5, 5]
    assert not draws.complete


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


class NotANumber(DoubleWell):
    def gradient(self, position):
        return torch.where(position > 0.5, math.nan, position)


class Flat(DoubleWell):
    def gradient(self, position):
        return position.sum(-1)


class NoKernel:
    def step(self, potential, state, generator):
        return state


GOOD = dict(kernel=SGHMC_KERNEL, potential=NOISY, position=START, num_samples=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"position": torch.zeros(3)},
            r"position.*\(3,\).*torch.float32",
        ),
        ({"position": torch.zeros(3, 1, dtype=torch.int64)}, "torch.int64"),
        ({"position": [0.0]}, r"position.*list"),
        ({"position": torch.zeros(0, 1)}, r"position \(0, 1\) is empty"),
        (
            {"position": torch.tensor([[math.nan]])},
            r"position.*nan.*\(0, 0\)",
        ),
        ({"seed": None}, r"\bseed.*None"),
        (
            {"seed": 2**64},
            r"\bseed.*18446744073709551616",
        ),
        ({"collect": 5}, r"collect.*\b5\b"),
        (
            {"position": torch.zeros(3, 2)},
            r"position.*coordinates.*potential.*\b1\b",
        ),
        (
            {"num_samples": 0},
            r"num_samples.*\b0\b",
        ),
        (
            {"num_samples": 2.5},
            r"num_samples.*\b2\.5\b",
        ),
        (
            {"num_samples": True},
            r"num_samples.*True",
        ),
        ({"warm_up": -1}, r"warm_up.*-1\b"),
        ({"thinning": 0}, r"thinning.*\b0\b"),
        (
            {"potential": NotANumber()},
            r"gradient.*\b1\b",
        ),
        (
            {"potential": Flat()},
            r"gradient.*\(3,\).*position.*\(3, 1\)",
        ),
        (
            {"potential": Gaussian.standard(1, torch.float64)},
            r"torch\.float64.*position.*torch\.float32",
        ),
        (
            {
                "potential": LinearRegression(
                    torch.ones(2, 1, dtype=torch.float64),
                    torch.ones(2, dtype=torch.float64),
                )
            },
            r"position.*\(3, 1\).*torch.float32",
        ),
        (
            {"kernel": SGHMC},
            r"kernel.*SGHMC$",
        ),
        (
            {"kernel": NOISY, "potential": SGHMC_KERNEL},
            r"kernel.*NoisyGradient$",
        ),
        (
            {"kernel": NoKernel()},
            r"kernel.*NoKernel$",
        ),
        ({"kernel": None}, r"kernel.*NoneType$"),
        (
            {"potential": lambda position: position.sum(-1)},
            r"potential.*function$",
        ),
        (
            {"potential": torch.sum},
            r"potential.*builtin",
        ),
        (
            {"potential": DoubleWell},
            r"potential.*the class DoubleWell$",
        ),
        (
            {"potential": SGHMC_KERNEL},
            r"potential.*SGHMC$",
        ),
    ],
)
def test_bad_input_is_refused_before_any_step(change, message):
    with pytest.raises(ValueError, match=message):
        sample(**(GOOD | change))


def test_a_look_at_the_gradient_does_not_move_the_chain():
    """The check at the door draws its noise from a generator of its own."""
    generator = torch.Generator().manual_seed(4)
    state = SGHMC_KERNEL.init(NOISY, START, generator)
    for _ in range(3):
        state, _ = SGHMC_KERNEL.step(NOISY, state, generator)
    assert torch.equal(
        sample(SGHMC_KERNEL, NOISY, START, num_samples=3, seed=4).samples[-1],
        state.position,
    )


def test_regression_with_classes_of_their_own_dtype():
    """Double precision stays so through the loop, the statistics included."""
    inputs = torch.randn(
        6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    posterior = LogisticRegression(inputs, (torch.arange(6) % 2).double(), batch_size=3)
    draws = sample(
        SGHMC(0.1, 1.0, OnlineNoise()),
        posterior,
        torch.zeros(2, 2, dtype=torch.float64),
        num_samples=3,
    )
    assert draws.samples.dtype == draws.statistics["clipped"].dtype == torch.float64


@pytest.mark.parametrize("make", [SGLD, lambda steps: SGHMC(steps, 1.0)])
def test_a_schedule_that_turns_negative_stops_the_run_with_its_value(make):
    kernel = make(lambda step: 0.1 - 0.01 * step)
    with pytest.raises(DivergenceError, match=r"step_size.*-0\.0") as stopped:
        sample(kernel, DoubleWell(), torch.zeros(3, 1), num_samples=50, progress=False)
    assert len(stopped.value.draws.samples) in (10, 11)
