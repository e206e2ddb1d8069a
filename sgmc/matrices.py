"""Numbers, diagonals and full matrices as one type."""

from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from sgmc.checks import shown

# A negative eigenvalue of up to this share of the largest one may come from rounding.
_ROUNDING = 1e-6


class Matrix:
    """A symmetric or general matrix, in the simplest form that holds it; one for all
    chains, or one for each.

    The algorithms write ``A @ x``, ``A @ B``, ``A + B``, ``A - B``, ``2 * A``,
    ``A.inverse`` and ``A.root``, and in their loops :func:`addmv_`, which adds αAx in
    place. The inverse and the root are computed once.

    Args:
        value: a number (that multiple of the identity), a tensor ``(dim,)`` (a
            diagonal) or a tensor ``(dim, dim)``.
        name: what an error calls it.

    Raises:
        ValueError: if it is something else.

    Example:
        >>> mass = Matrix(torch.tensor([1.0, 4.0]))
        >>> (2 * mass).inverse @ torch.ones(1, 2)
        tensor([[0.5000, 0.1250]])
    """

    tensor: Tensor  #: (), (dim,), (dim, dim); or of each chain, (chains, ...)
    full: bool  #: whether it is neither a number nor a diagonal
    number: float | None  #: the number, if it is one

    def __init__(self, value: "MatrixLike", name: str = "a matrix"):
        if isinstance(value, Matrix):
            self._hold(value.tensor, value.full)
        elif _is_number(value):
            self._hold(torch.tensor(float(value), dtype=torch.float64), False)
        elif _is_matrix(value):
            self._hold(value, value.ndim == 2)
        else:
            kind = "" if isinstance(value, Tensor) else f", a {type(value).__name__}"
            given = shown(value) if isinstance(value, Tensor) else repr(value)
            raise ValueError(
                f"{name} must be a number, or a floating-point tensor (dim,) or (dim, "
                f"dim), but it is {given}{kind}"
            )

    @classmethod
    def of(cls, value: "MatrixLike", name: str = "a matrix") -> "Matrix":
        """Return a matrix as it is, with everything derived from it, or make one."""
        return value if isinstance(value, Matrix) else cls(value, name)

    def _hold(self, tensor: Tensor, full: bool) -> "Matrix":
        self.tensor, self.full = tensor, full
        self.number = float(tensor) if tensor.ndim == 0 else None
        return self

    @classmethod
    def of_chains(cls, value: Tensor) -> "Matrix":
        """Make one matrix for each chain: ``(chains, 1)``, ``(chains, dim)`` or
        full.
        """
        return _matrix(value, value.ndim == 3)

    @property
    def value(self) -> float | Tensor:
        """Return the matrix as one writes it, a float or the tensor."""
        return self.tensor if self.number is None else self.number

    def __repr__(self) -> str:
        return f"Matrix({self.value})"

    def __matmul__(self, other: Any) -> Any:
        """Multiply by every chain's vector ``(chains, dim)``, or by a matrix."""
        left = self.tensor
        if isinstance(other, Tensor):
            if not self.full:
                return self.value * other
            return (
                other @ left.mT if left.ndim == 2 else (left @ other[..., None])[..., 0]
            )
        right = other.tensor
        if self.full and other.full:
            return _matrix(left @ right, True)
        if self.full and right.ndim:
            right = right[..., None, :]
        if other.full and left.ndim:
            left = left[..., :, None]
        return _matrix(left * right, self.full or other.full)

    def __rmul__(self, number: float) -> "Matrix":
        """Multiply by a number."""
        return _matrix(number * self.tensor, self.full)

    def __add__(self, other: "Matrix") -> "Matrix":
        """Add another matrix, as a full one if either is."""
        if self.full == other.full:
            return _matrix(self.tensor + other.tensor, self.full)
        full, thin = (self, other) if self.full else (other, self)
        return _matrix(full.tensor + thin._filled(full.tensor), True)

    def __sub__(self, other: "Matrix") -> "Matrix":
        """Subtract another matrix."""
        return self + (-1.0) * other

    @cached_property
    def inverse(self) -> "Matrix":
        """The inverse A⁻¹; a ValueError if the number is zero."""
        if self.number == 0:
            raise ValueError("a matrix that is 0 has no inverse")
        inverse = torch.linalg.inv(self.tensor) if self.full else 1 / self.tensor
        return _matrix(inverse, self.full)

    @cached_property
    def root(self) -> "Matrix":
        """The symmetric root R of a non-negative matrix, R·R = A, so that R·ξ has
        covariance A for standard normal ξ; a ValueError if the matrix has an eigenvalue
        that is negative by more than rounding.
        """
        values, vectors = self.tensor, None
        if self.full:
            values, vectors = torch.linalg.eigh(self.tensor)
        rounding = _ROUNDING * float(values.abs().max()) if self.full else 0.0
        if (smallest := float(values.min())) < -rounding:
            raise ValueError(
                f"a matrix whose smallest value or eigenvalue is {smallest:g} has no "
                "root, and is no covariance"
            )
        root = values.clamp(min=0).sqrt()
        if vectors is None:
            return _matrix(root, False)
        return _matrix((vectors * root[..., None, :]) @ vectors.mT, True)

    @cached_property
    def transposed(self) -> "Matrix":
        """The transpose Aᵀ."""
        return _matrix(self.tensor.mT, True) if self.full else self

    def dense(self, dim: int) -> Tensor:
        """Return the full matrix, ``(dim, dim)`` float64; raise a ValueError if its
        size is another.
        """
        if self.tensor.ndim and self.tensor.shape[-1] not in (dim, 1 - self.full):
            raise ValueError(
                "the numbers of coordinates do not agree: a matrix has "
                f"{self.tensor.shape[-1]}, and another {dim}"
            )
        like = torch.empty(dim, dim, dtype=torch.float64)
        return self.tensor.double() if self.full else self._filled(like)

    def _filled(self, like: Tensor) -> Tensor:
        """Write a number or a diagonal as a full matrix, in the form of another one."""
        shape = *self.tensor.shape[:-1], like.shape[-1]
        return torch.diag_embed(self.tensor.to(like).expand(shape))

    @cached_property
    def eigenvalues(self) -> list[float]:
        """The eigenvalues of a symmetric matrix; those of a diagonal in their order."""
        values = torch.linalg.eigvalsh(self.tensor) if self.full else self.tensor
        return values.reshape(-1).tolist()


MatrixLike = float | Tensor | Matrix


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and not value.is_meta and not value.is_complex()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_matrix(value: Any) -> TypeGuard[Tensor]:
    """Tell whether a value is a floating-point tensor ``(dim,)`` or ``(dim, dim)``."""
    if not isinstance(value, Tensor) or value.is_meta or not value.is_floating_point():
        return False
    size, square = value.element_size(), len(set(value.shape)) == 1
    # Half precision has no eigenvalues.
    fits = value.ndim == 1 or (value.ndim == 2 and square and size > 2)
    return fits and value.numel() > 0


def _matrix(tensor: Tensor, full: bool) -> Matrix:
    return Matrix.__new__(Matrix)._hold(tensor, full)


def addmv_(
    target: Tensor, matrix: Matrix, vector: Tensor, alpha: float = 1.0
) -> Tensor:
    """Add a product with every chain's vector in place, target ← target + αA·vector, as
    :meth:`torch.Tensor.addmv_` does for one.

    The target and the vector are ``(chains, dim)``, and may be one tensor.

    Example:
        >>> matrix = Matrix(torch.tensor([1.0, 2.0]))
        >>> addmv_(torch.zeros(1, 2), matrix, torch.ones(1, 2), 0.5)
        tensor([[0.5000, 1.0000]])
    """
    if matrix.number is not None:
        return target.add_(vector, alpha=alpha * matrix.number)
    if matrix.full:
        return target.add_(matrix @ vector, alpha=alpha)
    return target.addcmul_(vector, matrix.tensor, value=alpha)


def as_matrix(
    value: MatrixLike,
    name: str,
    *,
    positive: bool = False,
    signed: bool = False,
    remedy: str = "",
) -> Matrix:
    """Check that ``value`` is a symmetric positive (semi-)definite matrix in one of the
    three forms.

    Args:
        value: a number, a tensor ``(dim,)`` or a symmetric tensor ``(dim, dim)``; or a
            :class:`Matrix` of these.
        name: the argument's name, for the error message.
        positive: whether zero eigenvalues are invalid, too.
        signed: whether negative eigenvalues are allowed.
        remedy: the advice of the error message.

    Raises:
        ValueError: if it has another form, is not symmetric, not finite, or has an
            eigenvalue that is not allowed.

    Example:
        >>> as_matrix(2, "mass", positive=True)
        Matrix(2.0)
    """
    matrix = Matrix.of(value, name)
    if not matrix.tensor.isfinite().all():
        raise ValueError(f"{name} has entries that are not finite: {matrix.value}")
    if matrix.full and not torch.allclose(matrix.tensor, matrix.tensor.mT):
        raise ValueError(
            f"{name} is a matrix that is not symmetric; pass ({name} + {name}.T) / 2 "
            "if that is meant"
        )
    if signed:
        return matrix
    smallest, largest = min(matrix.eigenvalues), max(map(abs, matrix.eigenvalues))
    if smallest < -_ROUNDING * largest * matrix.full or (positive and smallest <= 0):
        raise ValueError(
            f"{name} must be {'positive' if positive else 'non-negative'}, but its "
            f"smallest value or eigenvalue is {smallest:g}{remedy and f': {remedy}'}"
        )
    return matrix


def in_double(values: Tensor) -> Tensor:
    """Copy numbers to the CPU in float64, which not every device has, by NumPy, so that
    a test can find the numbers that PyTorch converts.

    Example:
        >>> in_double(torch.tensor([True, False]))
        tensor([1., 0.], dtype=torch.float64)
    """
    values = values.detach().cpu()
    if values.dtype == torch.bfloat16:  # NumPy does not know this type
        values = values.float()
    return torch.from_numpy(values.numpy().astype(np.float64))
