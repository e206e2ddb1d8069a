"""The table of warm-ups in epochs of samples: what an epoch is, what its average is,
and what a resume does.
"""

from functools import partial

import pytest
import torch

from booklib.models.networks import multilayer_perceptron
from booklib.runs.held import HeldMinibatch
from booklib.runs.plans import Hamiltonian, HeadStart, Plan, Prior
from booklib.scores.prediction import error_rate
from experiments import trees, trees_hybrid, trees_program
from experiments.program_trees import ProgramTrees
from experiments.sgnuts import methods
from experiments.study import Options, Prepared
from experiments.trees import EpochRun
from sgmc.door.running import drive
from sgmc.kernels import SGHMC, SGNUTS
from sgmc.minibatches import Fresh
from tests.booklib.runs.test_runs import data

SIZE = {"batch_size": 10, "rounds": 12, "burn_in": 0}
ONE = Plan(Hamiltonian(1e-3, 0.05), Prior(1.0), "uniform", Fresh(), **SIZE)
ALL = {plan.method: plan for plan in methods(ONE, head_start=1)}
HYBRID, SGHMC_PLAN = ALL["SGNUTS, then SGHMC"], ALL["SGHMC"]
REPORTED = ALL["SGNUTS, our reading"].but(rounds=4)
# four samples are an epoch
PREPARED = Prepared(
    data(40), data(30, 1), partial(multilayer_perceptron, [6, 4, 10], "relu")
)


def epoch_run(plan, path=None, prepared=PREPARED):
    network, train, test = prepared.network(), prepared.train, prepared.test
    return EpochRun(plan, network, train, test, "cpu", path)


@pytest.mark.parametrize(
    "plan", [SGHMC_PLAN, HYBRID, REPORTED], ids=lambda plan: plan.method
)
def test_the_average_of_an_epoch_is_that_of_its_samples(plan, monkeypatch):
    monkeypatch.setattr(trees, "WARM_UPS", (0, 2))
    seen = []
    run = epoch_run(plan)
    run.watch = lambda run: seen.append(
        (
            type(run.chain.kernel),
            run.chain.state.position.clone(),
            run.chain.num_gradients,
        )
    )
    result = run.go(progress=False)
    assert len(seen) == plan.rounds and [
        line["warm_up"] for line in result["epochs"]
    ] == ([0, 2] if plan.rounds == 12 else [0])
    for line in result["epochs"]:
        epoch = seen[4 * line["warm_up"] : 4 * line["warm_up"] + 4]
        predictions = [
            run.chain.posterior.predict(position, PREPARED.test.inputs)[0].double()
            for _, position, _ in epoch
        ]
        targets = PREPARED.test.targets
        assert line["average"]["error"] == pytest.approx(
            error_rate(sum(predictions) / 4, targets), abs=1e-6
        )
        assert line["last"]["error"] == pytest.approx(
            error_rate(predictions[-1], targets), abs=1e-6
        )
        assert line["gradients"] == epoch[-1][2] and line["length"] == pytest.approx(
            float(epoch[-1][1].square().sum())
        )
    # of trees
    number = {"SGHMC": 0, "SGNUTS, then SGHMC": 4, "SGNUTS, our reading": 4}[
        plan.method
    ]
    assert [kernel for kernel, _, _ in seen] == [SGNUTS] * number + [SGHMC] * (
        plan.rounds - number
    )
    assert [line["trees"] for line in result["epochs"]] == [number] * len(
        result["epochs"]
    )
    assert list(map(sum, result["depths"])) == [4] * (number // 4)
    if not number:
        assert [gradients for _, _, gradients in seen] == list(range(1, 13))


def test_the_program_s_trees_go_through_epochs(tmp_path, monkeypatch):
    """A finished run is not run again."""
    small = [
        plan.but(batch_size=5, rounds=16, max_depth=3)
        for plan in trees_program.settings(True)
    ]
    monkeypatch.setattr(trees_program, "settings", lambda small_version: small)
    options = Options(tmp_path, tmp_path, small=True, seeds=1, progress=False)
    prepared = PREPARED._replace(folder=tmp_path)
    precision = torch.get_float32_matmul_precision()
    try:
        *_, first = trees_program.run(options, prepared)
        *_, again = trees_program.run(options, prepared)
    finally:
        torch.set_float32_matmul_precision(precision)
    assert first == again
    for [run] in first["runs"].values():
        assert [line["trees"] for line in run["epochs"]] == [8, 16]
        assert [sum(depths) for depths in run["depths"]] == [8, 8]


def test_the_hybrid_holds_its_trees_minibatches_and_draws_fresh_ones_after_them():
    for small in (True, False):
        for hybrid, plan in zip(
            trees_hybrid.settings(small), trees_program.settings(small), strict=True
        ):
            assert hybrid.kernel == HeadStart(plan.kernel, 1)
            assert hybrid.minibatches == Fresh() and hybrid.start == "uniform"
    kernel = ProgramTrees(1e-3, 0.05, temperature=0.1, max_depth=2)
    run = epoch_run(HYBRID.but(kernel=HeadStart(kernel, 1)))
    kinds = []
    for _ in range(HYBRID.rounds):
        kinds.append(isinstance(run.chain.potential(), HeldMinibatch))
        run.advance()
    # whether the trees are over is seen as the next step begins
    assert kinds == [True] * 5 + [False] * 7 and len(run.chain.trees) == 4
    after = run.chain.kernel
    assert isinstance(after, SGHMC) and after.temperature == 1
    assert after.step_size == pytest.approx(1e-3**0.5)


def test_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    def without_clocks(run):
        result = run.go(progress=False)
        for line in [result, *result["epochs"]]:
            del line["processor_seconds"]
        return {**result, "made": None}

    path = tmp_path / "run.pt"
    whole, part = epoch_run(HYBRID), epoch_run(HYBRID, path=path)
    for rounds in (2, 7):  # within the first epoch, and after the change of kernel
        drive(part, rounds, checkpoint=part.checkpoint, progress=False)
        part = epoch_run(HYBRID, path=path)
    assert without_clocks(part) == without_clocks(whole)
    assert torch.equal(part.chain.state.position, whole.chain.state.position)
