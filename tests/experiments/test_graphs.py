"""Rounds as CUDA graphs: what needs no CUDA of them."""

import contextlib
from dataclasses import replace

import pytest
import torch

from booklib.networks import multilayer_perceptron
from experiments import graphs, walk
from experiments.run import Run
from sgmc.kernels.langevin import SGLDState
from sgmc.minibatches import Fresh
from sgmc.sampling import drive
from tests.experiments.test_run import PLANS, assert_same, contents, data, make


class FakeGraph:
    """What a CUDA graph does, without CUDA: what is captured does not happen, and
    happens at each replay, on the same tensors.
    """

    replays = 0

    def register_generator_state(self, generator):
        self.generator = generator

    def replay(self):
        self.replays += 1
        self.again()


@pytest.fixture
def fake_cuda(monkeypatch):
    """Let a captured round be captured, and run again, on the CPU."""
    steps = graphs.CapturedRound.steps

    def recorded(self, *arguments):
        if self.graph is None:
            return steps(self, *arguments)
        self.graph.again = lambda: steps(self, *arguments)

    monkeypatch.setattr(graphs.CapturedRound, "steps", recorded)
    monkeypatch.setattr(
        walk,
        "fits_a_graph",
        lambda plan, device: graphs.fits_a_graph(plan, torch.device("cuda")),
    )
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())


METHODS = {
    **PLANS,
    "SGLD": replace(PLANS["SGHMC, precisions drawn"], momentum_decay=None),
    "three steps a sample": PLANS["SGHMC, precisions drawn"].finer(3),
}


@pytest.mark.parametrize("method", METHODS)
def test_captured_rounds_are_the_steps_one_by_one(method, request):
    whole = make(METHODS[method])
    whole.go(progress=False)
    request.getfixturevalue("fake_cuda")
    run = make(METHODS[method])
    run.advance()
    run.advance()  # the first is taken step by step, the second captures
    captured = run.walk.captured
    prior = captured.precisions
    read = [*run.walk.state, captured.rows]
    run.go(progress=False)
    # What the graph reads and writes is where it was when it was captured.
    now = [*run.walk.state, captured.rows]
    assert all(
        new is old
        for new, old in zip(now, read, strict=True)
        if isinstance(old, torch.Tensor)
    )
    assert (
        captured.precisions is prior
        and captured.graph.generator is run.walk.generator
        and captured.graph.replays == 7
    )
    assert_same(contents(whole), contents(run))


@pytest.mark.parametrize("minibatches", ["passes", "fresh"])
@pytest.mark.parametrize("method", METHODS)
def test_captured_rounds_resume_bit_for_bit(method, minibatches, fake_cuda, tmp_path):
    """The first round after a resume is taken step by step where the uninterrupted run
    replays its graph.
    """
    plan = replace(METHODS[method], minibatches=minibatches)
    whole, part = make(plan), make(plan, tmp_path / "run.pt")
    whole.go(progress=False)
    drive(part, 3, checkpoint=part.checkpoint, progress=False)
    resumed = make(plan, tmp_path / "run.pt")
    resumed.go(progress=False)
    assert (
        whole.walk.captured.graph.replays == 7
        and resumed.walk.captured.graph.replays == 4
    )
    assert_same(contents(whole), contents(resumed))


def test_what_a_round_comes_to_is_left_where_it_was_read():
    """Also by a kernel that does not work in place."""

    class Elsewhere:
        def step(self, potential, state, generator):
            return state._replace(
                position=state.position + 1, num_gradients=state.num_gradients + 1
            ), None

    captured = graphs.CapturedRound(Fresh(), 3, 5, torch.device("cpu"))
    state = SGLDState(torch.zeros(1, 2), 6)
    captured.steps(Elsewhere(), None, state, None)
    assert state.position.tolist() == [[3.0, 3.0]]


def test_what_looks_at_numbers_as_it_goes_is_not_captured():
    device, plan = torch.device("cuda"), PLANS["SGHMC, precisions drawn"]
    assert graphs.fits_a_graph(plan, device) and not graphs.fits_a_graph(
        plan, torch.device("cpu")
    )
    changes = [
        {"noise_refresh": 1},
        {"trees": "uniform"},
        {"resample_every": 3},
        {"momentum_decay": None, "annealing": (8.0, 0.5)},
    ]
    assert not any(
        graphs.fits_a_graph(replace(plan, **change), device) for change in changes
    )


@pytest.mark.skipif(
    not torch.cuda.is_available(),
    reason="a CUDA graph is captured on a CUDA device alone",
)
@pytest.mark.parametrize("method", ["SGHMC, precisions drawn", "SGD"])
def test_captured_rounds_on_a_cuda_device(method, monkeypatch):
    runs = []
    for captures in (True, False):
        with monkeypatch.context() as patch:
            if not captures:
                patch.setattr(walk, "fits_a_graph", lambda *_: False)
            # few steps: in single precision rounding grows
            plan = replace(PLANS[method], rounds=2, burn_in=1)
            run = Run(
                plan,
                multilayer_perceptron([6, 4, 10], "sigmoid"),
                data(40),
                data(30, 1),
                "cuda",
            )
        run.go(progress=False)
        assert (run.walk.captured is not None) == captures
        runs.append(run.walk)
    torch.testing.assert_close(
        runs[0].state.position, runs[1].state.position, rtol=1e-4, atol=1e-5
    )
    assert runs[0].state.num_gradients == runs[1].state.num_gradients == 16
