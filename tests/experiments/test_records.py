"""What a result records beside its scores: times, lengths, rates, devices, and the
numbers of a summary.
"""

import itertools

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs import predictions as looks
from booklib.runs import results
from booklib.runs import run as run_module
from booklib.runs import trees as tree_runs
from booklib.runs.plans import Falling
from booklib.runs.published import in_words
from booklib.runs.results import RESULTS, read_result
from booklib.scores.prediction import reliability_curve
from experiments import (
    cifar,
    few,
    neighbours,
    renyi,
    sgnuts,
    study,
    uncertainty,
    weights,
)
from experiments.fits import Task
from experiments.study import Options, Prepared
from sgmc.door.draws import Draws
from sgmc.minibatches import Passes
from sgmc.posteriors import NetworkPosterior
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


def test_a_falling_rate_is_taken_anew_for_every_round_and_starts_whole():
    chain = make(SGD.but(schedule=Falling())).chain
    steps = []
    for _ in range(SGD.rounds):
        chain.round()
        steps.append(chain.kernel.step_size / 1e-3)
    assert (
        steps
        == pytest.approx([chain.plan.rate(done) / 1e-3 for done in range(SGD.rounds)])
        and steps[0] == 1
    )


def test_the_machine_of_an_accelerator_is_named_by_it(monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "get_device_name", lambda device: f"accelerator {device}"
    )
    assert results.circumstances("cuda:1")["machine"].startswith("accelerator cuda:1; ")
    assert "accelerator" not in results.circumstances("cpu")["machine"]


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


def test_sghmc_predicts_by_its_networks_and_the_optimiser_by_its_last_one(
    tmp_path, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        uncertainty,
        "networks",
        lambda folder, method, seed, average: (
            seen.append((method, average)) or torch.zeros(1, 88)
        ),
    )
    monkeypatch.setattr(uncertainty, "look", lambda *given: {})
    prepared = Prepared(
        data(10), data(10), lambda: multilayer_perceptron([6, 4, 10]), tmp_path
    )
    [result] = uncertainty.run(Options(tmp_path, tmp_path, seeds=1), prepared)
    ours = {"SGHMC": ("SGHMC", True), "SGD with momentum": ("SGD with momentum", False)}
    assert dict(zip(result["methods"], seen, strict=True)) == ours | {
        "SGD with momentum, averaged": ("SGD with momentum", True)
    }


def test_clothes_are_test_images(tmp_path, monkeypatch):
    def numbered(first, number):
        return Data(
            torch.arange(first, first + number).float()[:, None].expand(-1, 784),
            torch.zeros(number, dtype=torch.int64),
        )

    digits = Prepared(numbered(0, 10), numbered(0, 10), folder=tmp_path)
    monkeypatch.setattr(uncertainty.mnist, "prepare", lambda *given: digits)
    monkeypatch.setattr(study, "notmnist", lambda root: numbered(0, 10))
    monkeypatch.setattr(
        study, "fashion_mnist", lambda root: (numbered(0, 60), numbered(60, 10))
    )
    assert (
        int(
            uncertainty.prepare(Options(tmp_path, tmp_path, seeds=0))
            .others["clothes"]
            .inputs[0, 0]
        )
        == 60
    )


def test_reliability_has_the_bins_of_the_package(monkeypatch):
    probabilities = torch.rand(
        784, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).pow(9)
    probabilities /= probabilities.sum(-1, keepdim=True)
    monkeypatch.setattr(
        looks, "predict", lambda *given: (probabilities, torch.zeros(784))
    )
    digits = Data(torch.zeros(784, 784), torch.arange(784) % 10)
    rows = looks.look(None, None, digits, {})["reliability"]
    assert [number for _, _, number in rows] == [
        int(number)
        for number in reliability_curve(probabilities, digits.targets)[2]
        if number
    ]


def test_the_images_of_cifar_go_through_five_by_five_convolutions(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(cifar, "cifar10", lambda root: (data(3), data(3)))
    network = cifar.prepare(Options(tmp_path, tmp_path)).network()
    convolutions = [
        (layer.in_channels, layer.out_channels, layer.kernel_size)
        for layer in network
        if isinstance(layer, torch.nn.Conv2d)
    ]
    assert convolutions == [(3, 16, (5, 5)), (16, 32, (5, 5))]


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


def test_neighbours_give_their_methods_what_the_chapter_says(tmp_path, monkeypatch):
    """The rank of SWAG, the depth of trees, drawn outputs, and a rate of constant SGD
    that falls with its share.
    """
    train = Data(torch.zeros(10_000, 6), torch.arange(10_000) % 10)
    posterior = NetworkPosterior(
        multilayer_perceptron([6, 4, 10]), *train, batch_size=100, minibatches=Passes()
    )
    task, seen = Task(posterior, 60, 30, 0, tmp_path / "fit", False), {}
    draws = Draws(torch.zeros(2, 1, posterior.dim))

    def note(name, value):
        return lambda *given, **more: (
            seen.setdefault(name, []).append(value(given, more)) or draws
        )

    monkeypatch.setattr(
        neighbours.rivals,
        "swag",
        note("rank", lambda given, more: more["rank"]),
    )
    monkeypatch.setattr(neighbours, "path", lambda *given: None)
    monkeypatch.setattr(
        neighbours.rivals,
        "variational",
        note("local", lambda given, more: more["local"]),
    )
    monkeypatch.setattr(
        neighbours, "sample", note("kernel", lambda given, more: given[0])
    )
    monkeypatch.setattr(neighbours, "descend", lambda *given: draws)
    monkeypatch.setattr(neighbours, "chain", lambda *given: draws)
    monkeypatch.setattr(
        neighbours.rivals,
        "constant_sgd",
        note("noise", lambda given, more: given[0]),
    )
    neighbours.average(task, 0.1)
    neighbours.vary(task, 0.1, 0.1)
    neighbours.trees(task, 0.4, 0.1)
    neighbours.cyclical(task, 0.4, 0.1)
    for share in (1.0, 0.1):
        neighbours.constant(task, 0.1, share)
    assert seen["rank"] == [20] and seen["local"] == [True]
    assert (
        seen["kernel"][0].kernel.max_depth == 5 and seen["kernel"][1].exploration == 0.8
    )
    assert seen["noise"][1] == pytest.approx(10 * seen["noise"][0])


def test_settings_that_an_experiment_takes_from_another_are_those():
    chosen = read_result(RESULTS / "neighbours.json")["methods"]["SGHMC"]["settings"]
    assert chosen == {"rate": few.RATE, "decay": few.DECAY}
    # Rényi's bound and the evidence bound differ in nothing but their order.
    assert renyi.METHODS["Rényi's bound"].keywords == renyi.METHODS[
        "evidence bound"
    ].keywords | {"alpha": renyi.ALPHA}
