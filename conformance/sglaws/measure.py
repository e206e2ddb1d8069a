"""Measure a sampler's step: its linear maps, or its second moments; and compare."""

from typing import Any, NamedTuple

import numpy as np

from .adapter import Adapter, Target
from .laws import Chain, Setting

ROUNDING = 2e-4  # what a transition may be off, of its largest entry
LIMIT = 5.0  # standard errors


class Probe(NamedTuple):
    """F and Q of a step, and whether it was linear and had no memory."""

    chain: Chain
    samples: int  #: behind Q
    linear: bool


class Moments(NamedTuple):
    """Second moments of positions, with standard errors, ``(dim,)``."""

    second: np.ndarray
    error: np.ndarray


class Path:
    """Runs an adapter from a position, under given seeds and noise of the gradient."""

    def __init__(self, adapter: Adapter, setting: Setting, theta, given=None, seed=0):
        self.adapter, self.setting, self.seed = adapter, setting, 1_000 * seed
        given = adapter.arguments(setting) if given is None else given
        self.state = adapter.init(np.array(theta, float), self.seed, **given)
        self.numbers = np.random.default_rng(seed)

    def step(self, noise: Any = 0.0, variance: float = 0.0) -> np.ndarray:
        """Take a step, and return position and momentum, ``(k, copies, dim)``."""
        self.seed += 1
        shape = self.adapter.position(self.state).shape
        a = np.array(self.setting.curvature)
        target = Target(a, np.broadcast_to(noise, shape) + 0.0, variance)
        seed = self.seed
        if self.adapter.normals:
            numbers = np.random.default_rng(seed)
            seed = numbers.standard_normal((self.adapter.normals, *shape))
        self.state = self.adapter.step(self.state, target, seed)
        return self.read()

    def read(self) -> np.ndarray:
        """Return position and momentum, ``(k, copies, dim)``."""
        parts = [self.adapter.position(self.state), self.adapter.momentum(self.state)]
        return np.stack([np.array(x, float) for x in parts if x is not None])


def probe(
    adapter: Adapter,
    setting: Setting,
    given: dict | None = None,
    samples: int | None = None,
) -> Probe:
    """Read F and Q off a sampler's step.

    Two runs under one seed differ by Fᵏ times the difference at their start, exactly
    where a step is linear; so two steps show F though nobody sets a momentum. What a
    step adds to F times the state before it has the covariance Q, estimated by many
    copies of every coordinate.
    """
    one = np.ones((1, len(setting.curvature)))

    def path(theta, noise=0.0):
        run = Path(adapter, setting, theta, given)
        own = setting.variance if adapter.own_batches else 0.0
        start = run.read()
        steps = [run.step(noise, own), run.step(0.0, own)]
        return np.stack([start, *steps])[:, :, 0, :]  # (time, k, dim)

    base, half = path(0 * one), one.copy()
    half[0, 1:] = 0.0
    moved = path(one) - base
    transition = _transition(moved)
    linear = _near(path(3 * one) - base, 3 * moved)
    if one.size > 1:
        apart = path(half) - base
        linear &= _near(apart[..., 0], moved[..., 0])
        linear &= _near(apart[..., 1:], 0 * moved[..., 1:])
    push = np.zeros(moved.shape[1:])
    if not adapter.own_batches:
        pushed = path(0 * one, 1.0) - base
        push = pushed[1]
        carried = np.einsum("dij,jd->id", transition, push)
        linear &= _near(pushed[2], carried)
    steps = 4
    copies = (samples or adapter.samples) // steps
    run = Path(adapter, setting, np.zeros((copies, one.size)), given, seed=1)
    own = setting.variance if adapter.own_batches else 0.0
    noise, before = 0.0, run.read()
    for _ in range(steps):
        after = run.step(0.0, own)
        rest = after - np.einsum("dij,jcd->icd", transition, before)
        noise = noise + np.einsum("icd,jcd->dij", rest, rest) / copies / steps
        before = after
    if not adapter.own_batches:
        noise = noise + setting.variance * np.einsum("id,jd->dij", push, push)
    return Probe(Chain(transition, noise), copies * steps, bool(linear))


def _transition(moved: np.ndarray) -> np.ndarray:
    """Solve F (d₀ d₁) = (d₁ d₂) for each coordinate; d is (time, k, dim)."""
    size, found = moved.shape[1], []
    for d in np.moveaxis(moved, 2, 0):
        d = d.T  # (k, time)
        found.append(d[:, 1 : size + 1] @ np.linalg.pinv(d[:, :size]))
    return np.stack(found)


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    scale = max(abs(other).max(), 1e-3)
    return bool(abs(one - other).max() <= 10 * ROUNDING * scale)


class Distance(NamedTuple):
    """How far a measured step is from a law."""

    transition: float  #: of F, in units of what rounding may do
    noise: float  #: of Q, in standard errors

    @property
    def far(self) -> bool:
        """Whether this is another law."""
        return not (self.transition <= 1 and self.noise <= LIMIT)


def compare(found: Probe, law: Chain) -> Distance:
    """Compare the positions of a measured step with those of a law, at all times.

    With p the characteristic polynomial of F, xₜ + p₁xₜ₋₁ + p₂xₜ₋₂ is a moving average
    u·wₜ + v·wₜ₋₁ of the noise w ~ N(0, Q). So p, its variance and its covariance decide
    the law of all positions; the momentum's unit, and which move is called the first,
    are of no matter. A momentum that each step draws anew is left out.
    """
    k = found.chain.transition.shape[1]
    if k > law.transition.shape[1] or law.transition[:, :k, k:].any():
        return Distance(np.inf, np.inf)
    law = Chain(law.transition[:, :k, :k], law.noise[:, :k, :k])
    rows = []
    for theirs, ours in zip(zip(*found.chain), zip(*law)):  # noqa: B905
        (p, a), (q, b) = _moving_average(*theirs), _moving_average(*ours)
        off = abs(p - q).max() / max(abs(q).max(), 0.1) / ROUNDING
        rounding = ROUNDING * 0.05 * b.max() + 1e-14 * abs(q).max()
        error = 2 * (b**2).sum(), max(b[0, 0] * b[1, 1] + b[0, 1] ** 2, 0.0)
        error = np.sqrt(np.divide(error, found.samples)) + rounding
        apart = abs(np.trace(a - b)), abs((a - b)[0, 1])
        rows.append((off, (apart / error).max()))
    return Distance(*np.max(rows, axis=0).tolist())


def _moving_average(transition: np.ndarray, noise: np.ndarray):
    """Return the characteristic polynomial, and the covariance of u·w and v·w."""
    size = len(transition)
    u = np.eye(size)[0]
    v = u @ (transition - np.trace(transition) * np.eye(size))
    both = np.stack([u, v])
    return np.poly(transition).real, both @ noise @ both.T


def moments(
    adapter: Adapter,
    setting: Setting,
    given: dict | None = None,
    steps: int = 1_500,
    copies: int = 2_000,
    at_mode: bool = False,
) -> Moments:
    """Estimate E θ² of a sampler by many copies, from the target or from its mode.

    A copy's mean over the second half of the steps counts once, so that the standard
    error needs no autocorrelation.
    """
    numbers, dim = np.random.default_rng(5), len(setting.curvature)
    start = 0.0 if at_mode else setting.target**0.5
    run = Path(adapter, setting, start * numbers.standard_normal((copies, dim)), given)
    total, kept, first = 0.0, 0, run.read()[0]
    own = setting.variance if adapter.own_batches else 0.0
    for step in range(steps):
        noise = 0.0
        if setting.variance and not own:
            noise = setting.variance**0.5 * numbers.standard_normal((copies, dim))
        position = run.step(noise, own)[0]
        if step >= steps // 2 and step % 5 == 0:
            total, kept = total + position**2, kept + 1
    each = total / kept
    if abs(run.read()[0] - first).max() == 0:
        each = 0 * each  # a chain that never moves has no distribution of its own
    return Moments(each.mean(0), each.std(0, ddof=1) / copies**0.5)


def z_test(found: Moments, law: np.ndarray) -> float:
    """Give the largest distance of second moments from an exact law's, in standard
    errors; a law has no error of its own.
    """
    off = abs(found.second - law) / np.maximum(found.error, 1e-3 * law)
    return float(np.where(np.isfinite(off), off, np.inf).max())


def furthest(ratio: np.ndarray) -> float:
    """Return the ratio that is furthest from one, by its factor."""
    ratio = np.nan_to_num(np.asarray(ratio, float), nan=np.inf, posinf=np.inf)
    return float(ratio[abs(np.log(np.maximum(ratio, 1e-300))).argmax()])
