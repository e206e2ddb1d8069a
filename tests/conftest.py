"""What the tests share."""

import pytest
import torch

from tests.checks import assert_covariance, assert_leaves_exact_draws_invariant, z_bound

__all__ = ["assert_covariance", "assert_leaves_exact_draws_invariant", "z_bound"]


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)
