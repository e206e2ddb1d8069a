"""What tests put in the place of a target: two small ones, and potentials that count,
record, or misbehave on purpose.
"""

import math

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sgmc.posteriors import LogisticRegression
from sgmc.potentials import Potential
from sgmc.randomness import normal_block
from sgmc.targets import Gaussian, NoisyGradient

DOUBLE = torch.float64
TARGET = Gaussian(torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE))
NOISY = NoisyGradient(TARGET, torch.tensor([[4.0, 1.0], [1.0, 2.0]], dtype=DOUBLE))


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def logistic(batch_size=None, dtype=DOUBLE, kind=LogisticRegression, **settings):
    """Make a posterior of 40 examples."""
    generator = generator_of(11)
    inputs = torch.randn(40, 2, generator=generator, dtype=DOUBLE)
    labels = torch.rand(40, generator=generator) < 0.5
    return kind(inputs.to(dtype), labels.to(dtype), batch_size=batch_size, **settings)


class Flat(Potential):
    """U = 0, which pushes nowhere."""

    def energy(self, position):
        return torch.zeros_like(position[:, 0])

    def gradient(self, position):
        return torch.zeros_like(position)


class Box(Flat):
    """U = ½ in the box |θ| ≤ 1, and a given energy outside of it."""

    def __init__(self, outside):
        self.outside = outside

    def energy(self, position):
        return torch.where((position.abs() <= 1).all(-1), 0.5, self.outside).to(
            position
        )


class Around(Potential):
    """Another potential, which a subclass changes in one respect."""

    def __init__(self, potential):
        self.potential, self.dim = potential, potential.dim

    def energy(self, position):
        return self.potential.energy(position)

    def gradient(self, position):
        return self.potential.gradient(position)

    def draw_minibatches(self, position, generator, step, num_steps=1):
        return self.potential.draw_minibatches(position, generator, step, num_steps)

    def gradient_given(self, position, minibatch):
        return self.potential.gradient_given(position, minibatch)

    def gradient_and_variance_given(self, position, minibatch, kind):
        return self.potential.gradient_and_variance_given(position, minibatch, kind)


class Counting(Around):
    """Count the evaluations of the gradients, and note for which steps of the run
    minibatches were drawn.
    """

    def __init__(self, potential):
        super().__init__(potential)
        self.count, self.steps = 0, []

    def gradient(self, position):
        self.count += 1
        return super().gradient(position)

    def draw_minibatches(self, position, generator, step, num_steps=1):
        self.steps.extend(range(step, step + num_steps))
        return super().draw_minibatches(position, generator, step, num_steps)

    def gradient_given(self, position, minibatch):
        self.count += 1
        return super().gradient_given(position, minibatch)

    def gradient_and_variance_given(self, position, minibatch, kind):
        self.count += 1
        return super().gradient_and_variance_given(position, minibatch, kind)


class Walled(Around):
    """Neither energy nor gradient is a number where a coordinate exceeds a bound."""

    def __init__(self, potential, bound):
        super().__init__(potential)
        self.bound = bound

    def inside(self, position):
        return (position.abs() <= self.bound).all(-1)

    def energy(self, position):
        return torch.where(self.inside(position), super().energy(position), math.nan)

    def gradient(self, position):
        inside = self.inside(position)[:, None]
        return torch.where(inside, super().gradient(position), math.nan)

    def gradient_given(self, position, minibatch):
        inside = self.inside(position)[:, None]
        return torch.where(
            inside, super().gradient_given(position, minibatch), math.nan
        )

    def gradient_and_variance_given(self, position, minibatch, kind):
        _, variance = super().gradient_and_variance_given(position, minibatch, kind)
        return self.gradient_given(position, minibatch), variance


class WithPrecision(Around):
    """Another potential with a prior of a precision λ that is a hyperparameter: U(θ) +
    ½λ|θ|², with λ drawn from a uniform law that depends on θ.
    """

    def __init__(self, potential, precision: float | Tensor = 1.0):
        super().__init__(potential)
        self.hyperparameters = {"precision": precision}

    def given(self, hyperparameters):
        return type(self)(self.potential, hyperparameters["precision"])

    def draw_hyperparameters(self, position, generator):
        uniform = torch.rand(len(position), generator=generator, dtype=DOUBLE)
        return {"precision": uniform / (1 + position.double().pow(2).sum(-1))}

    def _precision(self, position):
        return torch.as_tensor(self.hyperparameters["precision"]).to(position)

    def energy(self, position):
        prior = 0.5 * self._precision(position) * position.pow(2).sum(-1)
        return super().energy(position) + prior

    def _pull(self, position):
        return self._precision(position)[..., None] * position

    def gradient(self, position):
        return super().gradient(position) + self._pull(position)

    def gradient_given(self, position, minibatch):
        return super().gradient_given(position, minibatch) + self._pull(position)


class Banana(Potential):
    """A bent Gaussian (Haario, Saksman and Tamminen, 1999): θ₁ ~ N(0, σ²), θ₂ | θ₁ ~
    N(b(θ₁² − σ²), 1).

    Args:
        variance: σ², the variance of the first coordinate.
        bend: b, the curvature of the ridge.
    """

    dim = 2

    def __init__(self, variance: float = 4.0, bend: float = 0.5):
        self.variance, self.bend = variance, bend

    def energy(self, position: Tensor) -> Tensor:
        """Compute θ₁²/2σ² + ½(θ₂ − b(θ₁² − σ²))²."""
        first, second = position.unbind(-1)
        return (
            first**2 / (2 * self.variance)
            + 0.5 * (second - self.bend * (first**2 - self.variance)) ** 2
        )

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, 2)``."""
        like = torch.empty(num_samples, device=generator.device)
        first, second = normal_block(like, 2, generator)
        first = first * math.sqrt(self.variance)
        return torch.stack([first, second + self.bend * (first**2 - self.variance)], -1)


class Funnel(Potential):
    """The funnel of Neal (2003): θ₁ ~ N(0, 9) and θᵢ | θ₁ ~ N(0, exp θ₁) for the other
    coordinates.

    Args:
        dim: number of coordinates, at least 2.
    """

    def __init__(self, dim: int = 10):
        self.dim: int = dim

    def energy(self, position: Tensor) -> Tensor:
        """Compute θ₁²/18 + ½(dim − 1)θ₁ + ½e^{−θ₁}Σθᵢ²."""
        neck, others = position[:, 0], position[:, 1:]
        return (
            neck**2 / 18
            + 0.5 * (self.dim - 1) * neck
            + 0.5 * torch.exp(-neck) * others.pow(2).sum(-1)
        )

    def exact_samples(self, num_samples: int, generator: Generator) -> Tensor:
        """Draw independent exact samples ``(num_samples, dim)``."""
        like = torch.empty(self.dim, device=generator.device)
        samples = normal_block(like, num_samples, generator)
        samples[:, 0] *= 3
        samples[:, 1:] *= torch.exp(0.5 * samples[:, :1])
        return samples


class WithoutFloat64(TorchDispatchMode):
    """A device without float64, such as Apple's: an error where PyTorch makes such a
    tensor of others.
    """

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        given, made = (
            {x.dtype for x in tree_leaves(each) if isinstance(x, Tensor)}
            for each in ((args, kwargs), out)
        )
        if DOUBLE in made and given and DOUBLE not in given:
            raise TypeError(f"no float64 on this device: {function}")
        return out
