"""Arithmetic, noise, and what the algorithms share: ``lab/core.js`` in Python."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

# their sum is log 2, and the first ends in zeros
LOG_2 = (0.693147180369123816490, 1.90821492927058770002e-10)
FACTORIALS = [1.0]  # 1/k!
ODD = [1 / (2 * k + 1) for k in range(12)]
POWERS = [1.0]  # 2^k, exact
for _k in range(1, 23):
    FACTORIALS.append(FACTORIALS[-1] / _k)
for _k in range(1, 1024):
    POWERS.append(2 * POWERS[-1])

State = dict[str, Any]
Parameters = dict[str, Any]


class Noise(Protocol):
    """Where an algorithm's random numbers come from."""

    def normal(self) -> float:
        """Give a standard normal number."""

    def uniform(self) -> float:
        """Give a number that is uniform on [0, 1)."""


def exp(x: float) -> float:
    """Compute eˣ as 2ᵏ times e to the power of the rest, x − k log 2, by Taylor's
    series; 0 below −708 and ∞ above 709.

    Example:
        >>> abs(exp(1.0) - 2.718281828459045) < 1e-15
        True
    """
    if x != x:
        return x
    if x < -708:
        return 0.0
    if x > 709:
        return math.inf
    k = math.floor(x / LOG_2[0] + 0.5)
    rest = x - k * LOG_2[0] - k * LOG_2[1]
    total = FACTORIALS[14]
    for n in range(13, -1, -1):
        total = total * rest + FACTORIALS[n]
    return total / POWERS[-k] if k < 0 else total * POWERS[k]


def log(x: float) -> float:
    """Compute the natural logarithm, log x = k log 2 + 2 artanh((m − 1)/(m + 1)) for x
    = 2^k m, by its series.

    Example:
        >>> abs(log(10.0) - 2.302585092994046) < 1e-15
        True
    """
    if not x > 0:
        return -math.inf if x == 0 else math.nan
    if x == math.inf:
        return x
    k, power = 0, 512
    while power >= 1:
        while x >= POWERS[power]:
            x, k = x / POWERS[power], k + power
        while x * POWERS[power] <= 1:
            x, k = x * POWERS[power], k - power
        power //= 2
    if x > 1.4:
        x, k = x / 2, k + 1
    elif x < 0.7:
        x, k = x * 2, k - 1
    s = (x - 1) / (x + 1)
    total = ODD[11]
    for n in range(10, -1, -1):
        total = total * s * s + ODD[n]
    return k * LOG_2[0] + (2 * s * total + k * LOG_2[1])


def cos(x: float) -> float:
    """Compute the cosine, cos x = 2 cos² ½x − 1 by Taylor's series, for |x| ≤ π.

    Example:
        >>> cos(0.0)
        1.0
    """
    square, total = x * x / 4, 0.0
    for n in range(22, -1, -2):
        total = FACTORIALS[n] - total * square
    return 2 * total * total - 1


def logaddexp(a: float, b: float) -> float:
    """Compute log(exp a + exp b).

    Example:
        >>> logaddexp(0.0, -math.inf)
        0.0
    """
    most = max(a, b)
    return most if most == -math.inf else most + log(1 + exp(min(a, b) - most))


class Generator:
    """Noise from a seed: the 32 bits of sfc32 (Doty-Humphrey, PractRand), and the polar
    method (Marsaglia and Bray, 1964).

    Args:
        seed: any integer; its last 32 bits count.

    Example:
        >>> Generator(1).uniform() == Generator(1).uniform() != Generator(2).uniform()
        True
    """

    def __init__(self, seed: int):
        self.a, self.b, self.c, self.counter, self.spare = (
            0,
            seed & 0xFFFFFFFF,
            0,
            1,
            None,
        )
        for _ in range(16):
            self.word()

    def word(self) -> int:
        """Give 32 random bits."""
        total = (self.a + self.b + self.counter) & 0xFFFFFFFF
        self.counter = (self.counter + 1) & 0xFFFFFFFF
        self.a = self.b ^ (self.b >> 9)
        self.b = (self.c + (self.c << 3)) & 0xFFFFFFFF
        self.c = (((self.c << 21) | (self.c >> 11)) + total) & 0xFFFFFFFF
        return total

    def uniform(self) -> float:
        """Give a number that is uniform on [0, 1), of 53 bits."""
        high = self.word() >> 5
        return (high * 67108864 + (self.word() >> 6)) / 9007199254740992

    def normal(self) -> float:
        """Give a standard normal number."""
        if self.spare is not None:
            kept, self.spare = self.spare, None
            return kept
        while True:
            x, y = 2 * self.uniform() - 1, 2 * self.uniform() - 1
            square = x * x + y * y
            if 0 < square < 1:
                break
        scale = math.sqrt(-2 * log(square) / square)
        self.spare = y * scale
        return x * scale


class Recorder:
    """Noise that keeps what it gave.

    Args:
        noise: where it comes from.

    Example:
        >>> noise = Recorder(Generator(1))
        >>> [noise.normal(), noise.normal()] == noise.normals, noise.uniforms
        (True, [])
    """

    def __init__(self, noise: Noise):
        self.noise, self.normals, self.uniforms = noise, [], []

    def normal(self) -> float:
        """Give a standard normal number."""
        self.normals.append(self.noise.normal())
        return self.normals[-1]

    def uniform(self) -> float:
        """Give a number that is uniform on [0, 1)."""
        self.uniforms.append(self.noise.uniform())
        return self.uniforms[-1]


def energy(position: Sequence[float], parameters: Parameters) -> float:
    """Compute U(θ) of one particle."""
    return parameters["landscape"].energy(*position)


def gradient(position: Sequence[float], parameters: Parameters) -> list[float]:
    """Compute ∇U(θ) of every particle; a position is x and y of one particle after the
    other.
    """
    particles = zip(position[::2], position[1::2], strict=True)
    return [
        slope for x, y in particles for slope in parameters["landscape"].gradient(x, y)
    ]


def stochastic_gradient(
    position: Sequence[float], parameters: Parameters, noise: Noise
) -> list[float]:
    """Compute ∇Ũ: from a minibatch where the landscape has data and a batch size is
    given; else ∇U + N(0, V), V a variance.
    """
    landscape, batch_size = parameters["landscape"], parameters["batch_size"]
    if hasattr(landscape, "minibatch_gradient") and batch_size > 0:
        particles = zip(position[::2], position[1::2], strict=True)
        return [
            slope
            for x, y in particles
            for slope in landscape.minibatch_gradient(x, y, batch_size, noise)
        ]
    slopes = gradient(position, parameters)
    if parameters["noise_variance"] > 0:
        root = math.sqrt(parameters["noise_variance"])
        slopes = [slope + root * noise.normal() for slope in slopes]
    return slopes


def injected_root(friction: float, noise_estimate: float, step_size: float) -> float:
    """Compute a root of 2(C − B̂)ε; where the estimate exceeds the friction nothing is
    injected.
    """
    return math.sqrt(2 * max(0, friction - noise_estimate) * step_size)


def draw_momentum(position: Sequence[float], noise: Noise) -> list[float]:
    """Draw r ~ N(0, 1) for every coordinate."""
    return [noise.normal() for _ in position]


def kinetic_energy(momentum: Sequence[float]) -> float:
    """Compute ½rᵀr of one particle."""
    return 0.5 * (momentum[0] * momentum[0] + momentum[1] * momentum[1])


def accept(energy: float, proposed_energy: float, noise: Noise) -> tuple[bool, float]:
    """Make the Metropolis decision min(1, exp(H − H')); a proposal whose energy is not
    finite is rejected.
    """
    acceptance = (
        exp(min(0.0, energy - proposed_energy))
        if math.isfinite(proposed_energy)
        else 0.0
    )
    return noise.uniform() < acceptance, acceptance


def leapfrog(
    gradient: Callable[[list[float]], list[float]],
    position: list[float],
    momentum: list[float],
    step_size: float,
    num_steps: int,
) -> tuple[list[float], list[float], list[list[float]]]:
    """Take leapfrog steps: half kick, drift, half kick.

    Returns:
        The new position and momentum, and the points (x, y, r₁, r₂) of the first
        particle, with both halves of their kicks.
    """

    def kick(momentum: list[float], time: float) -> list[float]:
        return [r - time * slope for r, slope in zip(momentum, slopes, strict=True)]

    half = step_size / 2
    slopes, path = gradient(position), [[*position[:2], *momentum[:2]]]
    momentum = kick(momentum, half)
    for step in range(1, num_steps + 1):
        position = [x + step_size * r for x, r in zip(position, momentum, strict=True)]
        slopes = gradient(position)
        path.append([*position[:2], *kick(momentum, half)[:2]])
        momentum = kick(momentum, half if step == num_steps else step_size)
    return position, momentum, path
