"""What the tests of the kernels share; they are level 1 of the ladder: algebra that is
exact up to rounding.
"""

import torch
from torch import Tensor

from sgmc.posteriors import LogisticRegression
from sgmc.potentials import Potential
from sgmc.targets import Gaussian, NoisyGradient

DOUBLE = torch.float64
DIAGONAL = torch.tensor([0.5, 2.0], dtype=DOUBLE)
FULL = torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=DOUBLE)
MASSES = {"number": 1.7, "diagonal": DIAGONAL, "full": FULL}

TARGET = Gaussian(torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=DOUBLE))
NOISY = NoisyGradient(TARGET, torch.tensor([[4.0, 1.0], [1.0, 2.0]], dtype=DOUBLE))
START = torch.randn(30, 2, generator=torch.Generator().manual_seed(7), dtype=DOUBLE)


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


class Counting(Potential):
    """Count the evaluations of the gradients."""

    def __init__(self, potential):
        self.potential, self.count = potential, 0

    def energy(self, position):
        return self.potential.energy(position)

    def gradient(self, position):
        self.count += 1
        return self.potential.gradient(position)


def forms(value: float) -> dict:
    """Write one matrix, a multiple of the identity, in the three forms."""
    return {
        "number": value,
        "diagonal": torch.full((2,), value, dtype=DOUBLE),
        "full": value * torch.eye(2, dtype=DOUBLE),
    }


def full(matrix) -> Tensor:
    """Write a matrix in any of the three forms as a full one."""
    if not isinstance(matrix, Tensor):
        return matrix * torch.eye(2, dtype=DOUBLE)
    return torch.diag(matrix) if matrix.ndim == 1 else matrix


def root(matrix) -> Tensor:
    """Take the symmetric root of a full matrix by its own means, Schur's in place of
    the eigenvectors'.
    """
    from scipy.linalg import sqrtm

    return torch.from_numpy(sqrtm(full(matrix).numpy()).real)


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(generator) -> Tensor:
    return torch.randn(START.shape, generator=generator, dtype=DOUBLE)


def uniform(generator) -> Tensor:
    return torch.rand(len(START), generator=generator, dtype=DOUBLE)


def run(kernel, potential, position, num_steps=1, seed=0):
    """Take steps from the kernel's own start, and return the last state."""
    return run_with_info(kernel, potential, position, num_steps, seed)[0]


def run_with_info(kernel, potential, position, num_steps=1, seed=0):
    """Take steps from the kernel's own start, and return the last state and info."""
    generator = generator_of(seed)
    state, info = kernel.init(potential, position, generator), None
    for _ in range(num_steps):
        state, info = kernel.step(potential, state, generator)
    return state, info


def logistic(batch_size=None) -> LogisticRegression:
    """Make a posterior of 40 examples."""
    generator = generator_of(11)
    inputs = torch.randn(40, 2, generator=generator, dtype=DOUBLE)
    return LogisticRegression(
        inputs,
        (torch.rand(40, generator=generator) < 0.5).to(DOUBLE),
        batch_size=batch_size,
    )


def assert_same(first, second, **tolerance) -> None:
    """Compare two states field by field, bit for bit unless a tolerance is given."""
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, **({"rtol": 0, "atol": 0} | tolerance))


def assert_chains_do_not_interact(kernel, potential) -> None:
    """Moving the start of one chain changes nothing in the others, and chains from one
    point draw their own numbers.
    """
    moved = START.clone()
    moved[1] += 0.5
    others = torch.arange(len(START)) != 1
    first, second = (
        run_with_info(kernel, potential, start, 3) for start in (START, moved)
    )
    for one, other in zip(
        (*first[0], *first[1]), (*second[0], *second[1]), strict=True
    ):
        if isinstance(one, Tensor):
            torch.testing.assert_close(
                one[others], other[others], rtol=0, atol=0, equal_nan=True
            )
    assert not torch.equal(first[0].position[1], second[0].position[1])
    together = run(kernel, potential, torch.zeros_like(START), 3).position
    # a rejected proposal may leave a few where they were
    assert len(together.unique(dim=0)) > len(START) / 2
