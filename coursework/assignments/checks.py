"""Checks with which the assignments are tested, in visible and in hidden tests.

A check raises an AssertionError whose sentence says what is wrong. A statistical check
compares independent draws with a law that is known exactly, its spread included. Each
of its calls states the shape of the draws, and so their number, and their dtype: an
answer never sets the tolerance by which it is judged. A right answer fails one of them
with probability ``FALSE_ALARM``.

The dtype is PyTorch's default one where the test runs, unless a test names another.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from scipy import stats
from torch import Generator, Tensor

# Of one statistical check; an assignment has at most 15 of them, so 7.5e-5 in all.
FALSE_ALARM = 5e-6

# Without make nothing says where sgmc is: in the folder above the assignments.
if find_spec("sgmc") is None:
    above = Path(__file__).resolve().parents
    sys.path += [str(path) for path in above if (path / "sgmc/__init__.py").exists()]


def seeded(seed: int) -> Generator:
    """Make a generator.

    Example:
        >>> first, again = (torch.randn(2, generator=seeded(1)) for _ in range(2))
        >>> torch.equal(first, again)
        True
    """
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


def assert_shape(value, shape, what: str, dtype: torch.dtype | None = None) -> None:
    """Demand a tensor of a shape, of finite numbers of a ``dtype``.

    Without one it is PyTorch's default.

    Example:
        >>> assert_shape(torch.zeros(3), (1, 3), "it")
        Traceback (most recent call last):
        AssertionError: it should be a tensor of shape (1, 3), but it is of shape (3,)
        >>> assert_shape(torch.zeros(3), (3,), "it", torch.bool)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: it should be of dtype torch.bool, but it is of torch.float...
    """
    if not isinstance(value, Tensor):
        raise AssertionError(f"{what} should be a tensor, but it is {value!r:.80}")
    if value.shape != tuple(shape):
        raise AssertionError(
            f"{what} should be a tensor of shape {tuple(shape)}, "
            f"but it is of shape {tuple(value.shape)}"
        )
    dtype = dtype or torch.get_default_dtype()
    if value.dtype != dtype:
        raise AssertionError(
            f"{what} should be of dtype {dtype}, but it is of {value.dtype}"
        )
    if not torch.isfinite(value).all():
        raise AssertionError(
            f"{what} should be finite, but some of its numbers are not"
        )


def assert_close(value, expected, what: str) -> None:
    """Demand equality up to rounding.

    That is one part in 10⁹ of the largest expected number (or of one), and in 10⁵ where
    the expected numbers are a tensor in single precision. The dtype of an expected
    tensor is demanded, too.

    Example:
        >>> assert_close(0.1 + 0.2, 0.3, "the sum")
        >>> assert_close(torch.ones(2), torch.tensor([1.0, 2.0]), "the force")
        Traceback (most recent call last):
        AssertionError: the force should be 2, but it is 1 (at index 1)
    """
    single = isinstance(expected, Tensor) and expected.dtype == torch.float32
    dtypes = [one.dtype for one in (expected, value) if isinstance(one, Tensor)]
    value, expected = _double(value, what), _double(expected, what)
    if len(set(dtypes)) > 1:
        raise AssertionError(
            f"{what} should be of dtype {dtypes[0]}, but it is of {dtypes[1]}"
        )
    if value.shape != expected.shape and not value.numel() == expected.numel() == 1:
        raise AssertionError(
            f"{what} should be of shape {tuple(expected.shape)}, "
            f"but it is of shape {tuple(value.shape)}"
        )
    value, expected = value.reshape(-1), expected.reshape(-1)
    rounding = (1e-5 if single else 1e-9) * expected.abs().max().clamp(min=1.0)
    wrong = ~((value - expected).abs() <= rounding)
    if wrong.any():
        index = int(wrong.nonzero()[0])
        place = f" (at index {index})" if len(value) > 1 else ""
        raise AssertionError(
            f"{what} should be {expected[index]:.6g}, "
            f"but it is {value[index]:.6g}{place}"
        )


def assert_mean(values, shape, expected, what: str, std) -> None:
    """Demand a mean of independent draws, so many that it is normally distributed.

    ``shape`` is ``(draws, ...)``; ``expected`` and ``std``, the exact standard
    deviation of one draw, are numbers or tensors ``(...)``. All entries of ``(...)``
    together fail by chance with probability ``FALSE_ALARM``, each at the same share of
    it.

    Example:
        >>> draws = torch.randn(1_000, 2, generator=seeded(0))
        >>> assert_mean(draws, (1_000, 2), 0.0, "the mean", std=1.0)
        >>> assert_mean(draws + 1, (1_000, 2), 0.0, "it", 1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: it should be 0, but it is ..., which is ... away, more ...
        >>> assert_mean(draws[:1], (1_000, 2), 0.0, "it", 1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: it should be ... of shape (1000, 2), but it is of shape (1, 2)
    """
    assert_shape(values, shape, what)
    values = values.detach().double()
    mean = values.reshape(len(values), -1).mean(0)
    expected, std = (
        torch.as_tensor(value, dtype=torch.float64).reshape(-1).expand_as(mean)
        for value in (expected, std)
    )
    z = (mean - expected).abs() / (std / len(values) ** 0.5)
    worst = int(z.argmax())
    assert_chance(
        2 * stats.norm.sf(float(z[worst])) * len(z),
        f"{what} should be {expected[worst]:.3g}, but it is {mean[worst]:.3g}, "
        f"which is {z[worst]:.1f} standard errors away",
    )


def assert_normal(values, shape, mean: float, variance: float, what: str) -> None:
    """Demand independent draws of a normal law, of a ``shape``.

    Their mean is normal, the sum of their squares has a χ² law, and the largest
    distance of their distribution function from the exact one Kolmogorov's; each has a
    third of the false alarms.

    Example:
        >>> draws = torch.randn(1_000, generator=seeded(0))
        >>> assert_normal(2 * draws, (1_000,), 0.0, 4.0, "it")
        >>> assert_normal(4 * draws, (1_000,), 0.0, 4.0, "it")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: it should have the variance 4, but it has ..., more than ...
        >>> flat = 12**0.5 * (torch.rand(10_000, generator=seeded(0)) - 0.5)
        >>> assert_normal(flat, (10_000,), 0.0, 1.0, "it")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: it should be normally distributed, but ..., more than ...
    """
    assert_shape(values, shape, what)
    values = values.detach().double().reshape(-1)
    n, z = len(values), (values - mean).numpy() / variance**0.5
    squares, distribution = np.sum(z**2), stats.norm.cdf(np.sort(z))
    gaps = np.stack(
        [np.arange(1, n + 1) / n - distribution, distribution - np.arange(n) / n]
    ).max(0)
    place = np.sort(z)[gaps.argmax()] * variance**0.5 + mean
    below = float((values <= place).double().mean())
    p_value, complaint = min(
        (
            2 * stats.norm.sf(abs(z.mean()) * n**0.5),
            f"have the mean {mean:.3g}, but it has {values.mean():.3g}",
        ),
        (
            _two_sided(stats.chi2(n), squares),
            f"have the variance {variance:.3g}, "
            f"but it has {squares / n * variance:.3g}",
        ),
        (
            _two_sided(stats.kstwo(n), gaps.max()),
            "be normally distributed, "
            f"but {below:.1%} of the draws are below {place:.3g}",
        ),
    )
    assert_chance(3 * p_value, f"{what} should {complaint}")


def assert_share(events: Tensor, shape, probability, what: str) -> None:
    """Demand a probability of independent events, by exact binomial tests.

    ``events``, true or false, are of the ``shape`` ``(draws, ...)``; ``probability`` is
    a number or a tensor ``(...)``. All entries of ``(...)`` together fail by chance
    with probability ``FALSE_ALARM``.

    Example:
        >>> heads = torch.rand(1_000, generator=seeded(0)) < 0.3
        >>> assert_share(heads, (1_000,), 0.3, "it")
        >>> assert_share(heads, (1_000,), 0.5, "it")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: it should be 0.5, but it is 0.30... of 1000, more than ...
    """
    assert_shape(events, shape, what, torch.bool)
    counts = events.reshape(len(events), -1).sum(0)
    probability = torch.as_tensor(probability, dtype=torch.float64).reshape(-1)
    probability = probability.expand(len(counts))
    p_values = [
        _two_sided(stats.binom(len(events), float(p)), int(count))
        for count, p in zip(counts, probability, strict=True)
    ]
    worst = int(np.argmin(p_values))
    assert_chance(
        p_values[worst] * len(p_values),
        f"{what} should be {probability[worst]:.3g}, "
        f"but it is {counts[worst] / len(events):.3g} of {len(events)}",
    )


def assert_chance(p_value: float, sentence: str) -> None:
    """Demand that a deviation can be chance: every statistical check ends here.

    Example:
        >>> assert_chance(0.2, "the coin should be fair")
        >>> assert_chance(1e-9, "the coin should be fair")
        Traceback (most recent call last):
        AssertionError: the coin should be fair, more than chance allows
    """
    if not p_value > FALSE_ALARM:
        raise AssertionError(f"{sentence}, more than chance allows")


def _two_sided(law, value) -> float:
    """Give the p-value of a test that minds both tails.

    Draws that fit too well are not random either.
    """
    above = law.sf(value - 1 if hasattr(law.dist, "pmf") else value)
    return min(1.0, 2 * min(law.cdf(value), above))


def _double(value, what: str) -> Tensor:
    try:
        tensor = torch.as_tensor(value).detach()
    except (TypeError, ValueError, RuntimeError):
        raise AssertionError(
            f"{what} should be a number or a tensor, but it is {value!r:.80}"
        ) from None
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise AssertionError(f"{what} should be real, but it is of {tensor.dtype}")
    if isinstance(value, Tensor):
        return tensor.double()
    return torch.as_tensor(value, dtype=torch.float64)
