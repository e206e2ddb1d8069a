"""The no-U-turn sampler."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.kernels.doubling import Point, check_energy, grow_tree, remarks
from sgmc.kernels.metropolis import check_count, check_positive, draw_momentum
from sgmc.matrices import Matrix, add_product_, apply, as_matrix, inverse, product, square_root
from sgmc.potentials import Potential


class NUTSState(NamedTuple):
    """A state of NUTS, and what its last step learned."""

    position: Tensor  #: (chains, dim)
    gradient: Tensor  #: ∇U at the position, (chains, dim)
    energy: Tensor  #: U at the position, (chains,)
    acceptance: Tensor  #: mean Metropolis probability of the states of the last tree, (chains,)
    depth: Tensor  #: j of its path of 2ʲ states, (chains,) int64
    diverged: Tensor  #: whether the energy error became too large, (chains,) bool
    depth_limited: Tensor  #: whether the path would have grown further, (chains,) bool
    num_gradients: Tensor  #: gradient evaluations of each chain so far, (chains,) int64


@dataclass(frozen=True, eq=False)
class NUTS:
    """The no-U-turn sampler (Hoffman and Gelman, 2014) with multinomial weights (Betancourt, 2017, Appendix A).

    Draw r ~ N(0, M). Double the path of leapfrog steps from (θ, r), each time forwards or backwards in time at random, until a sub-tree
    of it makes a U-turn, ρᵀM⁻¹r ≤ 0 at one of its ends, where ρ is the sum of its momenta. Choose a state of the path with weights
    exp(−H), states far from the start being favoured. See :mod:`sgmc.kernels.doubling`.

    The chains take their steps together, so that a call costs what the deepest tree of all the chains costs.

    Args:
        step_size: ε.
        mass: M, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        max_depth: the path has at most 2^max_depth states.
        max_energy_error: a path that gains more energy than this from its start diverges, and is not followed further.

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.potentials import Gaussian
        >>> draws = sample(NUTS(step_size=0.5), Gaussian.standard(2), torch.zeros(4, 2), num_samples=10)
        >>> draws.samples.shape, draws.statistics["depth"].shape
        (torch.Size([10, 4, 2]), torch.Size([10, 4]))
    """

    step_size: float
    mass: Matrix = 1.0
    max_depth: int = 10
    max_energy_error: float = 1000.0

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        check_count("max_depth", self.max_depth)
        check_positive("max_energy_error", self.max_energy_error)
        object.__setattr__(self, "mass", as_matrix(self.mass, "mass", positive=True))
        object.__setattr__(self, "_mass_root", square_root(self.mass))
        object.__setattr__(self, "_inverse_mass", inverse(self.mass))
        object.__setattr__(self, "_velocity", product(self.step_size, self._inverse_mass))  # εM⁻¹

    def init(self, potential: Potential, position: Tensor, generator: Generator) -> NUTSState:
        """Start at the given position ``(chains, dim)``, whose energy must be finite."""
        energy, gradient = potential.energy_and_gradient(position)
        check_energy(energy)
        none = torch.zeros_like(energy, dtype=torch.bool)
        depth = torch.zeros_like(energy, dtype=torch.int64)
        return NUTSState(position.clone(), gradient, energy, torch.ones_like(energy), depth, none, none, depth + 1)

    def step(self, potential: Potential, state: NUTSState, generator: Generator) -> NUTSState:
        """Draw a momentum, grow a path from the state until it turns, and move to one of its states."""
        momentum = draw_momentum(state.position, self._mass_root, generator)
        start_energy = state.energy + self._kinetic_energy(momentum)
        start = Point(state.position, momentum, torch.zeros_like(start_energy), state.energy, state.gradient)

        def leapfrog(point: Point) -> Point:
            momentum = point.momentum.sub(point.gradient, alpha=self.step_size / 2)
            position = add_product_(point.position.clone(), self._velocity, momentum)
            energy, gradient = potential.energy_and_gradient(position)
            momentum.sub_(gradient, alpha=self.step_size / 2)
            log_weight = start_energy - energy - self._kinetic_energy(momentum)
            return Point(position, momentum, log_weight, energy, gradient)

        tree = grow_tree(start, leapfrog, self._inverse_mass, self.max_depth, generator, self.max_energy_error)
        return NUTSState(
            tree.chosen.position,
            tree.chosen.gradient,
            tree.chosen.energy,
            tree.acceptance,
            tree.depth,
            tree.diverged,
            tree.depth_limited,
            state.num_gradients + tree.num_steps,
        )

    def remarks(self, statistics: dict[str, Tensor]) -> list[str]:
        """Say what is wrong with a run, if anything is."""
        return remarks(statistics, self.max_depth)

    def _kinetic_energy(self, momentum: Tensor) -> Tensor:
        return 0.5 * (momentum * apply(self._inverse_mass, momentum)).sum(-1)
