"""SGNUTS on networks: what counts as a round, and what is averaged."""

from functools import partial

import pytest
import torch

from booklib.data import Data
from booklib.models.networks import multilayer_perceptron
from booklib.runs import trees as tree_runs
from booklib.runs.plans import Hamiltonian, Plan, Prior
from booklib.runs.trees import TreeRun
from booklib.scores.prediction import error_rate, log_score
from experiments import sgnuts
from experiments.study import Prepared
from sgmc.minibatches import Fresh
from sgmc.posteriors import NetworkPosterior

SIZE = {"batch_size": 5, "rounds": 12, "burn_in": 4, "record_every": 1}
ONE = Plan(Hamiltonian(1e-3, 0.05), Prior(1.0), "prior", Fresh(), data="MNIST", **SIZE)
ALL = {plan.method: plan for plan in sgnuts.methods(ONE)}
PLAN = ALL["SGNUTS"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(tree_runs, "AVERAGED", 5)


def data(examples, seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.rand(examples, 6, generator=generator)
    inputs[:, 2] = 0  # a pixel without data
    return Data(inputs, torch.randint(10, (examples,), generator=generator))


TRAIN, TEST = data(40), data(30, 1)
PREPARED = Prepared(TRAIN, TEST, partial(multilayer_perceptron, [6, 4, 10]))


def tree_run(plan, path=None):
    return TreeRun(plan, PREPARED.network(), TRAIN, TEST, "cpu", path)


def made_up_walk(run, counts):
    """Let a run take steps that are written down: each leads to a random network after
    so many gradients, by a tree of depth 2.

    The last tree is at its limit, and the first three diverged.
    """
    generator, chain, at = torch.Generator().manual_seed(5), run.chain, {}

    def step():
        count = counts[len(at)]
        at[count] = torch.randn(1, 4 * 7 + 10 * 5, generator=generator)
        chain.state = chain.state._replace(position=at[count])
        chain.trees.append((2, count == counts[-1], count in counts[:3]))
        chain.num_gradients = count

    chain.step = step
    return at


def test_a_round_is_so_many_gradients_whatever_the_trees():
    """Eight gradients are a round here. The tree that ends at 31 ends rounds 2 and 3,
    and the start counts in none.
    """
    run = tree_run(PLAN)
    positions = made_up_walk(run, [3, 7, 8, 12, 31, 39, 41, 96])
    result = run.go(progress=False)
    assert result["curve"]["gradients"] == [0, 8, 31, 39, 41, 96] and result["curve"][
        "trees"
    ] == [0, 3, 5, 6, 7, 8]
    assert result["trees"] == 8 and result["depths"] == [0, 0, 8] + 8 * [0]
    assert result["depth_limited"] == 1 and result["diverged"] == 3
    # At the ends of the rounds 5 to 12 since the burn-in: once the network at 41, seven
    # times the last.
    posterior = NetworkPosterior(multilayer_perceptron([6, 4, 10]), *TRAIN)
    at = {
        count: posterior.predict(position, TEST.inputs)[0].double()
        for count, position in positions.items()
    }
    average = (at[41] + 7 * at[96]) / 8
    assert result["average"]["error"] == pytest.approx(
        error_rate(average, TEST.targets), abs=1e-6
    )
    assert result["average"]["log_loss"] == pytest.approx(
        log_score(average, TEST.targets), abs=1e-6
    )
    entropies = [
        float(-(p * p.log()).sum(-1).mean()) for p in (average, at[41], at[96])
    ]
    assert result["entropy"] == pytest.approx(
        [entropies[0], (entropies[1] + 7 * entropies[2]) / 8], abs=2e-5
    )
    # The table: after no, one, two and five rounds, and over five rounds from then on.
    lines = {line["burn_in"]: line for line in result["after"]}
    assert {burn_in: line["gradients"] for burn_in, line in lines.items()} == {
        0: 0,
        1: 8,
        2: 31,
        5: 41,
    }
    expected = {
        0: at[8] + 2 * at[31] + at[39] + at[41],
        1: 2 * at[31] + at[39] + at[41] + at[96],
        5: 5 * at[96],
    }
    for burn_in, total in expected.items():
        assert lines[burn_in]["average"]["log_loss"] == pytest.approx(
            log_score(total / 5, TEST.targets), abs=1e-6
        )
    assert lines[1]["log_loss"] == pytest.approx(
        log_score(at[8], TEST.targets), abs=1e-5
    )


@pytest.mark.parametrize("start", ["prior", "fan-in"])
@pytest.mark.parametrize("method", ALL)
def test_every_method_runs_and_counts_its_gradients(method, start):
    result = tree_run(ALL[method].but(start=start)).go(progress=False)
    assert (
        result["gradients"] >= 96
        and result["curve"]["gradients"][-1] == result["gradients"]
    )
    assert sum(result["depths"]) == result["trees"] and (
        result["trees"] > 0
    ) == method.startswith("SGNUTS")
    assert 0 < result["entropy"][1] <= result["entropy"][0] < 2.31
