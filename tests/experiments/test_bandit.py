"""The bandit: what actions earn, how agents act, and a small run that is resumed."""

import itertools
import json

import pytest
import torch

from booklib.data import bandit as rules
from booklib.data import synthetic_mushrooms
from experiments import bandit
from experiments.__main__ import main
from experiments.bandit import AGENTS, BLOCK, EAT, LEAVE, Plan, Run
from sgmc.posteriors import LinearRegression
from tests.checks import z_bound

TABLE = synthetic_mushrooms(300)
CASES = [
    torch.tensor(case)
    for case in zip(*itertools.product((LEAVE, EAT), (0, 1), (0, 1)), strict=True)
]


def plan(agent, **more):
    return Plan(agent, 3 * BLOCK, 1, **{"steps": 4, **AGENTS[agent][1][0], **more})


def test_rewards_by_enumeration():
    actions, poisonous, harmed = CASES
    # leave: nothing whatever it is; eat: harm only by a poisonous one, and only with
    # the coin
    expected = [0, 0, 0, 0, 5, 5, 5, -35]
    assert rules.rewards(actions, poisonous, harmed.bool()).tolist() == expected
    averages = {(int(a), int(p)): [] for a, p in zip(actions, poisonous, strict=True)}
    for action, poison, reward in zip(actions, poisonous, expected, strict=True):
        averages[int(action), int(poison)].append(reward)
    for (action, poison), values in averages.items():
        mean = rules.expected_rewards(torch.tensor([action]), torch.tensor([poison]))
        assert mean.item() == sum(values) / 2


def test_an_oracle_has_no_regret_and_everybody_else_some():
    actions, poisonous, _ = CASES
    regret, oracle = (
        rules.regrets(actions, poisonous),
        torch.where(poisonous == 1, LEAVE, EAT),
    )
    assert (rules.regrets(oracle, poisonous) == 0).all()
    assert torch.equal(regret > 0, actions != oracle)
    # an edible one left, a poisonous one eaten
    assert sorted(set(regret.tolist())) == [0, 5, 15]


class Linear:
    """A network without hidden layers, whose posterior is known: what a Thompson agent
    draws its networks from.
    """

    exploration, averaged = 0.0, 1

    def __init__(self, generator):
        inputs = torch.randn(12, 4, generator=generator)
        self.posterior = LinearRegression(
            inputs, torch.randn(12, generator=generator), prior_variance=2.0
        )
        self.generator = generator

    def draw(self, number):
        root = torch.linalg.cholesky(self.posterior.covariance)
        return (
            self.posterior.mean
            + torch.randn(number, 4, generator=self.generator) @ root.T
        )

    @staticmethod
    def outputs(position, inputs):
        return torch.einsum(
            "nd,nkd->nk", position, inputs.expand(len(position), -1, -1)
        )


@pytest.mark.parametrize("averaged", [1, 3])
def test_a_thompson_agent_takes_an_action_as_often_as_it_is_the_best(averaged):
    """With θ ~ N(m, S) eating is the best of a draw with probability Φ(a·m / √(a·S·a)),
    a being the difference of the inputs.

    The mean of three draws has a third of the covariance. False alarms: 10⁻⁴.
    """
    run = Run(plan("greedy"), TABLE)
    agent = Linear(run.generator)
    run.agent = run.network = agent
    agent.averaged = averaged
    context, number = torch.tensor([[0.7, -1.2]]), 20_000
    share = (run.act(context.expand(number, -1)) == EAT).double().mean()
    leave, eat = bandit.with_actions(context)[0]
    mean, covariance = agent.posterior.mean, agent.posterior.covariance / averaged
    difference = eat - leave
    probability = torch.special.ndtr(
        difference @ mean / (difference @ covariance @ difference).sqrt()
    ).double()
    assert 0.05 < probability < 0.95
    assert (
        abs(share - probability)
        < z_bound(1) * (probability * (1 - probability) / number).sqrt()
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_learning_fits_the_rewards(agent):
    """After 300 minibatches of 20 interactions the mean prediction is nearer to the
    rewards than zero: three seeds give 0.01 to 0.2.
    """
    run = Run(plan(agent, steps=300, noise_variance=0.01), TABLE)
    run.actions = torch.arange(BLOCK) % 2
    run.harmed[:] = False
    posterior = run.posterior()
    inputs, targets = posterior.data
    run.agent.learn(posterior, 0, 300)
    predicted = run.network.outputs(run.agent.draw(100), inputs[None]).mean(0)
    assert (predicted - targets).square().mean() < 0.7 * targets.square().mean()


@pytest.mark.slow
def test_small_runs_end_to_end_and_resume(tmp_path, monkeypatch):
    few = {
        name: (agent, choices[:2])
        for name, (agent, choices) in AGENTS.items()
        if name in ("greedy", "SGHMC")
    }
    monkeypatch.setattr(bandit, "AGENTS", few)
    arguments = ["run", "bandit", "--small", "--runs", str(tmp_path)]
    assert main([*arguments, "--seeds", "1"]) == 0
    first = json.loads((tmp_path / "bandit-small.json").read_text())
    assert main([*arguments, "--seeds", "2", "--resume"]) == 0
    second = json.loads((tmp_path / "bandit-small.json").read_text())
    assert list(second["tables"]) == ["made up"] and second["interactions"] == 500
    for name, content in second["tables"]["made up"].items():
        assert content["runs"][0] == first["tables"]["made up"][name]["runs"][0]
        assert len(content["tuning"]) == len(content["runs"]) == 2
        best = min(content["tuning"], key=lambda row: row["regret"])
        assert content["settings"] == {
            key: best[key] for key in ("rate", "noise_variance")
        }
        for run in content["runs"]:
            assert (
                run["regret"][-1]
                == 15 * run["poisonous_eaten"] + 5 * run["edible_left"]
            )
            assert len(run["regret"]) == 500 // second["every"] and run[
                "regret"
            ] == sorted(run["regret"])
    assert str(tmp_path) not in (tmp_path / "bandit-small.json").read_text()
