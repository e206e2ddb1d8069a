"""Arithmetic and noise of the lab, and what its landscapes say of themselves. Of the
tests with noise one in 10,000 gives a false alarm.
"""

import math

import numpy as np
import pytest
import torch

from lab.reference import LANDSCAPES, core
from tests.checks import z_bound
from tests.lab.cases import digest
from tests.lab.node import run
from tests.lab.test_package import POTENTIALS

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
    assert relative_error(map(core.exp, EXPONENTS), map(math.exp, EXPONENTS)) < 1e-15
    assert relative_error(map(core.log, POSITIVE), map(math.log, POSITIVE)) < 1e-15
    assert max(abs(core.cos(x) - math.cos(x)) for x in ANGLES) < 1e-15
    assert [core.exp(x) for x in (-709.0, -math.inf, 709.5, math.inf)] == [
        0,
        0,
        math.inf,
        math.inf,
    ]
    assert [core.log(x) for x in (0.0, 1.0, math.inf)] == [
        -math.inf,
        0,
        math.inf,
    ] and math.isnan(core.log(-1.0))
    assert core.log(TINY) == pytest.approx(math.log(TINY), rel=1e-15)
    assert math.isnan(core.exp(math.nan)) and math.isnan(core.log(math.nan))
    assert (
        core.logaddexp(-math.inf, -math.inf) == -math.inf
        and core.logaddexp(2.0, -math.inf) == 2.0
    )
    assert core.logaddexp(-1e3, -1e3 + 1) == pytest.approx(
        np.logaddexp(-1e3, -1e3 + 1), rel=1e-15
    )


def test_the_scripts_have_the_same_bits():
    script = """
    const exponents = [...given.exponents, -709, 709.5, Infinity, -Infinity, NaN];
    const positive = [...given.positive, 0, -0, -1, Infinity, NaN, 5e-324];
    return [exponents.map(lab.exp), positive.map(lab.log), given.angles.map(lab.cos)].map(digest);
    """
    exponents = [*EXPONENTS, -709.0, 709.5, math.inf, -math.inf, math.nan]
    positive = [*POSITIVE, 0.0, -0.0, -1.0, math.inf, math.nan, TINY]
    expected = [
        [*map(core.exp, exponents)],
        [*map(core.log, positive)],
        [*map(core.cos, ANGLES)],
    ]
    assert run(
        script, {"exponents": EXPONENTS, "positive": POSITIVE, "angles": ANGLES}
    ) == [digest(values) for values in expected]


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
        else torch.full_like(
            x, LANDSCAPES["regression"].start[1] if name == "regression" else 0
        )
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
    assert tuple(landscape["start"]) == tuple(LANDSCAPES[name].start)
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
    landscape, noise, batches = LANDSCAPES["regression"], core.Generator(4), 20_000
    taken = np.zeros((batches, 40))
    for row in taken:
        row[landscape.minibatch(7, noise)] = 1
    assert (taken.sum(1) == 7).all()
    for values, share in (
        (taken, 7 / 40),
        (taken * np.roll(taken, 1, 1), 7 * 6 / (40 * 39)),
    ):
        z = (values.mean(0) - share) / math.sqrt(share * (1 - share) / batches)
        assert abs(z).max() < z_bound(80)
