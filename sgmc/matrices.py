"""Scalars, diagonals and full matrices as one thing: masses, frictions and covariances come in all three forms.

A *matrix* here is a ``float`` (that multiple of the identity), a tensor ``(dim,)`` (a diagonal) or a tensor ``(dim, dim)``.
"""

import math

import torch
from torch import Tensor

Matrix = float | Tensor


def as_matrix(value: Matrix, name: str, *, positive: bool = False) -> Matrix:
    """Check that ``value`` is a symmetric positive (semi-)definite matrix in one of the three forms.

    Args:
        value: a number, a tensor ``(dim,)`` or a symmetric tensor ``(dim, dim)``.
        name: the argument's name, for the error message.
        positive: whether zero eigenvalues are refused too.

    Returns:
        The value; a number or 0-dimensional tensor as ``float``.

    Raises:
        ValueError: if it is not symmetric, not finite, or has an eigenvalue below zero (or at zero with ``positive``).

    Example:
        >>> as_matrix(2, "mass", positive=True)
        2.0
    """
    if not isinstance(value, Tensor) or value.ndim == 0:
        value = float(value)
        eigenvalues = [value]
    elif value.ndim == 1:
        eigenvalues = value.tolist()
    elif value.ndim == 2 and value.shape[0] == value.shape[1]:
        if not torch.allclose(value, value.T):
            raise ValueError(f"{name} is a matrix that is not symmetric; pass ({name} + {name}.T) / 2 if that is meant")
        eigenvalues = torch.linalg.eigvalsh(value).tolist()
    else:
        raise ValueError(f"{name} has shape {tuple(value.shape)}; give a number, a tensor (dim,) or a tensor (dim, dim)")
    if not all(math.isfinite(x) for x in eigenvalues):
        raise ValueError(f"{name} has entries that are not finite: {value}")
    # A full matrix built in floating point may have eigenvalues that are zero up to rounding.
    rounding = 1e-6 * max(abs(x) for x in eigenvalues) if isinstance(value, Tensor) and value.ndim == 2 else 0.0
    smallest = min(eigenvalues)
    if smallest < -rounding or (positive and smallest <= 0):
        needed = "positive" if positive else "non-negative"
        raise ValueError(f"{name} must be {needed}, but its smallest value or eigenvalue is {smallest:g}")
    return value


def add_product_(target: Tensor, matrix: Matrix, vector: Tensor) -> Tensor:
    """Add the matrix-vector product of every chain in place: target ← target + A·vector.

    Args:
        target: ``(chains, dim)``, overwritten.
        matrix: a number, ``(dim,)`` or ``(dim, dim)``.
        vector: ``(chains, dim)``; it may be ``target`` itself.

    Returns:
        ``target``.

    Example:
        >>> add_product_(torch.zeros(1, 2), torch.tensor([1.0, 2.0]), torch.ones(1, 2))
        tensor([[1., 2.]])
    """
    if isinstance(matrix, float):
        return target.add_(vector, alpha=matrix)
    if matrix.ndim == 1:
        return target.addcmul_(vector, matrix)
    return target.add_(vector @ matrix.T)


def apply(matrix: Matrix, vector: Tensor) -> Tensor:
    """Multiply the vector of every chain by a matrix, A·vector: ``(chains, dim)`` → ``(chains, dim)``.

    Example:
        >>> apply(torch.tensor([1.0, 2.0]), torch.ones(1, 2))
        tensor([[1., 2.]])
    """
    return vector @ matrix.T if isinstance(matrix, Tensor) and matrix.ndim == 2 else matrix * vector


def product(left: Matrix, right: Matrix) -> Matrix:
    """Multiply two matrices A·B, each in any of the three forms, keeping the simplest form.

    Example:
        >>> product(2.0, torch.tensor([1.0, 3.0]))
        tensor([2., 6.])
    """
    if isinstance(left, float) or isinstance(right, float):
        return left * right
    if left.ndim == 2 and right.ndim == 2:
        return left @ right
    return left[:, None] * right if left.ndim < right.ndim else left * right


def sum_of(left: Matrix, right: Matrix) -> Matrix:
    """Add two matrices A + B, each in any of the three forms, keeping the simplest form.

    Example:
        >>> sum_of(torch.ones(2, 2), 1.0)
        tensor([[2., 1.],
                [1., 2.]])
    """
    full = next((x for x in (left, right) if isinstance(x, Tensor) and x.ndim == 2), None)
    if full is None:
        return left + right

    def expand(x: Matrix) -> Tensor:
        if isinstance(x, float):
            return x * torch.eye(len(full), dtype=full.dtype, device=full.device)
        return torch.diag(x) if x.ndim == 1 else x

    return expand(left) + expand(right)


def inverse(matrix: Matrix) -> Matrix:
    """Invert a positive matrix in any of the three forms.

    Example:
        >>> inverse(4.0)
        0.25
    """
    return torch.linalg.inv(matrix) if isinstance(matrix, Tensor) and matrix.ndim == 2 else 1 / matrix


def square_root(matrix: Matrix) -> Matrix:
    """Take the symmetric root R of a non-negative matrix, R·R = A, so that R·ξ has covariance A for standard normal ξ.

    Example:
        >>> square_root(9.0)
        3.0
    """
    if isinstance(matrix, float):
        return math.sqrt(matrix)
    if matrix.ndim == 1:
        return matrix.sqrt()
    eigenvalues, eigenvectors = torch.linalg.eigh(matrix)
    return (eigenvectors * eigenvalues.clamp(min=0).sqrt()) @ eigenvectors.T
