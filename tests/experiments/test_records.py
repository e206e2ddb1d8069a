"""What a result records beside its scores: times, lengths, rates, devices, and the
numbers of a summary.
"""

import itertools

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs import run as run_module
from booklib.runs import trees as tree_runs
from booklib.runs.published import in_words
from booklib.runs.results import RESULTS, read_result
from experiments import (
    few,
    neighbours,
    renyi,
    sgnuts,
    study,
    weights,
)
from experiments.study import Options, Prepared
from tests.booklib.runs.test_runs import PLANS, data, make

SGD = PLANS["SGD"]


def test_seconds_are_of_the_clock_and_of_the_processor(monkeypatch):
    """Two clocks that are made up: between two looks ten seconds pass, of which the
    processor worked for one.
    """
    monkeypatch.setattr(run_module.time, "monotonic", itertools.count(0, 10).__next__)
    monkeypatch.setattr(run_module.time, "process_time", itertools.count(0, 1).__next__)
    run = make(SGD.but(burn_in=0))
    run.advance()
    result = run.result()
    # the walk is the first part of a round
    assert (result["seconds"], result["processor_seconds"], run.walking_seconds) == (
        10,
        2,
        1,
    )


def test_the_length_of_a_curve_is_the_square_of_the_weights():
    run = make(SGD.but(record_every=1))
    run.advance()
    assert run.curve["length"] == [
        pytest.approx(float(run.chain.state.position.square().sum()), rel=1e-4)
    ]


def test_the_table_of_sgnuts_has_the_burn_ins_of_the_report_and_the_lengths_of_the_stored_runs():
    assert tree_runs.BURN_INS == [0, 1, 2, 5, 10, 25]  # the report, p. 16
    stored = read_result(RESULTS / "sgnuts.json")
    assert (stored["averaged"], stored["head_start"]) == (
        tree_runs.AVERAGED,
        sgnuts.HEAD_START,
    )
    for methods in stored["runs"].values():
        # in the oldest file a burn-in is called a warm-up
        for run in itertools.chain(*methods.values()):
            assert [
                line.get("burn_in", line.get("warm_up")) for line in run["after"]
            ] == tree_runs.BURN_INS


def test_the_thermometer_is_of_pixels_that_are_never_seen_and_the_seconds_are_of_the_walk():
    train = data(40)
    train.inputs[:, 2] = 0
    train.inputs[0, 4] = 0  # a pixel that one digit lacks
    network = multilayer_perceptron([6, 4, 10])
    run = tree_runs.TreeRun(SGD.but(record_every=1), network, train, data(30, 1))
    assert run.empty.tolist() == [False, False, True, False, False, False]
    run.go(progress=False)
    run.walking_seconds, run.processor_seconds = 7.0, 9.0
    assert run.result()["processor_seconds"] == 7.0


@pytest.mark.parametrize(
    ("module", "network", "size", "rounds", "networks"),
    [
        (neighbours, "784–100–10, ReLU", 500, 60, 30),
        (weights, "784–400–400–10, ReLU", 250, 50, 30),
    ],
)
def test_neighbours_have_the_network_the_minibatch_and_the_rounds_of_their_chapter(
    module, network, size, rounds, networks, monkeypatch
):
    seen = {}

    def noted(methods, task, prepared, options, rounds, **more):
        seen.update(task=task(rounds, 0, None), rounds=rounds)
        return iter(())

    monkeypatch.setattr(module, "compare", noted)
    digits = Data(torch.zeros(1_000, 784), torch.arange(1_000) % 10)
    widths = [784, 100, 10] if module is neighbours else [784, 400, 400, 10]
    monkeypatch.setattr(
        module.mnist,
        "prepare",
        lambda options, **more: Prepared(
            digits,
            digits,
            lambda: multilayer_perceptron([784, 100, 10]),
            RESULTS,
            digits,
        ),
    )
    for loader in ("notmnist", "fashion_mnist"):
        monkeypatch.setattr(study, loader, lambda root: (digits, digits))
    options = Options(None, RESULTS)
    list(module.run(options, module.prepare(options)))
    task = seen["task"]
    assert (
        in_words(task.posterior.module),
        task.posterior.batch_size,
        seen["rounds"],
        task.num_networks,
    ) == (
        network,
        size,
        rounds,
        networks,
    )
    assert task.posterior.dim == sum(
        (before + 1) * after for before, after in itertools.pairwise(widths)
    )


def test_settings_that_an_experiment_takes_from_another_are_those():
    chosen = read_result(RESULTS / "neighbours.json")["methods"]["SGHMC"]["settings"]
    assert chosen == {"rate": few.RATE, "decay": few.DECAY}
    # Rényi's bound and the evidence bound differ in nothing but their order.
    assert renyi.METHODS["Rényi's bound"].keywords == renyi.METHODS[
        "evidence bound"
    ].keywords | {"alpha": renyi.ALPHA}
