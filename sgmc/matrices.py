"""Numbers, diagonals and full matrices as one type: masses, frictions and covariances
come in all three forms.
"""

import math
from functools import cached_property

import torch
from torch import Tensor

# share of the largest eigenvalue up to which one below zero may come from building a
# full matrix in floating point
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

    Raises:
        ValueError: if it is something else.

    Example:
        >>> mass = Matrix(torch.tensor([1.0, 4.0]))
        >>> (2 * mass).inverse @ torch.ones(1, 2)
        tensor([[0.5000, 0.1250]])
    """

    def __init__(self, value: "float | Tensor | Matrix"):
        if isinstance(value, Matrix):
            # the same matrix, so that what is derived from it is computed once for both
            self.__dict__ = value.__dict__
            return
        _check_form(value, "a matrix")
        if not isinstance(value, Tensor) or value.ndim == 0:
            self.value: float | Tensor = float(value)
            self.full: bool = False
        else:
            self.value, self.full = value, value.ndim == 2

    @classmethod
    def of_chains(cls, value: Tensor) -> "Matrix":
        """Make a matrix for each chain: numbers ``(chains, 1)``, diagonals ``(chains,
        dim)`` or full ones ``(chains, dim, dim)``.
        """
        return cls._make(value, value.ndim == 3)

    @classmethod
    def _make(cls, value: float | Tensor, full: bool) -> "Matrix":
        matrix = cls.__new__(cls)
        matrix.value, matrix.full = value, full
        return matrix

    def __repr__(self) -> str:
        return f"Matrix({self.value})"

    def __matmul__(self, other):
        """Multiply by every chain's vector ``(chains, dim)``, or by another matrix,
        keeping the simplest form.
        """
        if isinstance(other, Tensor):
            if not self.full:
                return self.value * other
            return (
                other @ self.value.mT
                if self.value.ndim == 2
                else (self.value @ other[..., None])[..., 0]
            )
        if self.full and other.full:
            return Matrix._make(self.value @ other.value, True)
        left, right = self.value, other.value
        if self.full and isinstance(right, Tensor):
            right = right[..., None, :]
        if other.full and isinstance(left, Tensor):
            left = left[..., :, None]
        return Matrix._make(left * right, self.full or other.full)

    def __rmul__(self, number: float) -> "Matrix":
        """Multiply by a number."""
        return Matrix._make(number * self.value, self.full)

    def __add__(self, other: "Matrix") -> "Matrix":
        """Add another matrix, keeping the simplest form."""
        if self.full == other.full:
            return Matrix._make(self.value + other.value, self.full)
        full, thin = (self, other) if self.full else (other, self)
        return Matrix._make(full.value + thin._filled(full.value), True)

    def __sub__(self, other: "Matrix") -> "Matrix":
        """Subtract another matrix."""
        return self + (-1.0) * other

    @cached_property
    def inverse(self) -> "Matrix":
        """The inverse A⁻¹.

        Raises:
            ValueError: if the number is zero.
        """
        if isinstance(self.value, float) and self.value == 0:
            raise ValueError("a matrix that is 0 has no inverse")
        return Matrix._make(
            torch.linalg.inv(self.value) if self.full else 1 / self.value, self.full
        )

    @cached_property
    def root(self) -> "Matrix":
        """The symmetric root R of a non-negative matrix, R·R = A, so that R·ξ has
        covariance A for standard normal ξ.

        Raises:
            ValueError: if the matrix has an eigenvalue below zero, but for rounding.
        """
        if isinstance(self.value, float):
            _check_non_negative(self.value, 0.0)
            return Matrix(math.sqrt(self.value))
        if not self.full:
            _check_non_negative(float(self.value.min()), 0.0)
            return Matrix._make(self.value.sqrt(), False)
        eigenvalues, eigenvectors = torch.linalg.eigh(self.value)
        _check_non_negative(
            float(eigenvalues.min()), _ROUNDING * float(eigenvalues.abs().max())
        )
        return Matrix._make(
            (eigenvectors * eigenvalues.clamp(min=0).sqrt()[..., None, :])
            @ eigenvectors.mT,
            True,
        )

    @cached_property
    def exponential(self) -> "Matrix":
        """The exponential e^A."""
        if isinstance(self.value, float):
            return Matrix(math.exp(self.value))
        return Matrix._make(
            torch.matrix_exp(self.value) if self.full else self.value.exp(), self.full
        )

    @cached_property
    def transposed(self) -> "Matrix":
        """The transpose Aᵀ."""
        return Matrix._make(self.value.mT, True) if self.full else self

    def dense(self, dim: int) -> Tensor:
        """Write the matrix out: ``(dim, dim)`` float64.

        Raises:
            ValueError: if it has another number of coordinates.
        """
        if isinstance(self.value, Tensor) and self.value.shape[-1] not in (
            (dim,) if self.full else (1, dim)
        ):
            raise ValueError(
                "the numbers of coordinates do not agree: a matrix has "
                f"{self.value.shape[-1]}, and another {dim}"
            )
        value = self.value.double() if isinstance(self.value, Tensor) else self.value
        return (
            value
            if self.full
            else Matrix._make(value, False)._filled(
                torch.zeros(dim, dim, dtype=torch.float64)
            )
        )

    def _filled(self, like: Tensor) -> Tensor:
        """Write a number or a diagonal out as a matrix of the size and type of another
        one.
        """
        diagonal = torch.as_tensor(self.value, dtype=like.dtype, device=like.device)
        return torch.diag_embed(diagonal.expand(*diagonal.shape[:-1], like.shape[-1]))

    @property
    def mean(self) -> float:
        """The mean of the diagonal, that of all eigenvalues."""
        if isinstance(self.value, float):
            return self.value
        diagonal = self.value.diagonal(dim1=-2, dim2=-1) if self.full else self.value
        return float(diagonal.mean())

    @cached_property
    def eigenvalues(self) -> list[float]:
        """The eigenvalues of a symmetric matrix, the same for all chains; the entries
        of a diagonal in its order.
        """
        if isinstance(self.value, float):
            return [self.value]
        return (torch.linalg.eigvalsh(self.value) if self.full else self.value).tolist()


def addmv_(
    target: Tensor, matrix: Matrix, vector: Tensor, alpha: float = 1.0
) -> Tensor:
    """Add a product with every chain's vector in place, target ← target + αA·vector, as
    :meth:`torch.Tensor.addmv_` does for one.

    Args:
        target: ``(chains, dim)``, overwritten.
        matrix: A, a number, a diagonal or a full matrix.
        vector: ``(chains, dim)``; it may be the target itself.
        alpha: α.

    Returns:
        The target.

    Example:
        >>> addmv_(
        ...     torch.zeros(1, 2),
        ...     Matrix(torch.tensor([1.0, 2.0])),
        ...     torch.ones(1, 2),
        ...     0.5,
        ... )
        tensor([[0.5000, 1.0000]])
    """
    if isinstance(matrix.value, float):
        return target.add_(vector, alpha=alpha * matrix.value)
    if matrix.full:
        return target.add_(matrix @ vector, alpha=alpha)
    return target.addcmul_(vector, matrix.value, value=alpha)


def _check_form(value: object, name: str) -> None:
    if isinstance(value, Tensor):
        if (
            value.ndim > 2
            or (value.ndim == 2 and value.shape[0] != value.shape[1])
            or value.numel() == 0
        ):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; give a number, a tensor "
                "(dim,) or a tensor (dim, dim)"
            )
        if value.ndim > 0 and not value.is_floating_point():
            raise ValueError(
                f"{name} is a tensor of {value.dtype}, but must be one of "
                "floating-point numbers: use .float()"
            )
    elif not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(
            f"{name} must be a number, a tensor (dim,) or a tensor (dim, dim), but it "
            f"is {value!r} of type {type(value).__name__}: "
            f"use torch.as_tensor({name}) for what is no single number"
        )


def _check_non_negative(smallest: float, rounding: float) -> None:
    if smallest < -rounding:
        raise ValueError(
            f"a matrix whose smallest value or eigenvalue is {smallest:g} has no "
            "root, and is no covariance"
        )


def as_matrix(
    value: "float | Tensor | Matrix",
    name: str,
    *,
    positive: bool = False,
    signed: bool = False,
) -> Matrix:
    """Check that ``value`` is a symmetric positive (semi-)definite matrix in one of the
    three forms.

    Args:
        value: a number, a tensor ``(dim,)`` or a symmetric tensor ``(dim, dim)``; or a
            :class:`Matrix` of these.
        name: the argument's name, for the error message.
        positive: whether zero eigenvalues are refused too.
        signed: whether negative eigenvalues are allowed.

    Returns:
        The matrix.

    Raises:
        ValueError: if it has another form, is not symmetric, not finite, or has an
            eigenvalue below zero (or at zero with ``positive``), unless ``signed``.

    Example:
        >>> as_matrix(2, "mass", positive=True)
        Matrix(2.0)
    """
    if not isinstance(value, Matrix):
        _check_form(value, name)
    matrix = Matrix(value)
    entries = torch.as_tensor(matrix.value)
    if not entries.isfinite().all():
        raise ValueError(f"{name} has entries that are not finite: {matrix.value}")
    if matrix.full and not torch.allclose(matrix.value, matrix.value.mT):
        raise ValueError(
            f"{name} is a matrix that is not symmetric; pass ({name} + {name}.T) / 2 "
            "if that is meant"
        )
    if signed:
        return matrix
    rounding = (
        _ROUNDING * max(abs(x) for x in matrix.eigenvalues) if matrix.full else 0.0
    )
    smallest = min(matrix.eigenvalues)
    if smallest < -rounding or (positive and smallest <= 0):
        needed = "positive" if positive else "non-negative"
        raise ValueError(
            f"{name} must be {needed}, but its smallest value or eigenvalue is "
            f"{smallest:g}"
        )
    return matrix
