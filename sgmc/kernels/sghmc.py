"""Stochastic-gradient Hamiltonian Monte Carlo."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.kernels.metropolis import check_count, check_dims, check_non_negative, check_positive, draw_momentum, normal_like
from sgmc.matrices import Matrix, add_product_, as_matrix, inverse, product, square_root, sum_of
from sgmc.noise import OnlineNoise, add_noise_, injected_root
from sgmc.potentials import Potential


class SGHMCState(NamedTuple):
    """A state of SGHMC."""

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far


class OnlineSGHMCState(NamedTuple):
    """A state of SGHMC with an online noise estimate."""

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far
    noise_variance: Tensor  #: V̂, (chains, 1), (chains, dim) or (chains, dim, dim)
    clipped: Tensor  #: share of coordinates in which ½εV̂ exceeded TC, summed over the steps so far, (chains,)


@dataclass(frozen=True, eq=False)
class SGHMC:
    """Stochastic-gradient Hamiltonian Monte Carlo (Chen et al., 2014, Algorithm 2).

    Repeat m times, with the gradient taken at the **new** position:
    θ ← θ + εM⁻¹r, then r ← r − εCM⁻¹r − ε∇Ũ(θ) + N(0, 2(TC − B̂)ε).

    Args:
        step_size: ε.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        noise_estimate: B̂, the estimate of B = ½εV; same forms, at most T·C; or an :class:`~sgmc.noise.OnlineNoise`, which makes it from the
            minibatches of the steps. Where such an estimate exceeds T·C, no noise is injected, with a warning.
        mass: M; same forms.
        num_steps: m, the number of such steps between two draws.
        resample_every: draw r ~ N(0, M) afresh before every so many calls of ``step``; never by default.
        temperature: T, of the target exp(−U/T). With T = 0 no noise is injected: stochastic gradient descent with momentum.

    Raises:
        ValueError: if a parameter is out of its range, or the friction is below the noise estimate.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.potentials import DoubleWell, NoisyGradient
        >>> kernel = SGHMC(step_size=0.1, friction=3.0, noise_estimate=0.2, num_steps=50)
        >>> sample(kernel, NoisyGradient(DoubleWell(), 4.0), torch.zeros(4, 1), num_samples=10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float
    friction: Matrix
    noise_estimate: Matrix | OnlineNoise = 0.0
    mass: Matrix = 1.0
    num_steps: int = 1
    resample_every: int | None = None
    temperature: float = 1.0

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        check_count("num_steps", self.num_steps)
        if self.resample_every is not None:
            check_count("resample_every", self.resample_every)
        check_non_negative("temperature", self.temperature)
        online = isinstance(self.noise_estimate, OnlineNoise)
        if online and self.temperature == 0:
            raise ValueError("temperature is 0, so that no noise is injected: leave noise_estimate at 0")
        for name in ("friction", "mass") if online else ("friction", "mass", "noise_estimate"):
            object.__setattr__(self, name, as_matrix(getattr(self, name), name, positive=name == "mass"))
        check_dims(friction=self.friction, mass=self.mass, noise_estimate=self.noise_estimate)
        room = product(float(self.temperature), self.friction)
        spare = sum_of(room, product(-1.0, 0.0 if online else self.noise_estimate))
        try:
            injected = product(2 * self.step_size, as_matrix(spare, "temperature * friction - noise_estimate"))
        except ValueError as error:
            raise ValueError(
                f"friction must be at least the noise_estimate (in every direction, and times the temperature "
                f"{self.temperature}): {error}. Raise the friction, take a smaller step_size or a larger batch"
            ) from error
        velocity = product(self.step_size, inverse(self.mass))
        object.__setattr__(self, "_room", room)  # TC
        object.__setattr__(self, "_velocity", velocity)  # εM⁻¹
        object.__setattr__(self, "_decay", product(-1.0, product(self.friction, velocity)))  # −εCM⁻¹
        object.__setattr__(self, "_noise_root", square_root(injected))  # a root of 2(TC − B̂)ε
        object.__setattr__(self, "_mass_root", square_root(self.mass))

    @classmethod
    def from_learning_rate(
        cls, learning_rate: float, momentum_decay: float, noise_estimate: Matrix | OnlineNoise = 0.0, **settings
    ) -> "SGHMC":
        """Make the kernel from η = ε²M⁻¹, α = εM⁻¹C and β̂ = εM⁻¹B̂ with M = 1 (Chen et al., 2014, eq. 15).

        In v = εM⁻¹r its steps are θ ← θ + v, v ← (1 − α)v − η∇Ũ(θ) + N(0, 2(α − β̂)η): SGD with momentum 1 − α, and noise.

        Args:
            learning_rate: η.
            momentum_decay: α.
            noise_estimate: β̂ = ½ηV̂, or an online estimate.
            settings: ``num_steps``, ``resample_every``, ``temperature`` of the kernel.

        Example:
            >>> kernel = SGHMC.from_learning_rate(learning_rate=0.01, momentum_decay=0.1)
            >>> round(kernel.step_size, 6), round(kernel.friction, 6)
            (0.1, 1.0)
        """
        check_positive("learning_rate", learning_rate)
        step_size = math.sqrt(learning_rate)
        if not isinstance(noise_estimate, OnlineNoise):
            noise_estimate = as_matrix(noise_estimate, "noise_estimate") / step_size
        return cls(step_size, as_matrix(momentum_decay, "momentum_decay") / step_size, noise_estimate, **settings)

    def init(self, potential: Potential, position: Tensor, generator: Generator) -> SGHMCState:
        """Start at the given position ``(chains, dim)`` with a momentum from N(0, M), or at rest where T = 0."""
        check_dims(position=position, friction=self.friction, mass=self.mass, noise_estimate=self.noise_estimate)
        momentum = draw_momentum(position, self._mass_root, generator).mul_(math.sqrt(self.temperature))
        if not isinstance(self.noise_estimate, OnlineNoise):
            return SGHMCState(position.clone(), momentum, 0)
        # A first estimate, made with a generator of its own: what is wrong with the posterior shows before any work is done.
        first = torch.Generator(position.device).manual_seed(0)
        _, variance = potential.gradient_and_noise_variance(position, first, self.noise_estimate.kind)
        return OnlineSGHMCState(position.clone(), momentum, 0, variance, torch.zeros_like(position[:, 0]))

    def step(self, potential: Potential, state: SGHMCState, generator: Generator) -> SGHMCState:
        """Take m steps of Algorithm 2 in every chain, in place."""
        position, momentum, num_gradients, *online = state
        calls = num_gradients // self.num_steps
        if self.resample_every is not None and calls % self.resample_every == 0:
            momentum = draw_momentum(position, self._mass_root, generator).mul_(math.sqrt(self.temperature))
        if online:
            return self._step_online(potential, OnlineSGHMCState(position, momentum, num_gradients, *online), generator)
        for _ in range(self.num_steps):
            add_product_(position, self._velocity, momentum)
            gradient = potential.stochastic_gradient(position, generator)
            add_product_(momentum, self._decay, momentum)
            momentum.sub_(gradient, alpha=self.step_size)
            if self.temperature > 0:
                add_product_(momentum, self._noise_root, normal_like(momentum, generator))
        return SGHMCState(position, momentum, num_gradients + self.num_steps)

    def _step_online(self, potential: Potential, state: OnlineSGHMCState, generator: Generator) -> OnlineSGHMCState:
        position, momentum, num_gradients, variance, clipped = state
        noise_root = None
        for step in range(num_gradients, num_gradients + self.num_steps):
            add_product_(position, self._velocity, momentum)
            gradient, estimate = self.noise_estimate.update(potential, position, variance, step, generator)
            if noise_root is None or estimate is not variance:
                variance = estimate
                noise_root, clipped_now = injected_root(self._room, self.step_size, variance)
            add_product_(momentum, self._decay, momentum)
            momentum.sub_(gradient, alpha=self.step_size)
            add_noise_(momentum, noise_root, normal_like(momentum, generator))
            if isinstance(clipped_now, Tensor):
                clipped = clipped + clipped_now
        return OnlineSGHMCState(position, momentum, num_gradients + self.num_steps, variance, clipped)

    def remarks(self, statistics: dict[str, Tensor]) -> list[str]:
        """Say how often an online noise estimate exceeded the friction, if it did."""
        if "clipped" not in statistics or not statistics["clipped"].any():
            return []
        share = float(statistics["clipped"][-1].mean() / statistics["num_gradients"][-1].double().mean())
        return [
            f"½εV̂ exceeded the friction in {share:.1%} of the coordinates, averaged over steps and chains; no noise was injected there, "
            "and the chain is too hot: raise the friction, or take a smaller step_size or a larger batch"
        ]
