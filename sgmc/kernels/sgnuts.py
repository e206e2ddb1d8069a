"""Stochastic-gradient NUTS: paths of SGHMC steps, grown in both directions of time
until they turn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.checks import check_choice, check_count, check_dims, check_positive
from sgmc.integrators import draw_momentum, kinetic_energy
from sgmc.kernels import trees
from sgmc.kernels.base import Kernel
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix, as_matrix
from sgmc.potentials import Potential
from sgmc.splittings import flows


class SGNUTSState(NamedTuple):
    """A state of SGNUTS."""

    position: Tensor  #: (chains, dim)
    num_trees: int  #: trees grown so far
    num_gradients: Tensor  #: stochastic gradients of each chain so far, (chains,) int64


class SGNUTSInfo(NamedTuple):
    """What a step of SGNUTS learned."""

    depth: Tensor  #: j of the path of 2ʲ states, (chains,) int64
    diverged: Tensor  #: whether the path left the finite numbers, (chains,) bool
    depth_limited: Tensor  #: whether it would have grown further, (chains,) bool
    num_gradients: Tensor  #: stochastic gradients of each chain so far, (chains,) int64


@dataclass(frozen=True, eq=False)
class SGNUTS(Kernel):
    """NUTS on paths with friction and gradient noise: steps of SGHMC to the right, and
    the same with reversed momenta to the left.

    Draw r ~ N(0, M), grow the path by doubling (:mod:`sgmc.kernels.trees`) until it
    turns, and choose one of its states. A step to the right, with
    ``integrator="palindromic"``, is a half drift, a kick, and a half drift: θ ← θ +
    ½εM⁻¹r, then r' = r − ε∇Ũ(θ) − ½εCM⁻¹(r + r') + N(0, 2(C − B̂)ε), then θ ← θ +
    ½εM⁻¹r'. The friction acts on the mean of the momenta before and after: with B̂ =
    ½εV the kick without its force leaves N(0, M) as it is, and is its own time
    reversal. With ``integrator="drift_kick"`` it is the step of
    :class:`sgmc.kernels.SGHMC`: θ ← θ + εM⁻¹r, then r ← r − ε∇Ũ(θ) − εCM⁻¹r + N(0, 2(C
    − B̂)ε). A step to the left is flip ∘ step ∘ flip, where the flip reverses the
    momentum; for the drift and kick it reads θ ← θ − εM⁻¹r, r ← r + ε∇Ũ(θ) − εCM⁻¹r +
    N(0, 2(C − B̂)ε). For the palindromic step it is the time reversal, up to the work W
    below.

    The weights with which a state of the path is chosen are:

    * ``"uniform"``: all the same, as they must be if the path is one of a stationary
      and reversible process.
    * ``"energy"``: exp(−H), as in NUTS. On paths with noise this counts the energy
      twice, and the bias does not vanish with ε.
    * ``"work"``: exp(−W), where W adds up U(θ') − U(θ) − ∇U(θ½)ᵀ(θ' − θ) over the steps
      from the start, θ½ being the position of the kick. W is the energy that the
      integrator gained, without what friction and noise took and gave; with **exact**
      gradients, which are then used, the target is invariant at any step size (compare
      Riou-Durand and Vogrinc, 2022).

    The k-th tree takes the steps from k·2^max_depth on in the count by which
    minibatches are chosen, so that the rule ``Held(2**max_depth)`` of
    :mod:`sgmc.minibatches` gives each tree one minibatch.

    Args:
        step_size: ε.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        noise_estimate: B̂, the estimate of B = ½εV; same forms, symmetric, at most C.
        mass: M; same forms.
        max_depth: the path has at most 2^max_depth states.
        weights: ``"uniform"``, ``"energy"`` or ``"work"``; the last two evaluate the
            exact energy at every step.
        integrator: ``"palindromic"`` or ``"drift_kick"``; one gradient a step.

    Raises:
        ValueError: if a parameter is out of its range, or the friction is below the
            noise estimate.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = SGNUTS(step_size=0.1, friction=3.0, noise_estimate=0.2)
        >>> sample(
        ...     kernel,
        ...     NoisyGradient(DoubleWell(), 4.0),
        ...     torch.zeros(4, 1),
        ...     num_samples=10,
        ... ).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float
    friction: float | Tensor | Matrix
    noise_estimate: float | Tensor | Matrix = 0.0
    mass: float | Tensor | Matrix = 1.0
    max_depth: int = 10
    weights: str = "uniform"
    integrator: str = "palindromic"

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        check_count("max_depth", self.max_depth)
        check_choice("weights", self.weights, ("uniform", "energy", "work"))
        check_choice("integrator", self.integrator, ("palindromic", "drift_kick"))
        friction, estimate = (
            as_matrix(self.friction, "friction"),
            as_matrix(self.noise_estimate, "noise_estimate", signed=True),
        )
        self._mass  # refuses what is no mass
        check_dims(
            friction=self.friction, noise_estimate=self.noise_estimate, mass=self.mass
        )
        try:
            as_matrix(friction - estimate, "friction - noise_estimate")
        except ValueError as error:
            raise ValueError(
                "friction must be at least the noise_estimate, in every direction: "
                f"{error}. "
                "Raise the friction, take a smaller step_size or a larger batch"
            ) from error
        if self.weights == "work" and (
            self.integrator != "palindromic" or any(estimate.eigenvalues)
        ):
            raise ValueError(
                'weights="work" uses exact gradients and needs '
                'integrator="palindromic" and noise_estimate=0, but they are '
                f"{self.integrator!r} and {self.noise_estimate}"
            )

    @cached_property
    def _mass(self) -> Matrix:
        return as_matrix(self.mass, "mass", positive=True)

    @cached_property
    def splitting(self) -> Sequence[flows.Flow]:
        """The step to the right."""
        make = flows.palindromic if self.integrator == "palindromic" else flows.sghmc
        return make(self.step_size, self.friction, self.noise_estimate, self.mass)

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> SGNUTSState:
        """Start at the given position ``(chains, dim)``; where energies are used, its
        energy must be finite.
        """
        check_dims(
            position=position,
            friction=self.friction,
            noise_estimate=self.noise_estimate,
            mass=self.mass,
        )
        if self.weights != "uniform":
            trees.check_energy(potential.energy(position))
        return SGNUTSState(
            position.clone(),
            0,
            torch.zeros(len(position), dtype=torch.int64, device=position.device),
        )

    def step(
        self,
        potential: Potential,
        state: SGNUTSState,
        generator: Generator,
    ) -> tuple[SGNUTSState, SGNUTSInfo]:
        """Draw a momentum, grow a path until it turns, and move to one of its
        states.
        """
        momentum = draw_momentum(state.position, self._mass, generator)
        energy = None if self.weights == "uniform" else potential.energy(state.position)
        start = Point(
            state.position, momentum, torch.zeros_like(momentum[:, 0]), energy
        )
        steps = count(state.num_trees * 2**self.max_depth)
        seen = [momentum]  # the last gradient, where the work needs it

        def gradient(position: Tensor) -> Tensor:
            if self.weights == "work":
                seen[0] = potential.gradient(position)
            else:
                seen[0] = potential.stochastic_gradient(
                    position, generator, next(steps)
                )
            return seen[0]

        def forward(point: Point) -> Point:
            position, momentum = point.position.clone(), point.momentum.clone()
            flows.advance(self.splitting, position, momentum, gradient, generator)
            if self.weights == "uniform":
                # A sum is finite only if all its terms are, and costs one pass.
                finite = torch.isfinite(momentum.sum(-1))
                log_weight = torch.where(finite, start.log_weight, -math.inf)
                return Point(position, momentum, log_weight)
            energy = potential.energy(position)
            if self.weights == "energy":
                gained = energy - start.energy + kinetic_energy(momentum, self._mass)
                gained -= kinetic_energy(start.momentum, self._mass)
                return Point(position, momentum, -gained, energy)
            work = (
                energy - point.energy - (seen[0] * (position - point.position)).sum(-1)
            )
            return Point(position, momentum, point.log_weight - work, energy)

        tree = grow_tree(start, forward, self._mass.inverse, self.max_depth, generator)
        num_gradients = state.num_gradients + tree.num_steps
        info = SGNUTSInfo(tree.depth, tree.diverged, tree.depth_limited, num_gradients)
        return SGNUTSState(
            tree.chosen.position, state.num_trees + 1, num_gradients
        ), info

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Say what is wrong with a run, if anything is."""
        return trees.diagnose(statistics, self.max_depth)
