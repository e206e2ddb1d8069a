"""The checks at the door: what passes, and the sentence for what does not."""

import math
import re

import numpy as np
import pytest
import torch

from sgmc import checks

INT = torch.int64


@pytest.mark.parametrize(
    ("check", "limits", "good", "bad"),
    [
        (
            checks.check_positive,
            (),
            [1, 1e-9, 1e300, np.float64(2)],
            [0, -1.0, math.nan, math.inf, True, "1", None, [1.0]],
        ),
        (checks.check_positive, (2,), [2], [0, 2.1, math.nan]),
        (checks.check_number, (0,), [0, 1.5], [-1e-9, math.nan, math.inf, False, "0"]),
        (checks.check_number, (0, 1), [0, 0.9], [-1e-9, 1, math.nan, math.inf]),
        (
            checks.check_number,
            (),
            [-3, 0.5, -1e300],
            [math.nan, math.inf, -math.inf, True, "1", 1j],
        ),
        (checks.check_count, (), [1, 5], [0, 1.0, True, "1", None]),
        (checks.check_count, (0,), [0, 5], [-1, False]),
        (
            checks.check_seed,
            (),
            [-(2**63), 2**64 - 1],
            [-(2**63) - 1, 2**64, True, 1.0],
        ),
    ],
)
def test_numbers(check, limits, good, bad):
    for value in good:
        check("size", value, *limits)
    for value in bad:
        with pytest.raises(ValueError, match=rf"^size.*{re.escape(repr(value))}$"):
            check("size", value, *limits)
    # numbers in disguise, with what makes plain ones of them
    for value in (torch.tensor(1.0), np.float32(1), np.int64(1)):
        with pytest.raises(
            ValueError,
            match=rf"^size.*{re.escape(repr(value))}.*size\.item\(\)$",
        ):
            check("size", value, *limits)


@pytest.mark.parametrize(
    ("value", "axes", "message"),
    [
        ([1.0], ("n",), r"\(n,\).*list"),
        (np.ones(3), ("...",), "tensor, .*ndarray"),
        (None, ("n", "classes"), r"\(n, classes\).*NoneType"),
        (torch.ones(3), ("n", "classes"), r"\(n, classes\).* \(3,\) .*float32"),
        (torch.ones(3, 1, 1), ("n", "classes"), r"\(n, classes\).* \(3, 1, 1\)"),
        (torch.tensor(1.0), ("...", "classes"), r"\(\.\.\., classes\).* \(\) "),
        (torch.ones(3, dtype=INT), ("n",), r"\(n,\).* \(3,\) of torch\.int64"),
        (torch.ones(3, dtype=torch.complex64), ("n",), r"torch\.complex64"),
        (torch.ones(0, 2), ("n", "dim"), r"\(0, 2\)"),
        (torch.tensor([[0.0, 1.0], [math.nan, 2.0]]), ("n", "dim"), r"nan.*\(1, 0\)"),
        (torch.tensor([1.0, -math.inf]), ("n",), r"-inf.*\(1,\)"),
    ],
)
def test_what_is_no_such_tensor_is_refused(value, axes, message):
    with pytest.raises(ValueError, match=f"^x .*{message}"):
        checks.check_tensor("x", value, *axes)


def test_good_tensors_pass():
    checks.check_tensor("x", torch.ones(3, 2, dtype=torch.float16), "n", "dim")
    checks.check_tensor("x", torch.tensor(1.0), "...")
    checks.check_tensor("x", torch.ones(2, 3, 4), "...", "classes")
    for dtype in (INT, torch.bool, torch.uint8):
        checks.check_tensor("x", torch.ones(3, dtype=dtype), "n", floating=False)


def test_instances():
    checks.check_instance("flag", True, bool, "True")
    for value, given in (
        (1, "1"),
        ("yes", "'yes'"),
        ([], "a list"),
        (bool, "the class bool"),
    ):
        with pytest.raises(
            ValueError,
            match=rf"^flag.*{re.escape(given)}$",
        ):
            checks.check_instance("flag", value, bool, "True")


def test_matrices_that_are_multiplied_are_of_one_type():
    """A diagonal only scales, and may be of another one."""
    position, double = torch.zeros(3, 2), torch.ones(2, dtype=torch.float64)
    checks.check_dims(position=position, mass=double, friction=1.0)
    with pytest.raises(
        ValueError,
        match=r"position.*torch.float32.*\bmass.*torch.float64",
    ):
        checks.check_dims(position=position, mass=torch.diag(double))
    with pytest.raises(
        ValueError,
        match=r"coordinates.*position.*\b2\b.*\bmass.*\b3\b",
    ):
        checks.check_dims(position=position, mass=torch.ones(3))
