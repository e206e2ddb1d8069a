"""The runs of the experiments: what a kill and a resume change (nothing), what averages in a stream, and what is refused."""

import contextlib
import gc
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from sgmc.datasets import Data
from sgmc.experiments import runner
from sgmc.experiments.runner import ExperimentError, Plan, Run, read_result, write_result
from sgmc.networks import multilayer_perceptron

PLANS = {
    "SGHMC, precisions drawn": Plan("SGHMC", 1e-3, 0.1, rounds=8, burn_in=2, batch_size=5, keep_every=2, record_every=3, seed=3),
    "SGD": Plan("SGD", 1e-3, None, temperature=0.0, prior_precision=2.0, rounds=8, burn_in=2, batch_size=5, keep_every=2, record_every=3),
}


def data(examples, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Data(torch.rand(examples, 6, generator=generator), torch.randint(10, (examples,), generator=generator))


def make(plan, checkpoint=None, resume=False, train=None):
    return Run(plan, multilayer_perceptron([6, 4, 10], "sigmoid"), train or data(40), data(30, 1), "cpu", checkpoint, resume)


def contents(run):
    """Everything that a run comes to, but its wall time."""
    result = run.result()
    del result["seconds"], result["processor_seconds"], result["curve"]["seconds"]
    tensors = [value for value in run.state if isinstance(value, torch.Tensor)]
    return result, run.average, run.last, *run.reservoir, *tensors, run.generator.get_state()


def assert_same(one, other):
    assert one[0] == other[0]
    assert all(torch.equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("name", PLANS)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(name, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    whole = make(PLANS[name])
    whole.go(progress=False)
    for after in (12, 31):  # killed twice, in the middle of rounds 2 and 4, each of eight steps
        run = make(PLANS[name], tmp_path / "run.pt", resume=True)
        step, left = type(run.kernel).step, [after - 8 * run.round]

        def dying(self, *arguments, step=step, left=left):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return step(self, *arguments)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(type(run.kernel), "step", dying)
            run.go(progress=False)
    resumed = make(PLANS[name], tmp_path / "run.pt", resume=True)
    assert resumed.round == 3
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))


LONG = """
import sys
from pathlib import Path
from sgmc.experiments import runner
from tests.experiments import test_runner
runner.CHECKPOINT_SECONDS = 0.0
test_runner.make(test_runner.long_plan(), Path(sys.argv[1])).go(progress=False)
"""


def long_plan():
    return replace(PLANS["SGHMC, precisions drawn"], rounds=100)


def test_a_run_killed_by_the_system_resumes_bit_for_bit(tmp_path):
    checkpoint = tmp_path / "run.pt"
    process = subprocess.Popen([sys.executable, "-c", LONG, str(checkpoint)])
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed, whole = make(long_plan(), checkpoint, resume=True), make(long_plan())
    assert 0 < resumed.round < 100
    resumed.go(progress=False)
    whole.go(progress=False)
    assert_same(contents(whole), contents(resumed))


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    first = make(PLANS["SGD"], tmp_path / "run.pt").go(progress=False)
    assert first["made"].keys() == {"date", "versions", "machine", "matmul_precision"}
    monkeypatch.setattr(Run, "one_round", None)
    monkeypatch.setattr(runner, "circumstances", None)  # what a result says of its making is not about the resume
    assert make(PLANS["SGD"], tmp_path / "run.pt", resume=True).go(progress=False) == first


def test_streaming_averages_are_those_of_the_stored_predictions(monkeypatch):
    stored = []
    run = make(PLANS["SGHMC, precisions drawn"])
    predict = run.posterior.log_predict

    def storing(position, inputs):
        stored.append((position[0].clone(), predict(position, inputs)))
        return stored[-1][1]

    monkeypatch.setattr(run.posterior, "log_predict", storing)
    result = run.go(progress=False)
    kept = torch.cat([logarithms for _, logarithms in stored[2:]]).double().exp()
    torch.testing.assert_close(run.average, kept.mean(0), rtol=1e-14, atol=0)
    assert result["networks_averaged"] == 6 and result["gradient_evaluations"] == 64
    assert len(run.reservoir) == 3 and all(torch.equal(run.reservoir[i], stored[3 + 2 * i][0]) for i in range(3))
    assert result["curve"]["round"] == [3, 6, 8]
    wrong = result["wrong"]["average"]
    assert len(wrong) == round(30 * result["average"]["error"]) and int(run.average[wrong[0]].argmax()) != int(run.targets[wrong[0]])


def test_a_pass_shows_every_example_once_and_fresh_minibatches_do_not():
    seen = {}
    for minibatches in ("passes", "fresh"):
        run = make(replace(PLANS["SGD"], minibatches=minibatches))
        draw, indices = run.posterior.draw_indices, []

        def storing(chains, generator, draw=draw, indices=indices):
            indices.append(draw(chains, generator)[0])
            return indices[-1][None]

        run.posterior.draw_indices = storing
        run.go(progress=False)
        seen[minibatches] = [torch.cat(indices[start : start + 8]).sort().values for start in range(0, 64, 8)]
        assert not torch.equal(indices[0], indices[8])
    everything = torch.arange(40)
    assert all(torch.equal(indices, everything) for indices in seen["passes"])
    assert not any(torch.equal(indices, everything) for indices in seen["fresh"])


def test_memory_does_not_grow_with_the_networks_averaged(tmp_path):
    held, stored = [], []
    for rounds in (20, 60):
        plan = replace(PLANS["SGHMC, precisions drawn"], rounds=rounds, keep_every=rounds // 2 - 1, record_every=1000)
        run = make(plan, tmp_path / f"{rounds}.pt")
        run.go(progress=False)
        gc.collect()
        held.append(sum(thing.numel() for thing in gc.get_objects() if type(thing) is torch.Tensor))
        stored.append((tmp_path / f"{rounds}.pt").stat().st_size)
    assert held[0] == held[1] and abs(stored[1] - stored[0]) < 300  # less than one prediction


def test_falling_steps_weigh_the_average(monkeypatch):
    plan = replace(PLANS["SGHMC, precisions drawn"], method="SGLD", momentum_decay=None, annealing=(8.0, 1.0))
    stored, run = [], make(plan)
    predict = run.posterior.log_predict
    monkeypatch.setattr(run.posterior, "log_predict", lambda *arguments: stored.append(predict(*arguments)) or stored[-1])
    run.go(progress=False)
    # After eight steps of the first round the last one had size η/(1 + 7/8), and so on.
    assert run.state.step_size == pytest.approx(1e-3 / (1 + 63 / 8))
    weights = torch.tensor([1 / (1 + (8 * round - 1) / 8) for round in range(3, 9)], dtype=torch.float64)
    kept = torch.cat(stored[2:]).double().exp()
    torch.testing.assert_close(run.average, (weights[:, None, None] * kept).sum(0) / weights.sum(), rtol=1e-12, atol=0)


def test_an_online_noise_estimate_survives_a_resume(tmp_path):
    plan = replace(PLANS["SGHMC, precisions drawn"], minibatches="fresh", noise_refresh=3)
    whole = make(plan)
    whole.go(progress=False)
    part = make(plan, tmp_path / "run.pt")
    with torch.no_grad():
        for _ in range(3):
            part.one_round()
    part.record()
    part.save()
    resumed = make(plan, tmp_path / "run.pt", resume=True)
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))
    assert whole.state.noise_variance.shape == (1, whole.posterior.dim)


class FakeGraph:
    """What a CUDA graph does, without CUDA: what is captured does not happen, and happens at each replay, on the same tensors."""

    def register_generator_state(self, generator):
        self.generator = generator

    def replay(self):
        self.again()


@pytest.fixture
def fake_cuda(monkeypatch):
    """Let a captured round be captured, and run again, on the CPU."""
    steps = runner.CapturedRound.steps

    def recorded(self, start):
        if self.graph is None:
            return steps(self, start)
        self.graph.again = lambda: steps(self, start)

    monkeypatch.setattr(runner.CapturedRound, "steps", recorded)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())


def method_plan(method):
    return replace(PLANS["SGHMC, precisions drawn"], momentum_decay=None) if method == "SGLD" else PLANS[method]


@pytest.mark.parametrize("method", ["SGHMC, precisions drawn", "SGLD", "SGD"])
def test_captured_rounds_are_the_steps_one_by_one(method, fake_cuda):
    whole, run = make(method_plan(method)), make(method_plan(method))
    whole.go(progress=False)
    run.captures = True
    run.one_round()
    read = [*run.state, run.posterior._prior_precision]
    run.go(progress=False)
    # What the graph reads and writes is where it was when it was captured.
    now = [*run.state, run.posterior._prior_precision]
    assert all(new is old for new, old in zip(now, read, strict=True) if isinstance(old, torch.Tensor))
    assert run.captured.graph.generator is run.generator
    assert_same(contents(whole), contents(run))


@pytest.mark.parametrize("minibatches", ["passes", "fresh"])
@pytest.mark.parametrize("method", ["SGHMC, precisions drawn", "SGLD", "SGD"])
def test_captured_rounds_resume_bit_for_bit(method, minibatches, fake_cuda, tmp_path):
    """The first round after a resume is taken step by step where the uninterrupted run replays its graph."""
    plan = replace(method_plan(method), minibatches=minibatches)

    def captured(*given):
        run = make(plan, *given)
        run.captures = True
        return run

    whole, part = captured(), captured(tmp_path / "run.pt")
    whole.go(progress=False)
    with torch.no_grad():
        for _ in range(3):
            part.one_round()
    part.record()
    part.save()
    resumed = captured(tmp_path / "run.pt", True)
    resumed.go(progress=False)
    assert_same(contents(whole), contents(resumed))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("method", ["SGHMC, precisions drawn", "SGD"])
def test_captured_rounds_on_a_cuda_device(method):
    runs = []
    for captures in (True, False):
        run = Run(PLANS[method], multilayer_perceptron([6, 4, 10], "sigmoid"), data(40), data(30, 1), "cuda")
        run.captures = captures
        run.go(progress=False)
        assert (run.captured is not None) == captures
        runs.append(run)
    torch.testing.assert_close(runs[0].state.position, runs[1].state.position, rtol=1e-4, atol=1e-5)
    assert runs[0].state.num_gradients == runs[1].state.num_gradients == 64


def test_the_prior_changes_once_a_round_and_only_where_it_is_drawn():
    drawn, fixed = make(PLANS["SGHMC, precisions drawn"]), make(PLANS["SGD"])
    seen = []
    for run in (drawn, fixed):
        run.go(progress=False)
        seen.append(run.curve["precisions"])
    assert len({tuple(values) for values in seen[0]}) == 3
    assert seen[1] == [[2.0] * 4] * 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"plan": {"learning_rate": 2e-3}},
            r"other settings \(learning_rate was 0.001 and is 0.002\): undo the change, or delete the file",
        ),
        ({"plan": {"seed": 9}}, r"seed was 0 and is 9"),
        ({"train": data(40, 5)}, r"other settings \(data was"),
    ],
)
def test_a_resume_with_other_settings_is_refused(changed, message, tmp_path):
    checkpoint = tmp_path / "run.pt"
    make(PLANS["SGD"], checkpoint).go(progress=False)
    before = checkpoint.read_bytes()
    with pytest.raises(ExperimentError, match=message):
        make(replace(PLANS["SGD"], **changed.get("plan", {})), checkpoint, resume=True, train=changed.get("train"))
    assert checkpoint.read_bytes() == before


def test_a_corrupt_checkpoint_is_refused(tmp_path):
    checkpoint = tmp_path / "run.pt"
    checkpoint.write_bytes(b"nothing")
    with pytest.raises(ExperimentError, match=r"run.pt is no checkpoint, or corrupt .*: delete it to start that run anew"):
        make(PLANS["SGD"], checkpoint, resume=True)
    assert checkpoint.read_bytes() == b"nothing"


def test_seconds_go_on_where_they_stopped(tmp_path):
    part = make(PLANS["SGD"], tmp_path / "run.pt")
    with torch.no_grad():
        part.one_round()
    part.seconds = part.processor_seconds = 100.0
    part.save()
    result = make(PLANS["SGD"], tmp_path / "run.pt", resume=True).go(progress=False)
    assert 100 <= result["processor_seconds"] < 160 and 100 <= result["seconds"] < 160


def test_a_learning_rate_that_diverges_is_named():
    with pytest.raises(ExperimentError, match="SGD left the finite numbers in round 1: lower its learning rate"):
        make(replace(PLANS["SGD"], learning_rate=1e30)).go(progress=False)


def test_results_come_back_as_they_were_written(tmp_path):
    result = {"a": [1, 2.5], "b": {"c": [{"d": None}, {"d": [0.1]}]}}
    write_result(tmp_path / "x.json", result)
    assert read_result(tmp_path / "x.json") == {"format": runner.FORMAT, **result}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": 0}', "x.json has format 0, and this version reads 1: move it away and run x again"),
        ("[]", "x.json is no result file, or corrupt"),
        ('{"format": 1', "x.json is no result file, or corrupt"),
    ],
)
def test_results_of_another_version_are_refused_and_kept(content, message, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ExperimentError, match=message):
        write_result(path, {})
    assert path.read_text() == content


def test_a_missing_result_says_how_to_make_it(tmp_path):
    with pytest.raises(ExperimentError, match=r"write it by `python -m sgmc\.experiments run x`"):
        read_result(tmp_path / "x.json")


def test_result_files_are_plain_json(tmp_path):
    write_result(tmp_path / "x.json", {"run": make(PLANS["SGD"]).go(progress=False)})
    assert json.loads((tmp_path / "x.json").read_text())["run"]["plan"]["method"] == "SGD"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minibatches": "pass"}, "minibatches must be 'passes' or 'fresh', but it is 'pass'"),
        ({"burn_in": 8}, "burn_in must be at least 0 and less than rounds, 8, but it is 8"),
        ({"keep_every": 0}, "keep_every and record_every must be at least 1, but they are 0 and 3"),
        ({"momentum_decay": None, "noise_refresh": 1}, "noise_refresh is for methods with momentum"),
        ({"annealing": (10.0, 0.5)}, "annealing is for methods without momentum"),
    ],
)
def test_plans_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(PLANS["SGHMC, precisions drawn"], **change)


def test_logits_that_overflow_are_a_run_that_diverged(monkeypatch):
    run = make(PLANS["SGD"])
    monkeypatch.setattr(run.posterior, "log_predict", lambda position, inputs: torch.full((1, 30, 10), torch.nan))
    with pytest.raises(runner.DivergedError, match="SGD left the finite numbers in round 1"):
        run.go(progress=False)


def test_a_checkpoint_without_an_entry_is_corrupt_and_another_network_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    make(PLANS["SGD"], path).go(progress=False)
    content = torch.load(path, weights_only=True)
    torch.save({key: value for key, value in content.items() if key != "made"}, path)
    with pytest.raises(ExperimentError, match=r"run.pt is no checkpoint, or corrupt \(KeyError\)"):
        make(PLANS["SGD"], path, resume=True)
    torch.save(content, path)
    with pytest.raises(ExperimentError, match="other settings \\(network was"):
        Run(PLANS["SGD"], multilayer_perceptron([6, 4, 10], "relu"), data(40), data(30, 1), "cpu", path, True)


def test_a_surprised_network_has_the_log_score_of_its_logits(monkeypatch):
    """The probability of e⁻²⁰⁰ is 0 in float32, and the logarithm of that is no score."""
    run = make(PLANS["SGD"])
    monkeypatch.setattr(run.posterior, "log_predict", lambda position, inputs: torch.full((1, 30, 10), -200.0))
    with torch.no_grad():
        run.one_round()
    assert run.scores(run.last)[1] == 200.0
