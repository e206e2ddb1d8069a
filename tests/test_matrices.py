"""Matrices in three forms: each operation agrees with the one on full matrices, and bad ones are refused."""

import itertools
import math

import pytest
import torch

from sgmc.matrices import add_product_, as_matrix, inverse, product, square_root, sum_of

FORMS = {
    "scalar": 2.5,
    "diagonal": torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64),
    "full": torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]], dtype=torch.float64),
}


def full(matrix):
    if isinstance(matrix, float):
        return matrix * torch.eye(3, dtype=torch.float64)
    return torch.diag(matrix) if matrix.ndim == 1 else matrix


@pytest.mark.parametrize(("left", "right"), itertools.product(FORMS, FORMS))
def test_products_and_sums(left, right):
    left, right = FORMS[left], FORMS[right]
    torch.testing.assert_close(full(product(left, right)), full(left) @ full(right))
    torch.testing.assert_close(full(sum_of(left, right)), full(left) + full(right))


@pytest.mark.parametrize("form", FORMS)
def test_inverse_root_and_product_with_vectors(form, generator):
    matrix = FORMS[form]
    torch.testing.assert_close(full(inverse(matrix)) @ full(matrix), torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(full(square_root(matrix)) @ full(square_root(matrix)), full(matrix))
    vectors, target = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    expected = target + vectors @ full(matrix).T
    torch.testing.assert_close(add_product_(target, matrix, vectors), expected)


def test_root_of_a_singular_matrix():
    ones = torch.ones(3, 3, dtype=torch.float64)
    torch.testing.assert_close(square_root(ones) @ square_root(ones), ones)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "mass must be positive, but its smallest value or eigenvalue is -1"),
        (0.0, "mass must be positive"),
        (math.nan, "mass has entries that are not finite"),
        (torch.tensor([1.0, -2.0]), "smallest value or eigenvalue is -2"),
        (torch.tensor([[1.0, 2.0], [2.0, 1.0]]), "smallest value or eigenvalue is -1"),
        (torch.tensor([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (torch.ones(2, 3), r"mass has shape \(2, 3\); give a number"),
    ],
)
def test_bad_matrices_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        as_matrix(value, "mass", positive=True)


def test_zero_is_non_negative():
    assert as_matrix(0, "friction") == 0.0
