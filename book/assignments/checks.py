"""Checks with which the assignments are tested; visible and hidden tests use the same ones.

A check raises an AssertionError whose sentence says what is wrong. Statistical checks compare an average of independent draws with its
exact value, by a t-test with a Bonferroni correction: a right answer fails one of them with probability ``FALSE_ALARM``.
"""

import torch
from scipy import stats
from torch import Generator, Tensor

FALSE_ALARM = 5e-6  # of one statistical check; an assignment has at most 15 of them, so 7.5e-5 in all


def seeded(seed: int) -> Generator:
    """Make a generator, and seed PyTorch's global one as well, for answers that use it.

    Example:
        >>> torch.equal(torch.randn(2, generator=seeded(1)), torch.randn(2, generator=seeded(1)))
        True
    """
    torch.manual_seed(seed)
    return Generator().manual_seed(seed)


def fresh(*tensors: Tensor) -> list[Tensor]:
    """Copy tensors, so that an answer may change its arguments in place.

    Example:
        >>> position = torch.zeros(1)
        >>> [copy] = fresh(position)
        >>> copy.add_(1), position
        (tensor([1.]), tensor([0.]))
    """
    return [tensor.clone() for tensor in tensors]


def assert_shape(value, shape, what: str) -> None:
    """Demand a tensor of a shape.

    Example:
        >>> assert_shape(torch.zeros(3), (1, 3), "the position")
        Traceback (most recent call last):
        AssertionError: the position should be a tensor of shape (1, 3), but it is of shape (3,)
    """
    if not isinstance(value, Tensor):
        raise AssertionError(f"{what} should be a tensor, but it is {value!r:.80}")
    if value.shape != tuple(shape):
        raise AssertionError(f"{what} should be a tensor of shape {tuple(shape)}, but it is of shape {tuple(value.shape)}")


def assert_close(value, expected, what: str) -> None:
    """Demand equality up to rounding: one part in 10⁵ in single precision, in 10⁹ in double, of the largest expected number (or of one).

    Example:
        >>> assert_close(0.1 + 0.2, 0.3, "the sum")
        >>> assert_close(torch.ones(2), torch.tensor([1.0, 2.0]), "the force")
        Traceback (most recent call last):
        AssertionError: the force should be 2, but it is 1 (at index 1)
    """
    single = isinstance(value, Tensor) and value.dtype == torch.float32
    value, expected = _double(value, what), _double(expected, what)
    if value.shape != expected.shape and not value.numel() == expected.numel() == 1:
        raise AssertionError(f"{what} should be of shape {tuple(expected.shape)}, but it is of shape {tuple(value.shape)}")
    value, expected = value.reshape(-1), expected.reshape(-1)
    wrong = ~((value - expected).abs() <= (1e-5 if single else 1e-9) * expected.abs().max().clamp(min=1.0))
    if wrong.any():
        index = int(wrong.nonzero()[0])
        place = f" (at index {index})" if len(value) > 1 else ""
        raise AssertionError(f"{what} should be {expected[index]:.6g}, but it is {value[index]:.6g}{place}")


def assert_mean(values: Tensor, expected, what: str) -> None:
    """Demand a mean: ``values`` is ``(draws, ...)`` with independent draws, ``expected`` a number or a tensor ``(...)``.

    The bound is that of Student's t-test, divided among the entries of ``(...)``: all of them together fail by chance with probability
    ``FALSE_ALARM``, if the means of so many draws are normally distributed.

    Example:
        >>> draws = torch.randn(1_000, 2, generator=seeded(0))
        >>> assert_mean(draws, 0.0, "the mean")
        >>> assert_mean(draws, 1.0, "the mean")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: the mean should be 1, but it is ..., which is ... standard errors away (at most 4.7 are chance)
    """
    values = _double(values, what)
    draws = len(values)
    values = values.reshape(draws, -1)
    if not torch.isfinite(values).all():
        raise AssertionError(f"{what}: some of the draws are not finite")
    mean, error = values.mean(0), values.std(0) / draws**0.5
    expected = torch.as_tensor(expected, dtype=torch.float64).reshape(-1).expand_as(mean)
    bound = float(stats.t.isf(FALSE_ALARM / 2 / values.shape[1], draws - 1))
    z = (mean - expected).abs() / error.clamp(min=1e-12)
    worst = int(z.argmax())
    if z[worst] >= bound:
        raise AssertionError(
            f"{what} should be {expected[worst]:.3g}, but it is {mean[worst]:.3g}, which is {z[worst]:.1f} standard errors away "
            f"(at most {bound:.1f} are chance)"
        )


def assert_variance(values: Tensor, expected, what: str, mean=0.0) -> None:
    """Demand a second moment about a known mean: ``values`` is ``(draws, ...)`` with independent draws.

    Example:
        >>> assert_variance(2 * torch.randn(1_000, generator=seeded(0)), 4.0, "the variance")
    """
    assert_mean((_double(values, what) - mean) ** 2, expected, what)


def assert_covariance(values: Tensor, expected: Tensor, what: str) -> None:
    """Demand a covariance matrix of draws ``(draws, dim)`` with mean zero.

    Example:
        >>> assert_covariance(torch.randn(1_000, 2, generator=seeded(0)), torch.eye(2), "the covariance")
    """
    values = _double(values, what)
    rows, columns = torch.triu_indices(values.shape[1], values.shape[1]).unbind()
    assert_mean(values[:, rows] * values[:, columns], expected[rows, columns], what)


def _double(value, what: str) -> Tensor:
    try:
        return torch.as_tensor(value).detach().double()
    except (TypeError, ValueError, RuntimeError):
        raise AssertionError(f"{what} should be a number or a tensor, but it is {value!r:.80}") from None
