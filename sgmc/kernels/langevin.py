"""Stochastic-gradient Langevin dynamics."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Generator, Tensor

from sgmc.kernels.metropolis import check_dims, check_non_negative, check_positive, normal_like
from sgmc.matrices import Matrix, add_product_, as_matrix, product, square_root, sum_of
from sgmc.potentials import Potential


class SGLDState(NamedTuple):
    """A state of SGLD, and what its last step learned."""

    position: Tensor  #: (chains, dim)
    step_size: float  #: η of the last step, the weight of its draw when step sizes fall
    num_gradients: int  #: gradient evaluations of each chain so far, and the number of steps taken


@dataclass(frozen=True, eq=False)
class SGLD:
    """Stochastic-gradient Langevin dynamics: θ ← θ − η∇Ũ(θ) + N(0, 2η(T − B̂)) (Welling and Teh, 2011, eq. 4).

    Their ε is 2η. With T = 0 it is stochastic gradient descent. A noise estimate B̂ = ½ηV̂ takes the gradient's own noise
    out of what is injected.

    Args:
        step_size: η, a number or a schedule t → η_t of the number of steps taken so far, such as
            ``lambda t: a * (b + t) ** -gamma``.
        temperature: T, of the target exp(−U/T).
        noise_estimate: B̂, a number, a tensor ``(dim,)`` or ``(dim, dim)``.

    Raises:
        ValueError: if a parameter is out of its range, or the noise estimate exceeds the temperature.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.potentials import DoubleWell, NoisyGradient
        >>> draws = sample(SGLD(step_size=0.01), NoisyGradient(DoubleWell(), 4.0), torch.zeros(4, 1), num_samples=10)
        >>> draws.samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float | Callable[[int], float]
    temperature: float = 1.0
    noise_estimate: Matrix = 0.0

    def __post_init__(self):
        check_positive("step_size", self.step_size(0) if callable(self.step_size) else self.step_size)
        check_non_negative("temperature", self.temperature)
        object.__setattr__(self, "noise_estimate", as_matrix(self.noise_estimate, "noise_estimate"))
        injected = sum_of(float(self.temperature), product(-1.0, self.noise_estimate))
        try:
            root = square_root(as_matrix(injected, "temperature - noise_estimate"))
        except ValueError as error:
            raise ValueError(f"noise_estimate exceeds the temperature {self.temperature}: take a smaller step_size") from error
        object.__setattr__(self, "_injected_root", root)

    def init(self, potential: Potential, position: Tensor, generator: Generator) -> SGLDState:
        """Start at the given position ``(chains, dim)``."""
        check_dims(position=position, noise_estimate=self.noise_estimate)
        return SGLDState(position.clone(), 0.0, 0)

    def step(self, potential: Potential, state: SGLDState, generator: Generator) -> SGLDState:
        """Take one step in every chain."""
        position, steps_taken = state.position, state.num_gradients
        step_size = self.step_size(steps_taken) if callable(self.step_size) else self.step_size
        gradient = potential.stochastic_gradient(position, generator)
        position.sub_(gradient, alpha=step_size)
        if self.temperature > 0:
            noise_root = product((2 * step_size) ** 0.5, self._injected_root)
            add_product_(position, noise_root, normal_like(position, generator))
        return SGLDState(position, step_size, steps_taken + 1)
