"""Stochastic-gradient NUTS: paths of SGHMC steps, grown until they turn."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from sgmc.checks import check_choice, check_count
from sgmc.integrators import draw_momentum, kinetic_energy
from sgmc.kernels import trees
from sgmc.kernels.base import WithFriction
from sgmc.kernels.metropolis import Guarded
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import Matrix, MatrixLike, addmv_
from sgmc.noise import spare
from sgmc.randomness import normal_like


class SGNUTSState(NamedTuple):
    """A state of SGNUTS.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> kernel = SGNUTS(0.1, friction=1.0)
        >>> kernel.init(Gaussian.standard(1), torch.ones(2, 1), torch.Generator())
        SGNUTSState(position=tensor([[1.],
                [1.]]), num_trees=0, num_gradients=tensor([0, 0]))
    """

    position: Tensor  #: (chains, dim)
    num_trees: int  #: trees grown so far
    num_gradients: Tensor  #: stochastic gradients of each chain so far, (chains,) int64


class SGNUTSInfo(NamedTuple):
    """Information about a step of SGNUTS.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> kernel = SGNUTS(0.8, friction=1.0)
        >>> draws = sample(kernel, Gaussian.standard(1), torch.ones(2, 1), 3)
        >>> sorted(draws.statistics) == sorted(SGNUTSInfo._fields)
        True
    """

    depth: Tensor  #: j of the path of 2ʲ states, (chains,) int64
    diverged: Tensor  #: whether the path left the finite numbers, (chains,) bool
    depth_limited: Tensor  #: whether it would have grown further, (chains,) bool
    num_gradients: Tensor  #: stochastic gradients of each chain so far, (chains,) int64


@dataclass(frozen=True, eq=False)
class SGNUTS(WithFriction[SGNUTSState]):
    """NUTS on paths with friction and gradient noise: the steps are those of SGHMC to
    the right, and the same with reversed momenta to the left.

    Draw r ~ N(0, M), grow the path by doubling (:mod:`sgmc.kernels.trees`) until it
    turns, and choose one of its states. A step to the right, with
    ``integrator="palindromic"``, is θ ← θ + ½εM⁻¹r, then r' = r − ε∇Ũ(θ) − ½εCM⁻¹(r +
    r') + N(0, 2(C − B̂)ε), then θ ← θ + ½εM⁻¹r': with B̂ = ½εV its kick without the
    force leaves N(0, M) as it is, and is its own time reversal. With
    ``integrator="drift_kick"`` it is the step of :class:`sgmc.kernels.SGHMC`. A step to
    the left is flip ∘ step ∘ flip, where the flip reverses the momentum.

    The weights with which a state of the path is chosen are:

    * ``"uniform"``: all the same, as they must be if the path is one of a stationary
      and reversible process.
    * ``"energy"``: exp(−H), as in NUTS. On paths with noise this counts the energy
      twice, and the bias does not vanish with ε.
    * ``"work"``: exp(−W), where W, the energy that the integrator gained, adds up U(θ')
      − U(θ) − ∇U(θ½)ᵀ(θ' − θ) over the steps from the start, θ½ being the position of
      the kick; with **exact** gradients, which are then used, the target is invariant
      at any step size (compare Riou-Durand and Vogrinc, 2022).

    The k-th tree counts its steps from k·2^max_depth on, so that the minibatch rule
    ``Held(2**max_depth)`` gives each tree one minibatch.

    Args:
        step_size: ε.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        noise_estimate: B̂, of B = ½εV; same forms, symmetric, at most C.
        mass: M; same forms.
        max_depth: the path has at most 2^max_depth states.
        weights: as above; the last two evaluate the exact energy at every step.
        integrator: as above; one gradient a step.

    Raises:
        ValueError: if a parameter is out of its range, or the friction is below the
            noise estimate.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = SGNUTS(step_size=0.1, friction=3.0, noise_estimate=0.2)
        >>> noisy = NoisyGradient(DoubleWell(), 4.0)
        >>> sample(kernel, noisy, torch.zeros(4, 1), num_samples=10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float
    friction: MatrixLike
    noise_estimate: MatrixLike = 0.0
    mass: MatrixLike = 1.0
    max_depth: int = 10
    weights: str = "uniform"
    integrator: str = "palindromic"

    def __post_init__(self):
        super().__post_init__()
        check_count("max_depth", self.max_depth)
        check_choice("weights", self.weights, ("uniform", "energy", "work"))
        check_choice("integrator", self.integrator, ("palindromic", "drift_kick"))
        self._injected  # raises an error if the estimate exceeds C
        given = self.integrator, Matrix(self.noise_estimate).number
        if self.weights == "work" and given != ("palindromic", 0):
            raise ValueError(
                'weights="work" uses exact gradients and needs '
                'integrator="palindromic" and noise_estimate=0, but they are '
                f"{self.integrator!r} and {self.noise_estimate}"
            )

    @cached_property
    def _injected(self) -> Matrix:  # 2(C − B̂)ε
        left = spare(1.0, self._friction, self.noise_estimate, "friction")
        return 2 * self.step_size * left

    @cached_property
    def _halves(self) -> tuple[float, Matrix, Matrix, float]:
        """Compute the time t of the first drift, the frictions 1 − tCM⁻¹ before the
        kick and (1 + tCM⁻¹)⁻¹ after it, and the time of the last drift.
        """
        whole, one = self.integrator == "drift_kick", Matrix(1.0)
        time = self.step_size if whole else self.step_size / 2
        damping = time * (self._friction @ self._mass.inverse)
        if whole:
            return time, one - damping, one, 0.0
        return time, one - damping, (one + damping).inverse, time

    def init(self, potential, position, generator) -> SGNUTSState:
        """Start at positions ``(chains, dim)``, of finite energies if they count."""
        self.check_matrices(position=position)
        if self.weights != "uniform":
            trees.check_energy(potential.energy(position))
        none = torch.zeros(len(position), dtype=torch.int64, device=position.device)
        return SGNUTSState(position.clone(), 0, none)

    def step(self, potential, state, generator) -> tuple[SGNUTSState, SGNUTSInfo]:
        """Draw a momentum, grow a path until it turns, move to one of its states."""
        step_size, mass, inverse_mass = self.step_size, self._mass, self._mass.inverse
        first, before, after, last = self._halves
        potential = Guarded(potential, state.position)
        momentum = draw_momentum(state.position, mass, generator)
        weighed, even = self.weights != "uniform", torch.zeros_like(momentum[:, 0])
        known = (potential.energy(state.position),) if weighed else ()
        start = Point(state.position, momentum, even, known)
        steps = count(state.num_trees * 2**self.max_depth)

        def forward(point: Point) -> Point:
            position, momentum = point.position.clone(), before @ point.momentum
            addmv_(position, inverse_mass, point.momentum, first)
            if self.weights == "work":
                gradient = potential.gradient(position)
            else:
                step = next(steps)
                gradient = potential.stochastic_gradient(position, generator, step)
            momentum.sub_(gradient, alpha=step_size)
            addmv_(momentum, self._injected.root, normal_like(momentum, generator))
            momentum = after @ momentum
            addmv_(position, inverse_mass, momentum, last)
            if not weighed:
                # A sum is finite only if all its terms are, and costs one pass.
                finite = momentum.sum(-1).isfinite()
                return Point(position, momentum, torch.where(finite, even, -math.inf))
            energy = potential.energy(position)
            if self.weights == "energy":
                gained = energy - start.known[0] + kinetic_energy(momentum, mass)
                gained -= kinetic_energy(start.momentum, mass)
                return Point(position, momentum, -gained, (energy,))
            work = energy - point.known[0]
            work -= (gradient * (position - point.position)).sum(-1)
            return Point(position, momentum, point.log_weight - work, (energy,))

        tree = grow_tree(start, forward, inverse_mass, self.max_depth, generator)
        num_gradients = state.num_gradients + tree.num_steps
        info = SGNUTSInfo(tree.depth, tree.diverged, tree.depth_limited, num_gradients)
        position, number = tree.chosen.position, state.num_trees + 1
        return SGNUTSState(position, number, num_gradients), info

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report the problems of a run, if there are any."""
        return trees.diagnose(statistics, self.max_depth)
