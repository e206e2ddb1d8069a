"""Stochastic-gradient Hamiltonian Monte Carlo."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from sgmc.checks import (
    check_count,
    check_dims,
    check_non_negative,
    check_positive,
    check_step_size,
)
from sgmc.integrators import draw_momentum
from sgmc.kernels.base import Kernel
from sgmc.matrices import Matrix, addmv_, as_matrix
from sgmc.noise import InjectedNoise, OnlineInjectedNoise, OnlineNoise
from sgmc.potentials import Potential
from sgmc.randomness import blocks, normal_block


class SGHMCState(NamedTuple):
    """A state of SGHMC."""

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far
    #: V̂ of an online estimate, (chains, 1), (chains, dim) or (chains, dim, dim)
    noise_variance: Tensor | None = None
    #: share of coordinates in which ½εV̂ exceeded TC, summed over the steps so far,
    #: (chains,)
    clipped: Tensor | None = None


class SGHMCInfo(NamedTuple):
    """What a step of SGHMC learned."""

    num_gradients: int  #: gradient evaluations of each chain so far
    #: share of coordinates in which ½εV̂ exceeded TC, summed over the steps so far,
    #: (chains,)
    clipped: Tensor | None
    #: ε_t of the draw, its weight when step sizes fall; None where it is always the
    #: same
    step_size: float | None = None


@dataclass(frozen=True, eq=False)
class SGHMC(Kernel):
    """Stochastic-gradient Hamiltonian Monte Carlo (Chen et al., 2014, Algorithm 2).

    Repeat m times, with the gradient taken at the **new** position:
    θ ← θ + εM⁻¹r, then r ← r − εCM⁻¹r − ε∇Ũ(θ) + N(0, 2(TC − B̂)ε).

    Args:
        step_size: ε, a number or a schedule t → ε_t of the number of draws so far, each
            of which takes m steps of one size.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        noise_estimate: B̂, the estimate of B = ½εV; same forms, any symmetric matrix
            with B̂ ⪯ T·C (one that also corrects the error of the step may be negative
            in some directions); or an :class:`~sgmc.noise.OnlineNoise`, which makes it
            from the minibatches of the steps. Where such an estimate exceeds T·C, no
            noise is injected, with a warning. A fixed one belongs to one step size:
            while steps fall it becomes too large and the chain too cold, which an
            online one, ½ε_tV̂, and zero do not.
        mass: M; same forms.
        num_steps: m, the number of such steps between two draws.
        resample_every: draw r ~ N(0, M) afresh before every so many calls of ``step``;
            never by default.
        temperature: T, of the target exp(−U/T). With T = 0 no noise is injected:
            stochastic gradient descent with momentum.

    Raises:
        ValueError: if a parameter is out of its range, or the friction is below the
            noise estimate.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = SGHMC(
        ...     step_size=0.1, friction=3.0, noise_estimate=0.2, num_steps=50
        ... )
        >>> sample(
        ...     kernel,
        ...     NoisyGradient(DoubleWell(), 4.0),
        ...     torch.zeros(4, 1),
        ...     num_samples=10,
        ... ).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: float | Callable[[int], float]
    friction: float | Tensor | Matrix
    noise_estimate: float | Tensor | Matrix | OnlineNoise = 0.0
    mass: float | Tensor | Matrix = 1.0
    num_steps: int = 1
    resample_every: int | None = None
    temperature: float = 1.0

    def __post_init__(self):
        check_step_size("step_size", self.step_size, "draws")
        check_count("num_steps", self.num_steps)
        if self.resample_every is not None:
            check_count("resample_every", self.resample_every)
        check_non_negative("temperature", self.temperature)
        as_matrix(self.friction, "friction")
        self._mass  # refuses what is no mass
        estimates = self._online or torch.as_tensor(self._noise_estimate.value).any()
        if self.temperature == 0 and estimates:
            raise ValueError(
                "temperature is 0, so that no noise is injected: leave noise_estimate "
                "at 0"
            )
        check_dims(
            friction=self.friction, mass=self.mass, noise_estimate=self.noise_estimate
        )
        try:
            as_matrix(self._spare, "temperature * friction - noise_estimate")
        except ValueError as error:
            raise ValueError(
                "friction must be at least the noise_estimate (in every direction, "
                "and times the temperature "
                f"{self.temperature}): {error}. Raise the friction, take a smaller "
                "step_size or a larger batch"
            ) from error

    @classmethod
    def from_learning_rate(
        cls,
        learning_rate: float,
        momentum_decay: float,
        noise_estimate: float | Tensor | OnlineNoise = 0.0,
        **settings,
    ) -> "SGHMC":
        """Make the kernel from η = ε²M⁻¹, α = εM⁻¹C and β̂ = εM⁻¹B̂ with M = 1 (Chen et
        al., 2014, eq. 15).

        In v = εM⁻¹r its steps are θ ← θ + v, v ← (1 − α)v − η∇Ũ(θ) + N(0, 2(α − β̂)η):
        SGD with momentum 1 − α, and noise.

        Args:
            learning_rate: η.
            momentum_decay: α.
            noise_estimate: β̂ = ½ηV̂, or an online estimate.
            settings: ``num_steps``, ``resample_every``, ``temperature`` of
                the kernel; not its mass, which is 1 here.

        Example:
            >>> kernel = SGHMC.from_learning_rate(
            ...     learning_rate=0.01, momentum_decay=0.1
            ... )
            >>> round(kernel.step_size, 6), round(kernel.friction, 6)
            (0.1, 1.0)
        """
        check_positive("learning_rate", learning_rate)
        step_size = math.sqrt(learning_rate)
        momentum_decay = as_matrix(momentum_decay, "momentum_decay").value
        if not isinstance(noise_estimate, OnlineNoise):
            noise_estimate = (
                as_matrix(noise_estimate, "noise_estimate", signed=True).value
                / step_size
            )
        return cls(step_size, momentum_decay / step_size, noise_estimate, **settings)

    @property
    def _online(self) -> bool:
        return isinstance(self.noise_estimate, OnlineNoise)

    @cached_property
    def _mass(self) -> Matrix:  # M
        return as_matrix(self.mass, "mass", positive=True)

    @cached_property
    def _damping(self) -> Matrix:  # CM⁻¹
        return Matrix(self.friction) @ self._mass.inverse

    @cached_property
    def _room(self) -> Matrix:  # TC
        return self.temperature * Matrix(self.friction)

    @cached_property
    def _noise_estimate(self) -> Matrix:  # B̂; of an online one nothing is known yet
        given = 0.0 if self._online else self.noise_estimate
        return as_matrix(given, "noise_estimate", signed=True)

    @cached_property
    def _spare(self) -> Matrix:  # TC − B̂
        return self._room - self._noise_estimate

    def init(
        self, potential: Potential, position: Tensor, generator: Generator
    ) -> SGHMCState:
        """Start at the given position ``(chains, dim)`` with a momentum from N(0,
        TM).
        """
        check_dims(
            position=position,
            friction=self.friction,
            mass=self.mass,
            noise_estimate=self.noise_estimate,
        )
        momentum = draw_momentum(position, self._mass, generator, self.temperature)
        if not self._online:
            return SGHMCState(position.clone(), momentum, 0)
        # From a minibatch that no step will see; what is wrong with the posterior shows
        # before any work is done.
        apart = Generator(position.device).manual_seed(generator.initial_seed())
        _, variance = potential.gradient_and_noise_variance(
            position, apart, self.noise_estimate.kind, step=2**40
        )
        return SGHMCState(
            position.clone(), momentum, 0, variance, torch.zeros_like(position[:, 0])
        )

    def step(
        self, potential: Potential, state: SGHMCState, generator: Generator
    ) -> tuple[SGHMCState, SGHMCInfo]:
        """Take m steps of Algorithm 2 in every chain, in place."""
        position, momentum, num_gradients, *known = state
        draw = num_gradients // self.num_steps
        step_size, falls = self.step_size, callable(self.step_size)
        if falls:
            step_size = step_size(draw)
            check_non_negative("step_size", step_size)
        if self.resample_every is not None and draw % self.resample_every == 0:
            momentum = draw_momentum(position, self._mass, generator, self.temperature)
        if self._online:
            noise = OnlineInjectedNoise(
                step_size, self._room, self.noise_estimate, num_gradients, *known
            )
        else:
            noise = self.injected_noise(step_size)
        for first, number in blocks(num_gradients, self.num_steps, position):
            minibatches = potential.draw_minibatches(position, generator, first, number)
            normals = (
                normal_block(position, number, generator)
                if self.temperature > 0
                else position.new_zeros(1).expand(number, *position.shape)
            )
            position, momentum, noise = self.trajectory(
                potential, position, momentum, minibatches, normals, noise
            )
        num_gradients += self.num_steps
        return (
            SGHMCState(
                position, momentum, num_gradients, noise.variance, noise.clipped
            ),
            SGHMCInfo(num_gradients, noise.clipped, step_size if falls else None),
        )

    def injected_noise(self, step_size: float) -> InjectedNoise:
        """Make what is injected in steps of a size, for a given noise estimate."""
        return InjectedNoise(step_size, math.sqrt(2 * step_size) * self._spare.root)

    def trajectory(
        self,
        potential: Potential,
        position: Tensor,
        momentum: Tensor,
        minibatches: Iterable[Any],
        normals: Iterable[Tensor],
        noise: InjectedNoise | OnlineInjectedNoise,
    ) -> tuple[Tensor, Tensor, InjectedNoise | OnlineInjectedNoise]:
        """Take steps of Algorithm 2 on given random numbers: a pure function of its
        arguments, but that position and momentum are overwritten.

        Args:
            potential: the target.
            position: θ, ``(chains, dim)``.
            momentum: r, ``(chains, dim)``.
            minibatches: ω of each step, on which its stochastic gradient depends.
            normals: standard normal numbers ``(chains, dim)`` of each step.
            noise: what is injected, with ε and B̂.

        Returns:
            The new position and momentum, and the noise of the next step.
        """
        step_size, inverse_mass = noise.step_size, self._mass.inverse
        damping = self._damping  # CM⁻¹
        for minibatch, normal in zip(minibatches, normals, strict=True):
            addmv_(position, inverse_mass, momentum, alpha=step_size)  # θ ← θ + εM⁻¹r
            gradient, noise = noise.look(potential, position, minibatch)
            addmv_(momentum, damping, momentum, alpha=-step_size)  # r ← r − εCM⁻¹r
            momentum.sub_(gradient, alpha=step_size)  # r ← r − ε∇Ũ(θ)
            addmv_(momentum, noise.root, normal)  # r ← r + N(0, 2(TC − B̂)ε)
        return position, momentum, noise

    def target_temperature(self) -> float | None:
        """Give T; None with a schedule of step sizes, or without noise."""
        fixed = not callable(self.step_size) and self.temperature > 0
        return self.temperature if fixed else None

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Say how often an online noise estimate exceeded the friction, if it did."""
        if "clipped" not in statistics or not statistics["clipped"].any():
            return []
        share = float(
            statistics["clipped"][-1].mean()
            / statistics["num_gradients"][-1].double().mean()
        )
        return [
            f"½εV̂ exceeded the friction in {share:.1%} of the coordinates, averaged "
            "over steps and chains; no noise was injected there, "
            "and the chain is too hot: raise the friction, or take a smaller "
            "step_size or a larger batch"
        ]
