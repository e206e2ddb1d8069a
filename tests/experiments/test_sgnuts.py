"""SGNUTS on networks: what counts as an epoch, what is averaged, when a run changes its kernel, and what a resume does."""

import json
from dataclasses import replace

import pytest
import torch

from sgmc.datasets import Data
from sgmc.experiments import sgnuts
from sgmc.experiments.__main__ import main
from sgmc.experiments.runner import ExperimentError, Options
from sgmc.experiments.sgnuts import METHODS, Plan, Prepared, Step, after, one_run, stored_run
from sgmc.prediction import error_rate, log_score

PLAN = Plan("MNIST", "SGNUTS", 1e-3, 0.05, batch_size=5, epochs=12, warm_up=4)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sgnuts, "LAYERS", [6, 4, 10])
    monkeypatch.setattr(sgnuts, "AVERAGED", 5)
    monkeypatch.setenv("TQDM_DISABLE", "1")


def data(examples, seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.rand(examples, 6, generator=generator)
    inputs[:, 2] = 0  # a pixel without data
    return Data(inputs, torch.randint(10, (examples,), generator=generator))


TRAIN, TEST = data(40), data(30, 1)


def made_up_walk(counts, monkeypatch):
    """Let a run take steps that are written down: each leads to a random network after so many gradients, by a tree of depth 2."""
    generator = torch.Generator().manual_seed(5)
    walk = [Step(torch.randn(1, 4 * 7 + 10 * 5, generator=generator), count, 2, count == counts[-1], False) for count in counts]
    monkeypatch.setattr(sgnuts, "steps", lambda *arguments: iter(walk))
    return walk


def test_an_epoch_is_so_many_gradients_whatever_the_trees(monkeypatch):
    """Eight gradients are an epoch here. The tree that ends at 31 ends epochs 2 and 3, and the start counts in none."""
    counts = [3, 7, 8, 12, 31, 39, 41, 96]
    walk = made_up_walk(counts, monkeypatch)
    result = one_run(PLAN, TRAIN, TEST)
    assert result["curve"]["gradients"] == [0, 8, 31, 39, 41, 96] and result["curve"]["trees"] == [0, 3, 5, 6, 7, 8]
    assert result["trees"] == 8 and result["depths"] == [0, 0, 8] + 8 * [0] and result["depth_limited"] == 1
    # At the ends of the epochs 5 to 12 since the warm-up: once the network at 41, seven times the last.
    posterior = sgnuts.NetworkPosterior(sgnuts.multilayer_perceptron([6, 4, 10]), *TRAIN)
    at = {step.num_gradients: posterior.predict(step.position, TEST.inputs)[0].double() for step in walk}
    average = (at[41] + 7 * at[96]) / 8
    assert result["average"]["error"] == pytest.approx(error_rate(average, TEST.targets), abs=1e-6)
    assert result["average"]["log_loss"] == pytest.approx(log_score(average, TEST.targets), abs=1e-6)
    # The table: after no, one, two and five epochs, and over five epochs from then on.
    lines = {line["warm_up"]: line for line in result["after"]}
    assert {warm_up: line["gradients"] for warm_up, line in lines.items()} == {0: 0, 1: 8, 2: 31, 5: 41}
    expected = {0: at[8] + 2 * at[31] + at[39] + at[41], 1: 2 * at[31] + at[39] + at[41] + at[96], 5: 5 * at[96]}
    for warm_up, total in expected.items():
        assert lines[warm_up]["average"]["log_loss"] == pytest.approx(log_score(total / 5, TEST.targets), abs=1e-6)
    assert lines[1]["log_loss"] == pytest.approx(log_score(at[8], TEST.targets), abs=1e-5)


def test_weights_of_pixels_without_data_are_the_thermometer(monkeypatch):
    walk = made_up_walk([96], monkeypatch)
    curve = one_run(PLAN, TRAIN, TEST)["curve"]
    weights = walk[0].position[0, :24].view(4, 6)[:, 2]
    assert curve["temperature"][-1] == pytest.approx(float(weights.square().mean()), rel=1e-5)
    assert curve["length"][-1] == pytest.approx(float(walk[0].position.square().sum()), rel=1e-5)


@pytest.mark.parametrize("method", [*METHODS["MNIST"], "SGNUTS, small start", "SGHMC, small start"])
def test_every_method_runs_and_counts_its_gradients(method):
    result = one_run(replace(PLAN, method=method), TRAIN, TEST)
    assert result["gradients"] >= 96 and result["curve"]["gradients"][-1] == result["gradients"]
    assert sum(result["depths"]) == result["trees"] and (result["trees"] > 0) == method.startswith("SGNUTS")
    assert 0 < result["entropy"][1] <= result["entropy"][0] < 2.31


def walk_of(method, number):
    plan = replace(PLAN, method=method)
    generator = torch.Generator().manual_seed(0)
    posterior = sgnuts.NetworkPosterior(sgnuts.multilayer_perceptron([6, 4, 10]), *TRAIN, batch_size=5)
    walk = sgnuts.steps(plan, posterior, sgnuts.start(plan, posterior, generator), generator)
    return [next(walk) for _ in range(number)]


def test_a_head_start_ends_with_the_tree_that_exceeds_it():
    walk = walk_of("SGNUTS, then SGHMC", 100)
    trees = [step for step in walk if step.depth is not None]
    assert trees[-1].num_gradients >= 24 > ([0, *(step.num_gradients for step in trees)])[-2]
    rest = walk[len(trees) :]
    assert [step.num_gradients for step in rest] == [trees[-1].num_gradients + 1 + i for i in range(len(rest))]


def test_fresh_momenta_end_with_the_head_start(monkeypatch):
    """With a momentum drawn by a fixed rule, its draws can be counted: at the start, every ten steps, and at the change."""
    drawn = []
    draw = sgnuts.SGHMC.step.__globals__["draw_momentum"]
    monkeypatch.setitem(sgnuts.SGHMC.step.__globals__, "draw_momentum", lambda *a: drawn.append(1) or draw(*a))
    walk_of("fresh momenta, then SGHMC", 24)
    assert len(drawn) == 1 + 3  # at the start, and before steps 0, 10 and 20
    drawn.clear()
    walk_of("fresh momenta, then SGHMC", 100)
    assert len(drawn) == 1 + 3 + 1


def options(tmp_path, resume):
    return Options(tmp_path, tmp_path, resume=resume, progress=False)


def test_finished_runs_are_read_and_others_are_run_again_with_the_same_numbers(tmp_path, monkeypatch):
    prepared = Prepared({"MNIST": (TRAIN, TEST)}, [PLAN, replace(PLAN, method="SGHMC")], tmp_path)
    whole = [stored_run(plan, prepared, options(tmp_path, False)) for plan in prepared.plans]
    (tmp_path / "MNIST-SGHMC-0.json").unlink()  # as if the experiment had been killed in the second run
    again = [stored_run(plan, prepared, options(tmp_path, True)) for plan in prepared.plans]
    assert again[0] == json.loads(json.dumps(whole[0]))
    for run in (whole[1], again[1]):
        del run["processor_seconds"], run["curve"]["processor_seconds"]
        for line in run["after"]:
            del line["processor_seconds"]
    assert again[1] == whole[1]


def test_a_stored_run_with_other_settings_or_data_is_refused(tmp_path):
    prepared = Prepared({"MNIST": (TRAIN, TEST)}, [PLAN], tmp_path)
    stored_run(PLAN, prepared, options(tmp_path, False))
    path = tmp_path / "MNIST-SGNUTS-0.json"
    before = path.read_bytes()
    for plan, train in ((replace(PLAN, momentum_decay=0.1), TRAIN), (PLAN, data(40, 7))):
        with pytest.raises(ExperimentError, match="is of a run with other settings or data: undo the change, or delete the file"):
            stored_run(plan, Prepared({"MNIST": (train, TEST)}, [plan], tmp_path), options(tmp_path, True))
    assert path.read_bytes() == before


def test_the_command_line_writes_the_result(tmp_path, monkeypatch):
    plans = [replace(PLAN, method=method) for method in METHODS["MNIST"]]
    monkeypatch.setattr(sgnuts, "prepare", lambda given: Prepared({"MNIST": (TRAIN, TEST)}, plans, given.runs / "sgnuts-small"))
    assert main(["run", "sgnuts", "--small", "--seeds", "2", "--runs", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "sgnuts-small.json").read_text())
    assert {method: len(runs) for method, runs in result["runs"]["MNIST"].items()} == dict.fromkeys(METHODS["MNIST"], 2)
    assert set(result["costs"]) == {"gradient", "SGHMC", "SGNUTS", "SGNUTS, as reported"}
    assert str(tmp_path) not in (tmp_path / "sgnuts-small.json").read_text()


def test_the_table_takes_the_first_network_after_the_warm_up():
    curve = {"gradients": [0, 9, 30], "processor_seconds": [0.0, 1.0, 2.0], "error": [0.9, 0.5, 0.1], "log_loss": [3.0, 2.0, 1.0]}
    line = after(2, curve, 8, torch.full((30, 10), 0.1, dtype=torch.float64), TEST)
    assert line["gradients"] == 30 and line["error"] == 0.1 and line["average"]["log_loss"] == pytest.approx(2.302585)
