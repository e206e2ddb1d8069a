"""Trees as the program of the reproduction report grows them: Pyro's NUTS, altered."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.kernels.sgnuts import SGNUTSInfo
from sgmc.potentials import Potential
from sgmc.randomness import normal_like, uniform_like

LIMIT = 1_000.0  #: a state has diverged if its energy exceeds the start's by more


class TreeState(NamedTuple):
    """A state between two trees."""

    position: Tensor  #: (1, dim)
    momentum: Tensor  #: the next tree starts with it, (1, dim)
    energy: Tensor  #: the remembered U at the position, (1,)
    num_trees: int  #: trees grown so far
    num_gradients: Tensor  #: gradients so far, (1,) int64


class Half(NamedTuple):
    """The half of a tree that is new."""

    position: Tensor  #: position of its last state
    first: Tensor  #: momentum of its first state
    last: Tensor  #: momentum of its last state
    chosen: Tensor  #: the position that was chosen from it
    energy: Tensor  #: U there
    log_weight: Tensor  #: logarithm of the sum of e⁻ᴴ, relative to the start's
    total: Tensor  #: sum of its momenta
    turning: bool
    diverging: bool
    size: int  #: number of its states


@dataclass(frozen=True)
class ProgramTrees:
    """SGNUTS as the program of Adam-Day et al. (2022) has it, ``kernel/sgnuts.py`` at
    ``2ef7428``: the settings and the kernel, for one chain with one minibatch a tree.

    A step to the right is θ ← θ + εr, r ← r − ε∇U(θ) − αr + N(0, 2αT), and to the left
    the same with reversed momenta, ε² being the learning rate. Three rules are its own:

    * A new half that does not turn always replaces the choice; the weights e⁻ᴴ choose
      inside of it only.
    * All trees start with one momentum, unless it is drawn afresh.
    * A state whose energy exceeds the start's by :data:`LIMIT` cuts its half off there,
      and no more: the choice is made among what there is, and the tree goes on. The
      start's energy is remembered from the tree before, and its minibatch.

    Args:
        learning_rate: η.
        momentum_decay: α.
        temperature: T; 2α where a program takes the variance 2α for a standard
            deviation.
        weights: what a file calls this rule.
        resample_every: number of trees from one fresh momentum to the next; None for
            never.
        held: whether a tree has one minibatch.
        max_depth: the largest number of doublings.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> kernel, generator = (
        ...     ProgramTrees(0.01, 0.3),
        ...     torch.Generator().manual_seed(0),
        ... )
        >>> state = kernel.init(Gaussian.standard(2), torch.zeros(1, 2), generator)
        >>> kernel.step(Gaussian.standard(2), state, generator)[0].position.shape
        torch.Size([1, 2])
    """

    learning_rate: float
    momentum_decay: float
    temperature: float = 1.0
    weights: str = "the program's rule"
    resample_every: int | None = None
    held: bool = True
    max_depth: int = 10

    def make(self, rate: float) -> "ProgramTrees":
        """Make the kernel with a learning rate."""
        return replace(self, learning_rate=rate)

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> TreeState:
        """Start at a position ``(1, dim)``, with a momentum from N(0, 1)."""
        momentum = normal_like(position, generator)
        none = torch.zeros(1, dtype=torch.int64, device=position.device)
        return TreeState(position, momentum, potential.energy(position), 0, none)

    def step(
        self, potential: Potential, state: TreeState, generator: Generator
    ) -> tuple[TreeState, SGNUTSInfo]:
        """Grow a tree, and move to its end; the momentum that comes back is the one
        with which it started.
        """
        step_size, decay = math.sqrt(self.learning_rate), self.momentum_decay
        scale = math.sqrt(2 * decay * self.temperature)
        number, momentum = state.num_trees + 1, state.momentum
        if self.resample_every and number % self.resample_every == 0:
            momentum = normal_like(momentum, generator)
        start = state.energy + 0.5 * momentum.square().sum(-1)

        def coin() -> float:
            return float(uniform_like(start, generator))

        def leaf(position: Tensor, momentum: Tensor, way: int) -> Half:
            position = position + way * step_size * momentum
            force = -way * step_size * potential.gradient(position)
            momentum = (1 - decay) * momentum + force
            momentum += scale * normal_like(momentum, generator)
            energy = potential.energy(position)
            gained = energy + 0.5 * momentum.square().sum(-1) - start
            gained = gained.nan_to_num(math.inf, math.inf)
            over = bool(gained > LIMIT)
            both = momentum, momentum
            return Half(
                position, *both, position, energy, -gained, momentum, False, over, 1
            )

        def grow(position: Tensor, momentum: Tensor, way: int, depth: int) -> Half:
            if depth == 0:
                return leaf(position, momentum, way)
            one = grow(position, momentum, way, depth - 1)
            if one.turning or one.diverging:
                return one
            two = grow(one.position, one.last, way, depth - 1)
            log_weight = torch.logaddexp(one.log_weight, two.log_weight)
            better = two if coin() < (two.log_weight - log_weight).exp() else one
            total = one.total + two.total
            turning = two.turning or turns(total, one.first, two.last)
            return two._replace(
                first=one.first,
                chosen=better.chosen,
                energy=better.energy,
                log_weight=log_weight,
                total=total,
                turning=turning,
                size=one.size + two.size,
            )

        ends = {way: (state.position, momentum) for way in (1, -1)}
        total, depth, size, diverged, turned = momentum, 0, 0, False, False
        chosen, energy = state.position, state.energy
        while depth < self.max_depth and not turned:
            way = 1 if coin() < 0.5 else -1
            half = grow(*ends[way], way, depth)
            ends[way] = half.position, half.last
            size, diverged = size + half.size, diverged or half.diverging
            if turned := half.turning:
                break
            depth, total = depth + 1, total + half.total
            chosen, energy = half.chosen, half.energy
            turned = turns(total, ends[-1][1], ends[1][1])

        num_gradients = state.num_gradients + size
        whole = (torch.tensor([x]) for x in (depth, diverged, not turned))
        state = TreeState(chosen, momentum, energy, number, num_gradients)
        return state, SGNUTSInfo(*whole, num_gradients)


def turns(total: Tensor, one: Tensor, other: Tensor) -> bool:
    """Tell whether a path turns, as Pyro does: the sum of its momenta, those at
    the ends counted half, has no positive product with one of them.
    """
    middle = total - 0.5 * (one + other)
    return bool((one * middle).sum() <= 0 or (other * middle).sum() <= 0)
