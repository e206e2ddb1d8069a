"""Exact laws of linear samplers on Gaussian targets.

A law is the textbook's step, written once as a function of numbers. Run on unit vectors
in the place of the position, the momentum and the random numbers, it shows its
transition F and its noise Q, and these determine its stationary covariance.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Step = Callable  # step(x, r, gradient, normal, setting) -> (x, r)


class Setting(NamedTuple):
    """A target U(θ) = ½Σaᵢθᵢ² with density exp(−U/T), and a sampler's parameters."""

    curvature: tuple[float, ...] = (1.0, 4.0)  #: a
    step: float = 0.1  #: ε of a momentum, η of SGLD
    friction: float = 1.0  #: C
    mass: float = 1.0  #: M
    temperature: float = 1.0  #: T
    variance: float = 0.0  #: V, of the noise in each coordinate of the gradient
    estimate: float = 0.0  #: B̂, what a sampler takes for ½εV (½ηV in SGLD)

    @property
    def target(self) -> np.ndarray:
        """The target's variances T/a."""
        return self.temperature / np.array(self.curvature)


class Chain(NamedTuple):
    """One step's linear maps z ← Fz + N(0, Q), a block for each coordinate."""

    transition: np.ndarray  #: F, (dim, k, k), where k is 2 with a momentum, else 1
    noise: np.ndarray  #: Q, (dim, k, k)

    def variance(self) -> np.ndarray:
        """Solve S = FSFᵀ + Q for the positions' stationary variances, (dim,)."""
        return np.array(
            [_stationary(f, q)[0, 0] for f, q in zip(*self, strict=True)], float
        )


def _stationary(transition: np.ndarray, noise: np.ndarray) -> np.ndarray:
    size = len(transition)
    if not np.isfinite(transition).all() or not np.isfinite(noise).all():
        return np.full((size, size), np.inf)
    if not noise.any():  # a chain without noise stays where it is, or falls to rest
        return np.zeros((size, size))
    if abs(np.linalg.eigvals(transition)).max() > 1 - 1e-10:
        return np.full((size, size), np.inf)
    system = np.eye(size**2) - np.kron(transition, transition)
    return np.linalg.solve(system, noise.ravel()).reshape(size, size)


def chain(
    step: Step, setting: Setting, momentum: bool = True, fresh: bool = False
) -> Chain:
    """Read F and Q off a law's step.

    Args:
        step: one of this module's, or a function like them.
        setting: the target and the parameters.
        momentum: whether the state has a momentum.
        fresh: whether each gradient of a step has a minibatch of its own.
    """
    size, blocks = 1 + momentum, []
    for a in setting.curvature:
        inputs = iter(np.eye(size + 200))
        x, r = next(inputs), next(inputs) if momentum else None

        def normal(inputs=inputs):
            return next(inputs)

        held = setting.variance**0.5 * normal()

        def gradient(x, a=a, held=held, normal=normal):
            return a * x + (setting.variance**0.5 * normal() if fresh else held)

        new = step(x, r, gradient, normal, setting)
        new = np.stack(new[:size])
        blocks.append((new[:, :size], new[:, size:] @ new[:, size:].T))
    return Chain(*(np.stack(each) for each in zip(*blocks, strict=True)))


def _kick(x, r, gradient, normal, s):
    """Apply r ← r − ε∇U(x) − εM⁻¹Cr + N(0, 2ε(TC − B̂)): all of Chen et al.'s move."""
    noise = 2 * s.step * (s.temperature * s.friction - s.estimate)
    kept = (1 - s.step * s.friction / s.mass) * r
    return kept - s.step * gradient(x) + max(noise, 0.0) ** 0.5 * normal()


def sgld(x, r, gradient, normal, s):
    """θ ← θ − ηM⁻¹∇U + N(0, 2ηM⁻¹(T − B̂)): Welling and Teh (2011)."""
    noise = 2 * s.step * (s.temperature - s.estimate) / s.mass
    return x - s.step / s.mass * gradient(x) + max(noise, 0.0) ** 0.5 * normal(), r


def drift_first(x, r, gradient, normal, s):
    """SGHMC as Algorithm 2 of Chen et al. (2014): the position, then the momentum by
    the gradient at the new position.
    """
    x = x + s.step / s.mass * r
    return x, _kick(x, r, gradient, normal, s)


def kick_first(x, r, gradient, normal, s):
    """SGHMC as eq. 15 of Chen et al. (2014): the momentum, and the position by it."""
    r = _kick(x, r, gradient, normal, s)
    return x + s.step / s.mass * r, r


def euler(x, r, gradient, normal, s):
    """Explicit Euler: position and momentum both move from the old state."""
    return x + s.step / s.mass * r, _kick(x, r, gradient, normal, s)


def _half_kick(x, r, gradient, s):
    return r - s.step / 2 * gradient(x)


def _refresh(r, normal, s, time):
    kept = np.exp(-s.friction * time / s.mass)
    return kept * r + (s.temperature * s.mass * (1 - kept**2)) ** 0.5 * normal()


def baoab(x, r, gradient, normal, s):
    """Half a kick, half a drift, exact friction, half a drift, half a kick."""
    r = _half_kick(x, r, gradient, s)
    x = x + s.step / 2 / s.mass * r
    r = _refresh(r, normal, s, s.step)
    x = x + s.step / 2 / s.mass * r
    return x, _half_kick(x, r, gradient, s)


def baoa(x, r, gradient, normal, s):
    """A whole kick, half a drift, exact friction, half a drift: BAOAB, turned."""
    r = r - s.step * gradient(x)
    x = x + s.step / 2 / s.mass * r
    r = _refresh(r, normal, s, s.step)
    return x + s.step / 2 / s.mass * r, r


def obabo(x, r, gradient, normal, s):
    """Exact friction for half a step, leapfrog, exact friction for half a step."""
    r = _refresh(r, normal, s, s.step / 2)
    r = _half_kick(x, r, gradient, s)
    x = x + s.step / s.mass * r
    r = _half_kick(x, r, gradient, s)
    return x, _refresh(r, normal, s, s.step / 2)


def palindromic(x, r, gradient, normal, s):
    """The step of AMAGOLD, Zhang et al. (2020), Algorithm 2: half a drift, a
    symmetric kick with friction, half a drift.
    """
    x, b = x + s.step / 2 / s.mass * r, s.step * s.friction / s.mass / 2
    noise = 2 * s.step * s.friction * s.temperature
    r = ((1 - b) * r - s.step * gradient(x) + noise**0.5 * normal()) / (1 + b)
    return x + s.step / 2 / s.mass * r, r


def refreshed(step: Step, steps: int) -> Step:
    """Give the map of positions in which a call draws r ~ N(0, MT), and takes so many
    steps.
    """

    def call(x, r, gradient, normal, s):
        r = (s.mass * s.temperature) ** 0.5 * normal()
        for _ in range(steps):
            x, r = step(x, r, gradient, normal, s)
        return x, r

    return call


def thermostat(step: Step, setting: Setting) -> np.ndarray:
    """Give the mean-field variances of a Nosé–Hoover thermostat (Ding et al., 2014).

    One friction ξ serves very many coordinates, equally many of each curvature; it
    stands still where the mean of M⁻¹r² is T, and then each coordinate is a linear
    chain. ``setting.friction`` is A: a step of friction ξ injects N(0, 2εA).

    Returns:
        The variances ``(dim,)``; infinite where no friction is in balance.
    """

    def at(friction: float) -> tuple[np.ndarray, float]:
        # 2ε(TC − B̂) of a step with the friction ξ is 2εA
        estimate = setting.temperature * (friction - setting.friction)
        made = setting._replace(friction=friction, estimate=estimate)
        covariance = [
            _stationary(*block) for block in zip(*chain(step, made), strict=True)
        ]
        heat = np.mean([each[1, 1] for each in covariance]) / setting.mass
        return np.array([each[0, 0] for each in covariance]), heat

    low, high = 0.0, 1.0
    while at(high)[1] > setting.temperature and high < 1e6:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        hot = at(middle)[1] > setting.temperature
        low, high = (middle, high) if hot else (low, middle)
    return at(high)[0]
