"""A z-test that the tests of approximations share."""

from torch import Tensor


def z_of_mean(values: Tensor, expected: Tensor | float) -> Tensor:
    """Compare the mean over the first axis, along which values are independent, with
    its exact value.
    """
    return (values.mean(0) - expected) / (values.std(0) / len(values) ** 0.5)
