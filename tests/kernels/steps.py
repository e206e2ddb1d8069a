"""Steps of kernels, taken from one start, and what a step that is written out needs;
rung 1 of the ladder: algebra that is exact up to rounding.
"""

import torch
from torch import Tensor

from tests.fakes import DOUBLE, generator_of

DIAGONAL = torch.tensor([0.5, 2.0], dtype=DOUBLE)
FULL = torch.tensor([[1.5, 0.3], [0.3, 0.8]], dtype=DOUBLE)
MASSES = {"number": 1.7, "diagonal": DIAGONAL, "full": FULL}

START = torch.randn(30, 2, generator=torch.Generator().manual_seed(7), dtype=DOUBLE)


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


def assert_same(first, second, **tolerance) -> None:
    """Compare two states field by field, bit for bit unless a tolerance is given."""
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, **({"rtol": 0, "atol": 0} | tolerance))
