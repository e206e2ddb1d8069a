"""The no-U-turn sampler."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from sgmc.checks import check_count
from sgmc.integrators import draw_momentum, kinetic_energy
from sgmc.kernels import trees
from sgmc.kernels.base import WithMass
from sgmc.kernels.metropolis import Guarded, remark_rounding
from sgmc.kernels.trees import Point, grow_tree
from sgmc.matrices import MatrixLike, addmv_

# A path that gains more energy from its start diverges, and is not followed further.
MAX_ENERGY_ERROR = 1000.0


class NUTSState(NamedTuple):
    """A state of NUTS.

    Example:
        >>> from sgmc.targets import Gaussian
        >>> bowl, generator = Gaussian.standard(1), torch.Generator()
        >>> state = NUTS(0.1).init(bowl, torch.ones(2, 1), generator)
        >>> state.gradient, state.num_gradients
        (tensor([[1.],
                [1.]]), tensor([1, 1]))
    """

    position: Tensor  #: (chains, dim)
    gradient: Tensor  #: ∇U at the position, (chains, dim)
    energy: Tensor  #: U at the position, (chains,)
    num_gradients: Tensor  #: gradient evaluations of each chain so far, (chains,) int64


class NUTSInfo(NamedTuple):
    """Information about a step of NUTS.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> draws = sample(NUTS(0.8), Gaussian.standard(1), torch.ones(2, 1), 3)
        >>> sorted(draws.statistics) == sorted(NUTSInfo._fields)
        True
    """

    acceptance: Tensor  #: mean Metropolis probability of the tree, (chains,)
    energy: Tensor  #: U at the position, (chains,)
    depth: Tensor  #: j of the path of 2ʲ states, (chains,) int64
    diverged: Tensor  #: whether it gained too much energy, (chains,) bool
    depth_limited: Tensor  #: whether the path would have grown further, (chains,) bool
    num_gradients: Tensor  #: gradient evaluations of each chain so far, (chains,) int64


@dataclass(frozen=True, eq=False)
class NUTS(WithMass[NUTSState]):
    """The no-U-turn sampler (Hoffman and Gelman, 2014) with multinomial weights
    (Betancourt, 2017, Appendix A).

    Draw r ~ N(0, M). Double the path of leapfrog steps from (θ, r), each time forwards
    or backwards in time at random, until a sub-tree of it makes a U-turn, ρᵀM⁻¹r ≤ 0 at
    one of its ends, where ρ is the sum of its momenta. Choose a state of the path with
    weights exp(−H), states far from the start being favoured
    (:mod:`sgmc.kernels.trees`). A call costs what the deepest tree of all chains costs.

    Args:
        step_size: ε.
        mass: M, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        max_depth: the path has at most 2^max_depth states.

    Raises:
        ValueError: if a parameter is out of its range.

    Example:
        >>> from sgmc import sample
        >>> from sgmc.targets import Gaussian
        >>> bowl = Gaussian.standard(2)
        >>> draws = sample(NUTS(0.5), bowl, torch.zeros(4, 2), num_samples=10)
        >>> draws.samples.shape, draws.statistics["depth"].shape
        (torch.Size([10, 4, 2]), torch.Size([10, 4]))
    """

    step_size: float
    mass: MatrixLike = 1.0
    max_depth: int = 10

    def __post_init__(self):
        super().__post_init__()
        check_count("max_depth", self.max_depth)

    def init(self, potential, position, generator) -> NUTSState:
        """Start at positions ``(chains, dim)``, of finite energies."""
        self.check_matrices(position=position)
        energy, gradient = potential.energy_and_gradient(position)
        trees.check_energy(energy)
        ones = torch.ones_like(energy, dtype=torch.int64)
        return NUTSState(position.clone(), gradient, energy, ones)

    def step(self, potential, state, generator) -> tuple[NUTSState, NUTSInfo]:
        """Draw a momentum, grow a path until it turns, move to one of its states."""
        step_size, mass, inverse_mass = self.step_size, self._mass, self._mass.inverse
        momentum = draw_momentum(state.position, mass, generator)
        start_energy = state.energy + kinetic_energy(momentum, mass)
        known = state.energy, state.gradient
        start = Point(state.position, momentum, torch.zeros_like(start_energy), known)
        potential = Guarded(potential, state.position)

        def leapfrog(point: Point) -> Point:
            momentum = point.momentum.sub(point.known[1], alpha=step_size / 2)
            position = addmv_(point.position.clone(), inverse_mass, momentum, step_size)
            energy, gradient = potential.energy_and_gradient(position)
            momentum.sub_(gradient, alpha=step_size / 2)
            log_weight = start_energy - energy - kinetic_energy(momentum, mass)
            return Point(position, momentum, log_weight, (energy, gradient))

        settings = self.max_depth, generator, MAX_ENERGY_ERROR
        tree = grow_tree(start, leapfrog, inverse_mass, *settings)
        energy, gradient = tree.chosen.known
        done = state.num_gradients + tree.num_steps
        info = tree.acceptance, energy, tree.depth, tree.diverged, tree.depth_limited
        state = NUTSState(tree.chosen.position, gradient, energy, done)
        return state, NUTSInfo(*info, done)

    def retarget(self, potential, state) -> NUTSState:
        """Evaluate another potential at the position."""
        energy, gradient = potential.energy_and_gradient(state.position)
        return NUTSState(state.position, gradient, energy, state.num_gradients + 1)

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report the problems of a run, if there are any."""
        rounding = remark_rounding(statistics["energy"])
        return trees.diagnose(statistics, self.max_depth) + rounding
