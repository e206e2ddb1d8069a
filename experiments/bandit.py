"""A contextual bandit: eat a mushroom or leave it, by Thompson sampling or ε-greedy.

Eating an edible mushroom earns 5, a poisonous one −35 or 5 by the toss of a coin, and
leaving it 0 (Blundell et al., 2015, Section 5.3). A network with two hidden layers of
100 rectified linear units, fed with mushroom and action, gives the expected reward.
Settings are chosen by half as long runs on other mushrooms. The paper has 64
minibatches after each of 50,000 interactions; here 20 follow every 20, for 5,000.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from booklib.data import Data, mushrooms, synthetic_mushrooms
from booklib.data.bandit import EAT, LEAVE, regrets, rewards
from booklib.models.networks import multilayer_perceptron
from booklib.rivals.variational import bound_gradient
from booklib.runs.results import checksum, circumstances
from booklib.runs.run import DivergedError
from experiments.study import Experiment, Options, grid, in_a_name, study
from sgmc.kernels import SGHMC
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.randomness import derived_seed, normal_block

FILE = "agaricus-lepiota.data"
# the unit of rewards, in which their prior and their noise are of order one
UNIT = 10.0
BLOCK, BUFFER, BATCH = 20, 4096, 64
DECAY, INITIAL_STD = 0.1, 0.05  # α of SGHMC, σ of Bayes by Backprop at the start
TUNING_SEED = 1_000  # gives a sequence of mushrooms that no result uses
EVERY = 50  # interactions from one point of a stored curve to the next


class Tables(NamedTuple):
    """The mushrooms that agents meet."""

    tables: dict[str, Data]  #: mushrooms by the name of their table, 1 for poisonous
    folder: Path  #: the folder of saved runs


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    agent: str
    interactions: int
    seed: int
    rate: float = 1e-3  #: learning rate of Adam; of SGHMC in units of σ²/N
    noise_variance: float = 0.1  #: σ² of a reward in units of 10, as the model has it
    steps: int = 20  #: minibatches after each block of interactions


def with_actions(contexts: Tensor) -> Tensor:
    """Put both actions, one-hot, beside contexts: ``(n, f)`` → ``(n, 2, f + 2)``."""
    actions = torch.eye(2).expand(len(contexts), 2, 2)
    return torch.cat([contexts[:, None].expand(-1, 2, -1), actions], -1)


def make_posterior(
    inputs: Tensor, targets: Tensor, noise_variance: float
) -> NetworkPosterior:
    """Make the posterior of a network's weights given inputs with actions, and rewards
    in units of 10: rewards N(f(x), σ²), weights N(0, 2/fan-in), biases N(0, 1).
    """
    network = multilayer_perceptron([inputs.shape[1], 100, 100, 1])
    variances = {
        name: 2 / weights.shape[1] if weights.ndim > 1 else 1.0
        for name, weights in network.named_parameters()
    }
    size, likelihood = min(BATCH, len(inputs)), Gaussian(noise_variance)
    return NetworkPosterior(
        network, inputs, targets, variances, size, likelihood=likelihood
    )


class Greedy:
    """An agent that acts by the network that Adam found at the mode of the posterior,
    but with a share ε of random actions.
    """

    averaged = 1  # an action uses the mean of so many networks

    def __init__(self, network, plan: Plan, generator: Generator, exploration=0.0):
        self.generator, self.exploration = generator, exploration
        start = network.initial_position(1, generator, scale=2**0.5)
        self.parameters = self.begin(start)
        self.optimiser = torch.optim.Adam(self.parameters, lr=plan.rate)

    def begin(self, position: Tensor) -> list[Tensor]:
        """List the parameters that Adam moves, given where the weights start, ``(1,
        dim)``.
        """
        return [position]

    def gradients(self, posterior, minibatch: Tensor) -> tuple[Tensor, ...]:
        """Compute the gradient in each parameter from a minibatch."""
        return (posterior.gradient_given(self.parameters[0], minibatch),)

    def draw(self, number: int) -> Tensor:
        """Return networks to act by, ``(number, dim)``."""
        return self.parameters[0].expand(number, -1)

    def learn(self, posterior: NetworkPosterior, first: int, number: int) -> None:
        """Take so many minibatches, the first of which has the number ``first``."""
        position = self.parameters[0]
        for minibatch in posterior.draw_minibatches(
            position, self.generator, first, number
        ):
            gradients = self.gradients(posterior, minibatch)
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                parameter.grad = gradient
            self.optimiser.step()


class BayesByBackprop(Greedy):
    """An agent that acts by a network drawn from N(μ, diag σ²), which Adam fits, or by
    several.
    """

    def __init__(self, network, plan: Plan, generator: Generator, averaged: int = 1):
        super().__init__(network, plan, generator)
        self.averaged = averaged

    def begin(self, position: Tensor) -> list[Tensor]:
        """List μ and ρ, with σ = log(1 + e^ρ)."""
        return [position, torch.full_like(position, INITIAL_STD).expm1().log()]

    def gradients(self, posterior, minibatch: Tensor) -> tuple[Tensor, ...]:
        """Compute the gradients in μ and ρ from a minibatch and one draw."""
        mean, rho = self.parameters
        std, normal = functional.softplus(rho), normal_block(mean, 1, self.generator)
        by_mean, by_std = bound_gradient(posterior, mean, std, normal, minibatch)
        return by_mean, by_std * rho.sigmoid()

    def draw(self, number: int) -> Tensor:
        """Draw networks, ``(number, dim)``."""
        mean, rho = self.parameters
        normal = normal_block(mean[0], number, self.generator)
        return mean + functional.softplus(rho) * normal


class Chain:
    """An agent that acts by the network of a chain of SGHMC, which goes on as the data
    change.
    """

    exploration, averaged = 0.0, 1

    def __init__(self, network: NetworkPosterior, plan: Plan, generator: Generator):
        self.plan, self.generator = plan, generator
        start = network.initial_position(1, generator, scale=2**0.5)
        self.state = self.kernel(1).init(network, start, generator)

    @property
    def parameters(self) -> list[Tensor]:
        """List the parameters that move."""
        return [self.state.position]

    def draw(self, number: int) -> Tensor:
        """Return the present network so many times, ``(number, dim)``."""
        return self.state.position.expand(number, -1)

    def learn(self, posterior: NetworkPosterior, first: int, number: int) -> None:
        """Take so many steps, which the state counts."""
        kernel = self.kernel(posterior.num_examples, number)
        self.state, _ = kernel.step(posterior, self.state, self.generator)

    def kernel(self, num_examples: int, num_steps: int = 1) -> SGHMC:
        """Make the kernel, whose η falls as the data come and the curvature grows."""
        rate = self.plan.rate * self.plan.noise_variance / num_examples
        return SGHMC.from_learning_rate(rate, DECAY, num_steps=num_steps)


# Each agent has these settings to choose from.
VARIANCES = (0.1, 0.03, 0.01)
ADAM = grid(rate=(1e-3, 3e-3), noise_variance=VARIANCES)
AGENTS = {
    "greedy": (Greedy, ADAM),
    "ε-greedy, 1 %": (partial(Greedy, exploration=0.01), ADAM),
    "ε-greedy, 5 %": (partial(Greedy, exploration=0.05), ADAM),
    "Bayes by Backprop": (BayesByBackprop, ADAM),
    "Bayes by Backprop, two averaged": (partial(BayesByBackprop, averaged=2), ADAM),
    "SGHMC": (Chain, grid(rate=(0.1, 0.3), noise_variance=VARIANCES)),
}


class Run:
    """One agent and one sequence of mushrooms and coins, which the seed chooses."""

    def __init__(self, plan: Plan, table: Data):
        self.plan, self.table = plan, table
        world = Generator().manual_seed(derived_seed(plan.seed, "mushrooms"))
        number = plan.interactions
        self.met = torch.randint(len(table.targets), (number,), generator=world)
        self.harmed = torch.rand(number, generator=world) < 0.5
        inputs = with_actions(table.inputs[:1])[:, LEAVE]
        self.network = make_posterior(inputs, torch.zeros(1), plan.noise_variance)
        self.generator = Generator().manual_seed(plan.seed)
        self.agent = AGENTS[plan.agent][0](self.network, plan, self.generator)
        self.actions = torch.empty(0, dtype=torch.int64)

    @torch.no_grad()
    def go(self) -> dict:
        """Meet the mushrooms block by block, learn after each; return the regret."""
        started, steps = time.process_time(), self.plan.steps
        for done, block in enumerate(self.met.split(BLOCK)):
            self.actions = torch.cat([self.actions, self.act(self.table.inputs[block])])
            self.agent.learn(self.posterior(), done * steps, steps)
            if not all(each.isfinite().all() for each in self.agent.parameters):
                raise DivergedError(
                    f"{self.plan.agent} left the finite numbers in block {done + 1}: "
                    "lower its learning rate"
                )
        return self.result(time.process_time() - started)

    def act(self, contexts: Tensor) -> Tensor:
        """Choose an action for each context ``(n, features)``: ``(n,)``."""
        agent, number = self.agent, len(contexts)
        inputs = with_actions(contexts).repeat_interleave(agent.averaged, 0)
        values = self.network.outputs(agent.draw(number * agent.averaged), inputs)
        best = values.view(number, agent.averaged, 2).mean(1).argmax(-1)
        by_chance = torch.rand(number, generator=self.generator) < agent.exploration
        random = torch.randint(2, (number,), generator=self.generator)
        return torch.where(by_chance, random, best)

    def posterior(self) -> NetworkPosterior:
        """Make the posterior given the last interactions."""
        kept = slice(max(0, len(self.actions) - BUFFER), len(self.actions))
        met, actions = self.met[kept], self.actions[kept]
        inputs = with_actions(self.table.inputs[met])[torch.arange(len(met)), actions]
        paid = rewards(actions, self.table.targets[met], self.harmed[kept])
        return make_posterior(inputs, paid / UNIT, self.plan.noise_variance)

    def result(self, seconds: float) -> dict:
        """Return the cumulative regret, and what it consists of."""
        poisonous = self.table.targets[self.met]
        regret = regrets(self.actions, poisonous).cumsum(0)[EVERY - 1 :: EVERY]
        eaten = self.actions == EAT
        return {
            "seed": self.plan.seed,
            "made": circumstances(),
            "processor_seconds": round(seconds, 1),
            "regret": regret.int().tolist(),
            "poisonous_eaten": int((eaten & (poisonous == 1)).sum()),
            "edible_left": int((~eaten & (poisonous == 0)).sum()),
        }


def prepare(options: Options) -> Tables:
    """Make up mushrooms, and load the real ones where they lie among the data."""
    tables = {"made up": synthetic_mushrooms()}
    if not options.small and (options.data / FILE).is_file():
        tables[FILE] = mushrooms(options.data / FILE)
    return Tables(tables, options.folder("bandit"))


def run(options: Options, prepared: Tables) -> Iterator[dict]:
    """Let each agent meet the mushrooms of each table, and yield after each run."""
    interactions = 500 if options.small else 5_000
    checksums = {name: checksum(table) for name, table in prepared.tables.items()}
    result = {"data_checksum": checksums, "interactions": interactions}
    result |= {"every": EVERY, "tables": {}}
    choices = {agent: settings for agent, (_, settings) in AGENTS.items()}
    for name, table in prepared.tables.items():

        def ran(agent: str, settings: dict, seed: int, table=table) -> dict:
            return Run(Plan(agent, interactions, seed, **settings), table).go()

        def tried(agent: str, number: int, settings: dict, table=table) -> dict:
            plan = Plan(agent, interactions // 2, TUNING_SEED, **settings)
            try:
                return {**settings, "regret": Run(plan, table).go()["regret"][-1]}
            except DivergedError:
                return {**settings, "regret": None, "diverged": True}

        size = {"interactions": interactions, "table": checksums[name]}
        given = range(options.seeds), tried, ran, lambda row: row["regret"]
        folder = prepared.folder / in_a_name(name)
        for found in study(choices, *given, folder, **size):
            result["tables"][name] = found
            yield result


EXPERIMENT = Experiment(prepare, run)
