"""Stochastic-gradient Hamiltonian Monte Carlo."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor

from sgmc.checks import check_count, check_positive
from sgmc.integrators import draw_momentum
from sgmc.kernels.base import StepSize, WithFriction, WithTemperature
from sgmc.matrices import Matrix, MatrixLike, addmv_, as_matrix
from sgmc.noise import InjectedNoise, OnlineNoise, spare
from sgmc.randomness import blocks, normal_block


class SGHMCState(NamedTuple):
    """A state of SGHMC.

    Example:
        >>> import torch
        >>> from sgmc.targets import Gaussian
        >>> bowl, generator = Gaussian.standard(1), torch.Generator()
        >>> kernel = SGHMC(0.1, friction=1.0, num_steps=5)
        >>> state = kernel.init(bowl, torch.ones(2, 1), generator)
        >>> kernel.step(bowl, state, generator)[0].num_gradients
        5
    """

    position: Tensor  #: (chains, dim)
    momentum: Tensor  #: (chains, dim)
    num_gradients: int  #: gradient evaluations of each chain so far
    #: V̂ of an online estimate, (chains, 1), (chains, dim) or (chains, dim, dim)
    noise_variance: Tensor | None = None
    #: share of coordinates in which ½εV̂ exceeded TC, summed over the steps, (chains,)
    clipped: Tensor | None = None


class SGHMCInfo(NamedTuple):
    """Information about a step of SGHMC.

    Example:
        >>> import torch
        >>> from sgmc.targets import Gaussian
        >>> bowl, generator = Gaussian.standard(1), torch.Generator()
        >>> kernel = SGHMC(0.1, friction=1.0, num_steps=5)
        >>> state = kernel.init(bowl, torch.ones(2, 1), generator)
        >>> kernel.step(bowl, state, generator)[1]
        SGHMCInfo(num_gradients=5, clipped=None, step_size=None)
    """

    num_gradients: int  #: gradient evaluations of each chain so far
    clipped: Tensor | None  #: the share clipped, as in the state
    #: ε_t of the draw, its weight when step sizes fall; None where it never changes
    step_size: float | None = None


@dataclass(frozen=True, eq=False)
class SGHMC(WithFriction[SGHMCState], WithTemperature[SGHMCState]):
    """Stochastic-gradient Hamiltonian Monte Carlo (Chen et al., 2014, Algorithm 2).

    Repeat m times, with the gradient taken at the **new** position:
    θ ← θ + εM⁻¹r, then r ← r − εCM⁻¹r − ε∇Ũ(θ) + N(0, 2(TC − B̂)ε). With
    εCM⁻¹ = 1 the momentum is forgotten: plain gradient descent with noise.

    Args:
        step_size: ε, a number or a schedule t → ε_t of the number of draws so far, each
            of which takes m steps of one size.
        friction: C, a number, a tensor ``(dim,)`` or ``(dim, dim)``.
        noise_estimate: B̂ = ½εV̂; same forms, any symmetric matrix with B̂ ⪯ T·C. It
            belongs to one step size: while steps fall it becomes too large and the
            chain too cold. Or an :class:`~sgmc.noise.OnlineNoise`, which follows the
            step size; where it exceeds T·C no noise is injected, with a warning.
        mass: M; same forms.
        num_steps: m, the number of such steps between two draws.
        resample_every: number of calls of ``step`` from one fresh momentum r ~ N(0, TM)
            to the next; never by default.
        temperature: T, of the target exp(−U/T). With T = 0 no noise is injected:
            stochastic gradient descent with momentum.

    Raises:
        ValueError: if a parameter is out of its range, the friction is below the noise
            estimate, or the largest eigenvalue of εM⁻¹C is not below 2, above which no
            step is stable. A schedule may begin there.

    Example:
        >>> import torch
        >>> from sgmc import sample
        >>> from sgmc.targets import DoubleWell, NoisyGradient
        >>> kernel = SGHMC(0.1, friction=3.0, noise_estimate=0.2, num_steps=50)
        >>> noisy = NoisyGradient(DoubleWell(), 4.0)
        >>> sample(kernel, noisy, torch.zeros(4, 1), num_samples=10).samples.shape
        torch.Size([10, 4, 1])
    """

    step_size: StepSize
    friction: MatrixLike
    noise_estimate: MatrixLike | OnlineNoise = 0.0
    mass: MatrixLike = 1.0
    num_steps: int = 1
    resample_every: int | None = None
    temperature: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        check_count("num_steps", self.num_steps)
        if self.resample_every is not None:
            check_count("resample_every", self.resample_every)
        given: Any = self.noise_estimate
        if self.temperature == 0 and (self._online or Matrix(given).number != 0):
            raise ValueError("temperature is 0: leave noise_estimate at 0")
        self._spare  # raises an error if the estimate exceeds TC
        if not callable(self.step_size):  # a schedule may fall below it
            self.check_decay(self.step_size)

    @classmethod
    def from_learning_rate(
        cls, learning_rate: float, momentum_decay, noise_estimate=0.0, **settings
    ) -> "SGHMC":
        """Make the kernel from η = ε²M⁻¹, α = εM⁻¹C and β̂ = εM⁻¹B̂ with M = 1 (Chen et
        al., 2014, eq. 15).

        In v = εM⁻¹r its steps are θ ← θ + v, v ← (1 − α)v − η∇Ũ(θ) + N(0, 2(α − β̂)η):
        SGD with momentum 1 − α, and noise.

        Args:
            learning_rate: η.
            momentum_decay: α.
            noise_estimate: β̂ = ½ηV̂, or an online estimate.
            settings: ``num_steps``, ``resample_every``, ``temperature`` of the kernel.

        Raises:
            ValueError: if a mass is given, or a parameter is invalid for the kernel.

        Example:
            >>> kernel = SGHMC.from_learning_rate(0.01, momentum_decay=0.1)
            >>> round(kernel.step_size, 6), round(kernel.friction, 6)
            (0.1, 1.0)
        """
        check_positive("learning_rate", learning_rate)
        if "mass" in settings:
            raise ValueError(
                f"mass is {settings['mass']}, but this form has M = 1: leave it out, "
                "or call SGHMC(step_size, friction, mass=...)"
            )
        step_size = math.sqrt(learning_rate)  # ε
        if not isinstance(noise_estimate, OnlineNoise):
            beta = as_matrix(noise_estimate, "noise_estimate", signed=True)
            noise_estimate = beta.value / step_size
        friction = as_matrix(momentum_decay, "momentum_decay").value / step_size
        return cls(step_size, friction, noise_estimate, **settings)

    @cached_property
    def _damping(self) -> Matrix:  # CM⁻¹
        return self._friction @ self._mass.inverse

    @cached_property
    def _online(self) -> OnlineNoise | None:
        return given if isinstance(given := self.noise_estimate, OnlineNoise) else None

    @cached_property
    def _spare(self) -> Matrix:  # TC − B̂; an online B̂ starts later
        given: Any = 0.0 if self._online else self.noise_estimate
        return spare(self.temperature, self._friction, given, "friction")

    def init(self, potential, position, generator) -> SGHMCState:
        """Start at positions ``(chains, dim)`` with momenta from N(0, TM)."""
        self.check_matrices(position=position)
        momentum = draw_momentum(position, self._mass, generator, self.temperature)
        variance = self._online and self._online.first(potential, position, generator)
        clipped = None if variance is None else 0 * position[:, 0]
        return SGHMCState(position.clone(), momentum, 0, variance, clipped)

    def step(self, potential, state, generator) -> tuple[SGHMCState, SGHMCInfo]:
        """Take m steps of Algorithm 2 in every chain, in place."""
        position, momentum, done, *known = state
        draw, noise = done // self.num_steps, self.injected_noise(done, *known)
        if self.resample_every is not None and draw % self.resample_every == 0:
            momentum = draw_momentum(position, self._mass, generator, self.temperature)
        for first, number in blocks(done, self.num_steps, position):
            minibatches = potential.draw_minibatches(position, generator, first, number)
            normals = normal_block(position, number, generator, self.temperature > 0)
            self.trajectory(potential, position, momentum, minibatches, normals, noise)
        done, known = done + self.num_steps, (noise.variance, noise.clipped)
        weight = noise.step_size if callable(self.step_size) else None
        info = SGHMCInfo(done, noise.clipped, weight)
        return SGHMCState(position, momentum, done, *known), info

    def injected_noise(self, done: int = 0, *known: Tensor | None) -> InjectedNoise:
        """Make the noise to inject after so many steps; ``known`` as in the state."""
        step_size = self.step_size_at(done // self.num_steps)
        if self._online is None:
            root = math.sqrt(2 * step_size) * self._spare.root
            return InjectedNoise(step_size, root)
        room = self.temperature * self._friction  # TC
        return InjectedNoise(step_size, None, self._online, room, done, *known)

    def trajectory(self, potential, position, momentum, minibatches, normals, noise):
        """Take steps of Algorithm 2 with given random numbers, the minibatch ω and the
        normal numbers ``(chains, dim)`` of each step: a function of nothing else, which
        overwrites θ and r, ``(chains, dim)``. :meth:`injected_noise` makes the noise.
        """
        step_size = noise.step_size  # ε
        inverse_mass, damping = self._mass.inverse, self._damping  # M⁻¹, CM⁻¹
        potential = noise.watch(potential)  # an online B̂ learns from the gradients
        for minibatch, normal in zip(minibatches, normals, strict=True):
            addmv_(position, inverse_mass, momentum, alpha=step_size)  # θ ← θ + εM⁻¹r
            gradient = potential.gradient_given(position, minibatch)  # ∇Ũ(θ; ω)
            addmv_(momentum, damping, momentum, alpha=-step_size)  # r ← r − εCM⁻¹r
            momentum.sub_(gradient, alpha=step_size)  # r ← r − ε∇Ũ(θ)
            addmv_(momentum, noise.root, normal)  # r ← r + N(0, 2(TC − B̂)ε)

    def diagnose(self, statistics: dict[str, Tensor]) -> list[str]:
        """Report how often an online noise estimate exceeded the friction, if it did in
        one per cent of the coordinates or more.
        """
        clipped, steps = statistics.get("clipped"), statistics["num_gradients"][-1]
        share = 0.0 if clipped is None else float(clipped[-1].sum()) / int(steps.sum())
        if share < 0.01:  # rare, and of no weight
            return []
        return [
            f"½εV̂ exceeded the friction in {share:.1%} of the coordinates, averaged "
            "over steps and chains: with independent minibatches the samples are too "
            "wide. Raise the friction, or take a smaller step_size or a larger batch "
            "[too-wide]"
        ]
