"""A contextual bandit: to eat a mushroom or to leave it, by Thompson sampling and by ε-greedy rules.

Eating an edible mushroom earns 5, and a poisonous one −35 or 5 by the toss of a coin; leaving it earns 0 (Blundell et al., 2015, Section 5.3).
An agent is shown mushrooms drawn with replacement from a table. It has a network with two hidden layers of 100 rectified linear units, whose
inputs are the mushroom and the action and whose output is the expected reward, and keeps the last 4,096 interactions. Agents differ in how they
act: by the network at the mode of the posterior, by that but now and then at random, or by a network drawn from an approximate posterior.

The paper has 64 minibatches of 64 after each of 50,000 interactions. Here an agent meets 8 mushrooms, then takes 16 minibatches of 64, and so on
for 5,000 interactions. The table is ``agaricus-lepiota.data`` if it lies in the folder of the data, and otherwise a made-up one of the same
shape. The small version has 240 interactions.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from experiments.options import DivergedError, Options
from experiments.provenance import checksum, circumstances
from sgmc.approximations.variational import bound_gradient
from sgmc.checkpoints import Checkpoint
from sgmc.datasets import Data, mushrooms, synthetic_mushrooms
from sgmc.kernels import SGHMC
from sgmc.networks import multilayer_perceptron
from sgmc.posteriors import Gaussian, NetworkPosterior
from sgmc.randomness import derived_seed, normal_block
from sgmc.sampling import drive

FILE = "agaricus-lepiota.data"
LEAVE, EAT = 0, 1
GOOD, BAD = 5.0, -35.0  # what eating may earn
UNIT = 10.0  # networks are trained on rewards in this unit, in which their prior and their noise are of order one
BLOCK, BUFFER, BATCH = 8, 4096, 64
DECAY = 0.1  # α of SGHMC
INITIAL_STD = 0.05  # σ of Bayes by Backprop at the start
TUNING_SEED = 1_000  # a sequence of mushrooms that no result is from
POINTS = 100  # of a stored curve


class Mushrooms(NamedTuple):
    """A table, and what is to be done with it."""

    table: Data  #: mushrooms, 1 for poisonous
    name: str  #: where they are from
    folder: Path  #: where runs are saved


@dataclass(frozen=True)
class Plan:
    """The settings of a run: an agent, its learning rate, a sequence of mushrooms."""

    agent: str
    rate: float
    seed: int
    interactions: int
    steps: int = 16  #: minibatches after each block of interactions

    @property
    def blocks(self) -> int:
        """Number of blocks of interactions."""
        return self.interactions // BLOCK


def rewards(actions: Tensor, poisonous: Tensor, harmed: Tensor) -> Tensor:
    """Pay for actions: nothing for leaving, 5 for eating, and −35 if the mushroom is poisonous and the coin says harm.

    Example:
        >>> rewards(torch.tensor([LEAVE, EAT, EAT, EAT]), torch.tensor([1, 0, 1, 1]), torch.tensor([True, True, False, True]))
        tensor([  0.,   5.,   5., -35.])
    """
    eaten = torch.where((poisonous == 1) & harmed, BAD, GOOD)
    return torch.where(actions == EAT, eaten, 0.0)


def expected_rewards(actions: Tensor, poisonous: Tensor) -> Tensor:
    """Average the rewards over the coin: 0, 5 and −15.

    Example:
        >>> expected_rewards(torch.tensor([LEAVE, EAT, EAT]), torch.tensor([1, 0, 1]))
        tensor([  0.,   5., -15.])
    """
    tails, heads = (rewards(actions, poisonous, torch.full_like(poisonous, side, dtype=torch.bool)) for side in (False, True))
    return (tails + heads) / 2


def regrets(actions: Tensor, poisonous: Tensor) -> Tensor:
    """Compute what an oracle that knows each mushroom expects to earn more than the actions.

    Example:
        >>> regrets(torch.tensor([LEAVE, LEAVE, EAT, EAT]), torch.tensor([0, 1, 0, 1]))
        tensor([ 5.,  0.,  0., 15.])
    """
    best = torch.where(poisonous == 1, LEAVE, EAT)
    return expected_rewards(best, poisonous) - expected_rewards(actions, poisonous)


def with_actions(contexts: Tensor) -> Tensor:
    """Put each of the two actions, one-hot, beside each context: ``(n, features)`` → ``(n, 2, features + 2)``."""
    actions = torch.eye(2).expand(len(contexts), 2, 2)
    return torch.cat([contexts[:, None].expand(-1, 2, -1), actions], -1)


def make_posterior(inputs: Tensor, targets: Tensor) -> NetworkPosterior:
    """Make the posterior of a network's weights given inputs with actions, and rewards in units of 10.

    The reward is N(f(x), 10²), the weights into a layer are N(0, 2/fan-in) and the biases N(0, 1).
    """
    network = multilayer_perceptron([inputs.shape[1], 100, 100, 1])
    variances = {name: 2 / weights.shape[1] if weights.ndim > 1 else 1.0 for name, weights in network.named_parameters()}
    return NetworkPosterior(network, inputs, targets, variances, min(BATCH, len(inputs)), likelihood=Gaussian(1.0))


class Agent:
    """What an agent is: networks to act by, and how it learns.

    Args:
        position: the weights at the start, ``(1, dim)``.
        rate: its learning rate.
        generator: the source of randomness.
    """

    exploration = 0.0  # share of the actions that are by chance
    averaged = 1  # networks of which an action takes the mean

    def __init__(self, position: Tensor, rate: float, generator: Generator):
        self.generator = generator
        self.parameters = self.begin(position)
        self.optimiser = torch.optim.Adam(self.parameters, lr=rate)

    def begin(self, position: Tensor) -> list[Tensor]:
        """List what Adam moves."""
        return [position.clone()]

    def gradients(self, posterior: NetworkPosterior, noise: Tensor) -> tuple[Tensor, ...]:
        """Compute the gradient in each parameter from a minibatch."""
        return (posterior.gradient_given(self.parameters[0], noise),)

    def draw(self, number: int) -> Tensor:
        """Give networks to act by, ``(number, dim)``."""
        return self.parameters[0].expand(number, -1)

    def learn(self, posterior: NetworkPosterior, first: int, number: int) -> None:
        """Take so many minibatches, the first of which has the number ``first``."""
        for noise in posterior.draw_noise(self.parameters[0], self.generator, first, number):
            for parameter, gradient in zip(self.parameters, self.gradients(posterior, noise), strict=True):
                parameter.grad = gradient
            self.optimiser.step()

    def content(self) -> dict:
        """Give all that is needed to go on."""
        return {"parameters": self.parameters, "optimiser": self.optimiser.state_dict()["state"]}

    def restore(self, content: dict) -> None:
        """Go back to what ``content`` gave."""
        for parameter, saved in zip(self.parameters, content["parameters"], strict=True):
            parameter.copy_(saved)
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": content["optimiser"]})


class Greedy(Agent):
    """Acts by the network that Adam has found."""


class Greedy1(Agent):
    """The same, but one action in a hundred is by chance."""

    exploration = 0.01


class Greedy5(Agent):
    """The same, but five in a hundred are by chance."""

    exploration = 0.05


class BayesByBackprop(Agent):
    """Acts by a network drawn from N(μ, diag σ²) for each mushroom, the nearest such law to the posterior."""

    def begin(self, position: Tensor) -> list[Tensor]:
        """List μ and ρ, with σ = log(1 + e^ρ)."""
        return [position.clone(), torch.full_like(position, INITIAL_STD).expm1().log()]

    def gradients(self, posterior: NetworkPosterior, noise: Tensor) -> tuple[Tensor, ...]:
        """Compute the gradients in μ and ρ from a minibatch and one draw of the weights."""
        mean, rho = self.parameters
        by_mean, by_std = bound_gradient(posterior, mean, functional.softplus(rho), normal_block(mean, 1, self.generator), noise)
        return by_mean, by_std * rho.sigmoid()

    def draw(self, number: int) -> Tensor:
        """Draw networks, ``(number, dim)``."""
        mean, rho = self.parameters
        return mean + functional.softplus(rho) * normal_block(mean[0], number, self.generator)


class TwoAveraged(BayesByBackprop):
    """The same, but acts by the mean of two networks."""

    averaged = 2


class Chain(Agent):
    """Acts by the network at which a chain of SGHMC stands, whose posterior changes as data come."""

    def __init__(self, position: Tensor, rate: float, generator: Generator):
        self.generator, self.rate, self.state = generator, rate / BUFFER, None
        self.position = position

    def draw(self, number: int) -> Tensor:
        """Give the present network, ``(number, dim)``."""
        return self.position.expand(number, -1)

    def learn(self, posterior: NetworkPosterior, first: int, number: int) -> None:
        """Take so many steps."""
        kernel = SGHMC.from_learning_rate(self.rate, DECAY, num_steps=number)
        state = kernel.init(posterior, self.position, self.generator) if self.state is None else self.state
        self.state, _ = kernel.step(posterior, state, self.generator)
        self.position = self.state.position

    def content(self) -> dict:
        """Give all that is needed to go on."""
        return {"position": self.position, "state": None if self.state is None else tuple(self.state)}

    def restore(self, content: dict) -> None:
        """Go back to what ``content`` gave."""
        self.position, state = content["position"], content["state"]
        self.state = None if state is None else SGHMCState(*state)
