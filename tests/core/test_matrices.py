"""Matrices in three forms, for all chains or for each: every operation agrees with the
one on full matrices, and bad ones are refused.
"""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import torch

from sgmc.kernels import HMC
from sgmc.matrices import Matrix, _matrix, addmv_, as_matrix
from sgmc.targets import Gaussian
from sgmc.tuning import adapt

DOUBLE = torch.float64
EYE = torch.eye(3, dtype=DOUBLE)
FULL = torch.tensor([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]], dtype=DOUBLE)
CHAINS = 4
SCALES = torch.tensor([1.0, 0.3, 2.0, 5.0], dtype=DOUBLE)
TURNED = torch.linalg.qr(
    torch.randn(CHAINS, 3, 3, generator=torch.Generator().manual_seed(2), dtype=DOUBLE)
).Q
FORMS = {
    "number": Matrix(2.5),
    "diagonal": Matrix(torch.tensor([0.5, 2.0, 3.0], dtype=DOUBLE)),
    "full": Matrix(FULL),
    "numbers of chains": Matrix.of_chains(SCALES[:, None]),
    "diagonals of chains": Matrix.of_chains(
        SCALES[:, None] * torch.tensor([0.5, 2.0, 3.0], dtype=DOUBLE) + 0.1
    ),
    "full ones of chains": Matrix.of_chains(TURNED @ FULL @ TURNED.mT),
}
OF_ALL = ("number", "diagonal", "full")


def written_out(matrix):
    """Write a matrix of any form out by its own means: one of ``(3, 3)`` for each
    chain.
    """
    value = matrix.tensor
    if matrix.number is not None:
        return (value * EYE).expand(CHAINS, 3, 3)
    if matrix.full:
        return value.expand(CHAINS, 3, 3)
    return torch.stack(
        [torch.diag(row.expand(3)) for row in value.expand(CHAINS, value.shape[-1])]
    )


def assert_close(given, expected):
    torch.testing.assert_close(written_out(given), expected, rtol=1e-12, atol=1e-12)


# The operations


@pytest.mark.parametrize(("left", "right"), itertools.product(FORMS, FORMS))
def test_products_sums_and_differences(left, right):
    left, right = FORMS[left], FORMS[right]
    assert_close(left @ right, written_out(left) @ written_out(right))
    assert_close(left + right, written_out(left) + written_out(right))
    assert_close(left - right, written_out(left) - written_out(right))
    # the simplest form that holds it
    for result in (left @ right, left + right, left - right):
        assert result.full == (left.full or right.full)
        assert (result.tensor.ndim == 0) == (left.tensor.ndim == right.tensor.ndim == 0)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_derived_from_one_matrix(form, generator):
    matrix = FORMS[form]
    out = written_out(matrix)
    assert_close(-0.3 * matrix, -0.3 * out)
    assert_close(
        matrix.inverse, torch.stack([torch.linalg.solve(one, EYE) for one in out])
    )
    assert_close(matrix.root @ matrix.root, out)
    assert (torch.linalg.eigvalsh(written_out(matrix.root)) > 0).all()
    assert_close(matrix.root.transposed, written_out(matrix.root))  # the symmetric root
    slanted = matrix @ Matrix(
        torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 3.0]], dtype=DOUBLE)
    )
    assert_close(slanted.transposed, written_out(slanted).mT)


@pytest.mark.parametrize("form", FORMS)
def test_products_with_vectors(form, generator):
    matrix, (target, vectors) = (
        FORMS[form],
        torch.randn(2, CHAINS, 3, generator=generator, dtype=DOUBLE),
    )
    # A matrix that is not symmetric tells a product from the left from one from the
    # right.
    for given in (
        matrix,
        matrix
        @ Matrix(
            torch.tensor(
                [[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 3.0]], dtype=DOUBLE
            )
        ),
    ):
        product = torch.stack(
            [
                one @ vector
                for one, vector in zip(written_out(given), vectors, strict=True)
            ]
        )
        torch.testing.assert_close(given @ vectors, product, rtol=1e-12, atol=1e-12)
        place = target.clone()
        assert addmv_(place, given, vectors) is place
        torch.testing.assert_close(place, target + product, rtol=1e-12, atol=1e-12)
        itself = vectors.clone()
        addmv_(itself, given, itself)
        torch.testing.assert_close(itself, vectors + product, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_written_out_in_float64(form):
    matrix = FORMS[form]
    single = (
        matrix
        if (matrix.number is not None)
        else _matrix(matrix.tensor.float(), matrix.full)
    )
    for given, tolerance in ((matrix, 0.0), (single, 1e-6)):
        dense = given.dense(3)
        assert dense.dtype == DOUBLE and dense.shape == (
            (3, 3) if form in OF_ALL else (CHAINS, 3, 3)
        )
        torch.testing.assert_close(
            dense.expand(CHAINS, 3, 3),
            written_out(matrix),
            rtol=tolerance,
            atol=tolerance,
        )


@pytest.mark.parametrize("form", OF_ALL)
def test_eigenvalues(form):
    """Of a number there is one, whatever the number of coordinates."""
    expected = torch.linalg.eigvalsh(written_out(FORMS[form])[0]).tolist()
    assert sorted(FORMS[form].eigenvalues) == pytest.approx(
        expected[:1] if form == "number" else expected, rel=1e-12
    )


def test_operations_leave_their_matrices_as_they_are():
    before = {name: copy.deepcopy(matrix.value) for name, matrix in FORMS.items()}
    for left, right in itertools.product(FORMS.values(), FORMS.values()):
        (
            left @ right,
            left + right,
            left - right,
            3.0 * left,
            left.inverse,
            left.root,
            left.transposed,
            left.dense(3),
        )
    for name, matrix in FORMS.items():
        assert torch.equal(torch.as_tensor(matrix.value), torch.as_tensor(before[name]))


def test_whole_numbers_and_tensors_of_no_dimension_are_numbers():
    for value in (2, 2.0, torch.tensor(2), torch.tensor(2.0)):
        matrix = Matrix(value)
        assert matrix.value == matrix.number == 2.0 and not matrix.full
    assert repr(Matrix(2)) == "Matrix(2.0)"


def test_root_of_a_singular_matrix():
    ones = Matrix(torch.ones(3, 3, dtype=DOUBLE))
    torch.testing.assert_close((ones.root @ ones.root).value, ones.value)
    assert Matrix(0.0).root.value == 0.0 and not Matrix(torch.zeros(3)).root.value.any()


@pytest.mark.parametrize(
    "value",
    [-0.5, torch.tensor([1.0, -0.5]), torch.tensor([[0.5, 1.0], [1.0, 0.5]])],
    ids=["number", "diagonal", "full"],
)
def test_what_has_a_negative_eigenvalue_has_no_root(value):
    """Nothing is clipped without a word."""
    with pytest.raises(ValueError, match=r"-0\.5\b.*\broot.*covariance"):
        Matrix(value).root


# What is computed once


DERIVED = ("inverse", "root", "transposed", "eigenvalues")


@pytest.mark.parametrize("form", FORMS)
def test_what_is_derived_is_computed_once(form):
    matrix = _matrix(FORMS[form].tensor, FORMS[form].full)
    for name in DERIVED if form in OF_ALL else DERIVED[:-1]:
        first = getattr(matrix, name)
        assert getattr(matrix, name) is first


@pytest.mark.parametrize("form", OF_ALL)
def test_what_takes_a_matrix_takes_it_as_it_is_and_a_copy_shares_nothing_derived(form):
    matrix = _matrix(FORMS[form].tensor, FORMS[form].full)
    assert Matrix.of(matrix) is matrix and as_matrix(matrix, "mass") is matrix
    again = Matrix(matrix)
    assert again.tensor is matrix.tensor and again.full == matrix.full
    assert again.root is not matrix.root
    assert torch.equal(again.root.tensor, matrix.root.tensor)


@pytest.mark.parametrize("form", FORMS)
def test_matrices_can_be_copied_and_stored(form):
    matrix = FORMS[form]
    for twin in (copy.deepcopy(matrix), pickle.loads(pickle.dumps(matrix))):
        assert_close(twin @ twin.inverse, EYE.expand(CHAINS, 3, 3))
        assert twin.full == matrix.full


@pytest.fixture
def calls(monkeypatch):
    """Count factorisations."""
    counts = dict.fromkeys(
        ("eigh", "eigvalsh", "inv", "cholesky_ex", "solve", "matrix_exp"), 0
    )

    def counted(name, function):
        def count(*arguments, **settings):
            counts[name] += 1
            return function(*arguments, **settings)

        return count

    for name in counts:
        monkeypatch.setattr(
            torch.linalg, name, counted(name, getattr(torch.linalg, name))
        )
    return counts


TARGET = Gaussian(FULL)
# the check, the root, the inverse
ONCE = {
    "eigh": 1,
    "eigvalsh": 1,
    "inv": 1,
    "cholesky_ex": 0,
    "solve": 0,
    "matrix_exp": 0,
}


@pytest.mark.parametrize("form", [torch.clone, Matrix], ids=["tensor", "matrix"])
def test_hmc_factorises_its_mass_once(form, calls, generator):
    kernel = HMC(0.3, 3, mass=form(FULL))
    state = kernel.init(TARGET, torch.zeros(5, 3, dtype=DOUBLE), generator)
    for _ in range(20):
        state, _ = kernel.step(TARGET, state, generator)
    assert calls == ONCE


@pytest.mark.parametrize("form", [torch.clone, Matrix], ids=["tensor", "matrix"])
def test_a_warm_up_factorises_the_mass_once(form, calls):
    """The kernel is replaced at every step, its mass is not, until that becomes a
    diagonal.
    """
    kernel = HMC(0.3, 3, mass=form(FULL))
    adapt(
        kernel, TARGET, torch.zeros(50, 3, dtype=DOUBLE), num_steps=40, progress=False
    )
    checks = calls.pop("eigvalsh")
    # of the tensor, and of the matrix made of it
    assert checks == (1 if form is Matrix else 2)
    assert calls == {
        name: number for name, number in ONCE.items() if name != "eigvalsh"
    }


# What is refused


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, r"\bmass.*-1\b"),
        (0.0, r"\bmass.*positive"),
        (math.nan, r"\bmass.*finite"),
        (torch.tensor([1.0, -2.0]), r"eigenvalue.*-2\b"),
        (torch.tensor([[1.0, 2.0], [2.0, 1.0]]), r"eigenvalue.*-1\b"),
        (torch.tensor([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (torch.ones(2, 2, 2), r"\bmass.*\(2, 2, 2\)"),
        (np.float32(1), r"mass.*float32"),
        (Matrix(torch.tensor([1.0, -2.0])), r"eigenvalue.*-2\b"),
    ],
)
def test_bad_matrices_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        as_matrix(value, "mass", positive=True)


@pytest.mark.parametrize(
    "value",
    [[1.0], np.ones(2), None, "1", torch.ones(2, 3), torch.tensor([1, 2])],
    ids=repr,
)
def test_what_has_no_form_of_a_matrix_is_none(value):
    with pytest.raises(ValueError, match=r"^a matrix (must be|is|has) "):
        Matrix(value)


def test_zero_has_no_inverse():
    with pytest.raises(ValueError, match=r"matrix.*\b0\b.*inverse"):
        Matrix(0.0).inverse


@pytest.mark.parametrize(
    "form", [torch.ones(2), torch.eye(2)], ids=["diagonal", "full"]
)
def test_a_matrix_is_written_out_in_its_own_number_of_coordinates(form):
    with pytest.raises(
        ValueError,
        match=r"coordinates.*\b2\b.*\b3\b",
    ):
        Matrix(form).dense(3)


def test_zero_is_non_negative():
    assert as_matrix(0, "friction").value == 0.0


def test_a_covariance_of_fewer_draws_than_coordinates_is_one_in_spite_of_its_rounding(
    generator,
):
    draws = torch.randn(1, 5, generator=generator)
    covariance = draws.T @ draws
    assert torch.linalg.eigvalsh(covariance).min() < 0
    root = as_matrix(covariance, "noise_variance").root
    torch.testing.assert_close((root @ root).value, covariance)
