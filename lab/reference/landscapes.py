"""What to sample: ``lab/landscapes.js`` and ``lab/regression.js`` in Python, energies
and gradients.
"""

import math

from lab.reference.core import Generator, Noise, exp, log


class Gaussian:
    """The standard normal distribution."""

    start = (0.0, 0.0)

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        return 0.5 * (x * x + y * y)

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U."""
        return x, y


class Correlated:
    """The normal distribution with variances 1 and correlation 0.9."""

    start = (0.0, 0.0)

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        return 0.5 * (x * x - 1.8 * x * y + y * y) / 0.19

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U."""
        return (x - 0.9 * y) / 0.19, (y - 0.9 * x) / 0.19


class DoubleWell:
    """−2x² + x⁴ of Chen et al. (2014), and a Gaussian across."""

    start = (-1.0, 0.0)

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        return x * x * (x * x - 2) + 0.5 * y * y

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U."""
        return 4 * x * (x * x - 1), y


class Banana:
    """x ~ N(0, 4), y | x ~ N(½(x² − 4), 1) (Haario, Saksman and Tamminen, 1999)."""

    start = (0.0, -2.0)

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        across = y - 0.5 * (x * x - 4)
        return x * x / 8 + 0.5 * across * across

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U."""
        across = y - 0.5 * (x * x - 4)
        return x / 4 - x * across, across


class Modes:
    """The 25 modes of Zhang et al. (2020), variance 0.03: the product of two mixtures
    of five.
    """

    start = (0.0, 0.0)

    def mixture(self, x: float) -> tuple[float, float, float]:
        """Compute the least square distance to a mean, the sum of the weights relative
        to that of this mean, and the slope.
        """
        means, total, moment = (-4, -2, 0, 2, 4), 0.0, 0.0
        least = min((x - mean) * (x - mean) for mean in means)
        for mean in means:
            weight = exp((least - (x - mean) * (x - mean)) / 0.06)
            total += weight
            moment += weight * (x - mean)
        return least, total, moment / total / 0.03

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        (first, sum_first, _), (second, sum_second, _) = (
            self.mixture(x),
            self.mixture(y),
        )
        return (
            (first + second) / 0.06
            - log(sum_first * sum_second / 25)
            + log(6.283185307179586 * 0.03)
        )

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U."""
        return self.mixture(x)[2], self.mixture(y)[2]


class Funnel:
    """x ~ N(0, 9), y | x ~ N(0, exp x) (Neal, 2003)."""

    start = (0.0, 0.0)

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        return x * x / 18 + 0.5 * x + 0.5 * exp(-x) * y * y

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U."""
        scaled = exp(-x) * y
        return x / 9 + 0.5 - 0.5 * scaled * y, scaled


class Regression:
    """A straight line x + y·inputᵢ through 40 points, targetᵢ ~ N(x + y·inputᵢ, 40) and
    x, y ~ N(0, 100): a posterior with data.
    """

    def __init__(self):
        noise, self.inputs, self.targets = Generator(1), [], []
        for i in range(40):
            self.inputs.append((i - 19.5) / math.sqrt(133.25))  # mean 0 and variance 1
            self.targets.append(2 * self.inputs[i] + math.sqrt(40) * noise.normal())
        precision, mean = 1.01, [0.0, 0.0]  # Σ1/40 + 1/100, and Σinputᵢ²/40 + 1/100
        for value, target in zip(self.inputs, self.targets, strict=True):
            mean[0] += target / 40 / precision
            mean[1] += value * target / 40 / precision
        self.start = tuple(mean)

    def energy(self, x: float, y: float) -> float:
        """Compute U."""
        total = 0.0
        for value, target in zip(self.inputs, self.targets, strict=True):
            residual = x + y * value - target
            total += residual * residual
        return total / 80 + (x * x + y * y) / 200

    def gradient(self, x: float, y: float) -> tuple[float, float]:
        """Compute ∇U, the gradient of the batch of all examples."""
        return self.minibatch_gradient(x, y, 40, None)

    def minibatch_gradient(
        self, x: float, y: float, batch_size: int, noise: Noise
    ) -> tuple[float, float]:
        """Compute ∇Ũ from a random subset of the examples."""
        first = second = 0.0
        for i in self.minibatch(batch_size, noise):
            residual = x + y * self.inputs[i] - self.targets[i]
            first += residual
            second += residual * self.inputs[i]
        scale = 40 / batch_size / 40
        return scale * first + x / 100, scale * second + y / 100

    def minibatch(self, batch_size: int, noise: Noise) -> list[int]:
        """Draw a subset by Knuth's selection sampling: each example that is left is
        equally likely to be among those still needed.
        """
        chosen = []
        for i in range(40):
            needed = batch_size - len(chosen)
            if needed > 0 and (needed >= 40 - i or noise.uniform() * (40 - i) < needed):
                chosen.append(i)
        return chosen


LANDSCAPES = {
    "gaussian": Gaussian(),
    "correlated": Correlated(),
    "double_well": DoubleWell(),
    "banana": Banana(),
    "modes": Modes(),
    "funnel": Funnel(),
    "regression": Regression(),
}
