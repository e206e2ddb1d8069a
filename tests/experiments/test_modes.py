"""The mixture of 25 Gaussians: schedules, what is measured, and what is stored."""

import json
import math

import pytest
import torch

from experiments import modes
from experiments.modes import (
    METHODS,
    Falling,
    Modes,
    cyclical,
    falling,
    measure,
    starts,
)
from experiments.study import Options
from sgmc.targets import GaussianMixture
from tests.checks import z_bound

GRID = GaussianMixture().means


def generator_of(seed):
    return torch.Generator().manual_seed(seed)


def test_the_gradient_by_hand_is_that_of_the_energy():
    position = (
        16 * torch.rand(200, 2, generator=generator_of(0), dtype=torch.float64) - 8
    )
    mixture, plain = (kind(GRID.double()) for kind in (Modes, GaussianMixture))
    torch.testing.assert_close(
        mixture.gradient(position), plain.gradient(position), rtol=1e-9, atol=1e-9
    )


def by_hand(steps, rates, start, seed):
    """Follow θ ← θ − η(∇U + N(0, 1)) + N(0, 2η − η²), all noise together N(0, 2η):
    sgld.m of the authors.
    """
    generator, position, kept = generator_of(seed), start, []
    for step in range(steps):
        eta = rates(step)
        gradient = Modes().gradient(position) + torch.randn(
            start.shape, generator=generator
        )
        position = (
            position
            - eta * gradient
            + math.sqrt(2 * eta * (1 - eta / 2))
            * torch.randn(start.shape, generator=generator)
        )
        kept.append(position)
    return torch.stack(kept)


def test_sgld_is_the_authors_schedule():
    start = starts(range(1))
    rates = lambda step: 0.043 if step < 500 else 0.043 * (step + 1 - 500) ** -0.55
    samples = falling(start, 510, 3, rate=0.043)
    # A few steps: around a mode rounding errors shrink, between two they grow.
    torch.testing.assert_close(
        samples[:5], by_hand(5, rates, start, 3), rtol=1e-4, atol=1e-4
    )
    kernel = Falling(0.043)
    assert [
        kernel.step_size(step) for step in (0, 499, 500, 501, 49_999)
    ] == pytest.approx([rates(step) for step in (0, 499, 500, 501, 49_999)])
    assert kernel.step_size(500) == 0.043 and kernel.step_size(501) == pytest.approx(
        0.043 * 2**-0.55
    )


def test_csgld_is_the_schedule_of_the_paper_and_keeps_all_but_fifty_steps_of_a_cycle():
    start = starts(range(1))
    rates = lambda step: 0.035 * (1 + math.cos(math.pi * (step % 1_667) / 1_667))
    assert cyclical(start, 1_667, 3, rate=0.07, cycles=1).shape == (1_617, 5, 2)
    kernel, kept = modes.cycle(50_000, 0.07)
    assert (kernel.cycle_length, kept, kernel.num_draws) == (1_667, 1_617, 1_617)
    inner = [kernel._kernel_of(step) for step in (0, 50, 1_666)]
    assert [each.step_size for each in inner] == pytest.approx(
        [rates(step) for step in (0, 50, 1_666)]
    )
    assert [each.noise_estimate for each in inner] == pytest.approx(
        [rates(step) / 2 for step in (0, 50, 1_666)]
    )


def test_what_is_measured_of_exact_draws():
    number = 40_000
    found = measure(
        GaussianMixture().exact_samples(number, generator_of(1)).view(-1, 4, 2)
    )
    assert found["found"] == {"any": 25, "0.1 %": 25, "1 %": 25}
    z = (torch.tensor(found["mass"]) - 0.04) / (0.04 * 0.96 / number) ** 0.5
    assert z.abs().max() < z_bound(25) and sum(found["mass"]) == pytest.approx(
        1, abs=1e-4
    )
    # 2n squares of normal numbers: their mean has a relative standard error of 1/√n.
    assert abs(found["variance"] / 0.03 - 1) < z_bound(1) / number**0.5
    # the mean of ½Σ|share − 1/m|, and less than its spread
    for key, cells in (("modes_tv", 25), ("cells_tv", 100)):
        assert found[key] == pytest.approx(
            math.sqrt((cells - 1) / (2 * math.pi * number)), rel=0.5
        )


@pytest.fixture
def small(monkeypatch):
    kept = {name: METHODS[name] for name in ("SGLD", "cSGLD", "SGHMC")}
    monkeypatch.setattr(modes, "METHODS", kept)
    return kept


def options(folder, seeds=2):
    return Options(folder, folder, small=True, seeds=seeds, progress=False)


def test_what_is_stored(tmp_path, small):
    *_, result = modes.run(options(tmp_path), modes.prepare(options(tmp_path)))
    assert list(result["methods"]) == list(small)
    for name, content in result["methods"].items():
        assert [one["seed"] for one in content["runs"]] == [0, 1]
        assert all(
            sum(one[chains]["mass"]) == pytest.approx(1, abs=1e-3)
            for one in content["runs"]
            for chains in modes.CHAINS
        )
        assert len(content["tuning"]) == (2 if name == "SGHMC" else 0)
    tuning = result["methods"]["SGHMC"]["tuning"]
    assert (
        result["methods"]["SGHMC"]["settings"]
        == min(tuning, key=lambda row: row["cells_tv"])["settings"]
    )
    json.dumps(result, allow_nan=False)
