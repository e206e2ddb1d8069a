"""Arithmetic and noise of the lab, and what its landscapes say of themselves. Of the
tests with noise one in 10,000 gives a false alarm.
"""

import math
import re

import numpy as np
import pytest
import torch

from tests.checks import z_bound
from tests.lab.cases import LANDSCAPES
from tests.lab.node import FILES, run
from tests.lab.test_package import POTENTIALS, data

TINY = 5e-324
EXPONENTS = [
    *np.linspace(-708, 709, 40_001).tolist(),
    *np.linspace(-1, 1, 2_001).tolist(),
    0.0,
    -0.0,
    TINY,
    1e-300,
]
POSITIVE = [
    *np.geomspace(1e-307, 1e307, 40_001).tolist(),
    *np.linspace(0.5, 2, 20_001).tolist(),
    *(1 + np.linspace(-1e-8, 1e-8, 101)).tolist(),
]
ANGLES = np.linspace(-math.pi, math.pi, 20_001).tolist()


def relative_error(given, expected):
    return max(
        abs(a - b) / max(abs(b), TINY) if a != b else 0.0
        for a, b in zip(given, expected, strict=True)
    )


def test_exp_log_and_cos_are_accurate():
    script = """
    const values = { exp: given.exponents, log: given.positive, cos: given.angles };
    return Object.entries(values).map(([name, x]) => Float64Array.from(x, lab[name]));
    """
    exp, log, cos = run(
        script, {"exponents": EXPONENTS, "positive": POSITIVE, "angles": ANGLES}
    )
    assert relative_error(exp, map(math.exp, EXPONENTS)) < 1e-15
    assert relative_error(log, map(math.log, POSITIVE)) < 1e-15
    assert np.abs(cos - np.cos(ANGLES)).max() < 1e-15


def test_exp_and_log_at_the_ends_of_the_numbers():
    script = """
    const { exp, log, logaddexp } = lab;
    return Float64Array.of(
      exp(-709), exp(-Infinity), exp(709.5), exp(Infinity), exp(NaN), log(0), log(1), log(Infinity), log(-1), log(NaN), log(5e-324),
      logaddexp(-Infinity, -Infinity), logaddexp(2, -Infinity), logaddexp(-1e3, -999));
    """
    inf, nan = math.inf, math.nan
    expected = [0, 0, inf, inf, nan, -inf, 0, inf, nan, nan, math.log(TINY)]
    expected += [-inf, 2, np.logaddexp(-1e3, -999)]
    np.testing.assert_allclose(run(script), expected, rtol=1e-15)


def test_the_engine_uses_arithmetic_alone():
    """What IEEE 754 fixes to the last bit, and no more: a browser's exp, log, cos,
    powers and random numbers are its own.
    """
    for file in FILES:
        code = re.sub(r"//.*", "", file.read_text())
        allowed = {"sqrt", "min", "max", "floor", "ceil"}
        assert set(re.findall(r"\bMath\.(\w+)", code)) <= allowed, file.name
        assert "**" not in code, file.name


def test_the_generator_draws_uniform_and_normal_numbers():
    """Moments up to the fourth, neighbours, and the first numbers of neighbouring
    seeds.
    """
    script = """
    const draws = (make, n) => Float64Array.from({ length: n }, make), noise = lab.noise(7);
    const firsts = (kind) => draws((_, seed) => lab.noise(seed)[kind](), 100000);
    return [draws(noise.uniform, 400000), draws(noise.normal, 400000), firsts("uniform"), firsts("normal")];
    """
    uniform, normal, first_uniform, first_normal = run(script)
    assert 0 <= uniform.min() < 1e-4 and 1 - 1e-4 < uniform.max() < 1
    z = []
    for u in (uniform, first_uniform):
        z += [
            scores(u - 0.5, 0),
            scores((u - 0.5) ** 2, 1 / 12),
            scores((u[1:] - 0.5) * (u[:-1] - 0.5), 0),
        ]
        counts = np.histogram(u, 256, (0, 1))[0]
        # χ², nearly normal
        z.append(
            (((counts - len(u) / 256) ** 2).sum() / (len(u) / 256) - 255)
            / math.sqrt(510)
        )
    for x in (normal, first_normal):
        z += [
            scores(x, 0),
            scores(x**2, 1),
            scores(x**3, 0),
            scores(x**4, 3),
            scores(x[1:] * x[:-1], 0),
            scores(x[1:] ** 2 * x[:-1] ** 2, 1),
        ]
    assert max(map(abs, z)) < z_bound(len(z)), z


def scores(values, expected):
    return (values.mean() - expected) / (values.std() / math.sqrt(len(values)))


def conditional_grid(name, x):
    """For each x the places y where its conditional density is, and their distance."""
    t = torch.linspace(-12, 12, 601, dtype=torch.float64)
    scale = torch.exp(x / 2) if name == "funnel" else torch.ones_like(x)
    centre = (
        0.5 * (x**2 - 4)
        if name == "banana"
        else torch.full_like(x, data()["start"][1] if name == "regression" else 0)
    )
    return centre[:, None] + scale[:, None] * t, scale * (t[1] - t[0])


@pytest.mark.parametrize("name", LANDSCAPES)
def test_marginals_and_moments_are_those_of_the_energy(name):
    """By the trapezoidal rule, which is as exact as numbers are for densities that
    vanish at both ends.
    """
    x = torch.linspace(-36, 36, 1_801, dtype=torch.float64)
    y, distance = conditional_grid(name, x)
    log_density = (
        -POTENTIALS[name]
        .energy(torch.stack([x[:, None].expand_as(y), y], -1).view(-1, 2))
        .view(y.shape)
    )
    density = torch.exp(log_density - log_density.max()).sum(-1) * distance
    density /= density.sum() * (x[1] - x[0])
    landscape = run(
        """const { moments, marginal, window, start, dim } = lab.landscapes[given.name];
        return { moments, window, start, dim, marginal: Float64Array.from(given.x, marginal) };""",
        {"name": name, "x": x.tolist()},
    )
    np.testing.assert_allclose(
        landscape["marginal"], density.numpy(), rtol=1e-9, atol=1e-12
    )
    mean = float((x * density).sum() * (x[1] - x[0]))
    variance = float(((x - mean) ** 2 * density).sum() * (x[1] - x[0]))
    assert landscape["moments"]["mean"] == pytest.approx(mean, abs=1e-10)
    assert landscape["moments"]["variance"] == pytest.approx(variance, rel=1e-10)
    left, right, bottom, top = landscape["window"]
    assert (
        left < landscape["start"][0] < right
        and bottom < landscape["start"][1] < top
        and landscape["dim"] == 2
    )
    # the window shows what there is
    assert float(density[(x > left) & (x < right)].sum() * (x[1] - x[0])) > 0.99


def test_a_batch_of_all_the_data_is_the_gradient_bit_for_bit():
    gradients = run(
        """const landscape = lab.landscapes.regression, all = new Float64Array(2), batch = new Float64Array(2);
        landscape.gradient(0.3, -1.7, all);
        landscape.minibatch_gradient(0.3, -1.7, 40, lab.recorded([], []), batch);
        return [all, batch];"""
    )
    assert gradients[0].tobytes() == gradients[1].tobytes()


def test_minibatches_are_uniform_subsets():
    """Every example, and every pair of them, is as likely as any other."""
    batches = 20_000
    script = """
    const noise = lab.noise(4), { minibatch } = lab.landscapes.regression;
    return Array.from({ length: given }, () => minibatch(7, noise));
    """
    taken = np.zeros((batches, 40))
    np.put_along_axis(taken, np.array(run(script, batches)), 1, axis=1)
    assert (taken.sum(1) == 7).all()
    for values, share in (
        (taken, 7 / 40),
        (taken * np.roll(taken, 1, 1), 7 * 6 / (40 * 39)),
    ):
        z = (values.mean(0) - share) / math.sqrt(share * (1 - share) / batches)
        assert abs(z).max() < z_bound(80)
