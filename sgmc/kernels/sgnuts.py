"""Stochastic-gradient NUTS: paths of SGHMC steps, grown in both directions of time until they turn."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.kernels.doubling import Point, check_energy, grow_tree, remarks
from sgmc.kernels.metropolis import check_count, check_positive, draw_momentum, normal_like
from sgmc.matrices import Matrix, add_product_, apply, as_matrix, inverse, product, square_root, sum_of
from sgmc.potentials import Potential

_CHOICES = {"weights": ("uniform", "energy", "work"), "integrator": ("palindromic", "drift_kick"), "minibatch": ("fresh", "fixed")}


class SGNUTSState(NamedTuple):
    """A state of SGNUTS, and what its last step learned."""

    position: Tensor  #: (chains, dim)
    depth: Tensor  #: j of the last path of 2ʲ states, (chains,) int64
    diverged: Tensor  #: whether the last path left the finite numbers, (chains,) bool
    depth_limited: Tensor  #: whether it would have grown further, (chains,) bool
    num_gradients: Tensor  #: stochastic gradients of each chain so far, (chains,) int64


@dataclass(frozen=True, eq=False)
class SGNUTS:
    """NUTS on paths with friction and gradient noise: each step to the right is one of SGHMC, each step to the left its time reversal.

    Draw r ~ N(0, M), grow the path by doubling (:mod:`sgmc.kernels.doubling`) until it turns, and choose one of its states.
    A step to the right, with ``integrator="palindromic"``, is a half drift, a kick, and a half drift:
    θ ← θ + ½εM⁻¹r, then r' = r − ε∇Ũ(θ) − ½εCM⁻¹(r + r') + N(0, 2(C − B̂)ε), then θ ← θ + ½εM⁻¹r'.
    The friction acts on the mean of the momenta before and after: with B̂ = ½εV the kick without its force leaves N(0, M) as it is, and
    is its own time reversal. With ``integrator="drift_kick"`` it is the step of :class:`sgmc.kernels.SGHMC`:
    θ ← θ + εM⁻¹r, then r ← r − ε∇Ũ(θ) − εCM⁻¹r + N(0, 2(C − B̂)ε).
    A step to the left is flip ∘ step ∘ flip, where the flip reverses the momentum; for the drift and kick it reads
    θ ← θ − εM⁻¹r, r ← r + ε∇Ũ(θ) − εCM⁻¹r + N(0, 2(C − B̂)ε).

    The weights with which a state of the path is chosen are:

    * ``"uniform"``: all the same, as they must be if the path is one of a stationary and reversible process.
    * ``"energy"``: exp(−H), as in NUTS. On paths with noise this counts the energy twice, and the bias does not vanish with ε.
    * ``"work"``: exp(−W), where W adds up U(θ') − U(θ) − ∇U(θ½)ᵀ(θ' − θ) over the steps from the start, θ½ being the position of the kick.
      W is the energy that the integrator gained, without what friction and noise took and gave; with **exact** gradients, which are
      then used, the target is invariant at any step size (compare Riou-Durand and Vogrinc, 2022).

    Args:
        step_size: ε.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        noise_estimate: B̂, the estimate of B = ½εV; same forms; at most C.
        mass: M; same forms.
        max_depth: the path has at most 2^max_depth states.
        weights: ``"uniform"``, ``"energy"`` or ``"work"``; the last two evaluate the exact energy at every step.
        integrator: ``"palindromic"`` or ``"drift_kick"``; one gradient a step.
        minibatch: ``"fresh"`` at every step, or ``"fixed"`` for a whole tree.

    Raises:
        ValueError: if a parameter is out of its range, or the friction is below the noise estimate.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.potentials import DoubleWell, NoisyGradient
        >>> kernel = SGNUTS(step_size=0.1, friction=3.0, noise_estimate=0.2)
        >>> sample(kernel, NoisyGradient(DoubleWell(), 4.0), torch.zeros(4, 1), num_samples=10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float
    friction: Matrix
    noise_estimate: Matrix = 0.0
    mass: Matrix = 1.0
    max_depth: int = 10
    weights: str = "uniform"
    integrator: str = "palindromic"
    minibatch: str = "fresh"

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        check_count("max_depth", self.max_depth)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, but it is {getattr(self, name)!r}")
        for name in ("friction", "noise_estimate", "mass"):
            object.__setattr__(self, name, as_matrix(getattr(self, name), name, positive=name == "mass"))
        spare = sum_of(self.friction, product(-1.0, self.noise_estimate))
        try:
            injected = product(2 * self.step_size, as_matrix(spare, "friction - noise_estimate"))
        except ValueError as error:
            raise ValueError(
                f"friction must be at least the noise_estimate, in every direction: {error}. "
                "Raise the friction, take a smaller step_size or a larger batch"
            ) from error
        if self.weights == "work" and (self.integrator != "palindromic" or torch.as_tensor(self.noise_estimate).any()):
            raise ValueError(
                'weights="work" uses exact gradients and needs integrator="palindromic" and noise_estimate=0, but they are '
                f"{self.integrator!r} and {self.noise_estimate}"
            )
        inverse_mass = inverse(self.mass)
        damping = product(self.step_size, product(self.friction, inverse_mass))  # εCM⁻¹
        object.__setattr__(self, "_inverse_mass", inverse_mass)
        object.__setattr__(self, "_velocity", product(self.step_size, inverse_mass))  # εM⁻¹
        object.__setattr__(self, "_half_velocity", product(0.5 * self.step_size, inverse_mass))
        object.__setattr__(self, "_decay", product(-1.0, damping))
        object.__setattr__(self, "_half_decay", product(-0.5, damping))
        object.__setattr__(self, "_solve", inverse(sum_of(1.0, product(0.5, damping))))  # (1 + ½εCM⁻¹)⁻¹
        object.__setattr__(self, "_noise_root", square_root(injected))  # a root of 2(C − B̂)ε
        object.__setattr__(self, "_mass_root", square_root(self.mass))

    def init(self, potential: Potential, position: Tensor, generator: Generator) -> SGNUTSState:
        """Start at the given position ``(chains, dim)``; where energies are used, its energy must be finite."""
        if self.weights != "uniform":
            check_energy(potential.energy(position))
        depth = torch.zeros(position.shape[0], dtype=torch.int64, device=position.device)
        return SGNUTSState(position.clone(), depth, depth > 0, depth > 0, depth)

    def step(self, potential: Potential, state: SGNUTSState, generator: Generator) -> SGNUTSState:
        """Draw a momentum, grow a path from the state until it turns, and move to one of its states."""
        momentum = draw_momentum(state.position, self._mass_root, generator)
        energy = None if self.weights == "uniform" else potential.energy(state.position)
        start = Point(state.position, momentum, torch.zeros_like(momentum[:, 0]), energy)
        gradient_at = self._gradient_of_tree(potential, generator)
        advance = self._palindromic if self.integrator == "palindromic" else self._drift_kick

        def forward(point: Point) -> Point:
            position, momentum, gradient = advance(point, gradient_at, generator)
            if self.weights == "uniform":
                finite = torch.isfinite(momentum.sum(-1))  # a sum is finite only if all its terms are, and costs one pass
                return Point(position, momentum, torch.where(finite, start.log_weight, -math.inf))
            energy = potential.energy(position)
            if self.weights == "energy":
                gained = energy - start.energy + self._kinetic_energy(momentum) - self._kinetic_energy(start.momentum)
                return Point(position, momentum, -gained, energy)
            work = energy - point.energy - (gradient * (position - point.position)).sum(-1)
            return Point(position, momentum, point.log_weight - work, energy)

        tree = grow_tree(start, forward, self._inverse_mass, self.max_depth, generator)
        num_gradients = state.num_gradients + tree.num_steps
        return SGNUTSState(tree.chosen.position, tree.depth, tree.diverged, tree.depth_limited, num_gradients)

    def _palindromic(self, point: Point, gradient_at, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Half drift, kick with the friction at the mean of the old and the new momentum, half drift."""
        position = add_product_(point.position.clone(), self._half_velocity, point.momentum)
        gradient = gradient_at(position)
        momentum = add_product_(point.momentum.clone(), self._half_decay, point.momentum)
        momentum.sub_(gradient, alpha=self.step_size)
        momentum = apply(self._solve, add_product_(momentum, self._noise_root, normal_like(momentum, generator)))
        return add_product_(position, self._half_velocity, momentum), momentum, gradient

    def _drift_kick(self, point: Point, gradient_at, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Drift, then kick with the friction at the old momentum: the step of SGHMC."""
        position = add_product_(point.position.clone(), self._velocity, point.momentum)
        gradient = gradient_at(position)
        momentum = add_product_(point.momentum.clone(), self._decay, point.momentum)
        momentum.sub_(gradient, alpha=self.step_size)
        return position, add_product_(momentum, self._noise_root, normal_like(momentum, generator)), gradient

    def _gradient_of_tree(self, potential: Potential, generator: Generator):
        """Give the gradient with which a tree grows, a function of the position."""
        if self.weights == "work":
            return potential.gradient
        if self.minibatch == "fresh":
            return lambda position: potential.stochastic_gradient(position, generator)
        # The same seed at every call draws the same minibatch.
        seed = int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device))
        return lambda position: potential.stochastic_gradient(position, Generator(generator.device).manual_seed(seed))

    def _kinetic_energy(self, momentum: Tensor) -> Tensor:
        return 0.5 * (momentum * apply(self._inverse_mass, momentum)).sum(-1)

    def remarks(self, statistics: dict[str, Tensor]) -> list[str]:
        """Say what is wrong with a run, if anything is."""
        return remarks(statistics, self.max_depth)
